"""The fixture ``cluster`` of scenarios that need neither a clock nor faults; the others use the plugin's ``kafka``."""

import os
from collections.abc import AsyncIterator
from itertools import count
from uuid import uuid4

import pytest
import pytest_asyncio

from groupcoord.testing import Cluster, RemoteCluster
from tests.real_kafka import Broker

_RUN = uuid4().hex[:6]
_NUMBERS = count(1)


@pytest.fixture
def _suffix() -> str:
    return f"{_RUN}-{next(_NUMBERS)}"


@pytest.fixture
def orders(_suffix: str) -> str:
    """The name of a topic that only this test uses."""
    return f"orders-{_suffix}"


@pytest.fixture
def app(_suffix: str) -> str:
    """The name of a group that only this test uses."""
    return f"app-{_suffix}"


@pytest.fixture(params=["groupcoord", pytest.param("real_kafka", marks=pytest.mark.real_kafka)])
def _address(request: pytest.FixtureRequest) -> str:
    if request.param == "real_kafka":
        if running := os.environ.get("KAFKA_TEST_BOOTSTRAP"):  # one that runs already, with the properties of FAST
            return running
        broker: Broker = request.getfixturevalue("real_kafka")  # one for all tests of a run
        return broker.bootstrap_servers
    kafka: Cluster = request.getfixturevalue("kafka")  # time stands still there: nothing runs out on a slow machine
    return kafka.address


@pytest_asyncio.fixture
async def cluster(_address: str) -> AsyncIterator[RemoteCluster]:
    """A broker that is reached over a socket: groupcoord's, or with ``-m real_kafka`` a real Kafka."""
    async with RemoteCluster(_address) as remote:
        yield remote

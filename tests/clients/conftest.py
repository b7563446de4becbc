"""Fixtures: the broker under test, members that end with the test, and the client tools that this machine has."""

import gc
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.clients.cluster import Cluster
from tests.clients.in_process import groupcoord
from tests.clients.members import Flavour, Member, Membership
from tests.clients.support import unique

FORGOTTEN = "Exception ignored in. <socket.socket"
HERE = Path(__file__).parent
REAL = "KAFKA_TEST_BOOTSTRAP"
TARGETS = ["groupcoord", *(["real"] if os.environ.get(REAL) else [])]

MakeMember = Callable[..., Member]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.clients)
            # kafka-python sometimes forgets to close a socket; which test notices is up to the garbage collector.
            item.add_marker(pytest.mark.filterwarnings(f"ignore:{FORGOTTEN}:pytest.PytestUnraisableExceptionWarning"))


@pytest.fixture(autouse=True)
def _forgotten_sockets_do_not_haunt_other_tests() -> Iterator[None]:
    yield
    gc.collect()


@pytest.fixture(scope="session", params=TARGETS)
def running_cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """The broker under test: groupcoord, and also the real one that KAFKA_TEST_BOOTSTRAP names, if it names one."""
    with ExitStack() as running:
        broker = running.enter_context(groupcoord()) if request.param == "groupcoord" else os.environ[REAL]
        cluster = Cluster(broker)
        running.callback(cluster.close)
        yield cluster


@pytest.fixture
def cluster(running_cluster: Cluster) -> Iterator[Cluster]:
    """The broker under test. The test fails whose requests made groupcoord stumble, even if the clients coped."""
    yield running_cluster
    assert running_cluster.new_errors() == []


@pytest.fixture
def group() -> str:
    """A group nobody else has."""
    return unique("group")


@pytest.fixture
def member(cluster: Cluster, group: str) -> Iterator[MakeMember]:
    """Starts a member of this test's ``group``; those still running at the end of the test leave then."""
    with ExitStack() as running:

        def start(flavour: Flavour, topic: str, **membership: Any) -> Member:
            number = len(started)
            membership = {"client_id": f"{flavour.library}-{number}", "group": group, **membership}
            started.append(
                Member(Membership(bootstrap=cluster.bootstrap, flavour=flavour, topics=(topic,), **membership))
            )
            running.callback(started[-1].end)
            return started[-1]

        started: list[Member] = []
        yield start

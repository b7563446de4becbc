"""Elections and reassignments that an administrator asks for: three real brokers do what was recorded.

What groupcoord does is in ``tests/cluster/test_partition_admin.py``.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import pytest

from tests.conformance.brokers_that_fail import Observation
from tests.conformance.partitions_administered import STORIES, recorded
from tests.conformance.test_brokers_that_fail import PATIENCE_S, RealTrio
from tests.conformance.wire import Hungup
from tests.real_kafka.broker import RealKafkaUnavailable
from tests.real_kafka.cluster_process import KafkaClusterProcess
from tests.real_kafka.waiting import until


@contextmanager
def real_trio(properties: Mapping[str, str]) -> Iterator[RealTrio]:
    try:
        cluster = KafkaClusterProcess(properties)
    except RealKafkaUnavailable as reason:
        (pytest.fail if os.environ.get("REQUIRE_REAL_KAFKA") == "1" else pytest.skip)(f"no real Kafka: {reason}")
    with cluster:
        yield RealTrio(cluster)


@pytest.mark.slow
@pytest.mark.real_kafka
@pytest.mark.parametrize("story", STORIES)
def test_real_brokers_do_what_was_recorded(story: str) -> None:
    tell, properties = STORIES[story]
    expected = recorded()[story]

    def shows(wanted: Observation, find: Callable[[], Observation]) -> bool:
        try:
            return find() == wanted
        except (OSError, Hungup):  # of a broker that the others have not missed yet
            return False

    def look(name: str, find: Callable[[], Observation]) -> None:
        is_answer = name.endswith("answer")  # what is asked is done: this is looked at once
        if is_answer or not until(lambda: shows(expected[name], find), PATIENCE_S):
            assert find() == expected[name], name

    with real_trio(properties) as trio:
        tell(trio, look)

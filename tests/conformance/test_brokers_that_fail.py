"""Three brokers that stop, die, pause and come back: groupcoord's do what three real ones did, step by step."""

from collections.abc import Callable

import pytest

import groupcoord as gc
from tests.conformance import brokers_that_fail
from tests.conformance.brokers_that_fail import PROPERTIES, recorded
from tests.conformance.trios import Observation, OwnTrio, look_until, real_trio

pytestmark = pytest.mark.minutes(1)


@pytest.mark.slow
def test_groupcoord_does_what_was_recorded() -> None:
    seen: dict[str, Observation] = {}

    def look(name: str, find: Callable[[], Observation]) -> None:
        seen[name] = find()
        assert seen[name] == recorded()[name], name

    with gc.Cluster(brokers=3, clock="manual", config=PROPERTIES).sync() as kafka:
        brokers_that_fail.tell(OwnTrio(kafka), look)
    assert list(seen) == list(recorded())


@pytest.mark.slow
@pytest.mark.real_kafka
@pytest.mark.kafka_alone
def test_real_brokers_do_what_was_recorded() -> None:
    with real_trio(PROPERTIES) as trio:
        brokers_that_fail.tell(trio, look_until(recorded(), once="write"))  # what is written is written

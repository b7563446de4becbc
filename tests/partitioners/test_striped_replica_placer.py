from typing import Any

import pytest

from groupcoord.partitioners.java_random import JavaRandom
from groupcoord.partitioners.replica_placement import PlacementError, UsableBroker, place_replicas
from tests.partitioners.known import KNOWN, chance

CASES = [case for case in KNOWN["placement"] if case["kind"] == "striped-placer"]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_replicas_are_placed_as_by_the_controller(case: dict[str, Any]) -> None:
    brokers = [UsableBroker(broker["id"], broker.get("rack"), broker["fenced"]) for broker in case["brokers"]]
    random = chance(case["rng"])
    assert place_replicas(brokers, case["partitions"], case["replication_factor"], random) == case["expected"]


def test_a_rack_that_is_down_leads_nothing_and_comes_last() -> None:
    brokers = [UsableBroker(0, "a", fenced=True), UsableBroker(1, "b"), UsableBroker(2, "c", fenced=True)]
    placed = place_replicas(brokers, 3, 3, JavaRandom(1))
    assert {replicas[0] for replicas in placed} == {1}
    assert {tuple(sorted(replicas)) for replicas in placed} == {(0, 1, 2)}


def test_a_rack_whose_brokers_all_have_a_replica_is_passed_over() -> None:
    brokers = [UsableBroker(0, "a"), UsableBroker(1, "b"), UsableBroker(2, "b"), UsableBroker(3, "b")]
    assert {tuple(sorted(replicas)) for replicas in place_replicas(brokers, 4, 4, JavaRandom(1))} == {(0, 1, 2, 3)}


@pytest.mark.parametrize(
    ("brokers", "factor", "text"),
    [
        ([UsableBroker(0)], 0, "Invalid replication factor 0: the replication factor must be positive."),
        (
            [UsableBroker(0, fenced=True)],
            1,
            "All brokers are currently fenced, or have all their log directories cordoned.",
        ),
        ([], 1, "All brokers are currently fenced, or have all their log directories cordoned."),
        (
            [UsableBroker(0)],
            2,
            (
                "The target replication factor of 2 cannot be reached because only 1 broker(s) are registered "
                "or some brokers have all their log directories cordoned."
            ),
        ),
    ],
)
def test_what_cannot_be_placed(brokers: list[UsableBroker], factor: int, text: str) -> None:
    with pytest.raises(PlacementError) as raised:
        place_replicas(brokers, 1, factor, JavaRandom(1))
    assert str(raised.value) == text

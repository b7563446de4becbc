from typing import Any

import pytest

from groupcoord.partitioners.replica_placement import BrokerRack, PlacementError, assign_replicas, rack_alternated
from groupcoord.protocol.errors import ErrorCode
from tests.partitioners.known import KNOWN

CASES = [case for case in KNOWN["placement"] if case["kind"] == "admin-utils"]
CODES = {
    "InvalidPartitionsException": ErrorCode.INVALID_PARTITIONS,
    "InvalidReplicationFactorException": ErrorCode.INVALID_REPLICATION_FACTOR,
    "AdminOperationException": ErrorCode.UNKNOWN_SERVER_ERROR,
}


def placed(case: dict[str, Any]) -> dict[str, list[int]]:
    replicas = assign_replicas(
        [BrokerRack(broker["id"], broker.get("rack")) for broker in case["brokers"]],
        case["partitions"],
        case["replication_factor"],
        start=case["fixed_start_index"],
        shift=case["fixed_start_index"],
        first_partition=case["start_partition_id"],
    )
    return {str(partition): brokers for partition, brokers in replicas.items()}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_replicas_are_placed_as_by_kafka(case: dict[str, Any]) -> None:
    if "expected_error" in case:
        with pytest.raises(PlacementError) as raised:
            placed(case)
        assert str(raised.value) == case["expected_message"]
        assert raised.value.code is CODES[case["expected_error"]]
        return
    assert placed(case) == case["expected"]


def test_neighbours_are_in_different_racks() -> None:
    (case,) = [case for case in KNOWN["placement"] if case["kind"] == "rack-alternated"]
    assert rack_alternated({int(broker): rack for broker, rack in case["broker_racks"].items()}) == case["expected"]
    assert rack_alternated({}) == []


def test_start_and_shift_are_drawn_apart() -> None:
    brokers = [BrokerRack(number) for number in range(5)]
    assert assign_replicas(brokers, 1, 3, start=2, shift=1) == {0: [2, 4, 0]}

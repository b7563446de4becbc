"""Subscriptions and assignments, byte for byte as Kafka writes them."""

import json
from pathlib import Path
from typing import Any

import pytest

from groupcoord.assignors import read_assignment, read_subscription, write_assignment, write_subscription
from groupcoord.assignors.interface import Subscription
from groupcoord.protocol.errors import WireError

KNOWN = json.loads((Path(__file__).parent.parent / "partitioners" / "partitioner-placement-vectors.json").read_text())


def optional(text: str | None) -> bytes | None:
    return None if text is None else bytes.fromhex(text)


def subscription_of(case: dict[str, Any]) -> Subscription:
    return Subscription(
        topics=case["topics"],
        user_data=optional(case["user_data_hex"]),
        owned_partitions=[(topic, partition) for topic, partition in case["owned"]],
        generation_id=case["generation_id"] if case["generation_id"] >= 0 else None,
        rack_id=case["rack_id"],
    )


@pytest.mark.parametrize("case", KNOWN["wire_subscription"])
def test_a_subscription_is_written_as_by_kafka_and_read_back(case: dict[str, Any]) -> None:
    subscription = subscription_of(case)
    data = write_subscription(subscription, case["version"])
    assert data.hex() == case["hex"]
    read = read_subscription(data, "instance")
    assert (sorted(read.topics), read.user_data) == (sorted(subscription.topics), subscription.user_data)
    assert list(read.owned_partitions) == (sorted(subscription.owned_partitions) if case["version"] >= 1 else [])
    assert read.generation_id == (subscription.generation_id if case["version"] >= 2 else None)
    assert read.rack_id == ((subscription.rack_id or None) if case["version"] >= 3 else None)
    assert read.instance_id == "instance"


@pytest.mark.parametrize("case", KNOWN["wire_assignment"])
def test_an_assignment_is_written_as_by_kafka_and_read_back(case: dict[str, Any]) -> None:
    partitions = [(topic, partition) for topic, partition in case["partitions"]]
    data = write_assignment(partitions, optional(case["user_data_hex"]), case["version"])
    assert data.hex() == case["hex"]
    assert sorted(read_assignment(data)) == sorted(partitions)


def test_a_member_the_leader_forgot_gets_no_bytes_which_is_an_error() -> None:
    with pytest.raises(WireError):
        read_assignment(b"")

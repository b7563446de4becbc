import json
from pathlib import Path
from typing import Any

import pytest

from groupcoord.assignors.interface import Subscription
from groupcoord.assignors.java_order import (
    PartitionSet,
    java_sorted,
    members_in_order,
    partition_hash,
    topic_table,
)
from groupcoord.core.java_hash_order import computed_map_order, hash_order, string_hash

FILE = Path(__file__).parent.parent / "partitioners" / "partitioner-placement-vectors.json"
KNOWN: dict[str, Any] = json.loads(FILE.read_text())


@pytest.mark.parametrize("case", KNOWN["java_hashmap_order"])
def test_maps_iterate_as_in_java(case: dict[str, list[str]]) -> None:
    assert hash_order(case["inserted"]) == case["iteration"]
    assert computed_map_order(case["inserted"], string_hash) == case["iteration_if_filled_by_computeIfAbsent"]


@pytest.mark.parametrize("case", KNOWN["topic_partition_hash"])
def test_partitions_hash_as_in_java(case: dict[str, Any]) -> None:
    hashed = partition_hash(string_hash(case["topic"]), case["partition"]) & 0xFFFFFFFF
    assert hashed == case["hash"] & 0xFFFFFFFF


def test_names_sort_by_code_units() -> None:
    """U+1F600 is two units that are smaller than the one of U+FFFD."""
    assert java_sorted(["\ufffd", "\U0001f600", "a"]) == ["a", "\U0001f600", "\ufffd"]


def test_static_members_come_first() -> None:
    members = {
        "z": Subscription(instance_id="1"),
        "b": Subscription(),
        "a": Subscription(),
        "y": Subscription(instance_id="2"),
    }
    assert members_in_order(members) == ["z", "y", "a", "b"]


def test_only_topics_that_are_wanted_and_have_partitions_take_part() -> None:
    members = {"a": Subscription(topics=["orders", "gone", "empty"])}
    assert topic_table(members, {"empty": 0, "unwanted": 5, "orders": 2}) == {"orders": 2}


def test_the_first_of_a_set_depends_on_how_large_it_once_was() -> None:
    """A table of 16 has grown to 32 with the thirteenth partition, and stays so: what was first is not any more."""
    chosen = PartitionSet("orders")
    for partition in (7, 8):
        chosen.add(partition)
    before = chosen.first()
    for partition in range(100, 120):
        chosen.add(partition)
    for partition in range(100, 120):
        chosen.remove(partition)
    assert len(chosen) == 2
    assert {before, chosen.first()} <= {7, 8}
    with pytest.raises(KeyError):
        chosen.remove(9)

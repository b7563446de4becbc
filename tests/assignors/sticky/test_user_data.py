import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groupcoord.assignors.sticky.user_data import (
    UnreadableUserData,
    read_cooperative,
    read_sticky,
    write_cooperative,
    write_sticky,
)

FILE = Path(__file__).parents[2] / "partitioners" / "partitioner-placement-vectors.json"
KNOWN = json.loads(FILE.read_text())["sticky_user_data"]


@pytest.mark.parametrize("case", KNOWN)
def test_it_is_written_as_by_kafka(case: dict[str, Any]) -> None:
    partitions = [(topic, partition) for topic, partition in case["partitions"]]
    data = write_sticky(partitions, case["generation"])
    assert data.hex() == case["hex"]
    read = read_sticky(data)
    assert read.generation == case["generation"]
    assert sorted(read.partitions) == sorted(partitions)


def test_a_map_is_asked_for_the_topic_of_every_partition_and_may_grow_for_one_that_is_there() -> None:
    """After 49 topics the next question, whatever for, doubles the table; as a Kafka 4.3.1 client writes it."""
    topics = [f"t{number:02}" for number in range(1, 50)]
    once = [topic for topic, _ in read_sticky(write_sticky([(topic, 0) for topic in topics], None)).partitions]
    again = write_sticky([*[(topic, 0) for topic in topics], ("t49", 1)], None)
    assert once[:3] == ["t30", "t32", "t10"]
    assert [topic for topic, _ in read_sticky(again).partitions[:3]] == ["t10", "t12", "t11"]


def test_what_follows_is_ignored() -> None:
    data = write_sticky([("orders", 1)], 3)
    assert read_sticky(data + b"more") == read_sticky(data)
    assert read_sticky(data[:-1]) == ([("orders", 1)], None)  # too short for a generation


@pytest.mark.parametrize(
    "data",
    [
        "",  # no count
        "ffffffff",  # a negative count
        "00000001",  # no topic
        "00000001ffff",  # a negative length
        "000000010005616263",  # a topic beyond the end
        "00000001000161",  # no partitions
        "0000000100016100000002000000010000",  # more partitions than bytes
        "00000001000161ffffffff",
    ],
)
def test_what_cannot_be_read(data: str) -> None:
    with pytest.raises(UnreadableUserData):
        read_sticky(bytes.fromhex(data))


@given(st.binary(max_size=64))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    try:
        read_sticky(data)
    except UnreadableUserData:
        return
    assert len(data) >= 4


def test_the_cooperative_one_is_a_generation() -> None:
    assert write_cooperative(-1).hex() == "ffffffff"
    assert read_cooperative(write_cooperative(42) + b"more") == 42
    with pytest.raises(UnreadableUserData, match="3 bytes are no generation"):
        read_cooperative(b"123")

"""Against what real Java printed: see JavaTable.java."""

import json
import struct
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groupcoord.core.java_hash_order import HashMap, _cached_partition_for, absolute, partition_for, string_hash

TABLE: dict[str, Any] = json.loads(Path(__file__).with_name("java_table.json").read_text())
STAGES = {f"{stage['what']} {stage['puts'] or ''}".strip(): stage["order"] for stage in TABLE["stages"]}


def text_of(units: list[int]) -> str:
    return b"".join(unit.to_bytes(2, "big") for unit in units).decode("utf-16-be", "surrogatepass")


@pytest.mark.parametrize(("units", "expected"), [(units, hashed) for units, hashed, _ in TABLE["hashes"]])
def test_a_string_hashes_as_in_java(units: list[int], expected: int) -> None:
    assert string_hash(text_of(units)) == expected


@pytest.mark.slow
@given(st.text(st.characters(max_codepoint=127), max_size=200))
def test_short_names_and_long_ones_hash_alike(text: str) -> None:
    value = 0
    for unit in text.encode():
        value = 31 * value + unit
    assert string_hash(text) & 0xFFFFFFFF == value & 0xFFFFFFFF


@pytest.mark.parametrize(("units", "expected"), [(units, partition) for units, _, partition in TABLE["hashes"]])
def test_a_group_belongs_to_the_partition_that_kafka_says(units: list[int], expected: int) -> None:
    """Gotcha 47: the one hash that has no absolute value belongs to partition 0."""
    assert partition_for(text_of(units), 50) == expected


def test_the_only_integer_without_absolute_value_counts_as_zero() -> None:
    assert absolute(string_hash("polygenelubricants")) == 0
    assert absolute(-5) == absolute(5) == 5


def test_a_map_iterates_in_javas_order_while_it_grows_and_shrinks() -> None:
    ours: HashMap[int] = HashMap()
    keys = TABLE["keys"]
    for index, key in enumerate(keys):
        ours[key] = index
        if expected := STAGES.get(f"put {index + 1}"):
            assert ours.values() == expected
    for key in keys[::3]:
        ours.pop(key)
    assert ours.values() == STAGES["removed every third"]
    for index in range(396, -1, -6):
        ours[keys[index]] = index
    assert ours.values() == STAGES["put every sixth again, from the end"]
    for index, key in enumerate(keys):
        if index % 20 != 1 and key in ours:
            ours.pop(key)
    assert ours.values() == STAGES["kept every twentieth"]


def test_the_usual_assignors_come_in_javas_order() -> None:
    names: HashMap[int] = HashMap()
    for name in ("range", "roundrobin", "sticky", "cooperative-sticky"):
        names[name] = 1
    assert list(names) == TABLE["protocols"]


def test_a_value_that_is_replaced_keeps_its_place() -> None:
    ours: HashMap[int] = HashMap()
    ours["Aa"], ours["BB"] = 1, 2  # the same hash, so the same bucket
    ours["Aa"] = 3
    assert list(ours) == ["Aa", "BB"]
    assert ours.values() == [3, 2]
    assert ours.unordered_values() == [3, 2]


def test_a_key_that_is_missing() -> None:
    ours: HashMap[int] = HashMap()
    assert ours.get("nobody") is None
    with pytest.raises(KeyError):
        ours["nobody"]
    with pytest.raises(KeyError):
        ours.pop("nobody")


@pytest.mark.parametrize("length", [0, 1, 127, 128, 129, 249, 250, 1_000, 4_097])
@pytest.mark.parametrize("character", ["x", "é", "\ufffd", "\U0001f600"])
def test_names_of_any_length_are_hashed_as_java_does(length: int, character: str) -> None:
    """One unit after the other, as ``String.hashCode`` is defined."""
    text = ("a" + character * length)[:length]
    expected = 0
    for (unit,) in struct.iter_unpack(">H", text.encode("utf-16-be", "surrogatepass")):
        expected = (31 * expected + unit) & 0xFFFFFFFF
    assert string_hash(text) & 0xFFFFFFFF == expected


def test_long_names_are_not_kept() -> None:
    before = _cached_partition_for.cache_info().currsize
    for number in range(10):
        assert partition_for(f"{number}" * 250, 50) == absolute(string_hash(f"{number}" * 250)) % 50
    assert _cached_partition_for.cache_info().currsize == before
    assert partition_for("short and new", 50) == absolute(string_hash("short and new")) % 50
    assert _cached_partition_for.cache_info().currsize == before + 1

"""What the stories of transactions make of the bytes in ``__transaction_state``, and of what differs between servers."""

import struct

import pytest

from tests.conformance.normalise import Names, normalised
from tests.conformance.story import Story
from tests.conformance.transaction_log import shown_value
from tests.conformance.virtual import VirtualTarget

FLEXIBLE = (
    struct.pack(">hqhib", 1, 7, 3, 60_000, 1)
    + b"\x02\x02a\x03"  # one topic, called a, and two partitions of it
    + struct.pack(">iiBqq", 1, 0, 0, 2_000, 1_000)
    + b"\x02\x00\x08"
    + struct.pack(">q", 7)
    + b"\x02\x02\x00\x02"
)
OLD = struct.pack(">hqhibiqq", 0, 7, 0, 60_000, 0, -1, 1_000, -1)


def story() -> Story:
    told = Story("mine", VirtualTarget({}))
    told.names.step_starts_ms = [1_000, 2_000]
    return told


def test_a_value_is_shown_field_by_field_and_spelt() -> None:
    shown = shown_value(story(), FLEXIBLE)
    assert shown.pop("bytes") == (
        "0001 <producer id 1> 00030000ea600102026103000000010000000000 <time of step 2> <time of step 1> "
        "020008 <producer id 1> 02020002"
    )
    assert shown == {
        "version": 1,
        "producer_id": "<producer id 1>",
        "producer_epoch": 3,
        "transaction_timeout_ms": 60_000,
        "transaction_status": "Ongoing",
        "transaction_partitions": [{"topic": "a", "partition_ids": [1, 0]}],
        "transaction_last_update_timestamp_ms": "<time of step 2>",
        "transaction_start_timestamp_ms": "<time of step 1>",
        "previous_producer_id": "<producer id 1>",
        "client_transaction_version": 2,
    }


def test_a_value_of_before_kip_890() -> None:
    shown = shown_value(story(), OLD)
    assert shown["bytes"] == "0000 <producer id 1> 00000000ea6000ffffffff <time of step 1> ffffffffffffffff"
    assert (shown["version"], shown["transaction_status"], shown["transaction_partitions"]) == (0, "Empty", None)
    assert shown["transaction_start_timestamp_ms"] == -1


def test_bytes_that_no_field_accounts_for_are_shown() -> None:
    assert shown_value(story(), OLD + b"\x05")["trailing bytes"] == "05"


@pytest.mark.parametrize("field", ["producer_id", "v3_and_below_producer_id"])
def test_producer_ids_are_numbered_and_those_that_nobody_has_stay(field: str) -> None:
    known = Names()
    shown = [normalised({field: value}, known, "")[field] for value in (77, 5, 77, -1, 1 << 50)]
    assert shown == ["<producer id 1>", "<producer id 2>", "<producer id 1>", -1, 1 << 50]


def test_producer_ids_in_a_list_are_numbered() -> None:
    shown = normalised({"producer_id_filters": [77, -1, 77]}, Names(), "ListTransactions?")
    assert shown == {"producer_id_filters": ["<producer id 1>", -1, "<producer id 1>"]}


def test_the_producer_id_of_an_error_is_nobodys() -> None:
    unknown = {"error_code": 105, "transaction_state": "", "producer_id": 0}
    assert normalised(unknown, Names(), "DescribeTransactions/transaction_states") == unknown
    known = {"error_code": 0, "transaction_state": "Empty", "producer_id": 0}
    assert normalised(known, Names(), "DescribeTransactions/transaction_states")["producer_id"] == "<producer id 1>"


def test_transactions_of_other_stories_are_left_out() -> None:
    listed = [{"transactional_id": name} for name in ("theirs-x", "mine-b", "somebody", "mine-a")]
    names = Names(story="mine", stories=frozenset({"mine", "theirs"}))
    shown = normalised({"transaction_states": listed}, names, "ListTransactions")
    assert [item["transactional_id"] for item in shown["transaction_states"]] == ["mine-a", "mine-b"]

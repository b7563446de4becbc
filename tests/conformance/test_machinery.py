"""The stories' own machinery, without any server."""

import struct
import uuid
from typing import Any

import pytest

from groupcoord.protocol.apis import APIS
from tests.conformance import gotchas, settings
from tests.conformance.batches import THEN_MS, Rec, batch, raw_records, shown_batches, varint
from tests.conformance.compare import explain, recorded
from tests.conformance.embedded import subscription
from tests.conformance.kafka_format import Unreadable, format_of
from tests.conformance.normalise import Names, hash_bucket, in_hash_order, normalised
from tests.conformance.offsets_topic import CONSUMER_GROUP, in_comparable_order, partition_of, records_of
from tests.conformance.plain import text_of
from tests.conformance.record import KAFKA_VERSION, RECORDINGS
from tests.conformance.telling import all_tales
from tests.conformance.transcript import differences, from_text, to_text
from tests.protocol.kafkas_records import recorded as recorded_by_kafka

A, B = "6f1e8a4c-90b7-4e0d-8a53-0c8f0e2f7f01", "0b9c8a4c-90b7-4e0d-9a53-0c8f0e2f7f02"


def names(*starts: int, story: str = "mine") -> Names:
    return Names(story=story, stories=frozenset({"mine", "theirs"}), step_starts_ms=list(starts))


def test_member_ids_keep_their_prefix_and_get_a_number() -> None:
    known = names()
    assert normalised(f"a-{A}", known, "") == "a-<uuid 1>"
    assert normalised(f"a-{B}", known, "") == "a-<uuid 2>"
    assert normalised(f"a-{A}", known, "") == "a-<uuid 1>"
    assert normalised(f"-{uuid.uuid4()}", known, "") == "-<uuid 1>"


def test_member_ids_of_consumer_groups_get_a_number() -> None:
    known, made = names(), "gGlsyAqrTGWiMWv9Yye9Mw"
    assert normalised({"member_id": made}, known, "") == {"member_id": "<member id 1>"}
    assert normalised(f"Member {made} is not a member", known, "") == "Member <member id 1> is not a member"
    assert normalised({"member_id": "a"}, known, "") == {"member_id": "a"}


def test_hashes_of_topics_are_numbered_and_none_stays() -> None:
    known = names()
    shown = [normalised({"metadata_hash": value}, known, "")["metadata_hash"] for value in (77, -5, 77, 0)]
    assert shown == ["<metadata hash 1>", "<metadata hash 2>", "<metadata hash 1>", 0]


def test_times_become_the_step_they_fall_into() -> None:
    known = names(1000, 1010, 1020)
    shown = normalised({"timestamp": 1010, "commit_timestamp": 1009, "max_timestamp": 5}, known, "")
    assert shown == {"timestamp": "<time of step 2>", "commit_timestamp": "<time of step 1>", "max_timestamp": 5}


def test_an_expiry_is_a_distance_from_its_commit() -> None:
    shown = normalised({"commit_timestamp": 1000, "expire_timestamp": 1500}, names(1000), "")
    assert shown["expire_timestamp"] == "<commit + 500 ms>"


def test_topic_ids_are_called_after_their_topics() -> None:
    known = names()
    normalised({"name": "orders", "topic_id": A}, known, "")
    assert normalised({"topic_id": A}, known, "") == {"topic_id": "<id of topic orders>"}
    known.learn_topic(B, "orders")
    assert normalised({"topic_id": B}, known, "") == {"topic_id": "<id of topic orders #2>"}
    made_up = str(uuid.UUID(int=7))
    assert normalised({"topic_id": made_up}, known, "") == {"topic_id": made_up}


def test_members_are_sorted_and_their_hash_order_is_checked() -> None:
    ids = sorted((f"a-{A}", f"b-{B}"), key=hash_bucket)
    assert in_hash_order(ids)
    right = normalised({"members": [{"member_id": item} for item in ids]}, names(), "JoinGroup")
    wrong = normalised({"members": [{"member_id": item} for item in reversed(ids)]}, names(), "JoinGroup")
    assert [item["member_id"] for item in right["members"]] == ["a-<uuid 1>", "b-<uuid 1>"]
    assert wrong["members"][:-1] == right["members"]
    assert "oddities" in wrong["members"][-1]


def test_groups_of_other_stories_are_left_out() -> None:
    groups = [{"group_id": name} for name in ("theirs-x", "mine", "somebody", "mine-b")]
    shown = normalised({"groups": groups}, names(), "ListGroups")
    assert [item["group_id"] for item in shown["groups"]] == ["mine", "mine-b"]


def test_times_in_messages() -> None:
    start = 1_795_000_000_000
    shown = normalised(
        {"error_message": f"between {start + 5} and {start + 5 - 2**63 + 1}, not {THEN_MS}"}, names(start), ""
    )
    assert shown["error_message"] == f"between <a time near now> and <now - Long.MAX_VALUE>, not {THEN_MS}"


def test_long_runs_are_counted() -> None:
    assert normalised("x" * 500 + "y", names(), "") == "<500 times x>y"
    assert text_of(b"\x00" * 9 + b"a\x00") == "<9 zeros>a\\x00"


def test_batches_are_read_as_they_were_written() -> None:
    records = [Rec(b"one", key=b"k"), Rec(None, timestamp_ms=THEN_MS + 5, headers=(("h", None),))]
    for codec in range(5):
        batches = shown_batches(batch(records, codec=codec, producer=(9, 1, 7)))
        assert isinstance(batches, list)
        shown = batches[0]
        assert shown["crc"] == "right"
        assert shown["records"] == [[0, 0, "k", "one", []], [1, 5, None, None, [["h", None]]]]
        assert (shown["producer_id"], shown["producer_epoch"], shown["base_sequence"]) == (9, 1, 7)


def test_what_is_no_batch_is_shown_as_it_is() -> None:
    assert shown_batches(batch([b"x"], spoil_crc=True))[0]["crc"] == "wrong"  # type: ignore[index]
    assert shown_batches(b"abc") == [{"partial batch of bytes": 3}]
    assert isinstance(shown_batches(batch([b"x"], count=9)), str)


def test_varints() -> None:
    assert [varint(value).hex() for value in (0, -1, 1, 63, 64, -65)] == ["00", "01", "02", "7e", "8001", "8101"]


def test_offset_records_are_decoded() -> None:
    def text(value: str) -> bytes:
        return struct.pack(">h", len(value)) + value.encode()

    key = struct.pack(">h", 1) + text("g") + text("orders") + struct.pack(">i", 3)
    value = struct.pack(">hqi", 3, 42, 7) + text("meta") + struct.pack(">q", 99)
    data = batch([Rec(value, key=key), Rec(None, key=key), Rec(b"", key=struct.pack(">h", 2) + text("other"))])
    assert [item[0] for item in raw_records(data)] == [0, 1, 2]
    [first, tombstone] = records_of(data, {"g"})
    assert first["key"] == {"type": 1, "group": "g", "topic": "orders", "partition": 3}
    assert first["value"] == {"version": 3, "offset": 42, "leader_epoch": 7, "metadata": "meta", "commit_timestamp": 99}
    assert tombstone["value"] is None


def test_every_record_of_consumer_groups_is_decoded() -> None:
    kafkas = [record for record in recorded_by_kafka() if record.shown["key"]["type"] in CONSUMER_GROUP]
    assert {record.shown["key"]["type"] for record in kafkas} == set(CONSUMER_GROUP)
    for record in kafkas:
        group = record.shown["key"]["data"]["groupId"]
        [shown] = records_of(batch([Rec(record.value, key=record.key)]), {group})
        assert "trailing bytes" not in str(shown)
        assert shown["key"]["type"] == record.shown["key"]["type"]
        if record.value is None:
            assert shown["value"] is None
        else:
            for name, theirs in (("epoch", "epoch"), ("assignment_epoch", "assignmentEpoch"), ("state", "state")):
                if name in shown["value"]:
                    assert shown["value"][name] == record.shown["value"]["data"][theirs]


def test_records_of_members_are_sorted_only_where_an_id_is_random() -> None:
    def of(member_id: str, *, is_tombstone: bool = False) -> dict[str, Any]:
        return {
            "key": {"type": 7, "group": "g", "member_id": member_id},
            "value": None if is_tombstone else {"version": 0},
        }

    fixed = [of("b"), of("a")]
    assert in_comparable_order(fixed, names()) == fixed
    random = [of("b"), of(f"a-{A}"), of("b", is_tombstone=True), of("a")]
    assert in_comparable_order(random, names()) == [random[1], random[0], random[2], random[3]]


@pytest.mark.parametrize(("group", "partition"), [("g", 3), ("test", 48), ("my-group", 12), ("polygenelubricants", 0)])
def test_groups_live_where_kafka_puts_them(group: str, partition: int) -> None:
    assert partition_of(group) == partition


def test_a_subscription_has_the_fields_of_its_version() -> None:
    assert subscription("t", version=0) == b"\x00\x00\x00\x00\x00\x01\x00\x01t\xff\xff\xff\xff"
    assert subscription(version=3, rack="r", generation=5).endswith(b"\x00\x00\x00\x05\x00\x01r")


@pytest.mark.slow
def test_every_message_of_every_version_has_a_format() -> None:
    for api in APIS.values():
        for version in range(api.min_version, api.max_version + 1):
            for kind in ("request", "response"):
                assert format_of(api.key.name.lower(), version, kind) is not None


def test_unreadable_bytes_are_said_to_be_so() -> None:
    with pytest.raises(Unreadable):
        format_of("join_group", 9, "response").read(b"\x00", 0)


def test_a_transcript_comes_back_from_its_file() -> None:
    steps: list[dict[str, Any]] = [
        {"actor": "a", "does": "joins", "sends": {"x": 1}, "gets": [1, "ü"]},
        {"actor": "time", "does": "passes"},
    ]
    assert from_text(to_text({"story": "s"}, steps)) == steps


def test_differences_name_the_place() -> None:
    assert list(differences({"a": [1, {"b": 2}]}, {"a": [1, {"b": 3}]})) == ["a[1].b: expected 2, got 3"]
    assert list(differences([1], [1, 2])) == ["[1]: expected nothing, got 2"]
    assert list(differences({"a": 1}, {})) == ["a: expected 1, got no such field"]
    assert list(differences(0, False)) == [": expected 0, got false"]


def test_the_first_step_that_differs_is_explained() -> None:
    same = {"actor": "a", "does": "joins", "gets": 1}
    lines = explain(
        [same, {"actor": "b", "does": "syncs", "gets": 1}], [same, {"actor": "b", "does": "syncs", "gets": 2}]
    )
    assert lines[0] == "step 2: b syncs"
    assert lines[-1].strip() == "gets: expected 1, got 2"
    assert not explain([same], [same])
    assert explain([same, same], [same])[-1].strip() == "the story did not get here"


def test_every_gotcha_is_told_or_excused() -> None:
    told = {number for tale in all_tales() for number in tale.gotchas}
    assert told | set(gotchas.EXCUSED) == set(range(1, gotchas.COUNT + 1))
    assert not told & set(gotchas.EXCUSED)


@pytest.mark.slow
def test_every_story_is_recorded_whole() -> None:
    folder = RECORDINGS / KAFKA_VERSION
    tales = all_tales()
    assert {path.stem for path in folder.glob("*.json")} == {tale.name for tale in tales} | {"about"}
    for tale in tales:
        steps = recorded(folder, tale)
        assert steps, tale.name
        assert not [step["does"] for step in steps if step["actor"] == "story"], tale.name


def test_names_do_not_run_into_each_other() -> None:
    tales = all_tales()
    assert all("-" not in tale.name for tale in tales)
    assert {tale.settings for tale in tales if tale.settings not in settings.ALL} == set()

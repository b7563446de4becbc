import pytest

from groupcoord.assignors import write_assignment
from groupcoord.broker.cleaner import survivors
from groupcoord.offsets_log.compaction_preview import (
    CompactionPreview,
    LogSize,
    after_rows,
    before_rows,
    key_text,
    of_group,
    preview_compaction,
    short_value,
    strips,
    value_text,
)
from groupcoord.offsets_log.log_source import Batch, SourceError
from groupcoord.offsets_log.segment_dir_source import SegmentDirSource
from groupcoord.protocol.batches.record_batch import build_batch, read_header
from groupcoord.protocol.batches.records import Record
from groupcoord.protocol.coordinator_records.group_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    write_key,
    write_value,
)
from tests.offsets_log.recorded import KAFKA_FILES

NOW_MS = 1_800_000_000_000


def batches(version: str, partition: int) -> list[Batch]:
    return [each for each in SegmentDirSource(KAFKA_FILES / version).read(partition) if isinstance(each, Batch)]


def batch(*records: Record, segment: int = 0) -> Batch:
    data = build_batch(records, producer_id=3, producer_epoch=0, base_sequence=records[0].offset)
    return Batch(0, segment, read_header(data), data)


def test_of_each_key_the_last_record_is_left() -> None:
    outcome = preview_compaction(1, batches("4.3.1", 1), NOW_MS)
    assert outcome.after == survivors(outcome.before)
    assert outcome.size_before == LogSize(1952, 16, 13)
    assert outcome.size_after == LogSize(1672, 13, 13)


def test_what_was_aborted_goes() -> None:
    outcome = preview_compaction(2, batches("3.9.2", 2), NOW_MS)
    assert [record.offset for record in outcome.after] == [1, 2, 7, 8, 10]
    assert outcome.size_after.records == outcome.size_after.keys == 5


def test_segments_stay_segments_and_nothing_is_nothing() -> None:
    log = [batch(Record(0, 1, b"a", b"1")), batch(Record(1, 1, b"a", b"2"), segment=1)]
    outcome = preview_compaction(0, log, NOW_MS)
    assert [record.offset for record in outcome.after] == [1]
    nothing = preview_compaction(0, [], NOW_MS)
    assert (nothing.before, nothing.after, nothing.size_after) == ([], [], LogSize(0, 0, 0))


def test_sizes_add_up() -> None:
    assert LogSize(1, 2, 3).plus(LogSize(10, 20, 30)) == LogSize(11, 22, 33)


def test_records_that_are_none_are_told() -> None:
    broken = bytearray(batch(Record(0, 1, b"a", b"1")).data)
    broken[61] = 99
    with pytest.raises(SourceError, match=r"^__consumer_offsets-0 cannot be compacted: "):
        preview_compaction(0, [Batch(0, 0, read_header(broken), bytes(broken))], NOW_MS)


RECORDED_AT_MS = 1_795_287_200_000


def outcome(partition: int) -> CompactionPreview:
    found = SegmentDirSource(KAFKA_FILES / "4.3.1").read(partition)
    return preview_compaction(partition, [each for each in found if isinstance(each, Batch)], RECORDED_AT_MS)


def test_groups_of_the_new_protocol_have_keys_of_many_kinds() -> None:
    keys = [row[0] for row in before_rows(outcome(0).before)]
    member = "bvynfpUFQrOWjQP5wQeY/Q"
    assert keys == [
        "audit-2 ConsumerGroupMetadata",
        f"audit-2 ConsumerGroupMemberMetadata {member}",
        "audit-2 ConsumerGroupTargetAssignmentMetadata",
        f"audit-2 ConsumerGroupTargetAssignmentMember {member}",
        f"audit-2 ConsumerGroupCurrentMemberAssignment {member}",
        "audit-2 orders-0",
        "audit-2 orders-1",
    ]


def test_what_is_left_is_told_with_its_offset() -> None:
    rows = after_rows(outcome(0).after)
    assert rows[0] == ("3", "audit-2 ConsumerGroupTargetAssignmentMetadata", rows[0][2])
    assert rows[0][2].startswith("v0 assignmentEpoch=2 ")
    assert rows[1][1:] == ("audit-2 orders-0", "3 is the next offset to read")


def test_the_strips_follow_what_the_cleaner_left() -> None:
    done = outcome(2)
    assert strips(done.before, {record.offset for record in done.after}) == [("GG0101G011G", "··01··G0·1G")]


def test_records_of_one_group() -> None:
    assert {key_text(record) for record in of_group(outcome(1).before, "shipping")} == {
        "shipping",
        "shipping orders-0",
        "shipping orders-1",
    }


def test_what_cannot_be_read_is_said() -> None:
    strange = Record(0, 0, b"\x00\x63", b"v")
    assert key_text(strange) == "a key that cannot be read: 0063"
    assert short_value(strange) == value_text(strange) == "1 bytes that cannot be read"
    assert before_rows([strange, Record(1, 0, None, b"")])[1][0] == "a key that cannot be read: "
    group = write_key(GroupMetadataKey(group="g"))
    assert short_value(Record(0, 0, group, b"\x00\x63")) == "2 bytes that cannot be read"
    assert strips([strange], set()) == [("G", "·")]


@pytest.mark.parametrize(
    ("assignment", "text"),
    [
        (b"\xff", "gen 1, p: c 1 bytes"),
        (b"", "gen 1, p: c nothing"),
        (write_assignment([("a", 0), ("a", 2)]), "gen 1, p: c 0 2"),
        (write_assignment([("a", 0), ("b", 1), ("b", 2)]), "gen 1, p: c a 0, b 1 2"),
        (None, "gen 1, no members"),
    ],
)
def test_a_group_is_told_with_what_its_members_own(assignment: bytes | None, text: str) -> None:
    members = () if assignment is None else (member(assignment),)
    value = GroupMetadataValue(protocol_type="connect", generation=1, protocol="p", leader="m", members=members)
    record = Record(0, 0, write_key(GroupMetadataKey(group="g")), write_value(value, 3))
    assert short_value(record) == text


def member(assignment: bytes) -> MemberMetadata:
    return MemberMetadata(
        member_id="m", client_id="c", client_host="/h", session_timeout_ms=1, subscription=b"", assignment=assignment
    )

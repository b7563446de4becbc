from groupcoord.offsets_log.entries import (
    KIND_NAMES,
    MARKER,
    CoordinatorRecord,
    EntryFilter,
    LogEntry,
    ProducerIdAndEpoch,
    TransactionMarker,
    entries,
)
from groupcoord.offsets_log.log_source import Batch, UnreadableData
from groupcoord.offsets_log.segment_dir_source import SegmentDirSource
from groupcoord.protocol.batches.record_batch import build_batch, read_header
from groupcoord.protocol.batches.records import Record
from tests.offsets_log.recorded import KAFKA_FILES


def said(version: str, partition: int) -> list[LogEntry]:
    found: list[LogEntry] = []
    for batch in SegmentDirSource(KAFKA_FILES / version).read(partition):
        assert isinstance(batch, Batch)
        for entry in entries(batch):
            assert isinstance(entry, LogEntry)
            found.append(entry)
    return found


def of(*records: tuple[bytes | None, bytes | None], attributes: int = 0) -> list[LogEntry | UnreadableData]:
    data = build_batch(
        [Record(5 + index, 9, key, value) for index, (key, value) in enumerate(records)],
        attributes=attributes,
        producer_id=4 if attributes else -1,
        producer_epoch=2 if attributes else -1,
    )
    return list(entries(Batch(1, 0, read_header(data), data)))


def test_a_transaction_is_told_with_its_end() -> None:
    for version in ("4.3.1", "3.9.2"):
        told = [entry for entry in said(version, 2) if entry.transaction is not None]
        assert {entry.transaction for entry in told} == {ProducerIdAndEpoch(1, 0)}
        ends = [entry.what.how for entry in told if isinstance(entry.what, TransactionMarker)]
        assert ends == ["commit", "abort"]
        commits = [entry for entry in told if isinstance(entry.what, CoordinatorRecord)]
        assert [(entry.group, entry.topic) for entry in commits] == [("payments", "orders")] * 4
        assert {entry.kind for entry in told} == {"OffsetCommit", MARKER}


def test_groups_of_the_new_protocol_are_told() -> None:
    kinds = {entry.kind for entry in said("4.3.1", 0) if entry.group == "audit-2"}
    assert kinds == {
        "ConsumerGroupMetadata",
        "ConsumerGroupMemberMetadata",
        "ConsumerGroupTargetAssignmentMetadata",
        "ConsumerGroupTargetAssignmentMember",
        "ConsumerGroupCurrentMemberAssignment",
        "OffsetCommit",
    }
    assert kinds < set(KIND_NAMES)


def test_a_tombstone_has_a_key_and_no_value() -> None:
    *_, last = said("4.3.1", 2)
    assert isinstance(last.what, CoordinatorRecord)
    assert (last.kind, last.group, last.topic, last.what.value) == ("GroupMetadata", "gone", None, None)


def test_one_record_that_cannot_be_read_does_not_spoil_the_others() -> None:
    good = (b"\x00\x02\x00\x01g", None)
    found = of((b"\x03\xe7", b""), good, (b"\x00\x02\x00\x09g", None), (b"\x00\x02\x00\x01g", b"\x00\x63"), (None, b""))
    assert [isinstance(each, UnreadableData) for each in found] == [True, False, True, True, True]
    reasons = [each.reason for each in found if isinstance(each, UnreadableData)]
    assert [each.offset for each in found] == [5, 6, 7, 8, 9]
    assert all(reason.startswith("the record cannot be read: ") for reason in reasons)
    assert "there is no record type 999" in reasons[0]


def test_records_that_are_none_are_one_fault() -> None:
    data = bytearray(build_batch([Record(5, 9, b"k", b"v")]))
    data[61] = 99
    (fault,) = entries(Batch(1, 0, read_header(data), bytes(data)))
    assert isinstance(fault, UnreadableData)
    assert (fault.partition, fault.offset) == (1, 5)
    assert fault.reason.startswith("the records of the batch cannot be read: ")


def test_control_records_of_other_types_are_told_by_their_number() -> None:
    told, broken = of((b"\x00\x00\x00\x04", b"\x00\x00\x00\x00\x00\x03"), (b"\x00", b""), attributes=0x30)
    assert isinstance(told, LogEntry)
    assert told.what == TransactionMarker("control record of type 4", 3)
    assert (told.kind, told.group, told.topic) == (MARKER, None, None)
    assert isinstance(broken, UnreadableData)


def test_a_filter_lets_pass_what_is_wanted() -> None:
    told = [*said("4.3.1", 1), *said("4.3.1", 2)]

    def passed(wanted: EntryFilter) -> int:
        return sum(map(wanted.passes, told))

    assert passed(EntryFilter()) == len(told)
    assert passed(EntryFilter(groups=["billing"])) == 5
    assert passed(EntryFilter(groups=["billing", "simple"])) == 6
    assert passed(EntryFilter(kinds=[MARKER])) == 2
    assert passed(EntryFilter(groups=["billing"], kinds=["GroupMetadata"])) == 2
    assert passed(EntryFilter(topics=["orders"])) == sum(entry.kind == "OffsetCommit" for entry in told)
    assert passed(EntryFilter(topics=["refunds"])) == 0

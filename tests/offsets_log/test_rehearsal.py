import pytest

from groupcoord.broker.compaction import survivors
from groupcoord.offsets_log.folders import Folders
from groupcoord.offsets_log.rehearsal import Size, rehearse
from groupcoord.offsets_log.source import Batch, SourceError
from groupcoord.protocol.batches.record_batch import build_batch, read_header
from groupcoord.protocol.batches.records import Record
from tests.offsets_log.recorded import KAFKA_FILES

NOW_MS = 1_800_000_000_000


def batches(version: str, partition: int) -> list[Batch]:
    return [each for each in Folders(KAFKA_FILES / version).read(partition) if isinstance(each, Batch)]


def batch(*records: Record, segment: int = 0) -> Batch:
    data = build_batch(records, producer_id=3, producer_epoch=0, base_sequence=records[0].offset)
    return Batch(0, segment, read_header(data), data)


def test_of_each_key_the_last_record_is_left() -> None:
    outcome = rehearse(1, batches("4.3.1", 1), NOW_MS)
    assert outcome.after == survivors(outcome.before)
    assert outcome.size_before == Size(1952, 16, 13)
    assert outcome.size_after == Size(1672, 13, 13)


def test_what_was_aborted_goes() -> None:
    outcome = rehearse(2, batches("3.9.2", 2), NOW_MS)
    assert [record.offset for record in outcome.after] == [1, 2, 7, 8, 10]
    assert outcome.size_after.records == outcome.size_after.keys == 5


def test_segments_stay_segments_and_nothing_is_nothing() -> None:
    log = [batch(Record(0, 1, b"a", b"1")), batch(Record(1, 1, b"a", b"2"), segment=1)]
    outcome = rehearse(0, log, NOW_MS)
    assert [record.offset for record in outcome.after] == [1]
    nothing = rehearse(0, [], NOW_MS)
    assert (nothing.before, nothing.after, nothing.size_after) == ([], [], Size(0, 0, 0))


def test_sizes_add_up() -> None:
    assert Size(1, 2, 3).plus(Size(10, 20, 30)) == Size(11, 22, 33)


def test_records_that_are_none_are_told() -> None:
    broken = bytearray(batch(Record(0, 1, b"a", b"1")).data)
    broken[61] = 99
    with pytest.raises(SourceError, match=r"^__consumer_offsets-0 cannot be compacted: "):
        rehearse(0, [Batch(0, 0, read_header(broken), bytes(broken))], NOW_MS)

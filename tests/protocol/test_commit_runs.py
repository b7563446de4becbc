"""What goes where it belongs without becoming a record is what the records say, one by one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groupcoord.protocol.batches.compression import Compression
from groupcoord.protocol.batches.key_value_reader import read_key_values
from groupcoord.protocol.batches.record_batch import BatchError, build_batch, frame_batch, read_header
from groupcoord.protocol.batches.record_template_cache import PARTITION_BYTES
from groupcoord.protocol.batches.records import Header, InvalidRecordsError, Record
from groupcoord.protocol.batches.rewrite import without_records
from groupcoord.protocol.coordinator_records.commit_reader import is_plain_commit
from groupcoord.protocol.coordinator_records.commit_scan import ScanResult, batch_size, scan_offset_commits
from tests.protocol.hostile_batches import KEYS, VALUES, batches, hostile_batches

Step = tuple[bytes, int, bytes] | tuple[int, bytes | None, bytes | None]
PLACES = {key[:-PARTITION_BYTES] for key in KEYS[:6]}
TRANSACTION, MARKER = 0x10, 0x30


class Reader:
    """Notes what is put where, and what comes as a record, of which it takes so many."""

    def __init__(self, most: int = 1_000) -> None:
        self.steps: list[Step] = []
        self.most = most

    def put_at(self, place: bytes) -> "object":
        return lambda partition, value: self.steps.append((place, partition, value))

    def other(self, offset: int, key: bytes | None, value: bytes | None) -> bool:
        self.steps.append((offset, key, value))
        self.most -= 1
        return self.most > 0

    def read(self, data: bytes, places: set[bytes] = PLACES) -> ScanResult | str:
        try:
            return scan_offset_commits(data, 0, {place: self.put_at(place) for place in places}, self.other)  # type: ignore[misc]
        except InvalidRecordsError as problem:
            return str(problem)


def one_by_one(*found: bytes, places: set[bytes] = PLACES) -> list[Step]:
    steps: list[Step] = []
    for batch in found:
        for offset, key, value in read_key_values(batch).records:
            if key and value is not None and key[:-PARTITION_BYTES] in places and is_plain_commit(value):
                steps.append((key[:-4], int.from_bytes(key[-4:], signed=True), value))
            else:
                steps.append((offset, key, value))
    return steps


@pytest.mark.slow
@given(st.lists(batches(), min_size=1, max_size=4))
def test_each_record_goes_one_way_in_its_turn(found: list[bytes]) -> None:
    for places in (PLACES, set()):
        reader = Reader()
        run = reader.read(b"".join(found), places)
        assert reader.steps == one_by_one(*found, places=places)
        assert run == ScanResult(sum(map(len, found)), read_header(found[-1]).last_offset, len(reader.steps))


@pytest.mark.slow
@given(hostile_batches())
def test_hostile_bytes_fail_as_they_do_one_by_one(batch: bytes) -> None:
    reader = Reader()
    found = reader.read(batch)
    try:
        expected: list[Step] | str = one_by_one(batch)
    except InvalidRecordsError as problem:
        expected = str(problem)
    if isinstance(found, str):
        assert found == expected
    else:
        assert reader.steps == expected
        assert found == ScanResult(len(batch), read_header(batch).last_offset, len(reader.steps))


def test_it_ends_where_something_else_begins() -> None:
    plain = [build_batch([Record(n, 1, KEYS[0], VALUES[-1]), Record(n + 1, 1, KEYS[1], None)]) for n in (0, 2)]
    others = [
        build_batch([Record(4, 1, KEYS[0], VALUES[0])], attributes=TRANSACTION, producer_id=7),
        build_batch([Record(5, 1, KEYS[0], VALUES[0])], attributes=Compression.GZIP),
        build_batch([Record(6, 1, b"\0\0\0\1", b"")], attributes=MARKER, producer_id=7),
        plain[0][:16] + b"\1" + plain[0][17:],
        plain[0][:8] + b"\0\0\0\x30" + plain[0][12:],
        frame_batch(read_header(plain[0])._replace(record_count=-1), plain[0][61:]),
        plain[0][:-1],
        plain[0][:60],
        b"",
    ]
    size = sum(map(len, plain))
    for other in others:
        reader = Reader()
        assert reader.read(b"".join(plain) + other) == ScanResult(size, 3, 4)
        assert reader.steps == one_by_one(*plain)
        assert Reader().read(other) == ScanResult(0, -1, 0)


def test_a_commit_of_no_shape_finds_its_place_too() -> None:
    usual = next(value for value in VALUES if is_plain_commit(value))
    batch = build_batch([Record(0, 1, KEYS[0], usual, (Header("h", b"v"),))])
    reader = Reader()
    assert reader.read(batch) == ScanResult(len(batch), 0, 1)
    assert reader.steps == [(KEYS[0][:-PARTITION_BYTES], 0, usual)]


def test_records_that_are_announced_and_not_there_are_said() -> None:
    batch = build_batch([Record(0, 1, KEYS[0], VALUES[0])])
    lying = frame_batch(read_header(batch)._replace(record_count=2), batch[61:])
    assert Reader().read(lying) == "the records reach beyond the batch"


def test_what_compaction_has_emptied_is_a_batch() -> None:
    emptied = without_records(read_header(build_batch([Record(14, 1, b"k", b"v"), Record(19, 1, b"k", b"v")])))
    assert Reader().read(emptied) == ScanResult(len(emptied), 19, 0)


@pytest.mark.parametrize("key", [KEYS[-1], None], ids=["of a template", "of none"])
def test_enough_is_enough(key: bytes | None) -> None:
    batch = build_batch([Record(n, 1, key, b"v") for n in range(5)])
    reader = Reader(most=2)
    run = reader.read(batch)
    assert isinstance(run, ScanResult)
    assert (run.last_offset, run.records, len(reader.steps)) == (-1, 2, 2)


def test_the_size_of_a_batch_is_told_where_one_is() -> None:
    batch = build_batch([Record(3, 0, b"key", b"value")])
    assert batch_size(b"..." + batch + batch, 3) == len(batch)
    assert batch_size(batch[:-1], 0) == batch_size(batch[:60], 0) == batch_size(b"", 0) == 0
    for broken in (batch[:16] + b"\x01" + batch[17:], batch[:8] + b"\0\0\0\x30" + batch[12:]):
        with pytest.raises(BatchError, match="what begins with offset 3"):
            batch_size(broken, 0)

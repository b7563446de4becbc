"""Commits by the fast path are what the general readers read, whatever the bytes are."""

import uuid
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groupcoord.protocol.batches.compression import Compression
from groupcoord.protocol.batches.key_value_reader import PARTITION_BYTES, read_key_values
from groupcoord.protocol.batches.record_batch import BatchError, build_batch, empty_batch, frame_batch, read_header
from groupcoord.protocol.batches.records import Header, InvalidRecordsError, Record
from groupcoord.protocol.coordinator_records.commit_fast_path import (
    CommitReader,
    ScanResult,
    batch_size,
    group_and_topic,
    group_of,
    is_plain_commit,
    plain_commit,
    plain_key,
    scan_offset_commits,
)
from groupcoord.protocol.coordinator_records.group_records import (
    OFFSET_COMMIT_VALUE_VERSION,
    GroupMetadataKey,
    OffsetCommitKey,
    OffsetCommitValue,
    read_value,
    write_key,
    write_value,
)
from groupcoord.protocol.errors import WireError
from tests.protocol.hostile_batches import KEYS, VALUES, batches, hostile_batches


class Commit(NamedTuple):
    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp_ms: int
    expire_timestamp_ms: int | None
    topic_id: uuid.UUID | None


UNFAILING = [
    (b"\0\3", b"\0\0", b""),
    (b"\0\4", b"\1", b"\0"),
    (b"\0\4", b"\1", b"\1\0\x10" + bytes(16)),
]
KEY = OffsetCommitKey(group="", topic="", partition=0)
int64 = st.integers(-(1 << 63), (1 << 63) - 1)
ids = st.one_of(st.none(), st.uuids())


def slowly(data: bytes) -> Commit:
    value = read_value(KEY, data)
    assert isinstance(value, OffsetCommitValue)
    expires_ms = None if value.expire_timestamp_ms == -1 else value.expire_timestamp_ms
    return Commit(
        value.offset, value.leader_epoch, value.metadata, value.commit_timestamp_ms, expires_ms, value.topic_id
    )


def outcome(read: object, data: bytes) -> object:
    assert callable(read)
    try:
        return read(data)
    except WireError as problem:
        return str(problem)


@pytest.mark.slow
@given(int64, st.integers(-(1 << 31), (1 << 31) - 1), int64, st.uuids())
def test_a_plain_commit_has_the_bytes_that_the_general_writer_writes(
    offset: int, leader_epoch: int, at_ms: int, topic_id: uuid.UUID
) -> None:
    value = OffsetCommitValue(
        offset=offset, leader_epoch=leader_epoch, metadata="", commit_timestamp_ms=at_ms, topic_id=topic_id
    )
    written = plain_commit(offset, leader_epoch, at_ms, topic_id)
    assert written == write_value(value, OFFSET_COMMIT_VALUE_VERSION)
    assert is_plain_commit(written)


@pytest.mark.slow
@given(
    version=st.integers(0, 4),
    offset=int64,
    at_ms=int64,
    epoch=st.integers(-(1 << 31), (1 << 31) - 1),
    metadata=st.one_of(st.just(""), st.text(max_size=130)),
    topic_id=ids,
    behind=st.sampled_from([b"", b"\0", b"more"]),
)
def test_values_are_what_they_are(
    version: int, offset: int, at_ms: int, epoch: int, metadata: str, topic_id: uuid.UUID | None, behind: bytes
) -> None:
    value = OffsetCommitValue(
        offset=offset,
        leader_epoch=epoch,
        metadata=metadata,
        commit_timestamp_ms=at_ms,
        expire_timestamp_ms=at_ms,
        topic_id=topic_id,
    )
    data = write_value(value, version) + behind
    assert CommitReader(Commit).read(data) == slowly(data)


@pytest.mark.slow
@given(
    data=st.one_of(
        st.binary(max_size=50),
        st.builds(bytes.__add__, st.sampled_from([b"\0\3", b"\0\4"]), st.binary(max_size=60)),
        st.builds(
            lambda offset, size, rest: b"\0\4" + offset.to_bytes(12) + bytes([size]) + rest,
            st.integers(0, 1 << 90),
            st.integers(0, 200),
            st.one_of(
                st.binary(max_size=60), st.builds(lambda id_: bytes(8) + b"\1\0\x10" + id_, st.binary(max_size=16))
            ),
        ),
    )
)
def test_whatever_the_bytes_are(data: bytes) -> None:
    assert outcome(CommitReader(Commit).read, data) == outcome(slowly, data)
    if is_plain_commit(data):
        assert slowly(data).metadata == ""


@pytest.mark.slow
@given(
    version=st.sampled_from([b"\0\3", b"\0\4", b"\0\1"]),
    numbers=st.binary(min_size=12, max_size=12),
    middle=st.binary(min_size=8, max_size=8),
    length=st.sampled_from([b"\0\0", b"\1", b"\2", b"\0\1"]),
    behind=st.sampled_from(
        [b"", b"\0", b"\1", b"\1\0\x10" + bytes(16), b"\1\1\x10" + bytes(16), b"\2\0\x10" + bytes(16)]
    ),
)
def test_what_cannot_fail_does_not(version: bytes, numbers: bytes, length: bytes, middle: bytes, behind: bytes) -> None:
    data = version + numbers + length + middle + behind
    assert is_plain_commit(data) == ((version, length, behind) in UNFAILING)
    if is_plain_commit(data):
        read = slowly(data)
        assert (read.metadata, read.expire_timestamp_ms) == ("", None)


def test_an_id_is_made_once() -> None:
    read = CommitReader(Commit).read
    values = [
        OffsetCommitValue(offset=1, metadata=metadata, commit_timestamp_ms=1, topic_id=uuid.UUID(int=7))
        for metadata in ("", "", "m", "m")
    ]
    first, *others = (read(write_value(value, 4)).topic_id for value in values)
    assert all(other is first for other in others)
    none = OffsetCommitValue(offset=1, metadata="", commit_timestamp_ms=1)
    tagged = write_value(none, 4)[:-1] + b"\1\0\x10" + bytes(16)
    assert read(tagged).topic_id is None


@pytest.mark.slow
@given(group=st.text(max_size=30), topic=st.text(max_size=30), partition=st.integers(0, 1 << 30))
def test_keys_say_whose_they_are(group: str, topic: str, partition: int) -> None:
    key = write_key(OffsetCommitKey(group=group, topic=topic, partition=partition))
    assert group_and_topic(key[:-PARTITION_BYTES]) == (group, topic)
    assert group_of(key) is None
    key = write_key(GroupMetadataKey(group=group))
    assert group_of(key) == group
    assert group_and_topic(key[:-PARTITION_BYTES]) is None


@pytest.mark.parametrize(
    "key", [b"", b"\0\1", b"\0\1\0\1g\0", b"\0\1\0\1g\0\1", b"\0\0\0\1g\0\1t", b"\0\1\0\1g\0\1tt", b"\0\1\0\1\xff\0\1t"]
)
def test_a_key_that_is_not_as_kafka_writes_it_is_left_to_others(key: bytes) -> None:
    assert group_and_topic(key) is None
    assert group_of(b"\0\2" + key[2:] + b"g") is None


def test_a_group_that_is_no_text_is_left_to_others() -> None:
    assert group_of(b"\0\2\0\1\xff") is None


def test_a_value_may_be_as_long_as_the_usual_one_and_not_be_it() -> None:
    usual = OffsetCommitValue(offset=1, metadata="", commit_timestamp_ms=1, topic_id=uuid.UUID(int=7))
    other = OffsetCommitValue(offset=1, metadata="m" * 18, commit_timestamp_ms=1)
    assert len(write_value(usual, 4)) == len(write_value(other, 4))
    assert CommitReader(Commit).read(write_value(other, 4)) == slowly(write_value(other, 4))


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
    emptied = empty_batch(read_header(build_batch([Record(14, 1, b"k", b"v"), Record(19, 1, b"k", b"v")])))
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


@pytest.mark.parametrize("characters", [1, 249, 250, 1_000])
def test_the_key_of_a_commit_is_that_of_the_general_writer_however_long_the_names_are(characters: int) -> None:
    for group, topic in (("é" * characters, "orders"), ("app", "o" * characters)):
        key = OffsetCommitKey(group=group, topic=topic, partition=5)
        assert plain_key(group, topic) + bytes((0, 0, 0, 5)) == write_key(key)

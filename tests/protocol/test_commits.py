"""Commits read by the million are those that are read one by one."""

import uuid
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groupcoord.protocol.batches.record_template_cache import PARTITION_BYTES
from groupcoord.protocol.coordinator_records.commit_reader import (
    CommitReader,
    group_and_topic,
    group_of,
    is_plain_commit,
)
from groupcoord.protocol.coordinator_records.typed import (
    GroupMetadataKey,
    OffsetCommitKey,
    OffsetCommitValue,
    read_value,
    write_key,
    write_value,
)
from groupcoord.protocol.errors import WireError


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

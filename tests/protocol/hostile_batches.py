"""Batches of ``__consumer_offsets`` as they are and as they should not be: a log that came from elsewhere may hold anything."""

import uuid

from hypothesis import strategies as st

from groupcoord.protocol.batches.record_batch import HEADER_BYTES, build_batch, frame_batch, read_header
from groupcoord.protocol.batches.records import Header, Record
from groupcoord.protocol.coordinator_records.group_records import (
    GroupMetadataKey,
    OffsetCommitKey,
    OffsetCommitValue,
    write_key,
    write_value,
)

KEYS = [
    *(
        write_key(OffsetCommitKey(group=group, topic=topic, partition=partition))
        for group, topic in (("app", "orders"), ("app", "clicks"), ("other", "orders"))
        for partition in (0, 1, -1)
    ),
    write_key(GroupMetadataKey(group="app")),
    b"\0\0" + write_key(OffsetCommitKey(group="app", topic="orders", partition=0))[2:],
    b"\0\x07whatever",
]
"""Of few groups and topics, so that most come again; one in an old form, and one of another kind."""

VALUES = [
    write_value(OffsetCommitValue(offset=1 << 40, metadata=metadata, commit_timestamp_ms=7, topic_id=topic_id), version)
    for version in (0, 1, 3, 4)
    for metadata in ("", "m")
    for topic_id in (None, uuid.UUID(int=7))
]

_keys = st.one_of(*[st.sampled_from(KEYS)] * 8, st.none(), st.binary(max_size=6))
_values = st.one_of(*[st.sampled_from(VALUES)] * 8, st.none(), st.none(), st.binary(max_size=50))
_headers = st.sampled_from([(), (), (), (Header("h", None),)])
_records = st.lists(st.tuples(st.integers(0, 200), _keys, _values, _headers), min_size=1, max_size=8)


@st.composite
def batches(draw: st.DrawFn, base_offset: int = 5) -> bytes:
    """A plain batch as it should be."""
    written = [
        Record(base_offset + index, 1_000 + at, key, value, headers)
        for index, (at, key, value, headers) in enumerate(draw(_records))
    ]
    return build_batch(written)


@st.composite
def hostile_batches(draw: st.DrawFn, base_offset: int = 5) -> bytes:
    """One that is broken somewhere in its records, as a rule, but has a checksum."""
    batch = draw(batches(base_offset))
    header = read_header(batch)
    body = bytearray(batch[HEADER_BYTES:])
    for _ in range(draw(st.integers(0, 3))):
        place = draw(st.integers(0, len(body)))
        body[place : place + draw(st.integers(0, 2))] = draw(st.binary(max_size=2))
    count = header.record_count + draw(st.sampled_from([0, 0, 0, 1, -1]))
    return frame_batch(header._replace(record_count=count), bytes(body))

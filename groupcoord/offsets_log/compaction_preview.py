"""Previews the compaction of ``__consumer_offsets``: runs the log cleaner on a copy in memory, and formats tables of it."""

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from groupcoord.broker.cleaner import clean, cleanable, is_tombstone
from groupcoord.broker.leader_epoch_cache import LeaderEpochCache
from groupcoord.broker.log_segment import LogSegment
from groupcoord.broker.partition_log import PartitionLog
from groupcoord.broker.producer_state_manager import ProducerStateManager
from groupcoord.broker.storage_backend import IN_MEMORY_LOG_BACKEND, RecoveredLog
from groupcoord.broker.topic_config import LogConfig
from groupcoord.broker.topic_names import CONSUMER_OFFSETS
from groupcoord.core.grouping import grouped
from groupcoord.offsets_log.log_source import Batch, SourceError
from groupcoord.protocol.batches.record_batch import BatchError, records_in
from groupcoord.protocol.batches.records import InvalidRecordsError, Record
from groupcoord.protocol.consumer_protocol import read_assignment
from groupcoord.protocol.coordinator_records.record_formatting import (
    RecordError,
    RecordKey,
    RecordValue,
    group_of,
    parse_key,
    parse_value,
)
from groupcoord.protocol.coordinator_records.record_formatting import value_text as whole_value
from groupcoord.protocol.errors import WireError

OFFSETS_SEGMENT_BYTES = 104_857_600
"""Kafka's default of offsets.topic.segment.bytes."""


class LogSize(NamedTuple):
    """The size of a log; transaction markers do not count as records."""

    bytes: int
    records: int
    keys: int

    def plus(self, other: "LogSize") -> "LogSize":
        """The sum of both."""
        return LogSize(self.bytes + other.bytes, self.records + other.records, self.keys + other.keys)


class CompactionPreview(NamedTuple):
    """The records and the size of a partition before and after compaction."""

    partition: int
    before: list[Record]
    after: list[Record]
    size_before: LogSize
    size_after: LogSize


def preview_compaction(partition: int, batches: Iterable[Batch], now_ms: int) -> CompactionPreview:
    """Compact all ``batches``, including those of the active segment.

    As in Kafka, tombstones stay until delete.retention.ms (a day) after their first cleaning, and nothing after the first
    record of an open transaction is compacted. Raises SourceError for unreadable records.
    """
    try:
        log = _log(partition, batches, now_ms)
        before = _records(log)
        size_before = _size(log, before)
        log.roll(now_ms)
        clean(log, cleanable(log, now_ms), now_ms)
        after = _records(log)
    except (BatchError, InvalidRecordsError) as problem:
        raise SourceError(f"{_name(partition)} cannot be compacted: {problem}") from problem
    return CompactionPreview(partition, before, after, size_before, _size(log, after))


def _name(partition: int) -> str:
    return f"{CONSUMER_OFFSETS}-{partition}"


def _log(partition: int, batches: Iterable[Batch], now_ms: int) -> PartitionLog:
    name = _name(partition)
    segments: list[LogSegment] = []
    producers, end = ProducerStateManager(name), 0
    for batch in batches:
        header = batch.header
        if not segments or segments[-1].base_offset != batch.segment:
            segments.append(LogSegment(batch.segment, now_ms))
        segments[-1].append(batch.data, header, now_ms)
        end = header.last_offset + 1
        aborted = producers.replay(header, batch.data)
        if aborted is not None:
            segments[-1].aborted.append(aborted)
    start = segments[0].base_offset if segments else 0
    settings = LogConfig(cleanup_policy=frozenset({"compact"}), segment_bytes=OFFSETS_SEGMENT_BYTES)
    kept = RecoveredLog(IN_MEMORY_LOG_BACKEND, [*segments], start, end, producers, LeaderEpochCache(), 0, 0)
    return PartitionLog.recovered(settings, name, kept)


def _records(log: PartitionLog) -> list[Record]:
    return [record for segment in log.segments for record in records_in(segment.copy(0, segment.size))]


def _size(log: PartitionLog, records: list[Record]) -> LogSize:
    return LogSize(log.size, len(records), len({record.key for record in records}))


GONE = "·"
LISTED = 12
"""The most values of a key that are listed."""
STRIP = 70
"""The number of records in a line of ``strips``."""

_COMMITS = {"OffsetCommit", "LegacyOffsetCommit"}


def of_group(records: Sequence[Record], group: str) -> list[Record]:
    """The ``records`` whose key belongs to ``group``."""
    return [record for record in records if (key := _key(record)) is not None and group_of(key) == group]


def before_rows(records: Sequence[Record]) -> list[tuple[str, str, list[str]]]:
    """Each key with its number of records and all its values, oldest first, in one line or one line each."""
    by_key = grouped((record.key, record) for record in records)
    rows = []
    for same in sorted(by_key.values(), key=_order):
        values = [short_value(record) for record in same]
        lines = [" → ".join(_ends(values))] if _is_commit(_key(same[0])) else _ends(values)
        rows.append((key_text(same[0]), str(len(same)), lines))
    return rows


def after_rows(kept: Sequence[Record]) -> list[tuple[str, str, str]]:
    """The offset, key and value of each remaining record."""
    return [(str(record.offset), key_text(record), value_text(record)) for record in kept]


def strips(records: Sequence[Record], kept: Collection[int]) -> list[tuple[str, str]]:
    """The log before and after compaction, in pairs of lines with one character per record; ``kept`` are the remaining offsets.

    The character is G for a group, the last digit of the partition number for a commit, and a dot for a removed record.
    """
    lines = []
    for start in range(0, len(records), STRIP):
        part = records[start : start + STRIP]
        letters = [_letter(record) for record in part]
        left = [letter if record.offset in kept else GONE for record, letter in zip(part, letters, strict=True)]
        lines.append(("".join(letters), "".join(left)))
    return lines


def key_text(record: Record) -> str:
    """The key as text."""
    key = _key(record)
    if key is None:
        return f"a key that cannot be read: {(record.key or b'').hex()}"
    if _is_commit(key):
        return f"{group_of(key)} {key.fields['topic']}-{key.fields['partition']}"
    if key.record_type.name == "GroupMetadata":
        return str(group_of(key))
    others = [str(value) for name, value in key.fields.items() if name not in {"group", "groupId"}]
    return " ".join([str(group_of(key)), key.record_type.name, *others])


def value_text(record: Record) -> str:
    """The whole value as text."""
    value = _value(record)
    if value is not None and _is_commit(_key(record)):
        metadata = value.fields["metadata"]
        said = f", with metadata {metadata!r}" if metadata else ""
        return f"{value.fields['offset']} is the next offset to read{said}"
    return short_value(record)


def short_value(record: Record) -> str:
    """The value as short text."""
    if is_tombstone(record):
        return "tombstone"
    value = _value(record)
    if value is None:
        return f"{len(record.value or b'')} bytes that cannot be read"
    if _is_commit(_key(record)):
        return str(value.fields["offset"])
    if value.record_type.name != "GroupMetadata":
        return whole_value(value)
    members = value.fields["members"]
    if not members:
        return f"gen {value.fields['generation']}, no members"
    shares = "; ".join(f"{member['clientId']} {_owned(member['assignment'])}" for member in members)
    return f"gen {value.fields['generation']}, {value.fields['protocol']}: {shares}"


def _owned(assignment: bytes) -> str:
    """The partitions in an assignment, whose bytes are opaque to the coordinator."""
    if not assignment:
        return "nothing"
    try:
        topics = read_assignment(assignment).assigned_partitions
    except WireError:
        return f"{len(assignment)} bytes"
    numbers = [" ".join(map(str, topic.partitions)) for topic in topics]
    if len(topics) == 1:
        return numbers[0]  # a single topic is not named in every row
    return ", ".join(f"{topic.topic} {owned}" for topic, owned in zip(topics, numbers, strict=True)) or "nothing"


def _ends(values: list[str]) -> list[str]:
    """``values``, or only the first and last ones if there are too many for a line."""
    return values if len(values) <= LISTED else [*values[: LISTED // 2], "…", *values[-LISTED // 2 :]]


def _is_commit(key: RecordKey | None) -> bool:
    return key is not None and key.record_type.name in _COMMITS


def _key(record: Record) -> RecordKey | None:
    try:
        return parse_key(record.key)
    except RecordError:
        return None


def _value(record: Record) -> RecordValue | None:
    key = _key(record)
    try:
        return None if key is None else parse_value(key.record_type, record.value)
    except RecordError:
        return None


def _letter(record: Record) -> str:
    key = _key(record)
    return str(key.fields["partition"])[-1] if key is not None and _is_commit(key) else "G"


def _order(records: Sequence[Record]) -> tuple[str, bool, str, int]:
    """The sort key: by group, the group's own records first, then its commits by topic and partition."""
    key = _key(records[0])
    if key is None:
        return ("", False, "", 0)
    if _is_commit(key):
        return (str(group_of(key)), True, key.fields["topic"], key.fields["partition"])
    return (str(group_of(key)), False, "", key.record_type.number)

"""What ``__consumer_offsets`` holds of a group, before and after compaction."""

from collections.abc import Sequence

from rich import box
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from groupcoord.broker.compaction import is_tombstone, survivors
from groupcoord.protocol.embedded import read_assignment
from groupcoord.protocol.offsets_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
    read_key,
    read_value,
)
from groupcoord.protocol.records import Record

GONE = "·"
LISTED = 12
"""So many values of a commit are listed, at most."""
STRIP = 70
"""So many records stand in one line of ``strips``."""


def of_group(records: Sequence[Record], group: str) -> list[Record]:
    """Those of ``records`` whose key is about ``group``."""
    return [record for record in records if getattr(_key(record), "group", None) == group]


def before(records: Sequence[Record]) -> RenderableType:
    """The whole log: each key with all its values, oldest first."""
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1), pad_edge=False, show_edge=False)
    table.add_column("key", no_wrap=True)
    table.add_column("records", justify="right")
    table.add_column("values, oldest first", overflow="fold")
    by_key: dict[bytes, list[Record]] = {}
    for record in records:
        by_key.setdefault(record.key or b"", []).append(record)
    for same in sorted(by_key.values(), key=_order):
        key = _key(same[0])
        values = [short_value(record) for record in same]
        lines = "\n".join(values) if isinstance(key, GroupMetadataKey) else " → ".join(_ends(values))
        table.add_row(key_text(same[0]), str(len(same)), lines)
    return table


def after(records: Sequence[Record]) -> RenderableType:
    """What compaction leaves of the log, with the offsets of ``__consumer_offsets``."""
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1), pad_edge=False, show_edge=False)
    table.add_column("at offset", justify="right")
    table.add_column("key", no_wrap=True)
    table.add_column("value", overflow="fold")
    for record in survivors(records):
        table.add_row(str(record.offset), key_text(record), value_text(record))
    return table


def strips(records: Sequence[Record]) -> RenderableType:
    """The log before and after compaction, record below record, each one character.

    That is G for the group, the partition's number for a commit, and a dot for what is gone.
    """
    kept = {record.offset for record in survivors(records)}
    table = Table.grid(padding=(0, 2))
    for start in range(0, len(records), STRIP):
        part = records[start : start + STRIP]
        table.add_row("before", Text("".join(map(_letter, part))))
        left = (Text(_letter(r), "bold") if r.offset in kept else Text(GONE, "dim") for r in part)
        table.add_row("after", Text().join(left))
    return table


def key_text(record: Record) -> str:
    """The key, in words."""
    key = _key(record)
    if isinstance(key, OffsetCommitKey):
        return f"{key.group} {key.topic}-{key.partition}"
    return f"{key.group}" if isinstance(key, GroupMetadataKey) else str(key)


def value_text(record: Record) -> str:
    """The whole value, in words."""
    value = _value(record)
    if isinstance(value, OffsetCommitValue):
        metadata = f", with metadata {value.metadata!r}" if value.metadata else ""
        return f"{value.offset} is the next offset to read{metadata}"
    return short_value(record)


def short_value(record: Record) -> str:
    """The value, in few words."""
    if is_tombstone(record):
        return "tombstone"
    value = _value(record)
    if isinstance(value, OffsetCommitValue):
        return str(value.offset)
    if not isinstance(value, GroupMetadataValue):
        return f"{len(record.value or b'')} bytes of another kind of group"
    if not value.members:
        return f"gen {value.generation}, no members"
    shares = "; ".join(f"{member.client_id} {_owned(member.assignment)}" for member in value.members)
    return f"gen {value.generation}, {value.protocol}: {shares}"


def _owned(assignment: bytes) -> str:
    """The partitions in an assignment, which the coordinator stores without looking into it."""
    if not assignment:
        return "nothing"
    topics = read_assignment(assignment).assigned_partitions
    numbers = [" ".join(map(str, topic.partitions)) for topic in topics]
    if len(topics) == 1:
        return numbers[0]  # which topic it is need not be said again and again
    return ", ".join(f"{topic.topic} {owned}" for topic, owned in zip(topics, numbers, strict=True)) or "nothing"


def _ends(values: list[str]) -> list[str]:
    """``values``, or their ends if there are too many for a line."""
    return values if len(values) <= LISTED else [*values[: LISTED // 2], "…", *values[-LISTED // 2 :]]


def _key(record: Record) -> object:
    return read_key(record.key) if record.key is not None else None


def _value(record: Record) -> object:
    key = _key(record)
    return read_value(key, record.value) if isinstance(key, OffsetCommitKey | GroupMetadataKey) else None


def _letter(record: Record) -> str:
    key = _key(record)
    return str(key.partition) if isinstance(key, OffsetCommitKey) else "G"


def _order(records: Sequence[Record]) -> tuple[bool, str, int]:
    """The group first, then its commits by topic and partition."""
    key = _key(records[0])
    if isinstance(key, OffsetCommitKey):
        return (True, key.topic, key.partition)
    return (False, "", 0)

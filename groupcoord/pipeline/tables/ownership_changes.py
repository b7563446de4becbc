"""Finds every change of a partition's owner (member). Vectorised with numpy: compares the owner of each partition in a
generation with its previous owner, many records at a time.

The record of a generation has the complete assignment, so only the last owner of each partition of the current group is kept in
memory, and the change by which it became the owner.

A cooperative rebalance has generations in which some partitions have no owner (KIP-429); so the previous owner is the last
member that had the partition, even if that was several generations ago. The column ``moved`` treats a static member that
rejoins with a new member id as the same owner (KIP-345).
"""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext
from pyspark.sql import DataFrame

from groupcoord.pipeline.arrow_columns import TIMESTAMP, arrow_schema
from groupcoord.pipeline.parquet_writer import parquet_writer
from groupcoord.pipeline.schemas import OWNERSHIP, TableSchema, table_schema
from groupcoord.pipeline.spark_session import map_in_arrow

PERSON = ("member_id", "client_id", "who")


@dataclass(frozen=True)
class AssignmentArrays:
    """The assignments in records of generations, flattened into arrays: of members, of their topics, and of the partitions of
    these.

    Records are numbered from 0 on. Members are in the order of records, and within a record in the order of member ids.
    """

    people: Any
    """A record batch of the members, with the columns PERSON."""
    record: Any
    """For each member, the number of its record."""
    topics: Any
    """An Arrow array of topics: one element for each topic of each member."""
    person: Any
    """For each element of ``topics``, its member, as an index into ``people``."""
    partitions: Any
    """The partitions of all elements of ``topics``."""
    topic: Any
    """For each of ``partitions``, its topic, as an index into ``topics``."""


def assignment_arrays(members: Any, assigned: Any) -> AssignmentArrays:
    """Flatten ``members``, an array with a list of members for each record, and ``assigned``, with a list of their
    assignments."""
    people, record = _items(members)
    order = pa.array(np.lexsort((_ranks(people.field("member_id")), record)))
    # The order of the records stays as it is, so ``record`` does, too.
    mentions, person = _items(assigned.flatten().take(order))
    partitions, topic = _items(mentions.field("partitions"))
    return AssignmentArrays(
        people=pa.record_batch({name: people.field(name).take(order) for name in PERSON}),
        record=record,
        topics=mentions.field("topic"),
        person=person,
        partitions=partitions.to_numpy(),
        topic=topic,
    )


def pieces(batch: Any, at_once: int) -> Iterator[Any]:
    """Slices of ``batch`` whose assignments have at most ``at_once`` partitions, or that are a single record."""
    ends = np.cumsum(_sizes(batch.column("assigned")))
    first = 0
    while first < len(batch):
        before = ends[first - 1] if first else 0
        end = max(first + 1, int(np.searchsorted(ends, before + at_once, "right")))
        yield batch.slice(first, end - first)
        first = end


def codes(values: Any) -> tuple[Any, Any]:
    """Dictionary-encode ``values``: a number from 0 on for each value, and the distinct values."""
    encoded = pc.dictionary_encode(values, null_encoding="encode")
    return encoded.indices.to_numpy(), encoded.dictionary


def _sizes(assigned: Any) -> Any:
    """The number of partitions that are assigned in each record."""
    of_members, record = _items(assigned)
    mentions, person = _items(of_members)
    return np.bincount(record[person], _lengths(mentions.field("partitions")), len(assigned)).astype(np.int64)


def _items(lists: Any) -> tuple[Any, Any]:
    """The items of all ``lists``, and for each item the index of its list. A null counts as an empty list."""
    return lists.flatten(), np.repeat(np.arange(len(lists)), _lengths(lists))


def _lengths(lists: Any) -> Any:
    return pc.list_value_length(lists).fill_null(0).to_numpy()


def _ranks(texts: Any) -> Any:
    """The rank of each of ``texts`` in sorted order; equal texts have equal ranks. The byte order of UTF-8 is that of code
    points."""
    numbers, different = codes(texts)
    ranks = np.empty(len(different), np.int64)
    ranks[pc.array_sort_indices(different).to_numpy()] = np.arange(len(different))
    return ranks[numbers]


IDENTITY = "if(m.instance_id is null, concat('m:', m.member_id), concat('i:', m.instance_id))"
"""SQL: the identity of member ``m``, which a static member keeps when its member id changes."""
IN_GROUP = "over (partition by `group` order by log_offset)"
"""SQL: the window over all records of a group, in order."""


def compare_assignments(generations: DataFrame, ownership_files: tuple[Path, str] | None = None) -> DataFrame:
    """ASSIGNMENTS of all groups in ``generations``. With ``ownership_files``, a local directory and a codec of PyArrow, the
    tasks also write the OWNERSHIP of classic groups there, as Parquet files.

    Each group is handled by one task. OWNERSHIP can have many times as many rows, and like this they are not passed to Java.
    """

    def compare(batches: Iterator[Any]) -> Iterator[Any]:
        with ExitStack() as stack:
            writer: Any = None
            for table, rows in compared(batches):
                if table == ASSIGNMENTS:
                    yield rows
                elif ownership_files is not None:
                    if writer is None:
                        writer = stack.enter_context(_writer(*ownership_files))
                    writer.write_batch(rows)

    return map_in_arrow(_in_order(generations), compare, ASSIGNMENTS)


def ownership(generations: DataFrame) -> DataFrame:
    """OWNERSHIP of the classic groups; ``generations`` has groups of all kinds. The loss of an owner is a change, too."""

    def changes(batches: Iterator[Any]) -> Iterator[Any]:
        for table, rows in compared(batches):
            if table == OWNERSHIP:
                yield from (rows.slice(first, ROWS_AT_ONCE) for first in range(0, len(rows), ROWS_AT_ONCE))

    return map_in_arrow(_in_order(generations), changes, OWNERSHIP)


def _in_order(generations: DataFrame) -> DataFrame:
    """``generations`` with the members of ASSIGNMENTS and what each was assigned, as ``compared`` takes them. Members of share
    groups share partitions, so they count as members without any."""
    narrow = generations.selectExpr(
        *(f"`{name}`" for name in _RECORD.names if name != "members"),
        # Only the fields that are named here are read.
        f"""transform(arrays_zip(members.member_id, members.instance_id, members.client_id, members.client_host,
            members.topics, members.assigned), m -> struct(m.member_id, m.instance_id, m.client_id, m.client_host, m.topics,
            {IDENTITY} as who, coalesce(m.instance_id, m.client_id) as name, xxhash64(m.assigned) as assigned_hash,
            aggregate(m.assigned, 0, (sum, a) -> sum + size(a.partitions)) as partitions)) as members""",
        "if(kind = 'share', transform(members.assigned, a -> null), members.assigned) as assigned",
    )
    return narrow.repartition("group").sortWithinPartitions("group", "log_offset")


def _writer(folder: Path, codec: str) -> Any:
    """A writer of this task's file of OWNERSHIP. A task that is repeated writes the same file."""
    folder.mkdir(parents=True, exist_ok=True)
    task = TaskContext.get()
    path = folder / f"task-{0 if task is None else task.partitionId()}.parquet"
    return parquet_writer(path, arrow_schema(OWNERSHIP.columns), codec)


PARTITIONS_AT_ONCE = 200_000
"""The most assigned partitions that are compared at once."""
ROWS_AT_ONCE = 50_000
"""The most rows of OWNERSHIP in a record batch that is passed to Java."""
_MEMBER = (
    "struct<member_id:string,instance_id:string,client_id:string,client_host:string,topics:array<string>,who:string,"
    "name:string,assigned_hash:bigint,partitions:int>"
)
ASSIGNMENTS = table_schema(
    f"""
    assignments by log_partition, log_offset: The generations of all groups, compared with the assignment before. Not kept.
    is_tombstone, protocol, leader, state_ts
    metadata_hash bigint: hash of the topics of a group that is not classic
    members array<{_MEMBER}>: the members, each with its identity (`who`), its group instance id or else client id (`name`), a
        hash of its assignment, and its number of partitions; null: its assignment cannot be read
    moved int partitions: partitions whose last owner was another member; null, as the next two: a share group
    kept int partitions: partitions with the owner that they last had
    could_stay bigint partitions: how many could have kept their last owner
    """,
    OWNERSHIP.columns[:6],
)
_RECORD = arrow_schema(ASSIGNMENTS.columns[:-3])
_WHERE = OWNERSHIP.names[:6]
_CHANGE = arrow_schema(OWNERSHIP.columns[:-2])
_LAST = pa.schema(
    [*((name, pa.string()) for name in (*PERSON, "topic")), ("partition", pa.int32()), ("is_held", pa.bool_())]
)
_JUST_NOW, _LONG_AGO = -1, -2
"""The record numbers of earlier entries: of the record just before record 0, and of all older ones."""


@dataclass(frozen=True)
class _Past:
    """The state of the group of the last record. ``last`` and ``open`` have a row for each of its partitions, in the same
    order."""

    group: str | None
    last: Any
    """The last owner, and whether it had the partition in the last record."""
    open: Any
    """The last change, whose end (``until_ts``) is not known yet."""


@dataclass(frozen=True)
class _Entries:
    """All assigned partitions, sorted by group, topic, partition and time, so that each entry follows its previous owner.

    They include the entries of _Past. These come first in ``people`` and ``topics``, so their indices there are the same as in
    _Past.
    """

    people: Any
    topics: Any
    group: Any
    """For each record, the number of its group."""
    begins: Any
    """For each entry: is it the first one of its partition?"""
    record: Any
    person: Any
    topic: Any
    partition: Any

    @property
    def is_past(self) -> Any:
        return self.record < 0

    @property
    def is_of_last_group(self) -> Any:
        # The entries of _Past belong to the group of the first record.
        return self.group[np.maximum(self.record, 0)] == self.group[-1]


def compared(batches: Iterator[Any]) -> Iterator[tuple[TableSchema, Any]]:
    """Convert record batches of generations, with the columns of ASSIGNMENTS but the counts, and a column ``assigned``: pairs
    of a table, ASSIGNMENTS or OWNERSHIP (of classic groups), and a record batch of its rows.

    The records of a group must come one after the other and in order.
    """
    past = _nothing(None)
    for batch in batches:
        for records in pieces(batch, PARTITIONS_AT_ONCE):
            group = records.column("group")[0].as_py()
            if group != past.group:
                yield from _of_classic(past.open)
                past = _nothing(group)
            columns = [records.column(field.name).cast(field.type) for field in _RECORD]
            where = pa.RecordBatch.from_arrays(columns, schema=_RECORD)
            given = assignment_arrays(where.column("members"), records.column("assigned"))
            entries = _entries(given, past, where)
            yield ASSIGNMENTS, _counted(given, entries, where)
            changes, until, past = _changes(entries, past, where.select(_WHERE))
            yield from _of_classic(changes, until)
    yield from _of_classic(past.open)


def _nothing(group: str | None) -> _Past:
    return _Past(group, *(pa.RecordBatch.from_pylist([], schema=schema) for schema in (_LAST, _CHANGE)))


def _of_classic(changes: Any, until: Any = None) -> Iterator[tuple[TableSchema, Any]]:
    """OWNERSHIP of those of ``changes`` that are of classic groups, if any; without ``until`` they have no end."""
    until = pa.nulls(len(changes), TIMESTAMP) if until is None else until
    columns = [*changes.columns, until, pa.array(np.zeros(len(changes), bool))]
    rows = pa.RecordBatch.from_arrays(columns, schema=arrow_schema(OWNERSHIP.columns))
    rows = rows.filter(pc.equal(rows.column("kind"), "classic"))
    if len(rows):
        yield OWNERSHIP, rows


def _entries(given: AssignmentArrays, past: _Past, where: Any) -> _Entries:
    """The entries of ``past``, followed by the assignments ``given``, sorted."""
    last, known = past.last, np.arange(len(past.last))
    group = np.cumsum(_differs(codes(where.column("group"))[0]))
    topics = pa.concat_arrays([last.column("topic"), given.topics])
    topic = np.concatenate([known, given.topic + len(known)])
    partition = np.concatenate([last.column("partition").to_numpy(), given.partitions])
    group_of_topic = np.concatenate([np.full(len(known), group[0]), group[given.record[given.person]]])
    key = _keys(group_of_topic, topics, topic, partition)
    # Entries are already in the order of time; a stable sort keeps that order within each partition.
    order = np.argsort(key, kind="stable")
    topic = topic[order]
    person = np.concatenate([known, given.person + len(known)])[topic]
    when = np.where(last.column("is_held").to_numpy(zero_copy_only=False), _JUST_NOW, _LONG_AGO)
    return _Entries(
        people=_joined(last.select(PERSON), given.people),
        topics=topics,
        group=group,
        begins=_differs(key[order]),
        record=np.concatenate([when, given.record])[person],
        person=person,
        topic=topic,
        partition=partition[order],
    )


def _keys(group: Any, topics: Any, topic: Any, partition: Any) -> Any:
    """A number for each entry that identifies its group, topic and partition."""
    name, names = codes(topics)
    _, number = np.unique(group * len(names) + name, return_inverse=True)
    return (number[topic] << 32) + partition


def _counted(given: AssignmentArrays, entries: _Entries, where: Any) -> Any:
    """ASSIGNMENTS: ``where`` with the counts ``moved``, ``kept`` and ``could_stay`` of each record."""
    who, whos = codes(entries.people.column("who"))
    base = entries.record * len(whos)
    now, before = who[entries.person], who[np.roll(entries.person, 1)]
    later = ~entries.begins
    kept = np.bincount(entries.record[later & (now == before)], minlength=len(where))
    moved = np.bincount(entries.record[later], minlength=len(where)) - kept
    # Each identity in each record once: a static member may be in a record with two member ids.
    seats = np.unique(given.record * len(whos) + who[len(who) - len(given.record) :])
    record = seats // max(len(whos), 1)
    shares = (_shares(seats, record, taken) for taken in ((base + now)[~entries.is_past], (base + before)[later]))
    could_stay = np.bincount(record, np.minimum(*shares), len(where)).astype(np.int64)
    is_share = np.asarray(pc.equal(where.column("kind"), "share"))
    counts = (
        pa.array(counted, mask=is_share) for counted in (moved.astype(np.int32), kept.astype(np.int32), could_stay)
    )
    return pa.RecordBatch.from_arrays([*where.columns, *counts], schema=arrow_schema(ASSIGNMENTS.columns))


def _shares(seats: Any, record: Any, taken: Any) -> Any:
    """Count how often each of ``seats`` occurs in ``taken``; the counts of each ``record`` are sorted in ascending order."""
    place = np.searchsorted(seats, taken)
    there = np.append(seats, -1)[place] == taken
    shares = np.bincount(place[there], minlength=len(seats))
    return shares[np.lexsort((shares, record))]


def _changes(entries: _Entries, past: _Past, where: Any) -> tuple[Any, Any, _Past]:
    """The changes whose ends are known, these ends, and the state of the last group."""
    # Each entry can have two changes: a gain (or, for an entry of _Past, its open change), and a loss after it.
    place = np.nonzero(np.column_stack([_is_gain(entries), _is_lost(entries)]).ravel())[0]
    entry, is_loss = place >> 1, (place & 1).astype(bool)
    is_new = is_loss | ~entries.is_past[entry]
    changes = _joined(past.open, _new(entries, where, entry[is_new], is_loss[is_new]))
    row = np.where(is_new, len(past.open) + np.cumsum(is_new) - 1, entries.person[entry])
    is_last = _ends(_differs(np.cumsum(entries.begins)[entry]))
    is_open = is_last & entries.is_of_last_group[entry]
    until = changes.column("append_ts").take(pa.array(np.roll(row, -1), mask=is_last))
    now = _Past(where.column("group")[-1].as_py(), _last(entries, len(where)), changes.take(pa.array(row[is_open])))
    return changes.take(pa.array(row[~is_open])), until.filter(pa.array(~is_open)), now


def _is_gain(entries: _Entries) -> Any:
    """For each entry: does the owner change with it? True for entries of _Past, which stand for their open change."""
    person, member = entries.person, codes(entries.people.column("member_id"))[0]
    is_other = member[person] != member[np.roll(person, 1)]
    was_unowned = np.roll(entries.record, 1) < entries.record - 1
    return entries.begins | is_other | was_unowned


def _is_lost(entries: _Entries) -> Any:
    """For each entry: has the partition no owner in the next record of the group?"""
    # The last two are for _LONG_AGO (-2), whose loss was reported before, and for _JUST_NOW (-1).
    goes_on = np.append(entries.group[1:] == entries.group[:-1], [False, False, True])
    is_held = np.roll(entries.record, -1) <= entries.record + 1
    return goes_on[entries.record] & (_ends(entries.begins) | ~is_held)


def _new(entries: _Entries, where: Any, entry: Any, is_loss: Any) -> Any:
    """The rows of new changes: at each ``entry``, or, where ``is_loss``, in the record after it."""
    owner = pa.array(entries.person[entry], mask=is_loss)
    previous = np.where(is_loss, entry, entry - 1)
    is_first = entries.begins[entry] & ~is_loss
    members = entries.people.column("member_id")
    columns = [
        *where.take(pa.array(entries.record[entry] + is_loss)).columns,
        entries.topics.take(pa.array(entries.topic[entry])),
        pa.array(entries.partition[entry]),
        members.take(owner),
        entries.people.column("client_id").take(owner),
        members.take(pa.array(entries.person[previous], mask=is_first)),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=_CHANGE)


def _last(entries: _Entries, records: int) -> Any:
    """The last owner of each partition of the last group."""
    at = np.nonzero(_ends(entries.begins) & entries.is_of_last_group)[0]
    columns = [
        *entries.people.take(pa.array(entries.person[at])).columns,
        entries.topics.take(pa.array(entries.topic[at])),
        pa.array(entries.partition[at]),
        pa.array(entries.record[at] == records - 1),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=_LAST)


def _joined(first: Any, then: Any) -> Any:
    columns = [pa.concat_arrays(both) for both in zip(first.columns, then.columns, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=first.schema)


def _differs(numbers: Any) -> Any:
    """A mask of the elements that differ from the one before."""
    return np.concatenate([np.ones(min(len(numbers), 1), bool), numbers[1:] != numbers[:-1]])


def _ends(begins: Any) -> Any:
    """A mask of the last element of each run that starts at ``begins``."""
    return np.append(begins[1:], np.ones(min(len(begins), 1), bool))

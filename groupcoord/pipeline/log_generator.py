"""Generates a synthetic ``__consumer_offsets`` log of any size with Spark, for benchmarks and for trying things out.

Every record is a function of the seed, its partition and its offset. So any task can generate any chunk, and the same seed
always gives the same log. The log has PARTITIONS partitions with GROUPS_A_PARTITION groups each, which take turns of TURN
records. Each group has its own members and its own topic. Most of its records are commits, one topic partition after the other,
whose offsets grow with time. Each turn begins with a new generation in which members have changed; some turns are rebalance
storms. Now and then there is a tombstone of a committed offset. The formats of the records:
protocol/coordinator_records/group_records.py.
"""

import struct
from collections.abc import Iterator
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from crc32c import crc32c
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from groupcoord.pipeline.arrow_columns import TIMESTAMP, arrow_schema, buffer_of
from groupcoord.pipeline.errors import PipelineError
from groupcoord.pipeline.schemas import LOG, table_schema
from groupcoord.protocol.batches.record_batch import HEADER_BYTES, build_batch, frame_batch, read_header
from groupcoord.protocol.batches.records import Record, write_records
from groupcoord.protocol.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
    write_assignment,
    write_subscription,
)
from groupcoord.protocol.coordinator_records import group_records

PARTITIONS = 50
GROUPS_A_PARTITION = 8
KEYS_A_GROUP = 60
"""How many topic partitions each group commits."""
START_MS = 1_767_225_600_000
STEP_MS = 100
"""The time between two records of a partition."""
TURN = 200
"""The number of records of one turn of a group; the first one is a generation."""
STORM_STEP, STORM_EVERY = 25, 16
"""About one in STORM_EVERY turns is a storm: every STORM_STEP-th record of it is a generation."""
TOMBSTONE_EVERY = 5_000
CHUNK = 50_000
"""The number of records that are generated at a time."""
_VALUE = np.dtype(
    [
        ("version", ">i2"),
        ("offset", ">i8"),
        ("epoch", ">i4"),
        ("metadata", "u1"),
        ("commit", ">i8"),
        ("tags", "u1"),
        ("tag", "u1"),
        ("size", "u1"),
        ("topic_id", "V16"),
    ]
)
"""The value of a commit, version 4, with a topic id and without metadata: what Kafka 4 writes for nearly all commits."""


class LogChunk(NamedTuple):
    """A range of records of one partition of the log: offsets from ``first`` up to, not including, ``end``."""

    partition: int
    first: int
    end: int


def chunks(records: int) -> list[LogChunk]:
    """The chunks of a log of ``records`` records, spread evenly over the partitions."""
    found = []
    for partition in range(PARTITIONS):
        count = records // PARTITIONS + (partition < records % PARTITIONS)
        found += [LogChunk(partition, first, min(first + CHUNK, count)) for first in range(0, count, CHUNK)]
    return found


def records_of(chunk: LogChunk, seed: int) -> Any:
    """The records of ``chunk`` as a record batch of LOG."""
    offsets = np.arange(chunk.first, chunk.end)
    times = START_MS + offsets * STEP_MS
    ctx = offsets // TURN
    group = ctx % GROUPS_A_PARTITION
    key_number = offsets % KEYS_A_GROUP
    keys = _commit_keys(chunk.partition)
    values = np.zeros(len(offsets), _VALUE)
    values["version"], values["epoch"], values["metadata"], values["tags"], values["size"] = 4, 7, 1, 1, 16
    values["offset"] = offsets // KEYS_A_GROUP * 40 + _mixed(offsets, seed) % 40
    values["commit"] = times
    values["topic_id"] = np.array([topic_id(chunk.partition, one) for one in range(GROUPS_A_PARTITION)], "V16")[group]
    size = _VALUE.itemsize
    places = pa.py_buffer((np.arange(len(offsets) + 1) * size).astype(np.int32))
    dead = offsets % TOMBSTONE_EVERY == TOMBSTONE_EVERY - 1
    alive = pa.py_buffer(np.packbits(~dead, bitorder="little"))
    value_column = pa.Array.from_buffers(pa.binary(), len(offsets), [alive, places, pa.py_buffer(values.tobytes())])
    key_column = keys.take(pa.array(group * KEYS_A_GROUP + key_number))
    stormy = _mixed(ctx, seed + chunk.partition) % STORM_EVERY == 0
    begins = np.nonzero(offsets % np.where(stormy, STORM_STEP, TURN) == 0)[0]
    if len(begins):
        records = [
            _generation(chunk.partition, int(group[row]), int(offsets[row]), seed, int(times[row])) for row in begins
        ]
        chosen = np.zeros(len(offsets), bool)
        chosen[begins] = True
        mask = pa.array(chosen)
        key_column = _replaced(key_column, mask, [key for key, _ in records])
        value_column = _replaced(value_column, mask, [value for _, value in records])
    return pa.RecordBatch.from_arrays(
        [
            pa.array(np.full(len(offsets), chunk.partition, np.int32)),
            pa.array(offsets, pa.int64()),
            key_column,
            value_column,
            pa.array(times * 1000).cast(TIMESTAMP),
        ],
        schema=arrow_schema(LOG.columns),
    )


def _replaced(column: Any, mask: Any, values: list[bytes]) -> Any:
    return pc.replace_with_mask(column, mask, pa.array(values, pa.binary()))


def _mixed(numbers: Any, seed: int) -> Any:
    """Pseudorandom numbers, a hash of ``numbers`` and ``seed``: the finalizer of splitmix64."""
    mixed = numbers.astype(np.uint64) + np.uint64((seed * 0x9E3779B97F4A7C15 + 0x1234567) & 0xFFFFFFFFFFFFFFFF)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return ((mixed ^ (mixed >> np.uint64(31))) >> np.uint64(1)).astype(np.int64)


def group_name(partition: int, group: int) -> str:
    """The name of a group. It need not hash to this partition of the log, as a real one would."""
    return f"group-{partition:02d}-{group}"


def topic_id(partition: int, group: int) -> bytes:
    """The id of the topic that the group reads."""
    return (partition << 8 | group | 1 << 60).to_bytes(16, "big")


def _topic(partition: int, group: int) -> str:
    return f"topic-{partition:02d}-{group}"


@lru_cache(maxsize=8)
def _commit_keys(partition: int) -> Any:
    """The keys of all commits in a partition of the log, group by group."""
    keys = [
        group_records.OffsetCommitKey(
            group=group_name(partition, group), topic=_topic(partition, group), partition=number
        )
        for group in range(GROUPS_A_PARTITION)
        for number in range(KEYS_A_GROUP)
    ]
    return pa.array([group_records.write_key(key) for key in keys], pa.binary())


@lru_cache(maxsize=4096)
def _blobs(topic: str, count: int) -> tuple[bytes, list[bytes]]:
    """The subscription of each of ``count`` members, and their assignments by the range assignor."""
    shares = [range(KEYS_A_GROUP * one // count, KEYS_A_GROUP * (one + 1) // count) for one in range(count)]
    return write_subscription(ConsumerProtocolSubscription(version=1, topics=(topic,))), [
        write_assignment(
            ConsumerProtocolAssignment(
                version=1, assigned_partitions=(TopicPartition(topic=topic, partitions=tuple(share)),)
            )
        )
        for share in shares
    ]


def _generation(partition: int, group: int, offset: int, seed: int, time_ms: int) -> tuple[bytes, bytes]:
    """The key and value of the generation at ``offset``: two to nine members share the topic; the last one may be new."""
    chance = int(_mixed(np.array([offset]), seed + partition)[0])
    count = 2 + chance % 8
    subscription, assignments = _blobs(_topic(partition, group), count)
    newcomer = f"{offset:x}" if chance // 8 % 5 == 0 else "0"
    members = tuple(
        group_records.MemberMetadata(
            member_id=f"client-{number}-{newcomer if number == count - 1 else 0}",
            client_id=f"client-{number}",
            client_host=f"/10.0.{partition}.{number}",
            rebalance_timeout_ms=300_000,
            session_timeout_ms=45_000,
            subscription=subscription,
            assignment=assignment,
        )
        for number, assignment in enumerate(assignments)
    )
    value = group_records.GroupMetadataValue(
        protocol_type="consumer",
        generation=offset // (TURN * GROUPS_A_PARTITION) * (TURN // STORM_STEP) + offset % TURN // STORM_STEP + 1,
        protocol="range",
        leader=members[0].member_id,
        current_state_timestamp_ms=time_ms - chance % 400,
        members=members,
    )
    return group_records.write_key(
        group_records.GroupMetadataKey(group=group_name(partition, group))
    ), group_records.write_value(value, 3)


def generated(spark: SparkSession, records: int, seed: int) -> DataFrame:
    """A generated log of so many ``records``, as LOG."""
    wanted = chunks(records)
    tasks = max(1, min(len(wanted), records // 500_000))

    def make(batches: Iterator[Any]) -> Iterator[Any]:
        return (records_of(wanted[number], seed) for batch in batches for number in batch.column(0).to_pylist())

    return spark.range(0, len(wanted), 1, tasks).mapInArrow(make, LOG.ddl)


WRITTEN = table_schema("""
    written by path: What was written to segment files.
    path string: file
    records bigint records: how many
    bytes bigint bytes: size
""")


def write_segments(spark: SparkSession, records: int, seed: int, directory: str) -> DataFrame:
    """The same records as segment files in ``directory``, on a file system that all tasks see: one row for each file."""
    wanted = chunks(records)
    partitions = len({chunk.partition for chunk in wanted})

    def write(batches: Iterator[Any]) -> Iterator[Any]:
        for partition in chain.from_iterable(batch.column(0).to_pylist() for batch in batches):
            mine = [chunk for chunk in wanted if chunk.partition == partition]
            row = write_partition(mine, seed, directory)
            yield pa.RecordBatch.from_pylist([row], schema=arrow_schema(WRITTEN.columns))

    return spark.range(0, partitions, 1, partitions).mapInArrow(write, WRITTEN.ddl)


BATCH_RECORDS = 50
"""The records of a batch: a coordinator writes the commits of one OffsetCommit request as one batch."""


def write_partition(mine: list[LogChunk], seed: int, directory: str) -> dict[str, Any]:
    """Write all chunks of one partition as its segment in ``directory``; returns a row of WRITTEN."""
    folder = Path(directory) / f"__consumer_offsets-{mine[0].partition}"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{0:020d}.log"
    with path.open("wb") as file:
        for chunk in mine:
            file.writelines(_batches(chunk, records_of(chunk, seed)))
    return {"path": str(path), "records": mine[-1].end, "bytes": path.stat().st_size}


def _batches(chunk: LogChunk, made: Any) -> Iterator[bytes]:
    """Encode ``made``, the records of ``chunk``, as record batches.

    Nearly all batches have the same layout: commits whose keys have one size and whose values have one size. So numpy copies a
    template and fills in keys, values, offsets and times. Records of other sizes (generations, tombstones) are encoded one by
    one and replace their records of the copy.
    """
    whole = len(made) // BATCH_RECORDS
    size_of_key = len(_commit_keys(chunk.partition)[0].as_py())
    copies, ends = _copies(whole, size_of_key, _VALUE.itemsize)
    records = copies[:, HEADER_BYTES:]
    is_plain = np.ones(whole * BATCH_RECORDS, bool)
    for name, size, behind in (("key", size_of_key, _VALUE.itemsize + 2), ("value", _VALUE.itemsize, 1)):
        column = made.column(name).slice(0, whole * BATCH_RECORDS)
        offsets, data = buffer_of(column)
        fits = (np.diff(offsets) == size) & np.asarray(column.is_valid())
        is_plain &= fits
        content = data[np.where(fits, offsets[:-1], 0)[:, None] + np.arange(size)].reshape(whole, BATCH_RECORDS, size)
        for number, end in enumerate(ends):
            records[:, end - behind - size : end - behind] = content[:, number]
    firsts = chunk.first + np.arange(whole) * BATCH_RECORDS
    _put(copies, 0, firsts)
    _put(copies, _BASE_TIMESTAMP_AT, START_MS + firsts * STEP_MS)
    _put(copies, _MAX_TIMESTAMP_AT, START_MS + (firsts + BATCH_RECORDS - 1) * STEP_MS)
    odd = ~is_plain.reshape(whole, BATCH_RECORDS)
    any_odd = odd.any(axis=1).tolist()
    for number, first in enumerate(firsts.tolist()):
        if not any_odd[number]:
            _CRC.pack_into(copies[number], _CRC_AT, crc32c(copies[number, _CRC_AT + _CRC.size :]))
            yield copies[number].tobytes()
            continue
        pieces, done = [], 0
        for place in np.nonzero(odd[number])[0].tolist():
            pieces.append(records[number, done : ends[place - 1] if place else 0].tobytes())
            record = _record(chunk, made, first + place)
            pieces.append(write_records([record], base_offset=first, base_timestamp_ms=START_MS + first * STEP_MS))
            done = ends[place]
        pieces.append(records[number, done:].tobytes())
        yield frame_batch(read_header(copies[number].tobytes()), b"".join(pieces))
    rest = range(chunk.first + whole * BATCH_RECORDS, chunk.end)
    if rest:
        yield build_batch([_record(chunk, made, offset) for offset in rest], leader_epoch=0)


_CRC = struct.Struct(">I")
_CRC_AT, _BASE_TIMESTAMP_AT, _MAX_TIMESTAMP_AT = 17, 27, 35


def _copies(count: int, key_size: int, value_size: int) -> tuple[Any, list[int]]:
    """A template batch ``count`` times, one a row, and where each of its records ends, counted from the end of the header."""
    alike = [Record(offset, offset * STEP_MS, bytes(key_size), bytes(value_size)) for offset in range(BATCH_RECORDS)]
    sizes = [len(write_records([record], base_offset=0, base_timestamp_ms=0)) for record in alike]
    batch = np.frombuffer(build_batch(alike, leader_epoch=0), np.uint8)
    return np.tile(batch, (count, 1)), np.cumsum(sizes).tolist()


def _put(copies: Any, place: int, numbers: Any) -> None:
    copies[:, place : place + 8] = numbers.astype(">i8").view(np.uint8).reshape(-1, 8)


def _record(chunk: LogChunk, made: Any, offset: int) -> Record:
    row = offset - chunk.first
    return Record(
        offset, START_MS + offset * STEP_MS, made.column("key")[row].as_py(), made.column("value")[row].as_py()
    )


def generate(spark: SparkSession, records: int, seed: int, out: str, *, as_segments: bool) -> None:
    """Write a generated log of ``records`` records to ``out``, which must not exist yet: as segment files or as Parquet. Raises
    PipelineError."""
    if as_segments:
        if Path(out).exists():
            raise PipelineError(f"{out} exists already")
        write_segments(spark, records, seed, out).write.format("noop").mode("overwrite").save()
        return
    try:
        generated(spark, records, seed).write.parquet(out)
    except AnalysisException as problem:
        if problem.getCondition() != "PATH_ALREADY_EXISTS":
            raise
        raise PipelineError(f"{out} exists already") from None

"""Benchmark of ``__consumer_offsets``: commits over the wire beside heartbeats; loading and compacting it beside reading the
plain file.

Both rates by the clock and, for a machine that has other work, by the processor's time are given where this process does all
of the work.
"""

import gc
import random
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from bench import load
from bench.heartbeats import member
from bench.servers import groupcoord
from bench.storage import plain_read, plain_write
from bench.table import Table
from bench.wire import request_frame
from groupcoord.broker.partition_log import PartitionLog
from groupcoord.broker.storage_backend import IN_MEMORY_STORAGE, StorageBackend
from groupcoord.broker.topic_names import CONSUMER_OFFSETS
from groupcoord.cli.main import GARBAGE_THRESHOLD
from groupcoord.cluster.cluster_core import ClusterCore
from groupcoord.config.broker_config import load as config_of
from groupcoord.protocol.apis import ApiKey
from groupcoord.protocol.apis.offset_commit import OffsetCommitRequestPartition, OffsetCommitRequestTopic
from groupcoord.protocol.batches.record_batch import build_batch
from groupcoord.protocol.batches.records import Record
from groupcoord.protocol.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
    write_assignment,
    write_subscription,
)
from groupcoord.protocol.coordinator_records.group_records import (
    GROUP_METADATA_VALUE_VERSION,
    OFFSET_COMMIT_VALUE_VERSION,
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
    write_key,
    write_value,
)
from groupcoord.protocol.messages import HeartbeatRequest, OffsetCommitRequest
from groupcoord.storage.file_storage_backend import DataDirectory

SECONDS = 3.0
CONNECTIONS = (1, 100)
READ_BACK = 200_000
COMPACTED = 1_000_000
COMPACTED_KEYS = 100_000
RECORDS_PER_BATCH = (1, 10, 100)
_ROUNDS = 3
NOW_MS = 1_700_000_000_000
_CONFIG = config_of(["offsets.topic.num.partitions=1"], dev=False)
_PARTITIONS = 10
_TOPICS = 20
_REPEATED_GROUPS = 50
_MEMBERS = 3
_GENERATIONS = 20  # of a hundred records, so many as commits and a group's metadata are in a hundred: 95 and 5

KeyValue = tuple[bytes, bytes]


class Took(NamedTuple):
    """Seconds by the clock and of the processor."""

    clock: float
    processor: float


def run() -> list[Table]:
    """All of it, in directories that are removed at the end."""
    with tempfile.TemporaryDirectory(prefix="groupcoord-bench-") as name:
        directory = Path(name)
        return [_commits(directory), _replays(directory), _compactions(directory)]


# --- commits through the wire


def _commits(directory: Path) -> Table:
    """Each member commits one partition, or sends a heartbeat, as soon as it is answered."""
    table = Table(
        "commits per second",
        "loop",
        "connections",
        "commits/s",
        "with --data-dir",
        "heartbeats/s",
        "ratio",
        "median µs",
    )
    for loop in ("asyncio", "uvloop"):
        for connections in CONNECTIONS:
            with groupcoord("--dev", "--topic", f"bench:{connections}", loop=loop) as server:
                commits, beats = _frames(server.port, connections)
                in_memory = load.run(server.port, SECONDS, commits)
                heartbeats = load.run(server.port, SECONDS, beats)
            data = str(directory / f"{loop}-{connections}")
            with groupcoord("--dev", "--topic", f"bench:{connections}", "--data-dir", data, loop=loop) as server:
                commits, _ = _frames(server.port, connections)
                stored = load.run(server.port, SECONDS, commits)
            table.add(
                loop,
                connections,
                f"{in_memory.per_second:,.0f}",
                f"{stored.per_second:,.0f}",
                f"{heartbeats.per_second:,.0f}",
                f"{in_memory.per_second / heartbeats.per_second:.2f}",
                f"{in_memory.median_us:,.0f}",
            )
    return table


def _frames(port: int, connections: int) -> tuple[list[bytes], list[bytes]]:
    """A commit and a heartbeat of each of so many members, one per group."""
    commits, beats = [], []
    for number in range(connections):
        group = f"group-{number}"
        member_id, generation = member(port, group)
        beat = HeartbeatRequest(group_id=group, generation_id=generation, member_id=member_id)
        partition = OffsetCommitRequestPartition(partition_index=number, committed_offset=7, committed_metadata="")
        commit = OffsetCommitRequest(
            group_id=group,
            generation_id_or_member_epoch=generation,
            member_id=member_id,
            topics=(OffsetCommitRequestTopic(name="bench", partitions=(partition,)),),
        )
        beats.append(request_frame(ApiKey.HEARTBEAT, beat))
        commits.append(request_frame(ApiKey.OFFSET_COMMIT, commit, version=9))
    return commits, beats


# --- reading back


def _replays(directory: Path) -> Table:
    """A coordinator takes its partition back from files, 95 commits to 5 metadata of groups of three members."""
    table = Table(
        f"{READ_BACK:,} records of __consumer_offsets are read back from files",
        "keys",
        "records a batch",
        "records/s",
        "by processor time",
        "MB/s",
        "plain file MB/s",
    )
    for keys, made in (("repeated", _repeated), ("all distinct", _distinct)):
        records = list(made(READ_BACK))
        for count in RECORDS_PER_BATCH:
            batches = list(_batches(records, count))
            path = directory / f"{keys}-{count}"
            with _node(DataDirectory(path, _CONFIG, new_uuid=uuid.uuid4, now_ms=NOW_MS)) as (node, log):
                for batch in batches:
                    log.append(batch, NOW_MS)
                size = log.size
                rounds = [_replay(node) for _ in range(_ROUNDS)]
                took = Took(min(each.clock for each in rounds), min(each.processor for each in rounds))
            plain = path.with_suffix(".plain")
            plain.write_bytes(b"".join(batches))
            table.add(
                keys,
                count,
                f"{READ_BACK / took.clock:,.0f}",
                f"{READ_BACK / took.processor:,.0f}",
                f"{size / took.clock / 1e6:,.0f}",
                f"{plain_read(plain):,.0f}",
            )
    return table


def _replay(node: ClusterCore) -> Took:
    def work() -> None:
        node.load(0, NOW_MS)
        while node.next_deadline() == 0:
            node.expire(NOW_MS)

    node.resign(0, NOW_MS)
    return _timed(work)


def _repeated(count: int) -> Iterator[KeyValue]:
    """Commits of fifty groups, in which each partition comes up again and again."""
    chance = random.Random(0)
    for number in range(count):
        group = f"payments-group-{chance.randrange(_REPEATED_GROUPS)}"
        if number % _GENERATIONS == 0:
            yield _group(group, number)
        else:
            yield _commit(group, chance.randrange(_TOPICS), chance.randrange(_PARTITIONS), number)


def _distinct(count: int) -> Iterator[KeyValue]:
    """Every partition of one group after the other is committed once, and each group has had ten generations."""
    each = _TOPICS * _PARTITIONS
    for number in range(count):
        group, place = divmod(number, each)
        if number % _GENERATIONS == 0:
            yield _group(f"payments-group-{group}", number)
        else:
            yield _commit(f"payments-group-{group}", place // _PARTITIONS, place % _PARTITIONS, number)


def _commit(group: str, topic: int, partition: int, offset: int) -> KeyValue:
    value = OffsetCommitValue(
        offset=offset,
        leader_epoch=0,
        metadata="",
        commit_timestamp_ms=NOW_MS + offset,
        topic_id=uuid.UUID(int=topic + 1),
    )
    key = OffsetCommitKey(group=group, topic=f"orders-{topic}", partition=partition)
    return write_key(key), write_value(value, OFFSET_COMMIT_VALUE_VERSION)


def _group(group: str, generation: int) -> KeyValue:
    members = tuple(
        MemberMetadata(
            member_id=f"consumer-{number}-{uuid.UUID(int=number)}",
            client_id=f"consumer-{number}",
            client_host="/127.0.0.1",
            rebalance_timeout_ms=300_000,
            session_timeout_ms=45_000,
            subscription=write_subscription(ConsumerProtocolSubscription(topics=("orders-0",))),
            assignment=write_assignment(
                ConsumerProtocolAssignment(
                    assigned_partitions=(TopicPartition(topic="orders-0", partitions=(number,)),)
                )
            ),
        )
        for number in range(_MEMBERS)
    )
    value = GroupMetadataValue(
        protocol_type="consumer",
        generation=generation,
        protocol="range",
        leader=members[0].member_id,
        current_state_timestamp_ms=NOW_MS,
        members=members,
    )
    return write_key(GroupMetadataKey(group=group)), write_value(value, GROUP_METADATA_VALUE_VERSION)


# --- compaction


def _compactions(directory: Path) -> Table:
    """Each key has ten records, of which nine go."""
    pool = [
        _commit(f"group-{number // 100}", number // 10 % 10, number % 10, number) for number in range(COMPACTED_KEYS)
    ]
    batches = list(_batches([pool[number % COMPACTED_KEYS] for number in range(COMPACTED)], 10))
    table = Table(
        f"compaction of {COMPACTED:,} records of {COMPACTED_KEYS:,} keys, in batches of 10",
        "what",
        "seconds",
        "of processor time",
        "MB/s",
    )
    _compaction(table, "a log in memory", IN_MEMORY_STORAGE, batches)
    storage = DataDirectory(directory / "compacted", _CONFIG, new_uuid=uuid.uuid4, now_ms=NOW_MS)
    size = _compaction(table, "a log with --data-dir", storage, batches)
    plain = directory / "plain"
    written = plain_write(plain, b"".join(batches[:100]), size)
    read = plain_read(plain)
    table.add("a plain file of its size, written", f"{size / written / 1e6:.2f}", "", f"{written:,.0f}")
    table.add("a plain file of its size, read", f"{size / read / 1e6:.2f}", "", f"{read:,.0f}")
    return table


def _compaction(table: Table, what: str, storage: StorageBackend, batches: list[bytes]) -> int:
    """Adds a row; the size of the log."""
    with _node(storage) as (node, log):
        for batch in batches:
            log.append(batch, NOW_MS)
        size = log.size
        took = _timed(lambda: node.compact(0, NOW_MS))
        if log.size > size / 5:
            raise SystemExit(f"bench: of {size:,} bytes {log.size:,} are left")
        table.add(what, f"{took.clock:.2f}", f"{took.processor:.2f}", f"{size / took.clock / 1e6:,.0f}")
    return size


# --- what both need


class Chance:
    """Ids at random; of brokers there is one."""

    def uuid(self) -> uuid.UUID:
        return uuid.uuid4()

    def session_id(self) -> int:
        return 1

    def next_int(self, bound: int) -> int:
        return bound - 1


@contextmanager
def _node(storage: StorageBackend) -> Iterator[tuple[ClusterCore, PartitionLog]]:
    """A node that has read what there is, and the only partition of its ``__consumer_offsets``."""
    node = ClusterCore(_CONFIG, random=Chance(), now_ms=NOW_MS, storage=storage)
    while node.next_deadline() == 0:
        node.expire(NOW_MS)
    log = node.broker.log(CONSUMER_OFFSETS, 0)
    assert log is not None
    before = gc.get_threshold()
    gc.collect()
    gc.freeze()
    gc.set_threshold(GARBAGE_THRESHOLD, *before[1:])  # as groupcoord serve has it
    try:
        yield node, log
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()
        if isinstance(storage, DataDirectory):
            storage.close()


def _batches(records: list[KeyValue], count: int) -> Iterator[bytes]:
    """Batches of ``count`` records. Their offsets are given by the log."""
    for start in range(0, len(records), count):
        part = enumerate(records[start : start + count])
        yield build_batch([Record(index, NOW_MS, key, value) for index, (key, value) in part])


def _timed(work: Callable[[], object]) -> Took:
    clock, processor = time.perf_counter(), time.process_time()
    work()
    return Took(time.perf_counter() - clock, time.process_time() - processor)

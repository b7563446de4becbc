"""A shard comes back from its log: what its records say of groups and offsets, and how its life goes on from there.

What no record says is lost, as in Kafka: ids that were only handed out, parked requests, a rebalance that was under way.
Sources: ``CoordinatorLoaderImpl``, ``GroupMetadataManager.replay`` and ``onLoaded``, ``OffsetMetadataManager.replay``.
"""

import struct
from collections import defaultdict
from collections.abc import Iterable

from groupcoord.coordinator.availability import Unavailable
from groupcoord.coordinator.classic import rebalance, session
from groupcoord.coordinator.classic.group import ClassicGroup
from groupcoord.coordinator.classic.member import Member
from groupcoord.coordinator.classic.states import GroupState
from groupcoord.coordinator.errors import UnexpectedBrokerError
from groupcoord.coordinator.events import ShardLoaded, ShardNotLoaded
from groupcoord.coordinator.offset_store import CommittedOffset, OffsetMap, OffsetStore
from groupcoord.coordinator.shard import Shard
from groupcoord.core.handler_context import HandlerContext
from groupcoord.protocol.batches.key_value_reader import PARTITION_BYTES, OffsetKeyValue
from groupcoord.protocol.coordinator_records.commit_fast_path import (
    CommitReader,
    CommitSink,
    ScanResult,
    group_and_topic,
    group_of,
    is_plain_commit,
    scan_offset_commits,
)
from groupcoord.protocol.coordinator_records.typed import (
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    UnknownKey,
    read_key,
    read_value,
)
from groupcoord.protocol.errors import ErrorCode, WireError

NO_PRODUCER = -1

Committed = CommittedOffset | bytes
"""What is read of an offset, or, of the form that needs no look, not yet: see OffsetStore."""

_partition_of = struct.Struct(">i").unpack_from


class Loading:
    """``shard`` while its log is read. Everybody who asks it is told COORDINATOR_LOAD_IN_PROGRESS until ``finish``."""

    def __init__(self, shard: Shard, ctx: HandlerContext) -> None:
        self.shard = shard
        self.records = 0
        """How many records were replayed so far."""
        self.passed_over = 0
        """How many of them are of kinds that are not a classic group's; a broker that has no such groups leaves them alone."""
        self.failure: str | None = None
        """What keeps the log from being replayed; None while nothing does."""
        self._started_ms = ctx.now_ms
        self._read = CommitReader(CommittedOffset).read
        # Values of groups stay bytes until the end: most are followed by another one of the same group.
        self._groups: dict[str, bytes | None] = {}  # None: a simple group, which no record describes
        self._offsets = OffsetStore()
        # What puts an offset where it belongs, by its key less the partition; and of which groups these keys are.
        self._places: dict[bytes, CommitSink] = {}
        self._places_of: defaultdict[str, list[bytes]] = defaultdict(list)
        # By producer id; with the record's offset.
        self._in_transactions: dict[int, OffsetMap[tuple[int, Committed]]] = {}
        # Of the offsets that came while a transaction was open: those of their records.
        self._while_open: dict[tuple[str, str, int], int] = {}
        shard.offsets = OffsetStore()
        why = f"partition {shard.partition} of __consumer_offsets is being read"
        self._closed = shard.groups = Unavailable(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, why)

    def replay_run(self, data: bytes, position: int) -> ScanResult:
        """Take in the records of the plain batches from ``position`` of ``data`` on: see ``scan_offset_commits``.

        Raises InvalidRecordsError. For the rest see ``replay``.
        """
        # While a transaction is open, it matters what was committed when.
        places = {} if self._in_transactions else self._places
        run = scan_offset_commits(data, position, places, self._replay_one)
        self.records += run.records
        return run

    def replay(self, records: Iterable[OffsetKeyValue], producer_id: int = NO_PRODUCER) -> None:
        """Take in the next ``records`` of the log; those of a transaction of ``producer_id`` count when that is committed.

        A record of an unknown type is passed over. One that cannot be read is the ``failure``, and nothing after it counts; of
        the metadata of a group, only the last are read, and that by ``finish``.
        """
        for offset, key, value in records:
            if self.failure is not None:
                return
            self.records += 1
            self._replay_one(offset, key, value, producer_id)

    def end_transaction(self, producer_id: int, *, committed: bool) -> None:
        """The offsets of that transaction count, where none was committed after them, or they are forgotten."""
        self.records += 1
        pending = self._in_transactions.pop(producer_id, None)
        if pending is not None and committed:
            for group in pending.groups():
                for topic, partitions in pending.of_group(group):
                    for partition, (offset, value) in partitions:
                        if offset > self._while_open.get((group, topic, partition), -1):
                            self._commit(offset, group, topic, partition, value)
        if not self._in_transactions:
            self._while_open.clear()

    def fail(self, why: str) -> None:
        """The log cannot be read on."""
        self.failure = self.failure or why

    def _replay_one(self, offset: int, key: bytes | None, value: bytes | None, producer_id: int = NO_PRODUCER) -> bool:
        """Take in a record of any kind. False: it is the failure."""
        try:
            self._take(offset, key or b"", value, producer_id)
        except WireError as problem:
            self.fail(f"the record at offset {offset} cannot be read: {problem}")
            return False
        return True

    def _take(self, offset: int, key: bytes, value: bytes | None, producer_id: int) -> None:
        """Take in a record of any kind. Raises WireError."""
        group_id = group_of(key)
        if group_id is not None:
            self._replay_group(group_id, value)
            return
        prefix = key[:-PARTITION_BYTES]
        usual = group_and_topic(prefix)
        if usual is not None:
            group, topic = usual
            partition: int = _partition_of(key, -PARTITION_BYTES)[0]
        else:
            said = read_key(key)
            if isinstance(said, GroupMetadataKey):
                self._replay_group(said.group, value)
            if not isinstance(said, OffsetCommitKey):
                self.passed_over += isinstance(said, UnknownKey)
                return
            group, topic, partition = said.group, said.topic, said.partition
        if value is None:
            self._offsets.remove(group, topic, partition)
            self._forget_places(group)  # it was perhaps the last one in its place
            for pending in self._in_transactions.values():
                pending.remove(group, topic, partition)
            return
        committed = value if is_plain_commit(value) else self._read(value)
        self._groups.setdefault(group)
        if producer_id != NO_PRODUCER:
            self._in_transactions.setdefault(producer_id, OffsetMap()).put(group, topic, partition, (offset, committed))
            return
        put = self._commit(offset, group, topic, partition, committed)
        if usual is not None and prefix not in self._places:
            self._places[prefix] = put
            self._places_of[group].append(prefix)

    def _replay_group(self, group: str, value: bytes | None) -> None:
        if value is None:
            self._groups.pop(group, None)
            self._forget_places(group)  # with its next offset it is there again
        else:
            self._groups[group] = value

    def _forget_places(self, group: str) -> None:
        for key in self._places_of.pop(group, ()):
            del self._places[key]

    def _commit(self, offset: int, group: str, topic: str, partition: int, value: Committed) -> CommitSink:
        """An offset counts from now on: for the transactions that are open, from the record at ``offset`` on. Returns what
        puts others of its topic there."""
        put = self._offsets.partitions_of(group, topic).put
        put(partition, value)
        if self._in_transactions:
            self._while_open[group, topic, partition] = offset
        return put

    def finish(self, ctx: HandlerContext) -> None:
        """The log ends here: the shard serves again, or, after a failure, nobody.

        The session of every member starts now. A group that has more members than are allowed by now rebalances. If the shard
        was lost while it was read, it stays so.
        """
        shard = self.shard
        if shard.groups is not self._closed:
            return
        try:
            if self.failure is not None:
                raise WireError(self.failure)
            groups = {group_id: _group(ctx, group_id, value) for group_id, value in self._groups.items()}
        except (WireError, UnexpectedBrokerError) as problem:
            why = f"partition {shard.partition} of __consumer_offsets could not be read ({problem})"
            shard.groups = Unavailable(ErrorCode.NOT_COORDINATOR, why)
            ctx.emit(ShardNotLoaded, partition=shard.partition, records=self.records, why=str(problem))
            return
        shard.groups, shard.offsets = groups, self._offsets
        ctx.emit(
            ShardLoaded,
            partition=shard.partition,
            records=self.records,
            groups=len(groups),
            passed_over=self.passed_over,
            took_ms=ctx.now_ms - self._started_ms,
        )
        for group in groups.values():
            for member in group.members.values():
                session.restart(shard, ctx, group, member)
            limit = shard.config.group_max_size
            if len(group.members) > limit:
                size = len(group.members)
                rebalance.prepare(shard, ctx, group, f"the group has {size} members, and group.max.size is {limit} now")


def _group(ctx: HandlerContext, group_id: str, data: bytes | None) -> ClassicGroup:
    """The group that a record says. Raises WireError, or Stumbled for members whose subscriptions make Kafka fail."""
    group = ClassicGroup(group_id, ctx.now_ms)
    if data is None:
        return group
    value = read_value(GroupMetadataKey(group=group_id), data)
    if not isinstance(value, GroupMetadataValue):
        raise AssertionError(f"{value!r} describes no group")
    group.generation_id = value.generation
    group.protocol_type = value.protocol_type or None
    group.protocol_name = value.protocol
    group.leader_id = value.leader
    group.state_since_ms = None if value.current_state_timestamp_ms == -1 else value.current_state_timestamp_ms
    if value.members:
        group.state = group.previous_state = GroupState.STABLE
    for said in value.members:
        member = Member(
            member_id=said.member_id,
            instance_id=said.group_instance_id,
            client_id=said.client_id,
            client_host=said.client_host,
            rebalance_timeout_ms=said.session_timeout_ms
            if said.rebalance_timeout_ms == -1
            else said.rebalance_timeout_ms,
            session_timeout_ms=said.session_timeout_ms,
            protocol_type=value.protocol_type,
            # Of what it offered, the record knows only what was chosen. If it offers more when it joins again, that is news.
            protocols=((value.protocol or "", said.subscription),),
            session_key=group.session_key(said.member_id),
            assignment=said.assignment,
        )
        group.add(member, None)
    group.subscribed_topics = group.compute_subscribed_topics()
    return group

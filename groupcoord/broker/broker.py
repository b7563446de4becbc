"""The broker: topics with their logs, fetches that wait, fetch sessions, producer ids. ``dispatch`` has its handlers.

Source: ``ReplicaManager``.
"""

import uuid
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from groupcoord.broker.broker_registry import BrokerRegistry
from groupcoord.broker.events import IsrChanged, LeaderChanged, ReplicasReassigned
from groupcoord.broker.fetch_purgatory import FetchPurgatory
from groupcoord.broker.fetch_sessions import FetchSessions
from groupcoord.broker.leader_election import NO_LEADER, PartitionState
from groupcoord.broker.log_maintenance import LogManager
from groupcoord.broker.partition_log import PartitionLog
from groupcoord.broker.replication import Replication
from groupcoord.broker.slow_disks import SlowDisks
from groupcoord.broker.storage_backend import IN_MEMORY_STORAGE, StorageBackend
from groupcoord.broker.topic_config import internal_topic
from groupcoord.broker.topic_store import Topic, TopicStore
from groupcoord.config.broker_config import BrokerConfig
from groupcoord.core.background_work import WorkRunner, run_inline
from groupcoord.core.effects import Call, Effect, LogRecord
from groupcoord.core.events import AdminAction
from groupcoord.core.handler_context import HandlerContext
from groupcoord.core.timers import Timers
from groupcoord.core.transactional_write import (
    TopicPartition,
    TransactionalWrite,
    TransactionMarker,
    Verified,
    VerifyTransaction,
)
from groupcoord.protocol.batches.record_batch import NO_PRODUCER_ID, BatchError
from groupcoord.protocol.errors import ErrorCode

_PRODUCER_ID_BLOCK = 1000
_PREFETCHED_AT = 100
"""With so many ids left a broker of several asks for more (``RPCProducerIdManager``, PREFETCH_THRESHOLD)."""

Then = Callable[[HandlerContext], None]
GoOn = Callable[[HandlerContext, Call, Any, Then], None]
"""What goes on, in which turn: a call with its request, and how."""


def _verify_nowhere(
    ctx: HandlerContext,
    _call: Call,
    _write: TransactionalWrite,
    partitions: Sequence[TopicPartition],
    verified: Verified,
) -> None:
    """There is no coordinator."""
    verified(ctx, dict.fromkeys(partitions, ErrorCode.COORDINATOR_NOT_AVAILABLE))


class Broker:
    """Topics and logs of one node. ``storage`` is where they are kept; what it has kept is there again.

    A node may stand for a ``cluster`` of several brokers, of which ``config`` is the first one's configuration.

    ``new_topic_id`` and ``new_session_id`` are where chance comes in, ``now_ms`` is when the broker starts.
    ``on_topics_deleted`` is told, within the same turn, which topics are gone: the node sets it so that their committed
    offsets go too.
    """

    def __init__(
        self,
        config: BrokerConfig,
        *,
        new_topic_id: Callable[[], uuid.UUID],
        new_session_id: Callable[[], int],
        now_ms: int,
        storage: StorageBackend = IN_MEMORY_STORAGE,
        cluster: BrokerRegistry | None = None,
    ) -> None:
        self.config = config
        self.run_work: WorkRunner = run_inline
        """What has work done that takes long."""
        self.compacts_at_once = False
        """Compact inline and never in the background: for tests that move the clock."""
        self.cluster = cluster or BrokerRegistry(config.node_id)
        self.storage = storage
        self.timers = Timers()
        self.topics = TopicStore(config, new_topic_id=new_topic_id, storage=storage)
        self.topics.changes.several_brokers = len(self.cluster) > 1
        self.fetch_purgatory = FetchPurgatory(self.timers)
        self.disks = SlowDisks(self.timers)
        """The brokers' disks, which may be slow."""
        self.go_on: GoOn = lambda ctx, _call, _request, then: then(ctx)
        """Lets a request go on that has waited for a disk: the node sets it, where brokers may have failed meanwhile."""
        self.replication = Replication()
        """What leaders know of their followers."""
        self.replicate: Callable[[HandlerContext, Topic, int], None] = lambda _turn, _topic, _partition: None
        """Lets the followers of a partition copy what its leader has: the node sets it, where there are several brokers."""
        self.fetch_sessions_of = tuple(
            FetchSessions(config.max_incremental_fetch_session_cache_slots, new_session_id) for _ in self.cluster.ids
        )
        """The fetch sessions of each broker."""
        self._producer_ids_end = storage.next_producer_id()
        self._producer_ids = [range(0)] * len(self.cluster)
        self._next_producer_ids = [range(0)] * len(self.cluster)
        self.verify_transaction: VerifyTransaction = _verify_nowhere
        """Asks the coordinator of a transaction: the node sets it, as it has one."""
        self.on_topics_deleted: Callable[[HandlerContext, Sequence[Topic]], None] = lambda _turn, _topics: None
        self.on_configured: Callable[[HandlerContext], None] = lambda _turn: None
        """Told that configurations may have changed: the controller sets it."""
        self.is_cut_off: Callable[[int], bool] = lambda _broker: False
        """Does a broker hear nothing of what the controller decides? The node sets it, where there are several brokers."""
        self.uncreated: dict[str, int] = {}
        """Topics that the controller is to create because clients asked about them, and when (ms), while it is away."""
        self.on_append: Callable[[PartitionLog], object] = lambda _log: None
        """Told which log has grown, in the same turn: a detailed trace sets it."""
        self._log_manager = LogManager(
            self.timers, lambda: self.config, self._logs, now_ms, storage, self._compaction_runner
        )
        self._restore(now_ms)

    def expire(self, now_ms: int) -> list[Effect]:
        """Fire what is due at ``now_ms``: fetches that have waited long enough, retention, old producers."""
        return self.timers.fire_due(now_ms)

    def next_deadline(self) -> int | None:
        """When ``expire`` is to be called next (ms), or None."""
        return self.timers.next_deadline()

    @property
    def fetch_sessions(self) -> FetchSessions:
        """The sessions of the first broker."""
        return self.fetch_sessions_of[0]

    def new_producer_id(self, broker: int = 0) -> int:
        """The next id for a producer at ``broker``. Raises BatchError if nothing can be kept, or no controller has more.

        Each broker takes a thousand at a time (``ProducerIdsBlock``). The storage is told, so that after a restart none comes
        twice.
        """
        left = self._producer_ids[broker]
        hears = self.cluster.has_controller and not self.is_cut_off(self.cluster.ids[broker])
        if not left:
            left, self._next_producer_ids[broker] = self._next_producer_ids[broker], range(0)
        if not left and not hears:
            raise BatchError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "only the controller has more producer ids")
        if not left:
            left = self._new_producer_id_block()
        elif len(left) == _PREFETCHED_AT and hears and len(self.cluster) > 1:
            self._next_producer_ids[broker] = self._new_producer_id_block()
        self._producer_ids[broker] = left[1:]
        return left[0]

    def _new_producer_id_block(self) -> range:
        first, end = self._producer_ids_end, self._producer_ids_end + _PRODUCER_ID_BLOCK
        self.storage.producer_ids_reserved(end)
        self._producer_ids_end = end
        return range(first, end)

    def _restore(self, now_ms: int) -> None:
        """Add the topics that the storage has kept. Raises Refused if it cannot keep what is added to them."""
        for kept in self.storage.recovered_topics():
            topic = self.topics.restore(kept)
            if kept.adopted and topic.metadata.is_internal:
                count, _, configs = internal_topic(topic.name, self.config)
                topic.configure(configs, self.config)
                topic.add_partitions(max(0, count - len(topic.partitions)))
            for log in topic.logs():
                if log.size:
                    self._log_manager.appended(log, now_ms)

    # --- logs

    def log(self, topic: str, partition: int) -> PartitionLog | None:
        """The log of a partition, or None if there is no such topic or partition."""
        found = self.topics.get(topic)
        if found is None or not 0 <= partition < len(found.partitions):
            return None
        return found.partitions[partition]

    def log_here(self, call: Call, topic: Topic, partition: int) -> PartitionLog:
        """The log of a partition at the broker that ``call`` came to, or the leader's if that broker has none."""
        leaders = topic.partitions[partition]
        return topic.copies[partition].get(self.cluster.id_of(call), leaders) if topic.copies else leaders

    def append_to(
        self,
        topic: str,
        partition: int,
        records: Sequence[LogRecord],
        now_ms: int,
        *,
        producer_id: int = NO_PRODUCER_ID,
        producer_epoch: int = -1,
    ) -> list[Effect]:
        """Append records of the node itself as one batch; the effects are the answers to fetches that waited for them.

        With a producer id they are part of its transaction, which has been verified. Raises BatchError if they cannot be
        stored, and KeyError if there is no such partition.
        """
        log = self._log_to_write(topic, partition)
        ctx = HandlerContext(now_ms, AdminAction(f"an append to {log.name}"))
        log.append_own(records, now_ms, producer_id=producer_id, producer_epoch=producer_epoch)
        self.appended(ctx, self.topics[topic], partition)
        return ctx.effects

    def append_marker(self, topic: str, partition: int, marker: TransactionMarker, now_ms: int) -> list[Effect]:
        """Append the end of a transaction; the effects are the answers to fetches that waited for it.

        Raises BatchError if it must not be, or cannot be, and KeyError if there is no such partition.
        """
        log = self._log_to_write(topic, partition)
        ctx = HandlerContext(now_ms, AdminAction(f"a transaction ends in {log.name}"))
        log.append_marker(marker, now_ms)
        self.appended(ctx, self.topics[topic], partition)
        return ctx.effects

    def _log_to_write(self, topic: str, partition: int) -> PartitionLog:
        """The log of a partition that is written to with acks=all. Raises BatchError, KeyError."""
        log = self.existing_log(topic, partition)
        self.require_in_sync(self.topics[topic], partition)
        return log

    def existing_log(self, topic: str, partition: int) -> PartitionLog:
        """The log of a partition. Raises KeyError if there is no such partition."""
        log = self.log(topic, partition)
        if log is None:
            raise KeyError(f"{topic}-{partition}")
        return log

    def appended(self, ctx: HandlerContext, topic: Topic, partition: int) -> None:
        """The log of a leader has grown: let followers copy it, answer the fetches that now have enough, and see to it that it
        is looked after.
        """
        log = topic.partitions[partition]
        self._log_manager.appended(log, ctx.now_ms)
        self.on_append(log)
        self.fetch_purgatory.appended(ctx, log)
        if topic.copies:
            self.replicate(ctx, topic, partition)

    def copied(self, ctx: HandlerContext, copy: PartitionLog) -> None:
        """The log of a follower has grown, or its high watermark has."""
        self._log_manager.appended(copy, ctx.now_ms)
        self.fetch_purgatory.appended(ctx, copy)

    def move_leader(self, ctx: HandlerContext, topic: Topic, partition: int, broker_id: int) -> None:
        """Let another broker lead a partition; fetches that wait for it at a broker which must not answer them now are told."""
        before_leader, before = topic.metadata.leaders[partition], topic.partitions[partition]
        topic.move_leader(partition, broker_id, ctx.now_ms)
        self._leader_changed(ctx, topic, partition, before_leader, before)

    # --- replicas

    def set_partition_state(
        self, ctx: HandlerContext, topic: Topic, partition: int, state: PartitionState, *, renewed: bool = False
    ) -> None:
        """A partition has another ISR, or another leader, or none, or other replicas: whoever waits for that goes on.

        A new replica has nothing yet. ``renewed``: its leader begins anew, with its next epoch.
        """
        before, log = topic.metadata.partitions[partition], topic.partitions[partition]
        copies = topic.copies_of(partition)
        topic.set_state(partition, state, renewed=renewed)
        for removed in set(copies) - set(topic.copies_of(partition)):
            self.fetch_purgatory.leader_moved(ctx, copies[removed], NO_LEADER)
        if before.assignment != state.assignment:
            ctx.emit(
                ReplicasReassigned,
                topic=topic.name,
                partition=partition,
                replicas=state.replicas,
                adding=state.adding,
                removing=state.removing,
            )
        if state.leader != before.leader:
            epoch = topic.metadata.partitions[partition].leader_epoch
            ctx.emit(
                LeaderChanged, topic=topic.name, partition=partition, leader=state.leader, epoch=epoch, isr=state.isr
            )
            self._leader_changed(ctx, topic, partition, before.leader, log)
        elif state.isr != before.isr:
            ctx.emit(IsrChanged, topic=topic.name, partition=partition, isr=state.isr, before=before.isr)
        self.replicated(ctx, topic, partition)

    def replicated(self, ctx: HandlerContext, topic: Topic, partition: int) -> None:
        """The high watermark of a partition may have moved: whoever waits for that goes on."""
        log, state = topic.partitions[partition], topic.metadata.partitions[partition]
        if self.replication.isr_changed(ctx, log, state.leader, state.isr, topic.min_isr(partition)):
            self.fetch_purgatory.appended(ctx, log)

    def becomes_follower(self, ctx: HandlerContext, copy: PartitionLog) -> None:
        """A broker hears that another one leads the partition of which it has ``copy``."""
        self.replication.follow(copy)
        self.replication.stop_waiting(ctx, copy, ErrorCode.NOT_LEADER_OR_FOLLOWER)

    def require_in_sync(self, topic: Topic, partition: int) -> None:
        """Raises BatchError(NOT_ENOUGH_REPLICAS) if too few replicas are in sync for acks=all.

        Source: ``Partition.appendRecordsToLeader``.
        """
        if not topic.copies:
            return  # a lone broker is in sync with itself
        isr, least = topic.metadata.partitions[partition].isr, topic.min_isr(partition)
        if len(isr) < least:
            reason = f"{len(isr)} replicas of {topic.name}-{partition} are in sync, and it takes {least}"
            raise BatchError(ErrorCode.NOT_ENOUGH_REPLICAS, reason)

    def is_led(self, topic: Topic, partition: int) -> bool:
        """Does a partition have a leader that runs?"""
        leader = topic.metadata.leaders[partition]
        return leader != NO_LEADER and leader not in self.cluster.not_running

    def _leader_changed(
        self, ctx: HandlerContext, topic: Topic, partition: int, before_leader: int, before: PartitionLog
    ) -> None:
        """``before`` is the log of the leader before, which may not hear of it yet."""
        state, log = topic.metadata.partitions[partition], topic.partitions[partition]
        number = NO_LEADER if state.leader == NO_LEADER else self.cluster.ids.index(state.leader)
        hears = not self.is_cut_off(before_leader)
        if before is not log and hears:
            self.replication.follow(before)
        if state.leader != NO_LEADER:
            self.replication.lead(log)
            self.replicated(ctx, topic, partition)
        if hears:
            self.replication.stop_waiting(ctx, before, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        self.replicate(ctx, topic, partition)
        for copy in {before: None, **dict.fromkeys(topic.copies_of(partition).values())}:
            self.fetch_purgatory.leader_moved(ctx, copy, number)

    # --- leaders and readers

    def leads(self, call: Call, topic: Topic, partition: int) -> bool:
        """Whether the broker that ``call`` came to leads that partition."""
        return topic.metadata.leaders[partition] == self.cluster.id_of(call)

    def check_reader(
        self, call: Call, topic: Topic, partition: int, epoch: int | None, *, leader_only: bool
    ) -> ErrorCode:
        """The error if the broker that ``call`` came to must not serve a partition to a reader that knows the leader ``epoch``.

        Source: ``ReplicaManager.getPartitionOrError`` and ``Partition.getLocalLog``.
        """
        here = self.cluster.id_of(call)
        if here not in topic.metadata.replicas[partition]:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        present = self.log_here(call, topic, partition).leader_epoch
        if epoch is not None and epoch != present:
            return ErrorCode.UNKNOWN_LEADER_EPOCH if epoch > present else ErrorCode.FENCED_LEADER_EPOCH
        if leader_only and topic.metadata.leaders[partition] != here:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        return ErrorCode.NONE

    def compact(self, topic: str, partition: int, now_ms: int) -> list[Effect]:
        """Compact all that is in a partition now, whatever its configuration says of when; LogCleaned says what was done.

        Raises KeyError if there is no such partition.
        """
        log = self.existing_log(topic, partition)
        ctx = HandlerContext(now_ms, AdminAction(f"{log.name} is to be compacted"))
        self._log_manager.compact(ctx, log)
        return ctx.effects

    def topics_deleted(self, ctx: HandlerContext, topics: Sequence[Topic]) -> None:
        """``topics`` have left the store: answer the fetches that wait for them, and pass the news on."""
        for topic in topics:
            logs = list(topic.logs())
            self.fetch_purgatory.logs_deleted(ctx, logs)
            for log in logs:
                self.replication.stop_waiting(ctx, log, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            self.replication.forget(logs)
        self.on_topics_deleted(ctx, topics)

    def _compaction_runner(self) -> WorkRunner:
        return run_inline if self.compacts_at_once else self.run_work

    def _logs(self) -> Iterator[PartitionLog]:
        for topic in self.topics.all():
            yield from topic.logs()

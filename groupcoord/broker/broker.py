"""The broker: topics with their logs, the fetch purgatory, fetch sessions, producer ids.

Its handlers are in ``topic_and_log_dispatch``. Source: ``ReplicaManager``.
"""

import uuid
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from groupcoord.broker.broker_registry import BrokerRegistry
from groupcoord.broker.events import IsrChanged, LeaderChanged, ReplicasReassigned
from groupcoord.broker.fetch_purgatory import FetchPurgatory
from groupcoord.broker.fetch_sessions import FetchSessions
from groupcoord.broker.high_watermarks import HighWatermarks
from groupcoord.broker.leader_election_and_isr import NO_LEADER, PartitionState
from groupcoord.broker.leader_epoch_cache import UNDEFINED_EPOCH
from groupcoord.broker.log_maintenance import LogManager, tell_deletions
from groupcoord.broker.partition_log import PartitionLog
from groupcoord.broker.slow_disks import SlowDisks
from groupcoord.broker.storage_backend import IN_MEMORY_STORAGE, StorageBackend
from groupcoord.broker.topic_config import internal_topic
from groupcoord.broker.topic_store import Topic, TopicStore
from groupcoord.config.broker_config import BrokerConfig
from groupcoord.core.background_work import WorkRunner, run_inline
from groupcoord.core.effect_collector import HandlerContext
from groupcoord.core.effects import Call, Effect, LogRecord
from groupcoord.core.events import AdminAction, BrokerTask
from groupcoord.core.timers import Timers
from groupcoord.core.transaction_verification_types import (
    TransactionMarker,
    VerifyTransaction,
)
from groupcoord.protocol.batches.record_batch import NO_PRODUCER_ID, BatchError
from groupcoord.protocol.errors import ErrorCode

_PRODUCER_ID_BLOCK = 1000
_PREFETCHED_AT = 100
"""A broker of a cluster requests its next block when so many ids are left (``RPCProducerIdManager``, PREFETCH_THRESHOLD)."""

Then = Callable[[HandlerContext], None]
GoOn = Callable[[HandlerContext, Call, Any, Then], None]
"""Continues a request that has waited: context, call, request, and the function that continues it."""


class Broker:
    """The topics and logs of a node. Topics that ``storage`` has kept are restored.

    A node may stand for a ``cluster`` of several brokers; ``config`` is then the configuration of the first one.

    ``new_topic_id`` and ``new_session_id`` are the sources of randomness, ``now_ms`` is the time of the start. The node sets
    ``on_topics_deleted``, which is called in the same turn, so that the committed offsets of deleted topics are removed.
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
        """Runs long work, such as decompression: inline, or in a thread of the server."""
        self.compacts_at_once = False
        """Compact inline and never in the background: for tests that move the clock."""
        self.cluster = cluster or BrokerRegistry(config.node_id)
        self.storage = storage
        self.timers = Timers()
        self.topics = TopicStore(config, new_topic_id=new_topic_id, storage=storage)
        self.topics.changes.several_brokers = len(self.cluster) > 1
        self.fetch_purgatory = FetchPurgatory(self.timers)
        self.disks = SlowDisks(self.timers)
        """Delays appends of brokers whose disks are configured to be slow."""
        self.go_on: GoOn = lambda ctx, _call, _request, then: then(ctx)
        """Continues a request that has waited for a disk. With several brokers the node replaces it, as brokers may have
        failed."""
        self.high_watermarks = HighWatermarks()
        """The followers' log end offsets, high watermarks, and requests that wait for them."""
        self.replicate: Callable[[HandlerContext, Topic, int], None] = lambda _turn, _topic, _partition: None
        """Starts the followers' fetches from a leader that has new records; set by the node if there are several brokers."""
        self.fetch_sessions_of = tuple(
            FetchSessions(config.max_incremental_fetch_session_cache_slots, new_session_id) for _ in self.cluster.ids
        )
        """The fetch sessions of each broker."""
        self._producer_ids_end = storage.next_producer_id()
        self._producer_ids = [range(0)] * len(self.cluster)
        self._next_producer_ids = [range(0)] * len(self.cluster)
        self.verify_transaction: VerifyTransaction
        """Verifies with the transaction coordinator that partitions are in a transaction; set by the node."""
        self.on_topics_deleted: Callable[[HandlerContext, Sequence[Topic]], None] = lambda _turn, _topics: None
        self.on_configured: Callable[[HandlerContext], None] = lambda _turn: None
        """Called when configurations may have changed; set by the controller."""
        self.is_cut_off: Callable[[int], bool] = lambda _broker: False
        """Is a broker cut off from the controller, so that it does not learn of its decisions? Set by a node of several
        brokers."""
        self.uncreated: dict[str, int] = {}
        """Topics to auto-create, with the time of the request (ms), when the controller is back."""
        self.on_append: Callable[[PartitionLog], object] = lambda _log: None
        """Called with each log that has grown, in the same turn; set by a detailed trace."""
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
        """The next producer id of ``broker``. Raises BatchError if it cannot be stored, or the controller with more ids is
        away.

        Each broker takes blocks of a thousand (``ProducerIdsBlock``). The storage records each block, so that no id is given
        out twice, even after a restart.
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
        """Add the topics that the storage has kept. Raises Refused if partitions that an adopted topic lacks cannot be
        stored."""
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
        """Append records of the node itself as one batch; the effects are the responses to fetches that waited for them.

        With a producer id they are part of its transaction, which has been verified. Raises BatchError if they cannot be
        stored, and KeyError if there is no such partition.
        """
        log = self._log_to_write(topic, partition)
        ctx = HandlerContext(now_ms, BrokerTask(f"the coordinator appends to {log.name}"))
        log.append_own(records, now_ms, producer_id=producer_id, producer_epoch=producer_epoch)
        self.appended(ctx, self.topics[topic], partition)
        return ctx.effects

    def append_marker(self, topic: str, partition: int, marker: TransactionMarker, now_ms: int) -> list[Effect]:
        """Append a transaction marker; the effects are the responses to fetches that waited for it.

        Raises BatchError if the marker is refused or cannot be stored, and KeyError if there is no such partition.
        """
        log = self._log_to_write(topic, partition)
        ctx = HandlerContext(now_ms, BrokerTask(f"a transaction marker is appended to {log.name}"))
        log.append_marker(marker, now_ms)
        self.appended(ctx, self.topics[topic], partition)
        return ctx.effects

    def _log_to_write(self, topic: str, partition: int) -> PartitionLog:
        """The log of a partition for an append with acks=all. Raises BatchError if too few replicas are in sync, and
        KeyError."""
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
        """The log of a leader has grown: answer the fetches that now have enough, start the followers' fetches, and schedule
        retention and cleaning of the log.
        """
        log = topic.partitions[partition]
        self._log_manager.appended(log, ctx.now_ms)
        tell_deletions(ctx, log)
        self.on_append(log)
        self.fetch_purgatory.appended(ctx, log)
        if topic.copies:
            self.replicate(ctx, topic, partition)

    def follower_appended(self, ctx: HandlerContext, copy: PartitionLog) -> None:
        """The log of a follower, or its high watermark, has advanced."""
        self._log_manager.appended(copy, ctx.now_ms)
        tell_deletions(ctx, copy)
        self.fetch_purgatory.appended(ctx, copy)

    def move_leader(self, ctx: HandlerContext, topic: Topic, partition: int, broker_id: int) -> None:
        """Make another broker the leader of a partition; fetches that wait at a broker which may no longer answer them get an
        error."""
        before_leader, before = topic.metadata.leaders[partition], topic.partitions[partition]
        topic.move_leader(partition, broker_id, ctx.now_ms)
        self._leader_changed(ctx, topic, partition, before_leader, before)

    # --- replicas

    def set_partition_state(
        self, ctx: HandlerContext, topic: Topic, partition: int, state: PartitionState, *, renewed: bool = False
    ) -> None:
        """Set the ISR, leader or replicas of a partition, and complete what waited for that.

        A new replica starts with an empty log. ``renewed``: the leader epoch is incremented although the leader stays.
        """
        before, log = topic.metadata.partitions[partition], topic.partitions[partition]
        copies = topic.replica_logs_of(partition)
        topic.set_state(partition, state, renewed=renewed)
        for removed in set(copies) - set(topic.replica_logs_of(partition)):
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
        """Recompute the high watermark of a partition; if it has advanced, complete the requests that waited for it."""
        log, state = topic.partitions[partition], topic.metadata.partitions[partition]
        if self.high_watermarks.isr_changed(ctx, log, state.leader, state.isr, topic.min_isr(partition)):
            self.fetch_purgatory.appended(ctx, log)

    def becomes_follower(self, ctx: HandlerContext, copy: PartitionLog) -> None:
        """A broker learns that another one leads the partition; ``copy`` is its own log of it."""
        self.high_watermarks.follow(copy)
        self.high_watermarks.stop_waiting(ctx, copy, ErrorCode.NOT_LEADER_OR_FOLLOWER)

    def require_in_sync(self, topic: Topic, partition: int) -> None:
        """Raises BatchError(NOT_ENOUGH_REPLICAS) if too few replicas are in sync for acks=all.

        Source: ``Partition.appendRecordsToLeader``.
        """
        if not topic.copies:
            return  # a single broker is always in sync
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
        """``before`` is the log of the previous leader, which does not learn of the change while it is cut off."""
        state, log = topic.metadata.partitions[partition], topic.partitions[partition]
        number = NO_LEADER if state.leader == NO_LEADER else self.cluster.ids.index(state.leader)
        hears = not self.is_cut_off(before_leader)
        if before is not log and hears:
            self.high_watermarks.follow(before)
        if state.leader != NO_LEADER:
            self.high_watermarks.lead(log)
            self.replicated(ctx, topic, partition)
        if hears:
            self.high_watermarks.stop_waiting(ctx, before, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        self.replicate(ctx, topic, partition)
        for copy in {before: None, **dict.fromkeys(topic.replica_logs_of(partition).values())}:
            self.fetch_purgatory.leader_moved(ctx, copy, number)

    # --- leaders and clients that fetch

    def leads(self, call: Call, topic: Topic, partition: int) -> bool:
        """Whether the broker that ``call`` came to leads that partition."""
        return topic.metadata.leaders[partition] == self.cluster.id_of(call)

    def check_leader(self, call: Call, topic: Topic, partition: int, epoch: int, *, leader_only: bool) -> ErrorCode:
        """The error of a client that may not read the partition at the broker that ``call`` came to: wrong broker or leader
        ``epoch``, unless that is UNDEFINED_EPOCH.

        Source: ``ReplicaManager.getPartitionOrError`` and ``Partition.getLocalLog``.
        """
        here = self.cluster.id_of(call)
        if here not in topic.metadata.replicas[partition]:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        present = self.log_here(call, topic, partition).leader_epoch
        if epoch not in (UNDEFINED_EPOCH, present):
            return ErrorCode.UNKNOWN_LEADER_EPOCH if epoch > present else ErrorCode.FENCED_LEADER_EPOCH
        if leader_only and topic.metadata.leaders[partition] != here:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        return ErrorCode.NONE

    def compact(self, topic: str, partition: int, now_ms: int) -> list[Effect]:
        """Compact a whole partition now, whatever its configuration says; the event LogCleaned has the result.

        Raises KeyError if there is no such partition.
        """
        log = self.existing_log(topic, partition)
        ctx = HandlerContext(now_ms, AdminAction(f"{log.name} is to be compacted"))
        self._log_manager.compact(ctx, log)
        return ctx.effects

    def topics_deleted(self, ctx: HandlerContext, topics: Sequence[Topic]) -> None:
        """``topics`` were removed from the store: fail the requests that wait for them, and call ``on_topics_deleted``."""
        for topic in topics:
            logs = list(topic.logs())
            self.fetch_purgatory.logs_deleted(ctx, logs)
            for log in logs:
                self.high_watermarks.stop_waiting(ctx, log, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            self.high_watermarks.forget(logs)
        self.on_topics_deleted(ctx, topics)

    def _compaction_runner(self) -> WorkRunner:
        return run_inline if self.compacts_at_once else self.run_work

    def _logs(self) -> Iterator[PartitionLog]:
        for topic in self.topics.all():
            yield from topic.logs()

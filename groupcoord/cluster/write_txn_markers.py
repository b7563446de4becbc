"""Writes transaction markers into partition logs, and verifies, before a transactional offset commit, that the transaction
includes the group's partition of ``__consumer_offsets`` (KIP-890).

Markers come from the transaction coordinator, or in WriteTxnMarkers requests. They are written with acks=all: the sender gets
the result when all in-sync replicas have them. In a partition of ``__consumer_offsets`` the marker commits or drops pending
offsets. Sources: ``KafkaApis.handleWriteTxnMarkersRequest``, ``CoordinatorPartitionWriter.maybeStartTransactionVerification``
and ``ReplicaManager.maybeStartTransactionVerificationForPartition``.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from groupcoord.broker.broker import Broker
from groupcoord.broker.leader_election_and_isr import NO_LEADER
from groupcoord.broker.topic_names import CONSUMER_OFFSETS, TRANSACTION_STATE
from groupcoord.broker.topic_store import Topic
from groupcoord.cluster.network_cuts import NetworkCuts
from groupcoord.coordinator.group_coordinator_shard import RuntimeShard
from groupcoord.core.effect_collector import HandlerContext
from groupcoord.core.effects import Call
from groupcoord.core.java_hash_order import hash_map_order, partition_hash, string_hash
from groupcoord.core.timers import TimerKey
from groupcoord.core.transaction_verification_types import (
    TopicPartition,
    TransactionalWrite,
    TransactionMarker,
    Verified,
    VerifyTransaction,
)
from groupcoord.protocol.apis.write_txn_markers import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from groupcoord.protocol.batches.record_batch import NO_SEQUENCE, BatchError
from groupcoord.protocol.errors import ErrorCode

_NONE = -1
_COORDINATOR_IS_NOT_READY = frozenset(
    {ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR}
)
"""Errors of group coordinators, which the transaction coordinator does not expect: it gets NOT_LEADER_OR_FOLLOWER."""

Told = Callable[[HandlerContext, ErrorCode], None]


class TransactionMarkers:
    """Writes markers to the logs of ``broker``; ``shards`` are those of ``__consumer_offsets``, by partition."""

    def __init__(self, broker: Broker, shards: Sequence[RuntimeShard], cuts: NetworkCuts) -> None:
        self._broker, self._shards, self._cuts = broker, shards, cuts

    def write(
        self,
        ctx: HandlerContext,
        marker: TransactionMarker,
        partition: TopicPartition,
        told: Told,
        *,
        is_written: bool = False,
    ) -> None:
        """Write ``marker`` to ``partition``, and call ``told`` with the result: UNKNOWN_TOPIC_OR_PARTITION if there is none.

        REQUEST_TIMED_OUT if the in-sync replicas do not have it within ``request.timeout.ms``; it stays in the leader's log.
        ``is_written``: the delay of a slow disk has passed.
        """
        topic, number = partition
        if _NONE in (marker.producer_id, marker.producer_epoch):
            told(ctx, ErrorCode.UNKNOWN_SERVER_ERROR)  # Kafka cannot create such a batch
        elif (found := self._broker.topics.get(topic)) is None or not 0 <= number < len(found.partitions):
            told(ctx, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        elif not self._broker.is_led(found, number):
            told(ctx, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        elif topic == CONSUMER_OFFSETS:
            shard = self._shards[number]
            shard.complete_transaction(ctx, marker, lambda later: told(later, ErrorCode.NONE), partial(_failed, told))
        elif not is_written and self._broker.disks.takes_time(leader := found.metadata.leaders[number]):
            self._broker.disks.write(
                ctx.now_ms,
                leader,
                f"{topic}-{number}",
                lambda later: self.write(later, marker, partition, told, is_written=True),
                lambda later: told(later, ErrorCode.NOT_LEADER_OR_FOLLOWER),
            )
        else:
            self._append(ctx, marker, found, number, told)

    def _append(self, ctx: HandlerContext, marker: TransactionMarker, topic: Topic, number: int, told: Told) -> None:
        """Source: ``ReplicaManager.appendRecords`` with ``requiredAcks`` -1, ``DelayedProduce``."""
        broker, log = self._broker, topic.partitions[number]
        try:
            ctx.effects += broker.append_marker(topic.name, number, marker, ctx.now_ms)
        except BatchError as problem:
            told(ctx, problem.error)
            return
        end = log.log_end_offset
        if log.high_watermark >= end:
            told(ctx, ErrorCode.NONE)
            return
        key = TimerKey("marker", log.name, f"offset {end - 1} of epoch {log.leader_epoch}")

        def replicated(later: HandlerContext, error: ErrorCode) -> None:
            broker.timers.cancel(key)
            told(later, error)

        def timed_out(later: HandlerContext) -> None:
            stop_waiting()
            told(later, ErrorCode.REQUEST_TIMED_OUT)

        stop_waiting = broker.high_watermarks.wait(log, end, replicated)
        broker.timers.schedule(key, ctx.now_ms + int(str(broker.config["request.timeout.ms"])), timed_out)

    def send(
        self, coordinator: int, ctx: HandlerContext, marker: TransactionMarker, partition: TopicPartition, told: Told
    ) -> None:
        """As ``write``, from the broker that leads partition ``coordinator`` of ``__transaction_state``: NETWORK_EXCEPTION if
        the network between it and the leader of ``partition`` is cut."""
        if self._cuts and self._cuts.is_cut(self._leader(TRANSACTION_STATE, coordinator), self._leader(*partition)):
            told(ctx, ErrorCode.NETWORK_EXCEPTION)
        else:
            self.write(ctx, marker, partition, told)

    def _leader(self, topic: str, partition: int) -> int:
        found = self._broker.topics.get(topic)
        return NO_LEADER if found is None or partition >= len(found.partitions) else found.metadata.leaders[partition]

    def handle(self, ctx: HandlerContext, call: Call, request: WriteTxnMarkersRequest) -> None:
        """Respond to ``call`` when all markers are written or have failed.

        As in Kafka there is no response if a marker names an existing partition twice, or if the last marker names none that
        exists and others do.
        """
        errors: dict[int, dict[TopicPartition, ErrorCode]] = {}
        left, written = len(request.markers), 0

        def completed(producer_id: int, results: Mapping[TopicPartition, ErrorCode], later: HandlerContext) -> None:
            nonlocal left
            errors.setdefault(producer_id, {}).update((each, results[each]) for each in _in_order(results))
            left -= 1
            if not left:
                later.reply(call, WriteTxnMarkersResponse(markers=_results(errors)))

        for asked in request.markers:
            partitions = [(topic.name, number) for topic in asked.topics for number in topic.partition_indexes]
            missing = dict.fromkeys(
                (partition for partition in partitions if self._broker.log(*partition) is None),
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            )
            if missing:
                errors.setdefault(asked.producer_id, {}).update(missing)
            known = [partition for partition in partitions if partition not in missing]
            if not known:
                left -= 1
                continue
            written += 1
            groups = [partition for partition in known if partition[0] == CONSUMER_OFFSETS]
            others = dict.fromkeys(partition for partition in known if partition[0] != CONSUMER_OFFSETS)
            if others and _NONE in (asked.producer_id, asked.producer_epoch):
                ctx.reply(call, _all_failed(request))  # Kafka cannot create such a batch
                return
            results = _ResultsOfMarker(len(known), partial(completed, asked.producer_id))
            marker = TransactionMarker(
                asked.producer_id,
                asked.producer_epoch,
                asked.coordinator_epoch,
                asked.transaction_result,
                asked.transaction_version,
            )
            for partition in (*groups, *others):
                self.write(ctx, marker, partition, partial(results.told, partition))
        if not written:
            ctx.reply(call, WriteTxnMarkersResponse(markers=_results(errors)))


class _ResultsOfMarker:
    """The results of one marker: ``completed`` is called when ``left`` more of its partitions have one."""

    def __init__(
        self, left: int, completed: Callable[[Mapping[TopicPartition, ErrorCode], HandlerContext], None]
    ) -> None:
        self._left, self._completed = left, completed
        self._results: dict[TopicPartition, ErrorCode] = {}

    def told(self, partition: TopicPartition, ctx: HandlerContext, error: ErrorCode) -> None:
        """The marker is written to ``partition``, or that has failed."""
        self._results[partition] = error
        self._left -= 1
        if not self._left:
            self._completed(self._results, ctx)


def _all_failed(request: WriteTxnMarkersRequest) -> WriteTxnMarkersResponse:
    """The response after an unexpected exception; of several markers of a producer, the last one counts."""
    errors = {
        marker.producer_id: {
            (topic.name, number): ErrorCode.UNKNOWN_SERVER_ERROR
            for topic in marker.topics
            for number in topic.partition_indexes
        }
        for marker in request.markers
    }
    slots = 1 << (len(request.markers) - 1).bit_length()
    return WriteTxnMarkersResponse(markers=_results(errors, slots))


def _failed(told: Told, ctx: HandlerContext, error: ErrorCode) -> None:
    told(ctx, ErrorCode.NOT_LEADER_OR_FOLLOWER if error in _COORDINATOR_IS_NOT_READY else error)


def _in_order(partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
    return hash_map_order(partitions, partition_hash)


def _results(
    errors: Mapping[int, Mapping[TopicPartition, ErrorCode]], slots: int = 16
) -> tuple[WritableTxnMarkerResult, ...]:
    """The results by producer id and topic, in the order of Kafka's maps; that of producer ids is created with ``slots``."""
    results = []
    for producer_id in hash_map_order(errors, lambda number: number ^ number >> 32, slots):
        by_topic: dict[str, list[WritableTxnMarkerPartitionResult]] = {}
        found = errors[producer_id]
        for topic, number in _in_order(found):
            result = WritableTxnMarkerPartitionResult(partition_index=number, error_code=found[topic, number])
            by_topic.setdefault(topic, []).append(result)
        topics = tuple(
            WritableTxnMarkerTopicResult(name=topic, partitions=tuple(by_topic[topic]))
            for topic in hash_map_order(by_topic, string_hash)
        )
        results.append(WritableTxnMarkerResult(producer_id=producer_id, topics=topics))
    return tuple(results)


def verify_offsets(broker: Broker, verify: VerifyTransaction) -> VerifyTransaction:
    """Verifies one partition of ``__consumer_offsets`` with ``verify``, unless the transaction is already open in it."""

    def verify_unless_open(
        ctx: HandlerContext,
        call: Call,
        write: TransactionalWrite,
        partitions: Sequence[TopicPartition],
        verified: Verified,
    ) -> None:
        (partition,) = partitions
        log = broker.log(*partition)
        if log is None:
            raise AssertionError(f"{partition} has a coordinator and no log")
        if not (write.adds or broker.config["transaction.partition.verification.enable"]):
            verified(ctx, {})
            return
        try:
            shown = log.producers.start_verification(
                write.producer_id, write.producer_epoch, NO_SEQUENCE, ctx.now_ms, adds=write.adds
            )
        except BatchError as problem:
            verified(ctx, {partition: problem.error})
            return
        if shown is None:
            verified(ctx, {})
        else:
            verify(ctx, call, write, partitions, verified)

    return verify_unless_open

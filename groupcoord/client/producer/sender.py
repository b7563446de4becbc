"""The producer's Sender without I/O: decides which batches to send, retry or give up, and handles Produce responses.

Its driver appends records, calls ``poll`` whenever something has happened or ``next_deadline`` is reached, carries out the
returned actions in order, and reports the result of each by calling ``connected`` or ``connection_failed``, ``produced`` or
``request_failed``, ``producer_id_given`` or ``producer_id_failed``. After a metadata refresh it calls
``accumulator.set_leaders``.
"""

import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from groupcoord.assignors import TopicPartition
from groupcoord.client.client_errors import BrokerError, ClientError, DisconnectedError
from groupcoord.client.exponential_backoff import ExponentialBackoff
from groupcoord.client.producer import producer_events as e
from groupcoord.client.producer.producer_batch import HeaderPairs, ProducerBatch
from groupcoord.client.producer.producer_config import ProducerConfig
from groupcoord.client.producer.producer_errors import DeliveryTimeoutError, TransactionAbortedError
from groupcoord.client.producer.record_accumulator import Appended, RecordAccumulator, SendReason
from groupcoord.client.producer.sequence_numbers import ProducerIdAndEpoch, SequenceNumbers
from groupcoord.client.producer.transaction_manager import FATAL_FOR_BATCHES, ProducerState, TransactionManager
from groupcoord.client.trouble_log import TroubleLog
from groupcoord.core.events import AdminAction, Answered, Cause, Event, TimerFired, partition_names
from groupcoord.protocol.apis.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from groupcoord.protocol.apis.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.errors import ErrorCode as E

_NO_TRANSACTION_TIMEOUT_MS = (1 << 31) - 1
_METADATA_IS_OLD = frozenset(
    {
        E.NOT_LEADER_OR_FOLLOWER,
        E.UNKNOWN_TOPIC_OR_PARTITION,
        E.UNKNOWN_TOPIC_ID,
        E.INCONSISTENT_TOPIC_ID,
        E.LEADER_NOT_AVAILABLE,
        E.FENCED_LEADER_EPOCH,
        E.UNKNOWN_LEADER_EPOCH,
        E.KAFKA_STORAGE_ERROR,
        E.NETWORK_EXCEPTION,
    }
)
"""The errors of ``InvalidMetadataException``."""


class Connect(NamedTuple):
    """Open the connection to a broker."""

    node_id: int


class SendBatches(NamedTuple):
    """Send ``batches``, at most one per partition, to a broker in a Produce request."""

    node_id: int
    batches: Sequence[ProducerBatch]


class GetProducerId(NamedTuple):
    """Send InitProducerId to any broker."""

    request: InitProducerIdRequest


class RefreshMetadata(NamedTuple):
    """Refresh the metadata of these topics, whose leaders seem to have changed."""

    topics: frozenset[str]


class BatchDone(NamedTuple):
    """A batch is stored at ``base_offset`` (-1: not known), or has failed with ``error``.

    ``append_time_ms`` is the timestamp of its records if the topic has LogAppendTime, and -1 otherwise.
    """

    batch: ProducerBatch
    base_offset: int = -1
    append_time_ms: int = -1
    error: ClientError | None = None


Action = Connect | SendBatches | GetProducerId | RefreshMetadata | BatchDone


class _Node:
    """The sender's state of a broker; its times are those of the latest drain, and of the latest attempt to send."""

    def __init__(self) -> None:
        self.connected = self.connecting = False
        self.in_flight = self.failures = 0
        self.retry_at_ms: int | None = None
        self.ready_ms = self.drained_ms = 0


class Sender:
    """The sender of one producer; ``chance`` returns a random number in [0, 1).

    ``emit`` is called with its events, if ``told_of_steps``; ``troubles`` logs failures that delay records.
    """

    def __init__(
        self,
        config: ProducerConfig,
        *,
        client_id: str,
        chance: Callable[[], float],
        emit: Callable[[Event], None],
        told_of_steps: bool = True,
        transactions: TransactionManager | None = None,
        troubles: TroubleLog | None = None,
    ) -> None:
        self.accumulator = RecordAccumulator(config, chance)
        self.transactions = transactions
        self.sequences = SequenceNumbers(transactional=transactions is not None) if config.is_idempotent else None
        self.failure: ClientError | None = None
        """What the producer cannot go on with."""
        self._config = config
        self._client_id = client_id
        self._emit, self._tells_steps = emit, told_of_steps
        self._reconnect = ExponentialBackoff(config.reconnect_backoff_ms, config.reconnect_backoff_max_ms, chance)
        self._retry = ExponentialBackoff(config.retry_backoff_ms, config.retry_backoff_max_ms, chance)
        self._nodes: dict[int, _Node] = {}
        self._in_flight: dict[ProducerBatch, None] = {}
        self._asking_for_id = False
        self._id_failures = 0
        self._ask_for_id_at_ms = 0
        self._next_check_ms: int | None = None
        self._troubles = troubles
        self._chosen: dict[str, TopicPartition] = {}  # by topic, the sticky partition of the last record without a key
        self._cause: Cause = AdminAction("send")
        self._now_ms = 0
        self._actions: list[Action] = []
        if config.partitioner_availability_timeout_ms:
            self.accumulator.avoid(self._is_slow)

    # Sending.

    def append(
        self,
        topic: str,
        partition: int | None,
        timestamp_ms: int,
        key: bytes | None,
        value: bytes | None,
        headers: HeaderPairs,
        promise: Any,
        now_ms: int,
    ) -> Appended | None:
        """Add a record: see ``RecordAccumulator.append``."""
        appended = self.accumulator.append(topic, partition, timestamp_ms, key, value, headers, promise, now_ms)
        if self._tells_steps and appended is not None:
            self._now_ms, self._cause, batch = now_ms, AdminAction("send"), appended.batch
            if partition is None and self._chosen.get(topic) != batch.partition:
                self._chosen[topic] = batch.partition
                self._tell(e.PartitionChosen, partition=batch.partition)
            if appended.opened:
                self._tell_of_batch(e.BatchOpened, batch, limit_bytes=batch.write_limit)
        return appended

    def poll(self, now_ms: int) -> list[Action]:
        """The actions to carry out now."""
        self._now_ms, self._next_check_ms = now_ms, None
        self._expire()
        if self.transactions is not None:
            self._follow(self.transactions)
        if self.failure is not None:
            self._fail_all(self.failure)
        else:
            self._go_on_with_epoch()
            self._send()
        actions, self._actions = self._actions, []
        return actions

    def _follow(self, transactions: TransactionManager) -> None:
        """Apply the state of the transaction to the batches: an aborted one drops its unsent batches."""
        assert self.sequences is not None  # noqa: S101 - transactions need idempotence
        self.sequences.producer = ProducerIdAndEpoch(transactions.producer_id, transactions.producer_epoch)
        if transactions.state is ProducerState.FATAL_ERROR:
            self.failure = transactions.error
        elif transactions.state in (ProducerState.ABORTABLE_ERROR, ProducerState.ABORTING_TRANSACTION):
            error = TransactionAbortedError("the transaction is aborted, and this record was not sent before")
            error.__cause__ = transactions.error
            for batch in self.accumulator.take_unsent():
                self._not_stored(batch, error)

    def next_deadline(self) -> int | None:
        """When to call ``poll`` again (ms), if nothing happens before; None if there is no deadline."""
        times = [self._next_check_ms]
        if self._waits_for_id() and not self._asking_for_id:
            times.append(self._ask_for_id_at_ms)
        oldest = next(iter(self.accumulator.incomplete), None)
        if oldest is not None:
            times.append(oldest.created_ms + self._config.delivery_ms)
        return min((at_ms for at_ms in times if at_ms is not None), default=None)

    def _send(self) -> None:
        now_ms, accumulator = self._now_ms, self.accumulator
        if self._waits_for_id() and not self._asking_for_id and now_ms >= self._ask_for_id_at_ms:
            self._asking_for_id = True
            asked = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=_NO_TRANSACTION_TIMEOUT_MS)
            self._actions.append(GetProducerId(asked))
        ready = accumulator.ready(now_ms)
        times = [ready.next_check_ms]
        if ready.leaderless:
            self._actions.append(RefreshMetadata(frozenset(ready.leaderless)))
        for node_id in ready.nodes:
            node = self._node(node_id)
            node.ready_ms = now_ms
            if self._is_ready(node_id, node):
                node.drained_ms = now_ms
                drained = list(accumulator.drain(node_id, now_ms, self._may_send))
                if drained:
                    self._send_batches(node_id, node, drained)
            else:
                times.append(node.retry_at_ms)
        self._next_check_ms = min((at_ms for at_ms in times if at_ms is not None), default=None)

    def _waits_for_id(self) -> bool:
        """Does an idempotent, non-transactional producer have batches to send and no producer id yet?"""
        if self.sequences is None or self.transactions is not None or self.sequences.producer.producer_id >= 0:
            return False
        return bool(self.accumulator.incomplete) and self.failure is None

    def _is_ready(self, node_id: int, node: _Node) -> bool:
        """Can another request be sent to the broker? If there is no connection, one is opened."""
        if node.connected:
            return node.in_flight < self._config.max_in_flight_requests_per_connection
        if not node.connecting and (node.retry_at_ms is None or self._now_ms >= node.retry_at_ms):
            node.connecting, node.retry_at_ms = True, None
            self._actions.append(Connect(node_id))
        return False

    def _may_send(self, batch: ProducerBatch) -> bool:
        if self.sequences is None:
            return True
        if self.transactions is not None:
            knows_as_whom = self.transactions.state is ProducerState.IN_TRANSACTION or batch.has_sequence
        else:
            knows_as_whom = self.sequences.producer.producer_id >= 0
        return knows_as_whom and self.sequences.may_send(batch)

    def _send_batches(self, node_id: int, node: _Node, drained: list[tuple[ProducerBatch, SendReason]]) -> None:
        node.in_flight += 1
        for batch, reason in drained:
            if self.sequences is not None and not batch.has_sequence:
                if self.transactions is not None:
                    batch.transaction = self.transactions.new_batch(batch.partition, batch.record_count)
                self.sequences.assign(batch)
            self._in_flight[batch] = None
            if self._config.max_in_flight_requests_per_connection == 1:
                self.accumulator.muted.add(batch.partition)
            if self._tells_steps:
                self._cause = self._cause_of(batch, reason)
                self._tell_of_batch(
                    e.BatchSent,
                    batch,
                    why=reason.value,
                    broker=node_id,
                    records=batch.record_count,
                    size_bytes=batch.size,
                    base_sequence=batch.base_sequence,
                    attempts=batch.attempts,
                )
        self._actions.append(SendBatches(node_id, [batch for batch, _ in drained]))

    def _cause_of(self, batch: ProducerBatch, reason: SendReason) -> Cause:
        waits_ms = {SendReason.LINGERED: self._config.linger_ms, SendReason.BACKED_OFF: batch.backoff_ms}.get(reason)
        if waits_ms is None:
            return AdminAction(reason.value)
        return self._timer(reason.name.lower(), batch, batch.last_attempt_ms + waits_ms)

    def _timer(self, kind: str, batch: ProducerBatch, due_ms: int) -> TimerFired:
        return TimerFired(kind, self._client_id, partition_names([batch.partition]), due_ms)

    # Results of actions.

    def connected(self, node_id: int, now_ms: int) -> None:
        """``Connect`` succeeded."""
        self._now_ms, self._cause = now_ms, Answered("ApiVersions", E.NONE.name)
        node = self._node(node_id)
        node.connected, node.connecting, node.failures = True, False, 0
        self.trouble_is_over(f"broker {node_id}", self._now_ms)

    def connection_failed(self, node_id: int, error: ClientError, now_ms: int) -> None:
        """``Connect`` failed, or the connection was lost."""
        self._now_ms, self._cause = now_ms, Answered("ApiVersions", E.NETWORK_EXCEPTION.name)
        node = self._node(node_id)
        node.connecting = False
        if not isinstance(error, DisconnectedError):
            self.failure = error
        self._lost(node_id, node, error)

    def _lost(self, node_id: int, node: _Node, error: ClientError) -> None:
        """The connection is lost; refresh metadata, since the leaders may have changed."""
        node.connected = False
        node.retry_at_ms = self._now_ms + self._reconnect.delay_ms(node.failures)
        node.failures += 1
        self.begin_trouble(f"broker {node_id}", str(error), self._now_ms)
        self._actions.append(RefreshMetadata(frozenset(self.accumulator.topics)))

    def produced(
        self, sent: SendBatches, answers: Mapping[TopicPartition, PartitionProduceResponse] | None, now_ms: int
    ) -> None:
        """``SendBatches`` succeeded, with the response in ``answers``; None with ``acks=0``, which has no response."""
        self._now_ms = now_ms
        self._node(sent.node_id).in_flight -= 1
        for batch in sent.batches:
            if answers is None:
                self._cause = AdminAction("acks=0")
                self._acknowledged(batch, -1, -1)
            else:
                self._answered(batch, answers.get(batch.partition))

    def request_failed(self, sent: SendBatches, error: ClientError, now_ms: int) -> None:
        """``SendBatches`` failed without a response: its batches may or may not be stored."""
        self._now_ms = now_ms
        node = self._node(sent.node_id)
        node.in_flight -= 1
        code = E.NETWORK_EXCEPTION if isinstance(error, DisconnectedError) else E.UNSUPPORTED_VERSION
        self._cause = Answered("Produce", code.name)
        if code is E.NETWORK_EXCEPTION and node.connected:
            self._lost(sent.node_id, node, error)
        for batch in sent.batches:
            self._refused(batch, code, -1, str(error))

    def producer_id_given(self, response: InitProducerIdResponse, now_ms: int) -> None:
        """``GetProducerId`` has its response."""
        self._now_ms = now_ms
        code = ErrorCode(response.error_code)
        self._cause = Answered("InitProducerId", code.name)
        if code is E.NONE:
            assert self.sequences is not None  # noqa: S101 - only an idempotent producer sends it
            self._asking_for_id, self._id_failures = False, 0
            self.sequences.has_new_id(ProducerIdAndEpoch(response.producer_id, response.producer_epoch))
            self.trouble_is_over("producer id", self._now_ms)
            self._tell(e.ProducerIdGiven, producer_id=response.producer_id, epoch=response.producer_epoch)
        elif code.retriable:
            self.producer_id_failed(BrokerError(code, "InitProducerId"), now_ms)
        else:
            self.failure = BrokerError(code, "InitProducerId")

    def producer_id_failed(self, error: ClientError, now_ms: int) -> None:
        """``GetProducerId`` failed without a response; it is retried."""
        self._now_ms = now_ms
        self._asking_for_id = False
        if not isinstance(error, DisconnectedError | BrokerError):
            self.failure = error
            return
        self._ask_for_id_at_ms = now_ms + self._retry.delay_ms(self._id_failures)
        self._id_failures += 1
        self.begin_trouble("producer id", str(error), self._now_ms)

    # Batches.

    def _answered(self, batch: ProducerBatch, answer: PartitionProduceResponse | None) -> None:
        if answer is None:
            self._refused(batch, E.UNKNOWN_SERVER_ERROR, -1, "the answer does not say what became of it")
            return
        code = ErrorCode(answer.error_code)
        self._cause = Answered("Produce", code.name)
        if code in (E.NONE, E.DUPLICATE_SEQUENCE_NUMBER):
            self._acknowledged(batch, answer.base_offset if code is E.NONE else -1, answer.log_append_time_ms)
        else:
            said = [answer.error_message, *(each.batch_index_error_message for each in answer.record_errors)]
            self._refused(batch, code, answer.log_start_offset, " ".join(filter(None, said)))

    def _acknowledged(self, batch: ProducerBatch, base_offset: int, append_time_ms: int) -> None:
        self._unmute(batch)
        if batch.done:
            return  # it expired before
        if self.sequences is not None:
            self.sequences.acknowledged(batch, base_offset)
        if self.transactions is not None and batch.transaction is not None:
            self.transactions.batch_answered(batch.transaction, E.NONE)
        self.trouble_is_over(partition_names([batch.partition]), self._now_ms)
        if self._tells_steps:
            self._tell_of_batch(e.BatchAcknowledged, batch, records=batch.record_count, base_offset=base_offset)
        self._done(BatchDone(batch, base_offset, append_time_ms))

    def _refused(self, batch: ProducerBatch, code: ErrorCode, log_start_offset: int, said: str) -> None:
        """Handle an error of a batch: retry, split or fail it (``Sender.completeBatch``)."""
        self._unmute(batch)
        if code in _METADATA_IS_OLD:
            self._actions.append(RefreshMetadata(frozenset([batch.partition[0]])))
        if batch.done:
            return
        error = f"{code.name}: {said or code.text}"
        if code is E.MESSAGE_TOO_LARGE and batch.record_count > 1:
            self._split(batch)
        elif self._may_retry(batch, code, log_start_offset):
            self._in_flight.pop(batch)
            self.accumulator.reenqueue(batch, self._now_ms)
            self._tell_of_batch(e.BatchRetried, batch, error=error, after_ms=batch.backoff_ms)
            self.begin_trouble(partition_names([batch.partition]), error, self._now_ms)
        else:
            self.begin_trouble(partition_names([batch.partition]), error, self._now_ms)
            self._fail(batch, code, BrokerError(code, f"Produce to {partition_names([batch.partition])}", said))

    def _may_retry(self, batch: ProducerBatch, code: ErrorCode, log_start_offset: int) -> bool:
        if batch.attempts >= self._config.retries or self._is_expired(batch) or self.failure is not None:
            return False
        if self.sequences is not None:
            return self.sequences.may_retry(batch, code, log_start_offset)
        return code.retriable

    def _split(self, batch: ProducerBatch) -> None:
        del self._in_flight[batch]
        parts = self.accumulator.split(batch)
        if self.sequences is not None:
            self.sequences.split(batch, parts)
        self._tell_of_batch(e.BatchSplit, batch, into=tuple(part.number for part in parts))

    def _fail(self, batch: ProducerBatch, code: ErrorCode, error: ClientError) -> None:
        if code in FATAL_FOR_BATCHES:
            self.failure = error
        if self.sequences is not None:
            self.sequences.failed(batch, code, retries_left=batch.attempts < self._config.retries)
        if self.transactions is not None and batch.transaction is not None:
            self.transactions.batch_failed(batch.transaction, error, abortable=code not in FATAL_FOR_BATCHES)
        self._not_stored(batch, error)

    def _not_stored(self, batch: ProducerBatch, error: ClientError) -> None:
        self._tell_of_batch(e.BatchFailed, batch, records=batch.record_count, error=str(error))
        self._done(BatchDone(batch, error=error))

    def _done(self, done: BatchDone) -> None:
        self._in_flight.pop(done.batch, None)
        self.accumulator.complete(done.batch)
        self._actions.append(done)

    def _unmute(self, batch: ProducerBatch) -> None:
        self.accumulator.muted.discard(batch.partition)

    def _is_expired(self, batch: ProducerBatch) -> bool:
        return self._now_ms - batch.created_ms >= self._config.delivery_ms

    def _expire(self) -> None:
        """Fail the batches older than ``delivery.timeout.ms``, queued or in flight."""
        expired = self.accumulator.take_expired(self._now_ms)
        expired += [batch for batch in self._in_flight if self._is_expired(batch)]
        for batch in expired:
            was_sent = batch in self._in_flight or batch.attempts > 0
            after_ms = self._now_ms - batch.created_ms
            self._cause = self._timer("delivery", batch, batch.created_ms + self._config.delivery_ms)
            where, why = partition_names([batch.partition]), self._why_nothing_was_sent(batch)
            error = DeliveryTimeoutError(
                f"{batch.record_count} record(s) for {where} were not acknowledged in {after_ms} ms{why}"
            )
            if self.sequences is not None:
                self.sequences.expired(batch)
            if self.transactions is not None and batch.transaction is not None:
                self.transactions.batch_failed(batch.transaction, error)
            self._tell_of_batch(e.BatchExpired, batch, records=batch.record_count, after_ms=after_ms, was_sent=was_sent)
            self.begin_trouble(where, str(error), self._now_ms)
            self._done(BatchDone(batch, error=error))

    def _why_nothing_was_sent(self, batch: ProducerBatch) -> str:
        leader = self.accumulator.leader(batch.partition).node_id
        if leader < 0:
            return ": the partition has no leader"
        return "" if self._node(leader).connected else f": there is no connection to its leader, broker {leader}"

    def _fail_all(self, error: ClientError) -> None:
        for queues in self.accumulator.topics.values():
            for queue in queues.queues.values():
                queue.clear()
        for batch in list(self.accumulator.incomplete):
            self.begin_trouble(partition_names([batch.partition]), str(error), self._now_ms)
            self._not_stored(batch, error)

    def close(self, error: ClientError, now_ms: int) -> list[Action]:
        """Fail all unacknowledged batches with ``error``."""
        self.failure, self._cause = error, AdminAction("close")
        return self.poll(now_ms)

    # Epochs.

    def _go_on_with_epoch(self) -> None:
        if self.sequences is None:
            return
        self.sequences.resolve()
        partitions = self.sequences.next_epoch()
        if partitions:
            self._tell(e.EpochBumped, epoch=self.sequences.producer.epoch, partitions=partitions)

    # Brokers.

    def _node(self, node_id: int) -> _Node:
        found = self._nodes.get(node_id)
        if found is None:
            found = self._nodes[node_id] = _Node()
        return found

    def _is_slow(self, node_id: int) -> bool:
        node = self._node(node_id)
        return node.ready_ms - node.drained_ms > self._config.partitioner_availability_timeout_ms

    # Events.

    def _tell(self, event: type[e.ProducerEvent], **fields: Any) -> None:
        if self._tells_steps:
            self._emit(event(at_ms=self._now_ms, cause=self._cause, producer=self._client_id, **fields))

    def _tell_of_batch(self, event: type[e.BatchEvent], batch: ProducerBatch, **fields: Any) -> None:
        self._tell(event, partition=batch.partition, batch=batch.number, **fields)

    def begin_trouble(self, subject: str, reason: str, now_ms: int) -> None:
        """Log that ``subject`` delays records, because of ``reason``."""
        self._now_ms = now_ms
        if self._troubles is not None:
            self._troubles.begin(subject, reason)

    def trouble_is_over(self, subject: str, now_ms: int) -> None:
        """``subject`` works; logged if it failed before."""
        self._now_ms = now_ms
        if self._troubles:
            self._troubles.end(subject)

    def memory_is_short(self, now_ms: int) -> None:
        """Emit the event that a ``send`` waits for memory."""
        self._now_ms, self._cause = now_ms, AdminAction("send")
        self._tell(e.SendBlocked, free_bytes=self.accumulator.free_bytes)

    def transaction_changed(self, state: str, error: Exception | None, now_ms: int) -> None:
        """Emit the event that the transaction has changed its state."""
        self._now_ms, self._cause = now_ms, AdminAction("transaction")
        self._tell(e.TransactionStep, state=state, error="" if error is None else str(error))


def produce_request(
    config: ProducerConfig, batches: Sequence[ProducerBatch], topic_id: Callable[[str], uuid.UUID | None]
) -> ProduceRequest:
    """The Produce request with ``batches``; ``topic_id`` returns the id of a topic, or None."""
    topics: dict[str, list[PartitionProduceData]] = {}
    for batch in batches:
        name, number = batch.partition
        topics.setdefault(name, []).append(PartitionProduceData(index=number, records=batch.data()))
    return ProduceRequest(
        transactional_id=config.transactional_id,
        acks=config.required_acks,
        timeout_ms=config.request_timeout_ms,
        topic_data=tuple(
            TopicProduceData(name=name, topic_id=topic_id(name), partition_data=tuple(each))
            for name, each in topics.items()
        ),
    )


def answers_by_partition(
    request: ProduceRequest, response: ProduceResponse
) -> dict[TopicPartition, PartitionProduceResponse]:
    """The response of each partition; since v13 a response has topic ids in place of names."""
    names = {topic.topic_id: topic.name for topic in request.topic_data}
    return {
        (topic.name or names.get(topic.topic_id, ""), each.index): each
        for topic in response.responses
        for each in topic.partition_responses
    }

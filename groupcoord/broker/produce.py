"""Produce: appends batches to partitions, and waits for the in-sync replicas with acks=all.

Before a transactional batch opens a transaction in its partition, the transaction coordinator verifies that the partition was
added to the transaction; from version 12 on, this request adds it (KIP-890). Source: ``KafkaApis.handleProduceRequest``,
``ReplicaManager.handleProduceAppend``.
"""

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from groupcoord.broker.broker import Broker
from groupcoord.broker.log_segment import INLINE_BYTES
from groupcoord.broker.log_validator import CheckedBatch, LogValidator, RecordValidationError, check_format
from groupcoord.broker.partition_log import PartitionLog
from groupcoord.broker.producer_state_manager import VerificationState
from groupcoord.broker.topic_names import INTERNAL
from groupcoord.broker.topic_store import Topic
from groupcoord.core.background_work import BackgroundWork
from groupcoord.core.effect_collector import HandlerContext
from groupcoord.core.effects import Call
from groupcoord.core.timers import TimerKey
from groupcoord.core.transaction_verification_types import TopicPartition, TransactionalWrite
from groupcoord.protocol.apis.fetch import LeaderIdAndEpoch, NodeEndpoint
from groupcoord.protocol.apis.produce import (
    BatchIndexAndErrorMessage,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from groupcoord.protocol.batches.record_batch import (
    ATTRIBUTES_BYTE,
    COMPRESSION_MASK,
    HEADER_BYTES,
    MAGIC,
    TRANSACTIONAL,
    UP_TO_PRODUCER_ID_BYTES,
    UP_TO_SEQUENCE_BYTES,
    BatchError,
    BatchHeader,
    attributes_of,
    drop_traceback,
    iter_batch_extents,
    read_header,
    validation_cost,
)
from groupcoord.protocol.errors import ErrorCode

ADMIN_CLIENT_ID = "__admin_client"
"""The client id that may write to internal topics."""

_LEADER_FROM = 10  # KIP-951
_ABORTABLE_FROM = 11  # KIP-890: TRANSACTION_ABORTABLE
_ADDS_FROM = 12  # KIP-890: partitions are added to the transaction by writing to them
_NOBODY = -1
_SMALL_BYTES = 8_000
_ALL = -1
_VALID_ACKS = frozenset({_ALL, 0, 1})
# Errors of a coordinator that is not ready; the response has NOT_ENOUGH_REPLICAS instead, which older clients retry.
_TO_BE_TRIED_AGAIN = frozenset(
    {
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    }
)
# For these errors, which it expects, Kafka responds without the log start offset.
_EXPECTED = frozenset(
    {
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.RECORD_LIST_TOO_LARGE,
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.KAFKA_STORAGE_ERROR,
    }
)


class _Target(NamedTuple):
    """A partition as the request names it: by topic id or by name."""

    topic_id: uuid.UUID | None
    topic: str
    partition: int

    @property
    def partition_of_topic(self) -> TopicPartition:
        """The partition, by the name of its topic."""
        return self.topic, self.partition


_Outcomes = dict[_Target, PartitionProduceResponse]
_Checks = dict[_Target, CheckedBatch | BatchError]
_Logs = dict[_Target, tuple[PartitionLog, bytes]]
_Batches = Sequence[tuple[_Target, bytes | None]]


class _Write(NamedTuple):
    """The transactional batches of a request, all of one producer; ``headers`` has their headers."""

    producer_id: int
    producer_epoch: int
    headers: Mapping[_Target, BatchHeader]


class _RefusedError(Exception):
    """The whole request is refused, and nothing is stored; ``message`` is for the producer."""

    def __init__(self, error: ErrorCode, message: str | None = None) -> None:
        super().__init__(error, message)
        self.error = error
        self.message = message


def handle_produce(broker: Broker, ctx: HandlerContext, call: Call, request: ProduceRequest) -> None:
    """Append one batch to each partition; each partition succeeds or fails on its own."""
    _Produce(broker, call, request, ctx.now_ms).go_on(ctx)


class _Produce:
    """One Produce, from request to response. It may wait for the transaction coordinator, or for validation in the background.

    Topics are looked up again after each wait.
    """

    __slots__ = ("_checks", "_errors", "_is_written", "_request", "_shown", "_started_ms", "broker", "call")

    def __init__(self, broker: Broker, call: Call, request: ProduceRequest, now_ms: int) -> None:
        self.broker = broker
        self.call = call
        self._request = request
        self._started_ms = now_ms
        self._errors: Mapping[TopicPartition, ErrorCode] | None = None
        """The partitions that must not be written to; None until the coordinator was asked."""
        self._shown: dict[TopicPartition, VerificationState] = {}
        self._checks: _Checks | None = None
        """The results of validation in the background, if there was any."""
        self._is_written = False
        """Has the delay of a slow disk passed?"""

    def go_on(self, ctx: HandlerContext) -> None:
        """Append and respond, or start what has to be done before: verification, validation, the write to a slow disk."""
        broker, call, request = self.broker, self.call, self._request
        batches = _batches(broker, request)
        try:
            _refuse_transactions((records for _, records in batches), request.transactional_id)
            good, missing, malformed = _sorted_out(broker, call, batches)
            write = _transactional_write(good) if self._errors is None else None
        except _RefusedError as refusal:
            if any(partition.records is None for topic in request.topic_data for partition in topic.partition_data):
                return  # with null records Kafka throws again while it builds the error response, and never responds
            self.respond(ctx, {target: _failed(target, refusal.error, refusal.message) for target, _ in batches})
            return
        if write is not None and (self._verifies or self._adds):
            self._verify(ctx, good, write)
            return
        errors = self._errors or {}
        unverified = {
            target: _unverified(target, errors[target.partition_of_topic], adds=self._adds)
            for target in good
            if target.partition_of_topic in errors
        }
        good = {target: found for target, found in good.items() if target not in unverified}
        if self._checks is None and (work := _long_checks(request, good, ctx.now_ms)) is not None:
            broker.run_work(ctx, call, work, self._checked)
            return
        if broker.disks and self._waits_for_disk(ctx, good):
            return
        grown: list[tuple[Topic, int]] = []
        tried = {target: self._append(ctx, target, log, records, grown) for target, (log, records) in good.items()}
        # The order of Kafka's response: unverified, appended or failed, unknown partitions, malformed batches.
        outcomes = unverified | tried | missing | malformed
        unreplicated = [
            (target, log)
            for target, (log, _) in good.items()
            if request.acks == _ALL and not tried[target].error_code and log.high_watermark < log.log_end_offset
        ]
        if unreplicated:
            _DelayedProduce(self, outcomes, unreplicated, ctx.now_ms + request.timeout_ms)
        else:
            self.respond(ctx, outcomes)
        for topic, partition in grown:
            broker.appended(ctx, topic, partition)

    def _checked(self, later: HandlerContext, found: _Checks) -> None:
        self._checks = found
        self._errors = self._errors or {}
        self.go_on(later)

    # --- transactions

    @property
    def _verifies(self) -> bool:
        return bool(self.broker.config["transaction.partition.verification.enable"])

    @property
    def _adds(self) -> bool:
        return self.call.version >= _ADDS_FROM

    def _verify(self, ctx: HandlerContext, good: _Logs, write: _Write) -> None:
        """Verify with the coordinator the partitions in which the transaction is not open yet, then continue."""
        refused: dict[TopicPartition, ErrorCode] = {}
        self._shown = {}
        for target, header in write.headers.items():
            topic = self.broker.topics.get(target.topic)
            if topic is not None and not self.broker.leads(self.call, topic, target.partition):
                continue  # it will fail with NOT_LEADER_OR_FOLLOWER
            try:
                shown = good[target][0].producers.start_verification(
                    write.producer_id, write.producer_epoch, header.base_sequence, ctx.now_ms, adds=self._adds
                )
            except BatchError as problem:
                refused[target.partition_of_topic] = problem.error
            else:
                if shown is not None:
                    self._shown[target.partition_of_topic] = shown

        def verified(later: HandlerContext, errors: Mapping[TopicPartition, ErrorCode]) -> None:
            config = self.broker.config
            until_ms = self._started_ms + min(
                int(str(config["add.partitions.to.txn.retry.backoff.max.ms"])), int(str(config["request.timeout.ms"]))
            )
            if self._adds and later.now_ms < until_ms and ErrorCode.CONCURRENT_TRANSACTIONS in errors.values():
                key = TimerKey("produce", f"connection {self.call.connection_id}")
                backoff_ms = int(str(config["add.partitions.to.txn.retry.backoff.ms"]))
                self.broker.timers.schedule(key, later.now_ms + backoff_ms, self.go_on)
                return
            self._errors = {**refused, **errors}
            self.go_on(later)

        if not self._shown:
            verified(ctx, {})
            return
        producer = TransactionalWrite(
            self._request.transactional_id or "",
            write.producer_id,
            write.producer_epoch,
            adds=self._adds,
            gives_abortable=self.call.version >= _ABORTABLE_FROM,
        )
        self.broker.verify_transaction(ctx, self.call, producer, tuple(self._shown), verified)

    # --- appending

    def _waits_for_disk(self, ctx: HandlerContext, good: _Logs) -> bool:
        """Does the append have to wait for a slow disk? If so, it continues after the delay."""
        broker, call, request = self.broker, self.call, self._request
        here = broker.cluster.id_of(call)
        if self._is_written or request.acks not in _VALID_ACKS or not broker.disks.takes_time(here):
            return False
        if not any(broker.leads(call, broker.topics[target.topic], target.partition) for target in good):
            return False

        def written(later: HandlerContext) -> None:
            self._is_written, self._errors = True, self._errors or {}
            broker.go_on(later, call, request, self.go_on)

        broker.disks.write(ctx.now_ms, here, "Produce", written)
        return True

    def _append(
        self, ctx: HandlerContext, target: _Target, log: PartitionLog, records: bytes, grown: list[tuple[Topic, int]]
    ) -> PartitionProduceResponse:
        """Append to one partition; adds it to ``grown`` unless the batch is a duplicate."""
        broker, call = self.broker, self.call
        if self._request.acks not in _VALID_ACKS:
            return _failed(target, ErrorCode.INVALID_REQUIRED_ACKS)
        if target.topic in INTERNAL and call.client_id != ADMIN_CLIENT_ID:
            return _failed(target, ErrorCode.INVALID_TOPIC_EXCEPTION)
        topic = broker.topics[target.topic]
        if not broker.leads(call, topic, target.partition):
            return self.elsewhere(target, _failed(target, ErrorCode.NOT_LEADER_OR_FOLLOWER))
        try:
            if self._request.acks == _ALL:
                broker.require_in_sync(topic, target.partition)
            appended = log.append(
                records,
                ctx.now_ms,
                (self._checks or {}).get(target),
                verifies=self._verifies,
                shown=self._shown.get(target.partition_of_topic),
            )
        except RecordValidationError as problem:
            errors = tuple(
                BatchIndexAndErrorMessage(batch_index=index, batch_index_error_message=text)
                for index, text in problem.record_errors
            )
            return _failed(target, problem.error, problem.reason, log_start_offset=log.log_start_offset, errors=errors)
        except BatchError as problem:
            start = -1 if problem.error in _EXPECTED else log.log_start_offset
            return _failed(target, problem.error, log_start_offset=start)
        if not appended.duplicate:
            grown.append((topic, target.partition))
        return PartitionProduceResponse(
            index=target.partition,
            base_offset=appended.base_offset,
            log_append_time_ms=appended.log_append_time_ms,
            log_start_offset=appended.log_start_offset,
        )

    def elsewhere(self, target: _Target, failed: PartitionProduceResponse) -> PartitionProduceResponse:
        """``failed`` with the current leader, if the version of the request has it (KIP-951)."""
        topic = self.broker.topics.get(target.topic)
        if topic is None or self.call.version < _LEADER_FROM:
            return failed
        state = topic.metadata.partitions[target.partition]
        leader = LeaderIdAndEpoch(leader_id=state.leader, leader_epoch=state.leader_epoch)
        return replace(failed, current_leader=leader)

    def respond(self, ctx: HandlerContext, outcomes: _Outcomes) -> None:
        """Send the response; with acks=0 there is none, but after an error the connection is closed, so that the producer
        notices."""
        if self._request.acks != 0:
            topics: dict[tuple[uuid.UUID | None, str], list[PartitionProduceResponse]] = {}
            for target, outcome in outcomes.items():
                topics.setdefault((target.topic_id, target.topic), []).append(outcome)
            responses = tuple(
                TopicProduceResponse(name=name, topic_id=topic_id, partition_responses=tuple(partitions))
                for (topic_id, name), partitions in topics.items()
            )
            leaders = {outcome.current_leader.leader_id for outcome in outcomes.values()} - {_NOBODY}
            endpoints = tuple(
                NodeEndpoint(node_id=one.id, host=one.host, port=one.port, rack=one.rack)
                for one in self.broker.cluster.named(self.broker.config, leaders, self.call.listener)
            )
            ctx.reply(self.call, ProduceResponse(responses=responses, node_endpoints=endpoints))
            return
        failures = [
            f"{target.topic}-{target.partition}: {ErrorCode(outcome.error_code).name}"
            for target, outcome in outcomes.items()
            if outcome.error_code
        ]
        if failures:
            ctx.close_connection(self.call, f"a produce with acks=0 failed: {', '.join(failures)}")
        else:
            ctx.no_reply(self.call)


class _DelayedProduce:
    """A Produce with acks=all that waits for the in-sync replicas, until ``until_ms`` at most.

    The response is sent when the last of its partitions is complete. Source: ``DelayedProduce``.
    """

    def __init__(
        self,
        produce: _Produce,
        outcomes: _Outcomes,
        waits_for: Sequence[tuple[_Target, PartitionLog]],
        until_ms: int,
    ) -> None:
        self._produce, self._outcomes = produce, outcomes
        broker, call = produce.broker, produce.call
        self._timers = broker.timers
        self._key = TimerKey("produce", f"connection {call.connection_id}", f"request {call.correlation_id}")
        self._waits = {
            target: broker.high_watermarks.wait(log, log.log_end_offset, partial(self._done, target))
            for target, log in waits_for
        }
        self._timers.schedule(self._key, until_ms, self._timed_out)

    def _done(self, target: _Target, ctx: HandlerContext, error: ErrorCode) -> None:
        del self._waits[target]
        if error:
            failed = replace(self._outcomes[target], error_code=error)
            is_elsewhere = error == ErrorCode.NOT_LEADER_OR_FOLLOWER
            self._outcomes[target] = self._produce.elsewhere(target, failed) if is_elsewhere else failed
        if not self._waits:
            self._timers.cancel(self._key)
            self._produce.respond(ctx, self._outcomes)

    def _timed_out(self, ctx: HandlerContext) -> None:
        for target, end in self._waits.items():
            end()
            self._outcomes[target] = replace(self._outcomes[target], error_code=ErrorCode.REQUEST_TIMED_OUT)
        self._produce.respond(ctx, self._outcomes)


def _batches(broker: Broker, request: ProduceRequest) -> _Batches:
    """The records of each partition, in the order of the request, which may name a partition twice."""
    batches: list[tuple[_Target, bytes | None]] = []
    for topic in request.topic_data:
        name = topic.name
        if topic.topic_id is not None:
            name = broker.topics.topic_name(topic.topic_id) or ""
        batches += [(_Target(topic.topic_id, name, part.index), part.records) for part in topic.partition_data]
    return batches


def _refuse_transactions(batches: Iterable[bytes | None], transactional_id: str | None) -> None:
    """Raises _RefusedError for a transactional batch without transactional id, and for a malformed batch before one."""
    for records in filter(None, batches):
        try:
            first = next(iter_batch_extents(records), None)
        except BatchError as problem:
            raise _RefusedError(problem.error, problem.reason) from problem
        if first and first.magic == MAGIC and attributes_of(records, first) & TRANSACTIONAL:
            if transactional_id is None:
                raise _RefusedError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
            return


def _transactional_write(good: _Logs) -> _Write | None:
    """The transactional batches with a producer id; None if there are none.

    Raises _RefusedError for several producers, or for a batch that ends before its sequence number, over which Kafka throws.
    """
    headers: dict[_Target, BatchHeader] = {}
    for target, (_, records) in good.items():
        if not records[ATTRIBUTES_BYTE] & TRANSACTIONAL:
            continue  # not transactional, as most
        header = read_header(records[:HEADER_BYTES].ljust(HEADER_BYTES, b"\0"))
        if header.has_producer_id:
            if header.size < UP_TO_SEQUENCE_BYTES:
                raise _RefusedError(ErrorCode.UNKNOWN_SERVER_ERROR)
            headers[target] = header
    producers = {(header.producer_id, header.producer_epoch) for header in headers.values()}
    if len(producers) > 1:
        reason = "Transactional records contained more than one producer ID"
        raise _RefusedError(ErrorCode.INVALID_PRODUCER_ID_MAPPING, reason)
    return _Write(*producers.pop(), headers) if producers else None


def _unverified(target: _Target, error: ErrorCode, *, adds: bool) -> PartitionProduceResponse:
    """The error response for a partition that the coordinator refused with ``error``."""
    if error == ErrorCode.INVALID_TXN_STATE:
        return _failed(target, error, "Partition was not added to the transaction")
    if error in _TO_BE_TRIED_AGAIN or (error == ErrorCode.CONCURRENT_TRANSACTIONS and not adds):
        reason = f"Unable to verify the partition has been added to the transaction. Underlying error: {error.name}"
        return _failed(target, ErrorCode.NOT_ENOUGH_REPLICAS, reason)
    return _failed(target, error)


def _sorted_out(broker: Broker, call: Call, batches: _Batches) -> tuple[_Logs, _Outcomes, _Outcomes]:
    """(log and batch of each valid partition, responses for unknown partitions, responses for malformed batches).

    Of several valid batches of a partition only the last one is appended. If another one is malformed, the response says that.

    Raises _RefusedError where Kafka throws an unexpected exception: for missing records, an unknown compression type (checked
    in old versions only), and a batch that ends before the producer id.
    """
    good: _Logs = {}
    missing: _Outcomes = {}
    malformed: _Outcomes = {}
    without_records: set[_Target] = set()
    for target, records in batches:
        topic = broker.topics.get(target.topic)
        if topic is None or not 0 <= target.partition < len(topic.partitions):
            unknown_id = call.version >= 13 and not target.topic
            error = ErrorCode.UNKNOWN_TOPIC_ID if unknown_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            missing[target] = _failed(target, error)
            continue
        if records is None:
            without_records.add(target)
            continue
        try:
            batch = check_format(records, call.version)
        except BatchError as problem:
            if problem.error == ErrorCode.UNKNOWN_SERVER_ERROR:
                raise _RefusedError(problem.error) from problem
            malformed[target] = _failed(target, problem.error)
            continue
        if batch.size < UP_TO_PRODUCER_ID_BYTES:
            raise _RefusedError(ErrorCode.UNKNOWN_SERVER_ERROR)
        good[target] = broker.log_here(call, topic, target.partition), records
        without_records.discard(target)
    if without_records:
        raise _RefusedError(ErrorCode.UNKNOWN_SERVER_ERROR)
    return good, missing, malformed


def _long_checks(request: ProduceRequest, good: _Logs, now_ms: int) -> BackgroundWork[_Checks] | None:
    """The validation of all batches, if it takes too long for the event loop; else None."""
    if request.acks not in _VALID_ACKS or sum(_walk_bytes(records) for _, records in good.values()) <= INLINE_BYTES:
        return None
    return _checks([(target, log.validator, records) for target, (log, records) in good.items()], now_ms)


def _walk_bytes(records: bytes) -> int:
    if len(records) <= _SMALL_BYTES and not records[ATTRIBUTES_BYTE] & COMPRESSION_MASK:
        return 0  # uncompressed, as most
    try:
        return validation_cost(records, read_header(records))
    except BatchError:
        return 0  # it will be refused because of its header


def _checks(batches: Sequence[tuple[_Target, LogValidator, bytes]], now_ms: int) -> BackgroundWork[_Checks]:
    """The validation of ``batches`` in the background; only one of them is unpacked at a time."""
    outcomes: _Checks = {}
    for target, validator, records in batches:
        try:
            outcomes[target] = validator.check(records, now_ms)
        except BatchError as problem:
            outcomes[target] = drop_traceback(problem)
        yield
    return outcomes


def _failed(
    target: _Target,
    error: ErrorCode,
    message: str | None = None,
    *,
    log_start_offset: int = -1,
    errors: tuple[BatchIndexAndErrorMessage, ...] = (),
) -> PartitionProduceResponse:
    return PartitionProduceResponse(
        index=target.partition,
        error_code=error,
        base_offset=-1,
        log_start_offset=log_start_offset,
        record_errors=errors,
        error_message=message,
    )

"""Produce: batches into logs. Source: ``KafkaApis.handleProduceRequest`` and ``ReplicaManager.appendToLocalLog``."""

import uuid
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from groupcoord.broker.broker import Broker
from groupcoord.broker.log_validator import ZSTD_FROM, CheckedBatch, LogValidator, RecordValidationError, check_format
from groupcoord.broker.partition_log import PartitionLog
from groupcoord.broker.timestamp_search import INLINE_BYTES
from groupcoord.broker.topic_names import INTERNAL
from groupcoord.core.background_work import BackgroundWork
from groupcoord.core.effects import Call
from groupcoord.core.handler_context import HandlerContext
from groupcoord.protocol.apis.produce import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from groupcoord.protocol.batches.compression import Compression
from groupcoord.protocol.batches.record_batch import (
    ATTRIBUTES_BYTE,
    COMPRESSION_MASK,
    MAGIC,
    TRANSACTIONAL,
    UP_TO_PRODUCER_ID_BYTES,
    BatchError,
    attributes_of,
    drop_traceback,
    iter_batch_extents,
    read_header,
    validation_cost,
)
from groupcoord.protocol.errors import ErrorCode

ADMIN_CLIENT_ID = "__admin_client"
"""The client id under which internal topics may be written to."""

_LEADER_FROM = 10  # KIP-951
_NOBODY = -1
_SMALL_BYTES = 8_000
_VALID_ACKS = frozenset({-1, 0, 1})
# Kafka answers these without the log start offset: it expects them, and has not looked at the log by then.
_EXPECTED = frozenset(
    {
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.RECORD_LIST_TOO_LARGE,
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.KAFKA_STORAGE_ERROR,
    }
)


class _Target(NamedTuple):
    """A partition as the request names it."""

    topic_id: uuid.UUID | None
    topic: str
    partition: int


_Outcomes = dict[_Target, PartitionProduceResponse]
_Checks = dict[_Target, CheckedBatch | BatchError]


class _RefusedError(Exception):
    """The whole request is refused, before anything is stored; ``message`` is for the producer."""

    def __init__(self, error: ErrorCode, message: str | None = None) -> None:
        super().__init__(error, message)
        self.error = error
        self.message = message


def handle_produce(broker: Broker, ctx: HandlerContext, call: Call, request: ProduceRequest) -> None:
    """Append one batch to each partition; the partitions fare independently."""
    _produce(broker, ctx, call, request, None)


def _produce(
    broker: Broker, ctx: HandlerContext, call: Call, request: ProduceRequest, outcomes: "_Checks | None"
) -> None:
    """Answer, with the ``outcomes`` of checks that were done aside; None: if there are such, have them done first."""
    batches = _batches(broker, request)
    try:
        _refuse_transactions(batches.values())
        good, missing, malformed = _sorted_out(broker, call, batches)
    except _RefusedError as refusal:
        if any(partition.records is None for topic in request.topic_data for partition in topic.partition_data):
            return  # Kafka fails over records that are null even when it says no, and never says anything on that connection
        _respond(
            broker, ctx, call, request, {target: _failed(target, refusal.error, refusal.message) for target in batches}
        )
        return
    if outcomes is None and (work := _long_checks(request, good, ctx.now_ms)) is not None:
        broker.run_work(ctx, call, work, lambda later, found: _produce(broker, later, call, request, found))
        return
    grown: list[PartitionLog] = []
    done = outcomes or {}
    tried = {
        target: _append(broker, ctx, call, request, target, log, records, grown, done.get(target))
        for target, (log, records) in good.items()
    }
    # First what was tried, then what is not there, then what is no batch: the order of Kafka's response.
    _respond(broker, ctx, call, request, tried | missing | malformed)
    for log in grown:
        broker.appended(ctx, log)


def _batches(broker: Broker, request: ProduceRequest) -> dict[_Target, bytes | None]:
    """The records of each partition; the last word counts for one that is named twice."""
    batches: dict[_Target, bytes | None] = {}
    for topic in request.topic_data:
        name = topic.name
        if topic.topic_id is not None:
            name = broker.topics.topic_name(topic.topic_id) or ""
        for partition in topic.partition_data:
            batches[_Target(topic.topic_id, name, partition.index)] = partition.records
    return batches


def _refuse_transactions(batches: Iterable[bytes | None]) -> None:
    """Raises _RefusedError if a batch is transactional, or too odd to tell."""
    for records in filter(None, batches):
        try:
            first = next(iter_batch_extents(records), None)
        except BatchError as problem:
            raise _RefusedError(problem.error, problem.reason) from problem
        if first is not None and first.magic == MAGIC and attributes_of(records, first) & TRANSACTIONAL:
            # Deviation (no-transactions): see broker/producers.py.
            raise _RefusedError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)


def _sorted_out(
    broker: Broker, call: Call, batches: dict[_Target, bytes | None]
) -> tuple[dict[_Target, tuple[PartitionLog, bytes]], _Outcomes, _Outcomes]:
    """(log and batch of each partition, what is not there, what is no batch).

    Raises _RefusedError where Kafka fails over one with an exception that it does not expect: over none at all, over a number
    that is no compression (only old versions have it looked at), and over one that ends before the producer's id.
    """
    good: dict[_Target, tuple[PartitionLog, bytes]] = {}
    missing: _Outcomes = {}
    malformed: _Outcomes = {}
    for target, records in batches.items():
        log = broker.log(target.topic, target.partition)
        if log is None:
            unknown_id = call.version >= 13 and not target.topic
            error = ErrorCode.UNKNOWN_TOPIC_ID if unknown_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            missing[target] = _failed(target, error)
            continue
        if records is None:
            raise _RefusedError(ErrorCode.UNKNOWN_SERVER_ERROR)
        try:
            batch = check_format(records, call.version)
        except BatchError as problem:
            malformed[target] = _failed(target, problem.error)
            continue
        if batch.size < UP_TO_PRODUCER_ID_BYTES or (
            call.version < ZSTD_FROM and attributes_of(records, batch) & COMPRESSION_MASK > Compression.ZSTD
        ):
            raise _RefusedError(ErrorCode.UNKNOWN_SERVER_ERROR)
        good[target] = log, records
    return good, missing, malformed


def _long_checks(
    request: ProduceRequest, good: dict[_Target, tuple[PartitionLog, bytes]], now_ms: int
) -> BackgroundWork[_Checks] | None:
    """The checks of all batches, if they take too long together to be done in the loop."""
    if request.acks not in _VALID_ACKS or sum(_walk_bytes(records) for _, records in good.values()) <= INLINE_BYTES:
        return None
    return _checks([(target, log.validator, records) for target, (log, records) in good.items()], now_ms)


def _walk_bytes(records: bytes) -> int:
    if len(records) <= _SMALL_BYTES and not records[ATTRIBUTES_BYTE] & COMPRESSION_MASK:
        return 0  # as most are
    try:
        return validation_cost(records, read_header(records))
    except BatchError:
        return 0  # it will be refused for what its header says


def _checks(batches: Sequence[tuple[_Target, LogValidator, bytes]], now_ms: int) -> BackgroundWork[_Checks]:
    """What checking each of ``batches`` comes to; only one of them is unpacked at a time."""
    outcomes: _Checks = {}
    for target, validator, records in batches:
        try:
            outcomes[target] = validator.check(records, now_ms)
        except BatchError as problem:
            outcomes[target] = drop_traceback(problem)
        yield
    return outcomes


def _append(
    broker: Broker,
    ctx: HandlerContext,
    call: Call,
    request: ProduceRequest,
    target: _Target,
    log: PartitionLog,
    records: bytes,
    grown: list[PartitionLog],
    checked: CheckedBatch | BatchError | None,
) -> PartitionProduceResponse:
    """Append to one partition, and note in ``grown`` the log if there is more in it now."""
    if request.acks not in _VALID_ACKS:
        return _failed(target, ErrorCode.INVALID_REQUIRED_ACKS)
    if target.topic in INTERNAL and call.client_id != ADMIN_CLIENT_ID:
        return _failed(target, ErrorCode.INVALID_TOPIC_EXCEPTION)
    topic = broker.topics.get(target.topic)
    if topic is not None and not broker.leads(call, topic, target.partition):
        leader = LeaderIdAndEpoch(leader_id=topic.leaders[target.partition], leader_epoch=log.leader_epoch)
        failed = _failed(target, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return replace(failed, current_leader=leader) if call.version >= _LEADER_FROM else failed
    try:
        appended = log.append(records, ctx.now_ms, checked)
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
        grown.append(log)
    return PartitionProduceResponse(
        index=target.partition,
        base_offset=appended.base_offset,
        log_append_time_ms=appended.log_append_time_ms,
        log_start_offset=appended.log_start_offset,
    )


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


def _respond(broker: Broker, ctx: HandlerContext, call: Call, request: ProduceRequest, outcomes: _Outcomes) -> None:
    """The response; with acks=0 there is none, and the connection closes if anything failed, for the producer to notice."""
    if request.acks != 0:
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
            for one in broker.cluster.named(broker.config, leaders)
        )
        ctx.reply(call, ProduceResponse(responses=responses, node_endpoints=endpoints))
        return
    failures = [
        f"{target.topic}-{target.partition}: {ErrorCode(outcome.error_code).name}"
        for target, outcome in outcomes.items()
        if outcome.error_code
    ]
    if failures:
        ctx.close_connection(call, f"a produce with acks=0 failed: {', '.join(failures)}")
    else:
        ctx.no_reply(call)

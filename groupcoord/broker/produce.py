"""Produce: batches into logs. Source: ``KafkaApis.handleProduceRequest`` and ``ReplicaManager.appendToLocalLog``."""

import uuid
from typing import TYPE_CHECKING, NamedTuple

from groupcoord.broker.log_validator import RecordsRefusedError, check_format
from groupcoord.broker.partition_log import PartitionLog
from groupcoord.broker.topic_names import INTERNAL
from groupcoord.core.effects import Call
from groupcoord.core.turn import Turn
from groupcoord.protocol.batches import HEADER_BYTES, MAGIC, BatchError, extents, read_header
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages.produce import (
    BatchIndexAndErrorMessage,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)

if TYPE_CHECKING:
    from groupcoord.broker.broker import Broker

ADMIN_CLIENT_ID = "__admin_client"
"""The client id under which internal topics may be written to."""

_VALID_ACKS = frozenset({-1, 0, 1})
# Kafka answers these without the log start offset: it expects them, and has not looked at the log by then.
_EXPECTED = frozenset({ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE, ErrorCode.CORRUPT_MESSAGE})


class _Target(NamedTuple):
    """A partition as the request names it."""

    topic_id: uuid.UUID | None
    topic: str
    partition: int


_Outcomes = dict[_Target, PartitionProduceResponse]


def handle_produce(broker: "Broker", turn: Turn, call: Call, request: ProduceRequest) -> None:
    """Append one batch to each partition; the partitions fare independently."""
    batches = _batches(broker, request)
    refusal = _refusal(broker, batches)
    grown: list[PartitionLog] = []
    if refusal is not None:
        _respond(turn, call, request, {target: _failed(target, *refusal) for target in batches})
        return
    # First what was tried, then what is not there, then what is no batch: the order of Kafka's response.
    tried: _Outcomes = {}
    missing: _Outcomes = {}
    malformed: _Outcomes = {}
    for target, records in batches.items():
        log = broker.log(target.topic, target.partition)
        if log is None or records is None:
            unknown_id = call.version >= 13 and not target.topic
            error = ErrorCode.UNKNOWN_TOPIC_ID if unknown_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            missing[target] = _failed(target, error)
            continue
        try:
            check_format(records, call.version)
        except BatchError as problem:
            malformed[target] = _failed(target, problem.error)
            continue
        tried[target] = _append(turn, call, request, target, log, records, grown)
    _respond(turn, call, request, tried | missing | malformed)
    for log in grown:
        broker.appended(turn, log)


def _batches(broker: "Broker", request: ProduceRequest) -> dict[_Target, bytes | None]:
    """The records of each partition; the last word counts for one that is named twice."""
    batches: dict[_Target, bytes | None] = {}
    for topic in request.topic_data:
        name = topic.name
        if topic.topic_id is not None:
            name = broker.topics.topic_name(topic.topic_id) or ""
        for partition in topic.partition_data:
            batches[_Target(topic.topic_id, name, partition.index)] = partition.records
    return batches


def _refusal(broker: "Broker", batches: dict[_Target, bytes | None]) -> tuple[ErrorCode, str | None] | None:
    """Why the whole request is refused, if it is: (error, message)."""
    try:
        transactional = any(map(_is_transactional, filter(None, batches.values())))
    except BatchError as problem:
        return problem.error, problem.reason
    if transactional:
        # Deviation: there are no transactions here; a Produce with a transactional batch is refused as by a broker whose
        # rules let nobody have any.
        return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, None
    for target, records in batches.items():
        if records is None and broker.log(target.topic, target.partition) is not None:
            # Deviation: over a partition without records (null) Kafka fails so badly that it never answers, neither this nor
            # anything else on that connection.
            return ErrorCode.UNKNOWN_SERVER_ERROR, None
    return None


def _is_transactional(records: bytes) -> bool:
    first = next(extents(records), None)
    if first is None or first.magic != MAGIC or first.size < HEADER_BYTES:
        return False
    return read_header(records, first.position).transactional


def _append(
    turn: Turn,
    call: Call,
    request: ProduceRequest,
    target: _Target,
    log: PartitionLog,
    records: bytes,
    grown: list[PartitionLog],
) -> PartitionProduceResponse:
    """Append to one partition, and note in ``grown`` the log if there is more in it now."""
    if request.acks not in _VALID_ACKS:
        return _failed(target, ErrorCode.INVALID_REQUIRED_ACKS)
    if target.topic in INTERNAL and call.client_id != ADMIN_CLIENT_ID:
        return _failed(target, ErrorCode.INVALID_TOPIC_EXCEPTION)
    try:
        appended = log.append(records, turn.now_ms)
    except RecordsRefusedError as problem:
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


def _respond(turn: Turn, call: Call, request: ProduceRequest, outcomes: _Outcomes) -> None:
    """The response; with acks=0 there is none, and the connection closes if anything failed, for the producer to notice."""
    if request.acks != 0:
        topics: dict[tuple[uuid.UUID | None, str], list[PartitionProduceResponse]] = {}
        for target, outcome in outcomes.items():
            topics.setdefault((target.topic_id, target.topic), []).append(outcome)
        responses = tuple(
            TopicProduceResponse(name=name, topic_id=topic_id, partition_responses=tuple(partitions))
            for (topic_id, name), partitions in topics.items()
        )
        turn.reply(call, ProduceResponse(responses=responses))
        return
    failures = [
        f"{target.topic}-{target.partition}: {ErrorCode(outcome.error_code).name}"
        for target, outcome in outcomes.items()
        if outcome.error_code
    ]
    if failures:
        turn.hang_up(call, f"a produce with acks=0 failed: {', '.join(failures)}")
    else:
        turn.silence(call)

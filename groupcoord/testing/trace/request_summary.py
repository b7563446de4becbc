"""Summarises requests and responses for the trace: the group and member, the error, and a few fields by Kafka's names.

Of records, metadata and assignments, which are bytes on the wire, only readable parts are kept, so that a trace stays small.
"""

import dataclasses
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from groupcoord.protocol import messages as m
from groupcoord.protocol.api_descriptor import values_of
from groupcoord.protocol.apis import API_BY_REQUEST
from groupcoord.protocol.apis.find_coordinator import GROUP
from groupcoord.protocol.consumer_protocol import PROTOCOL_TYPE, read_assignment, read_subscription
from groupcoord.protocol.errors import ErrorCode, WireError
from groupcoord.testing.trace.events import NO_GENERATION, Detail

TopicName = Callable[[uuid.UUID], str | None]
"""Topic id → name of the topic, or None: newer versions of some APIs use topic ids."""

Details = Iterator[tuple[str, Detail]]

SHOWN = 20
"""How many partitions, topics or members of one request are shown; of the others only the number."""


_GENERATIONS = ("generation_id", "generation_id_or_member_epoch", "member_epoch")


class RequestSubject(NamedTuple):
    """The group and member that a message is about; ``""``, None and -1 if it names none."""

    group: str
    member: str
    instance_id: str | None
    generation: int


def subject_of(message: Any) -> RequestSubject:
    """The group and member that ``message`` is about; empty if it names several groups."""
    api = API_BY_REQUEST.get(type(message))
    groups = () if api is None else values_of(api.groups, message)
    group = str(groups[0]) if len(groups) == 1 else ""
    speaker = message
    if isinstance(message, m.LeaveGroupRequest) and len(message.members) == 1:
        (speaker,) = message.members
    if isinstance(message, m.ConsumerGroupHeartbeatResponse) and message.error_code:
        return RequestSubject(group, message.member_id or "", None, NO_GENERATION)
    generation = next(
        (value for name in _GENERATIONS if (value := getattr(message, name, None)) is not None), NO_GENERATION
    )
    instance_id = getattr(speaker, "group_instance_id", getattr(speaker, "instance_id", None))
    return RequestSubject(group, getattr(speaker, "member_id", "") or "", instance_id, generation)


def error_of(response: Any) -> str:
    """Kafka's name of the first error in ``response``, or ``NONE``."""
    code = next((code for code in _errors(response) if code), 0)
    return ErrorCode(code).name


def request_details(request: Any, topic_name: TopicName) -> dict[str, Detail]:
    """The relevant fields of ``request``."""
    return _shown(_OF_REQUESTS.get(type(request), _of_topics)(request, topic_name))


def response_details(response: Any, topic_name: TopicName) -> dict[str, Detail]:
    """The relevant fields of ``response``."""
    details = _OF_RESPONSES.get(type(response))
    return {} if details is None else _shown(details(response, topic_name))


# Requests.


def _of_join(request: m.JoinGroupRequest, _: TopicName) -> Details:
    yield "protocols", tuple(protocol.name for protocol in request.protocols)
    topics = _subscribed(request)
    if topics is not None:
        yield "topics", topics
    yield "session_timeout_ms", request.session_timeout_ms
    yield "rebalance_timeout_ms", request.rebalance_timeout_ms
    if request.reason:
        yield "reason", request.reason


def _of_sync(request: m.SyncGroupRequest, _: TopicName) -> Details:
    if request.assignments:
        yield "assignments", len(request.assignments)


def _of_leave(request: m.LeaveGroupRequest, _: TopicName) -> Details:
    if len(request.members) > 1:
        yield "members", tuple(each.member_id or each.group_instance_id or "" for each in request.members)
    reasons = tuple(dict.fromkeys(each.reason for each in request.members if each.reason))
    if reasons:
        yield "reason", ", ".join(reasons)


def _of_consumer(request: m.ConsumerGroupHeartbeatRequest, topic_name: TopicName) -> Details:
    if request.subscribed_topic_names is not None:
        yield "topics", request.subscribed_topic_names
    for name in ("subscribed_topic_regex", "server_assignor", "rack_id"):
        said = getattr(request, name)
        if said is not None:
            yield name, said
    if request.rebalance_timeout_ms >= 0:
        yield "rebalance_timeout_ms", request.rebalance_timeout_ms
    if request.topic_partitions is not None:
        yield "owned", _numbered(request.topic_partitions, topic_name)


def _of_commit(request: m.OffsetCommitRequest, topic_name: TopicName) -> Details:
    yield "offsets", _placed(request.topics, topic_name, "committed_offset")


def _unless_one(groups: Iterable[str]) -> Details:
    """The groups that a request names, unless it is a single one, which RequestSubject already has."""
    names = tuple(groups)
    if len(names) != 1:
        yield "groups", names


def _of_find_coordinator(request: m.FindCoordinatorRequest, _: TopicName) -> Details:
    if request.key_type != GROUP:
        yield "key_type", request.key_type
    if request.key_type != GROUP or len(request.coordinator_keys) != 1:
        yield "coordinator_keys", request.coordinator_keys


def _of_api_versions(request: m.ApiVersionsRequest, _: TopicName) -> Details:
    if request.client_software_name:
        yield "software", f"{request.client_software_name} {request.client_software_version}"


def _of_fetch(request: m.FetchRequest, topic_name: TopicName) -> Details:
    yield "partitions", _placed(request.topics, topic_name, "fetch_offset")
    yield "max_wait_ms", request.max_wait_ms


def _of_produce(request: m.ProduceRequest, topic_name: TopicName) -> Details:
    if request.transactional_id is not None:
        yield "transactional_id", request.transactional_id
    yield "partitions", _placed(request.topic_data, topic_name)
    yield "acks", request.acks


def _of_producer(request: Any) -> Details:
    yield "transactional_id", request.transactional_id
    if request.producer_id >= 0:
        yield "producer_id", request.producer_id
        yield "producer_epoch", request.producer_epoch


def _of_init(request: m.InitProducerIdRequest, _: TopicName) -> Details:
    if request.transactional_id is not None:
        yield from _of_producer(request)
        yield "transaction_timeout_ms", request.transaction_timeout_ms


def _of_added_partitions(request: m.AddPartitionsToTxnRequest, topic_name: TopicName) -> Details:
    if len(request.transactions) != 1:
        yield "transactional_ids", tuple(each.transactional_id for each in request.transactions)
        return
    (transaction,) = request.transactions
    yield from _of_producer(transaction)
    yield "partitions", _numbered(transaction.topics, topic_name)
    if transaction.verify_only:
        yield "verify_only", True


def _of_added_offsets(request: m.AddOffsetsToTxnRequest, _: TopicName) -> Details:
    yield from _of_producer(request)


def _of_txn_commit(request: m.TxnOffsetCommitRequest, topic_name: TopicName) -> Details:
    yield from _of_producer(request)
    yield "offsets", _placed(request.topics, topic_name, "committed_offset")


def _of_end(request: m.EndTxnRequest, _: TopicName) -> Details:
    yield from _of_producer(request)
    yield "committed", request.committed


def _of_markers(request: m.WriteTxnMarkersRequest, _: TopicName) -> Details:
    yield "producers", tuple(marker.producer_id for marker in request.markers)
    yield (
        "markers",
        tuple(
            f"{'commit' if marker.transaction_result else 'abort'} of producer {marker.producer_id}, "
            f"epoch {marker.producer_epoch}, in {topic.name}-{number}"
            for marker in request.markers
            for topic in marker.topics
            for number in topic.partition_indexes
        ),
    )


def _of_topics(request: Any, topic_name: TopicName) -> Details:
    """For all other requests: the topics that it names; null means all topics."""
    topics = getattr(request, "topics", ())
    if topics is None:
        yield "topics", "all"
    elif topics:
        yield "topics", tuple(_name(topic, topic_name) for topic in topics)


# Responses.


def _of_joined(response: m.JoinGroupResponse, _: TopicName) -> Details:
    if response.error_code:
        return
    yield "protocol_name", response.protocol_name
    yield "leader", response.leader
    if response.members:
        yield "members", tuple(member.member_id for member in response.members)
    if response.skip_assignment:
        yield "skip_assignment", True


def _of_synced(response: m.SyncGroupResponse, _: TopicName) -> Details:
    assigned = None if response.error_code else _assigned(response.assignment)
    if assigned is not None:
        yield "assignment", assigned


def _of_consumed(response: m.ConsumerGroupHeartbeatResponse, topic_name: TopicName) -> Details:
    if response.assignment is not None:
        yield "assignment", _numbered(response.assignment.topic_partitions, topic_name)


def _of_left(response: m.LeaveGroupResponse, _: TopicName) -> Details:
    refused = tuple(each.member_id or each.group_instance_id or "" for each in response.members if each.error_code)
    if refused:
        yield "refused", refused


def _of_found(response: m.FindCoordinatorResponse, _: TopicName) -> Details:
    found = tuple(f"{each.host}:{each.port}" for each in response.coordinators if not each.error_code)
    if found:
        yield "coordinator", ", ".join(dict.fromkeys(found))


def _of_committed(response: m.OffsetFetchResponse, topic_name: TopicName) -> Details:
    if response.groups:
        topics = [topic for group in response.groups for topic in group.topics]
        yield "offsets", _placed(topics, topic_name, "committed_offset")


def _of_listed(response: m.ListOffsetsResponse, topic_name: TopicName) -> Details:
    yield "offsets", _placed(response.topics, topic_name, "offset")


def _of_produced(response: m.ProduceResponse, topic_name: TopicName) -> Details:
    yield "offsets", _placed(response.responses, topic_name, "base_offset")


def _of_producer_told(response: m.InitProducerIdResponse | m.EndTxnResponse, _: TopicName) -> Details:
    if not response.error_code and response.producer_id >= 0:
        yield "producer_id", response.producer_id
        yield "producer_epoch", response.producer_epoch


def _of_fetched(response: m.FetchResponse, _: TopicName) -> Details:
    yield "bytes", sum(len(part.records or b"") for topic in response.responses for part in topic.partitions)


_OF_REQUESTS: Mapping[type[Any], Callable[[Any, TopicName], Details]] = {
    m.AddOffsetsToTxnRequest: _of_added_offsets,
    m.AddPartitionsToTxnRequest: _of_added_partitions,
    m.ApiVersionsRequest: _of_api_versions,
    m.ConsumerGroupDescribeRequest: lambda request, _: _unless_one(request.group_ids),
    m.ConsumerGroupHeartbeatRequest: _of_consumer,
    m.DeleteGroupsRequest: lambda request, _: _unless_one(request.groups_names),
    m.DescribeGroupsRequest: lambda request, _: _unless_one(request.groups),
    m.DescribeTransactionsRequest: lambda request, _: iter([("transactional_ids", request.transactional_ids)]),
    m.EndTxnRequest: _of_end,
    m.FetchRequest: _of_fetch,
    m.FindCoordinatorRequest: _of_find_coordinator,
    m.InitProducerIdRequest: _of_init,
    m.JoinGroupRequest: _of_join,
    m.LeaveGroupRequest: _of_leave,
    m.OffsetCommitRequest: _of_commit,
    m.OffsetFetchRequest: lambda request, _: _unless_one(group.group_id for group in request.groups),
    m.ProduceRequest: _of_produce,
    m.SyncGroupRequest: _of_sync,
    m.TxnOffsetCommitRequest: _of_txn_commit,
    m.WriteTxnMarkersRequest: _of_markers,
}
_OF_RESPONSES: Mapping[type[Any], Callable[[Any, TopicName], Details]] = {
    m.ConsumerGroupHeartbeatResponse: _of_consumed,
    m.EndTxnResponse: _of_producer_told,
    m.FetchResponse: _of_fetched,
    m.FindCoordinatorResponse: _of_found,
    m.InitProducerIdResponse: _of_producer_told,
    m.JoinGroupResponse: _of_joined,
    m.LeaveGroupResponse: _of_left,
    m.ListOffsetsResponse: _of_listed,
    m.OffsetFetchResponse: _of_committed,
    m.ProduceResponse: _of_produced,
    m.SyncGroupResponse: _of_synced,
}

# Fields.


def _errors(message: Any) -> Iterator[int]:
    """Every error code in ``message``: its own, then those of nested messages, in order."""
    yield getattr(message, "error_code", 0) or getattr(message, "partition_error_code", 0)
    for name in _parts(type(message)):
        for part in getattr(message, name) or ():
            yield from _errors(part)


def _parts(kind: type[Any]) -> tuple[str, ...]:
    """The fields of ``kind`` that may contain messages; cached."""
    if kind not in _PARTS:
        fields = dataclasses.fields(kind) if dataclasses.is_dataclass(kind) else ()
        _PARTS[kind] = tuple(field.name for field in fields if "tuple" in str(field.type))
    return _PARTS[kind]


_PARTS: dict[type[Any], tuple[str, ...]] = {}


def _placed(topics: Iterable[Any], topic_name: TopicName, value: str = "") -> tuple[str, ...]:
    """``orders-0@42`` for each partition, or ``orders-0`` without a ``value``."""
    return tuple(
        f"{_name(topic, topic_name)}-{_index(partition)}{f'@{getattr(partition, value)}' if value else ''}"
        for topic in topics
        for partition in _partitions(topic)
    )


def _numbered(topics: Iterable[Any], topic_name: TopicName) -> tuple[str, ...]:
    """``orders-0`` for each partition of topics whose partitions are plain numbers."""
    return tuple(f"{_name(topic, topic_name)}-{number}" for topic in topics for number in topic.partitions)


def _name(topic: Any, topic_name: TopicName) -> str:
    name: str | None = getattr(topic, "name", None) or getattr(topic, "topic", None)
    topic_id: uuid.UUID | None = getattr(topic, "topic_id", None)
    if name or topic_id is None:
        return name or ""
    return topic_name(topic_id) or str(topic_id)


def _partitions(topic: Any) -> Any:
    return _first(topic, ("partitions", "partition_data", "partition_responses"))


def _index(partition: Any) -> Any:
    return _first(partition, ("partition_index", "partition", "index"))


def _first(message: Any, fields: Iterable[str]) -> Any:
    """The value of the first of ``fields`` that ``message`` has: Kafka's field names for the same thing differ by API."""
    return next(getattr(message, field) for field in fields if hasattr(message, field))


def _subscribed(request: m.JoinGroupRequest) -> tuple[str, ...] | None:
    """The topics of the member's preferred protocol; None if they cannot be decoded."""
    if request.protocol_type != PROTOCOL_TYPE or not request.protocols:
        return None
    try:
        return read_subscription(request.protocols[0].metadata).topics
    except WireError:
        return None


def _assigned(data: bytes) -> tuple[str, ...] | None:
    """The partitions of a consumer's assignment; None if ``data`` is something else."""
    if not data:
        return ()
    try:
        topics = read_assignment(data).assigned_partitions
    except WireError:
        return None
    return tuple(f"{topic.topic}-{number}" for topic in topics for number in topic.partitions)


def _shown(details: Iterable[tuple[str, Detail]]) -> dict[str, Detail]:
    return {name: _few(value) for name, value in details}


def _few(value: Detail) -> Detail:
    if isinstance(value, tuple) and len(value) > SHOWN:
        return (*value[:SHOWN], f"and {len(value) - SHOWN} more")
    return value

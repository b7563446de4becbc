"""Topic and cluster metadata: Metadata (versions 0–13), DescribeCluster (0–2), DescribeTopicPartitions (0).

Topics are in the same order as in a Kafka broker's response. Source: ``KafkaApis.handleTopicMetadataRequest``,
``DefaultAutoTopicCreationManager``, ``AuthHelper.computeDescribeClusterResponse``, ``DescribeTopicPartitionsRequestHandler``,
``KRaftMetadataCache.describeTopicResponse``.
"""

import uuid
from collections.abc import Iterable
from dataclasses import replace

from groupcoord.broker import topic_names
from groupcoord.broker.broker import Broker
from groupcoord.broker.leader_election_and_isr import NO_LEADER, PartitionState
from groupcoord.broker.topic_admin import create_automatically
from groupcoord.broker.topic_store import Topic
from groupcoord.core.effect_collector import HandlerContext
from groupcoord.core.effects import Call
from groupcoord.core.java_hash_order import compare_key, string_hash, uuid_hash
from groupcoord.core.scala_hash_order import hash_set_order, mutable_map_order, set_order
from groupcoord.protocol.apis.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from groupcoord.protocol.apis.describe_topic_partitions import (
    API,
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)
from groupcoord.protocol.apis.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from groupcoord.protocol.batches.record_batch import INT32_MAX
from groupcoord.protocol.errors import ErrorCode

# Bit n stands for operation n of ``AclOperation``. Without an authorizer a client is authorized for all operations of a
# resource: read, write, create, delete, alter, describe, describe configs, alter configs ...
TOPIC_OPERATIONS = sum(1 << operation for operation in (3, 4, 5, 6, 7, 8, 10, 11))
# ... and create, alter, describe, cluster action, describe configs, alter configs, idempotent write.
CLUSTER_OPERATIONS = sum(1 << operation for operation in (5, 7, 8, 9, 10, 11, 12))

_NO_NODE = -1
_FIRST_VERSION_BY_ID = 12
_LISTENER_NOT_FOUND_SINCE = 6
_FEW = 4  # a Scala set that once had more than four elements stays a HashSet
_BROKER_ENDPOINT, _CONTROLLER_ENDPOINT = 1, 2


def handle_metadata(broker: Broker, ctx: HandlerContext, call: Call, request: MetadataRequest) -> None:
    """Respond with the brokers and the requested topics; missing topics may be auto-created."""
    error = _unanswerable(request, call.version)
    if error:
        ctx.reply(call, call.api.error_response(request, call.version, error))
        return
    asked = request.topics
    if asked is None:
        topics = _all_topics(broker)
    elif any(topic.topic_id for topic in asked):
        topics = _topics_by_id(broker, [topic.topic_id for topic in asked if topic.topic_id])
    else:
        names = [topic.name for topic in asked if topic.name is not None]
        topics = _topics_by_name(broker, ctx.now_ms, names, create=request.allow_auto_topic_creation)
    if request.include_topic_authorized_operations:
        topics = [
            topic if topic.name is None else replace(topic, topic_authorized_operations=TOPIC_OPERATIONS)
            for topic in topics
        ]
    if broker.config.advertised[call.listener] is None:
        topics = [_out_of_reach(topic, call.version) for topic in topics]
    response = MetadataResponse(
        brokers=tuple(
            MetadataResponseBroker(node_id=one.id, host=one.host, port=one.port, rack=one.rack)
            for one in broker.cluster.brokers(broker.config, call.listener)
        ),
        cluster_id=broker.config.cluster_id,
        controller_id=_controller(broker),
        topics=tuple(topics),
    )
    if request.include_cluster_authorized_operations:
        response = replace(response, cluster_authorized_operations=CLUSTER_OPERATIONS)
    ctx.reply(call, response)


def _unanswerable(request: MetadataRequest, version: int) -> ErrorCode | None:
    """The error of the whole request: topic ids in a version before they are supported, or a topic with neither id nor name.

    Kafka throws an unexpected exception for the latter.
    """
    topics = request.topics or ()
    if version < _FIRST_VERSION_BY_ID and any(topic.topic_id or topic.name is None for topic in topics):
        return ErrorCode.INVALID_REQUEST
    if any(topic.name is None for topic in topics) and not any(topic.topic_id for topic in topics):
        return ErrorCode.UNKNOWN_SERVER_ERROR
    return None


def _all_topics(broker: Broker) -> list[MetadataResponseTopic]:
    return _existing(broker, mutable_map_order((topic.name for topic in broker.topics), string_hash))


def _topics_by_id(broker: Broker, topic_ids: list[uuid.UUID]) -> list[MetadataResponseTopic]:
    """First the unknown ids, then the topics; names in the request are ignored."""
    ids = set_order(topic_ids, uuid_hash)
    small = len(ids) <= _FEW
    unknown = [topic_id for topic_id in ids if broker.topics.by_id(topic_id) is None]
    names = [name for name in map(broker.topics.topic_name, ids) if name is not None]
    if not small:
        unknown, names = hash_set_order(unknown, uuid_hash), hash_set_order(names, string_hash)
    error = ErrorCode.UNKNOWN_TOPIC_ID
    missing = [MetadataResponseTopic(error_code=error, name=None, topic_id=one, partitions=()) for one in unknown]
    return missing + _existing(broker, names)


def _topics_by_name(broker: Broker, now_ms: int, asked: list[str], *, create: bool) -> list[MetadataResponseTopic]:
    """First the existing topics, then the missing ones. A topic that is created now appears in the next response only."""
    names = set_order(asked, string_hash)
    found = _existing(broker, names)
    missing = [name for name in names if name not in broker.topics]
    if len(names) > _FEW:
        missing = hash_set_order(missing, string_hash)
    if create and broker.config.auto_create_topics_enable:
        invalid = [name for name in missing if topic_names.fault_of(name)]
        fresh = mutable_map_order((name for name in missing if name not in invalid), string_hash)
        create_automatically(broker, now_ms, fresh)
        missing = invalid + fresh
    return found + [_missing(name) for name in missing]


def _existing(broker: Broker, names: Iterable[str]) -> list[MetadataResponseTopic]:
    topics = (broker.topics.get(name) for name in names)
    return [_described(broker, topic) for topic in topics if topic is not None]


def _missing(name: str) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        error_code=_why_missing(name), name=name, is_internal=name in topic_names.INTERNAL, partitions=()
    )


def _why_missing(name: str) -> ErrorCode:
    invalid = topic_names.fault_of(name) is not None
    return ErrorCode.INVALID_TOPIC_EXCEPTION if invalid else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def _described(broker: Broker, topic: Topic) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.metadata.is_internal,
        partitions=tuple(
            MetadataResponsePartition(
                error_code=ErrorCode.LEADER_NOT_AVAILABLE if state.leader == NO_LEADER else ErrorCode.NONE,
                partition_index=index,
                leader_id=state.leader,
                leader_epoch=state.leader_epoch,
                replica_nodes=state.replicas,
                isr_nodes=state.isr,
                offline_replicas=_offline(broker, state),
            )
            for index, state in enumerate(topic.metadata.partitions)
        ),
    )


def _offline(broker: Broker, state: PartitionState) -> tuple[int, ...]:
    fenced = broker.cluster.fenced
    return tuple(one for one in state.replicas if one in fenced) if fenced else ()


def _out_of_reach(topic: MetadataResponseTopic, version: int) -> MetadataResponseTopic:
    """``topic`` for clients of a listener that is not advertised: without leaders, since no broker has an address there."""
    error = ErrorCode.LISTENER_NOT_FOUND if version >= _LISTENER_NOT_FOUND_SINCE else ErrorCode.LEADER_NOT_AVAILABLE
    partitions = [
        replace(each, error_code=error, leader_id=_NO_NODE, offline_replicas=each.replica_nodes)
        for each in topic.partitions
    ]
    if not version:
        partitions = [replace(each, replica_nodes=(), isr_nodes=()) for each in partitions]
    return replace(topic, partitions=tuple(partitions))


def _controller(broker: Broker) -> int:
    """The id of the controller for clients. Any broker forwards requests to it; Kafka names a random one, this is the first
    that is alive."""
    return next((one for one in broker.cluster.ids if one not in broker.cluster.fenced), NO_LEADER)


def handle_describe_cluster(broker: Broker, ctx: HandlerContext, call: Call, request: DescribeClusterRequest) -> None:
    """Respond with the brokers, and fenced ones if requested; the endpoint type must be that of brokers."""
    if request.endpoint_type != _BROKER_ENDPOINT:
        if request.endpoint_type == _CONTROLLER_ENDPOINT:
            error = ErrorCode.MISMATCHED_ENDPOINT_TYPE
            text = "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type CONTROLLER"
        else:
            error = ErrorCode.UNSUPPORTED_ENDPOINT_TYPE
            text = f"Unsupported endpoint type {request.endpoint_type}"
        ctx.reply(call, DescribeClusterResponse(error_code=error, error_message=text, cluster_id="", brokers=()))
        return
    is_in_reach = broker.config.advertised[call.listener] is not None
    response = DescribeClusterResponse(
        cluster_id=broker.config.cluster_id,
        controller_id=_controller(broker) if is_in_reach else _NO_NODE,
        brokers=tuple(
            DescribeClusterBroker(
                broker_id=one.id, host=one.host, port=one.port, rack=one.rack, is_fenced=one.is_fenced
            )
            for one in broker.cluster.brokers(
                broker.config, call.listener, include_fenced=request.include_fenced_brokers
            )
        ),
    )
    if request.include_cluster_authorized_operations:
        response = replace(response, cluster_authorized_operations=CLUSTER_OPERATIONS)
    ctx.reply(call, response)


def handle_describe_topic_partitions(
    broker: Broker, ctx: HandlerContext, call: Call, request: DescribeTopicPartitionsRequest
) -> None:
    """Respond with the partitions of the requested topics, or of all topics, from the cursor on."""
    error = _error_of(request)
    if error:
        ctx.reply(call, API.error_response(request, call.version, error))
        return
    cursor = request.cursor or Cursor(topic_name="", partition_index=0)
    asked = {topic.name for topic in request.topics} or {topic.name for topic in broker.topics}
    first = compare_key(cursor.topic_name)
    names = sorted((name for name in asked if compare_key(name) >= first), key=compare_key)
    is_in_reach = broker.config.advertised[call.listener] is not None
    limit = int(str(broker.config["max.request.partition.size.limit"]))
    remaining = max(min(limit, request.response_partition_limit), 1)
    topics: list[DescribeTopicPartitionsResponseTopic] = []
    next_cursor = None
    for name in names:
        if not remaining:
            next_cursor = Cursor(topic_name=name, partition_index=0)
            break
        topic = broker.topics.get(name)
        if topic is None:
            topics.append(_partitions_of_missing(name))
            continue
        start = cursor.partition_index if name == cursor.topic_name else 0
        end = min(_int32(start + remaining), len(topic.partitions))
        topics.append(_partitions_of(broker, topic, range(start, end), is_in_reach=is_in_reach))
        if end < len(topic.partitions):
            next_cursor = Cursor(topic_name=name, partition_index=end)
            break
        remaining -= len(topics[-1].partitions)
    ctx.reply(call, DescribeTopicPartitionsResponse(topics=tuple(topics), next_cursor=next_cursor))


def _error_of(request: DescribeTopicPartitionsRequest) -> ErrorCode:
    """The error of the whole request, or NONE."""
    cursor = request.cursor
    if cursor is None:
        # Kafka compares the empty name with its missing cursor, and throws.
        unnamed = any(not topic.name for topic in request.topics)
        return ErrorCode.UNKNOWN_SERVER_ERROR if unnamed else ErrorCode.NONE
    is_asked = not request.topics or any(topic.name == cursor.topic_name for topic in request.topics)
    return ErrorCode.NONE if is_asked and cursor.partition_index >= 0 else ErrorCode.INVALID_REQUEST


def _int32(number: int) -> int:
    """``number`` as a Java int, which overflows."""
    return number if number <= INT32_MAX else number - (1 << 32)


def _partitions_of_missing(name: str) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(
        error_code=_why_missing(name),
        name=name,
        is_internal=name in topic_names.INTERNAL,
        topic_authorized_operations=TOPIC_OPERATIONS,
    )


def _partitions_of(
    broker: Broker, topic: Topic, indexes: range, *, is_in_reach: bool
) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.metadata.is_internal,
        partitions=tuple(
            DescribeTopicPartitionsResponsePartition(
                partition_index=index,
                leader_id=state.leader if is_in_reach else _NO_NODE,
                leader_epoch=state.leader_epoch,
                replica_nodes=state.replicas,
                isr_nodes=state.isr,
                eligible_leader_replicas=state.elr,
                last_known_elr=state.last_known_elr,
                offline_replicas=_offline(broker, state) if is_in_reach else state.replicas,
            )
            for index, state in zip(indexes, topic.metadata.partitions[indexes.start : indexes.stop], strict=True)
        ),
        topic_authorized_operations=TOPIC_OPERATIONS,
    )

"""What each API answers when the server itself fails: the response in the API's own shape, with one error code in it.

Older APIs have no error code at the top, so the code is repeated for everything that was asked for. Source: the
``getErrorResponse`` of Kafka's request classes, which their broker calls when a handler throws.
"""

from collections.abc import Callable
from typing import Any

from groupcoord.protocol import messages as m
from groupcoord.protocol.apis import Api, ApiKey
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages import (
    create_partitions,
    create_topics,
    delete_groups,
    delete_records,
    delete_topics,
    describe_configs,
    describe_groups,
    fetch,
    find_coordinator,
    incremental_alter_configs,
    list_offsets,
    metadata,
    offset_commit,
    offset_fetch,
    offset_for_leader_epoch,
    produce,
)


def error_response(api: Api, version: int, request: Any, error: ErrorCode) -> Any | None:
    """The response of ``api`` that says ``error`` about everything in ``request``.

    None where there is nothing to answer: the client does not wait, as with a Produce that wants no acknowledgement, or
    the request was not understood.
    """
    if request is None:
        return None
    builder = _BUILDERS_BY_VERSION.get(api.key)
    return _BUILDERS[api.key](request, error) if builder is None else builder(request, version, error)


def _produce(request: m.ProduceRequest, error: ErrorCode) -> m.ProduceResponse | None:
    if request.acks == 0:
        return None
    return m.ProduceResponse(
        responses=tuple(
            produce.TopicProduceResponse(
                name=topic.name,
                topic_id=topic.topic_id,
                partition_responses=tuple(
                    produce.PartitionProduceResponse(index=partition.index, error_code=error, base_offset=-1)
                    for partition in topic.partition_data
                ),
            )
            for topic in request.topic_data
        )
    )


def _fetch(request: m.FetchRequest, version: int, error: ErrorCode) -> m.FetchResponse:
    # From v13 on, when topics have ids, the code at the top is enough; before v7 there is none at the top.
    topics = request.topics if version < 13 else ()
    return m.FetchResponse(
        error_code=error,
        session_id=request.session_id,
        responses=tuple(
            fetch.FetchableTopicResponse(
                topic=topic.topic,
                partitions=tuple(
                    fetch.PartitionData(
                        partition_index=partition.partition,
                        error_code=error,
                        high_watermark=-1,
                        aborted_transactions=(),
                        records=b"",
                    )
                    for partition in topic.partitions
                ),
            )
            for topic in topics
        ),
    )


def _list_offsets(request: m.ListOffsetsRequest, error: ErrorCode) -> m.ListOffsetsResponse:
    return m.ListOffsetsResponse(
        topics=tuple(
            list_offsets.ListOffsetsTopicResponse(
                name=topic.name,
                partitions=tuple(
                    list_offsets.ListOffsetsPartitionResponse(
                        partition_index=partition.partition_index, error_code=error
                    )
                    for partition in topic.partitions
                ),
            )
            for topic in request.topics
        )
    )


def _metadata(request: m.MetadataRequest, error: ErrorCode) -> m.MetadataResponse:
    return m.MetadataResponse(
        error_code=error,
        brokers=(),
        topics=tuple(
            metadata.MetadataResponseTopic(
                error_code=error, name=topic.name or "", topic_id=topic.topic_id, partitions=()
            )
            for topic in request.topics or ()
        ),
    )


def _offset_commit(request: m.OffsetCommitRequest, error: ErrorCode) -> m.OffsetCommitResponse:
    return m.OffsetCommitResponse(
        topics=tuple(
            offset_commit.OffsetCommitResponseTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=tuple(
                    offset_commit.OffsetCommitResponsePartition(
                        partition_index=partition.partition_index, error_code=error
                    )
                    for partition in topic.partitions
                ),
            )
            for topic in request.topics
        )
    )


def _offset_fetch(request: m.OffsetFetchRequest, version: int, error: ErrorCode) -> m.OffsetFetchResponse:
    def topics(group: offset_fetch.OffsetFetchRequestGroup) -> tuple[offset_fetch.OffsetFetchResponseTopics, ...]:
        if version >= 2:  # from here on a group has an error code of its own
            return ()
        return tuple(
            offset_fetch.OffsetFetchResponseTopics(
                name=topic.name,
                partitions=tuple(
                    offset_fetch.OffsetFetchResponsePartitions(
                        partition_index=index, committed_offset=-1, metadata="", error_code=error
                    )
                    for index in topic.partition_indexes
                ),
            )
            for topic in group.topics or ()
        )

    return m.OffsetFetchResponse(
        groups=tuple(
            offset_fetch.OffsetFetchResponseGroup(group_id=group.group_id, topics=topics(group), error_code=error)
            for group in request.groups
        )
    )


def _find_coordinator(request: m.FindCoordinatorRequest, error: ErrorCode) -> m.FindCoordinatorResponse:
    return m.FindCoordinatorResponse(
        coordinators=tuple(
            find_coordinator.Coordinator(key=key, node_id=-1, port=-1, error_code=error, error_message=error.text)
            for key in request.coordinator_keys
        )
    )


def _describe_groups(request: m.DescribeGroupsRequest, error: ErrorCode) -> m.DescribeGroupsResponse:
    return m.DescribeGroupsResponse(
        groups=tuple(
            describe_groups.DescribedGroup(
                error_code=error, group_id=group, group_state="", protocol_type="", protocol_data="", members=()
            )
            for group in request.groups
        )
    )


def _create_topics(request: m.CreateTopicsRequest, error: ErrorCode) -> m.CreateTopicsResponse:
    return m.CreateTopicsResponse(
        topics=tuple(create_topics.CreatableTopicResult(name=topic.name, error_code=error) for topic in request.topics)
    )


def _delete_topics(request: m.DeleteTopicsRequest, error: ErrorCode) -> m.DeleteTopicsResponse:
    return m.DeleteTopicsResponse(
        responses=tuple(
            delete_topics.DeletableTopicResult(name=topic.name, topic_id=topic.topic_id, error_code=error)
            for topic in request.topics
        )
    )


def _delete_records(request: m.DeleteRecordsRequest, error: ErrorCode) -> m.DeleteRecordsResponse:
    return m.DeleteRecordsResponse(
        topics=tuple(
            delete_records.DeleteRecordsTopicResult(
                name=topic.name,
                partitions=tuple(
                    delete_records.DeleteRecordsPartitionResult(
                        partition_index=partition.partition_index, low_watermark=-1, error_code=error
                    )
                    for partition in topic.partitions
                ),
            )
            for topic in request.topics
        )
    )


def _offset_for_leader_epoch(
    request: m.OffsetForLeaderEpochRequest, error: ErrorCode
) -> m.OffsetForLeaderEpochResponse:
    return m.OffsetForLeaderEpochResponse(
        topics=tuple(
            offset_for_leader_epoch.OffsetForLeaderTopicResult(
                topic=topic.topic,
                partitions=tuple(
                    offset_for_leader_epoch.EpochEndOffset(error_code=error, partition=partition.partition)
                    for partition in topic.partitions
                ),
            )
            for topic in request.topics
        )
    )


def _describe_configs(request: m.DescribeConfigsRequest, error: ErrorCode) -> m.DescribeConfigsResponse:
    return m.DescribeConfigsResponse(
        results=tuple(
            describe_configs.DescribeConfigsResult(
                error_code=error,
                error_message=error.text,
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
                configs=(),
            )
            for resource in request.resources
        )
    )


def _create_partitions(request: m.CreatePartitionsRequest, error: ErrorCode) -> m.CreatePartitionsResponse:
    return m.CreatePartitionsResponse(
        results=tuple(
            create_partitions.CreatePartitionsTopicResult(name=topic.name, error_code=error) for topic in request.topics
        )
    )


def _delete_groups(request: m.DeleteGroupsRequest, error: ErrorCode) -> m.DeleteGroupsResponse:
    return m.DeleteGroupsResponse(
        results=tuple(
            delete_groups.DeletableGroupResult(group_id=group, error_code=error) for group in request.groups_names
        )
    )


def _incremental_alter_configs(
    request: m.IncrementalAlterConfigsRequest, error: ErrorCode
) -> m.IncrementalAlterConfigsResponse:
    return m.IncrementalAlterConfigsResponse(
        responses=tuple(
            incremental_alter_configs.AlterConfigsResourceResponse(
                error_code=error, resource_type=resource.resource_type, resource_name=resource.resource_name
            )
            for resource in request.resources
        )
    )


# The shape of these depends on where the version asked has room for an error.
_BUILDERS_BY_VERSION: dict[ApiKey, Callable[[Any, int, ErrorCode], Any]] = {
    ApiKey.FETCH: _fetch,
    ApiKey.OFFSET_FETCH: _offset_fetch,
}
_BUILDERS: dict[ApiKey, Callable[[Any, ErrorCode], Any]] = {
    ApiKey.PRODUCE: _produce,
    ApiKey.LIST_OFFSETS: _list_offsets,
    ApiKey.METADATA: _metadata,
    ApiKey.OFFSET_COMMIT: _offset_commit,
    ApiKey.FIND_COORDINATOR: _find_coordinator,
    ApiKey.JOIN_GROUP: lambda _, error: m.JoinGroupResponse(
        error_code=error, protocol_name=None, leader="", member_id="", members=()
    ),
    ApiKey.HEARTBEAT: lambda _, error: m.HeartbeatResponse(error_code=error),
    ApiKey.LEAVE_GROUP: lambda _, error: m.LeaveGroupResponse(error_code=error),
    ApiKey.SYNC_GROUP: lambda _, error: m.SyncGroupResponse(error_code=error, assignment=b""),
    ApiKey.DESCRIBE_GROUPS: _describe_groups,
    ApiKey.LIST_GROUPS: lambda _, error: m.ListGroupsResponse(error_code=error, groups=()),
    ApiKey.API_VERSIONS: lambda _, error: m.ApiVersionsResponse(error_code=error, api_keys=()),
    ApiKey.CREATE_TOPICS: _create_topics,
    ApiKey.DELETE_TOPICS: _delete_topics,
    ApiKey.DELETE_RECORDS: _delete_records,
    ApiKey.INIT_PRODUCER_ID: lambda _, error: m.InitProducerIdResponse(error_code=error, producer_epoch=-1),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: _offset_for_leader_epoch,
    ApiKey.DESCRIBE_CONFIGS: _describe_configs,
    ApiKey.CREATE_PARTITIONS: _create_partitions,
    ApiKey.DELETE_GROUPS: _delete_groups,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: _incremental_alter_configs,
    ApiKey.OFFSET_DELETE: lambda _, error: m.OffsetDeleteResponse(error_code=error, topics=()),
    ApiKey.DESCRIBE_CLUSTER: lambda _, error: m.DescribeClusterResponse(error_code=error, cluster_id="", brokers=()),
}

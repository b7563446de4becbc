"""Old shapes of requests and responses, made new on the way in and old again on the way out.

Some APIs once carried one thing where they now carry a list. What is behind the protocol sees the newest shape alone; the
core has no ``if version`` for what is only layout. Kafka does the same in its request classes and response builders.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from groupcoord.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from groupcoord.protocol.messages.join_group import JoinGroupRequest
from groupcoord.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from groupcoord.protocol.messages.metadata import MetadataRequest
from groupcoord.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponsePartition,
    OffsetFetchResponseTopic,
)


def response_at(response: Any, version: int) -> Any:
    """``response`` in the shape that ``version`` writes."""
    downgrade = DOWNGRADES.get(type(response))
    return response if downgrade is None else downgrade(response, version)


def _join_group(request: JoinGroupRequest, version: int) -> JoinGroupRequest:
    """v0 has no rebalance timeout; the session timeout stands for it."""
    return replace(request, rebalance_timeout_ms=request.session_timeout_ms) if version == 0 else request


def _leave_group(request: LeaveGroupRequest, version: int) -> LeaveGroupRequest:
    """v0–2 name one member."""
    return replace(request, members=(MemberIdentity(member_id=request.member_id),)) if version < 3 else request


def _leave_group_response(response: LeaveGroupResponse, version: int) -> LeaveGroupResponse:
    """v0–2 say at the top what became of the one member."""
    if version >= 3 or response.error_code or not response.members:
        return response
    return replace(response, error_code=response.members[0].error_code)


def _find_coordinator(request: FindCoordinatorRequest, version: int) -> FindCoordinatorRequest:
    """v0–3 ask for one key (KIP-699)."""
    return replace(request, coordinator_keys=(request.key,)) if version < 4 else request


def _find_coordinator_response(response: FindCoordinatorResponse, version: int) -> FindCoordinatorResponse:
    """v0–3 answer one key; v1–3 say "NONE" in the message of a success, and the standard text in an error's."""
    if version >= 4 or not response.coordinators:
        return response
    found = response.coordinators[0]
    return replace(
        response,
        error_code=found.error_code,
        error_message=found.error_message or ErrorCode(found.error_code).text,
        node_id=found.node_id,
        host=found.host,
        port=found.port,
    )


def _offset_fetch(request: OffsetFetchRequest, version: int) -> OffsetFetchRequest:
    """v1–7 ask for one group; a null list of topics means all of them, from v2 on."""
    if version >= 8:
        return request
    topics = request.topics
    group = OffsetFetchRequestGroup(
        group_id=request.group_id,
        topics=None
        if topics is None
        else tuple(
            OffsetFetchRequestTopics(name=topic.name, partition_indexes=topic.partition_indexes) for topic in topics
        ),
    )
    return replace(request, groups=(group,))


def _offset_fetch_response(response: OffsetFetchResponse, version: int) -> OffsetFetchResponse:
    """v1–7 answer one group, v2–7 with its error at the top."""
    if version >= 8:
        return response
    group = response.groups[0]
    topics = tuple(
        OffsetFetchResponseTopic(
            name=topic.name,
            partitions=tuple(
                OffsetFetchResponsePartition(
                    partition_index=partition.partition_index,
                    committed_offset=partition.committed_offset,
                    committed_leader_epoch=partition.committed_leader_epoch,
                    metadata=partition.metadata,
                    error_code=partition.error_code,
                )
                for partition in topic.partitions
            ),
        )
        for topic in group.topics
    )
    return replace(response, topics=topics, error_code=group.error_code)


def _delete_topics(request: DeleteTopicsRequest, version: int) -> DeleteTopicsRequest:
    """v1–5 name topics; v6 can also say their ids."""
    if version >= 6:
        return request
    return replace(request, topics=tuple(DeleteTopicState(name=name) for name in request.topic_names))


def _metadata(request: MetadataRequest, version: int) -> MetadataRequest:
    """v0 asks for all topics with an empty list, later versions with null."""
    return replace(request, topics=None) if version == 0 and not request.topics else request


UPGRADES: Mapping[type, Callable[[Any, int], Any]] = {
    JoinGroupRequest: _join_group,
    LeaveGroupRequest: _leave_group,
    FindCoordinatorRequest: _find_coordinator,
    OffsetFetchRequest: _offset_fetch,
    DeleteTopicsRequest: _delete_topics,
    MetadataRequest: _metadata,
}
"""(request, the version it was read at) → the request in the shape of the newest version."""

DOWNGRADES: Mapping[type, Callable[[Any, int], Any]] = {
    LeaveGroupResponse: _leave_group_response,
    FindCoordinatorResponse: _find_coordinator_response,
    OffsetFetchResponse: _offset_fetch_response,
}
"""(response in the shape of the newest version, the version to write it at) → the response in the shape of that version."""

"""OffsetFetch (API key 9): request and response messages, and their Api."""

import uuid
from dataclasses import replace

from groupcoord.protocol.api_descriptor import Api, ApiKey, RequestField
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.message_dataclass import message


@message
class OffsetFetchRequestTopics:
    """Partitions of one topic."""

    name: str = ""  # v1–9
    partition_indexes: tuple[int, ...] = ()
    topic_id: uuid.UUID | None = None  # v10+


@message
class OffsetFetchRequestGroup:
    """The offsets to read of one group: v8+."""

    group_id: str = ""
    member_id: str | None = None  # v9+; of a KIP-848 group
    member_epoch: int = -1  # v9+; of a KIP-848 group
    topics: tuple[OffsetFetchRequestTopics, ...] | None = ()  # null: all


@message
class OffsetFetchRequest:
    """Read the committed offsets of groups.

    v2 asks for all topics with null, v5 adds the leader epoch (KIP-320), v6 is flexible, v7 can insist on offsets that no
    open transaction may change (KIP-447), v8 asks for many groups at once (KIP-709), v9 adds the member for KIP-848 groups,
    v10 has topic ids in place of names (KIP-848). Handlers see ``groups`` in all versions.
    """

    group_id: str = ""  # v1–7
    topics: tuple[OffsetFetchRequestTopics, ...] | None = ()  # v1–7, nullable v2–7: all
    require_stable: bool = False  # v7+
    groups: tuple[OffsetFetchRequestGroup, ...] = ()  # v8+


@message
class OffsetFetchResponsePartitions:
    """The offset of one partition. Errors: UNSTABLE_OFFSET_COMMIT, UNKNOWN_TOPIC_ID (v10)."""

    partition_index: int = 0
    committed_offset: int = 0  # -1: none
    committed_leader_epoch: int = -1  # v5+
    metadata: str | None = ""
    error_code: int = 0


@message
class OffsetFetchResponseTopics:
    """Partitions of one topic."""

    name: str = ""  # v1–9
    partitions: tuple[OffsetFetchResponsePartitions, ...] = ()
    topic_id: uuid.UUID | None = None  # v10+


@message
class OffsetFetchResponseGroup:
    """The offsets of one group: v8+.

    Errors: COORDINATOR_NOT_AVAILABLE, COORDINATOR_LOAD_IN_PROGRESS, NOT_COORDINATOR, and of KIP-848 groups UNKNOWN_MEMBER_ID
    and STALE_MEMBER_EPOCH. That a group does not exist is no error: it has no offsets.
    """

    group_id: str = ""
    topics: tuple[OffsetFetchResponseTopics, ...] = ()
    error_code: int = 0


@message
class OffsetFetchResponse:
    """The committed offsets. v2 adds an error at the top, v3 the throttle time; the rest as in the request.

    Handlers fill in ``groups`` in all versions.
    """

    topics: tuple[OffsetFetchResponseTopics, ...] = ()  # v1–7
    error_code: int = 0  # v2–7
    throttle_time_ms: int = 0  # v3+
    groups: tuple[OffsetFetchResponseGroup, ...] = ()  # v8+


def _error_response(request: OffsetFetchRequest, version: int, error: ErrorCode) -> OffsetFetchResponse:
    def topics(group: OffsetFetchRequestGroup) -> tuple[OffsetFetchResponseTopics, ...]:
        if version >= 2:  # from here on a group has an error code of its own
            return ()
        return tuple(
            OffsetFetchResponseTopics(
                name=topic.name,
                partitions=tuple(
                    OffsetFetchResponsePartitions(
                        partition_index=index, committed_offset=-1, metadata="", error_code=error
                    )
                    for index in topic.partition_indexes
                ),
            )
            for topic in group.topics or ()
        )

    return OffsetFetchResponse(
        groups=tuple(
            OffsetFetchResponseGroup(group_id=group.group_id, topics=topics(group), error_code=error)
            for group in request.groups
        )
    )


def _upgrade(request: OffsetFetchRequest, version: int) -> OffsetFetchRequest:
    """v1–7 ask for one group; a null list of topics means all of them, from v2 on."""
    if version >= 8:
        return request
    group = OffsetFetchRequestGroup(group_id=request.group_id, topics=request.topics)
    return replace(request, groups=(group,))


def _downgrade(response: OffsetFetchResponse, version: int) -> OffsetFetchResponse:
    """v1–7 answer one group, v2–7 with its error at the top. One that was read has that form already."""
    if version >= 8 or not response.groups:
        return response
    group = response.groups[0]
    return replace(response, topics=group.topics, error_code=group.error_code)


API = Api(
    key=ApiKey.OFFSET_FETCH,
    request=OffsetFetchRequest,
    response=OffsetFetchResponse,
    min_version=1,
    max_version=10,
    summary="Read committed offsets of groups",
    make_error_response=_error_response,
    upgrade=_upgrade,
    downgrade=_downgrade,
    groups=(RequestField("groups[].group_id"),),
    members=(RequestField("groups[].member_id"),),
    topics=(RequestField("groups[].topics[].name"), RequestField("groups[].topics[].topic_id")),
    partitions=(RequestField("groups[].topics[].partition_indexes[]"),),
)

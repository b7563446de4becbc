"""OffsetDelete (API key 47): request and response messages, and their Api."""

from groupcoord.protocol.api_descriptor import GROUP_ID, TOPIC_NAME, Api, ApiKey, RequestField
from groupcoord.protocol.message_dataclass import message


@message
class OffsetDeleteRequestPartition:
    """A partition whose offset is to be deleted."""

    partition_index: int


@message
class OffsetDeleteRequestTopic:
    """Partitions of one topic."""

    name: str
    partitions: tuple[OffsetDeleteRequestPartition, ...] = ()


@message
class OffsetDeleteRequest:
    """Delete committed offsets of a group (KIP-496)."""

    group_id: str
    topics: tuple[OffsetDeleteRequestTopic, ...] = ()


@message
class OffsetDeleteResponsePartition:
    """The result for one offset. Errors: GROUP_SUBSCRIBED_TO_TOPIC, UNKNOWN_TOPIC_OR_PARTITION."""

    partition_index: int
    error_code: int = 0


@message
class OffsetDeleteResponseTopic:
    """Partitions of one topic."""

    name: str
    partitions: tuple[OffsetDeleteResponsePartition, ...] = ()


@message
class OffsetDeleteResponse:
    """The results for the offsets; with an error at the top there are no topics.

    Errors: INVALID_GROUP_ID, GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP, COORDINATOR_NOT_AVAILABLE, COORDINATOR_LOAD_IN_PROGRESS,
    NOT_COORDINATOR.
    """

    error_code: int = 0
    throttle_time_ms: int = 0
    topics: tuple[OffsetDeleteResponseTopic, ...] = ()


API = Api(
    key=ApiKey.OFFSET_DELETE,
    request=OffsetDeleteRequest,
    response=OffsetDeleteResponse,
    min_version=0,
    max_version=0,
    summary="Delete committed offsets of a group",
    groups=(GROUP_ID,),
    topics=(TOPIC_NAME,),
    partitions=(RequestField("topics[].partitions[].partition_index"),),
)

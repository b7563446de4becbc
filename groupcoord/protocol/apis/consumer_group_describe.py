"""ConsumerGroupDescribe (API key 69): request and response messages, and their Api."""

import uuid

from groupcoord.protocol.api_descriptor import Api, ApiKey, RequestField
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.message_dataclass import message


@message
class ConsumerGroupDescribeRequest:
    """Describe consumer groups (KIP-848). v1 adds what kind of member each is (KIP-1099)."""

    group_ids: tuple[str, ...] = ()
    include_authorized_operations: bool = False


@message
class TopicPartitions:
    """Partitions of one topic."""

    topic_id: uuid.UUID | None
    topic_name: str
    partitions: tuple[int, ...] = ()


@message
class Assignment:
    """Partitions of a member. Topics that do not exist any more are left out."""

    topic_partitions: tuple[TopicPartitions, ...] = ()


@message
class Member:
    """A member. v1 adds its type (KIP-1099)."""

    member_id: str
    instance_id: str | None = None
    rack_id: str | None = None
    member_epoch: int
    client_id: str
    client_host: str  # "/" and the address
    subscribed_topic_names: tuple[str, ...] = ()
    subscribed_topic_regex: str | None = None
    assignment: Assignment  # what it has
    target_assignment: Assignment  # what it is to have
    member_type: int = -1  # v1+; 0: it speaks the classic protocol, 1: the consumer protocol


@message
class DescribedGroup:
    """One group.

    Errors: GROUP_ID_NOT_FOUND, INVALID_GROUP_ID, COORDINATOR_NOT_AVAILABLE, COORDINATOR_LOAD_IN_PROGRESS, NOT_COORDINATOR.
    """

    error_code: int = 0
    error_message: str | None = None
    group_id: str
    group_state: str = ""  # "Empty", "Assigning", "Reconciling", "Stable"
    group_epoch: int = 0
    assignment_epoch: int = 0  # for which epoch of the group the target assignment was computed
    assignor_name: str = ""
    members: tuple[Member, ...] = ()
    authorized_operations: int = -2147483648  # a bit per ACL operation, or not asked


@message
class ConsumerGroupDescribeResponse:
    """The groups."""

    throttle_time_ms: int = 0
    groups: tuple[DescribedGroup, ...] = ()


def _error_response(
    request: ConsumerGroupDescribeRequest, _version: int, error: ErrorCode
) -> ConsumerGroupDescribeResponse:
    return ConsumerGroupDescribeResponse(
        groups=tuple(DescribedGroup(error_code=error, group_id=group) for group in request.group_ids)
    )


API = Api(
    key=ApiKey.CONSUMER_GROUP_DESCRIBE,
    request=ConsumerGroupDescribeRequest,
    response=ConsumerGroupDescribeResponse,
    min_version=0,
    max_version=1,
    summary="Describe consumer groups",
    make_error_response=_error_response,
    groups=(RequestField("group_ids[]"),),
)

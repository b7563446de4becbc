"""Requests that the members and administrators of a test send, and how their responses are read."""

from typing import Any

from groupcoord.protocol.apis.create_partitions import CreatePartitionsTopic
from groupcoord.protocol.apis.create_topics import CreatableTopic
from groupcoord.protocol.apis.delete_topics import DeleteTopicState
from groupcoord.protocol.apis.leave_group import MemberIdentity
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages import (
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    LeaveGroupRequest,
    LeaveGroupResponse,
)

_TIMEOUT_MS = 30_000


def creation(topic: str, partitions: int) -> CreateTopicsRequest:
    """Create ``topic``, with as many replicas as the broker likes."""
    wanted = CreatableTopic(name=topic, num_partitions=partitions, replication_factor=-1)
    return CreateTopicsRequest(topics=(wanted,), timeout_ms=_TIMEOUT_MS)


def growth(topic: str, total: int) -> CreatePartitionsRequest:
    """Let ``topic`` have ``total`` partitions."""
    return CreatePartitionsRequest(topics=(CreatePartitionsTopic(name=topic, count=total),), timeout_ms=_TIMEOUT_MS)


def deletion(topic: str) -> DeleteTopicsRequest:
    """Delete ``topic``."""
    return DeleteTopicsRequest(topic_names=(topic,), topics=(DeleteTopicState(name=topic),), timeout_ms=_TIMEOUT_MS)


def removal(group: str, member_id: str) -> LeaveGroupRequest:
    """Remove a member as an administrator does, by LeaveGroup in its name."""
    identity = MemberIdentity(member_id=member_id, reason="an administrator removes it")
    return LeaveGroupRequest(group_id=group, members=(identity,), member_id=member_id)


def raise_removal_refusal(response: LeaveGroupResponse, member: str) -> None:
    """Raise ValueError if the broker refused a ``removal``."""
    code = ErrorCode(response.error_code or response.members[0].error_code)
    if code:
        raise ValueError(f"{member} is not removed: {code.name}")


def raise_refusal(response: Any) -> None:
    """Raise ValueError if the response to one of the above says that Kafka refuses it."""
    for name in ("topics", "results", "responses"):
        for result in getattr(response, name, ()):
            if result.error_code:
                code = ErrorCode(result.error_code)
                raise ValueError(f"{result.name}: {code.name}: {result.error_message or code.text}")

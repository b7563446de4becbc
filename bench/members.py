"""The requests of members of classic groups, for the benchmarks."""

from collections.abc import Callable, Iterable
from typing import Any

from groupcoord.protocol.apis import ApiKey
from groupcoord.protocol.apis.join_group import JoinGroupRequestProtocol
from groupcoord.protocol.apis.sync_group import SyncGroupRequestAssignment
from groupcoord.protocol.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
    write_assignment,
    write_subscription,
)
from groupcoord.protocol.messages import JoinGroupRequest, SyncGroupRequest

SESSION_MS = 300_000
_SUBSCRIPTION = write_subscription(ConsumerProtocolSubscription(topics=("orders",)))


def join_request(group: str, member_id: str = "") -> JoinGroupRequest:
    """How a member asks to join ``group``, without an id at first."""
    return JoinGroupRequest(
        group_id=group,
        session_timeout_ms=SESSION_MS,
        rebalance_timeout_ms=SESSION_MS,
        member_id=member_id,
        protocol_type="consumer",
        protocols=(JoinGroupRequestProtocol(name="range", metadata=_SUBSCRIPTION),),
    )


def sync_request(group: str, joined: Any, assigned: Iterable[str] = ()) -> SyncGroupRequest:
    """How a member that has ``joined`` asks for its assignment; its leader gives each of ``assigned`` one partition."""
    return SyncGroupRequest(
        group_id=group,
        generation_id=joined.generation_id,
        member_id=joined.member_id,
        protocol_type="consumer",
        protocol_name="range",
        assignments=tuple(
            SyncGroupRequestAssignment(member_id=member_id, assignment=_assignment(number))
            for number, member_id in enumerate(assigned)
        ),
    )


def _assignment(partition: int) -> bytes:
    topic = TopicPartition(topic="orders", partitions=(partition,))
    return write_assignment(ConsumerProtocolAssignment(assigned_partitions=(topic,)))


def join_alone(group: str, ask: Callable[[ApiKey, Any], Any]) -> tuple[str, int]:
    """Join ``group`` as its only member; returns member id and generation. ``ask`` answers a request of version 3."""
    joined = ask(ApiKey.JOIN_GROUP, join_request(group))
    member_id, generation = joined.member_id, joined.generation_id
    ask(
        ApiKey.SYNC_GROUP,
        SyncGroupRequest(group_id=group, generation_id=generation, member_id=member_id, assignments=()),
    )
    return member_id, generation

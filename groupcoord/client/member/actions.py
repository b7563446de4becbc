"""The actions of a member: plain values, which a driver carries out in order.

An action with a ``ticket`` is answered exactly once, with ``Membership.complete`` or ``Membership.fail``, unless a
:class:`CancelAction` takes it back before. Below are the requests that several drivers send for them.
"""

import enum
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from groupcoord.assignors import (
    Assignor,
    GroupSubscription,
    RebalanceProtocol,
    Subscription,
    TopicPartition,
    write_subscription,
)
from groupcoord.core.effects import EmitEvent
from groupcoord.protocol.apis.join_group import JoinGroupRequestProtocol
from groupcoord.protocol.apis.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from groupcoord.protocol.apis.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from groupcoord.protocol.errors import ErrorCode


class CoordinatorNode(NamedTuple):
    """The broker that coordinates the group."""

    node_id: int
    host: str
    port: int

    def __str__(self) -> str:
        return f"broker {self.node_id} at {self.host}:{self.port}"


class SendRequest(NamedTuple):
    """Send ``request``, to the coordinator or, if that is None, to any broker; answered with the response.

    ``parks`` says that the broker may keep the answer back until others have done something. A broker answers the requests
    of a connection one by one, so such a request has a connection of its own and nothing waits behind it.
    """

    ticket: int
    to: CoordinatorNode | None
    request: Any
    timeout_ms: int
    parks: bool = False


class CommitOffsets(NamedTuple):
    """Commit what the user has consumed, within ``timeout_ms``; the result does not matter, the rebalance goes on anyway."""

    ticket: int
    timeout_ms: int


class FetchMetadata(NamedTuple):
    """Fetch metadata of ``topics`` now, or of the topics with ``topic_ids``, never both; answered with a MetadataSnapshot.

    The snapshot may hold other topics, too. An id that no topic has any more is not in it.
    """

    ticket: int
    topics: frozenset[str]
    topic_ids: frozenset[uuid.UUID] = frozenset()


class RunAssignor(NamedTuple):
    """Call ``run_assignor`` with these; answered with its result or exception. It may take long."""

    ticket: int
    assignor: Assignor
    group: GroupSubscription
    protocol: RebalanceProtocol


class CallbackKind(enum.Enum):
    """Which callback of the user is called."""

    ASSIGNED = "assigned"
    REVOKED = "revoked"
    LOST = "lost"


class InvokeCallback(NamedTuple):
    """Call the user's callback for ``news``; ``partitions`` are in order. Answered when it has returned or raised."""

    ticket: int
    news: CallbackKind
    partitions: tuple[TopicPartition, ...]


class CancelAction(NamedTuple):
    """Cancel the action with ``ticket``. If it is a request, its connection must be closed."""

    ticket: int


class StopDelivery(NamedTuple):
    """Hand out no more records of ``partitions``, which are about to be revoked."""

    partitions: frozenset[TopicPartition]


class SetOwned(NamedTuple):
    """The member owns exactly ``partitions`` from now on."""

    partitions: frozenset[TopicPartition]


class Disconnect(NamedTuple):
    """Close the connections to a broker that no longer is the coordinator, or does not answer as one."""

    coordinator: CoordinatorNode


class RaiseError(NamedTuple):
    """Raise ``error`` to the user at its next poll. If ``final``, the member has ended and it is raised at every poll."""

    error: Exception
    final: bool


class MembershipEnded(NamedTuple):
    """The membership has ended. This is the last action."""


Action = (
    SendRequest
    | CommitOffsets
    | FetchMetadata
    | RunAssignor
    | InvokeCallback
    | CancelAction
    | StopDelivery
    | SetOwned
    | Disconnect
    | RaiseError
    | MembershipEnded
    | EmitEvent
)


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataSnapshot:
    """Topics that exist: their numbers of partitions, the racks of the replicas of each partition, and their ids."""

    partitions: Mapping[str, int] = field(default_factory=dict)
    racks: Mapping[str, tuple[frozenset[str], ...]] = field(default_factory=dict)
    ids: Mapping[str, uuid.UUID] = field(default_factory=dict)

    def of(self, topics: Iterable[str]) -> "MetadataSnapshot":
        """Only ``topics``, as far as they exist, without ids: an assignment by the classic protocol does not depend on them."""
        wanted = sorted(set(topics) & self.partitions.keys())
        return MetadataSnapshot(
            partitions={topic: self.partitions[topic] for topic in wanted},
            racks={topic: self.racks[topic] for topic in wanted if topic in self.racks},
        )

    def without_racks(self) -> "MetadataSnapshot":
        """The same without racks, for a member without ``client.rack``."""
        return MetadataSnapshot(partitions=self.partitions)


OFFSET_COMMIT_BY_NAME = 9
"""The last version of OffsetCommit that names topics. Later ones have topic ids, and a topic that is deleted meanwhile then has
no name any more."""


def metadata_request(
    topics: Iterable[str] | None,
    *,
    topic_ids: Iterable[uuid.UUID] = (),
    allow_auto_topic_creation: bool = False,
) -> MetadataRequest:
    """Ask for ``topics``, or for all topics if that is None; or for ``topic_ids``, if there are any (version 12 or higher)."""
    by_id = tuple(MetadataRequestTopic(name=None, topic_id=topic_id) for topic_id in sorted(topic_ids))
    if by_id:
        return MetadataRequest(topics=by_id, allow_auto_topic_creation=False)
    return MetadataRequest(
        topics=None if topics is None else tuple(MetadataRequestTopic(name=name) for name in sorted(topics)),
        allow_auto_topic_creation=allow_auto_topic_creation,
    )


def metadata_snapshot(response: MetadataResponse) -> MetadataSnapshot:
    """The topics in ``response`` that have no error."""
    rack_of = {broker.node_id: broker.rack for broker in response.brokers}
    known = {topic.name: topic.partitions for topic in response.topics if topic.name and not topic.error_code}
    return MetadataSnapshot(
        partitions={name: len(partitions) for name, partitions in known.items()},
        racks={
            name: tuple(
                frozenset(rack for node_id in each.replica_nodes if (rack := rack_of.get(node_id)))
                for each in sorted(partitions, key=lambda each: each.partition_index)
            )
            for name, partitions in known.items()
        },
        ids={topic.name: topic.topic_id for topic in response.topics if topic.name in known and topic.topic_id},
    )


def join_protocols(
    assignors: Mapping[str, Assignor],
    topics: Sequence[str],
    owned: Sequence[TopicPartition],
    generation_id: int,
    rack_id: str | None = None,
) -> tuple[JoinGroupRequestProtocol, ...]:
    """What a JoinGroup offers: each assignor by its name, with the subscription of a member that has ``owned`` partitions."""
    return tuple(
        JoinGroupRequestProtocol(
            name=name,
            metadata=write_subscription(
                Subscription(
                    topics=topics,
                    user_data=assignor.subscription_user_data(topics),
                    owned_partitions=owned,
                    generation_id=generation_id,
                    rack_id=rack_id,
                )
            ),
        )
        for name, assignor in assignors.items()
    )


def offset_commit_request(
    group_id: str,
    generation_id: int,
    member_id: str,
    instance_id: str | None,
    offsets: Mapping[TopicPartition, tuple[int, int, str]] | Mapping[TopicPartition, int],
) -> OffsetCommitRequest:
    """Commit ``offsets``, each an offset or (offset, leader epoch, metadata); to be sent up to ``OFFSET_COMMIT_BY_NAME``."""
    by_topic: dict[str, list[OffsetCommitRequestPartition]] = {}
    for (topic, number), given in offsets.items():
        offset, leader_epoch, metadata = (given, -1, "") if isinstance(given, int) else given
        by_topic.setdefault(topic, []).append(
            OffsetCommitRequestPartition(
                partition_index=number,
                committed_offset=offset,
                committed_leader_epoch=leader_epoch,
                committed_metadata=metadata,
            )
        )
    return OffsetCommitRequest(
        group_id=group_id,
        generation_id_or_member_epoch=generation_id,
        member_id=member_id,
        group_instance_id=instance_id,
        topics=tuple(OffsetCommitRequestTopic(name=name, partitions=tuple(each)) for name, each in by_topic.items()),
    )


def commit_errors(response: OffsetCommitResponse) -> dict[TopicPartition, ErrorCode]:
    """The error code of each partition."""
    return {
        (topic.name, each.partition_index): ErrorCode(each.error_code)
        for topic in response.topics
        for each in topic.partitions
    }

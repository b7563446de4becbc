"""The actions of a member: plain values, which a driver carries out in order.

An action with a ``ticket`` is answered exactly once, with ``Membership.complete`` or ``Membership.fail``, unless a
:class:`CancelAction` takes it back before.
"""

import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from groupcoord.assignors import Assignor, GroupSubscription, RebalanceProtocol, TopicPartition
from groupcoord.core.effects import EmitEvent


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
    """Fetch metadata of ``topics`` now; answered with a MetadataSnapshot."""

    ticket: int
    topics: frozenset[str]


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
    """Topics that exist: their numbers of partitions, and the racks of the replicas of each partition."""

    partitions: Mapping[str, int] = field(default_factory=dict)
    racks: Mapping[str, tuple[frozenset[str], ...]] = field(default_factory=dict)

    def of(self, topics: Iterable[str]) -> "MetadataSnapshot":
        """Only ``topics``, as far as they exist."""
        wanted = sorted(set(topics) & self.partitions.keys())
        return MetadataSnapshot(
            partitions={topic: self.partitions[topic] for topic in wanted},
            racks={topic: self.racks[topic] for topic in wanted if topic in self.racks},
        )

    def without_racks(self) -> "MetadataSnapshot":
        """The same without racks, for a member without ``client.rack``."""
        return MetadataSnapshot(partitions=self.partitions)

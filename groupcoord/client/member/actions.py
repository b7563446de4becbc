"""The actions of a group member: what it asks its driver to do, such as to send a request or call a callback, in order.

The driver answers each action that has a ``ticket`` exactly once, with ``GroupMember.complete`` or ``GroupMember.fail``,
unless a :class:`CancelAction` cancels it first.
"""

import enum
import uuid
from typing import Any, NamedTuple

from groupcoord.assignors import (
    Assignor,
    GroupSubscription,
    RebalanceProtocol,
    TopicPartition,
)
from groupcoord.core.effects import EmitEvent


class CoordinatorNode(NamedTuple):
    """The broker that coordinates the group."""

    node_id: int
    host: str
    port: int

    def __str__(self) -> str:
        return f"broker {self.node_id} at {self.host}:{self.port}"


class SendRequest(NamedTuple):
    """Send ``request`` to the coordinator ``to``, or to any broker if that is None; the result is the response.

    ``parks``: the broker may delay the response until other members act (JoinGroup, SyncGroup). A broker answers the requests
    of a connection in order, so such a request needs a connection of its own.
    """

    ticket: int
    to: CoordinatorNode | None
    request: Any
    timeout_ms: int
    parks: bool = False


class CommitOffsets(NamedTuple):
    """Commit the offsets of consumed records, within ``timeout_ms``; the rebalance continues whatever the result."""

    ticket: int
    timeout_ms: int


class FetchMetadata(NamedTuple):
    """Fetch metadata of ``topics`` or of the topics with ``topic_ids``, never both; the result is a MetadataSnapshot.

    The snapshot may contain other topics, too. It lacks the ids of deleted topics.
    """

    ticket: int
    topics: frozenset[str]
    topic_ids: frozenset[uuid.UUID] = frozenset()


class RunAssignor(NamedTuple):
    """Call ``run_assignor`` with these arguments, which may take long; the result is the assignment."""

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
    """Call the user's rebalance callback of the kind ``news`` with the sorted ``partitions``; complete it when the callback
    returns."""

    ticket: int
    news: CallbackKind
    partitions: tuple[TopicPartition, ...]


class CancelAction(NamedTuple):
    """Cancel the action with ``ticket``. If it is a request, close its connection."""

    ticket: int


class StopDelivery(NamedTuple):
    """Return no more records of ``partitions``, which are about to be revoked."""

    partitions: frozenset[TopicPartition]


class SetOwned(NamedTuple):
    """Set the owned partitions to exactly ``partitions``."""

    partitions: frozenset[TopicPartition]


class Disconnect(NamedTuple):
    """Close the connections to a broker that is no longer the coordinator, or does not respond."""

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

"""What a member wants done. Nothing in here does anything: whoever runs the member carries the actions out, in order.

An action with a ``ticket`` is answered exactly once, with ``Membership.complete`` or ``Membership.fail``, unless an
:class:`Abandon` takes it back before.
"""

import enum
from typing import Any, NamedTuple

from groupcoord.assignors import Assignor, Group, RebalanceProtocol, TopicPartition
from groupcoord.core.effects import EmitEvent


class Coordinator(NamedTuple):
    """The broker that coordinates the group."""

    node_id: int
    host: str
    port: int

    def __str__(self) -> str:
        return f"broker {self.node_id} at {self.host}:{self.port}"


class Send(NamedTuple):
    """Send ``request``, to the coordinator or, if that is None, to any broker; answered with the response.

    ``parks`` says that the broker may keep the answer back until others have done something. A broker answers the requests
    of a connection one by one, so such a request has a connection of its own and nothing waits behind it.
    """

    ticket: int
    to: Coordinator | None
    request: Any
    timeout_ms: int
    parks: bool = False


class Commit(NamedTuple):
    """Commit what the user has consumed, within ``timeout_ms``; answered with anything, since the rebalance goes on anyway."""

    ticket: int
    timeout_ms: int


class Learn(NamedTuple):
    """Ask a broker about ``topics`` now; answered with a TopicsView."""

    ticket: int
    topics: frozenset[str]


class Assign(NamedTuple):
    """``groupcoord.assignors.run`` these; answered with what that returns or raises. It may take its time."""

    ticket: int
    assignor: Assignor
    group: Group
    protocol: RebalanceProtocol


class News(enum.Enum):
    """What a user's callback is told."""

    ASSIGNED = "assigned"
    REVOKED = "revoked"
    LOST = "lost"


class Tell(NamedTuple):
    """Call the user's callback for ``news``; ``partitions`` are in order. Answered when it has returned or raised."""

    ticket: int
    news: News
    partitions: tuple[TopicPartition, ...]


class Abandon(NamedTuple):
    """The answer to ``ticket`` is not wanted any more. If it is a request, its connection is of no use any more either."""

    ticket: int


class Hold(NamedTuple):
    """Hand out no more records of ``partitions``: they are about to be revoked."""

    partitions: frozenset[TopicPartition]


class Own(NamedTuple):
    """Exactly ``partitions`` belong to the member from now on."""

    partitions: frozenset[TopicPartition]


class Disconnect(NamedTuple):
    """Close the connections to a broker that no longer is the coordinator, or does not answer as one."""

    coordinator: Coordinator


class Raise(NamedTuple):
    """Raise ``error`` to the user at its next poll. If ``final``, the member has ended and it is raised at every poll."""

    error: Exception
    final: bool


class Left(NamedTuple):
    """The member is out of the group, or has done what it could; nothing comes after this."""


Action = Send | Commit | Learn | Assign | Tell | Abandon | Hold | Own | Disconnect | Raise | Left | EmitEvent

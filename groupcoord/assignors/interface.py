"""What an assignor gets and returns, and what it must implement (``ConsumerPartitionAssignor``).

An assignor is a pure function from a :class:`GroupSubscription` to an :data:`Assignment`: no clock, no server, no chance.
"""

import enum
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

TopicPartition: TypeAlias = tuple[str, int]
"""(topic, partition). A plain tuple: it equals aiokafka's and kafka-python's named ones, and a million of them are made in a
third of the time because the garbage collector need not watch them."""

Assignment: TypeAlias = dict[str, list[TopicPartition]]
"""Member id → its partitions, in the order in which the assignor gave them; an entry for every member, possibly empty."""


class RebalanceProtocol(enum.IntEnum):
    """What members do before they join again (KIP-429). A client uses the highest that all its assignors support."""

    EAGER = 0
    """Revoke all partitions before joining, so that each may go to any member at once."""
    COOPERATIVE = 1
    """Keep everything until told what to give up; what moves is free for one rebalance in between."""


class AssignorError(Exception):
    """An assignor cannot answer; the text says why."""


class JavaFailure(AssignorError):
    """Kafka's own class fails on this input, with the exception called ``exception``."""

    def __init__(self, exception: str, why: str) -> None:
        super().__init__(f"Kafka's assignor fails here with {exception}: {why}")
        self.exception = exception


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscription:
    """What one member tells the leader, as it came over the wire (``ConsumerPartitionAssignor.Subscription``)."""

    topics: Sequence[str] = ()
    """What it wants, in the order in which it said so."""
    user_data: bytes | None = None
    """What the assignor on the member's side has to say to the one on the leader's."""
    owned_partitions: Sequence[TopicPartition] = ()
    """What it still owns; nothing under the eager protocol."""
    generation_id: int | None = None
    """The generation in which it came to own that (KIP-792)."""
    rack_id: str | None = None
    """Where it runs (KIP-881)."""
    instance_id: str | None = None
    """The ``group.instance.id`` of a static member (KIP-345)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSubscription:
    """All the leader knows when it assigns: the members, in the order of the JoinGroup response, and the topics there are."""

    subscriptions: Mapping[str, Subscription]
    """By member id."""
    partitions: Mapping[str, int]
    """Topic → how many partitions it has. A subscribed topic that is missing or has none takes no part, as in Kafka."""
    racks: Mapping[str, Sequence[Collection[str | None]]] = field(default_factory=dict)
    """Topic → for each partition the racks of all its replicas; may be left out (KIP-881)."""
    prefer_rack_aware: bool = False
    """Let racks count even if every partition is on every rack. Kafka has this switch for its tests only."""


class Assignor(Protocol):
    """An assignor of one member.

    ``name`` and ``assign`` are what makes one. The rest may be inherited, by naming this class as a base: an assignor then
    supports the eager protocol only, sends no user data and remembers nothing.
    """

    name: str
    """What it is called in JoinGroup; members vote for names, so it has to mean the same to all."""

    protocols: Collection[RebalanceProtocol] = (RebalanceProtocol.EAGER,)
    """Under which protocols it gives right answers; cooperative ones may not assign what another member still owns."""

    def assign(self, group: GroupSubscription) -> Assignment:
        """The assignment of all members, made by the member that leads. Every member has an entry, if only an empty one.

        May raise anything; the leader's join then fails with it, and the group goes on without an answer.
        """
        ...

    def subscription_user_data(self, topics: Sequence[str]) -> bytes | None:  # noqa: ARG002 - for those who override it
        """What to send along with this member's subscription to ``topics``."""
        return None

    def on_assignment(self, partitions: Sequence[TopicPartition], generation_id: int) -> None:  # noqa: ARG002 - see above
        """Called with the partitions of this member in a generation, before the user's callback."""
        return


class FunctionAssignor(Assignor):
    """A function under a name."""

    def __init__(
        self,
        name: str,
        function: Callable[[GroupSubscription], Assignment],
        protocols: Collection[RebalanceProtocol] = (RebalanceProtocol.EAGER,),
    ) -> None:
        self.name = name
        self.protocols = protocols
        self._function = function

    def assign(self, group: GroupSubscription) -> Assignment:
        """What the function answers."""
        return self._function(group)

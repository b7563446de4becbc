"""The interface of assignors: GroupSubscription, Assignment and Assignor (``ConsumerPartitionAssignor``).

An assignor is a pure function from a :class:`GroupSubscription` to an :data:`Assignment`: no clock, no server, no randomness.
"""

import enum
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

TopicPartition: TypeAlias = tuple[str, int]
"""(topic, partition). A plain tuple: it equals the named tuples of aiokafka and kafka-python, and a million of them are created
in a third of the time because the garbage collector does not track them."""

Assignment: TypeAlias = dict[str, list[TopicPartition]]
"""Member id → its partitions, in the assignor's order; every member has an entry, possibly empty."""


class RebalanceProtocol(enum.IntEnum):
    """What a member revokes before it joins again (KIP-429). A client uses the highest that all its assignors support."""

    EAGER = 0
    """All partitions, so that each can be assigned to any member at once."""
    COOPERATIVE = 1
    """Nothing, until an assignment requires it; a partition that moves is unassigned for one rebalance."""


class AssignorError(Exception):
    """An assignor cannot assign; the text tells why."""


class JavaFailure(AssignorError):
    """Kafka's Java assignor throws ``exception`` for this input, so ours refuses it."""

    def __init__(self, exception: str, why: str) -> None:
        super().__init__(f"Kafka's assignor fails here with {exception}: {why}")
        self.exception = exception


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscription:
    """A member's subscription, as it is sent to the leader (``ConsumerPartitionAssignor.Subscription``)."""

    topics: Sequence[str] = ()
    """The subscribed topics, in the member's order."""
    user_data: bytes | None = None
    """Data from the member's assignor for the leader's."""
    owned_partitions: Sequence[TopicPartition] = ()
    """The partitions that it owns; none under the eager protocol."""
    generation_id: int | None = None
    """The generation of that ownership (KIP-792)."""
    rack_id: str | None = None
    """The member's rack (KIP-881)."""
    instance_id: str | None = None
    """The ``group.instance.id`` of a static member (KIP-345)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSubscription:
    """The input of an assignor: the members, in the order of the JoinGroup response, and the topics."""

    subscriptions: Mapping[str, Subscription]
    """By member id."""
    partitions: Mapping[str, int]
    """Topic → number of partitions. As in Kafka, a subscribed topic that is missing or has none is ignored."""
    racks: Mapping[str, Sequence[Collection[str | None]]] = field(default_factory=dict)
    """Topic → for each partition the racks of all its replicas; optional (KIP-881)."""
    prefer_rack_aware: bool = False
    """Consider racks even if every partition is on every rack. Kafka has this switch for its tests only."""


class Assignor(Protocol):
    """An assignor of one member.

    ``name`` and ``assign`` are required. The rest can be inherited from this class: the assignor then supports the eager
    protocol only, sends no user data and keeps no state.
    """

    name: str
    """Its name in JoinGroup; members vote for names, so it has to mean the same for all."""

    protocols: Collection[RebalanceProtocol] = (RebalanceProtocol.EAGER,)
    """The protocols that it supports; with COOPERATIVE it may not assign what another member still owns."""

    def assign(self, group: GroupSubscription) -> Assignment:
        """The assignment of all members, computed in the leader. Every member has an entry, possibly empty.

        May raise anything; the leader's join then fails with it, and the group stays without an assignment.
        """
        ...

    def subscription_user_data(self, topics: Sequence[str]) -> bytes | None:  # noqa: ARG002 - for those who override it
        """The user data in this member's subscription to ``topics``."""
        return None

    def on_assignment(self, partitions: Sequence[TopicPartition], generation_id: int) -> None:  # noqa: ARG002 - see above
        """Called with this member's partitions in a generation, before the user's callback."""
        return


class FunctionAssignor(Assignor):
    """An assignor made of a name and a function."""

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
        """Calls the function."""
        return self._function(group)

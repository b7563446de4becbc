"""Sticky and cooperative-sticky: from a group to an assignment. Sources: ``StickyAssignor``, ``CooperativeStickyAssignor``."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from groupcoord.assignors.cooperative_adjustment import changing_hands, withhold
from groupcoord.assignors.interface import (
    Assignment,
    Assignor,
    GroupSubscription,
    RebalanceProtocol,
    Subscription,
    TopicPartition,
)
from groupcoord.assignors.java_order import members_in_hash_order, topic_table
from groupcoord.assignors.racks import RackInfo
from groupcoord.assignors.sticky.constrained import Constrained
from groupcoord.assignors.sticky.general import assign_general
from groupcoord.assignors.sticky.previous_assignment import (
    DEFAULT_GENERATION,
    PreviousAssignment,
    collect_ownership,
    previous_of_cooperative,
    previous_of_sticky,
    subscriptions_are_equal,
    write_cooperative,
    write_sticky,
)

STICKY = "sticky"
COOPERATIVE_STICKY = "cooperative-sticky"


@dataclass(frozen=True, slots=True, kw_only=True)
class StickyAnswer:
    """An assignment, and what is to be known of how it came about."""

    assignment: Assignment
    transferring: dict[TopicPartition, str]
    """What goes from a living owner to another member → that member. Cooperative-sticky withholds it for one rebalance."""
    constrained: bool
    """Did the algorithm for equal subscriptions make it, or the general one?"""
    max_generation: int
    """The highest generation seen, in this or any earlier rebalance."""


def assign_sticky(
    group: GroupSubscription, *, max_generation: int = DEFAULT_GENERATION, strict: bool = True
) -> StickyAnswer:
    """What ``sticky`` answers. ``max_generation`` is what the assignor's instance has seen so far.

    Raises JavaFailure where Kafka's class fails. One of its failures is a defect that can happen to any group whose members
    want different topics; with ``strict`` False the rule that leads there is passed over.
    """
    return assign_from_previous(group, _claims(group, previous_of_sticky), max_generation=max_generation, strict=strict)


def assign_cooperative(
    group: GroupSubscription, *, max_generation: int = DEFAULT_GENERATION, strict: bool = True
) -> StickyAnswer:
    """What ``cooperative-sticky`` answers: as sticky, but no member gets what another has yet to revoke (KIP-429)."""
    claims = _claims(group, previous_of_cooperative)
    answer = assign_from_previous(group, claims, max_generation=max_generation, strict=strict)
    return replace(answer, assignment=withhold(answer.assignment, answer.transferring))


def assign_from_previous(
    group: GroupSubscription,
    claims: Mapping[str, PreviousAssignment],
    *,
    max_generation: int = DEFAULT_GENERATION,
    strict: bool = True,
) -> StickyAnswer:
    """The part both have in common, for members whose past is known already."""
    members = members_in_hash_order(group)
    table = topic_table(members, group.partitions)
    ownership = collect_ownership(members, claims, table, max_generation)
    racks = RackInfo(group, members, table)
    if subscriptions_are_equal(members):
        constrained = Constrained(table, ownership, racks)
        constrained.run()
        return StickyAnswer(
            assignment=constrained.assignment,
            transferring=constrained.transferring,
            constrained=True,
            max_generation=ownership.max_generation,
        )
    assignment = assign_general(members, claims, table, ownership, racks, strict=strict)
    return StickyAnswer(
        assignment=assignment,
        transferring=changing_hands(members, assignment),
        constrained=False,
        max_generation=ownership.max_generation,
    )


def _claims(
    group: GroupSubscription, previous_of: Callable[[Subscription], PreviousAssignment]
) -> dict[str, PreviousAssignment]:
    return {member_id: previous_of(subscription) for member_id, subscription in group.subscriptions.items()}


class StickyAssignor(Assignor):
    """``StickyAssignor``: tells the leader in user data what the member had.

    With ``strict`` it fails where Kafka's class fails; without, the rule that leads there is passed over.
    """

    name = STICKY

    def __init__(self, *, strict: bool = True) -> None:
        self._strict = strict
        self._partitions: Sequence[TopicPartition] | None = None
        self._generation = self._max_generation = DEFAULT_GENERATION

    def assign(self, group: GroupSubscription) -> Assignment:
        """See :func:`assign_sticky`."""
        answer = assign_sticky(group, max_generation=self._max_generation, strict=self._strict)
        self._max_generation = answer.max_generation
        return answer.assignment

    def subscription_user_data(self, topics: Sequence[str]) -> bytes | None:  # noqa: ARG002 - whatever the topics
        """What the member had, and in which generation; None before it had anything."""
        return None if self._partitions is None else write_sticky(self._partitions, self._generation)

    def on_assignment(self, partitions: Sequence[TopicPartition], generation_id: int) -> None:
        """Remember it for the next rebalance."""
        self._partitions, self._generation = partitions, generation_id


class CooperativeStickyAssignor(Assignor):
    """``CooperativeStickyAssignor``: under the cooperative protocol a member still owns what it had, and says so itself."""

    name = COOPERATIVE_STICKY
    protocols = (RebalanceProtocol.COOPERATIVE, RebalanceProtocol.EAGER)

    def __init__(self, *, strict: bool = True) -> None:
        self._strict = strict
        self._generation = self._max_generation = DEFAULT_GENERATION

    def assign(self, group: GroupSubscription) -> Assignment:
        """See :func:`assign_cooperative`."""
        answer = assign_cooperative(group, max_generation=self._max_generation, strict=self._strict)
        self._max_generation = answer.max_generation
        return answer.assignment

    def subscription_user_data(self, topics: Sequence[str]) -> bytes | None:  # noqa: ARG002 - whatever the topics
        """The generation of the last assignment; -1 before the first."""
        return write_cooperative(self._generation)

    def on_assignment(self, partitions: Sequence[TopicPartition], generation_id: int) -> None:  # noqa: ARG002 - see above
        """Remember the generation."""
        self._generation = generation_id

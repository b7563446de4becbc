"""The sticky and cooperative-sticky assignors. Sources: ``StickyAssignor``, ``CooperativeStickyAssignor``."""

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
from groupcoord.assignors.sticky.constrained_assignment_builder import ConstrainedAssignmentBuilder
from groupcoord.assignors.sticky.general_assignment_builder import assign_general
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
    """An assignment, with details of how it was made."""

    assignment: Assignment
    transferring: dict[TopicPartition, str]
    """Partitions that move from a member that owns them → their new owner. Cooperative-sticky withholds them for one
    rebalance."""
    constrained: bool
    """Was it made by the algorithm for equal subscriptions, or by the general one?"""
    max_generation: int
    """The highest generation seen, in this or any earlier rebalance."""


def assign_sticky(
    group: GroupSubscription, *, max_generation: int = DEFAULT_GENERATION, strict: bool = True
) -> StickyAnswer:
    """The assignment of ``sticky``. ``max_generation`` is the highest generation that the assignor's instance has seen.

    Raises JavaFailure where Kafka's class throws. One of these cases is a bug that can affect any group with different
    subscriptions; with ``strict`` False the rule that leads to it is skipped.
    """
    return assign_from_previous(group, _claims(group, previous_of_sticky), max_generation=max_generation, strict=strict)


def assign_cooperative(
    group: GroupSubscription, *, max_generation: int = DEFAULT_GENERATION, strict: bool = True
) -> StickyAnswer:
    """The assignment of ``cooperative-sticky``: as sticky, but no member gets what another has yet to revoke (KIP-429)."""
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
    """The algorithm of both, for known previous assignments."""
    members = members_in_hash_order(group)
    table = topic_table(members, group.partitions)
    ownership = collect_ownership(members, claims, table, max_generation)
    racks = RackInfo(group, members, table)
    if subscriptions_are_equal(members):
        constrained = ConstrainedAssignmentBuilder(table, ownership, racks)
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
    """``StickyAssignor``: sends the previous assignment to the leader in user data.

    With ``strict`` it fails where Kafka's class fails; otherwise the rule that leads to the failure is skipped.
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
        """The member's previous partitions and their generation; None before the first assignment."""
        return None if self._partitions is None else write_sticky(self._partitions, self._generation)

    def on_assignment(self, partitions: Sequence[TopicPartition], generation_id: int) -> None:
        """Remember the assignment for the next rebalance."""
        self._partitions, self._generation = partitions, generation_id


class CooperativeStickyAssignor(Assignor):
    """``CooperativeStickyAssignor``: under the cooperative protocol the subscription has the owned partitions."""

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

"""Simulates the rebalances of a group without a server: members join and leave, and the assignor runs as in a group's leader.

Between rebalances a member keeps what its protocol needs: under the eager protocol the user data of its assignor, under the
cooperative protocol the partitions that it owns. A cooperative rebalance that revokes partitions is followed by another, until
none is revoked.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from groupcoord.assignors.interface import (
    Assignment,
    Assignor,
    GroupSubscription,
    RebalanceProtocol,
    Subscription,
    TopicPartition,
)
from groupcoord.assignors.java_order import as_leader
from groupcoord.assignors.registry import ASSIGNORS, Registry
from groupcoord.assignors.validation import run_assignor


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnershipChange:
    """The change of one member's partitions, in the order of their assignment."""

    kept: Sequence[TopicPartition]
    gained: Sequence[TopicPartition]
    lost: Sequence[TopicPartition]


def ownership_changes(before: Assignment, after: Assignment) -> dict[str, OwnershipChange]:
    """Member id → its change; first the members in ``after``, then those that have left."""
    return {
        member_id: _change(before.get(member_id, ()), after.get(member_id, ()))
        for member_id in [*after, *(member_id for member_id in before if member_id not in after)]
    }


def _change(before: Sequence[TopicPartition], after: Sequence[TopicPartition]) -> OwnershipChange:
    had, has = frozenset(before), frozenset(after)
    return OwnershipChange(
        kept=[partition for partition in after if partition in had],
        gained=[partition for partition in after if partition not in had],
        lost=[partition for partition in before if partition not in has],
    )


def spread(assignment: Assignment) -> int:
    """The difference between the largest and the smallest number of partitions of a member."""
    sizes = [len(partitions) for partitions in assignment.values()]
    return max(sizes, default=0) - min(sizes, default=0)


def owners(assignment: Assignment) -> dict[TopicPartition, str]:
    """(topic, partition) → the id of its owner in ``assignment``."""
    return {partition: member_id for member_id, partitions in assignment.items() for partition in partitions}


def count_moved(before: Assignment, after: Assignment) -> int:
    """How many partitions have moved to another owner; those without an owner before or after do not count."""
    had: Mapping[TopicPartition, str] = owners(before)
    return sum(had.get(partition, member_id) != member_id for partition, member_id in owners(after).items())


MOST_REBALANCES = 10
"""An assignor that still revokes partitions after so many rebalances never converges."""


class GroupSimulationError(Exception):
    """An impossible step; the text tells why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RebalanceOutcome:
    """The result of one step."""

    assignment: Assignment
    changes: Mapping[str, OwnershipChange]
    """Compared with the previous step; a member that left has lost everything."""
    spread: int
    """The difference between the largest and the smallest number of partitions of a member."""
    moved: int
    """How many partitions moved from one owner to another."""
    rounds: Sequence[Assignment]
    """The assignment of each rebalance; the last is ``assignment``."""
    remark: str | None
    """The assignor's remark about it."""


@dataclass(slots=True)
class _Member:
    assignor: Assignor
    topics: Sequence[str]
    owned: Sequence[TopicPartition] = ()
    generation: int | None = None


class GroupSimulator:
    """A group whose members all use the assignor called ``name``, with ``topics`` and their partition counts."""

    def __init__(self, name: str, topics: Mapping[str, int], registry: Registry = ASSIGNORS) -> None:
        self._name = name
        self._topics = topics
        self._registry = registry
        self._protocol = max(registry.create(name).protocols)
        self._members: dict[str, _Member] = {}
        self._before: Assignment = {}
        self._generation = 0

    def join(self, member_id: str, topics: Sequence[str] | None = None) -> None:
        """Add a member that subscribes to ``topics``, or to all. Raises GroupSimulationError if it exists."""
        if member_id in self._members:
            raise GroupSimulationError(f"{member_id} is a member already")
        wanted = list(self._topics) if topics is None else topics
        self._members[member_id] = _Member(self._registry.create(self._name), wanted)

    def leave(self, member_id: str) -> None:
        """Remove a member. Raises GroupSimulationError if it does not exist."""
        if member_id not in self._members:
            raise GroupSimulationError(f"{member_id} cannot leave: there is no such member")
        del self._members[member_id]

    def rebalance(self) -> RebalanceOutcome:
        """Rebalance until no member has to revoke anything.

        Raises GroupSimulationError if the group is empty, and FaultyAssignorError.
        """
        if not self._members:
            raise GroupSimulationError("the group has no members, so there is nothing to assign")
        rounds = [self._round()]
        while self._gave_up(rounds) and len(rounds) < MOST_REBALANCES:
            rounds.append(self._round())
        before, self._before = self._before, rounds[-1]
        remark = getattr(next(iter(self._members.values())).assignor, "remark", None)
        return RebalanceOutcome(
            assignment=rounds[-1],
            changes=ownership_changes(before, rounds[-1]),
            spread=spread(rounds[-1]),
            moved=count_moved(before, rounds[-1]),
            rounds=rounds,
            remark=remark(rounds[-1]) if callable(remark) else None,
        )

    def _gave_up(self, rounds: Sequence[Assignment]) -> bool:
        """Has a cooperative member revoked something in the latest rebalance, so that it joins again?"""
        if self._protocol is RebalanceProtocol.EAGER:
            return False
        before = rounds[-2] if len(rounds) > 1 else self._before
        change = ownership_changes(before, rounds[-1])
        return any(change[member_id].lost for member_id in rounds[-1])

    def _round(self) -> Assignment:
        subscriptions = {member_id: self._subscription(member) for member_id, member in self._members.items()}
        group = as_leader(GroupSubscription(subscriptions=subscriptions, partitions=self._topics))
        leader = next(iter(self._members.values()))
        answer = run_assignor(leader.assignor, group, self._protocol)
        self._generation += 1
        for member_id, member in self._members.items():
            member.owned, member.generation = answer[member_id], self._generation
            member.assignor.on_assignment(answer[member_id], self._generation)
        return {member_id: list(answer[member_id]) for member_id in self._members}

    def _subscription(self, member: _Member) -> Subscription:
        cooperative = self._protocol is RebalanceProtocol.COOPERATIVE
        return Subscription(
            topics=member.topics,
            user_data=member.assignor.subscription_user_data(member.topics),
            owned_partitions=member.owned if cooperative else (),
            generation_id=member.generation,
        )

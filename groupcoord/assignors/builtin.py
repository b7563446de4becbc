"""Kafka's four assignors of the classic protocol, as a member has them."""

from collections.abc import Sequence

from groupcoord.assignors import range_assignor, roundrobin
from groupcoord.assignors.interface import Assignment, Assignor, GroupSubscription, RebalanceProtocol, TopicPartition
from groupcoord.assignors.sticky.assignor import COOPERATIVE_STICKY, STICKY, assign_cooperative, assign_sticky
from groupcoord.assignors.sticky.previous_assignment import DEFAULT_GENERATION, write_cooperative, write_sticky


class RangeAssignor(Assignor):
    """``RangeAssignor``."""

    name = range_assignor.NAME

    def assign(self, group: GroupSubscription) -> Assignment:
        """See :func:`groupcoord.assignors.range_assignor.assign`."""
        return range_assignor.assign(group)


class RoundRobinAssignor(Assignor):
    """``RoundRobinAssignor``."""

    name = roundrobin.NAME

    def assign(self, group: GroupSubscription) -> Assignment:
        """See :func:`groupcoord.assignors.roundrobin.assign`."""
        return roundrobin.assign(group)


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
        """See :func:`groupcoord.assignors.sticky.assignor.assign_sticky`."""
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
        """See :func:`groupcoord.assignors.sticky.assignor.assign_cooperative`."""
        answer = assign_cooperative(group, max_generation=self._max_generation, strict=self._strict)
        self._max_generation = answer.max_generation
        return answer.assignment

    def subscription_user_data(self, topics: Sequence[str]) -> bytes | None:  # noqa: ARG002 - whatever the topics
        """The generation of the last assignment; -1 before the first."""
        return write_cooperative(self._generation)

    def on_assignment(self, partitions: Sequence[TopicPartition], generation_id: int) -> None:  # noqa: ARG002 - see above
        """Remember the generation."""
        self._generation = generation_id

"""A group as a test looks at it: what it is now, and waiting for what it shall become."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from groupcoord.cluster.cluster_core import ClusterCore
from groupcoord.coordinator.classic.group import ClassicGroup
from groupcoord.coordinator.classic.member import Member
from groupcoord.coordinator.classic.states import GroupState
from groupcoord.core.api_error import ApiError
from groupcoord.testing.views import SeenGroup, SeenMember, TopicPartition, assigned_by
from groupcoord.testing.waiting import Waiting


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberView(SeenMember):
    """A member of a group at one moment. ``assigned`` is what the leader gave it in the present generation."""

    session_timeout_ms: int
    protocols: tuple[str, ...]
    waits_in: str | None
    """``join`` or ``sync`` while such a request of its waits for others."""

    def name(self) -> str:
        """What to call it in a line, and what it waits in."""
        called = self.client_id or self.member_id
        return f"{called} (waits in {self.waits_in})" if self.waits_in else called


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupView(SeenGroup[MemberView]):
    """A group at one moment; ``state`` is Kafka's word, and ``Dead`` if there is no such group.

    While this broker does not coordinate the group, it is the name of the error that clients get.
    """

    generation: int
    leader: str | None

    def title(self) -> str:
        """The group without its members."""
        return f"{self.group} {self.state} gen={self.generation}"


class Group:
    """One group of a cluster, whether it exists already or not."""

    def __init__(self, name: str, node: Callable[[], ClusterCore], waiting: Waiting) -> None:
        self.name = name
        self._node = node
        self._waiting = waiting

    def __repr__(self) -> str:
        return f"<Group {self.view().text()}>"

    # What it is.

    def view(self) -> GroupView:
        """The group as it is now."""
        try:
            found = self._node().coordinator.shard_of(self.name).groups.get(self.name)
        except ApiError as refusal:
            return self._nothing(refusal.code.name)
        if found is None:
            return self._nothing(GroupState.DEAD)
        return GroupView(
            group=self.name,
            state=found.state,
            generation=found.generation_id,
            protocol=found.protocol_name,
            leader=found.leader_id,
            members=tuple(_member(found, member) for member in found.members.values()),
        )

    def _nothing(self, state: str) -> GroupView:
        return GroupView(group=self.name, state=state, generation=0, protocol=None, leader=None, members=())

    @property
    def state(self) -> str:
        """Kafka's word for its state: Empty, PreparingRebalance, CompletingRebalance, Stable or Dead."""
        return self.view().state

    def assignment(self) -> Mapping[str, frozenset[TopicPartition]]:
        """Member id → what it was assigned in the present generation."""
        return self.view().assignment

    def committed(self, topic: str, partition: int) -> int | None:
        """The committed offset, as the coordinator has it; None if there is none."""
        found = self._node().coordinator.shard_of(self.name).offsets.get(self.name, topic, partition)
        return None if found is None else found.offset

    def offsets(self) -> Mapping[TopicPartition, int]:
        """All committed offsets."""
        store = self._node().coordinator.shard_of(self.name).offsets
        return {
            (topic, partition): committed.offset
            for topic, partitions in store.of_group(self.name)
            for partition, committed in partitions
        }

    def lag(self) -> Mapping[TopicPartition, int]:
        """How many records are behind each committed offset, for partitions that exist."""
        found = {}
        for (topic, partition), offset in self.offsets().items():
            log = self._node().broker.log(topic, partition)
            if log is not None:
                found[topic, partition] = max(0, log.log_end_offset - offset)
        return found

    # Waiting. Every one of these raises WaitTimeoutError, which says what was seen last.

    async def stable(
        self, members: int | None = None, *, generation: int | None = None, timeout_s: float | None = None
    ) -> GroupView:
        """Wait until the group is Stable, with so many members, in that generation or a later one, as far as given."""

        def fits(view: GroupView) -> bool:
            return (
                view.state == GroupState.STABLE
                and members in (None, len(view.members))
                and (generation is None or view.generation >= generation)
            )

        wanted = "be stable" + ("" if members is None else f" with {members} members")
        return await self.becomes(fits, wanted + _in_generation(generation), timeout_s=timeout_s)

    async def generation(self, number: int, *, timeout_s: float | None = None) -> GroupView:
        """Wait for generation ``number`` or a later one to begin, whatever its members have done so far."""
        return await self.becomes(
            lambda view: view.generation >= number and view.state != GroupState.DEAD,
            f"begin generation {number}",
            timeout_s=timeout_s,
        )

    async def rebalancing(self, *, timeout_s: float | None = None) -> GroupView:
        """Wait until a rebalance is going on: the members are joining, or waiting for the leader."""
        return await self.becomes(
            lambda view: view.state in (GroupState.PREPARING_REBALANCE, GroupState.COMPLETING_REBALANCE),
            "rebalance",
            timeout_s=timeout_s,
        )

    async def empty(self, *, timeout_s: float | None = None) -> GroupView:
        """Wait until the group is there and has no members."""
        return await self.becomes(lambda view: view.state == GroupState.EMPTY, "be empty", timeout_s=timeout_s)

    async def dead(self, *, timeout_s: float | None = None) -> GroupView:
        """Wait until there is no such group."""
        return await self.becomes(lambda view: view.state == GroupState.DEAD, "be gone", timeout_s=timeout_s)

    async def commits(self, topic: str, partition: int, offset: int, *, timeout_s: float | None = None) -> int:
        """Wait until ``offset`` or a later one is committed; returns what is."""
        found: tuple[int] = await self._waiting.until(
            lambda: (at,) if (at := self.committed(topic, partition)) is not None and at >= offset else None,
            f"group {self.name} should commit {offset} for {topic}-{partition}",
            lambda: f"It has committed {self.committed(topic, partition)}; {self.view().text()}",
            timeout_s=timeout_s,
        )
        return found[0]

    async def becomes(
        self, condition: Callable[[GroupView], bool], what: str, *, timeout_s: float | None = None
    ) -> GroupView:
        """Wait until ``condition`` holds of the group; ``what`` says in the error what it should have done."""
        return await self._waiting.until(
            lambda: view if condition(view := self.view()) else None,
            f"group {self.name} should {what}",
            lambda: f"It is {self.view().text()}",
            timeout_s=timeout_s,
        )


def _member(group: ClassicGroup, member: Member) -> MemberView:
    return MemberView(
        member_id=member.member_id,
        instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        session_timeout_ms=member.session_timeout_ms,
        protocols=member.protocol_names,
        assigned=assigned_by(member.assignment, group.protocol_type),
        waits_in="join" if member.parked_join else "sync" if member.parked_sync else None,
    )


def _in_generation(number: int | None) -> str:
    return "" if number is None else f" in generation {number}"

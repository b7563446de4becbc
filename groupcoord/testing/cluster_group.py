"""ClusterGroup, a group of an in-process cluster: reads the group's state directly from the coordinator, and can force events:
expire or fence a member, rebalance, unload, load or move the coordinator."""

from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Any

from groupcoord.assignors import TopicPartition
from groupcoord.broker.topic_names import CONSUMER_OFFSETS
from groupcoord.cluster.cluster_core import ClusterCore
from groupcoord.coordinator.classic.classic_group import ClassicGroup
from groupcoord.coordinator.classic.classic_group_state import GroupState, Member
from groupcoord.coordinator.consumer.consumer_group import ConsumerGroup
from groupcoord.coordinator.consumer.member import ConsumerMember
from groupcoord.coordinator.group import GroupType
from groupcoord.core.api_error import ApiError
from groupcoord.testing import forced_actions_on_core
from groupcoord.testing.engine import Engine
from groupcoord.testing.forgotten_awaits import noted
from groupcoord.testing.group_handle import Codes, GroupDescription, GroupHandle, MemberDescription, assigned_by
from groupcoord.testing.topic_settings import require_partition
from groupcoord.testing.trace.short_member_names import ShortMemberNames
from groupcoord.testing.wait_reasons import explained, wait_reasons


@noted
class ClusterGroup(GroupHandle):
    """One group of a :class:`~groupcoord.testing.cluster.Cluster`. Actions raise ValueError if they are not possible."""

    def __init__(self, name: str, engine: Engine, ask: Callable[..., Awaitable[Any]]) -> None:
        super().__init__(name)
        self._engine = engine
        self._ask = ask

    def __repr__(self) -> str:
        return f"<ClusterGroup {self.description().text()}>"

    # State.

    async def describe(self) -> GroupDescription:
        """The group as it is now."""
        return self.description()

    def description(self) -> GroupDescription:
        """As ``describe``, without ``await``, for use in conditions."""
        return group_description(self._engine.core, self.name)

    async def _stored(self, topic: str, partition: int) -> int | None:
        return self._committed(topic, partition)

    def _committed(self, topic: str, partition: int) -> int | None:
        found = self._engine.core.coordinator.shard_of(self.name).machine.offsets.get(self.name, topic, partition)
        return None if found is None else found.offset

    async def offsets(self) -> Mapping[TopicPartition, int]:
        """All committed offsets."""
        store = self._engine.core.coordinator.shard_of(self.name).machine.offsets
        return {
            (topic, partition): committed.offset
            for topic, partitions in store.of_group(self.name)
            for partition, committed in partitions
        }

    async def _log_ends(self, topics: Collection[str]) -> Mapping[TopicPartition, int]:
        found = (self._engine.core.broker.topics.get(topic) for topic in sorted(topics))
        return {
            (topic.name, number): log.log_end_offset
            for topic in found
            if topic is not None
            for number, log in enumerate(topic.partitions)
        }

    # Waiting.

    async def wait_until(
        self, condition: Callable[[GroupDescription], bool], what: str, *, timeout: float | None = None
    ) -> GroupDescription:
        """Wait until ``condition`` is true of the group; ``what`` says in the error text what it should have done."""
        return await self._engine.waiting.until(
            lambda: seen if condition(seen := self.description()) else None,
            f"group {self.name} should {what}",
            lambda: self._explained(f"It is {self.description().text()}"),
            timeout=timeout,
        )

    async def wait_committed(self, topic: str, partition: int, offset: int, *, timeout: float | None = None) -> int:
        """Wait until ``offset`` or a later one is committed; returns the committed offset."""
        found: tuple[int] = await self._engine.waiting.until(
            lambda: (at,) if (at := self._committed(topic, partition)) is not None and at >= offset else None,
            f"group {self.name} should commit {offset} for {topic}-{partition}",
            lambda: self._explained(self._uncommitted(topic, partition)),
            timeout=timeout,
        )
        return found[0]

    def _uncommitted(self, topic: str, partition: int) -> str:
        try:
            require_partition(topic, partition, self._engine.partition_counts())
        except ValueError as problem:
            return f"{problem}"[:1].upper() + f"{problem}"[1:]
        return f"It has committed {self._committed(topic, partition)}; {self.description().text()}"

    def _explained(self, seen: str) -> str:
        names = ShortMemberNames(self._engine.trace.entries())
        return explained(names.shortened(seen), wait_reasons(self._engine, group=self.name))

    # Actions.

    async def _topics(self) -> Mapping[str, int]:
        return self._engine.partition_counts()

    async def _ask_coordinator(self, request: Any, *, newest: int | None = None, codes: Codes = lambda _: ()) -> Any:  # noqa: ARG002 - what is here need not be asked again
        return await self._ask(request, version=newest, broker_id=self._engine.coordinator_of(self.name))

    async def expire_member(self, member: str) -> None:
        """Let the session of ``member`` (a member id, instance id or client id) time out now. Raises LookupError and
        ValueError."""
        found = self.description().member(member)
        await self._engine.act(
            forced_actions_on_core.expire(*self._at, found.member_id, self._engine.clock()), f"expire {member}"
        )

    async def fence_member(self, instance_id: str) -> None:
        """Fence the static member ``instance_id``: another member takes over its group.instance.id. Raises ValueError.

        To fence a member of a consumer group that has no instance id, use a fault rule for its heartbeats:
        ``kafka.faults.when("ConsumerGroupHeartbeat", member=…).refuse("FENCED_MEMBER_EPOCH")``.
        """
        await self._engine.act(
            forced_actions_on_core.fence(*self._at, instance_id, self._engine.clock()), f"fence {instance_id}"
        )

    async def force_rebalance(self, reason: str = "the test wants it") -> None:
        """Force a rebalance: the members have to join again. Events give the ``reason``. Raises ValueError for a consumer
        group."""
        effects = forced_actions_on_core.force_rebalance(*self._at, reason, self._engine.clock())
        await self._engine.act(effects, f"force a rebalance: {reason}")

    @property
    def coordinator(self) -> int:
        """The id of the broker that coordinates this group: ``await kafka.broker(group.coordinator).kill()``."""
        return self._engine.coordinator_of(self.name)

    async def unload_coordinator(self) -> None:
        """Unload the coordinator of this group, and of all groups of its partition, until ``load_coordinator``."""
        await self._engine.unload_coordinator(CONSUMER_OFFSETS, self.name)

    async def load_coordinator(self) -> None:
        """Load the coordinator again: all groups of its partition are read from ``__consumer_offsets``."""
        await self._engine.load_coordinator(CONSUMER_OFFSETS, self.name)

    async def move_coordinator(self, to: int) -> None:
        """Move the coordinator of this group, and of all groups of its partition, to the broker with the id ``to``."""
        await self._engine.move_coordinator(CONSUMER_OFFSETS, self.name, to)

    @property
    def _at(self) -> tuple[ClusterCore, str]:
        return self._engine.core, self.name


def group_description(core: ClusterCore, name: str) -> GroupDescription:
    """The description of the group ``name``, as the coordinator in ``core`` has it now."""
    try:
        shard = core.coordinator.shard_of(name)
        shard.require_active()
        found = shard.machine.groups.get(name)
    except ApiError as refusal:
        return GroupDescription(group=name, state=refusal.code.name, generation=0)
    if isinstance(found, ConsumerGroup):
        return _consumer_group(found)
    if not isinstance(found, ClassicGroup):
        return GroupDescription(group=name, state=GroupState.DEAD, generation=0)
    return GroupDescription(
        group=name,
        state=found.state,
        generation=found.generation_id,
        protocol=found.protocol_name,
        leader=found.leader_id,
        members=tuple(_member(found, member) for member in found.members.values()),
    )


def _member(group: ClassicGroup, member: Member) -> MemberDescription:
    return MemberDescription(
        member_id=member.member_id,
        instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        session_timeout_ms=member.session_timeout_ms,
        protocols=member.protocol_names,
        assigned=assigned_by(member.assignment, group.protocol_type),
        waits_in="join" if member.parked_join else "sync" if member.parked_sync else None,
    )


def _consumer_group(group: ConsumerGroup) -> GroupDescription:
    epochs, index = group.epochs, group.index
    return GroupDescription(
        group=group.group_id,
        type=GroupType.CONSUMER,
        state=group.state,
        epoch=epochs.group,
        assignment_epoch=epochs.assignment,
        protocol=index.preferred_assignor(without=None, plus=None) or group.context.config.group_consumer_assignors[0],
        members=tuple(_consumer_member(group, member) for _, member in group.members.in_order()),
    )


def _consumer_member(group: ConsumerGroup, member: ConsumerMember) -> MemberDescription:
    timeout_ms = member.session_timeout_ms
    return MemberDescription(
        member_id=member.member_id,
        instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        session_timeout_ms=group.context.config_of(group.group_id).session_timeout_ms
        if timeout_ms is None
        else timeout_ms,
        type=GroupType.CLASSIC if member.is_classic else GroupType.CONSUMER,
        assigned=frozenset(group.named(member.assigned)),
        epoch=member.member_epoch,
        state=member.state.name,
        revoking=frozenset(group.named(member.revoking)),
        target=frozenset(group.named(group.target(member.member_id))),
    )

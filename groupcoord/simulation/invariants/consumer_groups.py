"""Invariants of consumer groups (KIP-848): epochs, partition owners, subscriptions, timers, replay of the log, convergence."""

import uuid
from typing import Any, TypeAlias

from groupcoord.assignors import read_assignment, read_subscription
from groupcoord.cluster.coordinator_partition_writer import STORE, AppendDecision
from groupcoord.coordinator.consumer.consumer_group import ConsumerGroup
from groupcoord.coordinator.consumer.consumer_group_members_and_epochs import (
    ConsumerGroupState,
    Epochs,
    GroupSnapshot,
)
from groupcoord.coordinator.consumer.consumer_group_sessions import REBALANCE, SESSION
from groupcoord.coordinator.consumer.member import AWAY_EPOCH, MemberState
from groupcoord.coordinator.events import GroupMigrated, GroupRemoved
from groupcoord.core.effects import Call
from groupcoord.core.events import Event
from groupcoord.core.timers import TimerKey
from groupcoord.protocol.apis import ApiKey
from groupcoord.simulation.consumer_application import GROUP
from groupcoord.simulation.invariants.base import Invariant
from groupcoord.simulation.plan import SimulationPlan

MAX_HEARTBEATS = 12
"""In a group without faults every member is reconciled after at most so many heartbeats; see BoundedReconciliation."""

_NOTHING = GroupSnapshot(Epochs(), [], {})
"""What is stored of a new group while its first records are appended."""
_Held: TypeAlias = frozenset[tuple[uuid.UUID, int]]
_HEARTBEATS = frozenset({ApiKey.HEARTBEAT, ApiKey.CONSUMER_GROUP_HEARTBEAT})


class ConsumerGroupInvariant(Invariant):
    """An invariant of the group while it is a consumer group."""

    @property
    def group(self) -> ConsumerGroup | None:
        """The consumer group, if there is one."""
        return self.context.brokers.consumer_group

    @property
    def stored(self) -> GroupSnapshot | None:
        """The consumer group as stored in the log."""
        group, shard = self.group, self.context.brokers.shard
        return None if group is None else group.snapshot(shard.committed.pending)


class MonotonicEpochs(ConsumerGroupInvariant):
    """The epochs of a consumer group never decrease: neither the stored group epoch and assignment epoch, nor the member
    epoch in responses. A group that was removed starts again, as does a member that joins."""

    name = "epochs-grow"
    apis = frozenset({ApiKey.CONSUMER_GROUP_HEARTBEAT})

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._latest = (0, 0)
        self._told: dict[str, int] = {}

    def event_emitted(self, event: Event) -> None:
        """Forget the epochs of a group that is removed or becomes a classic one."""
        if isinstance(event, GroupRemoved | GroupMigrated):
            self._latest = (0, 0)
            self._told.clear()

    def response_sent(self, call: Call, response: Any) -> None:
        """Raises InvariantViolation if a member gets a lower epoch than before."""
        if response.error_code:
            return
        member_id, epoch = response.member_id, response.member_epoch
        if epoch < 0:
            self._told.pop(member_id, None)
            return
        before = self._told.get(member_id, 0)
        if epoch < before:
            raise self.violation(f"{call.client_id} is told epoch {epoch}, and was told {before} before")
        self._told[member_id] = epoch

    def step_done(self) -> None:
        stored = self.stored
        if stored is None:
            self._latest = (0, 0)
            return
        found = (stored.epochs.group, max(stored.epochs.assignment, 0))
        for what, before, after in zip(("group", "target assignment"), self._latest, found, strict=True):
            if after < before:
                raise self.violation(f"the epoch of the {what} is {after}, and it was {before} before")
        self._latest = found


class ToldOwners(ConsumerGroupInvariant):
    """No member of a consumer group is assigned a partition that another member was assigned and has not released. A member
    releases partitions by the owned partitions in its heartbeat or JoinGroup, and when it is out of the group. It never sees
    the response to a heartbeat if it has sent another one meanwhile, by another connection."""

    name = "one-owner-told"
    apis = frozenset({ApiKey.CONSUMER_GROUP_HEARTBEAT, ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP})

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._held: dict[str, _Held] = {}
        self._syncing: dict[tuple[int, int], str] = {}
        self._last_heartbeats: dict[str, tuple[int, int]] = {}

    def request_received(self, call: Call, request: Any) -> None:
        """The owned partitions in a request are all that the member has."""
        if not self.context.brokers.coordinates(call.broker) or not self.context.brokers.has_coordinator:
            return
        key, member_id = call.api.key, request.member_id
        if key == ApiKey.CONSUMER_GROUP_HEARTBEAT:
            self._last_heartbeats[member_id] = call.connection_id, call.correlation_id
        if key == ApiKey.SYNC_GROUP:
            self._syncing[call.connection_id, call.correlation_id] = member_id
        elif key == ApiKey.JOIN_GROUP:
            said = read_subscription(request.protocols[0].metadata, request.group_instance_id)
            self._owns(member_id, self._ids(said.owned_partitions))
        elif request.member_epoch < 0:
            self._held.pop(member_id, None)
        elif request.topic_partitions is not None:
            self._owns(
                member_id, frozenset((each.topic_id, n) for each in request.topic_partitions for n in each.partitions)
            )

    def response_sent(self, call: Call, response: Any) -> None:
        """Raises InvariantViolation for an assigned partition that another member still has."""
        key, place = call.api.key, (call.connection_id, call.correlation_id)
        if key == ApiKey.SYNC_GROUP:
            member_id = self._syncing.pop(place, None)
            if member_id is not None and not response.error_code and response.assignment:
                self._told(member_id, self._ids(read_assignment(response.assignment)))
        elif key == ApiKey.CONSUMER_GROUP_HEARTBEAT and not response.error_code and response.assignment is not None:
            if self._last_heartbeats.get(response.member_id, place) != place:
                return
            parts = response.assignment.topic_partitions
            self._told(response.member_id, frozenset((each.topic_id, n) for each in parts for n in each.partitions))

    def _owns(self, member_id: str, said: _Held) -> None:
        self._held[member_id] = self._held.get(member_id, frozenset()) & said

    def _told(self, member_id: str, partitions: _Held) -> None:
        group = self.group
        self._held[member_id] = self._held.get(member_id, frozenset()) | partitions
        if group is None:
            return
        self._held = {each: held for each, held in self._held.items() if each in group.members}
        for other, held in self._held.items():
            if other != member_id and (both := held & partitions):
                topic_id, number = min(both)
                name = f"{group.context.topics.view.topic_name(topic_id)}-{number}"
                raise self.violation(f"{member_id} is told to have {name}, which {other} has not given back")

    def _ids(self, partitions: Any) -> _Held:
        topics = self.context.brokers.cluster.broker.topics
        named = ((topics.topic_id(topic), number) for topic, number in partitions)
        return frozenset((topic_id, number) for topic_id, number in named if topic_id is not None)


class OnlySubscribed(ConsumerGroupInvariant):
    """A member of a consumer group is never assigned a partition of a topic to which it is not subscribed. The
    subscription is that of this heartbeat or, if it has none, of the last heartbeat with one that got a response."""

    name = "only-subscribed"
    apis = frozenset({ApiKey.CONSUMER_GROUP_HEARTBEAT})

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._said: dict[tuple[int, int], tuple[str, ...] | None] = {}
        self._subscribed: dict[str, tuple[str, ...]] = {}

    def request_received(self, call: Call, request: Any) -> None:
        """Remember the subscription."""
        self._said[call.connection_id, call.correlation_id] = request.subscribed_topic_names

    def response_sent(self, call: Call, response: Any) -> None:
        said = self._said.pop((call.connection_id, call.correlation_id), None)
        if response.error_code or response.member_epoch < 0:
            return
        if said is not None:
            self._subscribed[response.member_id] = said
        if response.assignment is None:
            return
        topics = self.context.brokers.cluster.broker.topics
        for each in response.assignment.topic_partitions:
            name = topics.topic_name(each.topic_id)
            if name is not None and name not in self._subscribed[response.member_id]:
                raise self.violation(
                    f"{call.client_id} is told to have partitions of {name}, to which it does not subscribe"
                )


class ConsumerTimers(ConsumerGroupInvariant):
    """Every member of a consumer group has a session timer, and a member of the consumer protocol that must revoke partitions
    has a rebalance timer, unless it is static and has left for now; checked only while no append is held or has failed. A
    failed append is undone, but timers are not, as in Kafka; they restart with the next heartbeat, and when a coordinator
    loads its log. Not checked where brokers fail."""

    name = "consumer-timers"

    @classmethod
    def applies(cls, plan: SimulationPlan) -> bool:
        return not plan.replicated

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._all_stored = True

    def append_decided(self, decision: AppendDecision) -> None:
        """Stop checking after an append that is not stored at once."""
        self._all_stored &= decision == STORE

    def coordinator_loaded(self) -> None:
        """Check again: loading restarts all timers."""
        self._all_stored = True

    def step_done(self) -> None:
        group, brokers = self.group, self.context.brokers
        if group is None or not self._all_stored or not brokers.has_coordinator:
            return
        timers = brokers.cluster.coordinator.timers
        for member in group.members.values():
            if TimerKey(SESSION, GROUP, member.member_id) not in timers:
                raise self.violation(f"{member.member_id} has no session timer")
            revokes = member.state is MemberState.UNREVOKED_PARTITIONS and not member.is_classic
            if (
                revokes
                and member.member_epoch != AWAY_EPOCH
                and TimerKey(REBALANCE, GROUP, member.member_id) not in timers
            ):
                raise self.violation(f"{member.member_id} may take for ever to give partitions back")


class ConsumerReplay(ConsumerGroupInvariant):
    """A coordinator that loads its log has the consumer group that was stored when it unloaded: epochs, members with all
    their fields, and target assignment. Not checked where brokers fail, since the log may have more."""

    name = "consumer-replay"

    @classmethod
    def applies(cls, plan: SimulationPlan) -> bool:
        return not plan.replicated

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._expected: GroupSnapshot | None = None

    def coordinator_unloading(self) -> None:
        """Remember the stored state, which is expected after loading."""
        self._expected = None if self.stored == _NOTHING else self.stored

    def coordinator_loaded(self) -> None:
        before, after = self._expected, self.stored
        if before is None or not self.context.brokers.has_coordinator:
            return
        if after is None:
            raise self.violation("the consumer group is not there any more")
        for part, old, new in (
            ("epochs", before.epochs, after.epochs),
            ("members", _by_id(before), _by_id(after)),
            ("target assignments", before.targets, after.targets),
        ):
            if old != new:
                raise self.violation(f"{part}: it was {old}, the log says {new}")


def _by_id(snapshot: GroupSnapshot) -> dict[str, Any]:
    return {member.member_id: member for member in snapshot.members}


class BoundedReconciliation(ConsumerGroupInvariant):
    """After the faults, when all members of a consumer group are running, every member has its target assignment before any
    member has got 12 heartbeat responses since the last change of the group epoch."""

    name = "settles"
    apis = _HEARTBEATS

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._epoch = 0
        self._answered: dict[str | None, int] = {}

    def response_sent(self, call: Call, response: Any) -> None:
        del response
        group, now_ms = self.group, self.context.event_queue.now_ms
        if group is None or now_ms <= self.context.plan.heal_ms or group.state == ConsumerGroupState.STABLE:
            self._answered.clear()
            return
        running = {process.member_id for process in self.context.processes() if not process.leaving}
        if group.epochs.group != self._epoch or any(each.member_id not in running for each in group.members.values()):
            self._epoch = group.epochs.group
            self._answered.clear()
            return
        count = self._answered[call.client_id] = self._answered.get(call.client_id, 0) + 1
        if count > MAX_HEARTBEATS:
            raise self.violation(
                f"{call.client_id} was answered {count} heartbeats at epoch {self._epoch}, and the group is {group.state}"
            )

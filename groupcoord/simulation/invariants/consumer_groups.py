"""Invariants of consumer groups (KIP-848): epochs, owners, subscriptions, timers, the log, and that they settle."""

import uuid
from typing import Any, TypeAlias

from groupcoord.assignors import read_assignment, read_subscription
from groupcoord.cluster.append_gate import STORE, AppendDecision
from groupcoord.coordinator.consumer.consumer_group_state import ConsumerGroupState, GroupSnapshot
from groupcoord.coordinator.consumer.group import ConsumerGroup
from groupcoord.coordinator.consumer.member import MemberState
from groupcoord.coordinator.consumer.member_timers import REBALANCE, SESSION
from groupcoord.coordinator.events import GroupMigrated, GroupRemoved
from groupcoord.core.effects import Call
from groupcoord.core.events import Event
from groupcoord.core.timers import TimerKey
from groupcoord.protocol.apis import ApiKey
from groupcoord.simulation.application import GROUP
from groupcoord.simulation.invariants.base import Invariant
from groupcoord.simulation.plan import SimulationPlan

MAX_HEARTBEATS = 12
"""In a group without faults, a member is where it is to be after so many heartbeats, those of a slow one included; see
BoundedReconciliation."""

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
        """The consumer group as the log has it."""
        group, shard = self.group, self.context.brokers.shard
        return None if group is None else group.snapshot(shard.committed.pending)


class MonotonicEpochs(ConsumerGroupInvariant):
    """The epochs of a consumer group never decrease: neither that of the group nor that of its target assignment, as they
    are stored, nor that which a member is told. A group that is gone starts anew, as does a member that joins."""

    name = "epochs-grow"
    apis = frozenset({ApiKey.CONSUMER_GROUP_HEARTBEAT})

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._latest = (0, 0)
        self._told: dict[str, int] = {}

    def event_emitted(self, event: Event) -> None:
        """A group that is removed, or becomes a classic one, is forgotten."""
        if isinstance(event, GroupRemoved | GroupMigrated):
            self._latest = (0, 0)
            self._told.clear()

    def response_sent(self, call: Call, response: Any) -> None:
        """Raises InvariantViolation for a member that is told an earlier epoch than before."""
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
    """No member of a consumer group is told to have a partition that another member was told to have and has not given back.
    It gives back by what it says that it owns, in a heartbeat or a JoinGroup, and when it is out of the group."""

    name = "one-owner-told"
    apis = frozenset({ApiKey.CONSUMER_GROUP_HEARTBEAT, ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP})

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._held: dict[str, _Held] = {}
        self._syncing: dict[tuple[int, int], str] = {}

    def request_received(self, call: Call, request: Any) -> None:
        """What a member says that it owns is all that it has."""
        if not self.context.brokers.coordinates(call.broker) or not self.context.brokers.has_coordinator:
            return
        key, member_id = call.api.key, request.member_id
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
        """Raises InvariantViolation for a partition that is another member's."""
        key = call.api.key
        if key == ApiKey.SYNC_GROUP:
            member_id = self._syncing.pop((call.connection_id, call.correlation_id), None)
            if member_id is not None and not response.error_code and response.assignment:
                self._told(member_id, self._ids(read_assignment(response.assignment)))
        elif key == ApiKey.CONSUMER_GROUP_HEARTBEAT and not response.error_code and response.assignment is not None:
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
    """A member of a consumer group is never told to have a partition of a topic that it did not subscribe to in this
    heartbeat or, if that did not say, in the last one that was answered."""

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
    """Every member of a consumer group has a session timer, and one with the consumer protocol that has to give partitions
    back has a rebalance timer: as long as every append is stored at once. What fails is undone, and timers are not, in Kafka
    neither; they begin anew with the next heartbeat, and when a coordinator reads its log. Where brokers fail that is not
    looked at."""

    name = "consumer-timers"

    @classmethod
    def applies(cls, plan: SimulationPlan) -> bool:
        return not plan.replicated

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._all_stored = True

    def append_decided(self, decision: AppendDecision) -> None:
        """What is not stored at once may be undone, and timers are not."""
        self._all_stored &= decision == STORE

    def coordinator_loaded(self) -> None:
        """All timers begin anew."""
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
            if revokes and TimerKey(REBALANCE, GROUP, member.member_id) not in timers:
                raise self.violation(f"{member.member_id} may take for ever to give partitions back")


class ConsumerReplay(ConsumerGroupInvariant):
    """A coordinator that reads its log has the consumer group that was stored when it lost its state: epochs, members with
    all that is known of them, and what each is to have. Where brokers fail, more may be in the log."""

    name = "consumer-replay"

    @classmethod
    def applies(cls, plan: SimulationPlan) -> bool:
        return not plan.replicated

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._expected: GroupSnapshot | None = None

    def coordinator_unloading(self) -> None:
        """The stored state is expected again."""
        self._expected = self.stored

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
    """When all is well again and all members of a consumer group are running, each of them has what it is to have before any
    has been answered 12 heartbeats since the epoch of the group last changed."""

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

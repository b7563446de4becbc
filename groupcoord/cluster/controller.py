"""Brokers that stop, die, pause and come back, and what the controller makes of that: fencing, elections, replicas in sync.

The controller is a node of its own, as with ``process.roles=controller``; controller_node.py says what becomes of that. A
broker that goes without a word is fenced when its session ends, exactly ``broker.session.timeout.ms`` later; in Kafka the
session begins with its last heartbeat, so that it may be ``broker.heartbeat.interval.ms`` less. Sources:
``ReplicationControlManager``, ``ClusterControlManager``, ``BrokerHeartbeatManager``.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

from groupcoord.broker.broker import Broker
from groupcoord.broker.events import BrokerStateChanged, RegistrationRefused
from groupcoord.broker.leader_election import NO_LEADER, Election, PartitionState, Replicas, after_change
from groupcoord.broker.topic_store import Topic
from groupcoord.cluster.broker_condition import BrokerCondition, BrokerState
from groupcoord.cluster.leader_rebalance import LeaderRebalance
from groupcoord.cluster.network_cuts import (
    CLIENTS,
    CONTROLLER,
    NetworkCuts,
    Peer,
    StaleMetadata,
    named,
    other_broker,
    require_cut,
)
from groupcoord.cluster.quorum import MetadataQuorum
from groupcoord.cluster.replica_fetcher import ReplicaFetcher
from groupcoord.cluster.replica_lag import ReplicaLag
from groupcoord.cluster.silent_brokers import SilentBrokers
from groupcoord.core.effects import Call
from groupcoord.core.handler_context import HandlerContext
from groupcoord.core.timers import TimerKey, Timers
from groupcoord.protocol.errors import ErrorCode

CoordinatorMoves = Callable[[HandlerContext, str, int], None]
"""Called for a partition of a topic whose leader runs no longer, or leads no longer; or that has a leader which runs."""


class ClusterController:
    """The controller of the cluster of ``broker``. Its methods raise ValueError for what a broker cannot do in its state.

    ``resign`` is called where a coordinator has to give up a partition, and ``load`` where one has to read it. ``handle`` is
    where the requests go that a paused broker was asked meanwhile.
    """

    def __init__(
        self,
        broker: Broker,
        *,
        resign: CoordinatorMoves,
        load: CoordinatorMoves,
        handle: Callable[[HandlerContext, Call, Any], None],
        now_ms: int,
    ) -> None:
        self.timers = Timers()
        self.quorum = MetadataQuorum(broker, now_ms)
        self._broker, self._cluster = broker, broker.cluster
        self._resign, self._load = resign, load
        self.disks = broker.disks
        """Where disks are slow."""
        self._states = dict.fromkeys(broker.cluster.ids, BrokerState.RUNNING)
        self._not_copying: set[int] = set()
        self.cuts = NetworkCuts()
        """Where the network is cut."""
        self._reassigning: dict[tuple[Topic, int], None] = {}
        self._without_disk: set[int] = set()
        """The brokers that have lost their disks since they were stopped."""
        self._silent_since: dict[int, int] = {}
        """The brokers of which the controller had heard nothing when it went away itself, and since when (ms)."""
        self._killed: set[int] = set()
        """The brokers whose next start follows an unclean shutdown."""
        self._silent = SilentBrokers(broker.cluster, handle)
        self.ask_absent, self.withhold = self._silent.ask, self._silent.withhold
        broker.topics.changes.initial_state = self._initial_state
        broker.topics.changes.on_logs_added = self._logs_added
        self._rebalance = LeaderRebalance(broker, self.timers, self._elect_preferred, now_ms)
        self._fetcher = ReplicaFetcher(broker, self._can_copy)
        self._fetcher.on_copied = self._catch_up_with
        self._lag = ReplicaLag(broker, self.timers, self._fetcher, self._drop_from_isr)
        if len(broker.cluster) > 1:
            broker.replicate = self._fetcher.replicate
            broker.is_cut_off = self.cuts.stale.__contains__
        broker.on_configured = self._configured
        self.is_eventful = False
        """Was any broker, or the controller, ever anything but running?"""

    def start_all(self, ctx: HandlerContext, unclean: Collection[int]) -> None:
        """All brokers start again together, with what was kept of them; those ``unclean`` ended without notice.

        Each leads what it led, in the next epoch, as far as it is in sync, and the others copy what they lack.
        """
        for broker_id in unclean:
            self._shut_down_uncleanly(ctx, broker_id)
        for topic, partition in self._partitions():
            for copy in topic.copies[partition].values():
                copy.held_back_to = copy.log_start_offset
            state = topic.metadata.partitions[partition]
            after = self.planned(topic, state, state.isr)
            self._broker.set_partition_state(ctx, topic, partition, after, renewed=True)
            self._broker.high_watermarks.lead(topic.partitions[partition])
            if after.is_reassigning:
                self._reassigning[topic, partition] = None
            self._rebalance.note(topic, partition)
        self.is_eventful = True
        self._catch_up(ctx)
        self._rebalance.schedule(ctx.now_ms)

    # --- what brokers do

    def state_of(self, broker_id: int) -> BrokerState:
        """What a broker does."""
        return self._states[broker_id]

    def condition_of(self, broker_id: int) -> BrokerCondition:
        """What a broker does, and all that was done to it."""
        cut_off_from: list[Peer] = [*self.cuts.peers_of(broker_id)]
        cut_off_from += [CLIENTS] if broker_id in self._cluster.unreachable else []
        cut_off_from += [CONTROLLER] if broker_id in self.cuts.stale else []
        return BrokerCondition(
            state=self._states[broker_id].value,
            is_fenced=broker_id in self._cluster.fenced,
            is_registered=self.is_registered(broker_id),
            cut_off_from=tuple(cut_off_from),
            is_copying=broker_id not in self._not_copying,
            slow_disk_ms=self.disks.delay_ms(broker_id),
            lost_disk=broker_id in self._without_disk,
        )

    def stop(self, ctx: HandlerContext, broker_id: int) -> None:
        """Shut a broker down in order: first others lead what it leads, as far as others are in sync."""
        self._require(broker_id, "stopped", BrokerState.RUNNING)
        self.require_controller(f"broker {broker_id} would wait for it, and serve on: kill it")
        self._silent.forget(broker_id)
        self._leave(ctx, broker_id, BrokerState.STOPPED)
        if self.has_session(broker_id):
            self._fence(ctx, broker_id)

    def kill(self, ctx: HandlerContext, broker_id: int) -> None:
        """A broker is gone without a word: the others hear of it when its session ends."""
        self._require(broker_id, "killed", BrokerState.RUNNING, BrokerState.PAUSED, BrokerState.STARTING)
        self._silent.forget(broker_id)
        self.timers.cancel(self._registration_key(broker_id))
        self._ends(broker_id, in_order=False)
        self._leave(ctx, broker_id, BrokerState.STOPPED)

    def pause(self, ctx: HandlerContext, broker_id: int) -> None:
        """A broker says nothing until ``resume``: what it is asked waits."""
        self._require(broker_id, "paused", BrokerState.RUNNING)
        if broker_id in self._cluster.unreachable:
            raise ValueError(f"broker {broker_id} is cut off from its clients: reconnect them before it is paused")
        self._silent.begin(broker_id)
        self._leave(ctx, broker_id, BrokerState.PAUSED)

    def resume(self, ctx: HandlerContext, broker_id: int) -> None:
        """A paused broker goes on: with what it led, if it was not fenced, and with what it was asked."""
        self._require(broker_id, "resumed", BrokerState.PAUSED)
        if self.is_registered(broker_id):
            self._enter(ctx, broker_id)
        else:  # the controller knows no broker whose heartbeats these would be
            self._set_state(ctx, broker_id, BrokerState.RUNNING)
            self._cluster.not_running.discard(broker_id)
            self._catch_up(ctx)
        self._silent.end(ctx, broker_id)

    def start(self, ctx: HandlerContext, broker_id: int) -> None:
        """A broker that was stopped or killed starts again, with all that it had, and registers with the controller.

        The controller refuses one while a session under its id lives. If that is its own, from before, it is let in when the
        session ends. If the broker of that id is there, whoever starts is another one, and nothing comes of it. Source:
        ``ClusterControlManager.registerBroker``.
        """
        if not self._cluster.has_controller:
            self._require(broker_id, "started", BrokerState.STOPPED)
            self._set_state(ctx, broker_id, BrokerState.STARTING)
            timeout_ms = int(str(self._broker.config["initial.broker.registration.timeout.ms"]))
            key = self._registration_key(broker_id)
            self.timers.schedule(key, ctx.now_ms + timeout_ms, lambda due: self._gives_up(due, broker_id))
        elif self.has_session(broker_id):
            self._refuse(ctx, broker_id)
            if self._states[broker_id] is BrokerState.STOPPED:
                self._set_state(ctx, broker_id, BrokerState.STARTING)
        else:
            self._require(broker_id, "started", BrokerState.STOPPED)
            self._register(ctx, broker_id)

    @staticmethod
    def _refuse(ctx: HandlerContext, broker_id: int) -> None:
        error = ErrorCode.DUPLICATE_BROKER_REGISTRATION.name
        ctx.emit(RegistrationRefused, broker=broker_id, error=error)

    def _gives_up(self, ctx: HandlerContext, broker_id: int) -> None:
        """A broker that could not register ends. Source: ``BrokerLifecycleManager.RegistrationTimeoutEvent``."""
        self._set_state(ctx, broker_id, BrokerState.STOPPED)

    def require_controller(self, otherwise: str) -> None:
        """Raises ValueError, which says what comes of it ``otherwise``, while the controller is away."""
        if not self._cluster.has_controller:
            raise ValueError(f"the controller does not run: {otherwise}")

    def is_registered(self, broker_id: int) -> bool:
        """Does the controller know a broker of that id?"""
        return broker_id in self._cluster.epochs

    def has_session(self, broker_id: int) -> bool:
        """Is a broker of that id registered, and not fenced?"""
        return self.is_registered(broker_id) and broker_id not in self._cluster.fenced

    def unregister(self, ctx: HandlerContext, broker_id: int) -> None:
        """The controller forgets a broker that is registered, whether it runs or not.

        One that runs goes on as one that the others do not know, until it is started again; what it was last is not taken for
        a clean shutdown then. Source: ``QuorumController.unregisterBroker``, ``ClusterControlManager.registerBroker``.
        """
        self.require_controller(f"nobody unregisters broker {broker_id}")
        del self._cluster.epochs[broker_id]
        self._ends(broker_id, in_order=False)
        self._fence(ctx, broker_id, "unregistered")
        if self._states[broker_id] is BrokerState.STARTING:
            self._register(ctx, broker_id)

    def stop_copying(self, ctx: HandlerContext, broker_id: int) -> None:
        """A broker copies nothing from leaders any more; it is out of the ISR after ``replica.lag.time.max.ms``."""
        self._require_known(broker_id)
        self.is_eventful = True
        self._not_copying.add(broker_id)
        ctx.emit(BrokerStateChanged, broker=broker_id, state="copying nothing")
        self._lag.cannot_copy(broker_id, ctx.now_ms)

    def copy_again(self, ctx: HandlerContext, broker_id: int) -> None:
        """A broker copies from leaders again, and has all that they have."""
        self._require_known(broker_id)
        self._not_copying.discard(broker_id)
        ctx.emit(BrokerStateChanged, broker=broker_id, state="copying again")
        self._copies_again(broker_id)
        self._catch_up(ctx)

    def slow_disk(self, ctx: HandlerContext, broker_id: int, delay_ms: int) -> None:
        """What a broker appends takes so long from now on, as a leader and as a follower; 0: no time.

        A follower that has not had all that the leader had for ``replica.lag.time.max.ms`` is out of the ISR.
        """
        self._require_known(broker_id)
        self.disks.set_delay(broker_id, delay_ms)
        if delay_ms and len(self._cluster) > 1:
            self.is_eventful = True
            self._lag.watch(broker_id, ctx.now_ms)
        disk = f"on a slow disk: {delay_ms} ms for each append" if delay_ms else "on a quick disk again"
        ctx.emit(BrokerStateChanged, broker=broker_id, state=disk)

    def lose_disk(self, ctx: HandlerContext, broker_id: int) -> None:
        """A broker that was stopped or killed loses all that it had: when it starts again its logs are empty.

        It cannot prove then that it was stopped in order. Source: ``LogManager.readBrokerEpochFromCleanShutdownFiles``.
        """
        self._require(broker_id, "without its disk; stop or kill it first", BrokerState.STOPPED)
        self._without_disk.add(broker_id)
        ctx.emit(BrokerStateChanged, broker=broker_id, state="without its disk")
        self._ends(broker_id, in_order=False)
        for topic, partition in self._partitions():
            copy = topic.copies[partition].get(broker_id)
            if copy is not None:
                copy.start_over_at(0, ctx.now_ms)

    def cut_off(self, ctx: HandlerContext, broker_id: int, peer: Peer) -> None:
        """Cut the network between a broker that runs and another one, its ``clients`` or the ``controller``.

        Followers copy no more through a cut, and are out of the ISR after ``replica.lag.time.max.ms``. What clients ask waits.
        A broker that the controller does not hear of is fenced when its session ends, as one that was killed; but it goes on by
        what it knew: it believes to lead what it led, and appends what comes with acks=1.
        """
        self._require(broker_id, f"cut off from {peer}", BrokerState.RUNNING)
        self.is_eventful = True
        if peer == CLIENTS:
            self._silent.begin(broker_id)
            self._cluster.unreachable.add(broker_id)
        elif peer == CONTROLLER:
            self.require_controller(f"broker {broker_id} does not reach it anyway")
            self.cuts.stale[broker_id] = StaleMetadata(self._broker)
            self._begin_session_end(broker_id, ctx.now_ms)
        else:
            other = other_broker(broker_id, peer, self._states)
            self.cuts.cut(broker_id, other)
            self._lag.cannot_copy(broker_id, ctx.now_ms)
            self._lag.cannot_copy(other, ctx.now_ms)
        ctx.emit(BrokerStateChanged, broker=broker_id, state=f"cut off from {named(peer)}")

    def reconnect(self, ctx: HandlerContext, broker_id: int, peer: Peer) -> None:
        """Mend what ``cut_off`` has cut. A broker that was fenced meanwhile hears what it missed, and follows."""
        self._require_known(broker_id)
        if peer == CLIENTS:
            require_cut(broker_id in self._cluster.unreachable, broker_id, peer)
            self._cluster.unreachable.discard(broker_id)
            self._silent.end(ctx, broker_id)
        elif peer == CONTROLLER:
            require_cut(broker_id in self.cuts.stale, broker_id, peer)
            self.require_controller(f"start it before broker {broker_id} is connected to it again")
            del self.cuts.stale[broker_id]
            if broker_id in self._cluster.fenced:
                self._enter(ctx, broker_id)
            else:
                self.timers.cancel(self._session_key(broker_id))
                self._copies_again(broker_id)
                self._catch_up(ctx)
        else:
            other = other_broker(broker_id, peer, self._states)
            self.cuts.heal(broker_id, other)
            for each in (broker_id, other):
                self._copies_again(each)
            self._catch_up(ctx)
        ctx.emit(BrokerStateChanged, broker=broker_id, state=f"connected to {named(peer)} again")

    def _require_known(self, broker_id: int) -> None:
        if broker_id not in self._states:
            raise ValueError(f"there is no broker {broker_id}: the ids are {', '.join(map(str, self._states))}")

    def _require(self, broker_id: int, done: str, *states: BrokerState) -> None:
        self._require_known(broker_id)
        state = self._states[broker_id]
        if state not in states:
            raise ValueError(f"broker {broker_id} is {state.value}: it cannot be {done}")

    def _set_state(self, ctx: HandlerContext, broker_id: int, state: BrokerState) -> None:
        self.is_eventful = True
        self._states[broker_id] = state
        if state in (BrokerState.RUNNING, BrokerState.STARTING):
            self.quorum.fetches_again(broker_id)
        else:
            self.quorum.stops_fetching(broker_id, ctx.now_ms)
        ctx.emit(BrokerStateChanged, broker=broker_id, state=state.value)

    def _leave(self, ctx: HandlerContext, broker_id: int, state: BrokerState) -> None:
        """A broker runs no longer: it leads, copies and coordinates nothing, though nobody may know yet."""
        self._set_state(ctx, broker_id, state)
        self.cuts.stale.pop(broker_id, None)
        if state is BrokerState.STOPPED:
            self.disks.broker_gone(ctx, broker_id)
        if broker_id in self._cluster.not_running:  # it was paused or starting before
            return
        self._cluster.not_running.add(broker_id)
        for topic, partition in self._partitions():
            if topic.metadata.leaders[partition] == broker_id:
                self._resign(ctx, topic.name, partition)
        if self.has_session(broker_id):
            self._begin_session_end(broker_id, ctx.now_ms)

    def _begin_session_end(self, broker_id: int, now_ms: int) -> None:
        """Nothing more is heard of a broker: by the controller, or, where that is away, by those that it follows."""
        if self._cluster.has_controller:
            key = self._session_key(broker_id)
            self.timers.schedule(key, now_ms + self._session_ms, lambda due: self._session_ends(due, broker_id))
        else:
            self._lag.cannot_copy(broker_id, now_ms)

    def _register(self, ctx: HandlerContext, broker_id: int) -> None:
        """A broker that was started is let in."""
        self.timers.cancel(self._registration_key(broker_id))
        self._cluster.epochs[broker_id] = self.quorum.log_end_offset(ctx.now_ms)
        self.quorum.broker_changed()
        self._enter(ctx, broker_id)

    def _enter(self, ctx: HandlerContext, broker_id: int) -> None:
        """A broker runs again; one that is fenced stays so without a controller."""
        self.timers.cancel(self._session_key(broker_id))
        self._silent_since.pop(broker_id, None)
        self._set_state(ctx, broker_id, BrokerState.RUNNING)
        self._cluster.not_running.discard(broker_id)
        self._without_disk.discard(broker_id)
        self._copies_again(broker_id)
        if self._cluster.has_controller and broker_id in self._cluster.fenced:
            self.quorum.broker_changed()
            self._cluster.fenced.discard(broker_id)
        if broker_id in self._killed:
            self._ends(broker_id, in_order=True)
            self._shut_down_uncleanly(ctx, broker_id)
        for topic, partition in self._partitions():
            state = topic.metadata.partitions[partition]
            if state.leader == broker_id:
                self._load(ctx, topic.name, partition)
            elif state.leader == NO_LEADER:
                self._change(ctx, topic, partition, state.isr)
        self._catch_up(ctx)

    def _ends(self, broker_id: int, *, in_order: bool) -> None:
        """What a broker did last was, or was not, to end in order."""
        (self._killed.discard if in_order else self._killed.add)(broker_id)
        lost_disk = broker_id in self._without_disk
        self._broker.storage.broker_ended(broker_id, in_order=in_order, lost_disk=lost_disk)

    def _shut_down_uncleanly(self, ctx: HandlerContext, broker_id: int) -> None:
        """A broker that was killed may lack what was not flushed, or has lost all: it is eligible for nothing.

        Source: ``ReplicationControlManager.handleUncleanBrokerShutdown``.
        """
        for topic, partition in self._partitions():
            state = topic.metadata.partitions[partition]
            if broker_id in state.elr:
                elr = tuple(one for one in state.elr if one != broker_id)
                self._broker.set_partition_state(ctx, topic, partition, state._replace(elr=elr))

    # --- what the controller does

    def leaves(self, ctx: HandlerContext) -> None:
        """The controller is away from now on: see ControllerNode."""
        self.is_eventful = True
        self.quorum.leader_leaves(ctx.now_ms)
        self._rebalance.controller_leaves()
        for broker_id in self._states:
            key = self._session_key(broker_id)
            if key in self.timers:
                self._silent_since[broker_id] = self.timers.take(key).at_ms - self._session_ms
                self._lag.cannot_copy(broker_id, self._silent_since[broker_id])

    def returns(self, ctx: HandlerContext, *, elected: bool) -> None:
        """The controller is there again. One that is ``elected`` anew knows nothing of sessions: all of them begin now."""
        if elected:
            self._silent_since.clear()
            self._rebalance.controller_started(ctx.now_ms)
        self._lag.drop_lagging(ctx)
        for broker_id, state in self._states.items():
            if state is BrokerState.STARTING and not self.has_session(broker_id):
                self._register(ctx, broker_id)
            elif state is BrokerState.RUNNING and broker_id not in self.cuts.stale:
                if self.is_registered(broker_id) and broker_id in self._cluster.fenced:
                    self._enter(ctx, broker_id)
            elif self.has_session(broker_id):
                if state is BrokerState.STARTING:
                    self._refuse(ctx, broker_id)
                since_ms = self._silent_since.get(broker_id, ctx.now_ms)
                if since_ms + self._session_ms > ctx.now_ms:
                    self._begin_session_end(broker_id, since_ms)
                else:
                    self._session_ends(ctx, broker_id)
        self._silent_since.clear()
        self._catch_up(ctx)
        self._rebalance.schedule(ctx.now_ms)

    def _session_ends(self, ctx: HandlerContext, broker_id: int) -> None:
        self._fence(ctx, broker_id)
        if self._states[broker_id] is BrokerState.STARTING:
            self._register(ctx, broker_id)

    def _fence(self, ctx: HandlerContext, broker_id: int, becomes: str = "fenced") -> None:
        self.quorum.broker_changed()
        self.timers.cancel(self._session_key(broker_id))
        self._copies_again(broker_id)
        self._cluster.fenced.add(broker_id)
        ctx.emit(BrokerStateChanged, broker=broker_id, state=becomes)
        for topic, partition in self._partitions():
            state = topic.metadata.partitions[partition]
            if broker_id in state.isr:
                self._change(ctx, topic, partition, tuple(one for one in state.isr if one != broker_id))
        self._rebalance.schedule(ctx.now_ms)

    def _change(self, ctx: HandlerContext, topic: Topic, partition: int, isr: Replicas) -> None:
        if self._cluster.has_controller:
            self.apply(ctx, topic, partition, self.planned(topic, topic.metadata.partitions[partition], isr))

    def planned(
        self, topic: Topic, state: PartitionState, isr: Replicas, election: Election | None = None
    ) -> PartitionState:
        """What a partition is with ``isr``; who leads it then is found by ``election``, or as the topic is configured."""
        configured = Election.UNCLEAN if topic.settings.unclean_leader_election_enable else Election.ONLINE
        return after_change(
            state,
            isr,
            lambda one: one not in self._cluster.fenced,
            min_isr=topic.settings.min_insync_replicas,
            election=election or configured,
        )

    def apply(self, ctx: HandlerContext, topic: Topic, partition: int, after: PartitionState) -> None:
        """A partition is as ``after`` says from now on, and who runs copies it."""
        before = topic.metadata.partitions[partition]
        if after == before:
            return
        self.is_eventful = True
        if before.leader not in (after.leader, NO_LEADER):
            self._resign(ctx, topic.name, partition)
        self._broker.set_partition_state(ctx, topic, partition, after)
        if after.leader not in (before.leader, NO_LEADER) and after.leader not in self._cluster.not_running:
            self._load(ctx, topic.name, partition)
        if after.is_reassigning:
            self._reassigning[topic, partition] = None
        else:
            self._reassigning.pop((topic, partition), None)
        self._rebalance.note(topic, partition)
        self._rebalance.schedule(ctx.now_ms)
        self._catch_up_with(ctx, topic, partition)

    def check_replicas(self, broker_ids: Sequence[int]) -> None:
        """Check that a partition may be on ``broker_ids``. Raises ApiError."""
        self._cluster.check_replicas(broker_ids, None)

    def reassigning(self) -> dict[Topic, list[int]]:
        """The partitions that are being reassigned, in the order in which that began."""
        found: dict[Topic, list[int]] = {}
        for topic, partition in self._reassigning:
            if self._broker.topics.get(topic.name) is topic:
                found.setdefault(topic, []).append(partition)
        return found

    def _elect_preferred(self, ctx: HandlerContext, topic: Topic, partition: int) -> None:
        state = topic.metadata.partitions[partition]
        self.apply(ctx, topic, partition, self.planned(topic, state, state.isr, Election.PREFERRED))

    def _configured(self, ctx: HandlerContext) -> None:
        """Fewer replicas in sync may be enough now, or it takes more of them.

        Source: ``ReplicationControlManager.getPartitionElrUpdatesForConfigChanges``.
        """
        for topic, partition in self._partitions() if self.is_eventful else ():
            state = topic.metadata.partitions[partition]
            if state.elr:
                self.apply(ctx, topic, partition, self.planned(topic, state, state.isr, Election.ONLINE))
            self._catch_up_with(ctx, topic, partition)

    def _partitions(self) -> Iterator[tuple[Topic, int]]:
        for topic in self._broker.topics.all():
            for partition in range(len(topic.partitions)):
                yield topic, partition

    # --- copies

    def _can_copy(self, follower: int, leader: int) -> bool:
        """Can one broker copy what the other one leads?"""
        absent = self._cluster.not_running
        if follower in absent or leader in absent or follower in self._not_copying:
            return False
        return not self.cuts.is_cut(follower, leader)

    def _initial_state(self, replicas: Replicas) -> PartitionState:
        """A new partition: the first of its brokers that is not fenced leads."""
        isr = tuple(one for one in replicas if one not in self._cluster.fenced)
        return PartitionState(replicas, isr, isr[0]) if isr else PartitionState(replicas, (), NO_LEADER)

    def _logs_added(self, topic: Topic, first: int) -> None:
        """``topic`` has partitions from ``first`` on that are new."""
        for partition in range(first, len(topic.partitions)) if topic.copies else ():
            state = topic.metadata.partitions[partition]
            for copy in topic.copies[partition].values():
                copy.held_back_to = 0
            log = topic.partitions[partition]
            self._broker.high_watermarks.lead(log)
            if state.isr == (state.leader,) and topic.min_isr(partition) == 1:
                log.held_back_to = None
            if self._cluster.fenced:
                self._rebalance.note(topic, partition)

    def _catch_up(self, ctx: HandlerContext) -> None:
        """Every broker that can copies all of what is led, and is in sync then."""
        for topic, partition in self._partitions():
            self._catch_up_with(ctx, topic, partition)

    def _catch_up_with(self, ctx: HandlerContext, topic: Topic, partition: int) -> None:
        if not self._broker.is_led(topic, partition):
            return
        self._fetcher.replicate(ctx, topic, partition)
        state = topic.metadata.partitions[partition]
        caught_up = (
            one for one in state.replicas if one not in self._cluster.fenced and self._has_all(topic, partition, one)
        )
        in_sync = {*state.isr, *caught_up}
        if in_sync == set(state.isr) or not self._cluster.has_controller:
            self._broker.replicated(ctx, topic, partition)
            self._fetcher.replicate(ctx, topic, partition)
        else:
            self._change(ctx, topic, partition, tuple(sorted(in_sync)))

    def _has_all(self, topic: Topic, partition: int, broker_id: int) -> bool:
        """Has a broker said to the leader that it has all that there is?"""
        log, leader = topic.partitions[partition], topic.metadata.leaders[partition]
        if broker_id == leader:
            return True
        known = self._broker.high_watermarks.known_end(log, broker_id)
        return self._can_copy(broker_id, leader) and known == log.log_end_offset

    @property
    def _session_ms(self) -> int:
        return int(str(self._broker.config["broker.session.timeout.ms"]))

    @staticmethod
    def _registration_key(broker_id: int) -> TimerKey:
        return TimerKey("broker registration", f"broker {broker_id}")

    @staticmethod
    def _session_key(broker_id: int) -> TimerKey:
        return TimerKey("broker session", f"broker {broker_id}")

    def _copies_again(self, broker_id: int) -> None:
        """A follower is not missed any more, if it can copy from all others."""
        if not self.cuts.touches(broker_id) and broker_id not in self._not_copying:
            self._lag.can_copy(broker_id)

    def _drop_from_isr(self, ctx: HandlerContext, topic: Topic, partition: int, lagging: Collection[int]) -> None:
        isr = topic.metadata.partitions[partition].isr
        self._change(ctx, topic, partition, tuple(sorted(set(isr) - set(lagging))))

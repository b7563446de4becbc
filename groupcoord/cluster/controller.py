"""The controller of a cluster: brokers that stop, die, pause and return, fencing, leader elections and ISR changes.

The controller is a separate node (``process.roles=controller``; see controller_outages.py). A killed broker is fenced when its
session expires, exactly ``broker.session.timeout.ms`` later; in Kafka the session begins with the last heartbeat, so that it
may be up to ``broker.heartbeat.interval.ms`` earlier. Sources: ``ReplicationControlManager``, ``ClusterControlManager``,
``BrokerHeartbeatManager``.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

from groupcoord.broker.broker import Broker
from groupcoord.broker.events import BrokerStateChanged, RegistrationRefused
from groupcoord.broker.leader_election_and_isr import NO_LEADER, Election, PartitionState, Replicas, after_change
from groupcoord.broker.topic_store import Topic
from groupcoord.cluster.broker_status import BrokerCondition, BrokerState
from groupcoord.cluster.isr_shrinker import IsrShrinker
from groupcoord.cluster.leader_rebalance import LeaderRebalance
from groupcoord.cluster.metadata_quorum import MetadataQuorum
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
from groupcoord.cluster.paused_brokers import SilentBrokers
from groupcoord.cluster.replica_fetcher import ReplicaFetcher
from groupcoord.core.effect_collector import HandlerContext
from groupcoord.core.effects import Call
from groupcoord.core.grouping import grouped
from groupcoord.core.timers import TimerKey, Timers
from groupcoord.protocol.errors import ErrorCode

CoordinatorMoves = Callable[[HandlerContext, str, int], None]
"""Called with a partition whose leader stops or is replaced, or that has got a running leader."""


class ClusterController:
    """The controller of the cluster of ``broker``. Its methods raise ValueError for what is impossible in a broker's state.

    ``resign`` unloads the coordinator of a partition, and ``load`` loads it. ``handle`` handles the requests that came while a
    broker was paused.
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
        """The slow disks."""
        self._states = dict.fromkeys(broker.cluster.ids, BrokerState.RUNNING)
        self._replication_paused: set[int] = set()
        self.cuts = NetworkCuts()
        """The network cuts."""
        self._reassigning: dict[tuple[Topic, int], None] = {}
        self._without_disk: set[int] = set()
        """The brokers that have lost their disks since they were stopped."""
        self._silent_since: dict[int, int] = {}
        """The brokers that were silent when the controller went away, and since when (ms)."""
        self._killed: set[int] = set()
        """The brokers whose last shutdown was unclean."""
        self._silent = SilentBrokers(broker.cluster, handle)
        self.ask_absent, self.withhold = self._silent.ask, self._silent.withhold
        broker.topics.changes.initial_state = self._initial_state
        broker.topics.changes.on_logs_added = self._logs_added
        self._rebalance = LeaderRebalance(broker, self.timers, self._elect_preferred, now_ms)
        self._fetcher = ReplicaFetcher(broker, self._can_copy)
        self._fetcher.on_copied = self._catch_up_with
        self._lag = IsrShrinker(broker, self.timers, self._fetcher, self._drop_from_isr)
        if len(broker.cluster) > 1:
            broker.replicate = self._fetcher.replicate
            broker.is_cut_off = self.cuts.stale.__contains__
        broker.on_configured = self._configured
        self.is_eventful = False
        """Has the state of any broker, or of the controller, ever changed?"""

    def start_all(self, ctx: HandlerContext, unclean: Collection[int]) -> None:
        """Start all brokers together, with their stored logs; ``unclean`` ones had no clean shutdown.

        Each leads the same partitions as before, in the next epoch, if it is in sync, and the others catch up.
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

    # --- states of brokers

    def state_of(self, broker_id: int) -> BrokerState:
        """The state of a broker."""
        return self._states[broker_id]

    def condition_of(self, broker_id: int) -> BrokerCondition:
        """The state of a broker, and the faults injected into it."""
        cut_off_from: list[Peer] = [*self.cuts.peers_of(broker_id)]
        cut_off_from += [CLIENTS] if broker_id in self._cluster.unreachable else []
        cut_off_from += [CONTROLLER] if broker_id in self.cuts.stale else []
        return BrokerCondition(
            state=self._states[broker_id].value,
            is_fenced=broker_id in self._cluster.fenced,
            is_registered=self.is_registered(broker_id),
            cut_off_from=tuple(cut_off_from),
            is_replicating=broker_id not in self._replication_paused,
            slow_disk_ms=self.disks.delay_ms(broker_id),
            lost_disk=broker_id in self._without_disk,
        )

    def stop(self, ctx: HandlerContext, broker_id: int) -> None:
        """Controlled shutdown of a broker: its partitions get other leaders first, if other replicas are in sync."""
        self._require(broker_id, "stopped", BrokerState.RUNNING)
        self.require_controller(f"broker {broker_id} would wait for it, and serve on: kill it")
        self._silent.forget(broker_id)
        self._leave(ctx, broker_id, BrokerState.STOPPED)
        if self.has_session(broker_id):
            self._fence(ctx, broker_id)

    def kill(self, ctx: HandlerContext, broker_id: int) -> None:
        """Kill a broker: the others notice when its session expires."""
        self._require(broker_id, "killed", BrokerState.RUNNING, BrokerState.PAUSED, BrokerState.STARTING)
        self._silent.forget(broker_id)
        self.timers.cancel(self._registration_key(broker_id))
        self._ends(broker_id, in_order=False)
        self._leave(ctx, broker_id, BrokerState.STOPPED)

    def pause(self, ctx: HandlerContext, broker_id: int) -> None:
        """Pause a broker until ``resume``: requests to it wait."""
        self._require(broker_id, "paused", BrokerState.RUNNING)
        if broker_id in self._cluster.unreachable:
            raise ValueError(f"broker {broker_id} is cut off from its clients: reconnect them before it is paused")
        self._silent.begin(broker_id)
        self._leave(ctx, broker_id, BrokerState.PAUSED)

    def resume(self, ctx: HandlerContext, broker_id: int) -> None:
        """Continue a paused broker: it leads as before unless it was fenced, and handles the requests that wait."""
        self._require(broker_id, "resumed", BrokerState.PAUSED)
        if self.is_registered(broker_id):
            self._enter(ctx, broker_id)
        else:  # it is not registered, so its heartbeats are ignored
            self._set_state(ctx, broker_id, BrokerState.RUNNING)
            self._cluster.not_running.discard(broker_id)
            self._catch_up(ctx)
        self._silent.end(ctx, broker_id)

    def start(self, ctx: HandlerContext, broker_id: int) -> None:
        """Start a stopped or killed broker with its logs; it registers with the controller.

        The controller refuses a registration while a session with the same id is alive. If that is its own old session, the
        broker registers when it expires. If a running broker has that id, the new one is refused for good. Source:
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
        """A broker that could not register shuts down. Source: ``BrokerLifecycleManager.RegistrationTimeoutEvent``."""
        self._set_state(ctx, broker_id, BrokerState.STOPPED)

    def require_controller(self, otherwise: str) -> None:
        """Raises ValueError while the controller is away; ``otherwise`` is the consequence in its text."""
        if not self._cluster.has_controller:
            raise ValueError(f"the controller does not run: {otherwise}")

    def is_registered(self, broker_id: int) -> bool:
        """Is a broker of that id registered?"""
        return broker_id in self._cluster.epochs

    def has_session(self, broker_id: int) -> bool:
        """Is a broker of that id registered, and not fenced?"""
        return self.is_registered(broker_id) and broker_id not in self._cluster.fenced

    def unregister(self, ctx: HandlerContext, broker_id: int) -> None:
        """Unregister a broker, whether it is running or not.

        A running one continues, unknown to the others, until it is restarted; its shutdown does not count as clean then.
        Source: ``QuorumController.unregisterBroker``, ``ClusterControlManager.registerBroker``.
        """
        self.require_controller(f"nobody unregisters broker {broker_id}")
        del self._cluster.epochs[broker_id]
        self._ends(broker_id, in_order=False)
        self._fence(ctx, broker_id, "unregistered")
        if self._states[broker_id] is BrokerState.STARTING:
            self._register(ctx, broker_id)

    def pause_replication(self, ctx: HandlerContext, broker_id: int) -> None:
        """Stop replication to a broker; it leaves the ISR after ``replica.lag.time.max.ms``."""
        self._require_known(broker_id)
        self.is_eventful = True
        self._replication_paused.add(broker_id)
        ctx.emit(BrokerStateChanged, broker=broker_id, state="not replicating")
        self._lag.cannot_copy(broker_id, ctx.now_ms)

    def resume_replication(self, ctx: HandlerContext, broker_id: int) -> None:
        """Resume replication to a broker, which catches up at once."""
        self._require_known(broker_id)
        self._replication_paused.discard(broker_id)
        ctx.emit(BrokerStateChanged, broker=broker_id, state="replicating again")
        self._copies_again(broker_id)
        self._catch_up(ctx)

    def slow_disk(self, ctx: HandlerContext, broker_id: int, delay_ms: int) -> None:
        """Delay each append of a broker from now on, as leader and as follower; 0: no delay.

        A follower that has not caught up with the leader for ``replica.lag.time.max.ms`` leaves the ISR.
        """
        self._require_known(broker_id)
        self.disks.set_delay(broker_id, delay_ms)
        if delay_ms and len(self._cluster) > 1:
            self.is_eventful = True
            self._lag.watch(broker_id, ctx.now_ms)
        disk = f"on a slow disk: {delay_ms} ms for each append" if delay_ms else "on a quick disk again"
        ctx.emit(BrokerStateChanged, broker=broker_id, state=disk)

    def lose_disk(self, ctx: HandlerContext, broker_id: int) -> None:
        """A stopped or killed broker loses its disk: when it starts again its logs are empty.

        Its shutdown does not count as clean any more. Source: ``LogManager.readBrokerEpochFromCleanShutdownFiles``.
        """
        self._require(broker_id, "without its disk; stop or kill it first", BrokerState.STOPPED)
        self._without_disk.add(broker_id)
        ctx.emit(BrokerStateChanged, broker=broker_id, state="without its disk")
        self._ends(broker_id, in_order=False)
        for topic, partition in self._partitions():
            copy = topic.copies[partition].get(broker_id)
            if copy is not None:
                copy.truncate_fully_and_start_at(0, ctx.now_ms)

    def cut_off(self, ctx: HandlerContext, broker_id: int, peer: Peer) -> None:
        """Cut the network between a running broker and another one, its ``clients`` or the ``controller``.

        Followers cannot replicate through a cut, and leave the ISR after ``replica.lag.time.max.ms``. Requests of clients wait.
        A broker that is cut off from the controller is fenced when its session expires, as if it were killed; but it keeps its
        stale metadata: it believes that it still leads, and appends with acks=1.
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
        """Undo ``cut_off``. A broker that was fenced meanwhile learns the new metadata and becomes a follower."""
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
                for topic, partition in self._partitions(led_by=broker_id):
                    self._load(ctx, topic.name, partition)
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
        """A broker stops running: it no longer leads, replicates or coordinates, even before others notice."""
        self._set_state(ctx, broker_id, state)
        self.cuts.stale.pop(broker_id, None)
        if state is BrokerState.STOPPED:
            self.disks.broker_gone(ctx, broker_id)
        if broker_id in self._cluster.not_running:  # it was already paused or starting
            return
        self._cluster.not_running.add(broker_id)
        for topic, partition in self._partitions(led_by=broker_id):
            self._resign(ctx, topic.name, partition)
        if self.has_session(broker_id):
            self._begin_session_end(broker_id, ctx.now_ms)

    def _begin_session_end(self, broker_id: int, now_ms: int) -> None:
        """Start the session timeout of a silent broker; while the controller is away, watch its replica lag instead."""
        if self._cluster.has_controller:
            key = self._session_key(broker_id)
            self.timers.schedule(key, now_ms + self._session_ms, lambda due: self._session_ends(due, broker_id))
        else:
            self._lag.cannot_copy(broker_id, now_ms)

    def _register(self, ctx: HandlerContext, broker_id: int) -> None:
        """Register a broker that was started."""
        self.timers.cancel(self._registration_key(broker_id))
        self._cluster.epochs[broker_id] = self.quorum.log_end_offset(ctx.now_ms)
        self.quorum.broker_changed()
        self._enter(ctx, broker_id)

    def _enter(self, ctx: HandlerContext, broker_id: int) -> None:
        """A broker runs again; a fenced one stays fenced while the controller is away."""
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
        """Record whether a broker's last shutdown was clean."""
        (self._killed.discard if in_order else self._killed.add)(broker_id)
        lost_disk = broker_id in self._without_disk
        self._broker.storage.broker_ended(broker_id, in_order=in_order, lost_disk=lost_disk)

    def _shut_down_uncleanly(self, ctx: HandlerContext, broker_id: int) -> None:
        """A killed broker may lack unflushed records, or its disk: remove it from the ELR.

        Source: ``ReplicationControlManager.handleUncleanBrokerShutdown``.
        """
        for topic, partition in self._partitions():
            state = topic.metadata.partitions[partition]
            if broker_id in state.elr:
                elr = tuple(one for one in state.elr if one != broker_id)
                self._broker.set_partition_state(ctx, topic, partition, state._replace(elr=elr))

    # --- decisions of the controller

    def leaves(self, ctx: HandlerContext) -> None:
        """The controller goes away: see ControllerNode."""
        self.is_eventful = True
        self.quorum.leader_leaves(ctx.now_ms)
        self._rebalance.controller_leaves()
        for broker_id in self._states:
            key = self._session_key(broker_id)
            if key in self.timers:
                self._silent_since[broker_id] = self.timers.take(key).at_ms - self._session_ms
                self._lag.cannot_copy(broker_id, self._silent_since[broker_id])

    def returns(self, ctx: HandlerContext, *, elected: bool) -> None:
        """The controller returns. If it was ``elected`` again, it has no sessions: all of them start now."""
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
        """The state of a partition with ``isr``, with a leader from ``election``, or as the topic's configuration allows."""
        configured = Election.UNCLEAN if topic.settings.unclean_leader_election_enable else Election.ONLINE
        return after_change(
            state,
            isr,
            lambda one: one not in self._cluster.fenced,
            min_isr=topic.settings.min_insync_replicas,
            election=election or configured,
        )

    def apply(self, ctx: HandlerContext, topic: Topic, partition: int, after: PartitionState) -> None:
        """Set the state of a partition, and let the running replicas catch up."""
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
        """Check that a partition may have these replicas. Raises ApiError."""
        self._cluster.check_replicas(broker_ids, None)

    def reassigning(self) -> dict[Topic, list[int]]:
        """The partitions with a reassignment in progress, in the order of their start."""
        there = self._broker.topics
        return grouped((topic, number) for topic, number in self._reassigning if there.get(topic.name) is topic)

    def _elect_preferred(self, ctx: HandlerContext, topic: Topic, partition: int) -> None:
        state = topic.metadata.partitions[partition]
        self.apply(ctx, topic, partition, self.planned(topic, state, state.isr, Election.PREFERRED))

    def _configured(self, ctx: HandlerContext) -> None:
        """min.insync.replicas may have changed: update the ELRs.

        Source: ``ReplicationControlManager.getPartitionElrUpdatesForConfigChanges``.
        """
        for topic, partition in self._partitions() if self.is_eventful else ():
            state = topic.metadata.partitions[partition]
            if state.elr:
                self.apply(ctx, topic, partition, self.planned(topic, state, state.isr, Election.ONLINE))
            self._catch_up_with(ctx, topic, partition)

    def _partitions(self, led_by: int | None = None) -> Iterator[tuple[Topic, int]]:
        for topic in self._broker.topics.all():
            for partition, leader in enumerate(topic.metadata.leaders):
                if led_by in (None, leader):
                    yield topic, partition

    # --- replication

    def _can_copy(self, follower: int, leader: int) -> bool:
        """Can a follower replicate from a leader?"""
        absent = self._cluster.not_running
        if follower in absent or leader in absent or follower in self._replication_paused:
            return False
        return not self.cuts.is_cut(follower, leader)

    def _initial_state(self, replicas: Replicas) -> PartitionState:
        """The state of a new partition: the first broker that is not fenced leads."""
        isr = tuple(one for one in replicas if one not in self._cluster.fenced)
        return PartitionState(replicas, isr, isr[0]) if isr else PartitionState(replicas, (), NO_LEADER)

    def _logs_added(self, topic: Topic, first: int) -> None:
        """``topic`` has got new partitions, from the index ``first`` on."""
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
        """Let every follower that can replicate catch up and join the ISR."""
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
        """Has the follower told the leader, by a fetch, that it has caught up?"""
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
        """A follower is no longer lagging if it can replicate from all others."""
        if not self.cuts.touches(broker_id) and broker_id not in self._replication_paused:
            self._lag.can_copy(broker_id)

    def _drop_from_isr(self, ctx: HandlerContext, topic: Topic, partition: int, lagging: Collection[int]) -> None:
        isr = topic.metadata.partitions[partition].isr
        self._change(ctx, topic, partition, tuple(sorted(set(isr) - set(lagging))))

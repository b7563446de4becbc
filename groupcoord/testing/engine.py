"""Engine, the running cluster behind ``testing.Cluster``: the assembled cluster, its server, clock, random ids and members."""

import asyncio
import random
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from groupcoord.assignors import TopicPartition
from groupcoord.broker.storage_backend import IN_MEMORY_STORAGE, StorageBackend
from groupcoord.broker.topic_admin import create_automatically
from groupcoord.broker.topic_names import CONSUMER_OFFSETS, TRANSACTION_STATE
from groupcoord.cluster.assemble import assemble
from groupcoord.cluster.broker_status import BrokerState
from groupcoord.cluster.controller import ClusterController
from groupcoord.cluster.controller_outages import ControllerNode
from groupcoord.cluster.layer import Layer
from groupcoord.config.broker_config import as_items, load
from groupcoord.coordinator.classic.classic_group import ClassicGroup
from groupcoord.coordinator.classic.classic_group_state import Member
from groupcoord.coordinator.consumer.consumer_group import ConsumerGroup
from groupcoord.coordinator.consumer.member import AWAY_EPOCH, ConsumerMember
from groupcoord.core.effect_collector import HandlerContext
from groupcoord.core.effects import NO_CONNECTION, Call, CloseConnection, Effect, NoReply, Reply, event_listener
from groupcoord.core.events import AdminAction, Event, Requested
from groupcoord.core.timers import Deadline
from groupcoord.protocol.apis import API_BY_REQUEST, APIS, ApiKey
from groupcoord.protocol.apis.find_coordinator import GROUP
from groupcoord.protocol.framing import encode_request, parse_request
from groupcoord.protocol.messages import ConsumerGroupHeartbeatRequest, HeartbeatRequest
from groupcoord.server.connection import ServerConnection
from groupcoord.server.server import Server
from groupcoord.testing import clocks, forced_actions_on_core
from groupcoord.testing.append_rules import AppendRules
from groupcoord.testing.auto_member import MemberScheduler
from groupcoord.testing.clocks import ClockMode, ManualClock, RealTimeFetches
from groupcoord.testing.faults import Faults
from groupcoord.testing.in_process_transport import InProcessTransport, OnResponse
from groupcoord.testing.trace import Trace, TracingLayer
from groupcoord.testing.trace.topic_and_append_recorder import TopicAndAppendRecorder
from groupcoord.testing.waiting import Waiting

if TYPE_CHECKING:
    from groupcoord.storage.file_storage_backend import DataDirectory

_IN_PROCESS_HOST = "/127.0.0.1"


class SeededRandomSource:
    """A ``cluster_core.RandomSource`` that draws from ``seed``; with None, it differs from run to run."""

    def __init__(self, seed: int | None) -> None:
        self._random = random.Random(seed)  # noqa: S311 - not for secrets

    def uuid(self) -> uuid.UUID:
        """A random id whose Base64 text does not start with a dash, as in Kafka (``Uuid.randomUuid``)."""
        while (drawn := uuid.UUID(int=self._random.getrandbits(128), version=4)).bytes[0] >> 2 == 0b111110:
            pass
        return drawn

    def session_id(self) -> int:
        """An int32 above 0."""
        return self._random.randrange(1, 1 << 31)

    def next_int(self, bound: int) -> int:
        """An int from 0 up to ``bound`` (exclusive), from which the replicas of a new topic are placed."""
        return self._random.randrange(bound)

    def fraction(self) -> float:
        """A number from 0 up to 1, the jitter of members' retry back-offs."""
        return self._random.random()


class Engine:
    """One running cluster, in the event loop in which it was created. ``settings`` are the arguments of ``_begin``."""

    _server_class: ClassVar[type[Server]] = Server

    def __init__(
        self,
        *,
        mode: ClockMode,
        start_ms: int | None,
        speed: float,
        run: Callable[[Callable[[], object]], object] | None,
        **settings: Any,
    ) -> None:
        self.loop = asyncio.get_running_loop()
        self.loop_hint = ""
        """Advice for the error text if the cluster is used in another event loop."""
        self.is_up = False
        self.has_ended = False
        self._mode, self._start_ms, self._speed, self._settings = mode, start_ms, speed, settings
        self._delivery_is_due = False
        self.data_directory: DataDirectory | None = None
        self.waiting = Waiting(self.require_own_loop)
        self._begin_clock()
        own_loop = self.require_own_loop
        self.faults = (
            Faults(now_ms=self.now_ms, require_own_loop=own_loop)
            if run is None
            else Faults(now_ms=self.now_ms, require_own_loop=own_loop, run=run)
        )
        self._begin(**settings)

    def _begin_clock(self) -> None:
        self.clock = clocks.make(self._mode, start_ms=self._start_ms, speed=self._speed, loop=self.loop)
        self.started_ms = self.clock()
        if self._mode in (ClockMode.MANUAL, ClockMode.VIRTUAL):
            self._start_ms = self.started_ms  # a reset starts the clock there again

    def _begin(
        self,
        *,
        topics: Mapping[str, int],
        topic_configs: Mapping[str, Mapping[str, str]],
        config: Mapping[str, object],
        seed: int | None,
        dev: bool,
        host: str,
        port: int,
        brokers: int,
        racks: Sequence[str],
        features: Mapping[str, int],
        data_dir: Path | None,
        detailed_trace: bool,
        listeners: Iterable[Callable[[Event], None]],
    ) -> None:
        if seed is None and data_dir is None and self._mode in (ClockMode.MANUAL, ClockMode.VIRTUAL):
            seed = 0
        self.random = SeededRandomSource(seed)
        self.trace = Trace(start_ms=self.started_ms)
        self.scheduler = MemberScheduler(self.clock, self.loop)
        loaded = load(as_items(config), dev=dev, brokers=brokers)
        storage: StorageBackend = IN_MEMORY_STORAGE
        files_to_come: Callable[[], int] = int  # 0
        with ExitStack() as opened:
            if data_dir is not None:
                from groupcoord.storage.file_storage_backend import DataDirectory  # noqa: PLC0415 - not on every system

                storage = directory = DataDirectory(
                    data_dir, loaded, new_uuid=self.random.uuid, now_ms=self.clock(), brokers=brokers
                )
                opened.callback(directory.close)
                self.data_directory = directory
                loaded, files_to_come = directory.config, directory.files_to_come
            self._assembly = assembly = assemble(
                loaded,
                random=self.random,
                now_ms=self.clock(),
                topics=topics.items(),
                topic_configs=topic_configs,
                storage=storage,
                brokers=brokers,
                racks=racks,
                features=features,
            )
            self._resources = opened.pop_all()
        self.core = core = assembly.core
        core.broker.compacts_at_once = True  # a test looks at the result right after it has advanced the clock
        self._real_time_fetches = assembly.add(lambda _: RealTimeFetches(core))
        self._fault_layer = self.faults.add_layer(assembly)
        self._fault_layer.broker_stopped = self._broker_stopped
        self._fault_layer.execute_effects = lambda effects: self._execute(effects, after=self._fault_layer)
        recorder = TopicAndAppendRecorder(core) if detailed_trace else None
        self._tracing = assembly.add(
            lambda inner: TracingLayer(inner, self.trace, topic_name=core.broker.topics.topic_name, recorder=recorder)
        )
        self.transport = assembly.add(
            lambda inner: InProcessTransport(inner, on_activity=self._active, on_answers=self._deliver_soon)
        )
        self.appends = AppendRules(self.core, self.waiting, self.apply, self.clock)
        self.server = self._server_class(
            self.transport,
            host,
            port,
            now_ms=self.clock,
            seconds_until=self.clock.seconds_until,
            listeners=[event_listener(each) for each in listeners],
            brokers=assembly.brokers,
            files_to_come=files_to_come,
            on_connection=self._connected,
        )

    # From beginning to end.

    async def start(self) -> None:
        """Start to listen. Raises OSError if a port cannot be bound; the cluster has ended then."""
        try:
            await self.server.startup()
        except BaseException:
            self._resources.close()
            raise
        self.look()
        self.is_up = True

    async def stop(self, *, keep_listening: bool = False) -> list[Exception]:
        """Close the port, unless it is to ``keep_listening``, and every connection; returns the server's unexpected errors."""
        if not self.is_up:
            return []
        self.is_up = False
        self._real_time_fetches.stop()
        self.transport.close_connections()
        await self.server.shutdown(keep_listening=keep_listening)
        errors = [unexpected.error for unexpected in self.server.unexpected_errors]
        self.server.unexpected_errors.clear()
        return errors

    async def end(self) -> list[Exception]:
        """Stop for good."""
        self.has_ended = True
        with self._resources:
            self._end_members()
            return await self.stop()

    async def reset(self) -> list[Exception]:
        """Start again as a fresh cluster with the same settings and address; returns the server's unexpected errors so far.

        The ports stay open, so that no other process takes them: clients that connect meanwhile are served by the new cluster.
        """
        self._end_members()
        before = self.server
        try:
            errors = await self.stop(keep_listening=True)
        except BaseException:  # such as a cancellation
            before.close_sockets()
            raise
        self.transport.deliver()  # members that still wait for a response learn that none will come
        self.appends.forget_held()
        self._begin_clock()
        self.faults.book.clear(self.started_ms)
        self._begin(**self._settings)
        self.server.take_over(before)
        await self.start()
        return errors

    def _end_members(self) -> None:
        self.scheduler.stop()
        for member in self.scheduler:
            member.vanish()

    async def change_broker(
        self,
        broker_id: int,
        action: str,
        act: Callable[[ClusterController, HandlerContext, int], None],
        *,
        even_alone: bool = False,
    ) -> None:
        """Apply an action such as ``ClusterController.kill`` to a broker; its ports are then open only if it runs, and its
        connections closed if it does not. Raises ValueError, and OSError, without any change, if its port is in use."""
        self.require_own_loop()
        if self.is_up:
            await self.server.brokers_closed()
        number = self.core.broker.cluster.ids.index(broker_id)
        is_stopped = self.core.controller.state_of(broker_id) is BrokerState.STOPPED
        if is_stopped and act is ClusterController.start and self.is_up:
            await self.server.open_broker(number)
        effects = self.core.change_broker(
            f"{action} broker {broker_id}",
            lambda controller, ctx: act(controller, ctx, broker_id),
            self.clock(),
            even_alone=even_alone,
        )
        state = self.core.controller.state_of(broker_id)
        if state is BrokerState.STOPPED:
            self.transport.close_connections(number)
            if self.is_up:
                await self.server.close_broker(number)
        self.apply(effects, f"{action} broker {broker_id}")
        await self.loaded()

    async def change_controller(self, action: str, act: Callable[[ControllerNode, HandlerContext], None]) -> None:
        """Apply an action such as ``ControllerNode.kill`` to the controller. Raises ValueError."""
        self.require_own_loop()
        self.apply(self.core.change_controller(action, act, self.clock()), action)
        await self.loaded()

    def reload(self) -> None:
        """Unload all groups and transactional ids and load them from the logs, as a broker that restarts does."""
        cause = AdminAction("the broker starts again")
        for topic, runtime in self.core.runtimes.items():
            for shard in runtime.shards:
                log = self.core.broker.log(topic, shard.partition)
                if log is None or (shard.is_empty and log.log_end_offset == log.log_start_offset):
                    continue
                self._apply(self.core.resign(shard.partition, self.clock(), topic), cause)
                self.core.load(shard.partition, self.clock(), topic)

    # For the rest of this package.

    def now_ms(self) -> int:
        """The time of the cluster's clock (ms)."""
        return self.clock()

    def require_own_loop(self) -> None:
        """Raise RuntimeError unless called in the event loop of the cluster."""
        if asyncio.get_running_loop() is not self.loop:
            raise self._foreign_loop()

    def require_reachable(self) -> None:
        """Raise RuntimeError if another event loop runs and the cluster's does not: no client would get a response."""
        try:
            running = asyncio.get_running_loop()
        except RuntimeError:
            return
        if running is not self.loop and not self.loop.is_running() and not self.has_ended:
            raise self._foreign_loop()

    def _foreign_loop(self) -> RuntimeError:
        hint = (
            self.loop_hint
            or "start it, its clients and what uses it in the same one (pytest-asyncio: the same loop_scope)"
        )
        return RuntimeError(
            f"the cluster was started in another event loop than the one that uses it now, and that would wait for ever: {hint}"
        )

    @property
    def address(self) -> str:
        """``host:port`` of the first broker."""
        return self.server.address

    def apply(self, effects: Iterable[Effect], action: str) -> None:
        """Execute the effects of an administrative action, which is the cause of responses to requests that waited for it."""
        self._apply(effects, AdminAction(action))

    def look(self) -> None:
        """Add changes that have no effects (topics, addresses of brokers) to a detailed trace."""
        self._tracing.look(self.clock())

    async def act(self, effects: Iterable[Effect], action: str) -> None:
        """``apply``, then ``settle``."""
        self.apply(effects, action)
        await self.settle()

    async def unload_coordinator(self, topic: str, key: str) -> None:
        """Unload the coordinator of ``key``, whose records are in ``topic``. Raises ValueError."""
        await self.act(forced_actions_on_core.unload(self.core, topic, key, self.clock()), f"unload {key}")

    async def load_coordinator(self, topic: str, key: str) -> None:
        """Load the coordinator of ``key``, whose records are in ``topic``. Raises ValueError."""
        forced_actions_on_core.load(self.core, topic, key, self.clock())
        await self.act((), f"load {key}")
        await self.loaded()

    async def move_coordinator(self, topic: str, key: str, to: int) -> None:
        """Move the coordinator of ``key``, whose records are in ``topic``, to the broker ``to``. Raises ValueError."""
        partition = forced_actions_on_core.partition_of(self.core, topic, key)
        self.apply(self.core.move_leader(topic, partition, to, self.clock()), f"broker {to} is to coordinate {key}")
        await self.loaded()

    def execute_effects(self, effects: list[Effect]) -> None:
        """Execute effects that have gone through all layers, if the server is up."""
        if self.is_up:
            self.server.execute_effects(effects)

    def coordinator_of(self, key: str, key_type: int = GROUP) -> int:
        """The id of the broker that is the coordinator of ``key``; the first broker's if there is none.

        Creates ``__transaction_state`` if needed, as the first FindCoordinator does.
        """
        topic = CONSUMER_OFFSETS if key_type == GROUP else TRANSACTION_STATE
        if topic == TRANSACTION_STATE and topic not in self.core.broker.topics:
            create_automatically(self.core.broker, self.clock(), [topic])
        return self.leader_of((topic, forced_actions_on_core.partition_of(self.core, topic, key)))

    def leader_of(self, partition: TopicPartition) -> int:
        """The id of the broker that leads ``partition``; the first broker's if there is no such partition."""
        topic, number = partition
        found = self.core.broker.topics.get(topic)
        if found is None or not 0 <= number < len(found.partitions):
            return self.core.broker.cluster.ids[0]
        return found.metadata.leaders[number]

    def group_names(self) -> list[str]:
        """The names of all groups that exist, in order."""
        return sorted(name for machine in self.core.coordinator.runtime.machines() for name in machine.groups)

    def transactional_ids(self) -> list[str]:
        """All transactional ids that exist, in order."""
        return sorted(name for machine in self.core.transactions.runtime.machines() for name in machine.transactions)

    def partition_counts(self) -> dict[str, int]:
        """The topics that exist, with their numbers of partitions."""
        return {topic.name: len(topic.partitions) for topic in self.core.broker.topics.all()}

    def wake(self) -> None:
        """Fire the timers that are due, if the server is up."""
        if self.is_up:
            self.server.wake()

    async def loaded(self) -> None:
        """Wait until coordinators have loaded the partitions that they are loading."""
        while self.is_up and self.core.next_deadline() == 0:
            self.server.wake()
            await asyncio.sleep(0)
        await self.settle()

    async def settle(self) -> None:
        """Let everything run that does not wait for time to pass: members get their responses, responses are written.

        Raises RuntimeError unless called in the event loop of the cluster.
        """
        self.require_own_loop()
        quiet = 0
        while quiet < 2:
            busy = self._delivery_is_due or (self.is_up and self.server.is_closing_broker) or self._fires_at_once()
            await asyncio.sleep(0)
            quiet = 0 if busy or self._delivery_is_due else quiet + 1

    def _fires_at_once(self) -> bool:
        """Fire a timer that is due now, such as one for regular expressions. Was there one?

        Loading is not waited for here: see ``loaded``.
        """
        due = self.core.next_deadline() if self.is_up else None
        if not due or due > self.clock():
            return False
        self.server.wake()
        return True

    def heartbeat_for(self, group: str, member: str) -> None:
        """Heartbeat for a connected client, whose own heartbeat timer runs in real time."""
        connection = self.transport.spoke.get((group, member))
        if connection is None or not self.is_up or not self.server.is_connected(connection):
            return
        found = self.core.coordinator.shard_of(group).machine.groups.get(group)
        if isinstance(found, ConsumerGroup):
            consumer = found.members.get(member)
            if consumer is not None and consumer.member_epoch != AWAY_EPOCH:
                self._heartbeat_for_consumer(found, consumer)
        elif isinstance(found, ClassicGroup) and (known := found.members.get(member)) is not None:
            self._heartbeat(group, known, found.generation_id)

    def _heartbeat(self, group: str, member: Member | ConsumerMember, generation: int) -> None:
        request = HeartbeatRequest(
            group_id=group,
            generation_id=generation,
            member_id=member.member_id,
            group_instance_id=member.instance_id,
        )
        call = self._call_for(ApiKey.HEARTBEAT, member)
        self.execute_effects(self.transport.handle(call, request, self.clock()))

    def _heartbeat_for_consumer(self, group: ConsumerGroup, member: ConsumerMember) -> None:
        """Heartbeat for ``member``; if the response would have news for it, only restart its session."""
        if member.is_classic:
            self._heartbeat(group.group_id, member, member.member_epoch)
            return
        request = ConsumerGroupHeartbeatRequest(
            group_id=group.group_id,
            member_id=member.member_id,
            member_epoch=member.member_epoch,
            instance_id=member.instance_id,
        )
        epochs, now_ms = group.epochs, self.clock()
        is_news = not member.is_reconciled_to(epochs.group) or group.has_metadata_expired(now_ms)
        call = self._call_for(ApiKey.CONSUMER_GROUP_HEARTBEAT, member)
        if not is_news:
            self.execute_effects(self.transport.handle(call, request, now_ms))
        elif not self._fault_layer.would_act(call, request, now_ms):
            group.restart_session(HandlerContext(now_ms, AdminAction("the cluster heartbeats for it")), member)

    @staticmethod
    def _call_for(key: ApiKey, member: Member | ConsumerMember) -> Call:
        api = APIS[key]
        return Call(NO_CONNECTION, 0, api, api.max_version, member.client_id, member.client_host)

    def delays(self) -> list[Deadline]:
        """The requests that fault rules delay, and until when."""
        return self._fault_layer.deadlines()

    def next_deadline(self) -> int | None:
        """The time of the next timer (ms): of the brokers, if they are up, of members, and of delays by fault rules."""
        deadlines = [self.scheduler.next_deadline()]
        if self.is_up:
            deadlines.append(self.transport.next_deadline())
        return min((at_ms for at_ms in deadlines if at_ms is not None), default=None)

    # Internals.

    def _apply(self, effects: Iterable[Effect], cause: AdminAction) -> None:
        self._execute([_caused_by(cause, effect) for effect in effects])

    def _execute(self, effects: list[Effect], *, after: Layer | None = None) -> None:
        """Execute effects of the core, or of the layer ``after``, that do not come from a request."""
        self.execute_effects(self._assembly.outgoing(effects, self.clock(), after=after))

    def _connected(self, connection: ServerConnection, is_open: bool) -> None:
        told = self._tracing.connection_opened if is_open else self._tracing.connection_closed
        told(connection.number, connection.client_host, self.clock())

    def _broker_stopped(self, number: int) -> None:
        """A fault rule has stopped a broker: close its connections after the effects of the present request."""
        self.loop.call_soon(self.transport.close_connections, number)
        self.server.close_broker_soon(number)

    def _active(self) -> None:
        self.waiting.check_conditions()
        if isinstance(self.clock, ManualClock) and self.is_up:
            self._real_time_fetches.set_timers(self.clock(), self.loop, self.server.wake)

    def _deliver_soon(self) -> None:
        if not self._delivery_is_due:
            self._delivery_is_due = True
            self.loop.call_soon(self._deliver)

    def _deliver(self) -> None:
        self._delivery_is_due = False
        self.transport.deliver()
        self.waiting.check_conditions()


def _caused_by(cause: AdminAction, effect: Effect) -> Effect:
    if isinstance(effect, Reply | NoReply | CloseConnection) and isinstance(effect.origin, Call | Requested):
        return effect._replace(origin=cause)
    return effect


class InProcessConnection:
    """A ``MemberConnection`` without a socket. Unlike on a socket, its requests do not wait for each other."""

    hears: tuple[int, int] | None = None
    """As of ``MemberConnection``."""

    def __init__(self, engine: "Engine", client_id: str) -> None:
        self.client_id = client_id
        self.number = engine.transport.connection()
        self._engine = engine
        self._transport = engine.transport  # a reset gives the engine a new one, which numbers connections anew
        self._correlation_ids = count(1)
        self._closed = False

    def ask(
        self, request: Any, answered: OnResponse, *, version: int | None = None, broker_id: int | None = None
    ) -> None:
        """Send ``request``, by default to the first broker and in the newest version.

        ``answered`` is called with the response, or with None if the connection was closed. Raises RuntimeError after
        ``close``, and ValueError for an unknown version.
        """
        if self._closed:
            raise RuntimeError(f"{self.client_id} has vanished: it sends nothing any more")
        engine = self._engine
        engine.require_reachable()
        correlation_id = next(self._correlation_ids)

        def hear(response: Any) -> None:
            if self._closed:  # it may have been closed before the response was delivered
                return
            self.hears = self.number, correlation_id
            try:
                answered(response)
            finally:
                self.hears = None

        if not engine.is_up or (broker_id is not None and broker_id not in engine.core.broker.cluster.ids):
            engine.loop.call_soon(hear, None)  # the server is down, or the partition has no leader
            return
        broker = 0 if broker_id is None else engine.core.broker.cluster.ids.index(broker_id)
        api = API_BY_REQUEST[type(request)]
        used = api.max_version if version is None else version
        call = Call(self.number, correlation_id, api, used, self.client_id, _IN_PROCESS_HOST, broker)
        if version is not None:
            request = _as_read(call, request)
        engine.execute_effects(engine.transport.ask(call, request, engine.clock(), hear))

    def ask_coordinator(
        self, key: str, request: Any, answered: OnResponse, *, version: int | None = None, key_type: int = GROUP
    ) -> None:
        """Send ``request`` to the coordinator of ``key``, a group or what ``key_type`` says; see ``ask``."""
        broker_id = self._engine.coordinator_of(key, key_type)
        self.ask(request, answered, version=version, broker_id=broker_id)

    def ask_leader(
        self, partition: TopicPartition, request: Any, answered: OnResponse, *, version: int | None = None
    ) -> None:
        """Send ``request`` to the leader of ``partition``, or to the first broker if there is none; see ``ask``."""
        self.ask(request, answered, version=version, broker_id=self._engine.leader_of(partition))

    def close(self) -> None:
        """Close the connection; no ``answered`` is called afterwards."""
        self._closed = True
        self._transport.forget(self.number)


def _as_read(call: Call, request: Any) -> Any:
    """``request`` as a broker reads it from an older version: without the fields that version does not have."""
    if not call.api.serves(call.version):
        raise ValueError(f"{call.api.name}: there is no version {call.version}")
    frame = encode_request(call.api, call.version, call.correlation_id, call.client_id, request)
    return parse_request(frame[4:]).message

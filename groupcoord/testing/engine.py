"""What is behind ``testing.Cluster``: the assembled cluster, its server, its clock, and the members in this process."""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from groupcoord.broker.storage_backend import IN_MEMORY_STORAGE, StorageBackend
from groupcoord.broker.topic_names import CONSUMER_OFFSETS
from groupcoord.cluster.assemble import assemble
from groupcoord.cluster.layer import Layer
from groupcoord.config.broker_config import as_items, load
from groupcoord.core.effects import NO_CONNECTION, Call, CloseConnection, Effect, NoReply, Reply
from groupcoord.core.events import AdminAction, Event
from groupcoord.core.timers import Deadline
from groupcoord.protocol.apis import APIS, ApiKey
from groupcoord.protocol.messages import HeartbeatRequest
from groupcoord.server.connection import ServerConnection
from groupcoord.server.server import Server
from groupcoord.testing import clocks
from groupcoord.testing.appends import AppendRules
from groupcoord.testing.auto_member import MemberScheduler
from groupcoord.testing.clocks import ClockMode, ManualClock
from groupcoord.testing.faults import Faults
from groupcoord.testing.in_process_transport import InProcessTransport
from groupcoord.testing.real_time_fetches import RealTimeFetches
from groupcoord.testing.seeded_random import SeededRandomSource
from groupcoord.testing.trace import Trace, TracingLayer
from groupcoord.testing.waiting import Waiting


class Engine:
    """One running cluster, in the loop in which it was made; a ``DrivenCluster`` and a ``TransportHost``."""

    def __init__(
        self,
        *,
        topics: Mapping[str, int],
        config: Mapping[str, object],
        mode: ClockMode,
        start_ms: int | None,
        speed: float,
        seed: int | None,
        dev: bool,
        host: str,
        port: int,
        brokers: int,
        racks: Sequence[str],
        data_dir: Path | None,
        listeners: Iterable[Callable[[Event], None]],
        run: Callable[[Callable[[], object]], object] | None,
    ) -> None:
        self.loop = asyncio.get_running_loop()
        self.clock = clocks.make(mode, start_ms=start_ms, speed=speed, loop=self.loop)
        self.started_ms = self.clock()
        if seed is None and data_dir is None and mode in (ClockMode.MANUAL, ClockMode.VIRTUAL):
            seed = 0
        self.random = SeededRandomSource(seed)
        self.trace = Trace(start_ms=self.started_ms)
        self.faults = Faults(now_ms=self.clock) if run is None else Faults(now_ms=self.clock, run=run)
        self.waiting = Waiting()
        self.scheduler = MemberScheduler(self.clock, self.loop)
        loaded = load(as_items(config), dev=dev, brokers=brokers)
        storage: StorageBackend = IN_MEMORY_STORAGE
        files_to_come: Callable[[], int] = int  # 0
        with ExitStack() as opened:
            if data_dir is not None:
                if brokers > 1:
                    raise ValueError("data_dir is for one broker only")
                from groupcoord.storage.data_directory import DataDirectory  # noqa: PLC0415 - not on every system

                storage = directory = DataDirectory(data_dir, loaded, new_uuid=self.random.uuid, now_ms=self.clock())
                opened.callback(directory.close)
                loaded, files_to_come = directory.config, directory.files_to_come
            self._assembly = assembly = assemble(
                loaded,
                random=self.random,
                now_ms=self.clock(),
                topics=topics.items(),
                storage=storage,
                brokers=brokers,
                racks=racks,
            )
            self._resources = opened.pop_all()
        self.core = core = assembly.core
        core.broker.compacts_at_once = True  # a test looks at what follows when it has moved the clock
        self._real_time_fetches = assembly.add(lambda _: RealTimeFetches(core))
        self._fault_layer = self.faults.add_layer(assembly)
        self._fault_layer.execute_effects = lambda effects: self._execute(effects, after=self._fault_layer)
        self._tracing = assembly.add(
            lambda inner: TracingLayer(inner, self.trace, topic_name=core.broker.topics.topic_name)
        )
        self.transport = assembly.add(
            lambda inner: InProcessTransport(inner, on_activity=self._active, on_answers=self._deliver_soon)
        )
        self.appends = AppendRules(self.core, self.waiting, self.apply, self.clock)
        self.server = Server(
            self.transport,
            host,
            port,
            now_ms=self.clock,
            seconds_until=self.clock.seconds_until,
            listeners=listeners,
            brokers=assembly.brokers,
            files_to_come=files_to_come,
            on_connection=self._connected,
        )
        self.is_up = False
        self._delivery_is_due = False

    # From beginning to end.

    async def start(self) -> None:
        """Listen. Raises OSError if that cannot be; the cluster has ended then."""
        try:
            await self.server.startup()
        except BaseException:
            self._resources.close()
            raise
        self.is_up = True

    async def stop(self) -> list[Exception]:
        """Close the port and every connection; returns the unexpected errors of the server."""
        if not self.is_up:
            return []
        self.is_up = False
        self._real_time_fetches.stop()
        self.transport.close_connections()
        await self.server.shutdown()
        return [unexpected.error for unexpected in self.server.unexpected_errors]

    async def end(self) -> list[Exception]:
        """Stop for good."""
        with self._resources:
            self.scheduler.stop()
            for member in self.scheduler:
                member.vanish()
            return await self.stop()

    def reload(self) -> None:
        """Forget every group, and read all of them from ``__consumer_offsets``, as a broker that restarts does."""
        for partition in range(self.core.config.offsets_topic_num_partitions):
            log = self.core.broker.log(CONSUMER_OFFSETS, partition)
            if log is None or log.log_end_offset == log.log_start_offset:
                continue
            self.apply(self.core.resign(partition, self.clock()), "the broker starts again")
            self.core.load(partition, self.clock())

    # For the rest of this package.

    @property
    def address(self) -> str:
        """``host:port`` of the first broker."""
        return self.server.address

    def now_ms(self) -> int:
        """The time on the cluster's clock (ms)."""
        return self.clock()

    def apply(self, effects: Iterable[Effect], action: str) -> None:
        """Execute what an administrative action led to. The action is the cause of answers to requests that waited for it."""
        cause = AdminAction(action)
        self._execute([_caused_by(cause, effect) for effect in effects])

    def execute_effects(self, effects: list[Effect]) -> None:
        """Execute effects that have gone through all layers, if the server is up."""
        if self.is_up:
            self.server.execute_effects(effects)

    def coordinator_of(self, group: str) -> int:
        """The id of the broker that coordinates ``group``; the first broker's if no broker does."""
        partition = self.core.coordinator.shard_of(group).partition
        found = self.core.broker.topics.get(CONSUMER_OFFSETS)
        return self.core.broker.cluster.ids[0] if found is None else found.leaders[partition]

    def number_of(self, broker_id: int) -> int:
        """The number of a broker, counted from 0."""
        return self.core.broker.cluster.ids.index(broker_id)

    def soon(self, function: Callable[[], None]) -> None:
        """Call it in the next round of the loop."""
        self.loop.call_soon(function)

    def wake(self) -> None:
        """Fire what is due, in as many steps as the cluster wants at this moment."""
        if self.is_up:
            self.server.wake()

    async def loaded(self) -> None:
        """Wait until the partitions of ``__consumer_offsets`` that are being read are read."""
        while self.is_up and self.core.next_deadline() == 0:
            self.server.wake()
            await asyncio.sleep(0)
        await self.settle()

    async def settle(self) -> None:
        """Let everything happen that needs no time: members get their answers, answers are written.

        Raises RuntimeError in another event loop than that of the cluster.
        """
        if asyncio.get_running_loop() is not self.loop:
            raise RuntimeError("the cluster was started in another event loop than the one that uses it now")
        quiet = 0
        while quiet < 2:
            busy = self._delivery_is_due
            await asyncio.sleep(0)
            quiet = 0 if busy or self._delivery_is_due else quiet + 1

    def heartbeat_for(self, group: str, member: str) -> None:
        """Heartbeat for a connected client, whose own heartbeat timer runs in real time."""
        connection = self.transport.spoke.get((group, member))
        if connection is None or not self.is_up or not self.server.is_connected(connection):
            return
        found = self.core.coordinator.shard_of(group).machine.classic_group(group)
        known = None if found is None else found.members.get(member)
        if found is None or known is None:
            return
        api = APIS[ApiKey.HEARTBEAT]
        call = Call(NO_CONNECTION, 0, api, api.max_version, known.client_id, known.client_host)
        request = HeartbeatRequest(
            group_id=group,
            generation_id=found.generation_id,
            member_id=member,
            group_instance_id=known.instance_id,
        )
        self.execute_effects(self.transport.handle(call, request, self.clock()))

    def delays(self) -> list[Deadline]:
        """What rules delay, and until when."""
        return self._fault_layer.deadlines()

    def next_deadline(self) -> int | None:
        """When anything is due next (ms): on the broker, if it is up, for members, and for what rules delay."""
        deadlines = [self.scheduler.next_deadline()]
        if self.is_up:
            deadlines.append(self.transport.next_deadline())
        return min((at_ms for at_ms in deadlines if at_ms is not None), default=None)

    # Internals.

    def _execute(self, effects: list[Effect], *, after: Layer | None = None) -> None:
        """Execute what came out of the core, or of the layer ``after``, outside of a request."""
        self.execute_effects(self._assembly.outgoing(effects, self.clock(), after=after))

    def _connected(self, connection: ServerConnection, is_open: bool) -> None:
        told = self._tracing.connection_opened if is_open else self._tracing.connection_closed
        told(connection.number, connection.client_host, self.clock())

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
    if isinstance(effect, Reply | NoReply | CloseConnection) and isinstance(effect.origin, Call):
        return effect._replace(origin=cause)
    return effect

"""The cluster: a broker in a test's own process, whose time, faults and groups are in the test's hands::

async with Cluster(topics={"orders": 6}) as kafka:
    ...                                   # any client, at kafka.address
    await kafka.group("app").stable(members=2)
    await kafka.advance(seconds=46)       # whoever is silent loses its session now
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from groupcoord.assignors import Assignor
from groupcoord.broker.topic_names import CONSUMER_OFFSETS
from groupcoord.client.member.membership import Membership
from groupcoord.client.member.settings import MemberSettings
from groupcoord.client.options import assignors_of
from groupcoord.cluster.append_gate import HOLD
from groupcoord.cluster.cluster_core import ClusterCore
from groupcoord.protocol.apis.produce import PartitionProduceData, TopicProduceData
from groupcoord.protocol.batches.record_batch import build_batch
from groupcoord.protocol.batches.records import Record
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages import ProduceRequest, ProduceResponse
from groupcoord.testing import group_actions
from groupcoord.testing.appends import HeldAppends, code_of
from groupcoord.testing.auto_member import METADATA_MAX_AGE_MS, AutoMember, settings_of
from groupcoord.testing.barrier import Barrier
from groupcoord.testing.clock_driver import A_YEAR_MS, ClockDriver
from groupcoord.testing.clocks import ClockMode
from groupcoord.testing.deadlines import PendingDeadline, pending
from groupcoord.testing.engine import Engine
from groupcoord.testing.faults import Faults
from groupcoord.testing.groups import Group
from groupcoord.testing.in_process_transport import InProcessConnection
from groupcoord.testing.manual_member import ManualMember
from groupcoord.testing.request_builders import deletion, growth, raise_refusal
from groupcoord.testing.sync import Blocking, LoopThread
from groupcoord.testing.trace import Trace
from groupcoord.testing.waiting import WaitTimeoutError

_BY_NAME = 12
"""The last version of Produce that names topics."""


class Cluster:
    """A broker at ``address`` while its ``async with`` block runs.

    ``topics`` are names with numbers of partitions; ``config`` are Kafka's properties; ``clock`` says who moves the time
    (:class:`~groupcoord.testing.clocks.ClockMode`), ``speed`` how many times as fast a ``fast`` one runs; ``start_ms`` is
    when it begins (milliseconds since 1970; now, unless told). All ids come from ``seed``. ``dev`` takes the defaults for
    quick tests (groups form at once). With more than one of ``brokers`` it is a cluster in one process, each broker at one of
    ``addresses``; ``racks`` are theirs in turn. Raises ConfigError, and ValueError for a topic that Kafka would refuse.

    The end of the block fails, with an ExceptionGroup, if something went wrong in the server that should not have, and, with
    an AssertionError, if a rule was never used.
    """

    def __init__(
        self,
        *,
        topics: Mapping[str, int] | None = None,
        config: Mapping[str, object] | None = None,
        clock: str = "manual",
        speed: float = 100.0,
        start_ms: int | None = None,
        seed: int = 0,
        dev: bool = True,
        host: str = "127.0.0.1",
        port: int = 0,
        brokers: int = 1,
        racks: Sequence[str] = (),
    ) -> None:
        self._settings: dict[str, Any] = {
            "topics": dict(topics or {}),
            "config": dict(config or {}),
            "mode": ClockMode(clock),
            "speed": speed,
            "start_ms": start_ms,
            "seed": seed,
            "dev": dev,
            "host": host,
            "port": port,
            "brokers": brokers,
            "racks": tuple(racks),
        }
        self._running: Engine | None = None
        self._clock_driver: ClockDriver
        self._members = 0
        self._problems: list[Exception] = []
        self._thread: LoopThread | None = None

    # From beginning to end.

    async def __aenter__(self) -> Self:
        engine = Engine(**self._settings, run=None if self._thread is None else self._thread.call)
        await engine.start()
        self._running = engine
        self._clock_driver = ClockDriver(engine)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        engine = self._engine
        self._problems += await engine.end()
        if self._problems:
            problems = ExceptionGroup("errors in the server", self._problems)
            problems.add_note(engine.trace.text(limit=100))
            raise problems
        if kind is None:
            engine.faults.check()
            engine.appends.check()

    def __enter__(self) -> Any:
        """For programs without asyncio; see :mod:`groupcoord.testing.sync`. Every method of this class, without await."""
        if self._settings["mode"] is ClockMode.VIRTUAL:
            raise ValueError("simulated time is for asyncio programs: use `async with` on a virtual loop")
        self._thread = LoopThread()
        try:
            self._thread.wait_for(self.__aenter__())
        except BaseException:
            self._thread.stop()
            raise
        return Blocking(self, self._thread)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        assert self._thread is not None
        try:
            self._thread.wait_for(self.__aexit__(kind, error, traceback))
        finally:
            self._thread.stop()

    @property
    def _engine(self) -> Engine:
        if self._running is None:
            raise RuntimeError("the cluster has not been started: use it inside its `async with` block")
        return self._running

    def __repr__(self) -> str:
        return f"<Cluster {self.address if self._running else 'not started'}>"

    # What it is.

    @property
    def is_started(self) -> bool:
        """Has it been started at least once? Then it has a trace."""
        return self._running is not None

    @property
    def address(self) -> str:
        """``host:port``: the bootstrap server for clients."""
        return self._engine.address

    @property
    def addresses(self) -> list[str]:
        """``host:port`` of every broker, the first one's first."""
        return self._engine.server.addresses

    @property
    def node(self) -> ClusterCore:
        """The broker itself, for what no method here offers."""
        return self._engine.node

    @property
    def trace(self) -> Trace:
        """Everything that happened."""
        return self._engine.trace

    def now_ms(self) -> int:
        """How late it is on the cluster's clock: milliseconds since 1970."""
        return self._engine.clock()

    # Time.

    async def advance(self, seconds: float = 0.0, *, ms: int = 0, heartbeats: bool = True) -> None:
        """Let time pass; everything that falls due happens at its own moment, in order, before this returns.

        The heartbeats of clients in other programs and threads come from timers of theirs, which run in real time. So while
        time passes, the cluster sends them in their name, for members whose connection is open; with ``heartbeats=False``
        it does not, and they lose their sessions as if they had hung. Raises ClockError unless the clock is manual.
        """
        await self._clock_driver.advance(round(seconds * 1000) + ms, heartbeats=heartbeats)

    async def advance_to_next(self, *, group: str | None = None, heartbeats: bool = False) -> PendingDeadline:
        """Let time pass until the next deadline of ``group``, or of any, that included; returns what it was.

        Raises ClockError, and WaitTimeoutError if nothing is pending.
        """
        return await self._clock_driver.advance_to_next(group, heartbeats=heartbeats)

    async def advance_until(
        self, condition: Callable[[], object], *, limit_s: float | None = None, heartbeats: bool = True
    ) -> None:
        """Let time pass, deadline by deadline, until ``condition()`` is true; at most ``limit_s`` seconds, or a year.

        Raises ClockError, WaitTimeoutError.
        """
        limit_ms = A_YEAR_MS if limit_s is None else round(limit_s * 1000)
        await self._clock_driver.advance_until(condition, limit_ms, heartbeats=heartbeats)

    def deadlines(self, *, group: str | None = None, everything: bool = False) -> list[PendingDeadline]:
        """What will happen if nothing else does, earliest first; with ``everything`` also what concerns no group."""
        rules = self._engine.delays()
        return pending(self.node, self.now_ms(), rules, group=group, everything=everything)

    async def settle(self) -> None:
        """Let everything happen in this process that needs no time."""
        await self._engine.settle()

    # Groups.

    def group(self, name: str) -> Group:
        """The group of that name, whether it exists or not."""
        return Group(name, lambda: self.node, self._engine.waiting)

    def groups(self) -> list[str]:
        """The names of all groups that exist, in order."""
        return sorted(name for shard in self.node.coordinator.shards for name in shard.groups)

    async def force_rebalance(self, group: str, reason: str = "the test wants it") -> None:
        """Let the members of ``group`` join again. Raises ValueError if it cannot rebalance."""
        await self._run_admin_action(
            group_actions.force_rebalance(self.node, group, reason, self.now_ms()), f"force a rebalance: {reason}"
        )

    async def expire(self, group: str, member: str) -> None:
        """The session of ``member`` (its id, instance id or client id) ends now. Raises LookupError, ValueError."""
        found = self.group(group).view().member(member)
        await self._run_admin_action(
            group_actions.expire(self.node, group, found.member_id, self.now_ms()), f"expire {member}"
        )

    async def fence(self, group: str, instance_id: str) -> None:
        """Another member takes the place of the static member ``instance_id``, which is fenced. Raises ValueError."""
        await self._run_admin_action(
            group_actions.fence(self.node, group, instance_id, self.now_ms()), f"fence {instance_id}"
        )

    async def unload(self, group: str) -> None:
        """Let this broker coordinate ``group`` no longer, nor the others of its partition, until ``load``."""
        await self._run_admin_action(group_actions.unload(self.node, group, self.now_ms()), f"unload {group}")

    async def load(self, group: str) -> None:
        """Read the groups of that partition from its log, and coordinate them again."""
        await self._run_admin_action(group_actions.load(self.node, group, self.now_ms()), f"load {group}")
        await self._engine.loaded()

    async def _run_admin_action(self, effects: list[Any], action: str) -> None:
        self._engine.apply(effects, action)
        await self.settle()

    # The broker, or brokers.

    async def move_coordinator(self, group: str, broker_id: int) -> None:
        """Let another broker coordinate ``group``, and the others of its partition of ``__consumer_offsets``.

        Raises ValueError for a broker that there is none of; the first of several has the id 1.
        """
        await self.move_leader(CONSUMER_OFFSETS, self.node.coordinator.shard_of(group).partition, broker_id)

    async def move_leader(self, topic: str, partition: int, broker_id: int) -> None:
        """Let another broker lead a partition. Raises KeyError, ValueError for what there is none of."""
        effects = self.node.move_leader(topic, partition, broker_id, self.now_ms())
        self._engine.apply(effects, f"broker {broker_id} is to lead {topic}-{partition}")
        await self._engine.loaded()

    async def stop(self) -> None:
        """Close the port and all connections; what is stored is kept. Time may pass meanwhile."""
        self._problems += await self._engine.stop()

    async def restart(self) -> None:
        """Start again on the same port, after ``stop``: groups are what ``__consumer_offsets`` says."""
        await self.stop()
        self._engine.reload()
        await self._engine.start()
        await self._engine.loaded()

    def topic(self, name: str, partitions: int = 1) -> None:
        """Create a topic. Raises ValueError if Kafka would refuse it."""
        self.node.create_topic(name, partitions, self.now_ms())

    async def add_partitions(self, topic: str, more: int) -> None:
        """Give ``topic`` so many more partitions. Raises ValueError if Kafka would refuse it."""
        found = self.node.broker.topics.get(topic)
        raise_refusal(await self._ask(growth(topic, more + (0 if found is None else len(found.partitions)))))

    async def delete_topic(self, topic: str) -> None:
        """Delete ``topic``, and what groups have committed for it. Raises ValueError if Kafka would refuse it."""
        raise_refusal(await self._ask(deletion(topic)))

    async def produce(self, topic: str, *values: bytes, partition: int = 0, key: bytes | None = None) -> int:
        """Append ``values`` to a partition, as one batch; returns the offset of the first. Raises AssertionError if refused."""
        batch = build_batch([Record(number, self.now_ms(), key, value) for number, value in enumerate(values)])
        data = TopicProduceData(name=topic, partition_data=(PartitionProduceData(index=partition, records=batch),))
        request = ProduceRequest(transactional_id=None, acks=-1, timeout_ms=30_000, topic_data=(data,))
        found = self.node.broker.topics.get(topic)
        leader = found.leaders[partition] if found is not None and partition < len(found.leaders) else None
        answer: ProduceResponse = await self._ask(request, version=_BY_NAME, broker_id=leader)
        response = answer.responses[0].partition_responses[0]
        assert response.error_code == ErrorCode.NONE, f"{ErrorCode(response.error_code).name}: {response.error_message}"
        return response.base_offset

    async def _ask(self, request: Any, *, version: int | None = None, broker_id: int | None = None) -> Any:
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        InProcessConnection(self._engine, "cluster").ask(
            request, answer.set_result, version=version, broker_id=broker_id
        )
        response = await answer
        if response is None:
            raise ConnectionResetError(f"{type(request).__name__}: the broker is down, or closed the connection")
        return response

    # Faults.

    @property
    def faults(self) -> Faults:
        """The rules that are installed."""
        return self._engine.faults

    @property
    def when(self) -> Any:
        """Begin a rule: ``kafka.when(Heartbeat, group="app").refuse("REBALANCE_IN_PROGRESS")``; see ``docs/faults.md``."""
        return self._engine.faults.when

    def fail_append(self, error: str | ErrorCode, *, group: str | None = None, times: int = 1) -> None:
        """Let the next appends to ``__consumer_offsets``, those of ``group`` if given, fail with ``error``.

        It is the log's error, for example MESSAGE_TOO_LARGE; what clients are told of it is as in Kafka. Raises KeyError for
        what is no error's name.
        """
        self._engine.appends.add(code_of(error), group, times)

    def hold_append(self, *, group: str | None = None, times: int = 1) -> HeldAppends:
        """Let the next appends to ``__consumer_offsets`` wait: other replicas do not have them until ``release``."""
        return self._engine.appends.add(HOLD, group, times)

    def barrier(self, api: Any, group: str | None = None, *, n: int) -> Barrier:
        """Let the next ``n`` requests to ``api`` gather, to let them go in an order of the test's choice."""
        return Barrier(self._engine.faults.when(api, group=group).hold().times(n), n)

    # Members in this process.

    def member(
        self,
        group: str,
        *topics: str,
        assignors: str | Sequence[str | Assignor] = "range",
        instance_id: str | None = None,
        client_id: str | None = None,
        session_timeout_ms: int = 45_000,
        rebalance_timeout_ms: int = 60_000,
    ) -> ManualMember:
        """A member of which the test takes every step."""
        return ManualMember(
            InProcessConnection(self._engine, client_id or self._name(group)),
            group=group,
            topics=topics,
            assignors=assignors_of(assignors),
            partition_counts=self._partition_counts,
            instance_id=instance_id,
            session_timeout_ms=session_timeout_ms,
            rebalance_timeout_ms=rebalance_timeout_ms,
        )

    async def members(
        self,
        count: int,
        *,
        group: str,
        topics: str | Sequence[str],
        assignor: str | Sequence[str | Assignor] = "range",
        instance_ids: Sequence[str] | None = None,
        metadata_max_age_ms: int = METADATA_MAX_AGE_MS,
        **settings: Any,
    ) -> list[AutoMember]:
        """``count`` members that live by themselves, on the cluster's clock; returns when the group is stable with them.

        On a manual clock, time passes until that is so: members hear of a rebalance when they heartbeat. ``settings`` are
        those of ``MemberSettings``; times are milliseconds. A leader looks for new partitions
        every ``metadata_max_age_ms``. Raises WaitTimeoutError.
        """
        wanted = [topics] if isinstance(topics, str) else topics
        new = [
            self._living(wanted, assignors_of(assignor), each, metadata_max_age_ms)
            for each in settings_of(count, group, instance_ids, settings)
        ]
        for member in new:
            member.start()

        def all_in() -> bool:
            view = self.group(group).view()
            known = {member.member_id for member in view.members}
            return view.state == "Stable" and all(
                member.is_stable and member.member_id in known and member.generation == view.generation
                for member in new
            )

        await self.settle()
        if self._settings["mode"] is ClockMode.MANUAL:
            await self.advance_until(all_in, limit_s=600)
        else:
            await self._engine.waiting.until(
                all_in, f"{count} members of {group}", lambda: self.group(group).view().text()
            )
        return new

    def _living(
        self, topics: Sequence[str], assignors: Sequence[Assignor], settings: MemberSettings, metadata_max_age_ms: int
    ) -> AutoMember:
        engine = self._engine
        member = AutoMember(
            InProcessConnection(engine, self._name(settings.group_id)),
            Membership(settings, assignors, chance=engine.chance.fraction),
            topics,
            now_ms=engine.clock,
            metadata_max_age_ms=metadata_max_age_ms,
            listener=engine.trace,
            moved=engine.scheduler.see_to_timer,
        )
        engine.scheduler.add(member)
        return member

    def _partition_counts(self) -> Mapping[str, int]:
        return {topic.name: len(topic.partitions) for topic in self.node.broker.topics.all()}

    def _name(self, group: str) -> str:
        self._members += 1
        return f"{group}-{self._members}"


__all__ = ["Cluster", "WaitTimeoutError"]

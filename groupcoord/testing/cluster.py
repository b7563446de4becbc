"""Cluster, an in-process Kafka cluster of one broker or several, which speaks the real wire protocol::

async with Cluster(topics={"orders": 6}, clock="manual") as kafka:
    ...                                   # any client, at kafka.address
    await kafka.group("app").wait_stable(members=2)
    await kafka.clock.advance(46.0)       # the session of every silent member times out
"""

import asyncio
import os
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, Self
from weakref import WeakValueDictionary

from groupcoord.broker import topic_store
from groupcoord.broker.leader_election_and_isr import NO_LEADER
from groupcoord.client.completed_fetch import ConsumerRecord
from groupcoord.client.member.group_member import GroupMember
from groupcoord.client.metadata_as_zookeeper_paths import ZooKeeperTree
from groupcoord.cluster.cluster_core import ClusterCore
from groupcoord.coordinator.group import GroupType
from groupcoord.core.events import Event, counted
from groupcoord.protocol.errors import ErrorCode
from groupcoord.testing import forgotten_awaits
from groupcoord.testing.abstract_cluster import (
    BrokerHandle,
    KafkaCluster,
    deletion,
    growth,
    has_joined,
    new_partitioner,
    raise_refusal,
)
from groupcoord.testing.append_rules import AppendRule, HeldAppends
from groupcoord.testing.auto_member import AutoMember
from groupcoord.testing.broker_and_controller_handles import ClusterBroker, ControllerHandle
from groupcoord.testing.clocks import ClockMode
from groupcoord.testing.cluster_arguments import try_out
from groupcoord.testing.cluster_as_zookeeper_paths import registry_of
from groupcoord.testing.cluster_clock import ClusterClock
from groupcoord.testing.cluster_group import ClusterGroup
from groupcoord.testing.engine import Engine, InProcessConnection
from groupcoord.testing.failure_report import failure_report
from groupcoord.testing.faults import Barrier, Faults
from groupcoord.testing.forgotten_awaits import noted
from groupcoord.testing.record_reading import Isolation, chosen_partitions, read_log
from groupcoord.testing.sync_proxy import LoopThread
from groupcoord.testing.topic_settings import Topic, require_known_configs, topic_of, topics_of, unknown_topic
from groupcoord.testing.trace import Trace
from groupcoord.testing.transaction_handle import ClusterTransaction
from groupcoord.testing.virtual_loop import VirtualTimeLoop
from groupcoord.testing.wait_reasons import explained, wait_reasons

if TYPE_CHECKING:
    from groupcoord.testing.sync_api import SyncCluster

_NOTHING = (
    "nothing; the broker answers while the event loop of the test runs, so that a client that blocks the loop, such as "
    "confluent-kafka or kafka-python, needs the fixture kafka_sync"
)
MEMBERS_TIMEOUT_S = 600.0
"""How long ``consumers`` lets a manual clock advance at most until the group is stable (seconds)."""


STARTED: "WeakValueDictionary[int, Cluster]" = WeakValueDictionary()
"""The clusters that were started in this process, in order, without those that had ended before the present test and those
that are no longer referenced: a failed test reports those that it used."""
_numbers = count(1)


@noted
class Cluster(KafkaCluster):
    """A Kafka cluster at ``address`` while its ``async with`` block runs; ``sync()`` gives the same without asyncio.

    ``topics`` maps names to a number of partitions, or to a ``Topic`` with configs; ``config`` are broker configs; ``dev``
    uses defaults for quick tests (such as no initial rebalance delay). With several ``brokers``, each has a port of its own;
    ``racks`` are assigned to them in turn. ``features`` are feature levels that differ from those of a new cluster, such as
    ``{"transaction.version": 0}``.

    ``clock`` says what advances the time: ``real``, ``manual`` (the test), ``fast`` (``speed`` times the wall clock), or
    ``virtual`` (the event loop); ``start_ms`` is its start (milliseconds since 1970; now unless given). With ``data_dir`` the
    broker loads its logs from that directory and writes them there, in Kafka's own file formats; several brokers have a
    subdirectory each. All random ids come from ``seed``; without one they are the same in each run if the clock is manual or
    virtual and there is no ``data_dir``. A ``detailed_trace`` also contains the bytes of requests and responses, the brokers
    and topics, and the records appended to logs, for ``groupcoord page``. ``listeners`` are called with every event of the
    brokers.

    Raises TypeError and ValueError for invalid arguments, such as a topic that Kafka would refuse, or an unknown config
    (ConfigError). Entering the block raises StorageError for a directory that cannot be used, and OSError if the port is in
    use; leaving it raises an ExceptionGroup of the server's unexpected errors, and an AssertionError if a call was never
    awaited or a fault rule never acted.
    """

    _engine_class: ClassVar[type[Engine]] = Engine
    _nothing_happened: ClassVar[str] = _NOTHING

    def __init__(
        self,
        *,
        topics: Mapping[str, int | Topic] | None = None,
        brokers: int = 1,
        config: Mapping[str, object] | None = None,
        clock: str = "real",
        speed: float = 100.0,
        start_ms: int | None = None,
        seed: int | None = None,
        dev: bool = True,
        host: str = "127.0.0.1",
        port: int = 0,
        racks: Sequence[str] = (),
        features: Mapping[str, int] | None = None,
        data_dir: str | os.PathLike[str] | None = None,
        detailed_trace: bool = False,
        listeners: Iterable[Callable[[Event], None]] = (),
    ) -> None:
        super().__init__()
        wanted = topics_of({} if topics is None else topics)
        self._settings: dict[str, Any] = {
            "topics": {name: topic.partitions for name, topic in wanted.items()},
            "topic_configs": {name: topic.config_texts() for name, topic in wanted.items()},
            "config": {} if config is None else config,
            "mode": ClockMode.named(clock),
            "speed": speed,
            "start_ms": start_ms,
            "seed": seed,
            "dev": dev,
            "host": host,
            "port": port,
            "brokers": brokers,
            "racks": racks,
            "features": {} if features is None else features,
            "data_dir": None if data_dir is None else Path(data_dir),
            "detailed_trace": detailed_trace,
            "listeners": tuple(listeners) if isinstance(listeners, Iterable) else listeners,
        }
        try_out(self._settings)
        self._running: Engine | None = None
        self._clock: ClusterClock
        self._members = 0
        self._problems: list[Exception] = []
        self._told = 0
        """How many of ``server_errors`` were raised already."""
        self._thread: LoopThread | None = None
        self.loop_hint = ""
        """Advice for the error text if the cluster is used in another event loop."""

    # From beginning to end.

    async def __aenter__(self) -> Self:
        if self._settings["mode"] is ClockMode.VIRTUAL and not isinstance(asyncio.get_running_loop(), VirtualTimeLoop):
            raise RuntimeError('clock="virtual" is for a loop with simulated time: put @virtual_time around the test')
        engine = self._engine_class(**self._settings, run=None if self._thread is None else self._thread.call)
        engine.loop_hint = self.loop_hint
        await engine.start()
        self._running = engine
        self._clock = ClusterClock(engine)
        STARTED[next(_numbers)] = self
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        engine = self._engine
        self._problems += await engine.end()
        await self._check(rules=kind is None, error=error)

    async def check(self, *, rules: bool = True) -> None:
        """Raise now what the end of the block would raise: an ExceptionGroup of the server's unexpected errors, each only once,
        and an AssertionError for calls that were never awaited and, unless ``rules`` is False, for fault rules that have not
        acted so far."""
        await self._check(rules=rules, error=None)

    async def _check(self, *, rules: bool, error: BaseException | None) -> None:
        engine = self._engine
        problems, self._told = self.server_errors[self._told :], len(self.server_errors)
        if problems:
            group = ExceptionGroup("errors in the server", problems)
            group.add_note(engine.trace.text(limit=100))
            raise group
        await forgotten_awaits.check(error)
        if rules:
            engine.faults.check()
            engine.appends.check()

    async def reset(self, *, rules: bool = True) -> None:
        """Replace the cluster by a fresh one at the same address, in milliseconds.

        It keeps its settings and the topics that it was created with. Groups, transactions, fault rules and records are gone;
        the trace and a manual or virtual clock start again. Connections are closed, and members in this process have vanished.
        Objects such as ``kafka.group("app")`` refer to the fresh cluster from then on. First raises what ``check`` raises.
        Raises ValueError for a cluster with a ``data_dir``, which keeps its data.
        """
        if self._settings["data_dir"] is not None:
            raise ValueError("a cluster with data_dir keeps what is there: stop() it, and start another one elsewhere")
        engine = self._engine
        engine.require_own_loop()
        await self.check(rules=rules)
        for member in self._manual_members:
            member.vanish()
        self._manual_members.clear()
        self._members = 0
        self._partitioner = new_partitioner()
        self._problems += await engine.reset()
        self._problems, self._told = self._problems[self._told :], 0

    def sync(self) -> "SyncCluster":
        """The same cluster without ``await``: ``with Cluster(...).sync() as kafka``. Its loop runs in a thread of its own.

        Raises ValueError for ``clock="virtual"``.
        """
        from groupcoord.testing.sync_api import SyncCluster  # noqa: PLC0415 - it imports this module

        if self._settings["mode"] is ClockMode.VIRTUAL:
            raise ValueError("simulated time is for asyncio programs: use `async with` on a virtual loop")
        self._thread = LoopThread()
        return SyncCluster(self, self._thread)

    @property
    def _engine(self) -> Engine:
        if self._running is None:
            raise RuntimeError("the cluster has not been started: use it inside its `async with` block")
        self._running.require_reachable()
        return self._running

    def __repr__(self) -> str:
        return f"<Cluster {self._running.address if self._running else 'not started'}>"

    # State.

    @property
    def is_started(self) -> bool:
        """Whether it was started at least once; it has a trace from then on."""
        return self._running is not None

    @property
    def has_ended(self) -> bool:
        """Whether its block has ended; what can be looked at afterwards no longer changes."""
        return self._running is not None and self._running.has_ended

    @property
    def address(self) -> str:
        """``host:port``: the bootstrap server for clients."""
        return self._engine.address

    @property
    def addresses(self) -> list[str]:
        """``host:port`` of every broker, ordered by broker id."""
        return self._engine.server.addresses

    @property
    def brokers(self) -> Mapping[int, BrokerHandle]:
        """The brokers by id, with the faults that are injected into each; the first of several has the id 1."""
        registry = self.core.broker.cluster
        racks = registry.racks(self.core.config)
        ids_with_addresses = zip(registry.ids, self.addresses, strict=True)
        return {
            broker_id: BrokerHandle(
                broker_id, address, racks[broker_id], str(self.core.controller.condition_of(broker_id))
            )
            for broker_id, address in ids_with_addresses
        }

    @property
    def core(self) -> ClusterCore:
        """The internal objects of brokers and coordinators, for what no method here offers."""
        return self._engine.core

    @property
    def server_errors(self) -> list[Exception]:
        """The unexpected errors of the server so far; the end of the block raises them."""
        return [*self._problems, *(unexpected.error for unexpected in self._engine.server.unexpected_errors)]

    @property
    def clock(self) -> ClusterClock:
        """The clock of the cluster."""
        self._engine  # noqa: B018 - raises before the block has begun
        return self._clock

    @property
    def faults(self) -> Faults:
        """Fault rules for requests and responses: ``kafka.faults.when("Heartbeat").drop()``; see docs/faults.md."""
        return self._engine.faults

    @property
    def trace(self) -> Trace:
        """The trace: everything that happened, with its causes; see docs/trace.md."""
        return self._engine.trace

    def report(self, *, after: int = 0) -> str:
        """The report of a failed test: the groups and why they are in their states, what is pending, which fault rules acted,
        and the end of the trace, with requests without effect folded.

        ``after`` is the number of the trace entry after which it begins. It can also be called after the end of the block.
        """
        engine, thread = self._engine, self._thread
        if thread is None:
            return failure_report(engine, after, nothing=self._nothing_happened)
        if not thread.is_running:
            return failure_report(engine, after)
        return thread.call(lambda: failure_report(engine, after))

    # The brokers.

    async def stop(self) -> None:
        """Stop the brokers: close the ports and all connections. Logs are kept, and the clock goes on."""
        self._problems += await self._engine.stop()

    async def restart(self) -> None:
        """Stop the brokers, and start them again on the same ports; groups and transactions are loaded from the logs."""
        await self.stop()
        self._engine.reload()
        await self._engine.start()
        await self._engine.loaded()

    def broker(self, broker_id: int) -> ClusterBroker:
        """The broker with that id, which can be stopped, killed, paused and started. Raises ValueError for an unknown id."""
        return ClusterBroker(broker_id, self._engine)

    @property
    def controller(self) -> ControllerHandle:
        """The controller of several brokers, which can be killed, paused and started."""
        return ControllerHandle(self._engine)

    @property
    def registry(self) -> ZooKeeperTree:
        """The brokers and topics of the cluster now, as paths like ZooKeeper's: ``kafka.registry["/brokers/ids/2"]``; see
        docs/registry.md."""
        return registry_of(self.core, self._now_ms())

    async def move_leader(self, topic: str, partition: int, to: int) -> None:
        """Make the broker with the id ``to`` the leader of a partition, in the next leader epoch. Raises ValueError."""
        chosen_partitions(topic, len(self._topic(topic).partitions), partition)
        effects = self.core.move_leader(topic, partition, to, self._now_ms())
        self._engine.apply(effects, f"broker {to} is to lead {topic}-{partition}")
        await self._engine.loaded()

    # Topics.

    async def create_topic(
        self, name: str, partitions: int = 1, *, configs: Mapping[str, object] | None = None
    ) -> None:
        """Create a topic with topic ``configs``. Raises ValueError if Kafka would refuse it, and TypeError."""
        topic = require_known_configs(name, topic_of(name, partitions, configs))
        self.core.create_topic(name, topic.partitions, self._now_ms(), topic.config_texts())
        self._engine.look()

    async def add_partitions(self, topic: str, more: int) -> None:
        """Add ``more`` partitions to ``topic``. Raises ValueError if it does not exist, or Kafka would refuse it."""
        total = len(self._topic(topic).partitions) + more
        self.core.controller.require_controller(f"nobody adds partitions to {topic}")
        raise_refusal(await self._ask(growth(topic, total)))

    async def delete_topic(self, topic: str) -> None:
        """Delete ``topic``, and the offsets committed for it. Raises ValueError if it does not exist, or Kafka would refuse."""
        name = self._topic(topic).name
        self.core.controller.require_controller(f"nobody deletes {name}")
        raise_refusal(await self._ask(deletion(name)))

    async def records(
        self, topic: str, partition: int | None = None, *, isolation: Isolation = "read_committed"
    ) -> list[ConsumerRecord]:
        """The records of ``topic``, of one partition or of all in order, that a consumer of that isolation level can read now.

        ``read_committed`` leaves out aborted records, and all records from the oldest open transaction on (the last stable
        offset). Raises ValueError for an unknown topic or partition.
        """
        return self._records(topic, partition, isolation)

    def _records(self, topic: str, partition: int | None, isolation: Isolation) -> list[ConsumerRecord]:
        logs = self._topic(topic).partitions
        numbers = chosen_partitions(topic, len(logs), partition)
        return [record for number in numbers for record in read_log(topic, number, logs[number], isolation)]

    async def wait_records(
        self,
        topic: str,
        count: int,
        partition: int | None = None,
        *,
        isolation: Isolation = "read_committed",
        timeout: float | None = None,
    ) -> list[ConsumerRecord]:
        """Wait until ``records`` returns at least ``count``; returns them."""
        await self._engine.waiting.until(
            lambda: len(self._records(topic, partition, isolation)) >= count,
            f"{topic} should have {count} records for {isolation}",
            lambda: explained(f"It has {len(self._records(topic, partition, isolation))}", wait_reasons(self._engine)),
            timeout=timeout,
        )
        return self._records(topic, partition, isolation)

    async def leaders(self, topic: str) -> Mapping[int, int | None]:
        """The id of the broker that leads each partition of ``topic``; None where nobody does. Raises ValueError for an unknown
        topic."""
        leaders = self._topic(topic).metadata.leaders
        return {number: None if leader == NO_LEADER else leader for number, leader in enumerate(leaders)}

    def _topic(self, name: str) -> topic_store.Topic:
        found = self.core.broker.topics.get(name)
        if found is None:
            raise unknown_topic(name, self._partition_counts())
        return found

    async def _ask_broker(self, broker_id: int, request: Any, *, newest: int) -> Any:
        return await self._ask(request, version=newest, broker_id=broker_id)

    async def ask_broker(self, broker_id: int, request: Any, *, version: int | None = None) -> Any:
        """The response of that broker to ``request``, a message of ``groupcoord.protocol.messages``, by default in the newest
        version. Raises ConnectionResetError if the broker does not run, or closes the connection."""
        return await self._ask(request, version=version, broker_id=broker_id)

    async def _ask(self, request: Any, *, version: int | None = None, broker_id: int | None = None) -> Any:
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

        def hear(response: Any) -> None:
            if not answer.done():  # the caller may have been cancelled, as by asyncio.wait_for
                answer.set_result(response)

        InProcessConnection(self._engine, "cluster").ask(request, hear, version=version, broker_id=broker_id)
        response = await answer
        if response is None:
            stopped = "the cluster was stopped or reset, or its block has ended"
            why = "the broker is down, or closed the connection" if self._engine.is_up else stopped
            raise ConnectionResetError(f"{type(request).__name__}: {why}")
        return response

    # Groups.

    def group(self, name: str) -> ClusterGroup:
        """The group of that name, whether it exists or not."""
        return ClusterGroup(name, self._engine, self._ask)

    async def list_groups(self) -> list[str]:
        """The names of all groups that exist, in order."""
        return self._engine.group_names()

    # Transactions.

    def transaction(self, transactional_id: str) -> ClusterTransaction:
        """The transactional id and its transaction, whether it exists or not."""
        return ClusterTransaction(transactional_id, self._engine, self._ask)

    async def list_transactions(self) -> list[str]:
        """All transactional ids that exist, in order."""
        return self._engine.transactional_ids()

    # Waiting.

    async def settle(self) -> None:
        """Let everything in this process run that does not wait for time to pass."""
        await self._engine.settle()

    async def wait_until(self, condition: Callable[[], object], what: str, *, timeout: float | None = None) -> None:
        """Wait until ``condition()`` is true; it is called whenever the cluster has done something.

        ``what`` describes the condition for the error text. ``clock.advance_until`` advances a manual clock until then.
        """
        await self._engine.waiting.until(
            condition,
            what,
            lambda: explained(repr(self), wait_reasons(self._engine)),
            timeout=timeout,
        )

    # Appends of coordinators, and barriers.

    def fail_append(
        self, error: str | ErrorCode, *, group: str | None = None, transactional_id: str | None = None, times: int = 1
    ) -> AppendRule:
        """Fail the next appends of coordinators, only those of ``group`` or ``transactional_id`` if given, with ``error``.

        It is an error of the log, for example MESSAGE_TOO_LARGE, which the coordinator translates for clients as in Kafka.
        Raises ValueError for an unknown error.
        """
        return self._engine.appends.fail(error, group=group, transactional_id=transactional_id, times=times)

    def hold_append(
        self, *, group: str | None = None, transactional_id: str | None = None, times: int = 1
    ) -> HeldAppends:
        """Hold the next appends to ``__consumer_offsets`` or ``__transaction_state``, only those of ``group`` or
        ``transactional_id`` if given, until ``release``, as if other replicas did not have them yet."""
        return self._engine.appends.hold(group=group, transactional_id=transactional_id, times=times)

    @property
    def append_rules(self) -> list[AppendRule]:
        """The rules of ``fail_append`` and ``hold_append`` that are not removed, in order; ``uses`` is how often each acted."""
        return list(self._engine.appends.rules)

    def barrier(self, api: Any, *, size: int, group: str | None = None, transactional_id: str | None = None) -> Barrier:
        """A barrier that holds the next ``size`` requests to ``api``, and releases them in the order that the test chooses."""
        if not isinstance(size, int) or size < 1:
            raise ValueError(f"size={size!r}: a number of requests, 1 or more")
        rule = self._engine.faults.when(api, group=group, transactional_id=transactional_id)
        return Barrier(rule.hold().times(size), size)

    # Members in this process.

    def _now_ms(self) -> int:
        return self._engine.clock()

    def _connect(self, client_id: str) -> InProcessConnection:
        return InProcessConnection(self._engine, client_id)

    def _next_client_id(self, group: str) -> str:
        self._members += 1
        return f"{group}-{self._members}"

    def _chance(self) -> float:
        return self._engine.random.fraction()

    def _new_uuid(self) -> str:
        return str(self._engine.random.uuid())

    def _topic_names(self) -> Mapping[uuid.UUID, str]:
        return {topic.topic_id: topic.name for topic in self.core.broker.topics.all()}

    def _partition_counts(self) -> Mapping[str, int]:
        return self._engine.partition_counts()

    def _auto_member(
        self, membership: GroupMember, topics: Sequence[str], regex: str | None, metadata_max_age_ms: int
    ) -> AutoMember:
        engine = self._engine
        member = AutoMember(
            InProcessConnection(engine, self._next_client_id(membership.settings.group_id)),
            membership,
            topics,
            regex=regex,
            now_ms=engine.clock,
            metadata_max_age_ms=metadata_max_age_ms,
            listener=engine.trace,
            on_change=engine.scheduler.set_timer,
        )
        engine.scheduler.add(member)
        return member

    async def _wait_for_members(self, group: str, new: Sequence[AutoMember], timeout: float | None) -> None:
        handle = self.group(group)

        def all_in() -> bool:
            seen = handle.description()
            number = seen.generation if seen.type == GroupType.CLASSIC else seen.epoch
            return seen.state == "Stable" and all(
                member.is_stable and member.generation == number and has_joined(member, seen) for member in new
            )

        what = f"{counted(len(new), 'new member')} of {group}"
        await self.settle()
        if self._settings["mode"] is ClockMode.MANUAL:
            await self.clock.advance_until(all_in, what, timeout=MEMBERS_TIMEOUT_S if timeout is None else timeout)
        else:
            await self._engine.waiting.until(
                all_in,
                what,
                lambda: explained(handle.description().text(), wait_reasons(self._engine, group=group)),
                timeout=timeout,
            )

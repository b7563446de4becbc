"""One broker, or several: the group coordinator and the data plane behind one face, and the log that connects them.

Pure: a call and the time in, effects out. The coordinator's appends are carried to ``__consumer_offsets`` here, so what
comes out is for the network, and events for listeners.
"""

import dataclasses
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

from groupcoord.broker import dispatch
from groupcoord.broker.broker import Broker
from groupcoord.broker.broker_registry import BrokerRegistry
from groupcoord.broker.storage_backend import IN_MEMORY_STORAGE, StorageBackend
from groupcoord.broker.topic_creation import create_automatically, create_topic
from groupcoord.broker.topic_names import CONSUMER_OFFSETS
from groupcoord.broker.topics import Topic
from groupcoord.cluster.api_versions import api_versions
from groupcoord.cluster.append_gate import Appends
from groupcoord.cluster.offsets_loader import OffsetsLoader
from groupcoord.config.broker_config import BrokerConfig
from groupcoord.coordinator.config import CoordinatorConfig
from groupcoord.coordinator.coordinator import DEFAULT_MAX_BATCH_BYTES, GroupCoordinator
from groupcoord.coordinator.find_coordinator import GROUP
from groupcoord.coordinator.runtime.runtime import Address
from groupcoord.core.api_error import ApiError
from groupcoord.core.background_work import BackgroundWork, SubmitWork, T, run_inline
from groupcoord.core.effects import Append, Call, Effect, Reply
from groupcoord.core.events import AdminAction
from groupcoord.core.handler_context import HandlerContext
from groupcoord.core.timers import Deadline
from groupcoord.protocol.apis import ApiKey

_FLUSH = AdminAction("a batch is complete")


class RandomSource(Protocol):
    """The only source of randomness; tests pass one that counts."""

    def uuid(self) -> uuid.UUID:
        """A random id: for members and topics."""

    def session_id(self) -> int:
        """A random positive int32, for a fetch session."""

    def next_int(self, bound: int) -> int:
        """A random int from 0 up to ``bound``: which of several brokers the replicas of a new topic begin with."""


class ClusterCore:
    """One broker and coordinator, with everything in memory unless ``storage`` keeps it somewhere else, too.

    With more ``brokers`` it is a cluster of so many: their ids count from ``node.id``, ``racks`` are theirs in turn, each call
    says which one it came to, and ``config`` is that of the first, as ``load`` makes it for so many brokers. Raises ValueError
    for brokers that cannot be, or several with a ``storage``.
    """

    def __init__(
        self,
        config: BrokerConfig,
        *,
        random: RandomSource,
        now_ms: int,
        storage: StorageBackend = IN_MEMORY_STORAGE,
        brokers: int = 1,
        racks: Sequence[str] = (),
    ) -> None:
        if brokers > 1 and not storage.in_memory:
            raise ValueError("only one broker's data can be kept")
        self.broker = Broker(
            config,
            new_topic_id=random.uuid,
            new_session_id=random.session_id,
            now_ms=now_ms,
            storage=storage,
            cluster=BrokerRegistry(config.node_id, brokers, racks=racks, random=random),
        )
        self.coordinator = GroupCoordinator(
            _coordinator_config(config),
            new_uuid=lambda: str(random.uuid()),
            topics=self.broker.topics,
            now_ms=now_ms,
            brokers=None if brokers == 1 else _Brokers(self.broker),
            max_batch_bytes=self._max_batch_bytes,
        )
        self._runtimes = (self.coordinator.runtime,)
        self._open_shards = self.coordinator.runtime.open_shards
        self.appends = Appends(self.broker, self._runtimes, self._execute_now)
        """Carries the coordinators' records to their logs; its gate can hold appends or fail them: see append_gate.py."""
        self._batches_rounds = False
        self.broker.on_topics_deleted = self._topics_deleted
        self._loader = OffsetsLoader()
        self._coordinated = frozenset(self.coordinator.apis)
        # As on a broker that has answered a FindCoordinator before; Kafka creates the topic only with the first of these.
        if not self._create_offsets_topic(now_ms):
            self.coordinator.runtime.topic_deleted(
                HandlerContext(now_ms, AdminAction("there is no __consumer_offsets"))
            )
        for partition in range(config.offsets_topic_num_partitions):
            log = self.broker.log(CONSUMER_OFFSETS, partition)
            if log is not None and log.log_end_offset > log.log_start_offset:
                self.load(partition, now_ms)

    @property
    def config(self) -> BrokerConfig:
        """The configuration as it is now: clients can change some of it while the broker runs."""
        return self.broker.config

    def listening_at(self, host: str, port: int) -> None:
        """The first broker listens there: from now on that is what clients are told, unless something else is advertised."""
        self.broker.config = self.config.listening_at(host, port)
        advertised = self.config.advertised
        self.coordinator.config = dataclasses.replace(
            self.coordinator.config, host=advertised.host, port=advertised.port
        )

    def use_worker(self, submit: SubmitWork | None) -> None:
        """From now on have ``submit`` do what takes long; None: it is done at once again."""
        if submit is None:
            self.broker.run_work = run_inline
            return

        def runner(
            before: HandlerContext,
            call: Call | None,
            work: BackgroundWork[T],
            then: Callable[[HandlerContext, T], None],
        ) -> None:
            def done(result: T, now_ms: int) -> list[Effect]:
                ctx = HandlerContext(now_ms, before.origin if call is None else call)
                then(ctx, result)
                return self._execute_appends(ctx.effects, now_ms)

            submit(call, work, done)

        self.broker.run_work = runner

    def handle(self, call: Call, request: Any, now_ms: int) -> list[Effect]:
        """What follows from ``request``; ``None`` for it stands for an ApiVersions of an unknown version."""
        key = call.api.key
        if key in self._coordinated:
            effects = self.coordinator.handle(call, request, now_ms)
            if (
                key == ApiKey.FIND_COORDINATOR
                and request.key_type == GROUP
                and CONSUMER_OFFSETS not in self.broker.topics
            ):
                # A client deleted it. FindCoordinator creates it again, and finds the coordinator the next time.
                self._create_offsets_topic(now_ms)
            if len(effects) == 1 and type(effects[0]) is Reply and not self._open_shards:
                return effects  # as it is for most requests
            return self._execute_appends(effects, now_ms)
        if key == ApiKey.API_VERSIONS:
            ctx = HandlerContext(now_ms, call)
            api_versions(ctx, call, request)
            return ctx.effects
        return self._execute_appends(dispatch.handle(self.broker, call, request, now_ms), now_ms)

    def expire(self, now_ms: int) -> list[Effect]:
        """Fire every timer that is due at ``now_ms``, and read on where partitions of ``__consumer_offsets`` are being read."""
        effects = self._execute_appends(self.coordinator.expire(now_ms), now_ms)
        effects += self._execute_appends(self.broker.expire(now_ms), now_ms)
        if self._loader:
            ctx = HandlerContext(now_ms, AdminAction("a coordinator starts"))
            self._loader.read_next_piece(ctx)
            effects += self._execute_appends(ctx.effects, now_ms)
        return effects

    def flush(self, now_ms: int) -> list[Effect]:
        """Append what several requests wrote, as one batch for each partition; a server calls it at the end of each round."""
        effects: list[Effect] = []
        for runtime in self._runtimes:
            while runtime.open_shards:  # what follows from an append may write again
                ctx = HandlerContext(now_ms, _FLUSH)
                runtime.flush(ctx)
                effects += self._submit_appends(ctx.effects, now_ms)
        return effects

    def batch_rounds(self, *, batches: bool) -> None:
        """From now on what requests write waits for ``flush``; if not ``batches``, each request is flushed at once."""
        self._batches_rounds = batches

    def next_deadline(self) -> int | None:
        """When the next timer is due (ms), or None. While there is something to read, that is at once."""
        if self._loader:
            return 0
        return _earlier(self.coordinator.next_deadline(), self.broker.next_deadline())

    def deadline_lower_bound(self) -> int | None:
        """No timer is due before that moment (ms); None if there is none. Costs less than ``next_deadline``."""
        if self._loader:
            return 0
        return _earlier(self.coordinator.timers.deadline_lower_bound(), self.broker.timers.deadline_lower_bound())

    def deadlines(self) -> list[Deadline]:
        """All pending timers, earliest first."""
        pending = [*self.coordinator.timers.pending(), *self.broker.timers.pending()]
        return sorted(pending, key=lambda deadline: deadline.at_ms)

    def create_topic(self, name: str, partitions: int, now_ms: int) -> None:
        """Create a topic without a client asking for it. Raises ValueError if Kafka would refuse it."""
        try:
            create_topic(self.broker, now_ms, name, partitions)
        except ApiError as refusal:
            raise ValueError(refusal.message or refusal.code.text) from refusal

    def run_admin_action(
        self, action: str, act: Callable[[GroupCoordinator, HandlerContext], None], now_ms: int
    ) -> list[Effect]:
        """The effects of ``act``; ``action`` describes it in the trace. See coordinator/admin_actions.py."""
        ctx = HandlerContext(now_ms, AdminAction(action))
        act(self.coordinator, ctx)
        return self._execute_now(ctx.effects, now_ms)

    def move_leader(self, topic: str, partition: int, broker_id: int, now_ms: int) -> list[Effect]:
        """Let another broker lead a partition, in the next leader epoch.

        If it is one of ``__consumer_offsets``, the groups in it move, too: requests that wait at the old coordinator are
        answered with NOT_COORDINATOR, and the new one serves as soon as it has read the log. A broker that was no replica is
        one now, in place of the old leader. Nothing happens if it leads already. Raises KeyError for a partition that there is
        none of, ValueError for a broker that there is none of.
        """
        found = self.broker.topics.get(topic)
        if found is None or not 0 <= partition < len(found.partitions):
            raise KeyError(f"there is no partition {partition} of {topic}")
        if broker_id not in self.broker.cluster.ids:
            raise ValueError(f"there is no broker {broker_id}")
        if found.leaders[partition] == broker_id:
            return []
        coordinates = topic == CONSUMER_OFFSETS and partition < len(self.coordinator.shards)
        effects = self.resign(partition, now_ms) if coordinates else []
        ctx = HandlerContext(now_ms, AdminAction(f"broker {broker_id} is to lead {topic}-{partition}"))
        self.broker.move_leader(ctx, found, partition, broker_id)
        if coordinates:
            self.load(partition, now_ms)
        return effects + ctx.effects

    def resign(self, partition: int, now_ms: int) -> list[Effect]:
        """Let another broker coordinate the groups of this partition of ``__consumer_offsets``; what waits is refused."""
        ctx = HandlerContext(now_ms, AdminAction(f"partition {partition} of __consumer_offsets moves away"))
        self.coordinator.runtime.resign(partition, ctx)
        return ctx.effects

    def load(self, partition: int, now_ms: int) -> None:
        """Coordinate the groups of this partition of ``__consumer_offsets`` again, as soon as its log is read.

        It is read by ``expire``, a piece at a time; until then requests are answered with COORDINATOR_LOAD_IN_PROGRESS.

        Raises KeyError if there is no such partition; ValueError if it has groups here, or appends on their way: who waits for
        these would never be answered, so ``resign`` comes first.
        """
        ctx = HandlerContext(now_ms, AdminAction(f"partition {partition} of __consumer_offsets comes back"))
        log = self.broker.log(CONSUMER_OFFSETS, partition)
        if log is None:
            raise KeyError(f"there is no partition {partition} of __consumer_offsets")
        shard = self.coordinator.shards[partition]
        if not shard.machine.is_empty or not shard.is_idle:
            raise ValueError(f"partition {partition} of __consumer_offsets is coordinated here: it has to resign first")
        self._loader.begin(self.coordinator.runtime.load(partition, ctx), log)

    def compact(self, partition: int, now_ms: int) -> list[Effect]:
        """Compact this partition of ``__consumer_offsets`` now; reads and commits go on meanwhile.

        The event LogCleaned says how much was kept. Raises KeyError if there is no such partition.
        """
        return self.broker.compact(CONSUMER_OFFSETS, partition, now_ms)

    def _execute_appends(self, effects: list[Effect], now_ms: int) -> list[Effect]:
        """Replace the appends among ``effects``, and those of open batches unless rounds are batched, by what follows."""
        carried = self._submit_appends(effects, now_ms)
        if self._open_shards and not self._batches_rounds:
            carried += self.flush(now_ms)
        return carried

    def _execute_now(self, effects: list[Effect], now_ms: int) -> list[Effect]:
        """The same for what is done outside of rounds: no ``flush`` would follow."""
        return self._execute_appends(effects, now_ms) + self.flush(now_ms)

    def _submit_appends(self, effects: list[Effect], now_ms: int) -> list[Effect]:
        carried: list[Effect] = []
        waiting = deque(effects)
        while waiting:
            effect = waiting.popleft()
            if type(effect) is Append:
                for following in self.appends.submit(effect, now_ms):
                    (waiting if type(following) is Append else carried).append(following)
            else:
                carried.append(effect)
        return carried

    def _max_batch_bytes(self, partition: int) -> int:
        log = self.broker.log(CONSUMER_OFFSETS, partition)
        return DEFAULT_MAX_BATCH_BYTES if log is None else log.settings.max_message_bytes

    def _topics_deleted(self, ctx: HandlerContext, topics: Iterable[Topic]) -> None:
        self.coordinator.topics_deleted(ctx, [topic.name for topic in topics])

    def _create_offsets_topic(self, now_ms: int) -> bool:
        """Is it there now? A lone broker that is to replicate it waits for others, in vain."""
        create_automatically(self.broker, now_ms, [CONSUMER_OFFSETS])
        return CONSUMER_OFFSETS in self.broker.topics


class _Brokers:
    """What the coordinator asks of the brokers."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def ids(self) -> Sequence[int]:
        return self._broker.cluster.ids

    def leaders(self, topic: str) -> tuple[int, ...]:
        found = self._broker.topics.get(topic)
        return () if found is None else found.leaders

    def address(self, broker_id: int) -> Address:
        (found,) = self._broker.cluster.named(self._broker.config, [broker_id])
        return Address(found.id, found.host, found.port)


def _earlier(one: int | None, other: int | None) -> int | None:
    if one is None or other is None:
        return other if one is None else one
    return one if one < other else other


def _coordinator_config(config: BrokerConfig) -> CoordinatorConfig:
    names = {field.name for field in dataclasses.fields(CoordinatorConfig)} - {"host", "port"}
    settings = {name: getattr(config, name) for name in names}
    return CoordinatorConfig(**settings, host=config.advertised.host, port=config.advertised.port)

"""ClusterCore: the brokers, coordinators and controller of a cluster behind one interface.

No I/O, no clock: it takes requests and the time, and returns effects (``core/effects.py``). It writes the coordinators' records
to their logs itself, so that the effects that it returns are only responses and events.
"""

import dataclasses
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Protocol

from groupcoord.broker import topic_and_log_dispatch
from groupcoord.broker.alter_configs import ResourceType
from groupcoord.broker.broker import Broker, Then
from groupcoord.broker.broker_registry import BrokerRegistry
from groupcoord.broker.storage_backend import IN_MEMORY_STORAGE, StorageBackend
from groupcoord.broker.topic_admin import MOST_RECORDS_PER_REQUEST, NO_CONFIGS, create_automatically, create_topic
from groupcoord.broker.topic_names import CONSUMER_OFFSETS, INTERNAL, TRANSACTION_STATE
from groupcoord.broker.topic_store import Topic
from groupcoord.cluster.api_versions import api_versions
from groupcoord.cluster.controller import ClusterController
from groupcoord.cluster.controller_dispatch import CONTROLLER_HANDLERS
from groupcoord.cluster.controller_outages import ControllerNode
from groupcoord.cluster.coordinator_loader import CoordinatorLoader
from groupcoord.cluster.coordinator_partition_writer import CoordinatorPartitionWriter
from groupcoord.cluster.feature_control import Features
from groupcoord.cluster.network_cuts import ANSWERED_FROM_STALE_METADATA, FORWARDED, verify_with_known_coordinator
from groupcoord.cluster.write_txn_markers import TransactionMarkers, verify_offsets
from groupcoord.config.broker_config import BrokerConfig, ConfigResource
from groupcoord.config.features import GROUP_VERSION, TRANSACTION_VERSION
from groupcoord.coordinator.find_coordinator import this_broker
from groupcoord.coordinator.group import ConsumerGroupConfig
from groupcoord.coordinator.group_coordinator import DEFAULT_MAX_BATCH_BYTES, GroupCoordinator
from groupcoord.coordinator.runtime.coordinator_placement import Address
from groupcoord.coordinator.runtime.coordinator_runtime import CoordinatorRuntime
from groupcoord.coordinator.runtime.shard import ShardState
from groupcoord.coordinator.transaction.transaction_coordinator import TransactionCoordinator
from groupcoord.core.api_error import ApiError
from groupcoord.core.background_work import BackgroundWork, SubmitWork, T, run_inline
from groupcoord.core.effect_collector import HandlerContext
from groupcoord.core.effects import Append, Call, Effect, Reply
from groupcoord.core.events import AdminAction, BrokerTask
from groupcoord.core.timers import Deadline, Timers
from groupcoord.protocol.apis import ApiKey
from groupcoord.protocol.apis.find_coordinator import GROUP, TRANSACTION
from groupcoord.protocol.batches.record_batch import BatchError

NO_FEATURES: Mapping[str, int] = {}
_TOPIC_OF_KEYS = {GROUP: CONSUMER_OFFSETS, TRANSACTION: TRANSACTION_STATE}
_INIT_PRODUCER_ID = ApiKey.INIT_PRODUCER_ID
_FIND_COORDINATOR = ApiKey.FIND_COORDINATOR  # each request is compared with it, and Python 3.11 is slow to look it up


class RandomSource(Protocol):
    """The only source of randomness; tests pass a deterministic one."""

    def uuid(self) -> uuid.UUID:
        """A random id: for members and topics."""

    def session_id(self) -> int:
        """A random positive int32, for a fetch session."""

    def next_int(self, bound: int) -> int:
        """A random int from 0 below ``bound``: the broker with the first replica of a new topic."""


class ClusterCore:
    """Brokers and coordinators, with everything in memory unless ``storage`` stores it.

    ``brokers`` have ids from ``node.id`` on, and ``racks`` in turn; each call tells which one it came to. ``config`` is that of
    the first, as ``load`` returns it for that many brokers. ``features`` are levels that differ from those of a new cluster, or
    of ``storage``. Raises ValueError for invalid brokers or levels.
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
        features: Mapping[str, int] = NO_FEATURES,
    ) -> None:
        self.features = Features(storage.features(), features, config.node_id, storage.features_updated)
        self.broker = Broker(
            config,
            new_topic_id=random.uuid,
            new_session_id=random.session_id,
            now_ms=now_ms,
            storage=storage,
            cluster=BrokerRegistry(config.node_id, brokers, racks=racks, random=random),
        )
        self.coordinator = GroupCoordinator(
            config,
            new_uuid=lambda: str(random.uuid()),
            topics=TopicsOfBroker(self.broker),
            now_ms=now_ms,
            brokers=None if brokers == 1 else _Brokers(self.broker),
            max_batch_bytes=partial(self._max_batch_bytes, CONSUMER_OFFSETS),
            config_of=self._consumer_group_config,
            group_version=lambda: self.features.level(GROUP_VERSION),
        )
        self.controller = ClusterController(
            self.broker,
            resign=self._resign_partition,
            load=self._load_partition,
            handle=self._handle_now,
            now_ms=now_ms,
        )
        """Starts, stops and fences brokers, and elects leaders."""
        self.broker.go_on = self._go_on
        self.controller_node = ControllerNode(self.broker, self.controller, self._handle_now)
        """Starts and stops the controller itself."""
        self.markers = TransactionMarkers(self.broker, self.coordinator.shards, self.controller.cuts)
        self.transactions = TransactionCoordinator(
            config,
            new_producer_id=self._new_producer_id,
            leader_epoch=self._transaction_epoch,
            write_marker=self.markers.send,
            offsets_partition=lambda group_id: (CONSUMER_OFFSETS, self.coordinator.shard_of(group_id).partition),
            partition_count=self.broker.topics.partition_count,
            internal_topics=frozenset(INTERNAL),
            max_batch_bytes=partial(self._max_batch_bytes, TRANSACTION_STATE),
            now_ms=now_ms,
            brokers=None if brokers == 1 else _Brokers(self.broker),
            transaction_version=lambda: self.features.level(TRANSACTION_VERSION),
        )
        self._stale = self.controller.cuts.stale
        verify = self.transactions.verify
        self.broker.verify_transaction = verify_with_known_coordinator(self.broker, self._stale, verify)
        self.coordinator.verify_transaction = verify_offsets(self.broker, verify)
        self.coordinator.transaction_coordinator_of = lambda transactional_id, listener: (
            self.transactions.coordinator_of(transactional_id, this_broker(self.coordinator.config, listener), listener)
        )
        self.runtimes: Mapping[str, CoordinatorRuntime[Any]] = {
            runtime.topic: runtime for runtime in (self.coordinator.runtime, self.transactions.runtime)
        }
        """The coordinators' shards by topic."""
        self._open_shards = self.coordinator.runtime.open_shards
        self.appends = CoordinatorPartitionWriter(self.broker, self.runtimes.values(), self._execute_now)
        """Writes the coordinators' records to their logs; its gate can hold or fail appends."""
        self._batches_rounds = False
        self._default_group_config = config, _config_of_group(config, NO_CONFIGS)
        self.broker.on_topics_deleted = self._topics_deleted
        self._timers: tuple[Timers, ...] = (self.coordinator.timers, self.transactions.timers, self.broker.timers)
        if brokers > 1:
            self._timers = (*self._timers, self.controller.timers)
        self._absent = self.broker.cluster.not_running
        self._unreachable = self.broker.cluster.unreachable
        self.loader = CoordinatorLoader()
        """Loads coordinators from their logs; the simulation replaces it by a slower one."""
        self._coordinated = frozenset(self.coordinator.apis)
        self._transactional = frozenset(self.transactions.apis)
        self._said_at_start: list[Effect] = []
        """Effects of the start of several brokers, which the first ``expire`` returns."""
        if brokers > 1 and len(self.broker.topics):
            ctx = HandlerContext(now_ms, BrokerTask("the brokers start with what was kept"))
            self.controller.start_all(ctx, storage.unclean_brokers())
            self._said_at_start = ctx.effects
        # As after a FindCoordinator request, with which Kafka creates the topic.
        self._create_coordinators_topic(CONSUMER_OFFSETS, now_ms)
        for topic, runtime in self.runtimes.items():
            if topic not in self.broker.topics:
                runtime.topic_deleted(HandlerContext(now_ms, BrokerTask(f"there is no {topic}")))
            for shard in runtime.shards:
                log = self.broker.log(topic, shard.partition)
                if log is not None and log.log_end_offset > log.log_start_offset:
                    self.load(shard.partition, now_ms, topic)

    @property
    def config(self) -> BrokerConfig:
        """The current configuration, with the dynamic changes of clients."""
        return self.broker.config

    def listening_at(self, host: str, port: int, listener: int = 0) -> None:
        """Set the address at which the first broker listens for ``listener`` (index from 0); it is advertised unless
        advertised.listeners says otherwise.
        """
        self.broker.config = self.config.listening_at(host, port, listener)
        self.coordinator.config = dataclasses.replace(self.coordinator.config, advertised=self.config.advertised)

    def use_worker(self, submit: SubmitWork | None) -> None:
        """Run long work with ``submit`` from now on; None: inline."""
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
        """The effects of ``request``; ``None`` stands for an ApiVersions request of an unknown version."""
        if self._absent or self._unreachable or self._stale or self.controller_node.is_away:
            broker_id = self.broker.cluster.id_of(call)
            if broker_id in self._absent or broker_id in self._unreachable:
                ctx = HandlerContext(now_ms, call)
                self.controller.ask_absent(ctx, call, request)
                return ctx.effects
            if call.api.key in FORWARDED and self.controller_node.cannot_hear(broker_id):
                self.controller_node.forward(call, request, now_ms)
                return []
            if broker_id in self._stale and call.api.key in ANSWERED_FROM_STALE_METADATA:
                with self._stale[broker_id].in_force():
                    return self.controller.withhold(self._handle(call, request, now_ms))
            return self.controller.withhold(self._handle(call, request, now_ms))
        return self._handle(call, request, now_ms)

    def _handle(self, call: Call, request: Any, now_ms: int) -> list[Effect]:
        key = call.api.key
        if key in self._coordinated:
            effects = self.coordinator.handle(call, request, now_ms)
            if key == _FIND_COORDINATOR:
                # The topic may have been deleted: as in Kafka this request creates it first, and the next one finds the
                # coordinator.
                self._create_coordinators_topic(_TOPIC_OF_KEYS.get(request.key_type), now_ms)
            if len(effects) == 1 and type(effects[0]) is Reply and not self._open_shards:
                return effects  # as for most requests
            return self._execute_appends(effects, now_ms)
        if key in self._transactional and (key != _INIT_PRODUCER_ID or request.transactional_id is not None):
            return self._execute_appends(self.transactions.handle(call, request, now_ms), now_ms)
        if key == ApiKey.WRITE_TXN_MARKERS:
            ctx = HandlerContext(now_ms, call)
            self.markers.handle(ctx, call, request)
            return self._execute_appends(ctx.effects, now_ms)
        if key == ApiKey.API_VERSIONS:
            ctx = HandlerContext(now_ms, call)
            api_versions(ctx, call, request, self.features)
            return ctx.effects
        if key in CONTROLLER_HANDLERS:
            ctx = HandlerContext(now_ms, call)
            CONTROLLER_HANDLERS[key](self.controller, self.broker.topics, ctx, call, request)
            return self._execute_appends(ctx.effects, now_ms)
        if key == ApiKey.UPDATE_FEATURES:
            ctx = HandlerContext(now_ms, call)
            self.features.update(ctx, call, request)
            return ctx.effects
        return self._execute_appends(topic_and_log_dispatch.handle(self.broker, call, request, now_ms), now_ms)

    def expire(self, now_ms: int) -> list[Effect]:
        """Fire the timers that are due at ``now_ms``, and continue loading coordinators."""
        effects, self._said_at_start = self._said_at_start, []
        effects += self._execute_appends(self.coordinator.expire(now_ms), now_ms)
        effects += self._execute_appends(self.transactions.expire(now_ms), now_ms)
        effects += self._execute_appends(self.broker.expire(now_ms), now_ms)
        if self.controller.is_eventful:
            effects += self._execute_appends(self.controller.timers.fire_due(now_ms), now_ms)
        if self.loader:
            ctx = HandlerContext(now_ms, BrokerTask("a coordinator starts"))
            self.loader.read_next_piece(ctx)
            effects += self._execute_appends(ctx.effects, now_ms)
        return self.controller.withhold(effects)

    def flush(self, now_ms: int) -> list[Effect]:
        """Append the records of several requests, as one batch per partition; a server calls it at the end of each round."""
        effects: list[Effect] = []
        for runtime in self.runtimes.values():
            while runtime.open_shards:  # the effects of an append may write again
                ctx = HandlerContext(now_ms, BrokerTask("a batch is complete"))
                runtime.flush(ctx)
                effects += self._submit_appends(ctx.effects, now_ms)
        return self.controller.withhold(effects)

    def batch_rounds(self, *, batches: bool) -> None:
        """Let records of requests wait for ``flush``; if not ``batches``, each request is flushed at once."""
        self._batches_rounds = batches

    def next_deadline(self) -> int | None:
        """When the next timer is due (ms), or None; at once while a coordinator is loading."""
        if self.loader or self._said_at_start:
            return 0
        return _earliest(timers.next_deadline() for timers in self._timers)

    def deadline_lower_bound(self) -> int | None:
        """A lower bound of ``next_deadline`` (ms) that costs less; None if there is no timer."""
        if self.loader or self._said_at_start:
            return 0
        return _earliest(timers.deadline_lower_bound() for timers in self._timers)

    def deadlines(self) -> list[Deadline]:
        """All pending timers, earliest first."""
        pending = (deadline for timers in self._timers for deadline in timers.pending())
        return sorted(pending, key=lambda deadline: deadline.at_ms)

    def create_topic(self, name: str, partitions: int, now_ms: int, configs: Mapping[str, str] = NO_CONFIGS) -> None:
        """Create a topic with ``configs``, not for a client. Raises ValueError if Kafka would refuse it."""
        most = MOST_RECORDS_PER_REQUEST - 1 - len(configs)
        if partitions > most:
            raise ValueError(f"Kafka creates no topic of {partitions} partitions at once, but {most} at most")
        try:
            self.controller.require_controller(f"nobody creates {name}")
            create_topic(self.broker, now_ms, name, partitions, configs)
        except ApiError as refusal:
            raise ValueError(refusal.message or refusal.code.text) from refusal

    def run_admin_action(self, action: str, act: Callable[[HandlerContext], None], now_ms: int) -> list[Effect]:
        """The effects of ``act``, an administrative action on ``coordinator`` or ``transactions``.

        ``action`` is its description in the trace. See coordinator/forced_actions.py.
        """
        ctx = HandlerContext(now_ms, AdminAction(action))
        act(ctx)
        return self._execute_now(ctx.effects, now_ms)

    def change_broker(
        self,
        action: str,
        act: Callable[[ClusterController, HandlerContext], None],
        now_ms: int,
        *,
        even_alone: bool = False,
    ) -> list[Effect]:
        """The effects of ``act``, an action on a broker, such as ``controller.kill``.

        ``action`` is its description in the trace. Raises ValueError for a single broker, unless the action is possible
        ``even_alone``; and the errors of ``act``.
        """
        if len(self.broker.cluster) == 1 and not even_alone:
            raise ValueError(
                "a lone broker has no others that go on without it: a cluster of several has brokers=3, say"
            )
        ctx = HandlerContext(now_ms, AdminAction(action))
        act(self.controller, ctx)
        self.controller_node.take_forwarded(ctx)
        return self.controller.withhold(self._execute_now(ctx.effects, now_ms))

    def change_controller(
        self, action: str, act: Callable[[ControllerNode, HandlerContext], None], now_ms: int
    ) -> list[Effect]:
        """The effects of ``act``, an action on the controller, such as ``ControllerNode.kill``; see ``change_broker``."""
        return self.change_broker(action, lambda _, ctx: act(self.controller_node, ctx), now_ms)

    def move_leader(self, topic: str, partition: int, broker_id: int, now_ms: int) -> list[Effect]:
        """Make another broker the leader of a partition, in the next leader epoch.

        With a partition of ``__consumer_offsets`` its groups move, too, and with one of ``__transaction_state`` its
        transactional ids: requests that wait at the old coordinator are answered with NOT_COORDINATOR, and the new one serves
        as soon as it has loaded the log. A broker that is not a replica replaces the old leader as one. Nothing happens if it
        leads already. Raises KeyError for an unknown partition, ValueError for an unknown broker.
        """
        found = self.broker.topics.get(topic)
        if found is None or not 0 <= partition < len(found.partitions):
            raise KeyError(f"there is no partition {partition} of {topic}")
        if broker_id not in self.broker.cluster.ids:
            ids = ", ".join(map(str, self.broker.cluster.ids))
            raise ValueError(f"there is no broker {broker_id}: the ids are {ids}")
        state = found.metadata.partitions[partition]
        if state.leader == broker_id:
            return []
        self.controller.require_controller(f"nobody decides that broker {broker_id} leads {topic}-{partition}")
        if broker_id in self._absent:
            raise ValueError(f"broker {broker_id} does not run: it cannot lead {topic}-{partition}")
        if not self.controller.is_registered(broker_id):
            raise ValueError(f"broker {broker_id} is not registered: it cannot lead {topic}-{partition}")
        if broker_id in state.replicas and broker_id not in state.isr:
            in_sync = ", ".join(map(str, state.isr)) or "none"
            raise ValueError(f"broker {broker_id} cannot lead {topic}-{partition}, it is behind; in sync: {in_sync}")
        effects = self.resign(partition, now_ms, topic) if self._coordinates(topic, partition) else []
        ctx = HandlerContext(now_ms, AdminAction(f"broker {broker_id} is to lead {topic}-{partition}"))
        self.broker.move_leader(ctx, found, partition, broker_id)
        self._load_partition(ctx, topic, partition)
        return effects + ctx.effects

    def _coordinates(self, topic: str, partition: int) -> bool:
        """Does a coordinator have its records in this partition?"""
        return topic in self.runtimes and partition < len(self.runtimes[topic].shards)

    def _resign_partition(self, ctx: HandlerContext, topic: str, partition: int) -> None:
        """Unload the coordinator of a partition, whose broker has stopped or no longer leads it."""
        if self._coordinates(topic, partition):
            self.runtimes[topic].resign(partition, ctx)

    def _load_partition(self, ctx: HandlerContext, topic: str, partition: int) -> None:
        """Load the coordinator of a partition that has a running leader now, unless it is loaded, or that leader is cut off
        from the controller and has not heard of it."""
        if self._coordinates(topic, partition):
            is_unloaded = self.runtimes[topic].shards[partition].state is ShardState.UNLOADED
            if is_unloaded and self.broker.topics[topic].metadata.leaders[partition] not in self._stale:
                self.load(partition, ctx.now_ms, topic)

    def _go_on(self, ctx: HandlerContext, call: Call, request: Any, then: Then) -> None:
        """Continue a request that was in progress; at a paused broker it starts again when the broker is resumed."""
        broker_id = self.broker.cluster.id_of(call)
        if broker_id in self._absent:
            self.controller.ask_absent(ctx, call, request)
        elif broker_id in self._stale:
            with self._stale[broker_id].in_force():
                then(ctx)
        else:
            then(ctx)

    def _handle_now(self, ctx: HandlerContext, call: Call, request: Any) -> None:
        ctx.effects += self.handle(call, request, ctx.now_ms)

    def resign(self, partition: int, now_ms: int, topic: str = CONSUMER_OFFSETS) -> list[Effect]:
        """Unload the coordinator of a partition of a coordinator ``topic``; waiting requests are answered with an error."""
        ctx = HandlerContext(now_ms, AdminAction(f"partition {partition} of {topic} moves away"))
        self.runtimes[topic].resign(partition, ctx)
        return ctx.effects

    def load(self, partition: int, now_ms: int, topic: str = CONSUMER_OFFSETS) -> None:
        """Load the coordinator of a partition of a coordinator ``topic`` again.

        ``expire`` reads the log, a piece at a time; until then requests are answered with COORDINATOR_LOAD_IN_PROGRESS.

        Raises KeyError if there is no such partition; ValueError if it is loaded, or has pending appends, whose requests would
        never be answered: call ``resign`` first.
        """
        ctx = HandlerContext(now_ms, AdminAction(f"partition {partition} of {topic} comes back"))
        log = self.broker.log(topic, partition)
        if log is None:
            raise KeyError(f"there is no partition {partition} of {topic}")
        runtime = self.runtimes[topic]
        shard = runtime.shards[partition]
        if not shard.is_empty:
            raise ValueError(f"partition {partition} of {topic} is coordinated here: it has to resign first")
        self.loader.begin(runtime.load(partition, ctx), log)

    def compact(self, partition: int, now_ms: int) -> list[Effect]:
        """Compact this partition of ``__consumer_offsets`` now; reads and commits continue meanwhile.

        The event LogCleaned has the result. Raises KeyError if there is no such partition.
        """
        return self.broker.compact(CONSUMER_OFFSETS, partition, now_ms)

    def _execute_appends(self, effects: list[Effect], now_ms: int) -> list[Effect]:
        """Replace the appends among ``effects``, and open batches unless rounds are batched, by the effects of writing them."""
        carried = self._submit_appends(effects, now_ms) if effects else []
        if self._open_shards and not self._batches_rounds:
            carried += self.flush(now_ms)
        return carried

    def _execute_now(self, effects: list[Effect], now_ms: int) -> list[Effect]:
        """As ``_execute_appends``, outside of rounds, after which no ``flush`` is called."""
        return self._execute_appends(effects, now_ms) + self.flush(now_ms)

    def _submit_appends(self, effects: list[Effect], now_ms: int) -> list[Effect]:
        for effect in effects:
            if type(effect) is Append:
                break
        else:
            return effects  # as for a refused request
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

    def _max_batch_bytes(self, topic: str, partition: int) -> int:
        log = self.broker.log(topic, partition)
        return DEFAULT_MAX_BATCH_BYTES if log is None else log.settings.max_message_bytes

    def _consumer_group_config(self, group_id: str) -> ConsumerGroupConfig:
        """The configuration of a consumer group: its own, and for the rest the broker's."""
        config = self.config
        own = config.dynamic.get(ConfigResource(ResourceType.GROUP, group_id))
        if own is not None:
            return _config_of_group(config, own)
        if self._default_group_config[0] is not config:  # asked with every heartbeat, and rarely changed
            self._default_group_config = config, _config_of_group(config, NO_CONFIGS)
        return self._default_group_config[1]

    def _new_producer_id(self, partition: int) -> int:
        """A producer id of the broker that leads this partition of ``__transaction_state``."""
        topic = self.broker.topics.get(TRANSACTION_STATE)
        leader = self.broker.cluster.ids[0] if topic is None else topic.metadata.leaders[partition]
        try:
            return self.broker.new_producer_id(self.broker.cluster.ids.index(leader))
        except BatchError as problem:
            raise ApiError(problem.error, problem.reason) from problem

    def _transaction_epoch(self, partition: int) -> int:
        topic = self.broker.topics.get(TRANSACTION_STATE)
        return 0 if topic is None else topic.metadata.partitions[partition].leader_epoch

    def _topics_deleted(self, ctx: HandlerContext, topics: Iterable[Topic]) -> None:
        deleted = {topic.name: topic.topic_id for topic in topics}
        self.coordinator.topics_deleted(ctx, deleted)
        if TRANSACTION_STATE in deleted:
            self.transactions.runtime.topic_deleted(ctx)

    def _create_coordinators_topic(self, topic: str | None, now_ms: int) -> None:
        """Create a coordinator topic unless it exists; not if its replication factor needs more brokers than there are."""
        if topic is not None and topic not in self.broker.topics:
            create_automatically(self.broker, now_ms, [topic])


class TopicsOfBroker:
    """The coordinator's view of the topics of ``broker``: see TopicsView."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._topics = broker.topics

    @property
    def version(self) -> int:
        """See TopicsView."""
        return self._topics.changes.value

    @property
    def version_of_newest(self) -> int:
        """See TopicsView."""
        return self._topics.changes.of_newest_topic

    def names(self) -> Iterable[str]:
        """See TopicsView."""
        return self._topics.names()

    def partition_count(self, name: str) -> int | None:
        """See TopicsView."""
        return self._topics.partition_count(name)

    def partition_racks(self, name: str) -> Sequence[Sequence[str]]:
        """See TopicsView."""
        topic = self._topics.get(name)
        if topic is None:
            raise KeyError(name)
        racks = self._broker.cluster.racks(self._broker.config)
        return [
            [rack for one in replicas if (rack := racks.get(one)) is not None] for replicas in topic.metadata.replicas
        ]

    def topic_id(self, name: str) -> uuid.UUID | None:
        """See TopicsView."""
        return self._topics.topic_id(name)

    def topic_name(self, topic_id: uuid.UUID) -> str | None:
        """See TopicsView."""
        return self._topics.topic_name(topic_id)


class _Brokers:
    """The coordinator's view of the brokers."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def ids(self) -> Sequence[int]:
        return self._broker.cluster.ids

    def leaders(self, topic: str) -> tuple[int, ...]:
        found = self._broker.topics.get(topic)
        return () if found is None else found.metadata.leaders

    def address(self, broker_id: int, listener: int = 0) -> Address | None:
        found = self._broker.cluster.named(self._broker.config, [broker_id], listener)
        return Address(found[0].id, found[0].host, found[0].port) if found else None


def _earliest(moments: Iterable[int | None]) -> int | None:
    return min((moment for moment in moments if moment is not None), default=None)


def _config_of_group(config: BrokerConfig, own: Mapping[str, str]) -> ConsumerGroupConfig:
    return ConsumerGroupConfig(
        int(own.get("consumer.session.timeout.ms", config.group_consumer_session_timeout_ms)),
        int(own.get("consumer.heartbeat.interval.ms", config.group_consumer_heartbeat_interval_ms)),
        int(own.get("consumer.assignment.interval.ms", config.group_consumer_assignment_interval_ms)),
    )

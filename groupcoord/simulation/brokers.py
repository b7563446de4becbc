"""The simulated brokers: groupcoord's own cluster without sockets, the plan's actions on it, and the observer interface.

Loading a coordinator's log takes as long as the plan says; meanwhile the rest of the cluster keeps running.
"""

from collections import deque
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from groupcoord.broker.partition_log import PartitionLog
from groupcoord.client.completed_fetch import ConsumerRecord, decode_records
from groupcoord.cluster.assemble import assemble
from groupcoord.cluster.controller import ClusterController
from groupcoord.cluster.coordinator_loader import CoordinatorLoader
from groupcoord.cluster.coordinator_partition_writer import HOLD, STORE, AppendDecision
from groupcoord.config.broker_config import BrokerConfig, load
from groupcoord.coordinator.classic.classic_group import ClassicGroup
from groupcoord.coordinator.classic.classic_group_state import GroupState
from groupcoord.coordinator.consumer.consumer_group import ConsumerGroup
from groupcoord.coordinator.consumer.consumer_group_members_and_epochs import ConsumerGroupState
from groupcoord.coordinator.group_coordinator_shard import RuntimeShard
from groupcoord.coordinator.runtime.shard import ShardState
from groupcoord.coordinator.runtime.shard_loader import ShardLoader
from groupcoord.coordinator.transaction.transaction_coordinator_shard import TransactionShard
from groupcoord.core.effect_collector import HandlerContext
from groupcoord.core.effects import NO_CONNECTION, Append, Call, CloseConnection, Effect, EmitEvent, NoReply, Reply
from groupcoord.core.events import Event
from groupcoord.protocol.apis import API_BY_REQUEST, ApiKey
from groupcoord.protocol.apis.create_partitions import CreatePartitionsTopic
from groupcoord.protocol.apis.create_topics import CreatableTopic
from groupcoord.protocol.apis.delete_topics import DeleteTopicState
from groupcoord.protocol.apis.fetch import FetchPartition, FetchRequest, FetchTopic
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages import CreatePartitionsRequest, CreateTopicsRequest, DeleteTopicsRequest
from groupcoord.simulation.actions import ActionKind
from groupcoord.simulation.broker_failures import BrokerFailures
from groupcoord.simulation.consumer_application import GROUP
from groupcoord.simulation.event_queue import EventQueue
from groupcoord.simulation.member_process import UnsafeSkipError
from groupcoord.simulation.network import SimulatedConnection, SimulatedNetwork
from groupcoord.simulation.plan import OFFSETS_TOPIC, OUTPUT_TOPIC, TRANSACTION_STATE, SimulationPlan
from groupcoord.simulation.prng import Prng


class SlowLoader(CoordinatorLoader):
    """Loads coordinator logs one after the other, each in ``loading_ms`` of simulated time."""

    def __init__(self, event_queue: EventQueue) -> None:
        super().__init__()
        self._event_queue = event_queue
        self.loading_ms = 0
        self._due: deque[tuple[int, str]] = deque()

    def __bool__(self) -> bool:
        """Is a log waiting to be loaded now?"""
        return bool(self._due) and self._due[0][0] <= self._event_queue.now_ms

    @property
    def due_ms(self) -> int | None:
        """When the current load will be complete (ms); None if there is none."""
        return self._due[0][0] if self._due else None

    @property
    def next_topic(self) -> str:
        """The topic of the log that is loaded first."""
        return self._due[0][1]

    def begin(self, loading: ShardLoader[Any], log: PartitionLog) -> None:
        """See CoordinatorLoader."""
        super().begin(loading, log)
        earliest_ms = self._due[-1][0] if self._due else 0
        at_ms = max(earliest_ms, self._event_queue.now_ms + self.loading_ms)
        self._due.append((at_ms, loading.shard.topic))

    def read_next_piece(self, ctx: HandlerContext) -> None:
        """Read all of the log."""
        self._due.popleft()
        left = len(self._waiting) - 1
        while len(self._waiting) > left:
            super().read_next_piece(ctx)


_BROKER_RANK = 1
_HOST = "/127.0.0.1"
_LAST_VERSION_WITH_NAMES = {ApiKey.OFFSET_COMMIT: 9, ApiKey.OFFSET_FETCH: 9, ApiKey.PRODUCE: 12, ApiKey.FETCH: 12}
"""The last version of each API with topic names; later ones have topic ids."""
_HEARTBEATS = frozenset({ApiKey.HEARTBEAT, ApiKey.CONSUMER_GROUP_HEARTBEAT})
_ADMIN_TIMEOUT_MS = 30_000
_READ_COMMITTED = 1
_LOADING_MS = 200
"""How long the new leader loads the log of a coordinator whose broker failed."""
_ALL_BYTES = 1 << 30


class BrokerObserver:
    """Is called at everything that the brokers do. A subclass may override any method, and raise InvariantViolation."""

    def request_received(self, call: Call, request: Any) -> None:
        """A request is about to be handled."""

    def response_sent(self, call: Call, response: Any) -> None:
        """The response to a request is sent."""

    def event_emitted(self, event: Event) -> None:
        """The coordinator has emitted an event."""

    def append_decided(self, decision: AppendDecision) -> None:
        """It is decided whether an append is stored, held or fails."""

    def coordinator_unloading(self) -> None:
        """The group coordinator is about to unload its state."""

    def coordinator_loaded(self) -> None:
        """The group coordinator has loaded its log."""

    def transactions_unloading(self) -> None:
        """The transaction coordinator is about to unload its state."""

    def step_done(self) -> None:
        """A request, timer or append is done, other than a heartbeat of an idle member."""

    def heartbeat_done(self) -> None:
        """A heartbeat of an idle member was answered without error."""


class SimulatedBrokers:
    """One or several brokers; one of them has the coordinator. All times are simulated milliseconds."""

    def __init__(
        self,
        event_queue: EventQueue,
        plan: SimulationPlan,
        random: Prng,
        *,
        observer: BrokerObserver,
        on_event: Callable[[Event], None] | None,
        client_id_of: Callable[[SimulatedConnection], str],
    ) -> None:
        member, count = plan.members[0], plan.brokers
        session_ms, heartbeat_ms = member.session_timeout_ms, member.heartbeat_interval_ms
        config = _config(count, plan.migration_policy, session_ms, heartbeat_ms, replicated=plan.replicated)
        self.cluster = assemble(config, random=random, now_ms=0, topics=plan.topics.items(), brokers=count).core
        self.network: SimulatedNetwork
        self.ids = tuple(self.cluster.broker.cluster.ids)
        """The ids of the brokers."""
        self.numbers = {broker_id: number for number, broker_id in enumerate(self.ids)}
        self.shard: RuntimeShard = self.cluster.coordinator.shards[0]
        """The state of the only partition of ``__consumer_offsets``."""
        self.transaction_shard: TransactionShard = self.cluster.transactions.shards[0]
        """The state of the only partition of ``__transaction_state``."""
        self.failures = BrokerFailures(self.cluster.controller, self._change, self.ids, self.cluster.broker.topics)
        """Lets brokers fail, and come back."""
        self._event_queue = event_queue
        self._observer = observer
        self._on_event = on_event
        self._client_id_of = client_id_of
        self._connections: dict[
            tuple[int, int], SimulatedConnection
        ] = {}  # the connections of requests without a response yet
        self._loader = self.cluster.loader = SlowLoader(event_queue)
        self._loader.loading_ms = _LOADING_MS if plan.replicated else 0
        self._disturbances: dict[str, list[tuple[AppendDecision, int, ErrorCode]]] = {
            OFFSETS_TOPIC: [],
            TRANSACTION_STATE: [],
        }
        self.cluster.appends.gate = self._gate

    # State.

    @property
    def has_coordinator(self) -> bool:
        """Is the coordinator loaded?"""
        return self.shard.state is ShardState.ACTIVE

    @property
    def group(self) -> ClassicGroup | None:
        """The coordinator's group, if it is a classic one."""
        return self.shard.machine.classic_group(GROUP)

    @property
    def consumer_group(self) -> ConsumerGroup | None:
        """The coordinator's group, if it is a consumer group (KIP-848)."""
        found = self.shard.machine.groups.get(GROUP)
        return found if isinstance(found, ConsumerGroup) else None

    @property
    def is_settled(self) -> bool:
        """Is the group Stable, with no append in progress, so that the next heartbeat changes nothing?"""
        if not self.shard.is_idle:
            return False
        group, modern = self.group, self.consumer_group
        if group is not None:
            return group.state is GroupState.STABLE
        if modern is None or modern.has_metadata_expired(self._event_queue.now_ms):
            return False
        return modern.state == ConsumerGroupState.STABLE

    def is_current(self, member_id: str, generation: int) -> bool:
        """Is that a member of the group, with the current generation or epoch?"""
        group, modern = self.group, self.consumer_group
        if group is not None:
            return member_id in group.members and generation == group.generation_id
        found = None if modern is None else modern.members.get(member_id)
        return found is not None and found.member_epoch == generation

    @property
    def partition_counts(self) -> Mapping[str, int]:
        """The number of partitions of each existing topic."""
        topics = self.cluster.broker.topics
        return {name: topics.partition_count(name) or 0 for name in topics.names()}

    @property
    def append_disturbed(self) -> bool:
        """Will the next append be held or fail?"""
        return any(self._disturbances.values())

    def next_ms(self) -> int | None:
        """The next deadline of the brokers (ms). Loading takes as long as the plan says."""
        return _earliest(self.cluster.next_deadline(), self._loader.due_ms)

    def coordinates(self, broker: int) -> bool:
        """Is the group coordinator on that broker (numbered from 0)?"""
        return self.ids[broker] == self.leader

    def leads(self, broker: int, topic: str) -> bool:
        """Does that broker (numbered from 0) lead the first partition of ``topic``?"""
        found = self.cluster.broker.topics.get(topic)
        return found is not None and found.metadata.leaders[0] == self.ids[broker]

    @property
    def leader(self) -> int:
        """The id of the broker with the group coordinator."""
        return self._leader(OFFSETS_TOPIC, 0)

    def _leader(self, topic: str, partition: int) -> int:
        found = self.cluster.broker.topics.get(topic)
        assert found is not None
        return found.metadata.leaders[partition]

    # Requests and timers.

    def handle(self, connection: SimulatedConnection, number: int, request: Any) -> None:
        """Handle a request of a member."""
        api = API_BY_REQUEST[type(request)]
        key = api.key
        version = _LAST_VERSION_WITH_NAMES.get(key, api.max_version)
        client_id = self._client_id_of(connection)
        call = Call(connection.number, number, api, version, client_id, _HOST, connection.broker)
        self._connections[connection.number, number] = connection
        self._observer.request_received(call, request)
        effects = self.cluster.handle(call, request, self._event_queue.now_ms)
        if key in _HEARTBEATS and connection.routine and _is_plain_heartbeat_reply(effects):
            self._execute_one(effects[0])
            self._observer.heartbeat_done()
        else:
            self._execute(effects)

    def heartbeat_in_advance(self, connection: SimulatedConnection, number: int, request: Any, at_ms: int) -> Any:
        """The response to a heartbeat that arrives at ``at_ms``. Raises UnsafeSkipError if there is any other effect."""
        now_ms, self._event_queue.now_ms = self._event_queue.now_ms, at_ms
        api = API_BY_REQUEST[type(request)]
        client_id = self._client_id_of(connection)
        call = Call(connection.number, number, api, api.max_version, client_id, _HOST, connection.broker)
        self._observer.request_received(call, request)
        effects = self.cluster.handle(call, request, at_ms)
        if not _is_plain_heartbeat_reply(effects):
            raise UnsafeSkipError
        response = effects[0].response  # type: ignore[union-attr]
        self._observer.response_sent(call, response)
        self._event_queue.now_ms = now_ms
        return response

    def deadline_lower_bound(self) -> int | None:
        """A lower bound of ``next_ms`` that is cheaper to compute."""
        return _earliest(self.cluster.deadline_lower_bound(), self._loader.due_ms)

    def relevant_deadline(self, renewed_by: Mapping[str, int], until_ms: int) -> int:
        """The coordinator's first deadline that can affect a member (ms), at most ``until_ms``.

        A session timeout cannot if the member renews its session earlier, at the time in ``renewed_by``. Nor can the expiry of
        old offsets, unless its append is disturbed.
        """
        nearest_ms = min(until_ms, self.cluster.transactions.timers.next_deadline() or until_ms)
        if self.cluster.controller.is_eventful:
            nearest_ms = min(nearest_ms, self.cluster.controller.timers.next_deadline() or nearest_ms)
        for due in self.cluster.coordinator.timers.pending():
            at_ms, key = due.at_ms, due.key
            if at_ms >= nearest_ms:
                break
            harmless = renewed_by.get(key.subject, at_ms) < at_ms if key.kind == "session" else key.kind == "retention"
            if not harmless or (key.kind == "retention" and self.append_disturbed):
                nearest_ms = at_ms
        return nearest_ms

    def expire(self) -> None:
        """Fire the expired timers, and complete a load that is due."""
        loads = bool(self._loader) and self._loader.next_topic == OFFSETS_TOPIC
        effects = self.cluster.expire(self._event_queue.now_ms)
        for effect in effects:
            self._execute_one(effect)
        if loads:
            self._observer.coordinator_loaded()
        self._observer.step_done()

    # Actions of the plan.

    def reload(self, topic: str, away_ms: int, loading_ms: int) -> None:
        """The coordinator of ``topic`` resigns, and loads again ``away_ms`` later; does nothing without a coordinator."""
        if not self._unloads(topic):
            return
        self._execute(self.cluster.resign(0, self._event_queue.now_ms, topic))

        def load() -> None:
            self._loader.loading_ms = loading_ms
            self.cluster.load(0, self._event_queue.now_ms, topic)

        self._event_queue.schedule(self._event_queue.now_ms + away_ms, _BROKER_RANK, load)

    def move(self, topic: str, loading_ms: int, choice: int) -> None:
        """Another broker becomes the coordinator of ``topic``; does nothing without a coordinator."""
        if self._unloads(topic):
            self._loader.loading_ms = loading_ms
            self._move(topic, 0, choice)

    def move_output(self, partition: int, choice: int) -> None:
        """Another broker becomes the leader of a partition of ``OUTPUT_TOPIC``."""
        self._move(OUTPUT_TOPIC, partition % self.partition_counts[OUTPUT_TOPIC], choice)

    def _change(self, action: str, act: Callable[[ClusterController, HandlerContext], None]) -> None:
        self._execute(self.cluster.change_broker(action, act, self._event_queue.now_ms))

    def _move(self, topic: str, partition: int, choice: int) -> None:
        leader = self._leader(topic, partition)
        others = [broker for broker in self.ids if broker != leader]
        target = others[choice % len(others)]
        self._execute(self.cluster.move_leader(topic, partition, target, self._event_queue.now_ms))

    def _unloads(self, topic: str) -> bool:
        """Notify the observer that the coordinator unloads. Returns False if there is none."""
        if topic == OFFSETS_TOPIC:
            if self.has_coordinator:
                self._observer.coordinator_unloading()
            return self.has_coordinator
        is_there = topic in self.cluster.broker.topics and self.transaction_shard.state is ShardState.ACTIVE
        if is_there:
            self._observer.transactions_unloading()
        return is_there

    def create_topic(self, name: str, partitions: int) -> None:
        """Create a topic."""
        topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
        self._administer(CreateTopicsRequest(topics=(topic,), timeout_ms=_ADMIN_TIMEOUT_MS))

    def grow_topic(self, name: str) -> None:
        """Add a partition to the topic, if it exists."""
        count = self.partition_counts.get(name)
        if count is not None:
            wanted = CreatePartitionsTopic(name=name, count=count + 1, assignments=None)
            self._administer(
                CreatePartitionsRequest(topics=(wanted,), timeout_ms=_ADMIN_TIMEOUT_MS, validate_only=False)
            )

    def delete_topic(self, name: str) -> None:
        """Delete the topic, if it exists."""
        gone = DeleteTopicState(name=name, topic_id=None)
        self._administer(DeleteTopicsRequest(topics=(gone,), topic_names=(name,), timeout_ms=_ADMIN_TIMEOUT_MS))

    def _administer(self, request: Any) -> None:
        self._execute(self._asked(request, 0))

    def _asked(self, request: Any, broker: int) -> list[Effect]:
        api = API_BY_REQUEST[type(request)]
        version = _LAST_VERSION_WITH_NAMES.get(api.key, api.max_version)
        call = Call(NO_CONNECTION, 0, api, version, "admin", _HOST, broker)
        return self.cluster.handle(call, request, self._event_queue.now_ms)

    def read_committed(self, topic: str, partition: int) -> list[ConsumerRecord]:
        """All records of a partition that a read_committed consumer gets."""
        wanted = FetchPartition(partition=partition, fetch_offset=0, partition_max_bytes=_ALL_BYTES)
        topics = (FetchTopic(topic=topic, partitions=(wanted,)),)
        request = FetchRequest(max_wait_ms=0, min_bytes=0, isolation_level=_READ_COMMITTED, topics=topics)
        (reply,) = self._asked(request, self.numbers[self._leader(topic, partition)])
        assert isinstance(reply, Reply)
        (found,) = reply.response.responses[0].partitions
        data = bytes(found.records or b"")
        return decode_records((topic, partition), data, 0, found.aborted_transactions or ()).records

    def disturb_next_append(self, topic: str, decision: AppendDecision, for_ms: int, error: ErrorCode) -> None:
        """Fail the next append to ``topic``, or HOLD it for ``for_ms`` and then store it or fail it with ``error``."""
        self._disturbances[topic].append((decision, for_ms, error))

    def heal(self) -> None:
        """End all faults: appends are stored, all brokers run and replicate."""
        for disturbances in self._disturbances.values():
            disturbances.clear()
        if self.cluster.controller.is_eventful:
            for broker_id in self.ids:
                self.failures.revive(broker_id)
                for kind in (ActionKind.CUT_BROKERS, ActionKind.CUT_CONTROLLER, ActionKind.PAUSE_REPLICATION):
                    self.failures.mend(kind, broker_id)

    def _gate(self, append: Append, now_ms: int, /) -> AppendDecision:
        disturbances = self._disturbances[append.topic]
        decision, for_ms, error = disturbances.pop(0) if disturbances else (STORE, 0, ErrorCode.NONE)
        if decision == HOLD:
            self._event_queue.schedule(now_ms + for_ms, _BROKER_RANK, lambda: self._release(append, error))
        if append.topic == OFFSETS_TOPIC:
            self._observer.append_decided(decision)
        return decision

    def _release(self, append: Append, error: ErrorCode) -> None:
        if append.append_id not in {held.append_id for held in self.cluster.appends.held()}:
            return  # an earlier append has failed, or the coordinator has moved
        if error:
            self._execute(self.cluster.appends.fail(append, error, self._event_queue.now_ms))
        else:
            self._execute(self.cluster.appends.release(append, self._event_queue.now_ms))

    # Effects.

    def _execute(self, effects: list[Effect]) -> None:
        for effect in effects:
            self._execute_one(effect)
        self._observer.step_done()

    def _execute_one(self, effect: Effect) -> None:
        if isinstance(effect, EmitEvent):
            if self._on_event is not None:
                self._on_event(effect.event)
            self._observer.event_emitted(effect.event)
        elif isinstance(effect, Reply):
            self._reply(effect.call, effect.response)
        else:
            assert isinstance(effect, NoReply | CloseConnection)
            connection = self._connections.pop((effect.call.connection_id, effect.call.correlation_id))
            if isinstance(effect, CloseConnection):
                self.network.close(connection)
            else:
                self.network.turn_to_next(connection)

    def _reply(self, call: Call, response: Any) -> None:
        if call.connection_id == NO_CONNECTION:
            return  # it is answered already
        self._observer.response_sent(call, response)
        connection = self._connections.pop((call.connection_id, call.correlation_id))
        self.network.respond(connection, call.correlation_id, response)


def _earliest(one_ms: int | None, other_ms: int | None) -> int | None:
    return one_ms if other_ms is None else other_ms if one_ms is None else min(one_ms, other_ms)


def _is_plain_heartbeat_reply(effects: list[Effect]) -> bool:
    """Is the only effect a response without error?"""
    return len(effects) == 1 and type(effects[0]) is Reply and not effects[0].response.error_code


_REPLICATED = {"min.insync.replicas": 2, "transaction.state.log.min.isr": 2, "replica.lag.time.max.ms": 10_000}


@lru_cache(maxsize=64)
def _config(
    brokers: int, policy: str, session_timeout_ms: int, heartbeat_interval_ms: int, *, replicated: bool
) -> BrokerConfig:
    properties = {
        "offsets.topic.num.partitions": 1,
        "transaction.state.log.num.partitions": 1,
        "group.consumer.migration.policy": policy,
        "group.consumer.min.session.timeout.ms": 1_000,
        "group.consumer.session.timeout.ms": session_timeout_ms,
        "group.consumer.min.heartbeat.interval.ms": 1_000,
        "group.consumer.heartbeat.interval.ms": heartbeat_interval_ms,
        **(_REPLICATED | {"default.replication.factor": brokers} if replicated else {}),
    }
    return load([f"{name}={value}" for name, value in properties.items()], brokers=brokers)

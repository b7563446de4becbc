"""The brokers of a simulated world: groupcoord's own cluster, the actions of the plan on it, and its observer."""

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Protocol

from groupcoord.cluster.append_gate import HOLD, STORE, AppendDecision
from groupcoord.cluster.assemble import assemble
from groupcoord.config.broker_config import BrokerConfig, load
from groupcoord.coordinator.classic.group import ClassicGroup
from groupcoord.coordinator.classic.states import GroupState
from groupcoord.coordinator.group_shard import GroupShard
from groupcoord.coordinator.runtime.shard import ShardState
from groupcoord.core.effects import NO_CONNECTION, Append, Call, Effect, EmitEvent, Reply
from groupcoord.core.events import Event
from groupcoord.protocol.apis import API_BY_REQUEST, APIS, ApiKey
from groupcoord.protocol.errors import ErrorCode
from groupcoord.simulation.application import GROUP
from groupcoord.simulation.event_queue import EventQueue
from groupcoord.simulation.heartbeat_skipping import UnsafeSkipError
from groupcoord.simulation.network import SimulatedConnection, SimulatedNetwork
from groupcoord.simulation.prng import Prng

OFFSETS_TOPIC = "__consumer_offsets"
_BROKER_RANK = 1
_HOST = "/127.0.0.1"
_LAST_VERSION_WITH_NAMES = {ApiKey.OFFSET_COMMIT: 9, ApiKey.OFFSET_FETCH: 9}
"""Later versions have topic ids instead of names."""
_HEARTBEAT = APIS[ApiKey.HEARTBEAT]


class BrokerObserver(Protocol):
    """Sees everything that the brokers do. Any method may raise InvariantViolation."""

    def request_received(self, call: Call, request: Any) -> None:
        """A request is about to be handled."""

    def response_sent(self, call: Call, response: Any) -> None:
        """A request is answered."""

    def event_emitted(self, event: Event) -> None:
        """The coordinator has emitted an event."""

    def append_decided(self, decision: AppendDecision) -> None:
        """An append is stored, held or failed."""

    def coordinator_unloading(self) -> None:
        """The coordinator is about to lose its state."""

    def coordinator_loaded(self) -> None:
        """The coordinator has read its log."""

    def step_done(self, *, routine: bool) -> None:
        """A request, timer or append is done; ``routine``: a heartbeat of a member at rest, answered with no error."""


class SimulatedBrokers:
    """One or several brokers; one of them has the coordinator. All times are simulated milliseconds."""

    def __init__(
        self,
        event_queue: EventQueue,
        topics: Mapping[str, int],
        count: int,
        random: Prng,
        *,
        observer: BrokerObserver,
        on_event: Callable[[Event], None] | None,
        client_id_of: Callable[[SimulatedConnection], str],
    ) -> None:
        self.cluster = assemble(_config(count), random=random, now_ms=0, topics=topics.items(), brokers=count).core
        self.network: SimulatedNetwork
        self.ids = tuple(self.cluster.broker.cluster.ids)
        """The ids of the brokers."""
        self.numbers = {broker_id: number for number, broker_id in enumerate(self.ids)}
        self.shard: GroupShard = self.cluster.coordinator.shards[0]
        """The state of the only partition of ``__consumer_offsets``."""
        self._event_queue = event_queue
        self._observer = observer
        self._on_event = on_event
        self._client_id_of = client_id_of
        self._connections: dict[tuple[int, int], SimulatedConnection] = {}  # of requests that wait for their response
        self._loaded_at_ms: int | None = None
        self._disturbances: list[tuple[AppendDecision, int, ErrorCode]] = []
        self.cluster.appends.gate = self._gate

    # State.

    @property
    def has_coordinator(self) -> bool:
        """Is the coordinator loaded?"""
        return self.shard.state is ShardState.ACTIVE

    @property
    def group(self) -> ClassicGroup | None:
        """The group, as the coordinator has it."""
        return self.shard.machine.classic_group(GROUP)

    @property
    def is_settled(self) -> bool:
        """Is the group Stable, with no append under way?"""
        group = self.group
        return group is not None and group.state is GroupState.STABLE and self.shard.is_idle

    @property
    def append_disturbed(self) -> bool:
        """Will the next append be held or fail?"""
        return bool(self._disturbances)

    def next_ms(self) -> int | None:
        """The next deadline of the brokers (ms). Loading takes as long as the plan says."""
        return self.cluster.next_deadline() if self._loaded_at_ms is None else self._loaded_at_ms

    def coordinates(self, broker: int) -> bool:
        """Has that broker, counted from 0, the coordinator?"""
        return self.ids[broker] == self.leader

    @property
    def leader(self) -> int:
        """The id of the broker that has the coordinator."""
        topic = self.cluster.broker.topics.get(OFFSETS_TOPIC)
        assert topic is not None
        return topic.leaders[0]

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
        if key == ApiKey.HEARTBEAT and connection.routine and _is_plain_heartbeat_reply(effects):
            self._execute_one(effects[0])
            self._observer.step_done(routine=True)
        else:
            self._execute(effects)

    def heartbeat_in_advance(self, connection: SimulatedConnection, number: int, request: Any, at_ms: int) -> Any:
        """The response to a heartbeat that arrives at ``at_ms``. Raises UnsafeSkipError if there is any other effect."""
        now_ms, self._event_queue.now_ms = self._event_queue.now_ms, at_ms
        call = Call(connection.number, number, _HEARTBEAT, _HEARTBEAT.max_version, "", _HOST, connection.broker)
        self._observer.request_received(call, request)
        effects = self.cluster.handle(call, request, at_ms)
        if not _is_plain_heartbeat_reply(effects):
            raise UnsafeSkipError
        response = effects[0].response  # type: ignore[union-attr]
        self._observer.response_sent(call, response)
        self._event_queue.now_ms = now_ms
        return response

    def deadline_lower_bound(self) -> int | None:
        """Lower bound of ``next_ms``, which costs less."""
        return self.cluster.deadline_lower_bound() if self._loaded_at_ms is None else self._loaded_at_ms

    def relevant_deadline(self, renewed_by: Mapping[str, int], until_ms: int) -> int:
        """The first deadline of the coordinator that can change anything for a member (ms), at most ``until_ms``.

        The end of a session can not if the member renews it before, at the time in ``renewed_by``. Nor can the expiry of old
        offsets, unless its append is disturbed.
        """
        nearest_ms = until_ms
        for due in self.cluster.coordinator.timers.pending():
            at_ms, key = due.at_ms, due.key
            if at_ms >= nearest_ms:
                break
            harmless = renewed_by.get(key.subject, at_ms) < at_ms if key.kind == "session" else key.kind == "retention"
            if not harmless or (key.kind == "retention" and self._disturbances):
                nearest_ms = at_ms
        return nearest_ms

    def expire(self) -> None:
        """Fire the timers that are due, and finish loading if it is due."""
        loads = self._loaded_at_ms is not None
        self._loaded_at_ms = None
        effects = self.cluster.expire(self._event_queue.now_ms)
        for effect in effects:
            self._execute_one(effect)
        if loads:
            self._observer.coordinator_loaded()
        self._observer.step_done(routine=False)

    # Actions of the plan.

    def reload(self, away_ms: int, loading_ms: int) -> None:
        """The coordinator resigns, and loads ``away_ms`` later. Nothing happens if there is no coordinator."""
        if not self.has_coordinator:
            return
        self._observer.coordinator_unloading()
        self._execute(self.cluster.resign(0, self._event_queue.now_ms))

        def load() -> None:
            self.cluster.load(0, self._event_queue.now_ms)
            self._loaded_at_ms = self._event_queue.now_ms + loading_ms

        self._event_queue.schedule(self._event_queue.now_ms + away_ms, _BROKER_RANK, load)

    def move(self, loading_ms: int, choice: int) -> None:
        """Another broker becomes the coordinator. Nothing happens if there is no coordinator."""
        if not self.has_coordinator:
            return
        leader = self.leader
        others = [broker for broker in self.ids if broker != leader]
        self._observer.coordinator_unloading()
        self._loaded_at_ms = self._event_queue.now_ms + loading_ms
        self._execute(
            self.cluster.move_leader(OFFSETS_TOPIC, 0, others[choice % len(others)], self._event_queue.now_ms)
        )

    def disturb_next_append(self, decision: AppendDecision, for_ms: int, error: ErrorCode) -> None:
        """Fail the next append with ``decision``, or HOLD it for ``for_ms``, and then store it or fail it with ``error``."""
        self._disturbances.append((decision, for_ms, error))

    def heal(self) -> None:
        """Store every append from now on."""
        self._disturbances.clear()

    def _gate(self, append: Append, now_ms: int, /) -> AppendDecision:
        decision, for_ms, error = self._disturbances.pop(0) if self._disturbances else (STORE, 0, ErrorCode.NONE)
        if decision == HOLD:
            self._event_queue.schedule(now_ms + for_ms, _BROKER_RANK, lambda: self._release(append, error))
        self._observer.append_decided(decision)
        return decision

    def _release(self, append: Append, error: ErrorCode) -> None:
        if append.append_id not in {held.append_id for held in self.cluster.appends.held()}:
            return  # an earlier one has failed, or the coordinator has moved
        if error:
            self._execute(self.cluster.appends.fail(append, error, self._event_queue.now_ms))
        else:
            self._execute(self.cluster.appends.release(append, self._event_queue.now_ms))

    # Effects.

    def _execute(self, effects: list[Effect]) -> None:
        for effect in effects:
            self._execute_one(effect)
        self._observer.step_done(routine=False)

    def _execute_one(self, effect: Effect) -> None:
        if isinstance(effect, EmitEvent):
            if self._on_event is not None:
                self._on_event(effect.event)
            self._observer.event_emitted(effect.event)
        else:
            assert isinstance(effect, Reply)  # no request of a member is answered by NoReply or CloseConnection
            self._reply(effect.call, effect.response)

    def _reply(self, call: Call, response: Any) -> None:
        if call.connection_id == NO_CONNECTION:
            return  # it is answered already
        self._observer.response_sent(call, response)
        connection = self._connections.pop((call.connection_id, call.correlation_id))
        self.network.respond(connection, call.correlation_id, response)


def _is_plain_heartbeat_reply(effects: list[Effect]) -> bool:
    """Is the only effect a response with no error?"""
    return len(effects) == 1 and type(effects[0]) is Reply and not effects[0].response.error_code


@lru_cache(maxsize=8)
def _config(brokers: int) -> BrokerConfig:
    return load(["offsets.topic.num.partitions=1"], brokers=brokers)

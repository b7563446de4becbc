"""The brokers of a simulated world: groupcoord's own node, what is done to it, and an ear for all that it does."""

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Protocol

from groupcoord.cluster.append_gate import HOLD, STORE, AppendDecision
from groupcoord.cluster.cluster_core import ClusterCore
from groupcoord.config.settings import BrokerConfig, load
from groupcoord.coordinator.availability import Unavailable
from groupcoord.coordinator.classic.group import ClassicGroup
from groupcoord.coordinator.classic.states import GroupState
from groupcoord.coordinator.shard import Shard
from groupcoord.core.effects import NO_CONNECTION, Append, Call, Effect, EmitEvent, Reply
from groupcoord.core.events import Event
from groupcoord.protocol.apis import APIS, Api, ApiKey
from groupcoord.protocol.errors import ErrorCode
from groupcoord.testing.simulation.agenda import Agenda
from groupcoord.testing.simulation.ahead import SkippedTooMuchError
from groupcoord.testing.simulation.dice import Stream
from groupcoord.testing.simulation.network import Connection, Network
from groupcoord.testing.simulation.user import GROUP

OFFSETS_TOPIC = "__consumer_offsets"
_APPENDS_RANK = 1
_HOST = "/127.0.0.1"
_BY_NAME = {ApiKey.OFFSET_COMMIT: 9, ApiKey.OFFSET_FETCH: 9}  # later versions name topics by their ids
_HEARTBEAT = APIS[ApiKey.HEARTBEAT]
_API_OF: dict[type, Api] = {api.request: api for api in APIS.values()}


class Watcher(Protocol):
    """Who is told what the brokers do, before anybody else is."""

    def asked(self, call: Call, request: Any) -> None:
        """A request is about to be handled."""

    def replied(self, call: Call, response: Any) -> None:
        """A request is answered."""

    def noted(self, event: Event) -> None:
        """The coordinator says what it did."""

    def appended(self, decision: AppendDecision) -> None:
        """That becomes of an append."""

    def resigning(self) -> None:
        """The coordinator is about to forget everything."""

    def loaded(self) -> None:
        """It has read its log again."""

    def stepped(self, *, routine: bool) -> None:
        """That was one step; a ``routine`` one was a heartbeat that was answered with no error."""


class Brokers:
    """One broker or several, and the coordinator that is on one of them. All times are simulated milliseconds."""

    def __init__(
        self,
        agenda: Agenda,
        topics: dict[str, int],
        count: int,
        chance: Stream,
        watcher: Watcher,
        client_id_of: Callable[[Connection], str],
    ) -> None:
        self.node = ClusterCore(_config(count), random=chance, now_ms=0, brokers=count)
        for name, partitions in topics.items():
            self.node.create_topic(name, partitions, 0)
        self.network: Network
        self.ids = tuple(self.node.broker.cluster.ids)
        """The ids of the brokers."""
        self.numbers = {broker_id: number for number, broker_id in enumerate(self.ids)}
        self.shard: Shard = self.node.coordinator.shards[0]
        """Where the group lives."""
        self._agenda = agenda
        self._watcher = watcher
        self._client_id_of = client_id_of
        self._open: dict[tuple[int, int], Connection] = {}
        self._loaded_at_ms: int | None = None
        self._decisions: list[tuple[AppendDecision, int, ErrorCode]] = []
        self.node.appends.gate = self._gate

    # What it is.

    @property
    def serves(self) -> bool:
        """Is there a coordinator at all?"""
        return not isinstance(self.shard.groups, Unavailable)

    @property
    def group(self) -> ClassicGroup | None:
        """The group, as the coordinator has it."""
        groups = self.shard.groups
        return dict.get(groups, GROUP)  # where there is no coordinator, its own ``get`` refuses

    @property
    def is_settled(self) -> bool:
        """Does the coordinator serve a stable group, with no append on its way?"""
        group = self.group
        return group is not None and group.state is GroupState.STABLE and self.shard.is_idle

    @property
    def has_trouble_waiting(self) -> bool:
        """Does the next append meet something unusual?"""
        return bool(self._decisions)

    def next_ms(self) -> int | None:
        """When the brokers want to be given time. A coordinator that reads its log takes as long as the plan says."""
        return self.node.next_deadline() if self._loaded_at_ms is None else self._loaded_at_ms

    # What comes to it.

    def arrived(self, connection: Connection, number: int, request: Any) -> None:
        """A request of a member."""
        api = _API_OF[type(request)]
        key = api.key
        version = _BY_NAME.get(key, api.max_version)
        client_id = self._client_id_of(connection)
        call = Call(connection.number, number, api, version, client_id, _HOST, connection.broker)
        self._open[connection.number, number] = connection
        self._watcher.asked(call, request)
        effects = self.node.handle(call, request, self._agenda.now_ms)
        if key == ApiKey.HEARTBEAT and connection.routine and _is_fine(effects):
            self._carry_out_one(effects[0])
            self._watcher.stepped(routine=True)
        else:
            self._carry_out(effects)

    def beat_ahead(self, connection: Connection, number: int, request: Any, at_ms: int) -> Any:
        """What a heartbeat is answered that arrives at ``at_ms``. Raises SkippedTooMuchError for more than an answer."""
        now_ms, self._agenda.now_ms = self._agenda.now_ms, at_ms
        call = Call(connection.number, number, _HEARTBEAT, _HEARTBEAT.max_version, "", _HOST, connection.broker)
        self._watcher.asked(call, request)
        effects = self.node.handle(call, request, at_ms)
        if not _is_fine(effects):
            raise SkippedTooMuchError
        response = effects[0].response  # type: ignore[union-attr]
        self._watcher.replied(call, response)
        self._agenda.now_ms = now_ms
        return response

    def deadline_lower_bound(self) -> int | None:
        """The brokers want no time before that (ms); costs less than ``next_ms``."""
        return self.node.deadline_lower_bound() if self._loaded_at_ms is None else self._loaded_at_ms

    def coordinator_acts_at(self, renewed_by: Mapping[str, int], until_ms: int) -> int:
        """When a deadline of the coordinator can change something for a member (ms), or ``until_ms`` if that is earlier.

        That of a session can not if the member is heard of before, which ``renewed_by`` says when. Nor can the look for offsets
        that are too old, unless its append fails: neither it nor those of logs, of which it is told nothing, are about members.
        """
        nearest_ms = until_ms
        for due in self.node.coordinator.timers.pending():
            at_ms, key = due.at_ms, due.key
            if at_ms >= nearest_ms:
                break
            harmless = renewed_by.get(key.subject, at_ms) < at_ms if key.kind == "session" else key.kind == "retention"
            if not harmless or (key.kind == "retention" and self._decisions):
                nearest_ms = at_ms
        return nearest_ms

    def expire(self) -> None:
        """Do what is due."""
        loads = self._loaded_at_ms is not None
        self._loaded_at_ms = None
        effects = self.node.expire(self._agenda.now_ms)
        for effect in effects:
            self._carry_out_one(effect)
        if loads:
            self._watcher.loaded()
        self._watcher.stepped(routine=False)

    # What is done to it.

    def reload(self, away_ms: int, reading_ms: int) -> None:
        """The coordinator resigns, and comes back later; nothing if it is not there anyway."""
        if not self.serves:
            return
        self._watcher.resigning()
        self._carry_out(self.node.resign(0, self._agenda.now_ms))

        def back() -> None:
            self.node.load(0, self._agenda.now_ms)
            self._loaded_at_ms = self._agenda.now_ms + reading_ms

        self._agenda.at(self._agenda.now_ms + away_ms, _APPENDS_RANK, back)

    def move(self, reading_ms: int, chosen: int) -> None:
        """Another broker coordinates the group from now on; nothing if nobody does anyway."""
        if not self.serves:
            return
        leader = self.leader
        others = [broker for broker in self.ids if broker != leader]
        self._watcher.resigning()
        self._loaded_at_ms = self._agenda.now_ms + reading_ms
        self._carry_out(self.node.move_leader(OFFSETS_TOPIC, 0, others[chosen % len(others)], self._agenda.now_ms))

    def trouble_append(self, decision: AppendDecision, for_ms: int, error: ErrorCode) -> None:
        """The next append meets this: an error, or HOLD for so long, after which it fails with ``error``, unless that is 0."""
        self._decisions.append((decision, for_ms, error))

    def heal(self) -> None:
        """From now on every append is stored."""
        self._decisions.clear()

    def coordinates(self, broker: int) -> bool:
        """Is the coordinator on that broker, counted from 0?"""
        return self.ids[broker] == self.leader

    @property
    def leader(self) -> int:
        """The id of the broker that the coordinator is on."""
        topic = self.node.broker.topics.get(OFFSETS_TOPIC)
        assert topic is not None
        return topic.leaders[0]

    def _gate(self, append: Append, now_ms: int, /) -> AppendDecision:
        decision, for_ms, error = self._decisions.pop(0) if self._decisions else (STORE, 0, ErrorCode.NONE)
        if decision == HOLD:
            self._agenda.at(now_ms + for_ms, _APPENDS_RANK, lambda: self._let_go(append, error))
        self._watcher.appended(decision)
        return decision

    def _let_go(self, append: Append, error: ErrorCode) -> None:
        if append.append_id not in {held.append_id for held in self.node.appends.held()}:
            return  # one before it has failed, or the coordinator has moved
        if error:
            self._carry_out(self.node.appends.fail(append, error, self._agenda.now_ms))
        else:
            self._carry_out(self.node.appends.release(append, self._agenda.now_ms))

    # What comes of it.

    def _carry_out(self, effects: list[Effect]) -> None:
        for effect in effects:
            self._carry_out_one(effect)
        self._watcher.stepped(routine=False)

    def _carry_out_one(self, effect: Effect) -> None:
        if isinstance(effect, EmitEvent):
            self._watcher.noted(effect.event)
        else:
            assert isinstance(effect, Reply)  # members send nothing after which a broker hangs up, or is silent
            self._reply(effect.call, effect.response)

    def _reply(self, call: Call, response: Any) -> None:
        if call.connection_id == NO_CONNECTION:
            return  # it has its answer already
        self._watcher.replied(call, response)
        connection = self._open.pop((call.connection_id, call.correlation_id))
        self.network.answer(connection, call.correlation_id, response)


def _is_fine(effects: list[Effect]) -> bool:
    """Is that the answer to a heartbeat that finds nothing new, and nothing else?"""
    return len(effects) == 1 and type(effects[0]) is Reply and not effects[0].response.error_code


@lru_cache(maxsize=8)
def _config(brokers: int) -> BrokerConfig:
    return load(["offsets.topic.num.partitions=1"], brokers=brokers)

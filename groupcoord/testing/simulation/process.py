"""The process of one member: groupcoord's own client without sockets, on simulated time.

It carries out what the member wants done, as ``groupcoord.client.runner`` does, and gives it time. Its requests are in
requests.py, its user in user.py.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

from groupcoord.assignors import ASSIGNORS, TopicPartition, run
from groupcoord.client import actions as a
from groupcoord.client.errors import DisconnectedError
from groupcoord.client.member import MemberState
from groupcoord.client.membership import Membership
from groupcoord.client.settings import MemberSettings
from groupcoord.client.topics_view import TopicsView
from groupcoord.core.effects import EmitEvent
from groupcoord.core.events import Event
from groupcoord.protocol.messages import (
    HeartbeatRequest,
    HeartbeatResponse,
    MetadataRequest,
    MetadataResponse,
    OffsetCommitRequest,
)
from groupcoord.protocol.messages.metadata import MetadataRequestTopic
from groupcoord.testing.simulation.ahead import MARGIN_MS, Ahead, Quiet
from groupcoord.testing.simulation.dice import Stream
from groupcoord.testing.simulation.network import MEMBER_ACTS, Connection, rank
from groupcoord.testing.simulation.plan import MemberPlan
from groupcoord.testing.simulation.requests import GENERAL, PARKING, Answered, Do, Failed, Requests
from groupcoord.testing.simulation.user import GROUP, User

_ROUTINE = (HeartbeatRequest, OffsetCommitRequest)
"""What a member at rest sends, and what changes nothing for others then."""


class Surroundings(Quiet, Protocol):
    """What a process is told about, or tells."""

    def broker_numbered(self, node_id: int) -> int:
        """The number of a broker, counted from 0."""

    def any_broker(self, slot: int) -> int:
        """The number of some broker."""

    def belief_changed(self, process: "Process") -> None:
        """It owns something else than before."""

    def ended(self, process: "Process", error: Exception | None) -> None:
        """It is done, or can not go on."""

    def happened(self, process: "Process", event: Event) -> None:
        """For the story."""


class _Timer(NamedTuple):
    """The entry for ``_due``: when that is called, and whether it is routine."""

    entry: int
    at_ms: int
    routine: bool


class Process:
    """One life of a member. ``slot`` is its place in the world, ``chance`` spreads its back-offs."""

    def __init__(
        self, around: Surroundings, plan: MemberPlan, slot: int, client_id: str, topics: tuple[str, ...], chance: Stream
    ) -> None:
        self.plan, self.slot, self.client_id = plan, slot, client_id
        self.owned: frozenset[TopicPartition] = frozenset()
        """What its user believes to own."""
        self.alive = True
        self.leaving = False
        self._around, self._agenda, self._network = around, around.agenda, around.network
        self.topics = topics
        settings = MemberSettings(
            group_id=GROUP,
            instance_id=plan.instance_id,
            session_timeout_ms=plan.session_timeout_ms,
            heartbeat_interval_ms=plan.heartbeat_interval_ms,
            max_poll_interval_ms=plan.max_poll_interval_ms,
        )
        assignors = [ASSIGNORS.create(name) for name in plan.assignors]
        self.membership = Membership(settings, assignors, chance=chance.fraction)
        self._user = User(self, self._agenda)
        self._requests = Requests(self._network, slot, self.do, self.soon)
        self._own_tickets = 0  # below 0, so that they are not the membership's
        self._elsewhere = 0  # what it waits for that is no request: callbacks, and offsets to be asked for again
        self._ahead = Ahead(around, self.membership, self._requests)
        self._timer: _Timer | None = None
        self.is_paused = False
        """Does it stand still?"""
        self._backlog: list[Do] = []

    def __repr__(self) -> str:
        return f"<Process {self.client_id} {self.membership!r}>"

    # What is done to it.

    def start(self) -> None:
        """Begin to join."""
        now_ms = self._agenda.now_ms
        self._user.start()
        self.feed(self.membership.subscribe(self.topics, now_ms))
        self.feed(self.membership.polled(now_ms))

    def crash(self) -> None:
        """Be gone without a word. What was sent is on its way."""
        self.alive = False
        self._requests.close()

    def leave(self) -> None:
        """Commit, tell the user, say goodbye."""

        def leave() -> None:
            self.leaving = True
            self._see_user()
            self._user.commit(lambda: None)
            self.feed(self.membership.leave("the consumer is closed", self._agenda.now_ms))

        self.do(leave)

    def pause(self) -> None:
        """Stand still."""
        self.is_paused = True
        self._user.stand_still()

    def resume(self) -> None:
        """Go on, with all that was missed."""
        if not self.is_paused or not self.alive:
            return
        self.is_paused = False
        self._user.go_on()
        missed, self._backlog = self._backlog, []
        for do in missed:
            self.do(do)
        self.do(self._due)

    def be_busy(self) -> None:
        """The user does not poll any more."""

        def away() -> None:
            self._user.go_away()
            self.feed(self.membership.away(self._agenda.now_ms))

        self.do(away)

    def poll(self) -> None:
        """The user is back."""
        self.do(self._see_user)

    def subscribe(self, topics: tuple[str, ...]) -> None:
        """Want these topics."""
        self.topics = topics
        self.do(lambda: self.feed(self.membership.subscribe(topics, self._agenda.now_ms)))

    def rejoin(self) -> None:
        """Ask for a rebalance."""
        self.do(lambda: self.feed(self.membership.rejoin("the user wants it", self._agenda.now_ms)))

    def reset_connections(self) -> None:
        """All of them are gone, and it notices."""
        self._requests.reset()

    def break_connections(self, *, requests: bool) -> None:
        """What it sends, or else what it is answered, is lost from now on, until it connects anew."""
        self._requests.lose(requests=requests)

    # What it is.

    @property
    def member_id(self) -> str:
        """What the coordinator calls it; empty if it has no id."""
        return self.membership.generation.member_id

    @property
    def is_stable(self) -> bool:
        """Has it its assignment, and has told its user?"""
        return self.membership.state is MemberState.STABLE and not self.membership.in_callback

    def waits_for(self) -> set[tuple[int, int]]:
        """The requests that it waits for: numbers of connections, and of requests there."""
        return self._requests.waits_for()

    @property
    def commits_at_ms(self) -> int:
        """When it commits next by itself."""
        return self._user.commits_at_ms

    @property
    def is_at_rest(self) -> bool:
        """Does it do nothing but heartbeat, and nobody keeps it from that?"""
        return (
            self.membership.state is MemberState.STABLE
            and not self._elsewhere
            and self._user.present
            and not self.is_paused
            and not self.leaving
            and self._requests.only_beats
            and self._network.is_usual(self.slot)
            and self._quiet_connection() is not None
        )

    def renews_session_by(self) -> int:
        """If it is at rest: when its next heartbeat has reached the coordinator at the latest (ms)."""
        beat_ms = self._agenda.now_ms
        if not self._requests:
            beat_ms = max(0 if self._timer is None else self._timer.at_ms, self.membership.next_deadline() or 0)
        return beat_ms + MARGIN_MS

    def _quiet_connection(self) -> Connection | None:
        """The connection for heartbeats, if there is one and it works."""
        coordinator = self.membership.coordinator
        return (
            None if coordinator is None else self._requests.working(self._around.broker_numbered(coordinator.node_id))
        )

    # What the member wants done.

    def do(self, do: Do) -> None:
        """Now, or when it goes on, or never if it is gone."""
        if not self.alive:
            return
        if self.is_paused:
            self._backlog.append(do)
        else:
            do()

    def soon(self, do: Do, after_ms: int = 0) -> None:
        """Of its own accord, when what is under way is done."""
        self._elsewhere += 1

        def later() -> None:
            self._elsewhere -= 1
            do()

        at_ms = self._agenda.now_ms + after_ms
        self._agenda.at(at_ms, rank(self.slot, MEMBER_ACTS), lambda: self.do(later))

    def _see_user(self) -> None:
        self._user.come_back()
        self.feed(self.membership.polled(self._agenda.now_ms))

    def feed(self, actions: list[a.Action]) -> None:
        """Have done what the member wants."""
        for action in actions:
            self._carry_out(action)
        if self.alive:
            self.set_timer()

    def _carry_out(self, action: a.Action) -> None:
        match action:
            case a.Send():
                self._send(action)
            case a.Assign():
                self.soon(lambda: self._assign(action))
            case a.Learn():
                self._learn(action.ticket, action.topics)
            case a.Commit():
                self.soon(lambda: self._commit_for(action.ticket))
            case a.Tell():
                self.soon(lambda: self._complete(action.ticket, None), self.plan.callback_ms)
            case a.Own():
                self._own(action.partitions)
            case _:
                self._carry_out_rarer(action)

    def _carry_out_rarer(self, action: a.Abandon | a.Hold | a.Disconnect | a.Raise | a.Left | EmitEvent) -> None:
        match action:
            case EmitEvent():
                self._around.happened(self, action.event)
            case a.Abandon():
                self._requests.abandon(action.ticket)
            case a.Disconnect():
                broker = self._around.broker_numbered(action.coordinator.node_id)
                self._requests.leave(broker, "another broker is the coordinator")
            case a.Raise():
                if action.final:
                    self._around.ended(self, action.error)
            case a.Left():
                self._around.ended(self, None)
            case _:
                pass  # Hold: its user is handed no records

    def _own(self, partitions: frozenset[TopicPartition]) -> None:
        self.owned = partitions
        self._user.owns(partitions)
        self._around.belief_changed(self)

    def _assign(self, action: a.Assign) -> None:
        try:
            assignment = run(action.assignor, action.group, action.protocol)
        except Exception as error:
            self._fail(action.ticket, error)
        else:
            self._complete(action.ticket, assignment)

    def _complete(self, ticket: int, result: Any) -> None:
        self.feed(self.membership.complete(ticket, result, self._agenda.now_ms))

    def _fail(self, ticket: int, error: Exception) -> None:
        self.feed(self.membership.fail(ticket, error, self._agenda.now_ms))

    def _commit_for(self, ticket: int) -> None:
        """Commit because a rebalance waits for that. Until it is told, the member is not at rest."""

        def done() -> None:
            self._elsewhere -= 1
            self._complete(ticket, None)

        self._elsewhere += 1
        self._user.commit(done)

    # Requests.

    def _send(self, action: a.Send) -> None:
        around, ticket, request, sent_ms = self._around, action.ticket, action.request, self._agenda.now_ms
        to = around.any_broker(self.slot) if action.to is None else around.broker_numbered(action.to.node_id)

        def answered(response: Any) -> None:
            if type(response) is HeartbeatResponse and not response.error_code:
                self._ahead.heard_ms = sent_ms
            self._complete(ticket, response)

        lane = PARKING if action.parks else GENERAL
        self._ask(ticket, (to, lane), request, action.timeout_ms, answered, lambda error: self._fail(ticket, error))

    def _ask(
        self, ticket: int, to: tuple[int, int], request: Any, timeout_ms: int, answered: Answered, failed: Failed
    ) -> None:
        due_ms = self._agenda.now_ms + timeout_ms
        routine = type(request) in _ROUTINE and self.is_at_rest
        self._requests.ask(ticket, to, request, due_ms, answered, failed, routine=routine)

    def ask_coordinator(self, request: Any, answered: Answered, failed: Failed) -> None:
        """For what is not the membership's own business."""
        coordinator = self.membership.coordinator
        if coordinator is None:
            self.soon(lambda: failed(DisconnectedError("nobody knows the coordinator")))
            return

        def broken(error: Exception) -> None:
            self.feed(self.membership.coordinator_unreachable(coordinator, str(error), self._agenda.now_ms))
            failed(error)

        self._own_tickets -= 1
        to = self._around.broker_numbered(coordinator.node_id), GENERAL
        self._ask(self._own_tickets, to, request, self.membership.settings.request_timeout_ms, answered, broken)

    def _learn(self, ticket: int, topics: frozenset[str]) -> None:
        request = MetadataRequest(
            topics=tuple(MetadataRequestTopic(name=topic) for topic in sorted(topics)), allow_auto_topic_creation=False
        )

        def answered(response: MetadataResponse) -> None:
            counts: Mapping[str, int] = {
                str(topic.name): len(topic.partitions) for topic in response.topics if not topic.error_code
            }
            self._complete(ticket, TopicsView(partitions=counts))

        to, timeout_ms = (self._around.any_broker(self.slot), GENERAL), self.membership.settings.request_timeout_ms
        self._ask(ticket, to, request, timeout_ms, answered, lambda error: self._fail(ticket, error))

    # Time.

    def set_timer(self) -> None:
        """Have ``_due`` called in time."""
        at_ms, routine, timer = self._next_deadline(), self.is_at_rest, self._timer
        if at_ms is not None:
            if routine and not self._requests:
                at_ms = self._ahead.next_beat(at_ms, self._user.commits_at_ms, self._quiet_connection())
            at_ms = max(at_ms, self._agenda.now_ms)  # it may have stood still when that was due
        if timer is not None:
            if timer.at_ms == at_ms and timer.routine == routine:
                return
            self._agenda.cancel(timer.entry)
            self._timer = None
        if at_ms is not None:
            entry = self._agenda.at(at_ms, rank(self.slot, MEMBER_ACTS), self._timer_fired, routine=routine)
            self._timer = _Timer(entry, at_ms, routine)

    def _next_deadline(self) -> int | None:
        requests_ms, own_ms = self._requests.next_deadline(), self.membership.next_deadline()
        if requests_ms is None or own_ms is None:
            return requests_ms if own_ms is None else own_ms
        return min(requests_ms, own_ms)

    def _timer_fired(self) -> None:
        self._timer = None
        self.do(self._due)

    def _due(self) -> None:
        now_ms = self._agenda.now_ms
        self._requests.give_up(now_ms)
        deadline = self.membership.next_deadline()
        if deadline is not None and deadline <= now_ms:
            self.feed(self.membership.expire(now_ms))
        else:
            self.set_timer()

"""One run: brokers, a network and members on one clock, and a plan of what is done to them.

Nothing in here reads a clock or rolls dice: a run is a function of its plan. Invariants are looked at after every step.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from groupcoord.cluster.append_gate import HOLD, AppendDecision
from groupcoord.core.effects import Call
from groupcoord.core.events import Event
from groupcoord.protocol.errors import ErrorCode
from groupcoord.testing.simulation.agenda import Agenda
from groupcoord.testing.simulation.brokers import Brokers
from groupcoord.testing.simulation.dice import Stream, drawn
from groupcoord.testing.simulation.invariants.judge import Judge
from groupcoord.testing.simulation.network import Connection, Network
from groupcoord.testing.simulation.plan import Action, Kind, MemberPlan, Plan
from groupcoord.testing.simulation.process import Process

STARTS_APART_MS = 700
"""Members start so long after each other."""
RESTARTED_AFTER_MS = 5_000
"""Whoever ends by itself is started again so much later."""
TWIN_SLOTS = 100
"""The twin of a member has its place so far behind it."""
OTHER_TOPIC = "payments"
_DEEDS_RANK = 0
_OF_NODE, _OF_BACKOFF, _OF_BROKER = range(3)

Teller = Callable[[int, str, str], None]
"""(at ms, who, what): one line of a story."""


@dataclass(slots=True, eq=False)
class Seat:
    """The place of one member: the process that has it now, if there is one, and how often it was started."""

    plan: MemberPlan
    slot: int
    topics: tuple[str, ...]
    process: Process | None = None
    lives: int = 0


class World:
    """A run of ``plan``. With ``skip`` heartbeats that change nothing are not sent. ``tell`` is told the story.

    ``run`` raises ``Broken`` when something is not as it must be.
    """

    def __init__(self, plan: Plan, *, skip: bool = True, tell: Teller | None = None) -> None:
        self.plan = plan
        self.agenda = Agenda()
        self.judge = Judge(self)
        self._skip = skip
        self.teller = tell
        node_chance = Stream(drawn(plan.key, _OF_NODE))
        self.brokers = Brokers(self.agenda, dict(plan.topics), plan.brokers, node_chance, self, self._client_id_of)
        self.network = Network(self.agenda, plan.key, self.brokers.arrived)
        self.brokers.network = self.network
        self.seats = [Seat(member, slot, member.topics) for slot, member in enumerate(plan.members)]
        self.twins = {
            seat.slot: Seat(seat.plan, seat.slot + TWIN_SLOTS, seat.topics)
            for seat in self.seats
            if seat.plan.instance_id is not None
        }
        self._places = (*self.seats, *self.twins.values())

    # The run.

    def run(self) -> None:
        """From the start to the end of the plan. Raises Broken."""
        agenda = self.agenda
        for seat in self.seats:
            agenda.at(seat.slot * STARTS_APART_MS, _DEEDS_RANK, self._starting(seat))
        for number, action in self.plan.numbered():
            agenda.at(action.at_ms, _DEEDS_RANK, self._doing(number, action))
        agenda.at(self.plan.heal_ms, _DEEDS_RANK, self._heal)
        end_ms = self.plan.end_ms
        deadline_lower_bound, agenda_next = self.brokers.deadline_lower_bound, agenda.next_ms
        while True:
            due_ms, next_ms = deadline_lower_bound(), agenda_next()
            assert next_ms is not None  # members commit again and again
            if due_ms is not None and due_ms <= next_ms:
                due_ms = self.brokers.next_ms()  # it may be later
            at_ms = next_ms if due_ms is None else min(due_ms, next_ms)
            if at_ms > end_ms:
                break
            if at_ms == due_ms:
                agenda.now_ms = max(agenda.now_ms, at_ms)
                self.brokers.expire()
            else:
                agenda.do_next()
        agenda.now_ms = end_ms
        self.judge.finish()

    def processes(self) -> list[Process]:
        """Everybody who runs, also who stands still."""
        return [seat.process for seat in self._places if seat.process is not None]

    def _client_id_of(self, connection: Connection) -> str:
        slot = connection.slot
        if slot >= TWIN_SLOTS:
            return f"{self.plan.members[slot - TWIN_SLOTS].name}-twin"
        return self.plan.members[slot].name

    # What is done.

    def _starting(self, seat: Seat) -> Callable[[], None]:
        return lambda: self._start(seat)

    def _doing(self, number: int, action: Action) -> Callable[[], None]:
        def do() -> None:
            self.tell("plan", f"({number}) {action.text(self.plan.members)}")
            self._do(action)

        return do

    def _start(self, seat: Seat) -> None:
        """Start the member, unless it runs. One that is still about to leave has had its time."""
        if seat.process is not None:
            if not seat.process.leaving:
                return
            self._stop(seat)
        seat.lives += 1
        name = seat.plan.name if seat.slot < TWIN_SLOTS else f"{seat.plan.name}-twin"
        chance = Stream(drawn(self.plan.key, _OF_BACKOFF, seat.slot, seat.lives))
        seat.process = Process(self, seat.plan, seat.slot, name, seat.topics, chance)
        self.tell(name, "starts")
        seat.process.start()

    def _stop(self, seat: Seat) -> None:
        if seat.process is not None:
            process, seat.process = seat.process, None
            process.crash()
            self.judge.belief_changed()

    def _after(self, ms: int, do: Callable[[], None]) -> None:
        self.agenda.at(self.agenda.now_ms + ms, _DEEDS_RANK, do)

    def _do(self, action: Action) -> None:
        brokers, for_ms, amount = self.brokers, action.for_ms, action.amount
        match action.kind:
            case Kind.RELOAD:
                brokers.reload(for_ms, amount)
            case Kind.MOVE:
                brokers.move(amount, for_ms)
            case Kind.FAIL_APPEND:
                error = ErrorCode[action.error]
                brokers.trouble_append(error, 0, error)
            case Kind.HOLD_APPEND:
                brokers.trouble_append(HOLD, for_ms, ErrorCode.NONE)
            case Kind.LOSE_APPEND:
                brokers.trouble_append(HOLD, for_ms, ErrorCode[action.error])
            case Kind.SLOW | Kind.PARTITION | Kind.BLACKOUT:
                self._disturb_link(action)
            case Kind.TWIN:
                self._bring_twin(action)
            case _:
                seat = self.seats[action.member]
                if seat.process is not None:
                    self._do_to(seat, seat.process, action)

    def _do_to(self, seat: Seat, process: Process, action: Action) -> None:
        match action.kind:
            case Kind.CRASH:
                self._stop(seat)
                self._after(action.for_ms, self._starting(seat))
            case Kind.LEAVE:
                process.leave()
                self._after(action.for_ms, self._starting(seat))
            case Kind.PAUSE:
                process.pause()
                self._after(action.for_ms, process.resume)
            case Kind.BUSY:
                process.be_busy()
                self._after(action.for_ms, process.poll)
            case Kind.SUBSCRIBE:
                others = tuple(topic for topic in seat.topics if topic != OTHER_TOPIC)
                seat.topics = others if OTHER_TOPIC in seat.topics else (*others, OTHER_TOPIC)
                process.subscribe(seat.topics)
            case Kind.REJOIN:
                process.rejoin()
            case Kind.RESET:
                process.reset_connections()
            case _:
                process.break_connections(requests=action.kind is Kind.LOSE_REQUESTS)

    def _disturb_link(self, action: Action) -> None:
        link, until_ms = self.network.link(action.member), self.agenda.now_ms + action.for_ms
        if action.kind is Kind.SLOW:
            link.slow_until_ms, link.slow_by_ms = until_ms, action.amount
        else:
            link.cut_until_ms, link.loses = until_ms, action.kind is Kind.BLACKOUT

    def _bring_twin(self, action: Action) -> None:
        twin = self.twins[action.member]
        self._start(twin)
        self._after(action.for_ms, lambda: self._stop(twin))

    def _heal(self) -> None:
        self.tell("plan", "from now on nothing is done to anybody")
        self.brokers.heal()
        for link in self.network.links.values():
            link.heal()
        for twin in self.twins.values():
            self._stop(twin)
        for seat in self.seats:
            if seat.process is not None:
                seat.process.resume()
            if seat.process is not None and not seat.process.leaving:
                seat.process.poll()
            self._start(seat)

    # What processes want to know, or tell.

    def broker_numbered(self, node_id: int) -> int:
        """The number of a broker, counted from 0."""
        return self.brokers.numbers[node_id]

    def any_broker(self, slot: int) -> int:
        """The number of some broker."""
        return drawn(self.plan.key, _OF_BROKER, slot, self.agenda.now_ms) % self.plan.brokers

    def deadline_lower_bound(self) -> int | None:
        """Nothing but what members at rest do by themselves happens before that (ms); None if more is under way.

        Who stands still, or is cut off, does nothing that reaches anybody before it goes on, or is connected again.
        """
        brokers, group = self.brokers, self.brokers.group
        if not self._skip or group is None or not brokers.is_settled:
            return None
        renewed_by: dict[str, int] = {}
        quiet_ms = self.plan.end_ms
        for process in self.processes():
            if brokers.has_trouble_waiting:
                quiet_ms = min(quiet_ms, process.commits_at_ms)
            if process.is_paused:
                continue
            cut_ms = self.network.cut_until(process.slot)
            if cut_ms is not None:
                quiet_ms = min(quiet_ms, cut_ms)
                continue
            generation = process.membership.generation
            if generation.member_id not in group.members or generation.generation_id != group.generation_id:
                return None
            coordinator = process.membership.coordinator
            if coordinator is None or coordinator.node_id != brokers.leader or not process.is_at_rest:
                return None
            renewed_by[generation.member_id] = process.renews_session_by()
        event_ms = self.agenda.next_event()
        if event_ms is not None and event_ms < quiet_ms:
            quiet_ms = event_ms
        return min(quiet_ms, brokers.coordinator_acts_at(renewed_by, quiet_ms))

    def beat_ahead(self, connection: Connection, number: int, request: Any, at_ms: int) -> Any:
        """What a heartbeat is answered that arrives at ``at_ms``, before which nothing else happens."""
        return self.brokers.beat_ahead(connection, number, request, at_ms)

    def belief_changed(self, process: Process) -> None:
        """It owns something else than before."""
        del process
        self.judge.belief_changed()

    def ended(self, process: Process, error: Exception | None) -> None:
        """It has left, or it can not go on and is started again in a while."""
        why = "has left" if error is None else f"ends: {error}"
        self.tell(process.client_id, why)
        process.crash()
        for seat in self._places:
            if seat.process is process:
                seat.process = None
                if error is not None and seat.slot < TWIN_SLOTS:
                    self._after(RESTARTED_AFTER_MS, self._starting(seat))
        self.judge.belief_changed()
        if error is not None:
            self.judge.failed(process, error)

    def happened(self, process: Process, event: Event) -> None:
        """For the story."""
        if self.teller is not None:
            self.teller(self.agenda.now_ms, process.client_id, event.text())

    # What the brokers tell.

    def asked(self, call: Call, request: Any) -> None:
        """A request is about to be handled."""
        self.judge.asked(call, request)

    def replied(self, call: Call, response: Any) -> None:
        """A request is answered."""
        self.judge.replied(call, response)

    def noted(self, event: Event) -> None:
        """The coordinator says what it did."""
        if self.teller is not None:
            self.teller(self.agenda.now_ms, "coordinator", event.text())
        self.judge.noted(event)

    def appended(self, decision: AppendDecision) -> None:
        """That becomes of an append."""
        self.judge.appended(decision)

    def resigning(self) -> None:
        """The coordinator is about to forget everything."""
        self.judge.resigning()

    def loaded(self) -> None:
        """It has read its log again."""
        self.judge.loaded()

    def stepped(self, *, routine: bool) -> None:
        """That was one step."""
        self.judge.stepped(routine=routine)

    def tell(self, who: str, what: str) -> None:
        """One line of the story, if anybody wants to hear it."""
        if self.teller is not None:
            self.teller(self.agenda.now_ms, who, what)

from typing import Any

from groupcoord.protocol.messages import FindCoordinatorRequest, HeartbeatRequest
from groupcoord.simulation.event_queue import Callback, EventQueue
from groupcoord.simulation.network import (
    GENERAL,
    NORMAL_MAX_DELAY_MS,
    PARKING,
    PendingRequests,
    SimulatedConnection,
    SimulatedNetwork,
)


class Wire:
    """One connection of one member, with a broker that notes what comes."""

    def __init__(self) -> None:
        self.event_queue = EventQueue()
        self.network = SimulatedNetwork(self.event_queue, 7, self._arrived)
        self.heard: list[tuple[int, Any]] = []
        self.arrived: list[tuple[int, Any]] = []
        self.connection = self.network.connect(0, 0, 0, lambda number, said: self.heard.append((number, said)))

    def _arrived(self, connection: SimulatedConnection, number: int, request: Any) -> None:
        assert connection is self.connection
        self.arrived.append((number, request))

    def send(self, number: int) -> None:
        self.network.send(self.connection, number, f"request {number}", routine=False)

    def run(self) -> None:
        while self.event_queue.next_ms() is not None:
            self.event_queue.run_next()


def test_a_broker_answers_one_after_the_other() -> None:
    wire = Wire()
    wire.send(1)
    wire.send(2)
    wire.run()
    assert wire.arrived == [(1, "request 1")]
    wire.network.respond(wire.connection, 1, "first")
    wire.run()
    assert wire.arrived == [(1, "request 1"), (2, "request 2")]
    assert wire.heard == [(1, "first")]
    assert wire.event_queue.now_ms <= 3 * NORMAL_MAX_DELAY_MS


def test_a_broker_that_closes_a_connection_forgets_what_it_was_asked_there() -> None:
    for loses in (False, True):
        wire, closed = Wire(), []
        wire.connection.on_close = lambda: closed.append(wire.event_queue.now_ms)  # noqa: B023
        wire.connection.loses_responses = loses
        wire.send(1)
        wire.send(2)
        wire.run()
        wire.network.close(wire.connection)
        wire.run()
        assert wire.arrived == [(1, "request 1")]
        assert len(closed) == (not loses)


def test_what_is_on_its_way_is_lost_with_the_connection() -> None:
    wire = Wire()
    wire.send(1)
    wire.connection.loses_requests = True
    wire.send(2)
    wire.run()
    assert wire.arrived == []


def test_a_response_is_lost_on_a_closed_connection() -> None:
    for violation in ("closed", "loses_responses"):
        wire = Wire()
        wire.send(1)
        wire.run()
        wire.network.respond(wire.connection, 1, "first")
        setattr(wire.connection, violation, True)
        wire.run()
        assert wire.heard == []


def test_a_cut_link_delivers_late_or_never() -> None:
    wire = Wire()
    link = wire.network.link(0)
    link.cut_until_ms = 5_000
    assert wire.network.cut_until(0) == 5_000
    wire.send(1)
    wire.run()
    assert wire.arrived == [(1, "request 1")]
    assert wire.event_queue.now_ms > 5_000
    assert wire.network.cut_until(0) is None
    link.cut_until_ms, link.loses = 10_000, True
    wire.send(2)
    link.heal()
    wire.send(3)
    wire.run()
    assert wire.arrived == [(1, "request 1")]


BEAT = HeartbeatRequest(group_id="app", generation_id=1, member_id="a")


class Member:
    """Requests, and a broker that answers each with its number; what the member does is put off for as long as is wanted."""

    def __init__(self) -> None:
        self.event_queue = EventQueue()
        self.network = SimulatedNetwork(self.event_queue, 1, self._arrived)
        self.backlog: list[Callback] = []
        self.requests = PendingRequests(self.network, 0, self.backlog.append, self.backlog.append)
        self.told: list[tuple[int, str]] = []

    def _arrived(self, connection: SimulatedConnection, number: int, _: Any) -> None:
        self.network.respond(connection, number, f"answer {number}")

    def send_request(self, ticket: int, lane: int = GENERAL, request: Any = BEAT, due_ms: int = 1_000) -> None:
        self.requests.send(
            ticket,
            (0, lane),
            request,
            due_ms,
            lambda said: self.told.append((ticket, said)),
            lambda error: self.told.append((ticket, str(error))),
            routine=False,
        )

    def go_on(self) -> list[tuple[int, str]]:
        while self.event_queue.next_ms() is not None:
            self.event_queue.run_next()
        for do in self.backlog:
            do()
        self.backlog.clear()
        told, self.told = self.told, []
        return told


def test_an_answer_goes_to_who_asked() -> None:
    member = Member()
    assert member.requests.next_deadline() is None
    member.send_request(7)
    member.send_request(8, PARKING, due_ms=500)
    assert member.requests.next_deadline() == 500
    assert member.requests.awaited() == {(1, 1), (2, 2)}
    assert (bool(member.requests), member.requests.only_heartbeats) == (True, True)
    assert sorted(member.go_on()) == [(7, "answer 1"), (8, "answer 2")]
    assert (bool(member.requests), member.requests.awaited()) == (False, set())
    member.send_request(9, request=FindCoordinatorRequest(key="app", coordinator_keys=("app",)))
    assert not member.requests.only_heartbeats
    assert member.go_on() == [(9, "answer 3")]


def test_with_a_connection_everything_fails_that_is_under_way_there() -> None:
    member = Member()
    member.send_request(1, due_ms=1_000)
    member.send_request(2, due_ms=2_000)
    member.send_request(3, PARKING, due_ms=3_000)
    member.requests.expire(1_000)
    late = "no response came in time"
    assert sorted(member.go_on()) == [(1, late), (2, late), (3, "answer 3")]
    assert member.requests.working_connection(0) is None


def test_what_is_abandoned_is_not_told() -> None:
    member = Member()
    member.send_request(1)
    member.send_request(2)
    member.requests.abandon(1)
    member.requests.abandon(1)
    assert member.go_on() == [(2, "a request was abandoned")]


def test_a_response_that_a_paused_process_reads_too_late_is_a_timeout() -> None:
    member = Member()
    member.send_request(1)
    while member.event_queue.next_ms() is not None:
        member.event_queue.run_next()
    assert len(member.backlog) == 1
    member.requests.expire(1_000)
    assert member.go_on() == [(1, "no response came in time")]


def test_all_connections_are_gone() -> None:
    cases: list[str] = ["reset", "leave"]
    for gone in cases:
        member = Member()
        member.send_request(1)
        member.send_request(2, PARKING)
        member.requests.disconnect(5, "it is not a coordinator")
        assert member.requests.working_connection(0)
        if gone == "reset":
            member.requests.reset()
        else:
            member.requests.disconnect(0, "the connection was reset")
        assert sorted(member.go_on()) == [(1, "the connection was reset"), (2, "the connection was reset")]


def test_losses_are_not_noticed() -> None:
    member = Member()
    member.send_request(1)
    assert member.requests.working_connection(0)
    member.requests.lose(requests=True)
    assert member.requests.working_connection(0) is None
    assert member.go_on() == []
    assert member.requests


def test_who_is_gone_hears_nothing() -> None:
    member = Member()
    member.send_request(1)
    member.requests.crash()
    assert member.go_on() == []

from typing import Any

import pytest

from groupcoord.protocol.messages import FindCoordinatorRequest, HeartbeatRequest
from groupcoord.testing.simulation.agenda import Agenda
from groupcoord.testing.simulation.network import Connection, Network
from groupcoord.testing.simulation.requests import GENERAL, PARKING, Do, Requests

BEAT = HeartbeatRequest(group_id="app", generation_id=1, member_id="a")


class Member:
    """Requests, and a broker that answers each with its number; what the member does is put off for as long as is wanted."""

    def __init__(self) -> None:
        self.agenda = Agenda()
        self.network = Network(self.agenda, 1, self._arrived)
        self.backlog: list[Do] = []
        self.requests = Requests(self.network, 0, self.backlog.append, self.backlog.append)
        self.told: list[tuple[int, str]] = []

    def _arrived(self, connection: Connection, number: int, _: Any) -> None:
        self.network.answer(connection, number, f"answer {number}")

    def ask(self, ticket: int, lane: int = GENERAL, request: Any = BEAT, due_ms: int = 1_000) -> None:
        self.requests.ask(
            ticket,
            (0, lane),
            request,
            due_ms,
            lambda said: self.told.append((ticket, said)),
            lambda error: self.told.append((ticket, str(error))),
            routine=False,
        )

    def go_on(self) -> list[tuple[int, str]]:
        while self.agenda.next_ms() is not None:
            self.agenda.do_next()
        for do in self.backlog:
            do()
        self.backlog.clear()
        told, self.told = self.told, []
        return told


def test_an_answer_goes_to_who_asked() -> None:
    member = Member()
    assert member.requests.next_deadline() is None
    member.ask(7)
    member.ask(8, PARKING, due_ms=500)
    assert member.requests.next_deadline() == 500
    assert member.requests.waits_for() == {(1, 1), (2, 2)}
    assert (bool(member.requests), member.requests.only_beats) == (True, True)
    assert sorted(member.go_on()) == [(7, "answer 1"), (8, "answer 2")]
    assert (bool(member.requests), member.requests.waits_for()) == (False, set())
    member.ask(9, request=FindCoordinatorRequest(key="app", coordinator_keys=("app",)))
    assert not member.requests.only_beats
    assert member.go_on() == [(9, "answer 3")]


def test_with_a_connection_everything_fails_that_is_under_way_there() -> None:
    member = Member()
    member.ask(1, due_ms=1_000)
    member.ask(2, due_ms=2_000)
    member.ask(3, PARKING, due_ms=3_000)
    member.requests.give_up(1_000)
    late = "no answer came in time"
    assert sorted(member.go_on()) == [(1, late), (2, late), (3, "answer 3")]
    assert member.requests.working(0) is None


def test_what_is_abandoned_is_not_told() -> None:
    member = Member()
    member.ask(1)
    member.ask(2)
    member.requests.abandon(1)
    member.requests.abandon(1)
    assert member.go_on() == [(2, "an answer was not wanted any more")]


def test_what_was_heard_too_late_by_somebody_who_stood_still_is_not_told() -> None:
    member = Member()
    member.ask(1)
    while member.agenda.next_ms() is not None:
        member.agenda.do_next()
    assert len(member.backlog) == 1
    member.requests.give_up(1_000)
    assert member.go_on() == [(1, "no answer came in time")]


@pytest.mark.parametrize("gone", ["reset", "leave"])
def test_all_connections_are_gone(gone: str) -> None:
    member = Member()
    member.ask(1)
    member.ask(2, PARKING)
    member.requests.leave(5, "it is no coordinator")
    assert member.requests.working(0)
    if gone == "reset":
        member.requests.reset()
    else:
        member.requests.leave(0, "the connection was reset")
    assert sorted(member.go_on()) == [(1, "the connection was reset"), (2, "the connection was reset")]


def test_losses_are_not_noticed() -> None:
    member = Member()
    member.ask(1)
    assert member.requests.working(0)
    member.requests.lose(requests=True)
    assert member.requests.working(0) is None
    assert member.go_on() == []
    assert member.requests


def test_who_is_gone_hears_nothing() -> None:
    member = Member()
    member.ask(1)
    member.requests.close()
    assert member.go_on() == []

from typing import Any

from groupcoord.testing.simulation.agenda import Agenda
from groupcoord.testing.simulation.network import LONGEST_USUAL_MS, Connection, Network


class Wire:
    """One connection of one member, with a broker that notes what comes."""

    def __init__(self) -> None:
        self.agenda = Agenda()
        self.network = Network(self.agenda, 7, self._arrived)
        self.heard: list[tuple[int, Any]] = []
        self.arrived: list[tuple[int, Any]] = []
        self.connection = self.network.connect(0, 0, 0, lambda number, said: self.heard.append((number, said)))

    def _arrived(self, connection: Connection, number: int, request: Any) -> None:
        assert connection is self.connection
        self.arrived.append((number, request))

    def send(self, number: int) -> None:
        self.network.send(self.connection, number, f"request {number}", routine=False)

    def run(self) -> None:
        while self.agenda.next_ms() is not None:
            self.agenda.do_next()


def test_a_broker_answers_one_after_the_other() -> None:
    wire = Wire()
    wire.send(1)
    wire.send(2)
    wire.run()
    assert wire.arrived == [(1, "request 1")]
    wire.network.answer(wire.connection, 1, "first")
    wire.run()
    assert wire.arrived == [(1, "request 1"), (2, "request 2")]
    assert wire.heard == [(1, "first")]
    assert wire.agenda.now_ms <= 3 * LONGEST_USUAL_MS


def test_what_is_on_its_way_is_lost_with_the_connection() -> None:
    wire = Wire()
    wire.send(1)
    wire.connection.loses_requests = True
    wire.send(2)
    wire.run()
    assert wire.arrived == []


def test_an_answer_is_lost_if_nobody_listens_any_more() -> None:
    for broken in ("closed", "loses_answers"):
        wire = Wire()
        wire.send(1)
        wire.run()
        wire.network.answer(wire.connection, 1, "first")
        setattr(wire.connection, broken, True)
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
    assert wire.agenda.now_ms > 5_000
    assert wire.network.cut_until(0) is None
    link.cut_until_ms, link.loses = 10_000, True
    wire.send(2)
    link.heal()
    wire.send(3)
    wire.run()
    assert wire.arrived == [(1, "request 1")]

"""The network between members and brokers, as TCP is: in order within a connection, in any order across connections.

A connection that breaks takes along what is on its way, and the member may learn of that at once or never. A broker answers
the requests of a connection one by one. What a member has sent before it is gone is still handled.
"""

from collections import deque
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

from groupcoord.testing.simulation.agenda import Agenda
from groupcoord.testing.simulation.dice import drawn

LONGEST_USUAL_MS = 20
"""So long a message takes at most, unless a plan says otherwise."""

_UP, _DOWN = 0, 1
_RANKS = 8
ARRIVES_AT_BROKER, ARRIVES_AT_MEMBER, MEMBER_ACTS, MEMBER_COMMITS = range(4)


def rank(slot: int, what: int) -> int:
    """Where in one moment something of a member has its place: behind what is done to the world."""
    return _RANKS * (slot + 1) + what


class Link:
    """Everything between one member and all brokers."""

    def __init__(self) -> None:
        self.slow_until_ms = 0
        self.slow_by_ms = 0
        self.cut_until_ms = 0
        self.loses = False

    def heal(self) -> None:
        """As if nothing had ever been wrong."""
        self.slow_until_ms = self.cut_until_ms = 0


class Connection:
    """One connection of a member to a broker; ``hear`` is called with the number of a request and its response."""

    __slots__ = (
        "broker",
        "busy",
        "closed",
        "down_floor_ms",
        "hear",
        "lane",
        "loses_answers",
        "loses_requests",
        "number",
        "queue",
        "routine",
        "slot",
        "up_floor_ms",
    )

    def __init__(self, number: int, slot: int, lane: int, broker: int, hear: Callable[[int, Any], None]) -> None:
        self.number, self.slot, self.lane, self.broker, self.hear = number, slot, lane, broker, hear
        self.closed = self.loses_requests = self.loses_answers = self.busy = self.routine = False
        self.queue: deque[tuple[int, Any]] = deque()
        self.up_floor_ms = self.down_floor_ms = 0


class Network:
    """Carries requests to ``arrived`` and answers back. ``key`` is of its chance."""

    def __init__(self, agenda: Agenda, key: int, arrived: Callable[[Connection, int, Any], None]) -> None:
        self._agenda = agenda
        self._key = key
        self._arrived = arrived
        self._numbers = count(1)
        self.links: dict[int, Link] = {}

    def connect(self, slot: int, lane: int, broker: int, hear: Callable[[int, Any], None]) -> Connection:
        """A new connection."""
        return Connection(next(self._numbers), slot, lane, broker, hear)

    def link(self, slot: int) -> Link:
        """What is between that member and the brokers."""
        found = self.links.get(slot)
        if found is None:
            found = self.links[slot] = Link()
        return found

    def is_usual(self, slot: int) -> bool:
        """Do messages of that member arrive, and none later than usual?"""
        link = self.link(slot)
        return link.slow_until_ms <= self._agenda.now_ms and link.cut_until_ms <= self._agenda.now_ms

    def cut_until(self, slot: int) -> int | None:
        """Until when that member is cut off (ms), if it is."""
        until_ms = self.link(slot).cut_until_ms
        return None if until_ms <= self._agenda.now_ms else until_ms

    def send(self, connection: Connection, number: int, request: Any, *, routine: bool) -> None:
        """A request goes out. ``routine`` says that it is that of a member at rest and changes nothing for others."""
        at_ms = self._arrival(connection, _UP)
        if at_ms is None:
            return
        connection.up_floor_ms = at_ms
        connection.routine = routine
        rank_of = rank(connection.slot, ARRIVES_AT_BROKER)
        self._agenda.at(at_ms, rank_of, lambda: self._at_broker(connection, number, request), routine=routine)

    def answer(self, connection: Connection, number: int, response: Any) -> None:
        """An answer goes back, and the broker turns to the next request of that connection."""
        connection.busy = False
        at_ms = self._arrival(connection, _DOWN)
        if at_ms is not None:
            connection.down_floor_ms = at_ms
            rank_of = rank(connection.slot, ARRIVES_AT_MEMBER)
            routine = connection.routine and self.is_usual(connection.slot)
            self._agenda.at(at_ms, rank_of, lambda: _at_member(connection, number, response), routine=routine)
        if connection.queue:
            following, request = connection.queue.popleft()
            connection.busy = True
            rank_of = rank(connection.slot, ARRIVES_AT_BROKER)
            self._agenda.at(self._agenda.now_ms, rank_of, lambda: self._arrived(connection, following, request))

    def usual_times(self, connection: Connection, sent_ms: int) -> Iterator[int]:
        """When a request that is sent at ``sent_ms`` is at the broker; then when its answer, given at once, is back."""
        arrived_ms = sent_ms + self._delay_ms(connection, _UP, sent_ms, LONGEST_USUAL_MS)
        yield arrived_ms
        yield arrived_ms + self._delay_ms(connection, _DOWN, arrived_ms, LONGEST_USUAL_MS)

    def _delay_ms(self, connection: Connection, direction: int, now_ms: int, longest_ms: int) -> int:
        return 1 + drawn(self._key, connection.slot, connection.lane, direction, now_ms) % longest_ms

    def _at_broker(self, connection: Connection, number: int, request: Any) -> None:
        if connection.loses_requests:
            return
        if connection.busy:
            connection.queue.append((number, request))
            connection.routine = False
            return
        connection.busy = True
        self._arrived(connection, number, request)

    def _arrival(self, connection: Connection, direction: int) -> int | None:
        """When something that leaves now is there; None: never."""
        if connection.loses_requests if direction == _UP else connection.loses_answers:
            return None
        now_ms = self._agenda.now_ms
        link = self.link(connection.slot)
        if now_ms < link.slow_until_ms:
            at_ms = now_ms + self._delay_ms(connection, direction, now_ms, max(link.slow_by_ms, 1))
        else:
            at_ms = now_ms + self._delay_ms(connection, direction, now_ms, LONGEST_USUAL_MS)
        if now_ms < link.cut_until_ms:
            if link.loses:
                connection.loses_requests = connection.loses_answers = (
                    True  # what comes behind it can not be delivered either
                )
                return None
            at_ms += link.cut_until_ms - now_ms
        floor_ms = connection.up_floor_ms if direction == _UP else connection.down_floor_ms
        return max(at_ms, floor_ms)


def _at_member(connection: Connection, number: int, response: Any) -> None:
    if not connection.closed and not connection.loses_answers:
        connection.hear(number, response)

"""A fixed list of events of a group, and the text that the narrator prints for them.

``python -m tests.cli.demo.narration`` rewrites the golden text; check that each changed line is right.
"""

from pathlib import Path
from typing import Any

from groupcoord.cli.demo.narrator import Narrator
from groupcoord.coordinator import events as e
from groupcoord.core.events import Cause, Event
from tests.cli.demo.support import GROUP, TOPIC, Screen, asked, fired, owned

GOLDEN = Path(__file__).parent / "golden" / "narration.txt"

PY = "kafka-python-00000000-0000-4000-8000-000000000001"
CONFLUENT = "confluent-00000000-0000-4000-8000-000000000002"
AIO = "aiokafka-00000000-0000-4000-8000-000000000003"

OFFERS = {PY: ("sticky", "range", "roundrobin"), CONFLUENT: ("roundrobin", "range"), AIO: ("roundrobin",)}
CLIENTS = {PY: "kafka-python", CONFLUENT: "confluent", AIO: "aiokafka"}


class Life:
    """Writes events as the coordinator notes them."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.generation = 0

    def note(self, at_ms: int, cause: Cause, event: type[e.GroupEvent], **fields: Any) -> None:
        self.events.append(event(at_ms=at_ms, cause=cause, group=GROUP, **fields))

    def joins(self, at_ms: int, member: str, *, initial: bool = False) -> None:
        cause = asked("JoinGroup", CLIENTS[member])
        if initial:
            self.note(at_ms, cause, e.GroupCreated, simple=False)
        self.note(at_ms, cause, e.MemberIdAssigned, member=member)
        self.note(
            at_ms + 10,
            cause,
            e.MemberJoined,
            member=member,
            instance_id=None,
            client_id=CLIENTS[member],
            client_host="/127.0.0.1",
            protocols=OFFERS[member],
            session_timeout_ms=2_500,
            rebalance_timeout_ms=300_000,
            reason="",
        )
        self.rebalances(at_ms + 10, cause, f"member {member} is new", initial=initial)

    def rebalances(self, at_ms: int, cause: Cause, reason: str, *, initial: bool = False) -> None:
        self.note(
            at_ms,
            cause,
            e.RebalanceStarted,
            generation=self.generation,
            reason=reason,
            waits_ms=300 if initial else 300_000,
            initial=initial,
        )
        self.moves(at_ms, cause, "Empty" if initial else "Stable", "PreparingRebalance")

    def rejoins(self, at_ms: int, member: str) -> None:
        self.note(at_ms, asked("JoinGroup", CLIENTS[member]), e.MemberRejoined, member=member, changed=False, reason="")

    def begins(self, at_ms: int, protocol: str, votes: dict[str, int], owners: dict[str, str], leader: str) -> None:
        self.generation += 1
        cause = fired("join", "", at_ms)
        self.moves(at_ms, cause, "PreparingRebalance", "CompletingRebalance")
        self.note(
            at_ms,
            cause,
            e.GenerationStarted,
            generation=self.generation,
            protocol=protocol,
            votes=votes,
            leader=leader,
            members=tuple(owners),
        )
        cause = asked("SyncGroup", CLIENTS[leader])
        self.note(
            at_ms + 20, cause, e.AssignmentReceived, generation=self.generation, leader=leader, owners=owned(owners)
        )
        self.moves(at_ms + 20, cause, "CompletingRebalance", "Stable")

    def moves(self, at_ms: int, cause: Cause, origin: str, target: str) -> None:
        self.note(at_ms, cause, e.StateChanged, origin=origin, target=target, generation=self.generation)

    def commits(self, at_ms: int, member: str, offsets: dict[int, int]) -> None:
        self.note(
            at_ms,
            asked("OffsetCommit", CLIENTS[member]),
            e.OffsetsCommitted,
            member=member,
            generation=self.generation,
            offsets=tuple((TOPIC, number, offset) for number, offset in offsets.items()),
        )


def life() -> list[Event]:
    """Three come, one leaves, one dies, the last one leaves."""
    it = Life()
    it.joins(1_000, PY, initial=True)
    it.begins(1_310, "sticky", {"sticky": 1}, {PY: "0 1 2 3 4 5"}, PY)
    it.commits(2_000, PY, {0: 3, 1: 6})
    it.commits(3_000, PY, {0: 4, 5: 1})
    it.joins(3_500, CONFLUENT)
    it.rejoins(3_700, PY)
    it.begins(3_700, "range", {"range": 1, "roundrobin": 1}, {PY: "3 4 5", CONFLUENT: "0 1 2"}, PY)
    it.joins(5_000, AIO)
    it.rejoins(5_100, CONFLUENT)
    it.rejoins(5_200, PY)
    it.begins(5_200, "roundrobin", {"roundrobin": 3}, {AIO: "0 3", PY: "2 5", CONFLUENT: "1 4"}, PY)
    it.note(
        5_300,
        asked("OffsetCommit", "confluent"),
        e.RequestRefused,
        api="OffsetCommit",
        member=CONFLUENT,
        error="ILLEGAL_GENERATION",
        why="the generation of the request is 2, the group's is 3",
    )
    leave = asked("LeaveGroup", "aiokafka")
    it.note(7_000, leave, e.MemberRemoved, member=AIO, reason="it left", how=e.Departure.LEFT, timeout_ms=None)
    it.rebalances(7_000, leave, f"{AIO} left")
    it.rejoins(7_100, PY)
    it.rejoins(7_150, CONFLUENT)
    it.begins(7_150, "range", {"range": 1, "roundrobin": 1}, {PY: "3 4 5", CONFLUENT: "0 1 2"}, PY)
    death = fired("session", PY, 9_500)
    why = "nothing was heard of it in its session of 2500 ms"
    it.note(9_500, death, e.MemberRemoved, member=PY, reason=why, how=e.Departure.SESSION_OVER, timeout_ms=2_500)
    it.note(9_500, death, e.LeaderElected, leader=CONFLUENT, reason=f"the leader before, {PY}, is out")
    it.rebalances(9_500, death, f"member {PY} is out: {why}")
    it.rejoins(9_700, CONFLUENT)
    it.begins(9_700, "roundrobin", {"roundrobin": 1}, {CONFLUENT: "0 1 2 3 4 5"}, CONFLUENT)
    it.commits(10_000, CONFLUENT, {0: 40})
    leave = asked("LeaveGroup", "confluent")
    it.note(12_000, leave, e.MemberRemoved, member=CONFLUENT, reason="it left", how=e.Departure.LEFT, timeout_ms=None)
    it.rebalances(12_000, leave, f"{CONFLUENT} left")
    it.generation += 1
    it.moves(12_000, leave, "PreparingRebalance", "Empty")
    it.note(13_000, asked("DeleteGroups", "admin"), e.GroupRemoved, reason="it was deleted")
    return it.events


def narrated() -> str:
    """What the narrator says of ``life``; before each newcomer and at the end it is told what work was done."""
    screen = Screen()
    narrator = Narrator(screen.output, GROUP, TOPIC, 6)
    work = {"kafka-python": 7, "confluent": 0, "aiokafka": 1}
    for event in life():
        if isinstance(event, e.MemberIdAssigned) and narrator.history.generations:
            narrator.tell_work(event.at_ms, work)
        narrator.tell(event)
    narrator.tell_work(14_000, work)
    return screen.text


if __name__ == "__main__":
    GOLDEN.write_text(narrated(), encoding="utf-8")

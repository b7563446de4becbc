"""Random stories: moves told to a server one after the other, with everything written down that anybody is answered.

When is "no answer yet" sure? A coordinator serves the requests of one group in their order, and an answer that waits for the
log does not let later ones pass. So a heartbeat that nobody knows is sent after each move: once it is answered, whatever the
move set free has been answered too, and whoever is parked is asked whether something came.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from groupcoord.core.events import Event
from groupcoord.protocol.messages import DescribeGroupsRequest, HeartbeatRequest
from tests.conformance.actors import Client, Stagehand
from tests.conformance.admin import Admin
from tests.conformance.embedded import subscription
from tests.conformance.members import Member, protocols_of
from tests.conformance.moves import CAST, MEMBERS, Move
from tests.conformance.normalise import Names
from tests.conformance.settings import FAST
from tests.conformance.story import Line, Pending, Story, Tale
from tests.conformance.telling import tell
from tests.conformance.transcript import Step
from tests.conformance.virtual import VirtualTarget
from tests.conformance.wire import Hungup, Target, Wire

GLANCE_MS = 2
"""How long a parked connection is looked at; what is there was sent before, and only the last hop may still be under way."""

PROPERTIES = {**FAST.properties, "connections.max.idle.ms": "86400000"}
"""Those of the broker, but nobody is hung up on for being silent: time may pass here."""

PROMPT_MS = 1_000
"""How long what is due at once may take on a busy machine."""

VOCABULARY: Mapping[str, Any] = {
    "Admin": Admin,
    "Member": Member,
    "Stagehand": Stagehand,
    "protocols_of": protocols_of,
    "subscription": subscription,
}
"""What the lines of a random story speak of, besides its cast."""


class OwnNames(Names):
    """Many random stories live on one server, one after the other: nobody else's groups are of interest."""

    def own(self, name: str | None) -> bool:
        return (name or "").partition("-")[0] == self.story

    def random_ids(self) -> set[str]:
        """The random parts of all ids so far."""
        return set(self._random)


class PatientWire:
    """A wire that can say whether something came, without taking it."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._heard: list[bytes] = []
        self._broken = False

    def has_news(self, within_ms: int) -> bool:
        """Is there a frame to receive, or the end of the connection?"""
        if not self._heard and not self._broken:
            try:
                frame = self._wire.receive(within_ms)
            except Hungup:
                self._broken = True
            else:
                self._heard += [] if frame is None else [frame]
        return self._broken or bool(self._heard)

    def send(self, data: bytes) -> None:
        self._wire.send(data)

    def receive(self, within_ms: int) -> bytes | None:
        if self._heard:
            return self._heard.pop()
        if self._broken:
            raise Hungup("end of stream")
        return self._wire.receive(within_ms)

    def close(self) -> None:
        self._wire.close()


class PatientTarget:
    """A target whose wires are patient."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self.usually_ms = target.settle_ms
        self.settle_ms = PROMPT_MS

    def connect(self) -> Wire:
        return PatientWire(self._target.connect())

    def now_ms(self) -> int:
        return self._target.now_ms()

    def wait(self, duration_ms: int) -> None:
        self._target.wait(duration_ms)


@dataclass(eq=False)
class Sent:
    """One line of the story as it went."""

    move: Move
    pending: Pending | None = None
    """The request that had to wait, if it had to."""


@dataclass(frozen=True)
class Heard:
    """A parked request that was answered, after all that was sent before."""

    actor: str
    pending: Pending
    newest: bool
    """Is it the answer that ``is_answered`` waits for unless told otherwise?"""


@dataclass(frozen=True)
class Silent:
    """A parked request that was not answered until the end."""

    actor: str
    pending: Pending


@dataclass(eq=False)
class Telling:
    """One telling of a random story: ``course`` is what came of it, in the order in which it came."""

    story: Story
    cast: dict[str, Any] = field(default_factory=dict)
    course: list[Sent | Heard | Silent] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.story.target = self._target = PatientTarget(self.story.target)
        self._stagehand = Stagehand(self.story)
        self.cast = {**VOCABULARY, "s": self.story}
        for line in CAST.values():
            exec(line, self.cast)

    @property
    def group_id(self) -> str:
        """The group that everything is about."""
        return str(self.cast["group"])

    @property
    def members(self) -> list[Member]:
        """All six."""
        return [self.cast[name] for name in MEMBERS]

    def do(self, move: Move) -> None:
        """Make ``move``, and write down whom it sets free."""
        result = eval(move.line(waits=move.may_wait), self.cast)
        sent = Sent(move)
        self.course.append(sent)
        if move.may_wait:
            step = self.story.steps[result.step - 1]
            if result.line.waiting is None:
                step["does"] = move.verb
            else:
                sent.pending = result
        if move.actor != "s":
            self.fence()
        self._listen()

    def fence(self) -> None:
        """Come back when the server has done what it was asked before, and what was due at once because of it."""
        question = HeartbeatRequest(group_id=self.group_id, generation_id=0, member_id="stagehand")
        self._stagehand.ask(question)
        patience = PROMPT_MS
        while (group := self._described()).group_state == "PreparingRebalance" and not group.members and patience:
            # Nobody is left to wait for: the timer of that rebalance is due at once, and fires when the server gets to it.
            self.story.target.wait(GLANCE_MS)
            patience -= GLANCE_MS
        # Likewise the first join of a group without members is answered by a timer that is due at once.
        promptly = group.group_state in {"Empty", "Dead"}
        self._target.settle_ms = PROMPT_MS if promptly else self._target.usually_ms
        # What the server did only just after its answer, such as taking the time, still belongs to the step before.
        self.story.end()

    def ids_now(self) -> set[str]:
        """The ids of the present members, as a description says."""
        return {member.member_id for member in self._described().members}

    def _described(self) -> Any:
        return self._stagehand.ask(DescribeGroupsRequest(groups=(self.group_id,))).groups[0]

    def finish(self) -> None:
        """Say of every request that was never answered that it was not, and look for answers that nobody asked for."""
        for member in self.members:
            for pending in list(member.parked):
                member.stays_unanswered(GLANCE_MS, pending)
                self.course.append(Silent(member.name, pending))
        for member in self.members:
            for line in member._lines:
                if line.waiting is None and _wire(line).has_news(1):
                    self.story.steps.append({"actor": member.name, "does": "gets an answer that it did not ask for"})

    def _listen(self) -> None:
        waiting: list[tuple[Client, Pending]] = [
            (member, pending) for member in self.members for pending in member.parked
        ]
        for member, pending in sorted(waiting, key=lambda pair: pair[1].step):
            if _wire(pending.line).has_news(GLANCE_MS):
                self.course.append(Heard(member.name, pending, newest=pending is member.parked[-1]))
                member.is_answered(pending)


@dataclass(frozen=True)
class Told:
    """A finished telling: its transcript, its course, and the random part of the ids given out, by the number of the move."""

    steps: list[Step]
    course: list[Sent | Heard | Silent]
    ids: dict[int, str]


def tell_moves(
    name: str,
    moves: Iterable[Move],
    target: Target,
    *,
    before: Callable[[int], None] = lambda _: None,
    after: Callable[[], None] = lambda: None,
) -> Told:
    """Tell ``moves`` as the story ``name``. ``before`` hears the number of each move, ``after`` may look at what it did."""
    course: list[Sent | Heard | Silent] = []
    ids: dict[int, str] = {}

    def body(story: Story) -> None:
        story.names = names = OwnNames(story=name, endpoints=story.names.endpoints)
        telling = Telling(story, course=course)
        seen: set[str] = set()
        for number, move in enumerate(moves):
            before(number)
            telling.do(move)
            if move.verb == "joins":
                # At most one id is given out by a join; if its answer has to wait, a description says it.
                present = names.random_ids() | {member_id[-36:] for member_id in telling.ids_now()}
                for fresh in present - seen:
                    ids[number] = fresh
                seen |= present
            after()
        telling.finish()

    steps = tell(Tale(name, "random", "A random story.", FAST, (), (), 0, body), target)
    return Told(steps, course, ids)


def tell_to_groupcoord(
    name: str,
    moves: Iterable[Move],
    ids: Mapping[int, str] | None = None,
    *,
    after: Callable[[VirtualTarget], None] = lambda _: None,
    listener: Callable[[Event], None] = lambda _: None,
) -> Told:
    """Tell ``moves`` to a groupcoord of its own, which gives out ``ids`` as another server did.

    ``after`` may look into it after each move, and ``listener`` hears every event. Who leads next may depend on ids: it is the
    first in the order of Java's hash map. Raises AssertionError if something goes wrong in the server that nobody expected.
    """
    target = VirtualTarget(PROPERTIES, name)
    target.dispatcher._listeners = (listener,)
    mine = dict(ids or {})
    number = 0
    chance = target.node.coordinator.shards[0].new_uuid

    def before(next_number: int) -> None:
        nonlocal number
        number = next_number

    def new_uuid() -> str:
        return mine.pop(number, None) or chance()

    for shard in target.node.coordinator.shards:
        shard.new_uuid = new_uuid
    told = tell_moves(name, moves, target, before=before, after=lambda: after(target))
    for unexpected in target.unexpected_errors:
        raise AssertionError("an error that nobody meant to raise") from unexpected.error
    return told


def _wire(line: Line) -> PatientWire:
    assert isinstance(line.wire, PatientWire)
    return line.wire

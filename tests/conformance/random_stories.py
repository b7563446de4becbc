"""Plays random stories: sends one move after the other to a server, and records every response.

When is "no answer yet" sure? A coordinator serves the requests of one group in their order, and an answer that waits for the
log does not let later ones pass. So a heartbeat that nobody knows is sent after each move: once it is answered, whatever the
move set free has been answered too. An answer may still be on its way then, so whoever is parked is not only asked whether
something came, but waited for if it must: groupcoord, told the same at the same time, says who should have an answer.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from groupcoord.core.effects import event_listener
from groupcoord.core.events import Event
from groupcoord.protocol.messages import DescribeGroupsRequest, HeartbeatRequest
from tests.conformance.actors import Stagehand
from tests.conformance.admin import Admin
from tests.conformance.embedded import subscription
from tests.conformance.members import Member, protocols_of
from tests.conformance.moves import CAST, LOOKS, MEMBERS, Move
from tests.conformance.normalise import Names
from tests.conformance.settings import FAST
from tests.conformance.story import Line, Pending
from tests.conformance.telling import breaking_off, new_story, read_what_is_left
from tests.conformance.transcript import Step, as_recorded
from tests.conformance.virtual import VirtualTarget
from tests.conformance.wire import Hungup, Target, Wire

GLANCE_MS = 2
"""How long parked connections are looked at, all together, where no answer should be."""

PROPERTIES = {**FAST.properties, "connections.max.idle.ms": "86400000"}
"""Those of the broker, but nobody is hung up on for being silent: time may pass here."""

PROMPT_MS = 10_000
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
        self.settle_ms = target.settle_ms

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


@dataclass(frozen=True)
class Told:
    """A finished telling: its transcript, its course, and the random part of the ids given out, by the number of the move."""

    steps: list[Step]
    course: list[Sent | Heard | Silent]
    ids: dict[int, str]


class Telling:
    """A random story called ``name``, told to ``target``: each move ``makes`` and then ``listens``; in the end ``finish``.

    Once it broke off, nothing more is done.
    """

    def __init__(self, name: str, target: Target) -> None:
        self.story = new_story(name, PatientTarget(target))
        self.story.names = self._names = OwnNames(story=name, endpoints=self.story.names.endpoints)
        self._course: list[Sent | Heard | Silent] = []
        self._ids: dict[int, str] = {}
        self._seen: set[str] = set()
        self._number = -1
        self._unanswered: dict[int, tuple[Member, Pending]] = {}
        self._stagehand = Stagehand(self.story)
        self._cast: dict[str, Any] = {**VOCABULARY, "s": self.story}
        with breaking_off(self.story):
            for line in CAST.values():
                exec(line, self._cast)

    @property
    def waiting(self) -> frozenset[int]:
        """The numbers of the moves whose requests were not answered so far."""
        return frozenset(self._unanswered)

    def makes(self, move: Move) -> str | None:
        """Make the next move, and come back when the server has done it, and what was due at once because of it.

        Returns the random part of the id that was given out for it, if one was.
        """
        self._number += 1
        if self._is_over():
            return None
        with breaking_off(self.story):
            result = eval(move.line(waits=move.may_wait), self._cast)
            sent = Sent(move)
            self._course.append(sent)
            if move.may_wait and result.line.waiting is not None:
                sent.pending = result
                self._unanswered[self._number] = (self._cast[move.actor], result)
            elif move.may_wait:
                self._step_of(result)["does"] = move.verb
            if move.actor != "s" and move not in LOOKS:  # who only looks sets nobody free
                group = self._fence()
                if move.verb == "joins":
                    # At most one id is given out by a join; if its answer has to wait, a description says it.
                    described = {member.member_id[-36:] for member in group.members}
                    for fresh in (self._names.random_ids() | described) - self._seen:
                        self._ids[self._number] = fresh
                    self._seen |= described
        return self._ids.get(self._number)

    def listens(self, waiting: Collection[int] | None = None) -> None:
        """Write down whom the last move set free.

        ``waiting`` is what another server left unanswered. An answer that it gave is waited for, however slow a machine, a
        garbage collector or a proxy may be; any other is only looked for, now and after each later move that does something.
        """
        if self._is_over():
            return
        with breaking_off(self.story):
            due = set() if waiting is None else self._unanswered.keys() - waiting
            only_looked = isinstance(last := self._course[-1], Sent) and last.move in LOOKS
            if self._number in due:
                self._hear_what_was_said_at_once()
            glance_ms = GLANCE_MS
            for number, (member, pending) in [*self._unanswered.items()]:
                if pending not in member.parked:
                    del self._unanswered[number]  # whoever asked is gone
                    continue
                is_due = number in due
                if only_looked and not is_due:
                    continue
                patience_ms = PROMPT_MS if is_due else glance_ms
                if not is_due:
                    glance_ms = 0  # the others were looked at as long by then
                if _wire(pending.line).has_news(patience_ms):
                    self._course.append(Heard(member.name, pending, newest=pending is member.parked[-1]))
                    del self._unanswered[number]
                    member.is_answered(pending)
            self._seen |= self._names.random_ids()

    def finish(self) -> Told:
        """Say of every request that was never answered that it was not, and look for answers that nobody asked for."""
        try:
            if not self._is_over():
                with breaking_off(self.story):
                    self._look_around()
                    read_what_is_left(self.story)
        finally:
            self.story.close()
        return Told(as_recorded(self.story.steps), self._course, self._ids)

    def _is_over(self) -> bool:
        return bool(self.story.steps) and self.story.steps[-1]["actor"] == "story"

    def _step_of(self, pending: Pending) -> Step:
        return self.story.steps[pending.step - 1]

    def _hear_what_was_said_at_once(self) -> None:
        """The last move has to wait for nobody, its answer only took longer than that takes as a rule."""
        member, pending = self._unanswered[self._number]
        if not _wire(pending.line).has_news(PROMPT_MS):
            return
        step, sent = self._step_of(pending), self._course[-1]
        assert isinstance(sent, Sent)
        step["does"], sent.pending = sent.move.verb, None
        del self._unanswered[self._number]
        member.parked.remove(pending)
        answer = self.story.receive(step, pending)
        if answer is not None:
            member.learns(answer)

    def _look_around(self) -> None:
        members: list[Member] = [self._cast[name] for name in MEMBERS]
        for member in members:
            for pending in list(member.parked):
                member.stays_unanswered(GLANCE_MS, pending)
                self._course.append(Silent(member.name, pending))
        for member in members:
            for line in member._lines:
                if line.waiting is None and _wire(line).has_news(1):
                    self.story.steps.append({"actor": member.name, "does": "gets an answer that it did not ask for"})

    def _fence(self) -> Any:
        """The group as it is when everything that was sent before is done."""
        question = HeartbeatRequest(group_id=self._cast["group"], generation_id=0, member_id="stagehand")
        self._stagehand.ask(question)
        patience = PROMPT_MS
        while (group := self._described()).group_state == "PreparingRebalance" and not group.members and patience > 0:
            # Nobody is left to wait for: the timer of that rebalance is due at once, and fires when the server gets to it.
            self.story.target.wait(GLANCE_MS)
            patience -= GLANCE_MS
        # What the server did only just after its answer, such as taking the time, still belongs to the step before.
        self.story.end()
        return group

    def _described(self) -> Any:
        return self._stagehand.ask(DescribeGroupsRequest(groups=(self._cast["group"],))).groups[0]


class OwnTelling(Telling):
    """Told to a groupcoord of its own, which gives out the ids it is told, as another server did.

    Who leads next may depend on ids: it is the first in the order of Java's hash map. ``listener`` hears every event.
    """

    def __init__(self, name: str, listener: Callable[[Event], None] = lambda _: None) -> None:
        self.target = VirtualTarget(PROPERTIES, name)
        self.target.serving_loop._listeners = (event_listener(listener),)
        self._given: str | None = None
        chance = self.target.node.coordinator.shards[0].machine.new_uuid

        def new_uuid() -> str:
            given, self._given = self._given, None
            return given or chance()

        for shard in self.target.node.coordinator.shards:
            shard.machine.new_uuid = new_uuid
        super().__init__(name, self.target)

    def does(self, move: Move, given: str | None = None) -> None:
        """Make a move and listen; if the server gives out an id because of it, it is to end in ``given``."""
        self._given = given
        self.makes(move)
        self.listens()

    def finish(self) -> Told:
        """Raises AssertionError if something went wrong in the server that nobody expected."""
        told = super().finish()
        for unexpected in self.target.unexpected_errors:
            raise AssertionError("an error that nobody meant to raise") from unexpected.error
        return told


def tell_to_groupcoord(
    name: str,
    moves: Iterable[Move],
    *,
    after: Callable[[VirtualTarget], None] = lambda _: None,
    listener: Callable[[Event], None] = lambda _: None,
) -> Told:
    """Tell ``moves`` to groupcoord alone. ``after`` may look into it after each move, and ``listener`` hears every event."""
    telling = OwnTelling(name, listener)
    for move in moves:
        telling.does(move)
        after(telling.target)
    return telling.finish()


def tell_to_both(name: str, moves: Iterable[Move], target: Target) -> tuple[Told, Told]:
    """Tell ``moves`` to ``target`` and to groupcoord, move by move, and return what both did.

    groupcoord gives out the same ids. It knows at once who has to wait, on its own clock; a real broker is asked for what
    groupcoord answered for as long as it takes, so that none differs for being slow.
    """
    theirs, ours = Telling(name, target), OwnTelling(name)
    for move in moves:
        given = theirs.makes(move)
        ours.does(move, given)
        theirs.listens(ours.waiting)
    return theirs.finish(), ours.finish()


def _wire(line: Line) -> PatientWire:
    assert isinstance(line.wire, PatientWire)
    return line.wire

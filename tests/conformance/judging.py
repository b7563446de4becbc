"""Plays a random story on a real broker and on groupcoord, compares the transcripts, and saves the first difference."""

import itertools
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from tests.conformance import laws
from tests.conformance.compare import explain
from tests.conformance.keeping import STORY, keep
from tests.conformance.moves import MEMBERS, Move, watched
from tests.conformance.pasting import pasted
from tests.conformance.random_stories import tell_to_both
from tests.conformance.transcript import Step
from tests.conformance.wire import Target

LONGEST_MS = 240_000
"""A telling that takes longer says nothing: on the virtual clock of groupcoord it takes less."""


class Differs(AssertionError):
    """groupcoord does something else than the broker."""


class Judge:
    """Compares; ``steps`` is how many moves were compared, ``outcomes`` how often what happened.

    The stories are called after ``name``, by which no other judge of this broker has called any.
    The broker is held to the laws as well: they would not be laws otherwise.
    The first story that shows a difference is left in a folder of its own in ``keep_in``: told again, it may show none.
    """

    def __init__(self, broker: Target, name: str, keep_in: Path) -> None:
        self.broker = broker
        self.keep_in = keep_in
        self.steps = 0
        self.stories = 0
        self.outcomes: Counter[str] = Counter()
        self.differing: Sequence[Move] | None = None
        """The story that shows a difference."""
        self.first: Sequence[str] = ()
        """The first difference, in words."""
        self.kept: Path | None = None
        """Where the story that showed it is left."""
        self.heard: Sequence[Step] = ()
        """The broker's transcript of the last story."""
        self._names = (f"{name}x{number}" for number in itertools.count(1))

    def tell(self, moves: Sequence[Move]) -> None:
        """Tell ``moves``, with a look after each. Raises Differs."""
        difference = self.difference(watched(moves))
        if difference:
            self.differing = moves
            raise Differs("\n".join(difference))
        laws.check(self.heard)
        self.steps += len(moves)
        self.stories += 1

    def difference(self, moves: Sequence[Move]) -> list[str]:
        """The first step in which the two differ, in words; empty if there is none."""
        name = next(self._names)
        began_ms = self.broker.now_ms()
        theirs, ours = tell_to_both(name, moves, self.broker)
        took_ms = self.broker.now_ms() - began_ms
        # The first join of a new member expires after five minutes, whatever it asks for.
        assert took_ms < LONGEST_MS, f"the broker took {took_ms} ms for a story: its timers will have fired"
        self.heard = theirs.steps
        self._count(theirs.steps)
        difference = explain(theirs.steps, ours.steps)
        if difference and self.kept is None:
            self.first, self.kept = difference, self.keep_in / name
            keep(self.kept, theirs, ours, difference)
        return difference

    def report(self) -> str:
        """As little of the story that shows a difference as still shows one, to be pasted, and the difference.

        If it does not show one again, the first difference and the whole story. Either way where that story is left.
        """
        assert self.differing is not None
        assert self.kept is not None
        where = f"the story that showed it first, and what both did: {self.kept}"
        moves: Sequence[Move] = watched(self.differing)
        if not self.difference(moves):
            story = (self.kept / STORY).read_text()
            once = "the broker and groupcoord differed, and not when told again:"
            return "\n".join([once, *self.first, where, "", story])
        moves = without_needless(moves, lambda fewer: bool(self.difference(fewer)))
        difference = self.difference(moves)
        told, _ = tell_to_both(next(self._names), moves, self.broker)
        return "\n".join(["the broker and groupcoord differ:", *difference, where, "", pasted(told.course)])

    def _count(self, steps: Sequence[dict[str, object]]) -> None:
        for step in steps:
            match step:
                case {"sends": {**sent}, "gets": {"error_code": error}}:
                    self.outcomes[f"{next(iter(sent))}: {error}"] += 1
                case {"sends": {**sent}, "gets": str(nothing)}:
                    self.outcomes[f"{next(iter(sent))}: {nothing}"] += 1
                case {"does": "describes", "gets": {"groups": [{"group_state": state, "members": [*members]}]}}:
                    self.outcomes[f"{state} with {len(members)}"] += 1


def without_needless(moves: Sequence[Move], differs: Callable[[Sequence[Move]], bool]) -> Sequence[Move]:
    """``moves`` without all that can be left out so that they still differ.

    Hypothesis could do this, but it shrinks what it drew and not what came of it, and a real broker gives it no time.
    """
    before: Sequence[Move] = ()
    while len(moves) != len(before):
        before = moves
        for fewer in (_without_pieces, _without_a_member):
            moves = fewer(moves, differs)
    return _plainer(moves, differs)


def _without_pieces(moves: Sequence[Move], differs: Callable[[Sequence[Move]], bool]) -> Sequence[Move]:
    """Large pieces go first, and late ones."""
    size = len(moves)
    while size := size // 2:
        end = len(moves)
        while end > 0:
            fewer = [*moves[: max(0, end - size)], *moves[end:]]
            if differs(fewer):
                moves = fewer
            end -= size
    return moves


def _without_a_member(moves: Sequence[Move], differs: Callable[[Sequence[Move]], bool]) -> Sequence[Move]:
    """What one member does may only matter because of what it did before."""
    for name in MEMBERS:
        fewer = [move for move in moves if move.actor != name]
        if len(fewer) < len(moves) and differs(fewer):
            moves = fewer
    return moves


def _plainer(moves: Sequence[Move], differs: Callable[[Sequence[Move]], bool]) -> Sequence[Move]:
    """Leaves unsaid what need not be said; where it need, both tellings break off alike."""
    for number in range(len(moves)):
        for at in reversed(range(len(moves[number].arguments))):
            move = moves[number]
            plainer = replace(move, arguments=(*move.arguments[:at], *move.arguments[at + 1 :]))
            changed = [*moves[:number], plainer, *moves[number + 1 :]]
            if differs(changed):
                moves = changed
    return moves

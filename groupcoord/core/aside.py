"""Work that takes long: only its arguments go into it, so that it can be done elsewhere while others are served.

A pure part hands it to an ``Aside`` with what is to follow from it. Nothing else changes: ``at_once`` does it on the spot.
"""

from collections.abc import Callable, Generator
from typing import Any, Protocol, TypeVar

from groupcoord.core.effects import Call, Effect
from groupcoord.core.turn import Turn

T = TypeVar("T")

Work = Generator[None, None, T]
"""Returns what it came to, and yields between pieces that can be done at different times."""

Then = Callable[[Any, int], list[Effect]]
"""What follows from what the work came to, and from the time it is then (ms)."""

Submit = Callable[[Call, Work[Any], Then], None]
"""Have the work for a call done; whoever has it done carries out what follows."""


class Aside(Protocol):
    """Has work done."""

    def __call__(self, turn: Turn, call: Call, work: Work[T], then: Callable[[Turn, T], None], /) -> None:
        """Do ``work`` for ``call`` and then ``then``, in this turn or in a later one."""


def at_once(turn: Turn, _call: Call, work: Work[T], then: Callable[[Turn, T], None]) -> None:
    """Do it in this turn."""
    then(turn, finished(work))


def finished(work: Work[T]) -> T:
    """What ``work`` comes to."""
    while True:
        try:
            next(work)
        except StopIteration as end:
            result: T = end.value
            return result

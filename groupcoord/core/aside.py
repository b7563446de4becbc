"""Work that takes long: only its arguments go into it, so that it can be done elsewhere while others are served.

A pure part hands it to an ``Aside`` with what is to follow from it. Nothing else changes: ``at_once`` does it on the spot.
"""

from collections.abc import Callable, Generator
from typing import Any, Protocol, TypeVar

from groupcoord.core.effects import Call, Effect
from groupcoord.core.handler_context import HandlerContext

T = TypeVar("T")

Work = Generator[None, None, T]
"""Returns what it came to, and yields between pieces that can be done at different times."""

Then = Callable[[Any, int], list[Effect]]
"""What follows from what the work came to, and from the time it is then (ms)."""

Submit = Callable[[Call | None, Work[Any], Then], None]
"""Have the work for a call done, or, without one, what nobody waits for; whoever has it done carries out what follows."""

Steps = Generator[Work[Any], tuple[HandlerContext, Any], Any]
"""Yields one work after the other, and is sent what each came to, in the turn that it is then."""


class Aside(Protocol):
    """Has work done."""

    def __call__(
        self, ctx: HandlerContext, call: Call | None, work: Work[T], then: Callable[[HandlerContext, T], None], /
    ) -> None:
        """Do ``work``, for ``call`` if there is one, and then ``then``, in this turn or in a later one."""


def at_once(ctx: HandlerContext, _call: Call | None, work: Work[T], then: Callable[[HandlerContext, T], None]) -> None:
    """Do it in this turn."""
    then(ctx, finished(work))


def finished(work: Work[T]) -> T:
    """What ``work`` comes to."""
    while True:
        try:
            next(work)
        except StopIteration as end:
            result: T = end.value
            return result


def in_steps(aside: Aside, ctx: HandlerContext, steps: Steps) -> None:
    """Have all that ``steps`` yields done by ``aside``, one after the other, for nobody who waits."""
    arrived: list[tuple[HandlerContext, Any]] = []
    going = False

    def go_on(later: HandlerContext, result: Any) -> None:
        nonlocal going
        arrived.append((later, result))
        if going:  # it was done at once: the loop below goes on, however many steps there are
            return
        going = True
        try:
            while arrived:
                now, came = arrived.pop()
                aside(now, None, steps.send((now, came)), go_on)
        except StopIteration:
            pass
        finally:
            going = False

    work = next(steps, None)
    if work is not None:
        aside(ctx, None, work, go_on)

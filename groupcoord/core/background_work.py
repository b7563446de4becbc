"""Long computations without shared state, such as decompression, which a thread can therefore run while requests are served.

Pure code passes such work to a ``WorkRunner`` with a callback. ``run_inline`` does the work immediately and then calls the
callback.
"""

from collections.abc import Callable, Generator
from typing import Any, Protocol, TypeVar

from groupcoord.core.effect_collector import HandlerContext
from groupcoord.core.effects import Call, Effect

T = TypeVar("T")

BackgroundWork = Generator[None, None, T]
"""Returns its result, and yields between pieces that can run at different times."""

OnWorkDone = Callable[[Any, int], list[Effect]]
"""Called with the result and the current time (ms); returns effects."""

SubmitWork = Callable[[Call | None, BackgroundWork[Any], OnWorkDone], None]
"""Runs work for a call (None: no request waits for it), then calls back and executes the effects."""

WorkSteps = Generator[BackgroundWork[Any], tuple[HandlerContext, Any], Any]
"""Yields works one after the other, and is sent the result of each with a new context."""


class WorkRunner(Protocol):
    """Runs work, at once or later."""

    def __call__(
        self,
        ctx: HandlerContext,
        call: Call | None,
        work: BackgroundWork[T],
        then: Callable[[HandlerContext, T], None],
        /,
    ) -> None:
        """Run ``work`` for ``call`` (None: no request waits for it), then call ``then`` with a new context."""


def run_inline(
    ctx: HandlerContext, _call: Call | None, work: BackgroundWork[T], then: Callable[[HandlerContext, T], None]
) -> None:
    """Run the work at once."""
    then(ctx, run_to_end(work))


def run_to_end(work: BackgroundWork[T]) -> T:
    """The result of ``work``, run without a pause."""
    while True:
        try:
            next(work)
        except StopIteration as end:
            result: T = end.value
            return result


def run_steps(runner: WorkRunner, ctx: HandlerContext, steps: WorkSteps) -> None:
    """Run all work that ``steps`` yields, one after the other, with ``runner``; no request waits for it."""
    arrived: list[tuple[HandlerContext, Any]] = []
    going = False

    def go_on(later: HandlerContext, result: Any) -> None:
        nonlocal going
        arrived.append((later, result))
        if going:  # the work ran inline: the loop below continues, instead of a deep recursion
            return
        going = True
        try:
            while arrived:
                now, came = arrived.pop()
                runner(now, None, steps.send((now, came)), go_on)
        except StopIteration:
            pass
        finally:
            going = False

    work = next(steps, None)
    if work is not None:
        runner(ctx, None, work, go_on)

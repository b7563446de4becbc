"""Routes of a broker's clock: showing it, listing pending deadlines, and advancing a manual clock."""

from typing import Annotated

from fastapi import Query

from groupcoord.control.models import Advance, AdvanceToNext, Clock, Deadline
from groupcoord.control.problem_documents import ProblemError
from groupcoord.control.route_dependencies import BODY, CONFLICT, Target, router
from groupcoord.control.routes.clusters import clock_of
from groupcoord.testing.waiting import WaitTimeoutError

clock = router("clock")


@clock.get("/clock", summary="Show the clock")
async def show_clock(cluster: Target) -> Clock:
    """The time, and what advances it, which is chosen when the broker starts: ``serve --clock``, or ``clock`` of
    ``POST /brokers``."""
    return clock_of(cluster)


@clock.get("/clock/deadlines", summary="List the pending deadlines")
async def list_deadlines(
    cluster: Target,
    group: Annotated[str | None, Query(description="only those of this group")] = None,
    everything: Annotated[bool, Query(description="also those that concern no group")] = False,
) -> list[Deadline]:
    """Session timeouts and other timers, earliest first, each with its reason."""
    return [Deadline.model_validate(each) for each in cluster.clock.deadlines(group=group, everything=everything)]


@clock.post("/clock/advance", summary="Advance a manual clock", responses=BODY | CONFLICT)
async def advance(body: Advance, cluster: Target) -> Clock:
    """Every timer that expires runs at its own time, in order, before the response comes: a session timeout of 45 s takes
    milliseconds."""
    async with cluster.changing:
        await cluster.clock.advance(body.seconds, heartbeats=body.heartbeats)
    return clock_of(cluster)


@clock.post("/clock/advance-to-next", summary="Advance a manual clock to the next deadline", responses=BODY | CONFLICT)
async def advance_to_next(cluster: Target, body: AdvanceToNext | None = None) -> Deadline:
    """The deadline expires; returns which one it was. 409 if none is pending."""
    body = body or AdvanceToNext()
    async with cluster.changing:
        try:
            passed = await cluster.clock.advance_to_next(group=body.group, heartbeats=body.heartbeats)
            return Deadline.model_validate(passed)
        except WaitTimeoutError as nothing:
            raise ProblemError(409, str(nothing)) from nothing

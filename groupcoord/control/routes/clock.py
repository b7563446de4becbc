"""The time of a broker."""

from typing import Annotated

from fastapi import Query

from groupcoord.control.models import Advance, AdvanceToNext, Clock, Deadline
from groupcoord.control.problems import ProblemError
from groupcoord.control.routes.brokers import clock_of
from groupcoord.control.routing import BODY, CONFLICT, Target, router
from groupcoord.testing.cluster_clock import PendingDeadline
from groupcoord.testing.waiting import WaitTimeoutError

clock = router("clock")


def _answer(seen: PendingDeadline) -> Deadline:
    return Deadline(
        at_ms=seen.at_ms,
        in_seconds=seen.in_seconds,
        kind=seen.kind,
        group=seen.group,
        member=seen.member,
        reason=seen.reason,
    )


@clock.get("/clock", summary="Show the time")
async def show_clock(cluster: Target) -> Clock:
    """And who moves it, which is chosen with the broker: ``serve --clock``, or ``clock`` of ``POST /brokers``."""
    return clock_of(cluster)


@clock.get("/clock/deadlines", summary="List what will happen if nothing else does")
async def list_deadlines(
    cluster: Target,
    group: Annotated[str | None, Query(description="only of this group")] = None,
    everything: Annotated[bool, Query(description="also what concerns no group")] = False,
) -> list[Deadline]:
    """Earliest first, each with its reason."""
    return [_answer(each) for each in cluster.clock.deadlines(group=group, everything=everything)]


@clock.post("/clock/advance", summary="Let time pass on a manual clock", responses=BODY | CONFLICT)
async def advance(body: Advance, cluster: Target) -> Clock:
    """Everything that falls due happens at its own moment, in order, before the answer comes: a session of 45 s runs out in
    milliseconds."""
    async with cluster.changing:
        await cluster.clock.advance(body.seconds, heartbeats=body.heartbeats)
    return clock_of(cluster)


@clock.post("/clock/advance-to-next", summary="Let time pass until the next deadline", responses=BODY | CONFLICT)
async def advance_to_next(cluster: Target, body: AdvanceToNext | None = None) -> Deadline:
    """That included; returns what it was. If nothing will ever happen by itself: 409."""
    body = body or AdvanceToNext()
    async with cluster.changing:
        try:
            return _answer(await cluster.clock.advance_to_next(group=body.group, heartbeats=body.heartbeats))
        except WaitTimeoutError as nothing:
            raise ProblemError(409, str(nothing)) from nothing

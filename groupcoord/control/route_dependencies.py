"""FastAPI dependencies and helpers that the routes share: the cluster that a path names, the ``timeout`` parameter, the refusal
of unknown query parameters, waiting, and the documented error responses."""

import asyncio
import re
from collections.abc import Coroutine, Iterator, Mapping
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Depends, Query, Request
from fastapi.dependencies.models import Dependant

from groupcoord.control.controlled_clusters import DEFAULT, ControlledCluster, ControlledClusters
from groupcoord.control.problem_documents import ProblemError, responses
from groupcoord.testing.faults.matching import suggestion
from groupcoord.testing.waiting import TIMEOUT_S

T = TypeVar("T")


def clusters_of(request: Request) -> ControlledClusters:
    """All clusters of the process."""
    found: ControlledClusters = request.app.state.clusters
    return found


def cluster_of(request: Request) -> ControlledCluster:
    """The cluster that the path of ``request`` names. Raises LookupError if it does not exist."""
    return clusters_of(request)[request.path_params.get("broker", DEFAULT)]


Clusters = Annotated[ControlledClusters, Depends(clusters_of)]
Target = Annotated[ControlledCluster, Depends(cluster_of)]

MOST_TIMEOUT_S = 600.0
"""The longest ``timeout`` of a request (seconds)."""
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|)", re.ASCII)
_SECONDS_IN = {"ms": 0.001, "s": 1.0, "m": 60.0, "": 1.0}


def timeout_s(
    timeout: Annotated[
        str,
        Query(
            description="how long to wait at most, in real time, up to 10m; then the status is 504",
            examples=["500ms"],
        ),
    ] = f"{TIMEOUT_S:g}s",
) -> float:
    """A duration such as ``10s``, ``500ms``, ``2m`` or ``10`` in seconds. Raises ProblemError."""
    found = _DURATION.fullmatch(timeout)
    if found is None:
        raise ProblemError.of_field("timeout", f"{timeout!r} is not a time: 10s, 500ms and 2m are")
    seconds = float(found[1]) * _SECONDS_IN[found[2]]
    if seconds > MOST_TIMEOUT_S:
        raise ProblemError.of_field("timeout", f"{timeout} is too long: a request waits 10m at most; ask again")
    return seconds


Timeout = Annotated[float, Depends(timeout_s)]


def _query_names(dependant: Dependant) -> Iterator[str]:
    for each in dependant.query_params:
        yield each.alias
    for inner in dependant.dependencies:
        yield from _query_names(inner)


def _known_parameters(request: Request) -> None:
    """Raises ProblemError if the request has a query parameter that the operation does not have."""
    known = list(_query_names(request.scope["route"].dependant))
    errors = [
        (name, f"there is no such parameter{suggestion(name, known)}" if known else "this takes no parameters")
        for name in request.query_params
        if name not in known
    ]
    if errors:
        raise ProblemError(422, "; ".join(f"{name}: {text}" for name, text in errors), errors=errors)


def router(tag: str) -> APIRouter:
    """A router for operations with this OpenAPI ``tag``."""
    return APIRouter(tags=[tag], dependencies=[Depends(_known_parameters)], responses=responses(401, 403, 404, 422))


BODY = responses(400, 413, 415)
"""The error responses of every operation that takes a body."""
CONFLICT = responses(409)
"""The error response of an operation that the broker may refuse in its present state."""
WAITS = responses(503, 504)
"""The error responses of a wait: the broker ends, or the time is over."""
TEXT: dict[int | str, dict[str, Any]] = {200: {"content": {"text/plain": {"schema": {"type": "string"}}}}}
"""The response is plain text."""


def require_one_of(asked: Mapping[str, object]) -> str:
    """The name of the only condition in ``asked`` that is given. Raises ProblemError for none and for several."""
    given = [name for name, value in asked.items() if value]
    if len(given) != 1:
        wrong = f"{' and '.join(given)} do not go together" if given else "no condition is given"
        raise ProblemError.of_field("query", f"{wrong}: one of {', '.join(asked)}")
    return given[0]


async def waited(cluster: ControlledCluster, wait: Coroutine[Any, Any, T]) -> T:
    """The result of ``wait``. Raises what ``wait`` raises, and ProblemError (503) if ``cluster`` ends meanwhile."""
    waiting = asyncio.ensure_future(wait)
    ending = asyncio.ensure_future(cluster.ending.wait())
    try:
        await asyncio.wait((waiting, ending), return_when=asyncio.FIRST_COMPLETED)
        if not waiting.done():
            raise ProblemError(503, "the broker ends")
        return waiting.result()
    finally:
        ending.cancel()
        waiting.cancel()


def partition_of(text: str, field: str) -> tuple[str, int]:
    """The partition that ``text`` names, such as ``orders:3``. Raises ProblemError."""
    topic, _, number = text.rpartition(":")
    if not (topic and number.isascii() and number.isdecimal()):
        raise ProblemError.of_field(field, f"{text!r} is no TOPIC:PARTITION, such as orders:3")
    return topic, int(number)

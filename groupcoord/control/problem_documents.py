"""Error responses of the control API: problem documents (RFC 9457) that name the wrong field and say what would be right, and
the exception handlers that produce them."""

import difflib
import logging
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import zip_longest
from typing import Any, get_args

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.routing import compile_path

from groupcoord.config.config_def import ConfigError
from groupcoord.control.models import FieldProblem, Problem
from groupcoord.testing.cluster_clock import ClockError
from groupcoord.testing.faults.matching import RuleProblems, suggestion
from groupcoord.testing.wait_reasons import ADVANCE
from groupcoord.testing.waiting import WaitTimeoutError

logger = logging.getLogger(__name__)

MEDIA_TYPE = "application/problem+json"
TITLES = {
    400: "Bad Request",
    401: "Unauthorized",
    403: "Forbidden",
    404: "Not Found",
    405: "Method Not Allowed",
    409: "Conflict",
    413: "Content Too Large",
    415: "Unsupported Media Type",
    422: "Unprocessable Content",
    500: "Internal Server Error",
    503: "Service Unavailable",
    504: "Gateway Timeout",
}


class ProblemError(Exception):
    """Raised by a route to respond with a problem document."""

    def __init__(
        self,
        status: int,
        detail: str,
        *,
        errors: Sequence[tuple[str, str]] = (),
        reasons: Sequence[str] = (),
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        self.headers = headers
        self.problem = Problem(
            title=TITLES[status],
            status=status,
            detail=detail,
            errors=[FieldProblem(field=field, problem=problem) for field, problem in errors],
            reasons=list(reasons),
        )

    @classmethod
    def of_field(cls, field: str, problem: str) -> "ProblemError":
        """The problem that one ``field`` is wrong."""
        return cls(422, f"{field}: {problem}", errors=[(field, problem)])

    def response(self) -> Response:
        """The HTTP response."""
        return JSONResponse(self.problem.model_dump(), self.problem.status, headers=self.headers, media_type=MEDIA_TYPE)


@contextmanager
def wrong_argument(field: str) -> Iterator[None]:
    """Turns a ValueError or TypeError that the block raises into a ProblemError of ``field``."""
    try:
        yield
    except (ValueError, TypeError) as error:
        raise ProblemError.of_field(field, str(error)) from error


def responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The ``responses=`` of a route that may answer with these error statuses; ControlApp.openapi adds their schema."""
    return {status: {"description": TITLES[status]} for status in statuses}


def install(app: FastAPI) -> None:
    """Add exception handlers to ``app``, so that every error becomes a problem document.

    They read the methods of each path from ``app.state.methods_of``.
    """
    handlers: dict[type[Exception], Callable[[Request, Any], ProblemError]] = {
        ProblemError: lambda _, error: error,
        RequestValidationError: _invalid,
        HTTPException: _refused,
        RuleProblems: lambda _, error: _of_fields((each.field, each.text) for each in error.problems),
        ConfigError: lambda _, error: ProblemError.of_field(f"config.{error.key}", str(error)),
        WaitTimeoutError: lambda _, error: _in_vain(error),
        LookupError: lambda request, error: (
            ProblemError(404, str(error)) if type(error) is LookupError else _failed(request, error)
        ),
        ValueError: lambda _, error: ProblemError(409, str(error)),
        ClockError: lambda _, error: ProblemError(409, f"{error}: it is chosen with the broker (clock, or --clock)"),
        ConnectionResetError: lambda *_: ProblemError(409, "the broker is stopped: POST /restart starts it again"),
        Exception: _failed,
    }
    for kind, problem_of in handlers.items():
        app.add_exception_handler(kind, _handler(problem_of))


def _handler(problem_of: Callable[[Request, Any], ProblemError]) -> Callable[[Request, Exception], Any]:
    async def handle(request: Request, error: Exception) -> Response:
        return problem_of(request, error).response()

    return handle


def _failed(request: Request, error: Exception) -> ProblemError:
    logger.error("%s %s failed", request.method, request.url.path, exc_info=error)
    return ProblemError(500, f"{type(error).__name__}: {error}")


def _in_vain(error: WaitTimeoutError) -> ProblemError:
    detail, *reasons = in_terms_of_http(str(error)).splitlines()
    return ProblemError(504, detail, reasons=[reason.strip() for reason in reasons])


def in_terms_of_http(text: str) -> str:
    """``text``, with the HTTP operation in place of the Python call that advances the clock."""
    return text.replace(ADVANCE, "POST /clock/advance")


def _of_fields(found: Iterable[tuple[str, str]]) -> ProblemError:
    errors = list(found)
    return ProblemError(422, "; ".join(f"{field}: {problem}" for field, problem in errors), errors=errors)


# Requests that FastAPI refuses.


def _invalid(request: Request, invalid: RequestValidationError) -> ProblemError:
    found = []
    for error in invalid.errors():
        where, *names = error["loc"]
        if error["type"] == "json_invalid":
            return ProblemError(400, f"the body is not JSON: {error['ctx']['error']} at character {names[0]}")
        if where == "body" and not names and not _is_json(request):
            if isinstance(error["input"], bytes):
                return ProblemError(415, "a body is JSON, and its Content-Type says so: application/json")
            return ProblemError.of_field("body", "it is missing: this takes a body of JSON")
        field = ".".join(map(str, names)) or "body"
        text = str(error["msg"]).removeprefix("Value error, ")
        if error["type"] == "extra_forbidden":
            text = f"there is no such field{suggestion(str(names[-1]), _siblings(request, names))}"
        found.append((field, text))
    return _of_fields(found)


def _is_json(request: Request) -> bool:
    return request.headers.get("content-type", "").partition(";")[0].strip() == "application/json"


def _siblings(request: Request, names: Sequence[str | int]) -> list[str]:
    """The fields of the object in which the last of ``names`` is not a field."""
    models = list(_models_in(request.scope["route"].body_field.field_info.annotation))
    for name in names[:-1]:
        inner = [model.model_fields[name].annotation for model in models if name in model.model_fields]
        if inner:  # otherwise ``name`` is a list index or a dictionary key
            models = [model for annotation in inner for model in _models_in(annotation)]
    return [name for model in models for name in model.model_fields]


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from _models_in(argument)


def _refused(request: Request, refusal: HTTPException) -> ProblemError:
    path, methods_of = request.url.path, request.app.state.methods_of
    if refusal.status_code == 404:
        return ProblemError(404, f"there is no path {path}; the nearest is {nearest_path(path, methods_of)}")
    if refusal.status_code == 405:
        methods = sorted(
            method for known, methods in methods_of.items() if compile_path(known)[0].match(path) for method in methods
        )
        return ProblemError(
            405,
            f"{request.method} is not for {path}: it takes {' and '.join(methods)}",
            headers={"Allow": ", ".join(methods)},
        )
    return ProblemError(refusal.status_code, str(refusal.detail))


def nearest_path(path: str, known: Iterable[str]) -> str:
    """The one of the ``known`` paths that is most similar to ``path``; a parameter in braces matches any segment."""
    asked = path.split("/")
    likeness = {}
    for each in known:
        parts = zip_longest(each.split("/"), asked[: each.count("/") + 1], fillvalue="")
        filled = [given if given and part.startswith("{") else part for part, given in parts]
        likeness[each] = difflib.SequenceMatcher(None, path, "/".join(filled)).ratio()
    return max(likeness, key=lambda each: (likeness[each], -len(each)))


def argument_named(text: str, known: Iterable[str], otherwise: str) -> str:
    """The first of the arguments ``known`` that the ``text`` of a TypeError or ValueError of ``Cluster(…)`` mentions, in
    singular or plural; ``otherwise`` if it mentions none."""
    found = {name: re.search(rf"\b{name.removesuffix('s')}s?\b", text) for name in known}
    places = {name: match.start() for name, match in found.items() if match is not None}
    return min(places, key=places.__getitem__, default=otherwise)

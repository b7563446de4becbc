"""Errors as problem documents (RFC 9457): what was wrong, with which field, and what would be right."""

import difflib
import logging
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, get_args

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException
from starlette.routing import compile_path

from groupcoord.config.config_def import ConfigError
from groupcoord.testing.cluster_clock import ClockError
from groupcoord.testing.faults.matching import RuleProblems, suggestion
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


class FieldProblem(BaseModel):
    """What is wrong with one field."""

    field: str = Field(
        description="the field of the body, with dots between names, or the parameter", examples=["seconds"]
    )
    problem: str = Field(description="what is wrong, and what would be right")


class Problem(BaseModel):
    """A problem document (RFC 9457)."""

    type: str = Field(
        default="about:blank", description="always about:blank: the status says what kind of problem it is"
    )
    title: str = Field(description="the status in words")
    status: int = Field(description="the status of HTTP")
    detail: str = Field(description="what was wrong, and what would be right")
    errors: list[FieldProblem] = Field(default=[], description="the fields that are wrong")
    reasons: list[str] = Field(
        default=[], description="of a wait that was in vain (504): what the broker waits for, and until when"
    )


class ProblemError(Exception):
    """Answer with a problem document."""

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
    def of_field(cls, field: str, problem: str, status: int = 422) -> "ProblemError":
        """Only ``field`` is wrong."""
        return cls(status, f"{field}: {problem}", errors=[(field, problem)])

    def response(self) -> Response:
        """The answer."""
        return JSONResponse(self.problem.model_dump(), self.problem.status, headers=self.headers, media_type=MEDIA_TYPE)


@contextmanager
def wrong_argument(field: str) -> Iterator[None]:
    """What the block raises of a value that cannot be (ValueError, TypeError) is a problem of ``field``."""
    try:
        yield
    except (ValueError, TypeError) as error:
        raise ProblemError.of_field(field, str(error)) from error


def responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """What an operation that may be answered with these statuses documents; ``app`` adds what such an answer has in it."""
    return {status: {"description": TITLES[status]} for status in statuses}


def install(app: FastAPI) -> None:
    """Let ``app`` answer every error with a problem document; its ``state.methods_of`` has the methods of each path."""
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
    detail, *reasons = str(error).splitlines()
    return ProblemError(504, detail, reasons=[reason.strip() for reason in reasons])


def _of_fields(found: Iterable[tuple[str, str]]) -> ProblemError:
    errors = list(found)
    return ProblemError(422, "; ".join(f"{field}: {problem}" for field, problem in errors), errors=errors)


# What FastAPI refuses.


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
    """The fields that the object has in which the last of ``names`` is none."""
    model: Any = request.scope["route"].body_field.field_info.annotation
    for name in names[:-1]:
        if isinstance(name, str):
            model = model.model_fields[name].annotation
        while get_args(model):
            model = next((each for each in get_args(model) if hasattr(each, "model_fields") or get_args(each)), object)
    return list(getattr(model, "model_fields", ()))


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
    """The one of ``known`` that is most like ``path``; where that has a name in braces, the path may have its own."""
    asked = path.split("/")
    likeness = {}
    for each in known:
        parts = enumerate(each.split("/"))
        filled = [asked[at] if part.startswith("{") and at < len(asked) else part for at, part in parts]
        likeness[each] = difflib.SequenceMatcher(None, path, "/".join(filled)).ratio()
    return max(likeness, key=lambda each: (likeness[each], -len(each)))


_ARGUMENT = re.compile(r"(\w+)=|topic '")


def argument_named(text: str, known: Iterable[str], otherwise: str) -> str:
    """Which argument a TypeError or ValueError of ``Cluster(…)`` speaks of."""
    found = _ARGUMENT.match(text)
    if found is None:
        return otherwise
    name = found[1] or "topics"
    return name if name in known else otherwise

"""The sinks that ``--alerts`` can name: a file, stdout, or a webhook."""

import os
import sys
import urllib.error
import urllib.request
from collections.abc import Callable
from http import HTTPStatus
from http.client import HTTPException
from pathlib import Path
from urllib.parse import urlsplit

from groupcoord.pipeline.errors import PipelineError

TIMEOUT_S = 3
"""The timeout in seconds for connecting to a webhook, and for its response."""
STDOUT = "-"
Sink = Callable[[str], None]
"""Delivers one alert, a JSON document in a line. Raises AlertDeliveryError."""


class AlertDeliveryError(Exception):
    """An alert could not be delivered; the text says why. ``is_final``: a retry would fail, too."""

    def __init__(self, text: str, *, is_final: bool = False) -> None:
        super().__init__(text)
        self.is_final = is_final


def alert_sink(where: str) -> Sink:
    """Create the sink that ``--alerts`` names. Raises PipelineError if it cannot be written to."""
    if where == STDOUT:
        return _to_stdout
    if where.startswith(("http://", "https://")):
        if not urlsplit(where).hostname:
            raise PipelineError(f"{where} names no host: --alerts wants a URL such as https://alerts.example/hook")
        return lambda line: _post(where, line)
    path = Path(where)
    try:
        with path.open("a"):
            pass
    except OSError as problem:
        raise PipelineError(f"cannot write alerts to {where}: {problem.strerror}") from None
    return lambda line: _append(path, line)


def _to_stdout(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def _append(path: Path, line: str) -> None:
    try:
        with path.open("a", encoding="utf-8") as file:
            file.write(line + "\n")
            file.flush()
            os.fsync(file.fileno())
    except OSError as problem:
        raise AlertDeliveryError(f"{path}: {problem.strerror}") from None


def _post(url: str, line: str) -> None:
    request = urllib.request.Request(  # noqa: S310 - alert_sink lets http and https in alone
        url, line.encode(), {"Content-Type": "application/json", "User-Agent": "groupcoord"}, method="POST"
    )
    host = urlsplit(url).netloc.rpartition("@")[2]  # the rest of a webhook's URL may contain a secret
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_S):  # noqa: S310
            pass
    except urllib.error.HTTPError as answer:
        answer.close()
        may_pass = answer.code in {HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS}
        is_final = HTTPStatus.BAD_REQUEST <= answer.code < HTTPStatus.INTERNAL_SERVER_ERROR and not may_pass
        raise AlertDeliveryError(f"{host} answers {answer.code} {answer.reason}", is_final=is_final) from None
    except (OSError, HTTPException, ValueError) as problem:
        reason = problem.reason if isinstance(problem, urllib.error.URLError) else problem
        text = getattr(reason, "strerror", None) or str(reason).strip() or type(reason).__name__
        raise AlertDeliveryError(f"{host}: {text}") from None

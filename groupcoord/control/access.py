"""Who may use the control API: who has the token, and without one only programs of this machine, not web pages; and how large
a body may be."""

import hmac
import ipaddress
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException

from groupcoord.control.problems import ProblemError

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

MOST_BODY_BYTES = 16 * 1024 * 1024
"""Of a larger body no more is read."""
OPEN_PATHS = frozenset({"/health", "/page/"})
"""What needs no token: containers are asked for their health without one; the page asks a person for the token."""


class AccessControl:
    """Lets through to ``app`` what is allowed; the rest gets a problem document.

    Without a ``token``, a name other than that of this machine in ``Host`` or ``Origin`` means that a web page asks, by a name
    that it made lead here (DNS rebinding), or across sites: it is refused.
    """

    def __init__(self, app: App, token: str | None) -> None:
        self._app = app
        self._token = token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        problem = self._problem_of(scope["path"], Headers(scope=scope)) if scope["type"] == "http" else None
        if problem is None:
            await self._app(scope, _limited(receive), send)
        else:
            await problem.response()(scope, receive, send)

    def _problem_of(self, path: str, headers: Headers) -> ProblemError | None:
        if self._token is None:
            return _foreign(headers)
        scheme, _, given = headers.get("authorization", "").partition(" ")
        if path not in OPEN_PATHS and not (
            scheme.lower() == "bearer" and hmac.compare_digest(given.strip().encode(), self._token.encode())
        ):
            wrong = "the token is another one" if given else "a token is needed"
            return ProblemError(401, f"{wrong}: Authorization: Bearer TOKEN", headers={"WWW-Authenticate": "Bearer"})
        return None


def _foreign(headers: Headers) -> ProblemError | None:
    for name in ("host", "origin"):
        said = headers.get(name)
        if said is not None and not is_loopback(urlsplit(said if "://" in said else f"//{said}").hostname or ""):
            return ProblemError(403, f"{name.title()}: {said} is not this machine: --control-token lets others in, too")
    return None


def is_loopback(host: str) -> bool:
    """Is it a name or an address by which only this machine is reached?"""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _limited(receive: Receive) -> Receive:
    """``receive``, up to so many bytes."""
    seen = 0

    async def next_part() -> MutableMapping[str, Any]:
        nonlocal seen
        message = await receive()
        seen += len(message.get("body", b""))
        if seen > MOST_BODY_BYTES:
            raise HTTPException(413, f"a body has {MOST_BODY_BYTES:,} bytes at most")
        return message

    return next_part

"""ASGI middleware that protects the control API: it checks the bearer token, or, if none is set, that the request comes from
this machine and not from a web page; and it limits the size of a request body."""

import hmac
import ipaddress
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from groupcoord.control.problem_documents import ProblemError

MOST_BODY_BYTES = 16 * 1024 * 1024
"""The largest request body that is accepted; reading stops there."""
OPEN_PATHS = frozenset({"/health", "/page/"})
"""Paths that need no token: health checks of containers send none, and the page itself asks its user for the token."""


class AccessControl:
    """Passes allowed requests to ``app`` and answers all others with a problem document.

    Without a ``token``, a request is refused if its ``Host`` or ``Origin`` names another host than this machine: it then comes
    from a web page, by DNS rebinding or across sites.
    """

    def __init__(self, app: ASGIApp, token: str | None) -> None:
        self._app = app
        self._token = token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, as ASGI says."""
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
    """Is ``host`` ``localhost``, a name below it, or a loopback address?"""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _limited(receive: Receive) -> Receive:
    """``receive``, which raises HTTPException (413) beyond MOST_BODY_BYTES."""
    seen = 0

    async def next_part() -> Message:
        nonlocal seen
        message = await receive()
        seen += len(message.get("body", b""))
        if seen > MOST_BODY_BYTES:
            raise HTTPException(413, f"a body has {MOST_BODY_BYTES:,} bytes at most")
        return message

    return next_part

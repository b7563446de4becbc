"""Lets names in paths have slashes, such as the group ``a/b`` in ``/groups/a%2Fb``: an ASGI middleware and a path convertor.

Starlette matches routes against the unquoted path, in which an escaped slash would start the next path segment.
"""

from urllib.parse import unquote

from starlette.convertors import Convertor, register_url_convertor
from starlette.types import ASGIApp, Receive, Scope, Send

_SLASH = "\0"
"""Stands for an escaped slash between the middleware and the convertor."""


class NameConvertor(Convertor[str]):
    """``{group:name}``: one path segment, whose name may contain slashes that were escaped."""

    regex = "[^/]+"

    def convert(self, value: str) -> str:
        """The name in the path segment ``value``."""
        return value.replace(_SLASH, "/")

    def to_string(self, value: str) -> str:
        """The path segment for the name ``value``."""
        return value.replace("/", _SLASH)


register_url_convertor("name", NameConvertor())


class EscapedSlashes:
    """Middleware that keeps escaped slashes distinct from those that separate path segments."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, as ASGI says."""
        if scope["type"] == "http" and b"%2f" in scope["raw_path"].lower():
            parts = scope["raw_path"].decode("latin-1").split("/")
            scope = {**scope, "path": "/".join(unquote(part).replace("/", _SLASH) for part in parts)}
        await self._app(scope, receive, send)

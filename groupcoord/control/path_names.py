"""Names in paths that have a slash, such as the group ``a/b``: ``/groups/a%2Fb``.

Starlette looks for routes in a path whose escapes are undone, where such a slash would begin the next part of the path.
"""

from urllib.parse import unquote

from starlette.convertors import Convertor, register_url_convertor
from starlette.types import ASGIApp, Receive, Scope, Send

_SLASH = "\0"
"""In place of a slash, until the name is read."""


class NameConvertor(Convertor[str]):
    """``{group:name}``: one part of a path, which may have slashes that were escaped."""

    regex = "[^/]+"

    def convert(self, value: str) -> str:
        """The name."""
        return value.replace(_SLASH, "/")

    def to_string(self, value: str) -> str:
        """The part of the path."""
        return value.replace("/", _SLASH)


register_url_convertor("name", NameConvertor())


class EscapedSlashes:
    """Keeps escaped slashes apart from others."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] == "http" and b"%2f" in scope["raw_path"].lower():
            parts = scope["raw_path"].decode("latin-1").split("/")
            scope = {**scope, "path": "/".join(unquote(part).replace("/", _SLASH) for part in parts)}
        await self._app(scope, receive, send)

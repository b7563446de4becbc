"""Puts data into a built page: one HTML file that needs nothing else, no server and no network."""

import base64
import gzip
from collections.abc import Mapping
from pathlib import Path

STATIC = Path(__file__).parent / "static"
"""Where ``make page`` puts what it builds."""

_PLACE = "<!-- data -->"


class PageNotBuiltError(Exception):
    """There is no built page; the text says what to do."""


def built_page(entry: str) -> str:
    """The HTML of an entry of ``web/``, such as ``page``. Raises PageNotBuiltError."""
    try:
        return (STATIC / f"{entry}.html").read_text(encoding="utf-8")
    except FileNotFoundError:
        raise PageNotBuiltError("the page is not built: `make page` builds it, with Node 20 and npm") from None


def embed(html: str, parts: Mapping[str, str | bytes]) -> str:
    """``html`` with ``parts`` in it, each by a name, a text such as JSON, or bytes; equal parts give the same file.

    They are packed (gzip, base64), so that a long trace is a small file and nothing in it can be taken for HTML.
    """
    before, _, after = html.partition(_PLACE)
    scripts = "\n".join(_script(name, part) for name, part in parts.items())
    return f"{before}{scripts}{after}"


def packed(part: str | bytes) -> str:
    """``part`` as it stands in a page."""
    data = part.encode() if isinstance(part, str) else part
    return base64.b64encode(gzip.compress(data, mtime=0)).decode()


def _script(name: str, part: str | bytes) -> str:
    return f'<script type="application/gzip" id="groupcoord-{name}">{packed(part)}</script>'

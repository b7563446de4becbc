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


def embed(html: str, parts: Mapping[str, str]) -> str:
    """``html`` with ``parts`` in it, each a text by a name, such as JSON; equal parts give the same file.

    They are packed (gzip, base64), so that a long trace is a small file and nothing in it can be taken for HTML.
    """
    before, _, after = html.partition(_PLACE)
    scripts = "\n".join(_script(name, text) for name, text in parts.items())
    return f"{before}{scripts}{after}"


def _script(name: str, text: str) -> str:
    packed = base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode()
    return f'<script type="application/gzip" id="groupcoord-{name}">{packed}</script>'

"""Embeds data into a built page, which gives one HTML file that needs no server and no network."""

import base64
import gzip
from collections.abc import Mapping
from pathlib import Path

STATIC = Path(__file__).parent / "static"
"""The directory into which ``make page`` builds."""

_PLACE = "<!-- data -->"


class PageNotBuiltError(Exception):
    """The page is not built; the text says how to build it."""


def built_page(entry: str) -> str:
    """The HTML of an entry of ``web/``, such as ``page``. Raises PageNotBuiltError."""
    try:
        return (STATIC / f"{entry}.html").read_text(encoding="utf-8")
    except FileNotFoundError:
        raise PageNotBuiltError("the page is not built: `make page` builds it, with Node 20 and npm") from None


def embed(html: str, parts: Mapping[str, str | bytes]) -> str:
    """``html`` with ``parts`` embedded: name → text, such as JSON, or bytes. Equal parts give the same file.

    They are compressed (gzip, Base64), so that the file of a long trace is small and nothing in it is parsed as HTML.
    """
    before, _, after = html.partition(_PLACE)
    scripts = "\n".join(_script(name, part) for name, part in parts.items())
    return f"{before}{scripts}{after}"


def packed(part: str | bytes) -> str:
    """``part`` compressed as it is embedded in a page."""
    data = part.encode() if isinstance(part, str) else part
    return base64.b64encode(gzip.compress(data, mtime=0)).decode()


def _script(name: str, part: str | bytes) -> str:
    return f'<script type="application/gzip" id="groupcoord-{name}">{packed(part)}</script>'

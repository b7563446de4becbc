"""Renders the HTML page of a trace: ``saved_page``, one self-contained file, and ``live_page``, which loads the trace from the
server.

The types of its JSON are in ``web/src/data.ts``.
"""

import json
from collections.abc import Iterator
from typing import Any

from groupcoord.page.dissections import dissections_of
from groupcoord.page.html_embedding import built_page, embed
from groupcoord.testing.trace import Trace
from groupcoord.testing.trace.why_member import MemberExplanation

PART = 500
"""The number of dissections in one compressed part, which the page decompresses when it needs it."""


def saved_page(trace: Trace, title: str) -> str:
    """The page with all of ``trace`` in it: one HTML file that needs no server. Raises PageNotBuiltError."""
    html = built_page("page")
    dissections = dissections_of(trace.entries())
    data = {
        "kind": "saved",
        "title": title,
        "why": list(reasons(trace)),
        "bytes": list(dissections.places.items()),
        "bytes_part": PART,
    }
    parts = {"data": _json(data), "trace": "".join(trace.lines())}
    for number, first in enumerate(range(0, len(dissections.different), PART)):
        parts[f"bytes-{number}"] = _json([each.as_json() for each in dissections.different[first : first + PART]])
    return embed(html, parts)


def live_page(title: str, *, acts: bool = True) -> str:
    """The page that follows the trace of a running cluster, from whose server it is loaded; with ``acts``, its buttons control
    the cluster over HTTP.

    Raises PageNotBuiltError.
    """
    return embed(built_page("page"), {"data": _json({"kind": "live", "title": title, "acts": acts})})


def reasons(trace: Trace) -> Iterator[dict[str, Any]]:
    """Why each generation and epoch whose beginning is in the trace began."""
    entries = trace.entries()
    for group in trace.groups():
        for begun, text in MemberExplanation(entries, group).beginnings():
            yield {
                "group": group,
                "number": begun.number,
                "is_epoch": begun.is_epoch,
                "seq": begun.entry.seq,
                "text": text,
            }


def _json(data: Any) -> str:
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"))

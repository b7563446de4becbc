"""From a trace to its page: what the page is told beside the entries, and the file that has all of it.

The types are those of ``web/src/data.ts``.
"""

import json
from collections.abc import Iterator
from typing import Any

from groupcoord.page.dissections import dissections_of
from groupcoord.page.embedding import built_page, embed
from groupcoord.testing.trace import Trace
from groupcoord.testing.trace.why_member import MemberExplanation

PART = 500
"""So many dissections stand together: a page unpacks what it is asked for."""


def saved_page(trace: Trace, title: str) -> str:
    """The page of ``trace``, whole: one HTML file that needs nothing else. Raises PageNotBuiltError."""
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
    """The page of a living trace, beside which it is served; it ``acts`` on a cluster that is controlled over HTTP.

    Raises PageNotBuiltError.
    """
    return embed(built_page("page"), {"data": _json({"kind": "live", "title": title, "acts": acts})})


def reasons(trace: Trace) -> Iterator[dict[str, Any]]:
    """Why each generation and epoch began whose beginning the trace has."""
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

"""Dissects the bytes of the requests and responses in a detailed trace, field by field, for the trace's web page."""

from collections.abc import Sequence
from typing import NamedTuple

from groupcoord.dissect import Dissection, dissect_request, dissect_response
from groupcoord.protocol.apis import APIS
from groupcoord.testing.trace import RequestReceived, ResponseSent, TraceEntry

MOST = 20_000
"""At most so many different messages are dissected, the newest ones, so that the page of a long trace stays small."""

_KEYS = {api.name: api.key for api in APIS.values()}
_CORRELATION_ID = {RequestReceived: slice(16, 24), ResponseSent: slice(8, 16)}
"""The place of the correlation id in the hexadecimal digits of a frame; messages that differ only in it are dissected once."""


class Dissections(NamedTuple):
    """The ``different`` dissections of a trace, and ``places``: number of an entry → index of its dissection.

    The correlation id in a dissection may be that of another message with otherwise equal bytes.
    """

    different: list[Dissection]
    places: dict[int, int]


def dissection_of(entry: TraceEntry) -> Dissection | None:
    """The dissection of the message of ``entry``; None if it is not of a message, or the trace does not have its bytes."""
    event = entry.event
    if not isinstance(event, RequestReceived | ResponseSent) or event.frame is None:
        return None
    return _dissected(event, event.frame)


def dissections_of(entries: Sequence[TraceEntry], most: int = MOST) -> Dissections:
    """The dissections of the newest ``most`` different messages in ``entries``."""
    found = Dissections([], {})
    known: dict[tuple[str, int, str], int] = {}
    for entry in reversed(entries):
        event = entry.event
        if not isinstance(event, RequestReceived | ResponseSent) or event.frame is None:
            continue
        place = _CORRELATION_ID[type(event)]
        same = event.api, event.version, event.frame[: place.start] + event.frame[place.stop :]
        if same not in known:
            if len(known) == most:
                break
            known[same] = len(found.different)
            found.different.append(_dissected(event, event.frame))
        found.places[entry.seq] = known[same]
    return found


def _dissected(event: RequestReceived | ResponseSent, frame: str) -> Dissection:
    if isinstance(event, RequestReceived):
        return dissect_request(bytes.fromhex(frame), sized=True)
    return dissect_response(bytes.fromhex(frame), _KEYS[event.api], event.version, sized=True)

"""The bytes of the requests and answers of a trace, field by field; a detailed trace has them."""

from collections.abc import Sequence
from typing import NamedTuple

from groupcoord.dissect import Dissection, dissect_request, dissect_response
from groupcoord.protocol.apis import APIS
from groupcoord.testing.trace import RequestReceived, ResponseSent, TraceEntry

MOST = 20_000
"""So many different messages are dissected, the newest ones: a page of 100,000 entries is made in seconds and stays small."""

_KEYS = {api.name: api.key for api in APIS.values()}
_CORRELATION_ID = {RequestReceived: slice(16, 24), ResponseSent: slice(8, 16)}
"""Where it stands in a frame, in hexadecimal digits; messages that differ in nothing else are dissected once."""


class Dissections(NamedTuple):
    """The ``different`` dissections of a trace, and by the numbers of entries where theirs is among them.

    What is the correlation id of a message, its frame says: it may be another one in its dissection.
    """

    different: list[Dissection]
    places: dict[int, int]


def dissection_of(entry: TraceEntry) -> Dissection | None:
    """What the message of ``entry`` consists of; None if it is of none, or the trace does not have its bytes."""
    event = entry.event
    if not isinstance(event, RequestReceived | ResponseSent) or event.frame is None:
        return None
    return _dissected(event, event.frame)


def dissections_of(entries: Sequence[TraceEntry], most: int = MOST) -> Dissections:
    """The dissections of ``entries``: of the newest ``most`` messages that are not the same."""
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

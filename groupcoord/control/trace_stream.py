"""Streams the trace as server-sent events.

    event: start                          a new trace begins; entries that were received before are void
    data: {"run": 1, "start_ms": 1764000000000}

    id: 1-17                              the run and the number of the entry
    event: entry
    data: {"seq": 17, "event": "coordinator.GroupTransitioned", …}

``start`` comes first, and again after each reset. A client that reconnects with the ``Last-Event-ID`` of the same run continues
after that entry. The server buffers nothing for a client, only its position in the trace: a slow client misses the entries that
the trace has dropped meanwhile (a gap in the numbers), and a client that reads nothing for PATIENCE_S is disconnected. So no
client can slow the broker down or use up its memory.
"""

import asyncio
import json
import logging
import re
from collections.abc import Callable, Iterator
from typing import Any, Final, Protocol

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from groupcoord.control.trace_selection import TraceSelection
from groupcoord.testing.trace import Trace
from groupcoord.testing.trace.file_format import entry_as_json

logger = logging.getLogger(__name__)

MEDIA_TYPE = "text/event-stream"
ENTRIES_AT_ONCE = 256
KEEP_ALIVE_S = 15.0
"""After so long without an event a comment is sent, so that a dead connection is noticed (seconds)."""
PATIENCE_S = 30.0
"""A client that reads nothing for so long is disconnected (seconds)."""
_PLACE = re.compile(r"(\d+)-(\d+)", re.ASCII)
_KEEP_ALIVE: Final = b": keep-alive\n\n"


class StreamedCluster(Protocol):
    """The cluster whose trace is streamed: a ControlledCluster, or the cluster behind a proxy."""

    ending: asyncio.Event
    """Set when the streams are to end."""

    @property
    def trace(self) -> Trace:
        """The trace of this run."""

    @property
    def run(self) -> int:
        """The number of the run, which each reset increments."""

    def on_trace(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call ``listener`` when the trace gets an entry or starts again; returns a function that removes the listener."""


class TraceStream(Response):
    """The streaming response with the trace of ``cluster``, from the ``Last-Event-ID`` ``place`` on, or from the start."""

    media_type = MEDIA_TYPE

    def __init__(self, cluster: StreamedCluster, selected: TraceSelection, place: str | None) -> None:
        super().__init__(headers={"Cache-Control": "no-store"})
        del self.headers["content-length"]
        self._cluster = cluster
        self._selected = selected
        found = _PLACE.fullmatch(place or "")
        self._run, self._seq = (int(found[1]), int(found[2])) if found else (0, 0)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002 - as of ASGI
        """Send events until the client disconnects or the cluster ends."""
        news = asyncio.Event()
        end_listening = self._cluster.on_trace(news.set)
        gone = asyncio.ensure_future(_gone(receive))
        ending = asyncio.ensure_future(self._cluster.ending.wait())
        try:
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            while not gone.done() and not ending.done():
                news.clear()
                for part in self._parts():
                    await _sent(send, part)
                listening = asyncio.ensure_future(news.wait())
                done, _ = await asyncio.wait(
                    (listening, gone, ending), timeout=KEEP_ALIVE_S, return_when=asyncio.FIRST_COMPLETED
                )
                listening.cancel()
                if not done:
                    await _sent(send, _KEEP_ALIVE)
            await _sent(send, b"", more=False)
        except _TooSlowError:
            logger.warning("a reader of the trace is too slow, and is disconnected")
        finally:
            end_listening()
            gone.cancel()
            ending.cancel()

    def _parts(self) -> Iterator[bytes]:
        """The new events, in pieces of up to ENTRIES_AT_ONCE entries."""
        trace = self._cluster.trace
        if self._run != self._cluster.run:
            self._run, self._seq = self._cluster.run, 0
            yield _event("start", {"run": self._run, "start_ms": trace.start_ms})
        entries = trace.after(self._seq)
        for first in range(0, len(entries), ENTRIES_AT_ONCE):
            piece = entries[first : first + ENTRIES_AT_ONCE]
            self._seq = piece[-1].seq
            yield b"".join(
                _event("entry", entry_as_json(entry), f"{self._run}-{entry.seq}")
                for entry in piece
                if self._selected(entry)
            )


class _TooSlowError(Exception):
    """The client reads too slowly."""


async def _sent(send: Send, part: bytes, *, more: bool = True) -> None:
    """Send a part of the body. Raises _TooSlowError if the client does not read it within PATIENCE_S."""
    try:
        async with asyncio.timeout(PATIENCE_S):
            await send({"type": "http.response.body", "body": part, "more_body": more})
            await asyncio.sleep(0)  # lets other tasks run, however fast the client reads
    except TimeoutError:
        raise _TooSlowError from None


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _event(name: str, data: Any, place: str | None = None) -> bytes:
    text = f"event: {name}\ndata: {json.dumps(data, ensure_ascii=False)}\n\n"
    return (text if place is None else f"id: {place}\n{text}").encode()

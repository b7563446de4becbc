"""What happened in a test, in order, with causes: to assert on, to read, to draw, to explain and to keep.

A ``TracingNode`` around the node of a server tells a ``Trace`` everything. docs/trace.md shows it, with the form of its file.
"""

from groupcoord.testing.trace.entry import Entry
from groupcoord.testing.trace.events import (
    AdminActionRun,
    ConnectionClosed,
    ConnectionOpened,
    Exchange,
    RequestReceived,
    RequestUnanswered,
    ResponseSent,
    ServerFailed,
    TimerExpired,
    UnknownEvent,
)
from groupcoord.testing.trace.schema import register
from groupcoord.testing.trace.selection import Selection
from groupcoord.testing.trace.trace import Trace
from groupcoord.testing.trace.tracing_node import TracingNode

__all__ = [
    "AdminActionRun",
    "ConnectionClosed",
    "ConnectionOpened",
    "Entry",
    "Exchange",
    "RequestReceived",
    "RequestUnanswered",
    "ResponseSent",
    "Selection",
    "ServerFailed",
    "TimerExpired",
    "Trace",
    "TracingNode",
    "UnknownEvent",
    "register",
]

"""What happened in a test, in order, with causes; it can be asserted on, read, drawn, explained and saved.

A ``TracingLayer`` around the node of a server tells a ``Trace`` everything. docs/trace.md shows it, with the form of its file.
"""

from groupcoord.testing.trace.events import (
    AdminActionRun,
    ConnectionClosed,
    ConnectionOpened,
    RequestEvent,
    RequestReceived,
    RequestUnanswered,
    ResponseSent,
    ServerFailed,
    TimerExpired,
    TraceEntry,
    UnknownEvent,
)
from groupcoord.testing.trace.file_format import register
from groupcoord.testing.trace.trace import Selection, Trace
from groupcoord.testing.trace.tracing_layer import TracingLayer

__all__ = [
    "AdminActionRun",
    "ConnectionClosed",
    "ConnectionOpened",
    "RequestEvent",
    "RequestReceived",
    "RequestUnanswered",
    "ResponseSent",
    "Selection",
    "ServerFailed",
    "TimerExpired",
    "Trace",
    "TraceEntry",
    "TracingLayer",
    "UnknownEvent",
    "register",
]

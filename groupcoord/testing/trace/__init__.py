"""The trace of a cluster: every request, response and event in order, with its cause; for assertions, reading, diagrams,
explanations and files.

A ``TracingLayer`` around the cluster reports everything to a ``Trace``. docs/trace.md is the guide, with the file format.
"""

from groupcoord.testing.trace.events import (
    AdminActionRun,
    BrokerTaskRun,
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
    "BrokerTaskRun",
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

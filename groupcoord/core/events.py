"""Event, the base class of trace events, and their causes: a request, a response, a timer, an administrative action, or a task
of the broker itself."""

from collections.abc import Iterable
from dataclasses import field
from typing import NamedTuple, TypeVar, dataclass_transform

from groupcoord.protocol.value_class import value_class

T = TypeVar("T")


class Requested(NamedTuple):
    """Cause: a request."""

    api: str
    version: int
    client_id: str | None
    client_host: str
    connection_id: int
    correlation_id: int

    def __str__(self) -> str:
        return f"{self.api} v{self.version} from {self.client_id or 'a client without id'}"


class TimerFired(NamedTuple):
    """Cause: a timer of ``kind`` (``session``, ``join``, ``sync`` …), ``scope`` (a group) and ``subject`` (a member).

    All events of one firing share one object as cause, so compare causes with ``is``: two firings may be equal.
    """

    kind: str
    scope: str
    subject: str
    due_ms: int

    def __str__(self) -> str:
        return f"{self.kind} timer of {self.subject or self.scope}"


class AdminAction(NamedTuple):
    """Cause: an action outside of the protocol, of a test, a tool or the application of a client.

    All events of one action share one object as cause; another action has another.
    """

    action: str

    def __str__(self) -> str:
        return self.action


class BrokerTask(NamedTuple):
    """Cause: what a broker does by itself, such as an append of a coordinator.

    All events of one run of a task share one object as cause; another run has another.
    """

    task: str

    def __str__(self) -> str:
        return self.task


class Answered(NamedTuple):
    """Cause: the response to a client's own request; ``error`` is its error, or what happened instead of a response.

    ``connection_id`` and ``correlation_id`` identify the request in the cluster, if client and cluster are in one process.
    """

    api: str
    error: str
    connection_id: int | None = None
    correlation_id: int | None = None

    def __str__(self) -> str:
        return f"the answer to {self.api}" + ("" if self.error == "NONE" else f", {self.error}")


Cause = Requested | TimerFired | AdminAction | BrokerTask | Answered


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
def event_class(cls: type[T]) -> type[T]:
    """Make ``cls`` a slotted, keyword-only, immutable dataclass: a type of events."""
    return value_class(cls, frozen=True)


@event_class
class Event:
    """The fields of every event: its time (milliseconds on the caller's clock) and cause."""

    at_ms: int
    cause: Cause

    def text(self) -> str:
        """The event in one line, for readers who do not know the protocol; without time and cause."""
        raise NotImplementedError


def partition_names(partitions: Iterable[tuple[str, int]]) -> str:
    """Partitions in a text: ``orders-0, orders-1``."""
    return ", ".join(f"{topic}-{number}" for topic, number in partitions) or "nothing"


def counted(count: int, noun: str) -> str:
    """``1 member``, ``2 members``."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"

"""Events say what changed and why. Each has a time and a cause: a request, an answer, a timer, or an administrative action."""

from collections.abc import Iterable
from dataclasses import field
from typing import NamedTuple, TypeVar, dataclass_transform

from groupcoord.protocol.value_class import value_class

T = TypeVar("T")


class Requested(NamedTuple):
    """A request was the cause."""

    api: str
    version: int
    client_id: str | None
    client_host: str
    connection_id: int
    correlation_id: int

    def __str__(self) -> str:
        return f"{self.api} v{self.version} from {self.client_id or 'a client without id'}"


class TimerFired(NamedTuple):
    """A timer was the cause: ``kind`` (``session``, ``join``, ``sync`` …) of ``scope`` (a group) and ``subject`` (a member).

    All that follows from one firing has one and the same object as its cause; another firing has another, equal or not.
    """

    kind: str
    scope: str
    subject: str
    due_ms: int

    def __str__(self) -> str:
        return f"{self.kind} timer of {self.subject or self.scope}"


class AdminAction(NamedTuple):
    """Something outside of the protocol acted: a test, a start-up, a tool.

    All that follows from one action has one and the same object as its cause; another action has another.
    """

    action: str

    def __str__(self) -> str:
        return self.action


class Answered(NamedTuple):
    """The answer to a request of one's own was the cause; ``error`` names what it said, or what came instead of it.

    ``connection_id`` and ``correlation_id`` say which request of the cluster it was, where the client and the cluster are in
    one process.
    """

    api: str
    error: str
    connection_id: int | None = None
    correlation_id: int | None = None

    def __str__(self) -> str:
        return f"the answer to {self.api}" + ("" if self.error == "NONE" else f", {self.error}")


Cause = Requested | TimerFired | AdminAction | Answered


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
def event_class(cls: type[T]) -> type[T]:
    """Make ``cls`` a slotted, keyword-only dataclass of values that nobody can change: a kind of events."""
    return value_class(cls, frozen=True)


@event_class
class Event:
    """What every event has: when (milliseconds on the clock of the caller) and why."""

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

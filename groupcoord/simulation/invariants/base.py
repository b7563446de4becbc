"""What an invariant is."""

from typing import ClassVar, Protocol

from groupcoord.assignors import TopicPartition
from groupcoord.protocol.apis import ApiKey
from groupcoord.simulation.brokers import BrokerObserver, SimulatedBrokers
from groupcoord.simulation.event_queue import EventQueue
from groupcoord.simulation.member_process import MemberProcess
from groupcoord.simulation.plan import SimulationPlan
from groupcoord.simulation.writer import Writer


class InvariantViolation(Exception):
    """Invariant ``name`` does not hold at ``at_ms``, for ``reason``."""

    def __init__(self, name: str, at_ms: int, reason: str) -> None:
        super().__init__(f"{name} at {at_ms / 1_000:.3f} s: {reason}")
        self.name, self.at_ms, self.reason = name, at_ms, reason


class InvariantContext(Protocol):
    """The part of the world that invariants may look at."""

    plan: SimulationPlan
    event_queue: EventQueue
    brokers: SimulatedBrokers
    writers: list[Writer]

    def processes(self) -> list[MemberProcess]:
        """All running processes."""


class Invariant(BrokerObserver):
    """A subclass overrides the methods for what it needs to see. Any of them may raise ``violation(reason)``.

    Its docstring is the invariant in words; docs/simulation.md shows it.
    """

    name: ClassVar[str]
    apis: ClassVar[frozenset[ApiKey] | None] = None
    """The APIs whose requests and responses it sees; None: all."""

    def __init__(self, context: InvariantContext) -> None:
        self.context = context

    @classmethod
    def applies(cls, plan: SimulationPlan) -> bool:  # noqa: ARG003 - for subclasses
        """Is it looked at in runs of ``plan``?"""
        return True

    def violation(self, reason: str) -> InvariantViolation:
        """The exception to raise."""
        return InvariantViolation(self.name, self.context.event_queue.now_ms, reason)

    def ownership_changed(self) -> None:
        """A process owns other partitions than before."""

    def member_failed(self, process: MemberProcess, error: Exception) -> None:
        """A process has ended because of ``error``."""

    def record_sent(self, record: bytes, partition: TopicPartition) -> None:
        """A process has sent a record."""

    def record_ended(self, record: bytes, stored: tuple[TopicPartition, int] | None) -> None:
        """The record is stored there, as its producer was told, or (None) was given up."""

    def finish(self) -> None:
        """The run is over."""

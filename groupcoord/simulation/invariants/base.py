"""Invariant, the base class of all invariants, and InvariantViolation."""

from typing import ClassVar, Protocol

from groupcoord.assignors import TopicPartition
from groupcoord.protocol.apis import ApiKey
from groupcoord.simulation.brokers import BrokerObserver, SimulatedBrokers
from groupcoord.simulation.event_queue import EventQueue
from groupcoord.simulation.member_process import MemberProcess
from groupcoord.simulation.plan import SimulationPlan
from groupcoord.simulation.standalone_clients import StandaloneProducer


class InvariantViolation(Exception):
    """Invariant ``name`` was violated at ``at_ms``; ``reason`` says how."""

    def __init__(self, name: str, at_ms: int, reason: str) -> None:
        super().__init__(f"{name} at {at_ms / 1_000:.3f} s: {reason}")
        self.name, self.at_ms, self.reason = name, at_ms, reason


class InvariantContext(Protocol):
    """The part of the simulated world that invariants may read."""

    plan: SimulationPlan
    event_queue: EventQueue
    brokers: SimulatedBrokers
    standalone_producers: list[StandaloneProducer]

    def processes(self) -> list[MemberProcess]:
        """All running processes."""


class Invariant(BrokerObserver):
    """Base class: a subclass overrides the methods that it needs, any of which may raise ``violation(reason)``.

    Its docstring states the invariant; docs/simulation.md shows it.
    """

    name: ClassVar[str]
    apis: ClassVar[frozenset[ApiKey] | None] = None
    """The APIs whose requests and responses it observes; None: all."""

    def __init__(self, context: InvariantContext) -> None:
        self.context = context

    @classmethod
    def applies(cls, plan: SimulationPlan) -> bool:  # noqa: ARG003 - for subclasses
        """Is it checked in runs of ``plan``?"""
        return True

    def violation(self, reason: str) -> InvariantViolation:
        """The exception to raise."""
        return InvariantViolation(self.name, self.context.event_queue.now_ms, reason)

    def ownership_changed(self) -> None:
        """The owned partitions of a process have changed."""

    def member_failed(self, process: MemberProcess, error: Exception) -> None:
        """A process has ended because of ``error``."""

    def record_sent(self, record: bytes, partition: TopicPartition) -> None:
        """A process has sent a record."""

    def record_ended(self, record: bytes, stored: tuple[TopicPartition, int] | None) -> None:
        """A record was acknowledged at that partition and offset, or (None) was given up."""

    def finish(self) -> None:
        """The run is over."""

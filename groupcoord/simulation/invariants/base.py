"""What an invariant is."""

from typing import Any, ClassVar, Protocol

from groupcoord.cluster.append_gate import AppendDecision
from groupcoord.core.effects import Call
from groupcoord.core.events import Event
from groupcoord.protocol.apis import ApiKey
from groupcoord.simulation.brokers import SimulatedBrokers
from groupcoord.simulation.event_queue import EventQueue
from groupcoord.simulation.member_process import MemberProcess
from groupcoord.simulation.plan import SimulationPlan


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

    def processes(self) -> list[MemberProcess]:
        """All running processes."""


class Invariant:
    """A subclass overrides the methods for what it needs to see. Any of them may raise ``violation(reason)``."""

    name: ClassVar[str]
    statement: ClassVar[str]
    """The invariant in words; docs/simulation.md shows it."""

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

    def request_received(self, call: Call, request: Any) -> None:
        """A request is about to be handled."""

    def response_sent(self, call: Call, response: Any) -> None:
        """A request is answered."""

    def event_emitted(self, event: Event) -> None:
        """The coordinator has emitted an event."""

    def append_decided(self, decision: AppendDecision) -> None:
        """An append is stored, held or failed."""

    def coordinator_unloading(self) -> None:
        """The coordinator is about to lose its state."""

    def coordinator_loaded(self) -> None:
        """The coordinator has read its log."""

    def transactions_unloading(self) -> None:
        """The coordinator of transactions is about to lose its state."""

    def step_done(self) -> None:
        """A step of the brokers is done that was not a heartbeat of a member at rest."""

    def heartbeat_done(self) -> None:
        """A heartbeat of a member at rest was answered with no error."""

    def ownership_changed(self) -> None:
        """A process owns other partitions than before."""

    def member_failed(self, process: MemberProcess, error: Exception) -> None:
        """A process has ended because of ``error``."""

    def finish(self) -> None:
        """The run is over."""

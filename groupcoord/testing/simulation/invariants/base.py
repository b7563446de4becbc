"""What an invariant is, and what it is told."""

from typing import Any, ClassVar, Protocol

from groupcoord.cluster.append_gate import AppendDecision
from groupcoord.core.effects import Call
from groupcoord.core.events import Event
from groupcoord.protocol.apis import ApiKey
from groupcoord.testing.simulation.agenda import Agenda
from groupcoord.testing.simulation.brokers import Brokers
from groupcoord.testing.simulation.plan import Plan
from groupcoord.testing.simulation.process import Process


class Broken(Exception):
    """Invariant ``name`` does not hold at ``at_ms``; ``what`` says what was seen."""

    def __init__(self, name: str, at_ms: int, what: str) -> None:
        super().__init__(f"{name} at {at_ms / 1_000:.3f} s: {what}")
        self.name, self.at_ms, self.what = name, at_ms, what


class Scene(Protocol):
    """What an invariant may look at."""

    plan: Plan
    agenda: Agenda
    brokers: Brokers

    def processes(self) -> list[Process]:
        """Everybody who runs."""


class Invariant:
    """One promise. It overrides the methods for what it wants to be told."""

    name: ClassVar[str]
    """As a failure calls it."""
    promise: ClassVar[str]
    """What holds, in words; documentation is made of it."""

    apis: ClassVar[frozenset[ApiKey] | None] = None
    """The requests that ``asked`` and ``replied`` want to be told of; None: all."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene

    def broken(self, what: str) -> Broken:
        """What to raise."""
        return Broken(self.name, self.scene.agenda.now_ms, what)

    def asked(self, call: Call, request: Any) -> None:
        """A request is about to be handled."""

    def replied(self, call: Call, response: Any) -> None:
        """A request is answered."""

    def noted(self, event: Event) -> None:
        """The coordinator says what it did."""

    def appended(self, decision: AppendDecision) -> None:
        """That becomes of an append."""

    def resigning(self) -> None:
        """The coordinator is about to forget everything."""

    def loaded(self) -> None:
        """It has read its log again."""

    def stepped(self) -> None:
        """One step of the brokers is over that was no heartbeat of a member at rest."""

    def beaten(self) -> None:
        """A heartbeat of a member at rest was answered with no error."""

    def belief_changed(self) -> None:
        """Some member owns something else than before."""

    def failed(self, process: Process, error: Exception) -> None:
        """A member has ended because of ``error``."""

    def finish(self) -> None:
        """The run is over: everything has been well for long enough."""

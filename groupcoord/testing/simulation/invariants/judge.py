"""All invariants together. Each is told only what it wants to know, because heartbeats are many."""

from collections.abc import Callable
from typing import Any

from groupcoord.cluster.append_gate import AppendDecision
from groupcoord.core.effects import Call
from groupcoord.core.events import Event
from groupcoord.protocol.apis import ApiKey
from groupcoord.testing.simulation.invariants.base import Invariant, Scene
from groupcoord.testing.simulation.invariants.commits import CommitsLast, CommitsOfMembers
from groupcoord.testing.simulation.invariants.convergence import Convergence, NoSurprise
from groupcoord.testing.simulation.invariants.durability import Generations, Replay
from groupcoord.testing.simulation.invariants.ownership import Assignments, Beliefs
from groupcoord.testing.simulation.invariants.replies import Replies
from groupcoord.testing.simulation.invariants.sessions import Sessions
from groupcoord.testing.simulation.invariants.structure import Deadlines, Instances, Leaders, Protocols
from groupcoord.testing.simulation.process import Process

INVARIANTS: tuple[type[Invariant], ...] = (
    Generations,
    Leaders,
    Protocols,
    Instances,
    Deadlines,
    Sessions,
    Assignments,
    Beliefs,
    CommitsOfMembers,
    CommitsLast,
    Replay,
    NoSurprise,
    Convergence,
    Replies,
)


class Judge:
    """Looks at ``scene``; every method raises Broken when a promise is not kept."""

    def __init__(self, scene: Scene) -> None:
        invariants = [invariant(scene) for invariant in INVARIANTS]

        def listening(name: str) -> tuple[Callable[..., None], ...]:
            wanted = (one for one in invariants if getattr(type(one), name) is not getattr(Invariant, name))
            return tuple(getattr(one, name) for one in wanted)

        def of_apis(name: str) -> dict[int, tuple[Callable[..., None], ...]]:
            told = listening(name)
            of_all = [(tell, tell.__self__.apis) for tell in told]  # type: ignore[attr-defined]
            return {key: tuple(tell for tell, apis in of_all if apis is None or key in apis) for key in ApiKey}

        self._asked, self._replied = of_apis("asked"), of_apis("replied")
        self._noted = listening("noted")
        self._appended = listening("appended")
        self._resigning = listening("resigning")
        self._loaded = listening("loaded")
        self._stepped = listening("stepped")
        self._beaten = listening("beaten")
        self._belief_changed = listening("belief_changed")
        self._failed = listening("failed")
        self._finish = listening("finish")

    def asked(self, call: Call, request: Any) -> None:
        """A request is about to be handled."""
        for tell in self._asked[call.api.key]:
            tell(call, request)

    def replied(self, call: Call, response: Any) -> None:
        """A request is answered."""
        for tell in self._replied[call.api.key]:
            tell(call, response)

    def noted(self, event: Event) -> None:
        """The coordinator says what it did."""
        for tell in self._noted:
            tell(event)

    def appended(self, decision: AppendDecision) -> None:
        """That becomes of an append."""
        for tell in self._appended:
            tell(decision)

    def resigning(self) -> None:
        """The coordinator is about to forget everything."""
        for tell in self._resigning:
            tell()

    def loaded(self) -> None:
        """It has read its log again."""
        for tell in self._loaded:
            tell()

    def stepped(self, *, routine: bool) -> None:
        """One step of the brokers is over; a ``routine`` one was the heartbeat of a member at rest."""
        for tell in self._beaten if routine else self._stepped:
            tell()

    def belief_changed(self) -> None:
        """Some member owns something else than before."""
        for tell in self._belief_changed:
            tell()

    def failed(self, process: Process, error: Exception) -> None:
        """A member has ended because of ``error``."""
        for tell in self._failed:
            tell(process, error)

    def finish(self) -> None:
        """The run is over."""
        for tell in self._finish:
            tell()

"""What a test touches: ``when(…)`` that installs at once, holds that can be waited for, and the reckoning at the end."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any, Unpack

from groupcoord.cluster.cluster_core import ClusterCore
from groupcoord.cluster.layer import ServedCluster
from groupcoord.core.effects import Call
from groupcoord.testing.faults.apis import ApiLike, api_of
from groupcoord.testing.faults.asked import NOTHING_KNOWN, Asked, TopicsKnown
from groupcoord.testing.faults.grammar import Verbs
from groupcoord.testing.faults.installed import Held, Installed
from groupcoord.testing.faults.match import Conditions, Match
from groupcoord.testing.faults.node import FaultyNode
from groupcoord.testing.faults.rule import Rule
from groupcoord.testing.faults.rulebook import Rulebook
from groupcoord.testing.faults.verdicts import Verdict

TIMEOUT_S = 10.0
"""So long a wait for a request takes at most unless it is told otherwise."""

Run = Callable[[Callable[[], object]], object]
"""Runs a function where the server's loop is, and returns when it has run."""


class NotArrived(TimeoutError, AssertionError):
    """The requests that were to be held did not come in time; the text says what came instead."""


class Hold(Installed):
    """A rule that holds requests, or their answers, until they are released."""

    def __init__(self, rule: Rule, name: str, faults: "Faults") -> None:
        super().__init__(rule, name, faults.book)
        self._faults = faults

    async def arrived(self, count: int = 1, *, timeout_s: float = TIMEOUT_S) -> tuple[Held, ...]:
        """Wait until ``count`` were held in all; returns those that wait. Raises NotArrived.

        ``timeout_s`` is in seconds of the event loop.
        """
        loop = asyncio.get_running_loop()
        there: asyncio.Future[None] = loop.create_future()

        def arrived() -> None:
            if not there.done():
                there.set_result(None)

        end = self._tell_when(count, lambda: loop.call_soon_threadsafe(arrived))
        try:
            async with asyncio.timeout(timeout_s):
                await there
        except TimeoutError:
            raise self._not_arrived(count, timeout_s) from None
        finally:
            end()
        return self.waiting

    def wait_arrived(self, count: int = 1, *, timeout_s: float = TIMEOUT_S) -> tuple[Held, ...]:
        """``arrived`` for a thread that has no event loop and is not the server's; ``timeout_s`` is in real seconds."""
        there = threading.Event()
        end = self._tell_when(count, there.set)
        try:
            if not there.wait(timeout_s):
                raise self._not_arrived(count, timeout_s)
        finally:
            end()
        return self.waiting

    def release(self, *held: Held) -> None:
        """Let ``held`` go on, in that order; without any, all that wait, in the order they came.

        Raises ValueError for one that was released before.
        """

        def release() -> None:
            for one in held or self.waiting:
                execute_effects = one.node.execute_effects
                if execute_effects is None:
                    raise RuntimeError("the node that holds it has no carry_out: set it to that of the server")
                execute_effects(one.node.let_go(one, self._faults.now_ms()))

        self._faults.run(release)

    def remove(self) -> None:
        """Hold no more, and release what waits."""
        super().remove()
        self.release()

    def _tell_when(self, count: int, tell: Callable[[], object]) -> Callable[[], object]:
        """Call ``tell`` once ``count`` were held; returns what ends that."""
        ends: list[Callable[[], None]] = []

        def look(_: object = None) -> None:
            if self.arrivals >= count:
                tell()

        def begin() -> None:
            ends.append(self.on_arrived(look))
            look()

        self._faults.run(begin)
        return lambda: self._faults.run(ends[0])

    def _not_arrived(self, count: int, timeout_s: float) -> NotArrived:
        what = f"{self.name}: {self.arrivals} of {count} were held within {timeout_s:g} s: {self.rule}"
        return NotArrived("\n".join([what, *self.came()]))


class Installing(Verbs[Installed, Hold]):
    """``faults.when(…)`` before its verb, which installs the rule."""

    def __init__(self, match: Match, faults: "Faults") -> None:
        self._match = match
        self._faults = faults

    def _ruled(self, verdict: Verdict) -> Installed:
        return self._faults.add(Rule(self._match, verdict))

    def _held(self, verdict: Verdict) -> Hold:
        hold = self._faults.add(Rule(self._match, verdict))
        if not isinstance(hold, Hold):
            raise AssertionError(f"{hold} holds")
        return hold


class Faults:
    """The faults of one test or server: its rules, for all its brokers.

    ``now_ms`` is the brokers' clock, ``run`` how code is run where they live, if that is another thread than the test's.
    """

    def __init__(self, *, now_ms: Callable[[], int], run: Run = lambda code: code()) -> None:
        self.now_ms = now_ms
        self.run = run
        self.book = Rulebook(start_ms=now_ms())

    def __repr__(self) -> str:
        return f"<Faults {len(self.book.installed)} rules>"

    def wrap(self, node: ServedCluster, *, broker: int | None = None, known: TopicsKnown | None = None) -> FaultyNode:
        """``node`` with these faults, to be served in its place. Set ``execute_effects`` of what is returned to the server's.

        ``broker`` is the number that rules call it by, or its first broker: its node id, unless told. What a ``ClusterCore``
        knows of topics is known.
        """
        if known is None:
            known = TopicsKnown.to(node) if isinstance(node, ClusterCore) else NOTHING_KNOWN
        return FaultyNode(node, self.book, broker=node.config.node_id if broker is None else broker, known=known)

    def when(self, api: ApiLike | None = None, **conditions: Unpack[Conditions]) -> Installing:
        """Say what is to become of requests of ``api``, or of any: ``when(Heartbeat, group="app").drop()``.

        Takes the fields that ``Match.of`` takes. Raises RuleProblems for what no request can be like.
        """
        return Installing(Match.of(api, **conditions), self)

    def add(self, rule: Rule, name: str | None = None) -> Installed:
        """Install ``rule`` behind the others; ``name`` is what events and complaints call it."""
        name = name or self.book.next_name()
        installed = Hold(rule, name, self) if rule.holds else Installed(rule, name, self.book)
        self.run(lambda: self.book.install(installed))
        return installed

    @property
    def installed(self) -> tuple[Installed, ...]:
        """The rules that may still act."""
        return self.book.installed

    def explain(
        self, request: Any, *, client_id: str | None = None, version: int | None = None, broker: int = 0
    ) -> str:
        """What each rule would do with ``request`` if it came now, and why; of the API's newest version unless told."""
        api = api_of(type(request))
        call = Call(-1, 0, api, api.max_version if version is None else version, client_id, "/127.0.0.1")
        return self.book.explain(Asked(call, request, self.now_ms(), broker=broker, start_ms=self.book.start_ms))

    def unused(self) -> list[str]:
        """In words, each rule that should have acted and did not."""
        return self.book.unused()

    def check(self) -> None:
        """Raises FaultRulesFailed for rules that never acted, and for functions of rules that raised."""
        self.book.check()

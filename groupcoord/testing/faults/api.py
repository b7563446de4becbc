"""The API for tests (``kafka.faults``): ``Faults.when(…)``, which adds a rule at once, rules that can be awaited and released,
barriers, and the check at the end."""

import asyncio
import concurrent.futures
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, TypeVar, Unpack

from groupcoord.cluster.assemble import Assembly
from groupcoord.cluster.layer import ServedCluster
from groupcoord.core.effects import Call
from groupcoord.testing.faults.actions import FaultAction
from groupcoord.testing.faults.layer import FaultLayer
from groupcoord.testing.faults.matching import (
    NO_TOPICS_KNOWN,
    ApiLike,
    MatchConditions,
    RequestContext,
    RequestMatcher,
    RuleProblems,
    TopicResolver,
    find_api,
)
from groupcoord.testing.faults.rule import Rule, RuleBuilder, broker_problems
from groupcoord.testing.faults.rule_file import NamedRule
from groupcoord.testing.faults.rulebook import ActiveRule, HeldRequest, Rulebook
from groupcoord.testing.forgotten_awaits import noted
from groupcoord.testing.waiting import WaitTimeoutError, limit_of

logger = logging.getLogger(__name__)

RunInServer = Callable[[Callable[[], object]], object]
"""Runs a function in the thread of the server's event loop, and returns when it is done."""


class _RuleOfFaults(ActiveRule):
    """A rule for whose actions a test can wait."""

    def __init__(self, rule: Rule, name: str, faults: "FaultRules") -> None:
        super().__init__(rule, name, faults.book)
        self._faults = faults

    @contextmanager
    def _until(
        self, so_many: Callable[[], int], count: int, what: str, timeout_s: float
    ) -> "Iterator[concurrent.futures.Future[None]]":
        """A future that is done when ``so_many()`` reaches ``count``. A TimeoutError in the block becomes a WaitTimeoutError,
        which says ``what`` did not happen, and the requests that nearly matched."""
        reached: concurrent.futures.Future[None] = concurrent.futures.Future()

        def check() -> None:
            if so_many() >= count and not reached.done():
                reached.set_result(None)

        ends: list[Callable[[], None]] = []

        def begin() -> None:
            ends.append(self.on_change(check))
            check()

        self._faults.run(begin)
        try:
            yield reached
        except TimeoutError:
            text = f"{self.name}: {what.format(seen=so_many(), count=count)} within {timeout_s:g} s: {self.rule}"
            raise WaitTimeoutError("\n".join([text, *self.near_misses()])) from None
        finally:
            self._faults.run(ends[0])

    def _until_acted(self, count: int, timeout_s: float) -> "AbstractContextManager[concurrent.futures.Future[None]]":
        return self._until(lambda: self.uses, count, "it acted {seen} of {count} times", timeout_s)


async def _done(reached: "concurrent.futures.Future[None]", timeout_s: float) -> None:
    """Wait for ``reached``. Raises TimeoutError, but not if it is done already, however short the timeout."""
    if not reached.done():
        async with asyncio.timeout(timeout_s):
            await asyncio.wrap_future(reached)


@noted
class AsyncRule(_RuleOfFaults):
    """A rule for a test with asyncio."""

    async def acted(self, count: int = 1, *, timeout: float | None = None) -> None:
        """Wait until it has acted ``count`` times in all. Raises WaitTimeoutError with the requests that nearly matched.

        ``timeout`` is in seconds of the event loop.
        """
        self._faults.require_own_loop()
        timeout_s = limit_of(timeout)
        with self._until_acted(count, timeout_s) as reached:
            await _done(reached, timeout_s)


class SyncRule(_RuleOfFaults):
    """A rule for a test without asyncio, in another thread than the server."""

    def acted(self, count: int = 1, *, timeout: float | None = None) -> None:
        """Wait until it has acted ``count`` times in all. Raises WaitTimeoutError with the requests that nearly matched.

        ``timeout`` is in real seconds.
        """
        timeout_s = limit_of(timeout)
        with self._until_acted(count, timeout_s) as reached:
            reached.result(timeout_s)


class _Holding(_RuleOfFaults):
    """A rule that holds requests or responses until they are released."""

    def release(self, *held: HeldRequest) -> None:
        """Release ``held``, in that order; without arguments, all that are held, in the order in which they came.

        Raises ValueError for one that was released before.
        """

        def release() -> None:
            for one in held or self.waiting:
                one.release(self._faults.now_ms())

        self._faults.run(release)

    def remove(self) -> None:
        """Remove the rule, and release all that it holds. It need not have held anything."""
        super().remove()
        self.release()

    def _until_held(self, count: int, timeout_s: float) -> "AbstractContextManager[concurrent.futures.Future[None]]":
        return self._until(lambda: self.arrivals, count, "{seen} of {count} were held", timeout_s)


@noted
class HoldRule(_Holding, AsyncRule):
    """A rule that holds requests, for a test with asyncio."""

    async def wait(self, count: int = 1, *, timeout: float | None = None) -> tuple[HeldRequest, ...]:
        """Wait until ``count`` requests were held in all; returns those that are held now. Raises WaitTimeoutError.

        ``timeout`` is in seconds of the event loop.
        """
        self._faults.require_own_loop()
        timeout_s = limit_of(timeout)
        with self._until_held(count, timeout_s) as reached:
            await _done(reached, timeout_s)
        return self.waiting


class SyncHoldRule(_Holding, SyncRule):
    """A rule that holds requests, for a test without asyncio, in another thread than the server."""

    def wait(self, count: int = 1, *, timeout: float | None = None) -> tuple[HeldRequest, ...]:
        """Wait until ``count`` requests were held in all; returns those that are held now. Raises WaitTimeoutError.

        ``timeout`` is in real seconds.
        """
        timeout_s = limit_of(timeout)
        with self._until_held(count, timeout_s) as reached:
            reached.result(timeout_s)
        return self.waiting


@noted
class Barrier:
    """Holds ``size`` requests by the rule ``hold``, and releases them in the order that the test chooses."""

    def __init__(self, hold: HoldRule, size: int) -> None:
        self._hold = hold
        self._size = size

    @property
    def waiting(self) -> tuple[HeldRequest, ...]:
        """The requests that it holds so far, in the order in which they came."""
        return self._hold.waiting

    async def wait(self, *, timeout: float | None = None) -> tuple[HeldRequest, ...]:
        """Wait until all requests have come. Raises WaitTimeoutError, which lists those that have."""
        await self._hold.wait(self._size, timeout=timeout)
        return self._hold.waiting

    def release(self, order: Sequence[int] | None = None) -> None:
        """Release the requests: in the order in which they came, or in the ``order`` of these indexes into ``waiting``.

        Raises ValueError unless ``order`` names each of them once.
        """
        waiting = self._hold.waiting
        if order is None:
            order = range(len(waiting))
        if sorted(order) != list(range(len(waiting))):
            raise ValueError(f"{len(waiting)} requests wait, which {list(order)} does not order")
        self._hold.release(*(waiting[index] for index in order))


R = TypeVar("R", bound=_RuleOfFaults)
H = TypeVar("H", bound=_Holding)


class FaultsWhen(RuleBuilder[R, H]):
    """The result of ``faults.when(…)``. The action that follows adds the rule; if none follows, the test fails."""

    def __init__(self, matcher: RequestMatcher, faults: "FaultRules", rule: type[R], hold: type[H]) -> None:
        self._matcher = matcher
        self._faults = faults
        self._rule = rule
        self._hold = hold
        faults.book.unfinished.append(matcher)

    def _build(self, action: FaultAction) -> R:
        self._finish()
        return self._faults.add_as(self._rule, Rule(self._matcher, action))

    def _build_hold(self, action: FaultAction) -> H:
        self._finish()
        return self._faults.add_as(self._hold, Rule(self._matcher, action))

    def _finish(self) -> None:
        self._faults.book.unfinished = [each for each in self._faults.book.unfinished if each is not self._matcher]


class FaultRules:
    """The rules of one test or server, for all its brokers.

    ``now_ms`` is the brokers' clock. ``run`` runs code in the thread of the brokers, if that is not the test's.
    ``require_own_loop`` raises in any event loop but that of the brokers.
    """

    def __init__(
        self,
        *,
        now_ms: Callable[[], int],
        run: RunInServer = lambda code: code(),
        require_own_loop: Callable[[], None] = lambda: None,
    ) -> None:
        self.now_ms = now_ms
        self.run = run
        self.require_own_loop = require_own_loop
        self.book = Rulebook(start_ms=now_ms())

    def __repr__(self) -> str:
        return f"<Faults {len(self.book.active)} rules>"

    def add_layer(self, assembly: Assembly) -> FaultLayer:
        """Add these faults to ``assembly`` as a layer."""
        topics = TopicResolver.of(assembly.core)
        layer = assembly.add(lambda inner: self.layer(inner, topics=topics))
        layer.core, self.book.brokers = assembly.core, assembly.brokers.ids
        return layer

    def layer(
        self, inner: ServedCluster, *, broker: int | None = None, topics: TopicResolver = NO_TOPICS_KNOWN
    ) -> FaultLayer:
        """A layer with these faults around ``inner``. Its ``execute_effects`` has to be set to that of the server.

        ``broker`` is the id of the first broker in rules, by default its node id.
        """
        return FaultLayer(inner, self.book, broker=inner.config.node_id if broker is None else broker, topics=topics)

    def add(self, rule: Rule, name: str | None = None) -> AsyncRule:
        """Add ``rule`` after the others; ``name`` is its name in events and error texts."""
        return self.add_as(HoldRule if rule.holds else AsyncRule, rule, name)

    def add_as(self, of_class: type[R], rule: Rule, name: str | None = None) -> R:
        """Add ``rule`` as an instance of ``of_class``; see ``add``. Raises RuleProblems if it names brokers that do not
        exist."""
        if problems := tuple(broker_problems(rule, self.book.brokers)):
            raise RuleProblems(problems)
        active = of_class(rule, name or self.book.next_name(), self)
        self.run(lambda: self.book.append(active))
        return active

    def add_named(self, rules: Iterable[NamedRule]) -> None:
        """Add the rules of a file, and log them."""
        for name, rule in rules:
            self.add(rule, name)
            logger.info("%s: %s", name, rule)

    @property
    def rules(self) -> tuple[ActiveRule, ...]:
        """All rules that were ever added, in order: each with its ``name``, how often it has acted (``uses``), and whether it
        ``is_removed``."""
        return self.book.rules

    def explain(
        self, request: Any, *, client_id: str | None = None, version: int | None = None, broker: int = 0
    ) -> str:
        """What each rule would do with ``request`` if it were sent now, and why. ``version`` is by default the newest."""
        api = find_api(type(request))
        call = Call(-1, 0, api, api.max_version if version is None else version, client_id, "/127.0.0.1")
        return self.book.explain(
            RequestContext(call, request, self.now_ms(), broker=broker, start_ms=self.book.start_ms)
        )

    def unused(self) -> list[str]:
        """The rules that should have acted and did not, in words."""
        return self.book.unused()

    def log_unused(self) -> None:
        """Log a warning for each rule that never acted, with the requests that nearly matched; one log record for each line."""
        for why in self.unused():
            for line in why.splitlines():
                logger.warning("%s", line)

    def check(self) -> None:
        """Raises FaultRulesFailed if a rule never acted, or a function of a rule raised an exception."""
        self.book.check()


class Faults(FaultRules):
    """The fault rules of a test with asyncio, or of a server."""

    def when(
        self, api: ApiLike | None = None, **conditions: Unpack[MatchConditions]
    ) -> FaultsWhen[AsyncRule, HoldRule]:
        """The condition of a rule for requests of ``api``, or of any API: ``when("Heartbeat", group="app").drop()``.

        Takes the fields of RequestMatcher. Raises RuleProblems for conditions that no request can meet.
        """
        return FaultsWhen(RequestMatcher.of(api, **conditions), self, AsyncRule, HoldRule)

    def sync(self) -> "SyncFaults":
        """The same rules for a test without asyncio, in another thread than the server."""
        return SyncFaults(self)


class SyncFaults(FaultRules):
    """``faults`` for a test without asyncio, in another thread than the server."""

    def __init__(self, faults: Faults) -> None:
        super().__init__(now_ms=faults.now_ms, run=faults.run)
        self.book = faults.book

    def when(
        self, api: ApiLike | None = None, **conditions: Unpack[MatchConditions]
    ) -> FaultsWhen[SyncRule, SyncHoldRule]:
        """The condition of a rule for requests of ``api``, or of any API: ``when("Heartbeat", group="app").drop()``.

        Takes the fields of RequestMatcher. Raises RuleProblems for conditions that no request can meet.
        """
        return FaultsWhen(RequestMatcher.of(api, **conditions), self, SyncRule, SyncHoldRule)

"""A rule that is installed: what it took, what it held, what it let pass and why."""

from collections import Counter
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from groupcoord.core.effects import Call, Reply
from groupcoord.testing.faults.asked import Asked
from groupcoord.testing.faults.refusal import refusal
from groupcoord.testing.faults.rule import Rule

if TYPE_CHECKING:
    from groupcoord.testing.faults.node import FaultyNode
    from groupcoord.testing.faults.rulebook import Rulebook

NEAREST = 3
"""So many of the requests that came nearest to an unused rule are shown."""


class FaultRulesFailed(AssertionError):
    """Rules that never acted, or whose functions raised; the text says which and why."""


class Near(NamedTuple):
    """A request that a rule let pass, and why."""

    distance: int
    number: int
    text: str
    reasons: tuple[str, ...]


class Held:
    """A request, or with ``answer`` its answer, that waits at ``node`` to be released."""

    def __init__(self, asked: Asked, installed: "Installed", node: "FaultyNode", answer: Reply | None) -> None:
        self.asked = asked
        self.installed = installed
        self.node = node
        self.answer = answer

    def __repr__(self) -> str:
        return f"<Held {self.asked}>"

    @property
    def call(self) -> Call:
        """Who asks what in which version."""
        return self.asked.call

    @property
    def request(self) -> Any:
        """The request, in the shape of the newest version."""
        return self.asked.request

    @property
    def at_ms(self) -> int:
        """Since when it waits."""
        return self.asked.kept_since_ms


class Installed:
    """A rule and what became of it. As a context manager it acts until the end of the block, and must have acted there."""

    def __init__(self, rule: Rule, name: str, book: "Rulebook") -> None:
        self.rule = rule
        self.name = name
        self.matches = 0
        """How many requests it took. Of those, some may wait for the answer that it is to act on."""
        self.uses = 0
        """How often it acted."""
        self.seen = 0
        """How many requests matched all but ``nth`` and the number of times."""
        self.is_removed = False
        self.waiting: tuple[Held, ...] = ()
        """What is held and not yet released."""
        self.arrivals = 0
        """How many were held so far."""
        self._book = book
        self._listeners: list[Callable[[Held], None]] = []
        self._in_block = False
        self._near: list[Near] = []
        self._others: Counter[str] = Counter()
        self._same = 0
        self._awaited: dict[int, str] = {}
        self._has_told = False

    def __repr__(self) -> str:
        return f"<{self.name}: {self.rule} used {self.uses} times>"

    # The end of the grammar.

    def times(self, count: int) -> Self:
        """Act so many times."""
        self.rule = self.rule.times(count)
        return self

    def always(self) -> Self:
        """Act whenever it matches."""
        self.rule = self.rule.always()
        return self

    def optional(self) -> Self:
        """Nobody minds if it never acts."""
        self.rule = self.rule.optional()
        return self

    def remove(self) -> None:
        """Act no more; what it waits to do to answers that are still to come is not done either."""
        self._book.remove(self)

    def __enter__(self) -> Self:
        self._in_block = True
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Raises FaultRulesFailed if it never acted, unless the block failed by itself."""
        self.remove()
        why, self._has_told = self.why_unused(), True
        if error is None and why is not None:
            raise FaultRulesFailed(f"in its block, {why}")

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.__exit__(kind, error, traceback)

    # What the rulebook and the node do with it.

    @property
    def is_used_up(self) -> bool:
        """Has it acted as often as it may?"""
        limit = None if self._in_block and self.rule.count is None and self.rule.match.nth is None else self.rule.limit
        return limit is not None and self.matches >= limit

    def of_number(self, number: int) -> list[str]:
        """Why it does not act on the request that is ``number`` of those that match otherwise; nothing if it does."""
        nth = self.rule.match.nth
        if nth is None or number in nth:
            return []
        return [f"it is number {number} of those that match otherwise, and nth is {nth}"]

    def fields_of(self, asked: Asked) -> list[str]:
        """Why ``asked`` is not what it is about, whatever its number; nothing if it is. What ``where`` raises is kept."""
        match, verdict = self.rule.match, self.rule.verdict
        reasons = match.differences(asked)
        if reasons:
            return reasons
        if verdict.verb.needs_answer and not asked.wants_answer:
            return ["a Produce with acks=0 gets no answer"]
        if verdict.name in ("refuse", "refuse_answer") and refusal(asked.call, asked.request, verdict.argument) is None:
            return [f"its answer has no place for an error at version {asked.call.version}"]
        if match.where is not None:
            if asked.request is None:
                return ["it was not understood, so where cannot be asked"]
            try:
                if not match.where(asked.request):
                    return ["where says no"]
            except Exception as error:  # nobody else would tell whose fault it was
                self._book.function_failed(self, error)
                return [f"where raises {error!r}"]
        return []

    def missed(self, asked: Asked, reasons: list[str]) -> None:
        """Remember ``asked`` if few came nearer."""
        api = self.rule.match.api
        if api is not None and asked.call.api is not api:
            self._others[asked.call.api.name] += 1
            return
        self._same += 1
        distance = len(reasons)
        if len(self._near) == NEAREST and distance >= self._near[-1].distance:
            return
        self._near.append(Near(distance, self._same, str(asked), tuple(reasons)))
        self._near.sort()
        del self._near[NEAREST:]

    def matched(self, asked: Asked) -> None:
        """It takes ``asked``."""
        self.matches += 1
        if self.rule.verdict.verb.on_answer and not self.uses:
            self._awaited[id(asked)] = str(asked)

    def acted(self, asked: Asked) -> None:
        """It has done to ``asked`` what it does."""
        self._awaited.pop(id(asked), None)
        self.uses += 1

    def lost(self, asked: Asked) -> None:
        """The answer that it waits for will not come."""
        self._awaited.pop(id(asked), None)

    def gave_back(self, asked: Asked, why: str) -> None:
        """It took ``asked`` and can do nothing to it: the next one counts instead."""
        self._awaited.pop(id(asked), None)
        self.matches -= 1
        self.missed(asked, [why])

    def hold(self, held: Held) -> None:
        """``held`` waits here."""
        self.waiting += (held,)
        self.arrivals += 1
        for listener in tuple(self._listeners):
            listener(held)

    def on_arrived(self, listener: Callable[[Held], None]) -> Callable[[], None]:
        """Call ``listener`` for each request that is held from now on; returns what ends that."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def why_unused(self) -> str | None:
        """In words, what came instead of what it waits for; None if it acted, or need not."""
        if self.uses or self.rule.is_optional or self._has_told:
            return None
        return "\n".join([f"{self.name} never acted: {self.rule}", *self.came()])

    def came(self) -> list[str]:
        """In words, what it waits for, or what came nearest to what it is about."""
        if self._awaited:
            return ["  it waits for the answer to", *(f"    {text}" for text in self._awaited.values())]
        if not self._near:
            api = self.rule.match.api
            others = ", ".join(f"{name} ({count})" for name, count in self._others.most_common()) or "nothing"
            return [f"  no {'request' if api is None else api.name} came; what came: {others}"]
        lines = [f"  the nearest of {self._same} requests:" if self._same > 1 else "  the nearest request:"]
        for near in self._near:
            lines += [f"    {near.text}", *(f"      {reason}" for reason in near.reasons)]
        return lines

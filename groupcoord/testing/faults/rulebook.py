"""Rulebook, the fault rules of one test or server: finds the rule that acts on a request, and counts what each rule did."""

from collections import Counter
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, NamedTuple, Self

from groupcoord.core.effects import Call
from groupcoord.testing.faults.actions import error_reply
from groupcoord.testing.faults.matching import RequestContext, RequestMatcher
from groupcoord.testing.faults.rule import Rule

MAX_NEAR_MISSES = 3
"""How many requests that nearly matched an unused rule are shown."""


class FaultRulesFailed(AssertionError):
    """Fault rules never acted, or their functions raised exceptions; the text says which and why."""


class NearMiss(NamedTuple):
    """A request that nearly matched a rule, and why it did not."""

    distance: int
    number: int
    text: str
    reasons: tuple[str, ...]


class HeldRequest:
    """A request or response that a rule holds. On its release ``resume`` is called with the time (ms)."""

    def __init__(self, context: RequestContext, rule: "ActiveRule", resume: Callable[[int], None]) -> None:
        self.context = context
        self.rule = rule
        self._resume = resume

    def __repr__(self) -> str:
        return f"<HeldRequest {self.context}>"

    @property
    def call(self) -> Call:
        """The call of the request: connection, client id, version."""
        return self.context.call

    @property
    def request(self) -> Any:
        """The request, with the fields of the newest version."""
        return self.context.request

    @property
    def at_ms(self) -> int:
        """Since when it is held (ms)."""
        return self.context.held_since_ms

    def release(self, now_ms: int) -> None:
        """Release it. Raises ValueError if it was released before."""
        waiting = self.rule.waiting
        if self not in waiting:
            raise ValueError(f"{self} was released before")
        self.rule.waiting = tuple(other for other in waiting if other is not self)
        self._resume(now_ms)


class ActiveRule:
    """A rule in a rulebook, and its history. As a context manager it acts until the end of the block, and must act in it."""

    def __init__(self, rule: Rule, name: str, book: "Rulebook") -> None:
        self.rule = rule
        self.name = name
        self.matches = 0
        """How many requests it has matched, including those to whose response it has yet to be applied."""
        self.uses = 0
        """How often it has acted."""
        self.seen = 0
        """How many requests matched all conditions but ``nth``."""
        self.is_removed = False
        self.waiting: tuple[HeldRequest, ...] = ()
        """The requests that are held and not yet released."""
        self.arrivals = 0
        """How many requests were held so far."""
        self._book = book
        self._listeners: list[Callable[[], None]] = []
        self._in_block = False
        self._near_misses: list[NearMiss] = []
        self._other_apis: Counter[str] = Counter()
        self._same_api = 0
        self._awaited: dict[int, str] = {}

    def __repr__(self) -> str:
        return f"<{self.name}: {self.rule} used {self.uses} times>"

    # For tests.

    def times(self, count: int) -> Self:
        """Act ``count`` times."""
        self.rule = self.rule.times(count)
        return self

    def always(self) -> Self:
        """Act whenever it matches."""
        self.rule = self.rule.always()
        return self

    def optional(self) -> Self:
        """Let it be no error if it never acts."""
        self.rule = self.rule.optional()
        return self

    def remove(self) -> None:
        """Remove it: it no longer acts, also not on responses that it waits for. It need not have acted."""
        self._book.remove(self)

    def __enter__(self) -> Self:
        self._in_block = True
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Raises FaultRulesFailed if it never acted and the block did not raise."""
        why = self.why_unused()
        self.remove()
        if error is None and why is not None:
            raise FaultRulesFailed(f"in its block, {why}")

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.__exit__(kind, error, traceback)

    # For the rulebook and the layer.

    @property
    def is_used_up(self) -> bool:
        """Has it acted as often as it may?"""
        unlimited = self._in_block and self.rule.count is None and self.rule.matcher.nth is None
        limit = None if unlimited else self.rule.limit
        return limit is not None and self.matches >= limit

    def record_match(self, context: RequestContext) -> None:
        """Count a request that the rule matched."""
        self.matches += 1
        if self.rule.action.on_answer and not self.uses:
            self._awaited[id(context)] = str(context)

    def record_use(self, context: RequestContext) -> None:
        """Count that the rule acted on the request or its answer."""
        self._awaited.pop(id(context), None)
        self.uses += 1
        self._changed()

    def cancel(self, context: RequestContext) -> None:
        """Forget the response that it waits for, because it will not come."""
        self._awaited.pop(id(context), None)

    def unmatch(self, context: RequestContext, reason: str) -> None:
        """Undo ``record_match``, because the rule cannot act on the request after all."""
        self._awaited.pop(id(context), None)
        self.matches -= 1
        self.record_near_miss(context, [reason])

    def record_near_miss(self, context: RequestContext, reasons: list[str]) -> None:
        """Remember the request if it is among those that nearly matched."""
        api = self.rule.matcher.api
        if api is not None and context.call.api is not api:
            self._other_apis[context.call.api.name] += 1
            return
        self._same_api += 1
        distance = len(reasons)
        if len(self._near_misses) == MAX_NEAR_MISSES and distance >= self._near_misses[-1].distance:
            return
        self._near_misses.append(NearMiss(distance, self._same_api, str(context), tuple(reasons)))
        self._near_misses.sort()
        del self._near_misses[MAX_NEAR_MISSES:]

    def hold(self, held: HeldRequest) -> None:
        """Hold a request."""
        self.waiting += (held,)
        self.arrivals += 1
        self._changed()

    def _changed(self) -> None:
        for listener in tuple(self._listeners):
            listener()

    def on_change(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call ``listener`` whenever it has acted or holds one more request; returns a function that removes the listener."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def why_unused(self) -> str | None:
        """Why it never acted, in words; None if it has acted, is optional, or was removed."""
        if self.uses or self.rule.is_optional or self.is_removed:
            return None
        return "\n".join([f"{self.name} never acted: {self.rule}", *self.near_misses()])

    def near_misses(self) -> list[str]:
        """The responses that it waits for, or the requests that nearly matched, in words."""
        if self._awaited:
            return ["  it waits for the answer to", *(f"    {text}" for text in self._awaited.values())]
        if not self._near_misses:
            api = self.rule.matcher.api
            others = ", ".join(f"{name} ({count})" for name, count in self._other_apis.most_common()) or "nothing"
            other = "other " if self.matches else ""
            return [f"  no {other}{'request' if api is None else api.name} came; what came: {others}"]
        count = self._same_api
        lines = [f"  the nearest of {count} requests:" if count > 1 else "  the nearest request:"]
        for near_miss in self._near_misses:
            lines += [f"    {near_miss.text}", *(f"      {reason}" for reason in near_miss.reasons)]
        return lines


class Rulebook:
    """Rules in the order in which they were added. ``start_ms`` is subtracted from times in texts."""

    def __init__(self, start_ms: int = 0) -> None:
        self.start_ms = start_ms
        self.active: tuple[ActiveRule, ...] = ()
        """The rules that are not removed. The tuple is replaced and never changed, because other threads may read it."""
        self.unfinished: list[RequestMatcher] = []
        """The conditions of each ``when(…)`` without an action."""
        self.failures: list[tuple[ActiveRule, Exception]] = []
        """Exceptions that functions of rules raised."""
        self.brokers: Sequence[int] = ()
        """The ids of the brokers to which rules can be applied."""
        self._all: list[ActiveRule] = []

    def __repr__(self) -> str:
        return f"<Rulebook {len(self.active)} rules>"

    @property
    def rules(self) -> tuple[ActiveRule, ...]:
        """All rules that were ever added, in order."""
        return tuple(self._all)

    def next_name(self) -> str:
        """The default name of the next rule."""
        return f"rule {len(self._all) + 1}"

    def add(self, rule: Rule, name: str | None = None) -> ActiveRule:
        """Add ``rule`` after the others."""
        active = ActiveRule(rule, name or self.next_name(), self)
        self.append(active)
        return active

    def append(self, active: ActiveRule) -> None:
        """Add ``active`` after the others."""
        self._all.append(active)
        self.active += (active,)

    def remove(self, active: ActiveRule) -> None:
        """Remove ``active``: it no longer acts. It need not have acted."""
        active.is_removed = True
        self.active = tuple(other for other in self.active if other is not active)

    def clear(self, start_ms: int) -> None:
        """Remove and forget all rules; times in texts count from ``start_ms`` on."""
        for active in self._all:
            active.is_removed = True
            active.waiting = ()
        self.start_ms = start_ms
        self.active, self.unfinished, self.failures, self._all = (), [], [], []

    def match(self, context: RequestContext) -> ActiveRule | None:
        """The first rule that matches the request; every rule whose other conditions match counts it for ``nth``."""
        found: ActiveRule | None = None
        for active in self.active:
            if active.is_used_up:
                continue
            reasons = self._mismatches(active, context)
            if not reasons:
                active.seen += 1
                reasons = _number_mismatch(active, active.seen)
            if not reasons and found is not None:
                reasons = [f"{found.name}, installed before, took it"]
            if reasons:
                active.record_near_miss(context, reasons)
            else:
                found = active
        if found is not None:
            found.record_match(context)
        return found

    def would_match(self, context: RequestContext) -> bool:
        """Does a rule match the request? The request is not counted."""
        return any(
            not active.is_used_up
            and not self._mismatches(active, context)
            and not _number_mismatch(active, active.seen + 1)
            for active in self.active
        )

    def _mismatches(self, active: ActiveRule, context: RequestContext) -> list[str]:
        """Why the request does not match, regardless of ``nth``; empty if it matches. Records what ``where`` raises."""
        matcher, action = active.rule.matcher, active.rule.action
        reasons = matcher.mismatches(context)
        if reasons:
            return reasons
        if action.type.needs_answer and not context.expects_answer:
            return ["a Produce with acks=0 gets no answer"]
        refuses = action.name in ("refuse", "refuse_answer")
        if refuses and error_reply(context.call, context.request, action.argument) is None:
            return [f"its answer has no place for an error at version {context.call.version}"]
        if matcher.where is not None:
            if context.request is None:
                return ["it was not understood, so where cannot be asked"]
            try:
                if not matcher.where(context.request):
                    return ["where says no"]
            except Exception as error:  # reported at the end
                self.record_failure(active, error)
                return [f"where raises {error!r}"]
        return []

    def record_failure(self, active: ActiveRule, error: Exception) -> None:
        """Record that a function of ``active`` raised ``error``, for ``check`` to report."""
        self.failures.append((active, error))

    def unused(self) -> list[str]:
        """The rules that should have acted and did not, in words."""
        return [why for active in self._all if (why := active.why_unused()) is not None]

    def check(self) -> None:
        """Raises FaultRulesFailed if a rule never acted, a function raised, or a ``when(…)`` has no action."""
        texts = [f"{active.name}: a function of {active.rule} raised {error!r}" for active, error in self.failures]
        texts += [
            f"{matcher} says nothing that is to happen: add an action, such as .drop()" for matcher in self.unfinished
        ]
        texts += self.unused()
        if texts:
            cause = self.failures[0][1] if self.failures else None
            raise FaultRulesFailed("\n".join(["fault rules:", *texts])) from cause

    def explain(self, context: RequestContext) -> str:
        """What each rule would do with the request if it were sent now, and why."""
        lines = [str(context)]
        found: ActiveRule | None = None
        for active in self._all:
            if active.is_removed:
                answer = "no longer: it was removed"
            elif active.is_used_up:
                answer = f"no longer: it has acted {active.uses} of {active.rule.limit} times"
            elif reasons := self._mismatches(active, context) or _number_mismatch(active, active.seen + 1):
                answer = f"no: {'; '.join(reasons)}"
            elif found is not None:
                answer = f"no: {found.name} comes before"
            else:
                found, answer = active, "yes"
            lines.append(f"  {active.name}, {active.rule}: {answer}")
        if not self._all:
            lines.append("  there are no rules")
        return "\n".join(lines)


def _number_mismatch(active: ActiveRule, number: int) -> list[str]:
    """Why ``nth`` excludes the ``number``-th request that matches the other conditions; empty if it does not."""
    nth = active.rule.matcher.nth
    if nth is None or number in nth:
        return []
    return [f"it is number {number} of those that match otherwise, and nth is {nth}"]

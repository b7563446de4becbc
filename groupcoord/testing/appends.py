"""Appends to ``__consumer_offsets`` that fail, or that wait until the test lets them go.

What a client is told of it, and what the coordinator keeps, is as in Kafka: see ``groupcoord/cluster/append_gate.py``.
"""

from collections.abc import Callable
from dataclasses import dataclass

from groupcoord.cluster.append_gate import HOLD, STORE, AppendDecision
from groupcoord.cluster.cluster_core import ClusterCore
from groupcoord.core.effects import Append, Effect
from groupcoord.protocol.errors import ErrorCode
from groupcoord.testing.waiting import Waiting


@dataclass(eq=False, slots=True)
class AppendRule:
    """Stores, holds or fails the next ``left`` appends, of ``group`` if it is given; ``uses`` counts those it applied to."""

    decision: AppendDecision
    group: str | None
    left: int
    uses: int = 0

    def __str__(self) -> str:
        what = f"fail_append {self.decision.name}" if isinstance(self.decision, ErrorCode) else "hold_append"
        return f"{what}{'' if self.group is None else f' of group {self.group}'}"


class HeldAppends:
    """The appends that a rule holds back."""

    def __init__(
        self,
        rule: AppendRule,
        node: ClusterCore,
        waiting: Waiting,
        apply: Callable[[list[Effect], str], None],
        now_ms: Callable[[], int],
    ) -> None:
        self._rule = rule
        self._node = node
        self._waiting = waiting
        self._apply = apply
        self._now_ms = now_ms
        self.held: list[Append] = []
        """In the order in which they came, without those that were let go."""

    async def wait(self, count: int = 1, *, timeout: float | None = None) -> list[Append]:
        """Wait until ``count`` appends are held. Raises WaitTimeoutError."""
        await self._waiting.until(
            lambda: len(self.held) >= count or None,
            f"{self._rule}: {count} should be held",
            lambda: f"{len(self.held)} are",
            timeout=timeout,
        )
        return self.held

    def release(self) -> None:
        """Let all that is held be stored, in order."""
        for append in self._taken():
            self._apply(self._node.appends.release(append, self._now_ms()), "the append is stored")

    def fail(self, error: str | ErrorCode) -> None:
        """Let all that is held fail with ``error``, as the log says it. Raises KeyError for what is no error's name."""
        code = code_of(error)
        still = {append.append_id for append in self._node.appends.held()}
        for append in self._taken():
            if append.append_id in still:
                self._apply(self._node.appends.fail(append, code, self._now_ms()), f"the append fails: {code.name}")
                still = {each.append_id for each in self._node.appends.held()}  # those behind it have failed with it

    def _taken(self) -> list[Append]:
        taken, self.held = self.held, []
        return taken


class AppendRules:
    """The rules for appends of one node; satisfies ``append_gate.AppendGate``."""

    def __init__(
        self, node: ClusterCore, waiting: Waiting, apply: Callable[[list[Effect], str], None], now_ms: Callable[[], int]
    ) -> None:
        self._node = node
        self._waiting = waiting
        self._apply = apply
        self._now_ms = now_ms
        self._rules: list[tuple[AppendRule, HeldAppends]] = []

    def __call__(self, append: Append, now_ms: int, /) -> AppendDecision:  # noqa: ARG002 - whenever it is
        """What the first rule says that has something to say of ``append``."""
        for rule, held in self._rules:
            if rule.left and (rule.group is None or rule.group in _groups(append)):
                rule.left -= 1
                rule.uses += 1
                if rule.decision == HOLD:
                    held.held.append(append)
                    self._waiting.check_conditions()
                return rule.decision
        return STORE

    def add(self, decision: AppendDecision, group: str | None, times: int) -> HeldAppends:
        """One more rule, behind the others."""
        rule = AppendRule(decision, group, times)
        held = HeldAppends(rule, self._node, self._waiting, self._apply, self._now_ms)
        self._rules.append((rule, held))
        self._node.appends.gate = self
        return held

    def check(self) -> None:
        """Raises AssertionError for rules that met nothing."""
        unused = [str(rule) for rule, _ in self._rules if not rule.uses]
        assert not unused, f"nothing was appended that these rules are for: {', '.join(unused)}"


def code_of(error: str | ErrorCode) -> ErrorCode:
    """The error of that name. Raises KeyError."""
    return error if isinstance(error, ErrorCode) else ErrorCode[error]


def _groups(append: Append) -> set[str]:
    return {record.key.group for record in append.records}

"""Appends of coordinators that fail, or that wait until the test lets them go.

What a client is told of it, and what the coordinator keeps, is as in Kafka: see ``groupcoord/cluster/append_gate.py``.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from groupcoord.broker.topic_names import TRANSACTION_STATE
from groupcoord.cluster.append_gate import HOLD, STORE, AppendDecision
from groupcoord.cluster.cluster_core import ClusterCore
from groupcoord.core.effects import Append, Effect
from groupcoord.protocol.errors import ErrorCode
from groupcoord.testing.waiting import Waiting


@dataclass(eq=False, slots=True)
class AppendRule:
    """Stores, holds or fails the next ``left`` appends; ``uses`` counts those it applied to.

    With a ``group`` or a ``transactional_id`` it is for those with a record of that, else for all, markers included.
    """

    decision: AppendDecision
    group: str | None
    transactional_id: str | None
    left: int
    uses: int = 0

    def __post_init__(self) -> None:
        if self.group is not None and self.transactional_id is not None:
            raise ValueError("no append is of a group and of a transactional id: add a rule for each")

    def __str__(self) -> str:
        what = f"fail_append {self.decision.name}" if isinstance(self.decision, ErrorCode) else "hold_append"
        if self.transactional_id is not None:
            return f"{what} of transactional id {self.transactional_id}"
        return f"{what}{'' if self.group is None else f' of group {self.group}'}"

    def applies_to(self, append: Append) -> bool:
        """Is the rule for ``append``?"""
        if self.transactional_id is not None:
            return append.topic == TRANSACTION_STATE and self.transactional_id in {each.key for each in append.records}
        if self.group is not None:
            keys = () if append.topic == TRANSACTION_STATE else (each.key for each in append.records)
            return self.group in {getattr(key, "group", None) or getattr(key, "group_id", None) for key in keys}
        return True


class HeldAppends:
    """The appends that a rule holds back."""

    def __init__(self, rule: AppendRule, rules: "AppendRules") -> None:
        self.rule = rule
        self._rules = rules
        self.held: list[Append] = []
        """In the order in which they came, without those that were stored or failed."""

    async def wait(self, count: int = 1, *, timeout: float | None = None) -> list[Append]:
        """Wait until ``count`` appends are held. Raises WaitTimeoutError."""
        await self._rules.waiting.until(
            lambda: len(self.held) >= count or None,
            f"{self.rule}: {count} should be held",
            lambda: f"{len(self.held)} are",
            timeout=timeout,
        )
        return self.held

    def release(self) -> None:
        """Let all that is held be stored, in order; what is lost because its coordinator has moved meanwhile stays so."""
        rules = self._rules
        for append in self._taken():
            rules.apply(rules.node.appends.release(append, rules.now_ms()), "the append is stored")

    def fail(self, error: str | ErrorCode) -> None:
        """Let all that is held fail with ``error``, as the log says it. Raises KeyError for what is no error's name."""
        code, rules = code_of(error), self._rules
        for append in self._taken():
            rules.apply(rules.node.appends.fail(append, code, rules.now_ms()), f"the append fails: {code.name}")

    def _taken(self) -> Iterator[Append]:
        """What is held, without what is lost by then: those behind one that has failed have failed with it."""
        taken, self.held = self.held, []
        return (append for append in taken if append in self._rules.node.appends.held())


class AppendRules:
    """The rules for appends of one node; satisfies ``append_gate.AppendGate``."""

    def __init__(
        self, node: ClusterCore, waiting: Waiting, apply: Callable[[list[Effect], str], None], now_ms: Callable[[], int]
    ) -> None:
        self.node, self.waiting, self.apply, self.now_ms = node, waiting, apply, now_ms
        self._all: list[HeldAppends] = []

    def __call__(self, append: Append, now_ms: int, /) -> AppendDecision:  # noqa: ARG002 - whenever it is
        """What the first rule says that has something to say of ``append``."""
        for each in self._all:
            rule = each.rule
            if rule.left and rule.applies_to(append):
                rule.left -= 1
                rule.uses += 1
                if rule.decision == HOLD:
                    each.held.append(append)
                    self.waiting.check_conditions()
                return rule.decision
        return STORE

    def add(self, decision: AppendDecision, group: str | None, transactional_id: str | None, times: int) -> HeldAppends:
        """One more rule, behind the others. Raises ValueError for one with both a group and a transactional id."""
        added = HeldAppends(AppendRule(decision, group, transactional_id, times), self)
        self._all.append(added)
        self.node.appends.gate = self
        return added

    def check(self) -> None:
        """Raises AssertionError for rules that met nothing."""
        unused = [str(each.rule) for each in self._all if not each.rule.uses]
        assert not unused, f"nothing was appended that these rules are for: {', '.join(unused)}"


def code_of(error: str | ErrorCode) -> ErrorCode:
    """The error of that name. Raises KeyError."""
    return error if isinstance(error, ErrorCode) else ErrorCode[error]

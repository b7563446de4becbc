"""Rules that fail or hold the appends of coordinators to ``__consumer_offsets`` and ``__transaction_state``.

What a client is told of it, and what the coordinator keeps, is as in Kafka: see
``groupcoord/cluster/coordinator_partition_writer.py``.
"""

from collections.abc import Callable, Iterator
from typing import TypeVar

from groupcoord.broker.topic_names import TRANSACTION_STATE
from groupcoord.cluster.cluster_core import ClusterCore
from groupcoord.cluster.coordinator_partition_writer import HOLD, STORE, AppendDecision
from groupcoord.core.effects import Append, Effect
from groupcoord.protocol.errors import ErrorCode
from groupcoord.testing.faults.actions import error_code
from groupcoord.testing.forgotten_awaits import noted
from groupcoord.testing.waiting import Waiting

R = TypeVar("R", bound="AppendRule")


@noted
class AppendRule:
    """Stores, holds or fails the next appends: as many as are ``left``.

    With a ``group`` or a ``transactional_id`` it applies to appends with a record of that, otherwise to all, transaction
    markers included. Raises ValueError if both are given.
    """

    decision: AppendDecision
    """STORE, HOLD, or the error with which appends fail."""
    group: str | None
    """The group to whose appends it applies; None: any."""
    transactional_id: str | None
    """The transactional id to whose appends it applies; None: any."""
    left: int
    """To how many more appends it will apply."""
    uses: int
    """How many appends it applied to so far."""

    def __init__(
        self,
        rules: "AppendRules",
        decision: AppendDecision,
        group: str | None,
        transactional_id: str | None,
        times: int,
    ) -> None:
        if group is not None and transactional_id is not None:
            raise ValueError("no append is of a group and of a transactional id: add a rule for each")
        self.decision, self.group, self.transactional_id = decision, group, transactional_id
        self.left, self.uses = times, 0
        self._rules = rules

    def __str__(self) -> str:
        what = f"fail_append {self.decision.name}" if isinstance(self.decision, ErrorCode) else "hold_append"
        if self.transactional_id is not None:
            return f"{what} of transactional id {self.transactional_id}"
        return f"{what}{'' if self.group is None else f' of group {self.group}'}"

    def __repr__(self) -> str:
        return f"<{self} used {self.uses} times>"

    async def acted(self, count: int = 1, *, timeout: float | None = None) -> None:
        """Wait until it has applied to ``count`` appends in all. Raises WaitTimeoutError."""
        await self._rules.waiting.until(
            lambda: self.uses >= count,
            f"{self}: it should act {count} times",
            lambda: f"It acted {self.uses} times",
            timeout=timeout,
        )

    def remove(self) -> None:
        """Apply to no more appends. It need not have applied to any."""
        self._rules.remove(self)

    def decide(self, append: Append) -> AppendDecision | None:
        """The decision about ``append``; None if the rule does not apply to it. Called once for each append."""
        if not self.left or not self._is_for(append):
            return None
        self.left -= 1
        self.uses += 1
        return self.decision

    def _is_for(self, append: Append) -> bool:
        if self.transactional_id is not None:
            return append.topic == TRANSACTION_STATE and self.transactional_id in {each.key for each in append.records}
        if self.group is not None:
            keys = () if append.topic == TRANSACTION_STATE else (each.key for each in append.records)
            return self.group in {getattr(key, "group", None) or getattr(key, "group_id", None) for key in keys}
        return True


@noted
class HeldAppends(AppendRule):
    """A rule that holds appends, and the appends that it holds."""

    held: list[Append]
    """The appends that are held now, in the order in which they came."""

    def __init__(self, rules: "AppendRules", group: str | None, transactional_id: str | None, times: int) -> None:
        super().__init__(rules, HOLD, group, transactional_id, times)
        self.held = []

    def decide(self, append: Append) -> AppendDecision | None:
        """As in AppendRule; the append is kept in ``held``."""
        decision = super().decide(append)
        if decision is not None:
            self.held.append(append)
        return decision

    async def wait(self, count: int = 1, *, timeout: float | None = None) -> list[Append]:
        """Wait until ``count`` appends are held. Raises WaitTimeoutError."""
        await self._rules.waiting.until(
            lambda: len(self.held) >= count or None,
            f"{self}: {count} should be held",
            lambda: f"{len(self.held)} are",
            timeout=timeout,
        )
        return self.held

    def release(self) -> None:
        """Store all held appends, in order. Appends that were lost because their coordinator has moved stay lost."""
        rules = self._rules
        for append in self._taken():
            rules.apply(rules.node.appends.release(append, rules.now_ms()), "the append is stored")

    def fail(self, error: str | ErrorCode) -> None:
        """Fail all held appends with ``error``, as if the log had returned it. Raises ValueError for an unknown error."""
        code, rules = error_code(error), self._rules
        for append in self._taken():
            rules.apply(rules.node.appends.fail(append, code, rules.now_ms()), f"the append fails: {code.name}")

    def _taken(self) -> Iterator[Append]:
        """The held appends that are not lost yet: when an append fails, those after it fail with it."""
        taken, self.held = self.held, []
        return (append for append in taken if append in self._rules.node.appends.held())


class AppendRules:
    """The rules for appends of one node; satisfies ``coordinator_partition_writer.AppendGate``."""

    def __init__(
        self, node: ClusterCore, waiting: Waiting, apply: Callable[[list[Effect], str], None], now_ms: Callable[[], int]
    ) -> None:
        self.node, self.waiting, self.apply, self.now_ms = node, waiting, apply, now_ms
        self.rules: list[AppendRule] = []
        """The rules that were added and not removed, in order."""

    def __call__(self, append: Append, now_ms: int, /) -> AppendDecision:  # noqa: ARG002 - whenever it is
        """The decision of the first rule that applies to ``append``; STORE if none does."""
        for rule in self.rules:
            if (decision := rule.decide(append)) is not None:
                self.waiting.check_conditions()
                return decision
        return STORE

    def fail(
        self, error: str | ErrorCode, *, group: str | None, transactional_id: str | None, times: int
    ) -> AppendRule:
        """Add a rule that fails appends, after the others. Raises ValueError."""
        return self._added(AppendRule(self, error_code(error), group, transactional_id, times))

    def hold(self, *, group: str | None, transactional_id: str | None, times: int) -> HeldAppends:
        """Add a rule that holds appends, after the others. Raises ValueError."""
        return self._added(HeldAppends(self, group, transactional_id, times))

    def _added(self, rule: R) -> R:
        self.rules.append(rule)
        self.node.appends.gate = self
        return rule

    def remove(self, rule: AppendRule) -> None:
        """Remove ``rule``: it applies to no more appends."""
        self.rules = [each for each in self.rules if each is not rule]

    def forget_held(self) -> None:
        """Drop all held appends: they are neither stored nor failed."""
        for rule in self.rules:
            if isinstance(rule, HeldAppends):
                rule.held.clear()

    def check(self) -> None:
        """Raises AssertionError if a rule has not applied to any append."""
        unused = [str(rule) for rule in self.rules if not rule.uses]
        assert not unused, f"nothing was appended that these rules are for: {', '.join(unused)}"

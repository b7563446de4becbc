"""The rules of one test, in the order they were installed. The first that matches a request acts on it."""

from groupcoord.testing.faults.asked import Asked
from groupcoord.testing.faults.installed import FaultRulesFailed, Installed
from groupcoord.testing.faults.rule import Rule


class Rulebook:
    """The rules of one test or server; its texts count time from ``start_ms``."""

    def __init__(self, start_ms: int = 0) -> None:
        self.start_ms = start_ms
        self.installed: tuple[Installed, ...] = ()
        """Those that may still act. Replaced, never changed: it may be looked at from another thread."""
        self.failures: list[tuple[Installed, Exception]] = []
        """What functions of rules raised."""
        self._all: list[Installed] = []

    def __repr__(self) -> str:
        return f"<Rulebook {len(self.installed)} rules>"

    def next_name(self) -> str:
        """How the next rule is called unless it has a name."""
        return f"rule {len(self._all) + 1}"

    def add(self, rule: Rule, name: str | None = None) -> Installed:
        """Install ``rule`` behind the others."""
        installed = Installed(rule, name or self.next_name(), self)
        self.install(installed)
        return installed

    def install(self, installed: Installed) -> None:
        """Let ``installed`` act, behind the others."""
        self._all.append(installed)
        self.installed += (installed,)

    def remove(self, installed: Installed) -> None:
        """Let ``installed`` act no more. It is still among those that must have acted, unless its block has told already."""
        installed.is_removed = True
        self.installed = tuple(other for other in self.installed if other is not installed)

    def take(self, asked: Asked) -> Installed | None:
        """The rule that acts on ``asked``. Every rule that matches counts it, for its ``nth``, also if another one acts."""
        taker: Installed | None = None
        for installed in self.installed:
            if installed.is_used_up:
                continue
            reasons = installed.fields_of(asked)
            if not reasons:
                installed.seen += 1
                reasons = installed.of_number(installed.seen)
            if not reasons and taker is not None:
                reasons = [f"{taker.name}, installed before, took it"]
            if reasons:
                installed.missed(asked, reasons)
            else:
                taker = installed
        if taker is not None:
            taker.matched(asked)
        return taker

    def function_failed(self, installed: Installed, error: Exception) -> None:
        """A function of ``installed`` raised ``error``: that is told at the end."""
        self.failures.append((installed, error))

    def unused(self) -> list[str]:
        """In words, each rule that should have acted and did not."""
        return [why for installed in self._all if (why := installed.why_unused()) is not None]

    def check(self) -> None:
        """Raises FaultRulesFailed for rules that never acted, and for functions that raised."""
        texts = [
            f"{installed.name}: a function of {installed.rule} raised {error!r}" for installed, error in self.failures
        ]
        texts += self.unused()
        if texts:
            cause = self.failures[0][1] if self.failures else None
            raise FaultRulesFailed("\n".join(["fault rules:", *texts])) from cause

    def explain(self, asked: Asked) -> str:
        """What each rule would do with ``asked`` if it came now, and why."""
        lines = [str(asked)]
        taker: Installed | None = None
        for installed in self._all:
            if installed.is_removed:
                verdict = "no longer: it was removed"
            elif installed.is_used_up:
                verdict = f"no longer: it has acted {installed.uses} of {installed.rule.limit} times"
            elif reasons := installed.fields_of(asked) or installed.of_number(installed.seen + 1):
                verdict = f"no: {'; '.join(reasons)}"
            elif taker is not None:
                verdict = f"no: {taker.name} comes before"
            else:
                taker, verdict = installed, "yes"
            lines.append(f"  {installed.name}, {installed.rule}: {verdict}")
        if not self._all:
            lines.append("  there are no rules")
        return "\n".join(lines)

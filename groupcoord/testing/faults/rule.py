"""A rule: which requests, what becomes of them, how often. Rules are values; ``rulebook`` has what became of one."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from groupcoord.testing.faults.apis import Fetch, nearest
from groupcoord.testing.faults.damage import Damage
from groupcoord.testing.faults.match import ANY, Match
from groupcoord.testing.faults.problems import Findings, RuleProblems, is_flag, is_number
from groupcoord.testing.faults.verdicts import VERBS, Verdict

ALWAYS: Literal["always"] = "always"
MATCH_FIELDS = ("group", "member", "topic", "client_id", "version", "nth", "broker")
"""The fields of a rule as data that say which requests, besides ``when``."""


@dataclass(frozen=True, slots=True)
class Rule:
    """``count`` is how often it acts: so many times, ALWAYS, or None: once, or once for each number that ``nth`` has.

    One that is not ``is_optional`` fails the test if it never acts. Raises RuleProblems for a rule that can never act.
    """

    match: Match
    verdict: Verdict
    count: int | Literal["always"] | None = None
    is_optional: bool = False

    def __post_init__(self) -> None:
        findings, count = Findings(), self.count
        if count not in (None, ALWAYS) and not (is_number(count) and int(count) > 0):
            findings.add("times", f"{count!r} is neither a number above 0 nor {ALWAYS!r}")
        elif isinstance(count, int) and self.match.nth is not None and count > (self.match.nth.size or count):
            findings.add(
                "times", f"nth is {self.match.nth}, so it acts {self.match.nth.size} times at most, not {count}"
            )
        if not is_flag(self.is_optional):
            findings.add("optional", f"{self.is_optional!r} is neither true nor false")
        if self.verdict.argument is Damage.CRC and self.match.api is not Fetch:
            findings.add("how", "only answers to Fetch have batches, and those a checksum: crc goes with Fetch")
        findings.tell()

    def __repr__(self) -> str:
        count = "" if self.count is None else ".always()" if self.count == ALWAYS else f".times({self.count})"
        return f"{self.match!r}{self.verdict!r}{count}{'.optional()' if self.is_optional else ''}"

    def times(self, count: int) -> "Rule":
        """The same, acting so many times."""
        return replace(self, count=count)

    def always(self) -> "Rule":
        """The same, acting whenever it matches."""
        return replace(self, count=ALWAYS)

    def optional(self) -> "Rule":
        """The same, and nobody minds if it never acts."""
        return replace(self, is_optional=True)

    @property
    def limit(self) -> int | None:
        """How often it acts; None: without limit."""
        if self.count is None:
            return 1 if self.match.nth is None else self.match.nth.size
        return None if self.count == ALWAYS else int(self.count)

    @property
    def holds(self) -> bool:
        """Does it hold requests until somebody lets them go?"""
        return self.verdict.name in ("hold", "hold_answer")

    def to_dict(self) -> dict[str, Any]:
        """As data, for files. Raises ValueError for a rule that has a function."""
        match, verdict = self.match, self.verdict
        if match.where is not None:
            raise ValueError(f"{self} has a function, which cannot be written as data")
        data: dict[str, Any] = {"when": ANY if match.api is None else match.api.name, **dict(match.fields())}
        data["do"] = verdict.name
        if verdict.verb.argument is not None:
            data[verdict.verb.argument.name] = verdict.plain_argument
        if self.count is not None:
            data["times"] = self.count
        if self.is_optional:
            data["optional"] = True
        return data

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Rule":
        """What ``to_dict`` wrote. Raises RuleProblems, which names every field that is wrong and what would be right."""
        findings = Findings()
        verb = VERBS.get(str(data.get("do")))
        argument = () if verb is None or verb.argument is None else (verb.argument.name,)
        known = ("when", *MATCH_FIELDS, "do", *argument, "times", "optional")
        for name in data:
            if name not in known:
                findings.add(str(name), _unknown_field(str(name), known, data.get("do")))
        for name in ("when", *MATCH_FIELDS, "times"):
            if name in data and data[name] is None:
                findings.add(name, "there is nothing behind it")
        if "when" not in data:
            findings.add("when", f"it is missing: the name of an API, or {ANY}")
        fields = {name: data.get(name) for name in MATCH_FIELDS}
        match = findings.read("when", lambda: Match.of(data.get("when"), **fields))
        verdict = findings.read("do", lambda: _verdict(data))
        if match is None or verdict is None:
            match, verdict = Match(), Verdict("drop")
        rule = findings.read("times", lambda: cls(match, verdict, data.get("times"), data.get("optional", False)))
        findings.tell()
        assert rule is not None
        return rule


def _verdict(data: Mapping[str, Any]) -> Verdict:
    """Raises ValueError."""
    names = [name for name, verb in VERBS.items() if verb.argument is None or verb.argument.write is not None]
    name = data.get("do")
    if name is None:
        raise ValueError(f"it is missing: one of {', '.join(names)}")
    if name not in names:
        if name in VERBS:
            raise ValueError(f"{name} takes a function, so it is for programs; there is {', '.join(names)}")
        raise ValueError(f"there is no verb {name!r}{nearest(str(name), names)}")
    argument = VERBS[name].argument
    if argument is not None and argument.name not in data:
        raise RuleProblems.one(argument.name, f"{name} needs it: {argument.text}")
    return Verdict(name, None if argument is None else data[argument.name])


def _unknown_field(name: str, known: tuple[str, ...], verb: Any) -> str:
    if name == "where":
        return "it takes a function, so it is for programs"
    if any(other.argument is not None and other.argument.name == name for other in VERBS.values()):
        return f"it does not go with do: {verb}"
    return f"there is no such field{nearest(name, known)}"

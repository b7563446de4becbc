"""Compares a text or a trace with a golden file, after replacing ids and ports; ``--rewrite-golden`` writes the file.

Rewrite a golden file only if you can say why each changed line is right.
"""

import difflib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from groupcoord.testing.trace.trace import Trace

OPTION = "--rewrite-golden"


@dataclass(frozen=True, slots=True)
class Replacement:
    """Replaces texts that differ from run to run: each distinct match of ``pattern`` becomes ``<name-1>``, ``<name-2>`` …

    If the pattern has a group ``value``, only that is replaced. Unless ``numbered``, all matches become ``<name>``.
    """

    name: str
    pattern: re.Pattern[str]
    numbered: bool = True


UUIDS = Replacement("id", re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"))
"""Random ids, and with them the random part of member ids."""
PORTS = Replacement("port", re.compile(r"(?:\b\d{1,3}(?:\.\d{1,3}){3}|\blocalhost|\]):(?P<value>\d{1,5})\b"))
"""Ports of addresses."""
TIMES = Replacement(
    "time", re.compile(r"(?m)(?:^|(?<=\s))@(?P<value>\d+)\b|\b(?P<other>[\d,]*\d(?:\.\d+)? m?s)\b"), numbered=False
)
"""Times and durations, for tests on a real clock; on a manual clock they are the same in each run."""

RULES = (UUIDS, PORTS)


class _Mode:
    """The pytest option, as a global, because ``assert_golden`` is a plain function without access to pytest."""

    rewriting = False


def rewrite(add_cleanup: Callable[[Callable[[], None]], None]) -> None:
    """Make ``assert_golden`` write files from now on. ``add_cleanup`` of pytest's config gets the function that ends it."""
    before, _Mode.rewriting = _Mode.rewriting, True
    add_cleanup(lambda: setattr(_Mode, "rewriting", before))


def normalised(text: str, rules: Sequence[Replacement] = RULES) -> str:
    """``text`` with the matches of ``rules`` replaced."""
    for rule in rules:
        seen: dict[str, str] = {}

        def replace(match: re.Match[str], rule: Replacement = rule, seen: dict[str, str] = seen) -> str:
            names = [name for name, found in match.groupdict().items() if found is not None]
            value = match[names[0]] if names else match[0]
            stand_in = seen.setdefault(value, f"<{rule.name}-{len(seen) + 1}>" if rule.numbered else f"<{rule.name}>")
            start = match.start(names[0]) - match.start() if names else 0
            return match[0][:start] + stand_in + match[0][start + len(value) :]

        text = rule.pattern.sub(replace, text)
    return text


def assert_golden(actual: Trace | str, path: str | Path, *, rules: Sequence[Replacement] = RULES) -> None:
    """Compare ``actual`` with the file at ``path``, both normalised by ``rules``; of a trace, its text without links.

    Raises AssertionError with the differing lines, or if the file does not exist. With ``--rewrite-golden`` the file is
    written instead.
    """
    __tracebackhide__ = True  # pytest shows the line of the test
    path = Path(path)
    text = actual if isinstance(actual, str) else actual.text(links=False, short=False)
    now = normalised(text, rules).rstrip("\n") + "\n"
    if _Mode.rewriting:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(now, encoding="utf-8")
        return
    if not path.exists():
        raise AssertionError(f"there is no golden file {path}; write it with {OPTION}")
    golden = normalised(path.read_text(encoding="utf-8"), rules)
    if now != golden:
        raise AssertionError(f"{path} says otherwise ({OPTION} writes it anew):\n{_difference(golden, now, path.name)}")


def _difference(golden: str, now: str, name: str) -> str:
    lines = difflib.unified_diff(golden.splitlines(), now.splitlines(), f"golden {name}", "now", lineterm="", n=2)
    return "\n".join(lines)

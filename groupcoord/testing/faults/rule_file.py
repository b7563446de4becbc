"""Reads the YAML file of ``groupcoord serve --faults``: a list of fault rules, each as ``Rule.to_dict`` writes it.

Needs PyYAML (``groupcoord[testing]``).
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from groupcoord.testing.faults.matching import RuleProblems
from groupcoord.testing.faults.rule import Rule, broker_problems

if TYPE_CHECKING:
    import yaml


class NamedRule(NamedTuple):
    """A rule and its name, which tells its place in the file."""

    name: str
    rule: Rule


class RuleFileError(ValueError):
    """A rule file is invalid. The text has one line for each problem, with its place."""


def load_rules(path: Path | str, brokers: Sequence[int] | None = None) -> list[NamedRule]:
    """The rules in the file at ``path``, for a cluster with these ``brokers`` (ids; None: any).

    Raises RuleFileError with all problems of the file, and OSError if it cannot be read.
    """
    path = Path(path)
    return parse_rules(path.read_text(encoding="utf-8", errors="replace"), str(path), brokers)


def parse_rules(text: str, name: str, brokers: Sequence[int] | None = None) -> list[NamedRule]:
    """The rules in the YAML ``text`` of the file ``name``; see ``load_rules``. Raises RuleFileError."""
    try:
        import yaml  # noqa: PLC0415 - an extra that need not be installed
    except ImportError:
        raise RuleFileError(f"{name}: to read it needs PyYAML: pip install 'groupcoord[testing]'") from None
    try:
        loader = yaml.SafeLoader(text)
        root = loader.get_single_node()
        if root is None:
            raise RuleFileError(f"{name}: it is empty; a list of rules is needed, each beginning with '- when: '")
        if not isinstance(root, yaml.SequenceNode):
            raise RuleFileError(f"{name}: it is not a list; each rule begins with '- when: '")
        rules, problems = [], []
        for number, node in enumerate(root.value, start=1):
            where = f"{name}: rule {number} (line {node.start_mark.line + 1})"
            of_rule = [*_repeated_keys(node)]
            try:
                rule = _rule(loader.construct_object(node, deep=True))
                of_rule += map(str, () if brokers is None else broker_problems(rule, brokers))
                rules.append(NamedRule(f"{Path(name).name} rule {number}", rule))
            except RuleProblems as found:
                of_rule += map(str, found.problems)
            problems += [f"{where}: {problem}" for problem in of_rule]
    except yaml.YAMLError as problem:
        raise RuleFileError(f"{name}: this is not YAML: {' '.join(str(problem).split())}") from None
    if problems:
        raise RuleFileError("\n".join(problems))
    return rules


def _rule(data: Any) -> Rule:
    """Raises RuleProblems."""
    if not isinstance(data, dict):
        raise RuleProblems.one("when", f"{data!r} is not a rule: it begins with '- when: '")
    rule = Rule.from_dict(data)
    if rule.holds:
        raise RuleProblems.one("do", f"{rule.action.name} needs a program that releases; delay and drop do without")
    return rule


def _repeated_keys(node: "yaml.Node") -> Iterator[str]:
    """A problem for each repeated key: YAML would silently take the last value."""
    import yaml  # noqa: PLC0415 - an extra that need not be installed

    if isinstance(node, yaml.MappingNode):
        seen = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                continue
            if key.value in seen:
                yield f"{key.value}: it is there twice (line {key.start_mark.line + 1})"
            seen.add(key.value)

"""Rules from a YAML file, for ``groupcoord serve --faults``: a list of them, each as ``Rule.to_dict`` writes one.

Needs PyYAML (``groupcoord[testing]``).
"""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from groupcoord.testing.faults.problems import RuleProblems
from groupcoord.testing.faults.rule import Rule

if TYPE_CHECKING:
    import yaml


class NamedRule(NamedTuple):
    """A rule and what it is called: where it is from."""

    name: str
    rule: Rule


class FaultsFileError(ValueError):
    """A file of rules that cannot be used; the text has a line for everything that is wrong, with its place."""


def faults_from_file(path: Path | str) -> list[NamedRule]:
    """The rules in the file at ``path``.

    Raises FaultsFileError with everything that is wrong in it, OSError if it cannot be read.
    """
    path = Path(path)
    return faults_from_text(path.read_text(encoding="utf-8", errors="replace"), str(path))


def faults_from_text(text: str, name: str) -> list[NamedRule]:
    """The rules in the YAML of ``text``, which is called ``name``. Raises FaultsFileError."""
    try:
        import yaml  # noqa: PLC0415 - an extra that need not be installed
    except ImportError:
        raise FaultsFileError(f"{name}: to read it needs PyYAML: pip install 'groupcoord[testing]'") from None
    try:
        loader = yaml.SafeLoader(text)
        root = loader.get_single_node()
        if root is None:
            raise FaultsFileError(f"{name}: it is empty; a list of rules is needed, each beginning with '- when: '")
        if not isinstance(root, yaml.SequenceNode):
            raise FaultsFileError(f"{name}: it is no list; each rule begins with '- when: '")
        rules, problems = [], []
        for number, node in enumerate(root.value, start=1):
            where = f"{name}: rule {number} (line {node.start_mark.line + 1})"
            complaints = [*_repeated(node)]
            try:
                rule = _rule(loader.construct_object(node, deep=True))
                rules.append(NamedRule(f"{Path(name).name} rule {number}", rule))
            except RuleProblems as found:
                complaints += map(str, found.problems)
            problems += [f"{where}: {complaint}" for complaint in complaints]
    except yaml.YAMLError as problem:
        raise FaultsFileError(f"{name}: this is not YAML: {' '.join(str(problem).split())}") from None
    if problems:
        raise FaultsFileError("\n".join(problems))
    return rules


def _rule(data: Any) -> Rule:
    """Raises RuleProblems."""
    if not isinstance(data, dict):
        raise RuleProblems.one("when", f"{data!r} is no rule: it begins with '- when: '")
    rule = Rule.from_dict(data)
    if rule.holds:
        raise RuleProblems.one("do", f"{rule.verdict.name} needs a program that releases; delay and drop do without")
    return rule


def _repeated(node: "yaml.Node") -> Iterator[str]:
    """YAML lets the last one win, which nobody means."""
    import yaml  # noqa: PLC0415 - it is there

    if isinstance(node, yaml.MappingNode):
        seen = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                continue
            if key.value in seen:
                yield f"{key.value}: it is there twice (line {key.start_mark.line + 1})"
            seen.add(key.value)

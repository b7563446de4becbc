import json
import sys
from pathlib import Path

import pytest

from groupcoord.testing.faults import RuleFileError, load_rules, when
from groupcoord.testing.faults.rule_file import parse_rules
from tests.testing.faults.support import Heartbeat, OffsetCommit

GOOD = """\
# a rule for each
- when: Heartbeat
  group: app
  do: refuse
  code: REBALANCE_IN_PROGRESS
  times: 2
- {when: OffsetCommit, topic: orders, nth: 2-4, do: delay, ms: 500, optional: true}
- when: any
  client_id: slow
  do: drop
  times: always
"""


def complaints(text: str) -> list[str]:
    with pytest.raises(RuleFileError) as failed:
        parse_rules(text, "dir/faults.yaml")
    return str(failed.value).splitlines()


def test_rules_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "faults.yaml"
    path.write_text(GOOD)
    expected = [
        when(Heartbeat, group="app").refuse("REBALANCE_IN_PROGRESS").times(2),
        when(OffsetCommit, topic="orders", nth="2-4").delay(500).optional(),
        when(client_id="slow").drop().always(),
    ]
    for name in (path, str(path)):
        rules = load_rules(name)
        assert [rule.rule for rule in rules] == expected
        assert [rule.name for rule in rules] == [f"faults.yaml rule {number}" for number in (1, 2, 3)]


def test_what_a_rule_writes_of_itself_is_read() -> None:
    rules = [rule for _, rule in parse_rules(GOOD, "f")]
    assert [rule for _, rule in parse_rules(json.dumps([rule.to_dict() for rule in rules]), "f")] == rules


def test_a_file_that_is_not_there() -> None:
    with pytest.raises(FileNotFoundError):
        load_rules("/nowhere/faults.yaml")


def test_every_mistake_is_told_with_its_place() -> None:
    text = """\
- when: Hartbeat
  gruop: app
  do: drop

- when: Heartbeat
  group: no
  do: refuse
  code: NOT_COORDINATER
- drop
- when: Heartbeat
  do: drop
  when: JoinGroup
- when: Heartbeat
  do: hold
"""
    assert complaints(text) == [
        "dir/faults.yaml: rule 1 (line 1): gruop: there is no such field; did you mean group?",
        "dir/faults.yaml: rule 1 (line 1): when: there is no API 'Hartbeat'; did you mean Heartbeat?",
        "dir/faults.yaml: rule 2 (line 5): group: False is not text: put what is meant in quotes",
        "dir/faults.yaml: rule 2 (line 5): code: there is no error 'NOT_COORDINATER'; did you mean NOT_COORDINATOR?",
        "dir/faults.yaml: rule 3 (line 9): when: 'drop' is not a rule: it begins with '- when: '",
        "dir/faults.yaml: rule 4 (line 10): when: it is there twice (line 12)",
        "dir/faults.yaml: rule 5 (line 13): do: hold needs a program that releases; delay and drop do without",
    ]


def test_what_is_no_list_of_rules() -> None:
    cases: list[tuple[str, str]] = [
        ("", "it is empty; a list of rules is needed, each beginning with '- when: '"),
        ("# nothing", "it is empty; a list of rules is needed, each beginning with '- when: '"),
        ("when: Heartbeat", "it is not a list; each rule begins with '- when: '"),
        ("- when: [", "this is not YAML: while parsing a flow node"),
        ("- when: !!python/name:os.system", "this is not YAML: could not determine a constructor for the tag"),
        ("- a\x00b", "this is not YAML: unacceptable character #x0000"),
        ("- ? [when]\n  : x", "this is not YAML: while constructing a mapping"),
    ]
    for text, complaint in cases:
        assert complaints(text)[0].startswith(f"dir/faults.yaml: {complaint}")


def test_without_pyyaml_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "yaml", None)
    assert complaints(GOOD) == ["dir/faults.yaml: to read it needs PyYAML: pip install 'groupcoord[testing]'"]

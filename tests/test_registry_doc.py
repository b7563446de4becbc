"""What docs/registry.md shows is run."""

import re
from pathlib import Path

import pytest

import groupcoord as gc
from groupcoord.cli.main import main

PAGE = (Path(__file__).resolve().parents[1] / "docs" / "registry.md").read_text(encoding="utf-8")
PROGRAMS = re.findall(r"```python\n(.*?)```.*?```text\n(.*?)```", PAGE, re.DOTALL)
(SERVE, *COMMANDS) = re.findall(r"^\$ groupcoord (.*)\n((?:/.*\n)*)", PAGE, re.MULTILINE)
CHANCE = r'(?<="topic_id":")[^"]+|(?<="leader":)\d|(?<="isr":\[)\d|(?<="[01]":\[)\d'


@pytest.mark.parametrize(("program", "shown"), PROGRAMS, ids=["duplicate", "ephemeral"])
def test_every_program_prints_what_is_shown(program: str, shown: str, capsys: pytest.CaptureFixture[str]) -> None:
    exec(program, {})
    assert capsys.readouterr().out == shown


@pytest.mark.parametrize(("command", "shown"), COMMANDS, ids=["brokers", "topic"])
def test_every_command_prints_what_is_shown(command: str, shown: str, capsys: pytest.CaptureFixture[str]) -> None:
    """But for ports, and what is drawn by chance."""
    assert SERVE[0].split()[1:] == ["--dev", "--brokers", "3", "--racks", "a,b,c", "--topic", "orders:2", "&"]
    with gc.Cluster(brokers=3, racks=("a", "b", "c"), topics={"orders": 2}).sync() as kafka:
        assert main(command.replace("localhost:9092", kafka.address).split()) == 0
        printed = capsys.readouterr().out
        for broker in kafka.brokers.values():
            port = broker.address.rpartition(":")[2]
            printed = printed.replace(port, str(9091 + broker.id))
    assert re.sub(CHANCE, "?", printed) == re.sub(CHANCE, "?", shown)

"""The show itself, with its real clients."""

import asyncio
import io
import re
import subprocess
import sys
from collections.abc import Iterable

import pytest

import groupcoord.cli.demo
from groupcoord.cli.demo.clients.consumer_common import ReadRecord
from groupcoord.cli.demo.observed_group import ObservedGroup
from groupcoord.cli.demo.output import console
from groupcoord.cli.demo.story import show
from groupcoord.cli.main import main

PATIENCE_S = 90


def shown(time_limit_s: float = PATIENCE_S) -> tuple[int, str]:
    stream = io.StringIO()
    code = asyncio.run(show(console(stream), fast=True, time_limit_s=time_limit_s))
    return code, stream.getvalue()


def test_missing_libraries_are_named_with_the_extra_that_has_them(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(groupcoord.cli.demo, "missing_libraries", lambda: ["aiokafka", "rich"])
    assert main(["demo"]) == 1
    assert capsys.readouterr() == (
        "",
        "groupcoord demo: not installed: aiokafka, rich; pip install 'groupcoord[client]' installs all it needs\n",
    )


@pytest.mark.parametrize("limit", ["0", "-1", "soon", "inf", "nan"])
def test_a_time_limit_that_is_none_is_refused(limit: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["demo", f"--time-limit={limit}"])
    assert f"{limit} is not a number of seconds above 0" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.clients
def test_the_show_ends_well() -> None:
    command = [sys.executable, "-m", "groupcoord.cli.main", "demo", "--fast", f"--time-limit={PATIENCE_S}"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=2 * PATIENCE_S, check=False)
    assert (ended.returncode, ended.stderr) == (0, ""), ended.stdout
    assert "\x1b" not in ended.stdout
    heads = [line for line in ended.stdout.splitlines() if line.startswith("━━")]
    assert [head.split()[1] for head in heads] == ["1", "2", "3", "4", "5", "6", "7", "8", "9"]
    for scene in (
        "coordinator   announces protocol sticky and leader kafka-python",
        "coordinator   announces protocol range and leader kafka-python",
        "coordinator   announces protocol roundrobin and leader kafka-python",
        "aiokafka      leaves the group",
        "coordinator   takes kafka-python out of the group",
        "coordinator   makes confluent the leader",
        "coordinator   makes shipping a consumer group",
        "demo          has seen everybody stop",
        "demo          has seen these read on as if nothing were: new-1 ",
        "confluent     goes on at the last commits, and so reads again: orders-",
        "coordinator   has nobody left",
        "✓ Every committed offset is the end of its log",
    ):
        assert scene in ended.stdout, scene


@pytest.mark.slow
@pytest.mark.clients
def test_a_record_that_no_consumer_tells_of_makes_it_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    read = ObservedGroup.read

    def forgetful(self: ObservedGroup, reader: str, records: Iterable[ReadRecord]) -> None:
        read(self, reader, [record for record in records if (record.partition, record.offset) != (0, 1)])

    monkeypatch.setattr(ObservedGroup, "read", forgetful)
    code, text = shown()
    problems = [line for line in text.splitlines() if line.startswith("✗")]
    assert code == 1
    assert len(problems) == 1, text
    assert re.fullmatch(r"✗ orders-0: 1 of \d+ records were never read, offset 1", problems[0])


@pytest.mark.slow
@pytest.mark.clients
def test_a_show_that_takes_too_long_says_what_it_waited_for() -> None:
    code, text = shown(time_limit_s=3)
    assert code == 1
    assert "✗ the time limit of 3 s was over, waiting for " in text

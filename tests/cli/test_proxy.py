"""``groupcoord proxy`` as a process of its own: what it prints, what it writes, and how it ends."""

import asyncio
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from groupcoord import Cluster
from groupcoord.cli.main import main
from groupcoord.client import Consumer
from groupcoord.proxy.recording import frames_of
from groupcoord.testing.trace.trace import Trace


@contextmanager
def process(*arguments: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The proxy and its address; killed at the end if it has not ended."""
    command = [sys.executable, "-m", "groupcoord", "proxy", "--listen", "127.0.0.1:0", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as started:
        try:
            assert started.stdout is not None
            line = started.stdout.readline()
            assert line.startswith("listening on "), started.communicate()
            yield started, line.split()[2]
        finally:
            started.kill()


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_it_writes_what_happens_and_tells_why_at_the_end(tmp_path: Path, number: signal.Signals, code: int) -> None:
    names = {option: tmp_path / option for option in ("trace", "log", "mermaid", "record")}
    options = [word for option, path in names.items() for word in (f"--{option}", str(path))]
    rules = tmp_path / "faults.yaml"
    rules.write_text("- when: OffsetFetch\n  group: g\n  do: refuse\n  code: COORDINATOR_LOAD_IN_PROGRESS\n")
    with (
        Cluster(topics={"orders": 1}).sync() as kafka,
        process("--to", kafka.address, *options, "--faults", str(rules)) as (proxy, address),
    ):
        asyncio.run(_join_and_leave(address))
        proxy.send_signal(number)
        out, err = proxy.communicate(timeout=60)
    assert proxy.returncode == code
    assert out.startswith("g: generation 1: ")
    assert "generation 1: 1 member" in err
    assert "asks JoinGroup" not in err
    trace = Trace.load(names["trace"])
    assert trace.why("g") == out.splitlines()[0].removeprefix("g: ")
    assert len(names["log"].read_text().splitlines()) == len(trace)
    assert names["mermaid"].read_text().startswith("sequenceDiagram")
    assert frames_of(names["record"].read_text().splitlines())


async def _join_and_leave(address: str) -> None:
    async with Consumer("orders", bootstrap_servers=address, group_id="g", auto_offset_reset="earliest") as consumer:
        async with asyncio.timeout(60):
            while not consumer.assignment():
                await consumer.getmany(timeout_ms=100)
        await consumer.commit()


@pytest.mark.parametrize(
    ("arguments", "code", "problem"),
    [
        (["--to", "kafka"], 2, "argument --to: kafka is not HOST:PORT"),
        (["--to", "kafka:x"], 2, "argument --to: kafka:x is not HOST:PORT"),
        (["--to", "kafka:70000"], 2, "argument --to: kafka:70000 is not HOST:PORT"),
        (["--to", "k:1", "--faults", "nowhere.yaml"], 1, "cannot read nowhere.yaml: No such file or directory"),
        (["--to", "k:1", "--trace", "no/where"], 1, "cannot write no/where: No such file or directory"),
        (
            ["--to", "k:1", "--listen", "192.0.2.1:0"],
            1,
            "cannot listen on 192.0.2.1:0: Cannot assign requested address",
        ),
    ],
)
def test_what_cannot_be_done_is_said(
    capsys: pytest.CaptureFixture[str], arguments: list[str], code: int, problem: str
) -> None:
    try:
        ended: object = main(["proxy", *arguments])
    except SystemExit as end:
        ended = end.code
    assert (ended, capsys.readouterr().err) == (code, f"groupcoord proxy: {problem}\n")


def test_rules_that_are_none_are_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    rules = tmp_path / "faults.yaml"
    rules.write_text("rules: 5\n")
    assert main(["proxy", "--to", "k:1", "--faults", str(rules)]) == 2
    assert str(rules) in capsys.readouterr().err

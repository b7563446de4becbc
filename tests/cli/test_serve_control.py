"""``groupcoord serve --control``: its options, and how it begins and ends."""

import asyncio
import signal
import socket
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from groupcoord.control.client import ControlClient
from groupcoord.testing import RemoteCluster
from tests.cli.test_serve import mistaken, refused, served
from tests.control.processes import serving

PATIENCE_SECONDS = 60


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_it_serves_clients_and_their_tests_until_a_signal(number: signal.Signals, code: int) -> None:
    with serving("--topic", "orders:3", "--brokers", "1", "-c", "group.max.size=2") as server:

        async def ask() -> list[str]:
            async with RemoteCluster(server.bootstrap) as kafka:
                await kafka.group("app").commit({("orders", 2): 5})
                return await kafka.list_groups()

        assert asyncio.run(ask()) == ["app"]
        with ControlClient(server.url) as control:
            assert control.address == server.bootstrap
            assert control.group("app").wait_committed("orders", 2, 5).state == "Empty"
        with httpx.stream("GET", f"{server.url}/trace/stream", timeout=PATIENCE_SECONDS) as stream:
            assert next(stream.iter_lines()) == "event: start"
            server.process.send_signal(number)
            _, log = server.process.communicate(timeout=PATIENCE_SECONDS)
    assert server.process.returncode == code
    assert f"{number.name} received" in log
    assert log.splitlines()[-1].endswith("stopped")
    assert "Traceback" not in log


@pytest.mark.slow
def test_it_begins_with_data_rules_and_the_clock_that_it_is_given(tmp_path: Path) -> None:
    rules = tmp_path / "rules.yaml"
    rules.write_text("- when: Heartbeat\n  do: drop\n")
    data = ("--data-dir", str(tmp_path / "data"))
    with serving(*data, "--faults", str(rules), "--clock", "fast", "--speed", "7", "--topic", "a") as server:
        with ControlClient(server.url) as control:
            assert [rule.name for rule in control.faults.rules] == ["rules.yaml rule 1"]
            assert (control.status().clock.mode, control.status().clock.speed) == ("fast", 7.0)
            assert control.status().topics == ["a"]
            control.produce("a", "kept")
        server.process.terminate()
        assert server.process.wait(PATIENCE_SECONDS) == 0
    with serving(*data) as server, ControlClient(server.url) as control:
        assert [record.value for record in control.records("a")] == ["kept"]


@pytest.mark.slow
def test_it_says_where_each_of_several_brokers_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    ended, said = served(monkeypatch, "--port", "0", "--brokers", "2", "--control", ":0", "--control-token", "t")
    first, second, third = said.splitlines()
    assert ended == 0
    assert first.startswith("listening on 127.0.0.1:")
    assert second.startswith("broker 2 listening on 127.0.0.1:")
    assert third.startswith("control listening on http://127.0.0.1:")


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("--clock", "manual"), 2, "--clock, --speed and --control-token go with --control or --page"),
        (("--control", "0", "--speed", "5"), 2, "--speed goes with --clock fast"),
        (("--control", "0.0.0.0:0"), 2, "others than this machine reach it, so it needs a --control-token"),
        (("--control", "0", "--topic", "a b:1"), 2, "topic 'a b': "),
    ],
)
def test_what_does_not_go_together_is_refused(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], code: int, said: str
) -> None:
    ended, line = refused(capsys, "--port", "0", *arguments)
    assert ended == code
    assert said in line


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--control", "9093x"), "is not a port"),
        (("--control", "127.0.0.1:70000"), "is not a port"),
        (("--control", "0", "--clock", "fast", "--speed", "nan"), "nan is not a number above 0"),
        (("--control", "0", "--clock", "virtual"), "invalid choice"),
    ],
)
def test_a_mistake_is_told(capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], said: str) -> None:
    assert said in mistaken(capsys, *arguments)


def test_a_port_that_is_taken_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        for arguments in (("--port", "0", "--control", str(port)), ("--port", str(port), "--control", "0")):
            code, line = refused(capsys, *arguments)
            assert code == 1
            assert line == f"cannot listen on 127.0.0.1:{port}: Address already in use; port 0 is any that is free"


def test_a_data_directory_that_cannot_be_used_is_told(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    code, line = refused(capsys, "--port", "0", "--control", "0", "--data-dir", str(tmp_path / "file"))
    assert code == 1
    assert str(tmp_path / "file") in line


def test_without_the_extra_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in [name for name in sys.modules if name.startswith("groupcoord.control")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "fastapi", None)
    code, line = refused(capsys, "--port", "0", "--control", "0")
    assert (code, line) == (1, "--control needs fastapi: pip install 'groupcoord[control]'")


@pytest.mark.slow
def test_without_control_nothing_of_it_is_imported() -> None:
    program = (
        "import signal, sys\n"
        "from groupcoord.cli.main import main\n"
        "from groupcoord.server.server import Server\n"
        "serve = Server.serve\n"
        "async def ended(self, announce):\n"
        "    return await serve(self, lambda server: server.stop())\n"
        "Server.serve = ended\n"
        "main(['serve', '--port', '0'])\n"
        "wanted = ('fastapi', 'uvicorn', 'pydantic', 'httpx', 'groupcoord.control', 'groupcoord.testing')\n"
        "print([name for name in wanted if name in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"

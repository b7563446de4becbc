"""``groupcoord serve --faults``: rules from a file act on whoever comes, and the log tells of them."""

import signal
import socket
from pathlib import Path

import pytest

from groupcoord.cli.main import main
from groupcoord.protocol.framing import parse_response
from groupcoord.server.server import Server
from groupcoord.testing.faults import FaultLayer
from tests.cli.test_serve import configured, refused
from tests.cli.test_serve_process import PATIENCE_SECONDS, address, process
from tests.server.support import HEARTBEAT, frame, heartbeat

FAULTS = """\
- {when: Heartbeat, do: refuse, code: NOT_COORDINATOR}
- {when: JoinGroup, group: app, do: drop}
"""


@pytest.fixture
def rules(tmp_path: Path) -> str:
    path = tmp_path / "faults.yaml"
    path.write_text(FAULTS)
    return str(path)


def test_without_rules_there_is_nothing_around_the_node(monkeypatch: pytest.MonkeyPatch, rules: str) -> None:
    def node_of(server: Server) -> object:
        return server.cluster

    assert not isinstance(node_of(configured(monkeypatch)), FaultLayer)
    assert isinstance(node_of(configured(monkeypatch, "--faults", rules)), FaultLayer)


def test_mistakes_in_the_file(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "faults.yaml"
    path.write_text("- {when: Heart, do: drup}\n")
    assert main(["serve", "--faults", str(path)]) == 2
    said = capsys.readouterr().err
    assert "faults.yaml: rule 1 (line 1): when: there is no API 'Heart'; did you mean Heartbeat?" in said
    assert "faults.yaml: rule 1 (line 1): do: there is no verb 'drup'; did you mean drop?" in said


def test_a_rule_about_brokers_that_there_are_not(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "faults.yaml"
    path.write_text("- {when: Produce, do: kill_broker}\n")
    for command in (["serve"], ["proxy", "--to", "127.0.0.1:9092"]):
        assert main([*command, "--faults", str(path)]) == 2
        said = capsys.readouterr().err
        assert "rule 1 (line 1): do: kill_broker is for a cluster of several brokers, which this is not" in said


@pytest.mark.slow
def test_a_rule_ends_a_broker_behind_its_answer(tmp_path: Path) -> None:
    path = tmp_path / "faults.yaml"
    path.write_text("- {when: Heartbeat, do: kill_broker, moment: answered}\n")
    with process("--faults", str(path), "--brokers", "3") as server:
        with socket.create_connection(address(server.stdout), PATIENCE_SECONDS) as connection:
            stream = connection.makefile("rwb")
            stream.write(frame(HEARTBEAT, heartbeat()))
            stream.flush()
            answer = stream.read(int.from_bytes(stream.read(4)))
            assert stream.read() == b""
            stream.close()
        assert parse_response(HEARTBEAT, HEARTBEAT.max_version, answer)[1].error_code
        server.send_signal(signal.SIGTERM)
        _, log = server.communicate(timeout=PATIENCE_SECONDS)
    assert "fault by faults.yaml rule 1: Heartbeat of m gets its response, and then its broker is killed" in log
    assert "broker 1 is stopped" in log


def test_a_file_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    code, said = refused(capsys, "--faults", "/nowhere/faults.yaml")
    assert code == 1
    assert "cannot read /nowhere/faults.yaml: No such file or directory" in said


@pytest.mark.slow
def test_what_acts_and_what_never_did_is_in_the_log(rules: str) -> None:
    with process("--faults", rules) as server:
        with socket.create_connection(address(server.stdout), PATIENCE_SECONDS) as connection:
            stream = connection.makefile("rwb")
            stream.write(frame(HEARTBEAT, heartbeat()))
            stream.flush()
            answer = stream.read(int.from_bytes(stream.read(4)))
            stream.close()
        assert parse_response(HEARTBEAT, HEARTBEAT.max_version, answer)[1].error_code == 16
        server.send_signal(signal.SIGTERM)
        _, log = server.communicate(timeout=PATIENCE_SECONDS)
    assert "faults.yaml rule 2: when(JoinGroup, group='app').drop()" in log
    assert "fault by faults.yaml rule 1: Heartbeat of m is refused with NOT_COORDINATOR" in log
    assert "WARNING  faults.yaml rule 2 never acted: when(JoinGroup, group='app').drop()" in log
    assert "rule 1 never acted" not in log

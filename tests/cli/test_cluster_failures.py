"""``groupcoord cluster``: brokers stopped, killed, paused and started by hand, and what is said of what cannot be."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from groupcoord.cli.main import main
from tests.control.processes import Serving, serving
from tests.real_kafka.lone_node import free_port

CLUSTER = ("--brokers", "3", "--clock", "manual")


@pytest.fixture(scope="module")
def server() -> Iterator[Serving]:
    """Three brokers, whose clock stands still."""
    with serving(*CLUSTER) as server:
        yield server


def said(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, str, str]:
    """The exit code and both outputs, without what differs from run to run."""
    code = main(["cluster", *argv])
    output = capsys.readouterr()
    words = [word for word in output.out.split(" ") if not word.startswith("127.0.0.1:")]
    return code, " ".join(words).rstrip("\n"), output.err.rstrip("\n")


@pytest.mark.slow
def test_brokers_are_acted_on_and_listed(server: Serving, capsys: pytest.CaptureFixture[str]) -> None:
    def does(*argv: str) -> str:
        code, out, error = said(capsys, *argv, "--control", server.url)
        assert (code, error) == (0, "")
        return out

    assert does("pause", "3") == "broker 3 at paused"
    assert does("resume", "3") == "broker 3 at running"
    assert does("pause-replication", "3") == "broker 3 at running, replication paused"
    assert does("resume-replication", "3") == "broker 3 at running"
    assert does("cut-off", "3", "controller") == "broker 3 at running, cut off from the controller"
    assert does("reconnect", "3", "controller") == "broker 3 at running"
    assert does("slow-disk", "3", "0.5") == "broker 3 at running, slow disk: 500 ms for each append"
    assert does("slow-disk", "3", "0") == "broker 3 at running"
    assert does("cut-off", "3", "1") == "broker 3 at running, cut off from broker 1"
    assert does("reconnect", "3", "1") == "broker 3 at running"
    assert does("stop", "2") == "broker 2 at stopped, fenced"
    assert does("lose-disk", "2") == "broker 2 at stopped, fenced, lost its disk"
    assert does("kill", "3") == "broker 3 at stopped"
    assert does("brokers").splitlines() == [
        "broker 1 at running",
        "broker 2 at stopped, fenced, lost its disk",
        "broker 3 at stopped",
    ]
    assert does("start", "2") == "broker 2 at running"
    assert does("start", "3") == "broker 3 at starting"
    assert does("kill", "controller") == "controller 3000: stopped, epoch 1"
    assert does("brokers").splitlines()[2:] == ["broker 3 at starting", "controller 3000: stopped, epoch 1"]
    assert does("start", "controller") == "controller 3000: running, epoch 2"
    assert len(does("brokers").splitlines()) == 3


@pytest.mark.slow
def test_what_cannot_be_done_is_said(server: Serving, capsys: pytest.CaptureFixture[str]) -> None:
    for argv, complaint in (
        (("resume", "1"), "broker 1 is running: it cannot be resumed"),
        (("reconnect", "1", "3"), "the network between broker 1 and broker 3 is not cut"),
        (
            ("slow-disk", "2", "soon"),
            "seconds: Input should be a valid number, unable to parse string as a number",
        ),
        (("resume", "controller"), "the controller is running: it cannot be resumed"),
        (("kill", "9"), "there is no broker 9: the ids are 1, 2, 3"),
    ):
        assert said(capsys, *argv, "--control", server.url) == (1, "", f"groupcoord cluster: {complaint}")


@pytest.mark.slow
def test_a_token_that_is_missing_or_wrong_is_asked_for(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GROUPCOORD_CONTROL_TOKEN", raising=False)
    with serving("--control-token", "secret") as guarded:
        where = ("brokers", "--control", guarded.url)
        how = "token: --control-token, or GROUPCOORD_CONTROL_TOKEN"
        assert said(capsys, *where) == (1, "", f"groupcoord cluster: {guarded.url} wants a {how}")
        wrong = said(capsys, *where, "--control-token", "guessed")
        assert wrong == (1, "", f"groupcoord cluster: {guarded.url} wants another {how}")
        assert said(capsys, *where, "--control-token", "secret") == (0, "broker 1 at running", "")


@pytest.mark.slow
def test_a_url_where_nobody_answers_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    url = f"http://127.0.0.1:{free_port()}"
    code, out, error = said(capsys, "brokers", "--control", url)
    assert (code, out) == (1, "")
    assert error.startswith(f"groupcoord cluster: no control API answers at {url}: ")


@pytest.mark.parametrize("url", ["127.0.0.1:9093", "ftp://127.0.0.1:9093"])
def test_what_is_no_url_is_said(capsys: pytest.CaptureFixture[str], url: str) -> None:
    expected = (2, "", f"groupcoord cluster: --control {url}: a URL begins with http://")
    assert said(capsys, "brokers", "--control", url) == expected


@pytest.mark.slow
def test_another_server_is_said_to_be_none(capsys: pytest.CaptureFixture[str]) -> None:
    class Other(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_error(404)

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Other) as other:
        thread = threading.Thread(target=other.handle_request)
        thread.start()
        code, out, error = said(capsys, "brokers", "--control", f"http://127.0.0.1:{other.server_port}")
        thread.join()
    assert (code, out, len(error.splitlines())) == (1, "", 1)


@pytest.mark.parametrize(
    ("argv", "complaint"),
    [
        (["kill", "two", "--control", "http://127.0.0.1:1"], "argument BROKER: two is not the id of a broker"),
        (
            ["stop", "controller", "--control", "http://127.0.0.1:1"],
            "argument BROKER: this is for brokers alone; the controller has kill, pause, resume, start",
        ),
        (["kill", "2"], "the following arguments are required: --control"),
        ([], "the following arguments are required: COMMAND"),
    ],
)
def test_a_command_line_that_is_wrong_is_told_how(
    capsys: pytest.CaptureFixture[str], argv: list[str], complaint: str
) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["cluster", *argv])
    assert complaint in capsys.readouterr().err

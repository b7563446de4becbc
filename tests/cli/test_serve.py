"""``groupcoord serve`` in this process: its options, what it says of mistakes, and how it ends."""

import io
import logging
import re
import signal
import socket
import sys
import threading
from pathlib import Path

import pytest

from groupcoord.cli import serve
from groupcoord.cli.main import main
from groupcoord.config.broker_config import DEFAULTS, DEV_DEFAULTS
from groupcoord.config.config_def import ConfigError
from groupcoord.config.property_definitions import BROKER
from groupcoord.server.event_logging import LINES_PER_KIND, BackgroundLogHandler, LogRateLimiter
from groupcoord.server.server import Server

pytestmark = pytest.mark.slow


class Ready(io.StringIO):
    """A stdout whose reader sends a signal as soon as the server says that it listens."""

    def __init__(self, answer: signal.Signals) -> None:
        super().__init__()
        self._answers = [answer]

    def flush(self) -> None:
        if self.getvalue().endswith("\n") and self._answers:
            signal.raise_signal(self._answers.pop())


def served(
    monkeypatch: pytest.MonkeyPatch, *arguments: str, ended_by: signal.Signals = signal.SIGTERM
) -> tuple[int, str]:
    """(exit code, stdout) of a server that is ended as soon as it listens."""
    stdout = Ready(ended_by)
    monkeypatch.setattr(sys, "stdout", stdout)
    code = main(["serve", *arguments])
    return code, stdout.getvalue()


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    """(exit code, the one line it says) of a command line that cannot be served."""
    code = main(["serve", *arguments])
    shown = capsys.readouterr()
    assert shown.out == ""
    (line,) = [line for line in shown.err.splitlines() if line.startswith("groupcoord serve: ")]
    return code, line.removeprefix("groupcoord serve: ")


def mistaken(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """What argparse says of a command line."""
    with pytest.raises(SystemExit) as ended:
        main(["serve", *arguments])
    assert ended.value.code == 2
    return capsys.readouterr().err.splitlines()[-1]


@pytest.mark.parametrize(("ended_by", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
@pytest.mark.parametrize("options", [(), ("--no-uvloop",)])
def test_it_says_where_it_listens_and_ends_with_a_signal(
    monkeypatch: pytest.MonkeyPatch, ended_by: signal.Signals, code: int, options: tuple[str, ...]
) -> None:
    ended, said = served(monkeypatch, "--port", "0", *options, ended_by=ended_by)
    assert ended == code
    first, *rest = said.splitlines()
    assert first.startswith("listening on 127.0.0.1:")
    assert rest == []


def test_it_says_where_each_of_several_brokers_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    ended, said = served(monkeypatch, "--port", "0", "--brokers", "3", "--racks", "a, b", "-c", "node.id=5")
    assert ended == 0
    first, second, third = said.splitlines()
    assert first.startswith("listening on 127.0.0.1:")
    assert second.startswith("broker 6 listening on 127.0.0.1:")
    assert third.startswith("broker 7 listening on 127.0.0.1:")


BOTH_PLAIN = "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,B:PLAINTEXT"


def test_it_says_where_each_listener_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    listeners = ("-c", "listeners=PLAINTEXT://127.0.0.1:0,B://127.0.0.1:0", "-c", BOTH_PLAIN)
    ended, said = served(monkeypatch, *listeners, "--brokers", "2")
    assert ended == 0
    assert [re.sub(r":\d+", "", line) for line in said.splitlines()] == [
        "listening on 127.0.0.1",
        "broker 2 listening on 127.0.0.1",
        "listening on 127.0.0.1 for B",
        "broker 2 listening on 127.0.0.1 for B",
    ]


def test_the_docs_show_what_it_says(monkeypatch: pytest.MonkeyPatch) -> None:
    text = (Path(__file__).resolve().parents[2] / "docs" / "brokers.md").read_text(encoding="utf-8")
    example, *_ = re.findall(r"```console\n(.*?)```", text, re.DOTALL)
    command, *lines = example.splitlines()
    _, said = served(monkeypatch, *command.removeprefix("$ groupcoord serve ").split(), "--port", "0")
    assert [re.sub(r"\d+$", "", line) for line in said.splitlines()] == [re.sub(r"\d+$", "", line) for line in lines]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("--racks", "a,b"), "--racks names 2 racks, and there are fewer brokers: 1"),
    ],
)
def test_brokers_that_cannot_be(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
    problem: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert refused(capsys, *arguments) == (2, problem)
    assert not list(tmp_path.iterdir())


def test_brokers_and_racks_that_are_none(capsys: pytest.CaptureFixture[str]) -> None:
    for none in ("0", "three", "²"):
        assert mistaken(capsys, "--brokers", none).endswith(f"{none} is not a number of brokers above 0")
    assert mistaken(capsys, "--racks", "a,,b").endswith("a,,b: a rack has no name")


def test_features_and_levels_that_are_none(capsys: pytest.CaptureFixture[str]) -> None:
    for said, problem in (
        ("transaction.version", "transaction.version is not NAME=LEVEL"),
        ("transaction.version=3", "transaction.version has levels from 0 to 2, and no 3"),
        ("metadata.version=30", "metadata.version is not a feature that can be chosen; these are: group.version"),
    ):
        assert problem in mistaken(capsys, "--feature", said)


def test_a_feature_has_the_level_that_was_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    assert served(monkeypatch, "--port", "0", "--feature", "transaction.version=1")[0] == 0


def test_there_is_no_port_for_the_last_broker(capsys: pytest.CaptureFixture[str]) -> None:
    problem = "cannot listen on 127.0.0.1:65536: there is no port above 65535"
    assert refused(capsys, "--port", "65535", "--brokers", "2") == (1, problem)


def test_without_uvloop_it_does_with_asyncio(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvloop", None)
    assert served(monkeypatch, "--port", "0")[0] == 0


def test_what_is_logged_after_the_end_waits_for_no_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    while_serving: list[object] = []

    async def serve_not(_server: Server, _announce: object) -> None:
        (limiter,) = logging.getLogger("groupcoord").handlers
        assert isinstance(limiter, LogRateLimiter)
        while_serving.append(limiter.later)

    monkeypatch.setattr(Server, "serve", serve_not)
    assert main(["serve"]) == 0
    (later,) = while_serving
    assert later is not None
    for _ in range(LINES_PER_KIND + 1):
        logging.getLogger("groupcoord.server").warning("one like the other")


def test_a_stdout_that_nobody_reads_is_no_reason_not_to_serve(monkeypatch: pytest.MonkeyPatch) -> None:
    class Unread(io.StringIO):
        def write(self, _: str) -> int:
            signal.raise_signal(signal.SIGTERM)
            raise BrokenPipeError

    forgotten: list[None] = []
    monkeypatch.setattr(serve, "forget_output", lambda: forgotten.append(None))
    monkeypatch.setattr(sys, "stdout", Unread())
    assert main(["serve", "--port", "0"]) == 0
    assert forgotten == [None]


def configured(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> Server:
    """The server that a command line would start."""
    started: list[Server] = []

    async def serve_not(server: Server, _announce: object) -> None:
        started.append(server)

    monkeypatch.setattr(Server, "serve", serve_not)
    assert main(["serve", *arguments]) == 0
    return started[0]


def test_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    server = configured(monkeypatch)
    assert server.address == "127.0.0.1:9092"
    assert server.cluster.config.group_initial_rebalance_delay_ms == 3_000


def test_dev_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    server = configured(monkeypatch, "--dev")
    assert server.cluster.config.group_initial_rebalance_delay_ms == 0


def test_properties_of_file_and_command_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("num.partitions=3\ngroup.max.size=7\nlisteners=PLAINTEXT://127.0.0.9:1234\n")
    server = configured(
        monkeypatch, "--config", str(file), "-c", "group.max.size=8", "-c", "default.replication.factor=1"
    )
    assert server.address == "127.0.0.9:1234"
    assert (server.cluster.config.num_partitions, server.cluster.config.group_max_size) == (3, 8)


def test_host_and_port_win_over_listeners(monkeypatch: pytest.MonkeyPatch) -> None:
    listeners = ("-c", "listeners=PLAINTEXT://127.0.0.9:1234")
    assert configured(monkeypatch, *listeners, "--port", "0").address == "127.0.0.9:0"
    assert configured(monkeypatch, *listeners, "--host", "127.0.0.2").address == "127.0.0.2:1234"
    assert configured(monkeypatch, "--host", "::1", "--port", "7").address == "[::1]:7"
    two = configured(monkeypatch, "-c", "listeners=PLAINTEXT://:1,B://:2", "-c", BOTH_PLAIN, "--host", "127.0.0.2")
    assert two.cluster.config["listeners"] == ("PLAINTEXT://127.0.0.2:1", "B://:2")


def test_topics(monkeypatch: pytest.MonkeyPatch) -> None:
    server = configured(monkeypatch, "--topic", "orders:6", "--topic", "plain", "-c", "num.partitions=2")
    topics = {topic.name: len(topic.partitions) for topic in server.cluster.broker.topics.all()}  # type: ignore[attr-defined]
    assert (topics["orders"], topics["plain"]) == (6, 2)


@pytest.mark.parametrize("style", ["text", "json"])
def test_what_has_no_effect_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], style: str
) -> None:
    configured(monkeypatch, "-c", "num.io.threads=3", "--log-format", style)
    assert "accepted, but without effect here: num.io.threads" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "level"),
    [
        ((), logging.INFO),
        (("-v",), logging.DEBUG),
        (("-q",), logging.WARNING),
        (("--log-level", "error"), logging.ERROR),
    ],
)
def test_log_level(monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...], level: int) -> None:
    configured(monkeypatch, *options)
    assert logging.getLogger("groupcoord").level == level


def test_an_unknown_property(capsys: pytest.CaptureFixture[str]) -> None:
    code, line = refused(capsys, "-c", "group.max.syze=3")
    assert code == 2
    assert "group.max.syze: unknown property; did you mean group.max.size?" in line


def test_an_ill_typed_property_in_a_file(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("# a comment\ngroup.max.size=many\n")
    code, line = refused(capsys, "--config", str(file))
    assert code == 2
    assert line.startswith(f"{file}:2: group.max.size=many: ")


def test_a_file_that_is_not_there(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert refused(capsys, "--config", str(tmp_path / "no")) == (
        1,
        f"cannot read {tmp_path}/no: No such file or directory",
    )


def test_a_taken_port(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        problem = f"cannot listen on 127.0.0.1:{port}: Address already in use; port 0 is any that is free"
        assert refused(capsys, "--port", str(port)) == (1, problem)


def test_an_unknown_host(capsys: pytest.CaptureFixture[str]) -> None:
    code, line = refused(capsys, "--host", "no-such-host.invalid")
    assert code == 1
    assert line.startswith("cannot listen on no-such-host.invalid:9092: ")


def test_a_topic_that_kafka_refuses(capsys: pytest.CaptureFixture[str]) -> None:
    code, line = refused(capsys, "--topic", "or/ders:3")
    assert code == 2
    assert line.startswith("--topic or/ders: ")


def test_what_cannot_be_advertised(capsys: pytest.CaptureFixture[str]) -> None:
    code, line = refused(capsys, "-c", "advertised.listeners=PLAINTEXT://0.0.0.0:9092", "--port", "0")
    assert code == 2
    assert "advertised.listeners" in line


def test_what_cannot_be_advertised_only_shows_when_it_listens(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def failing(*_: object) -> None:
        raise ConfigError("", "advertised.listeners", None, "no")

    monkeypatch.setattr(Server, "serve", failing)
    assert refused(capsys) == (2, "advertised.listeners: no")


@pytest.mark.parametrize("port", ["x", "-1", "65536", "1.5", "²"])
def test_a_port_that_is_none(capsys: pytest.CaptureFixture[str], port: str) -> None:
    assert f"{port} is not a port: a number from 0 to 65535" in mistaken(capsys, f"--port={port}")


@pytest.mark.parametrize("topic", ["orders:", "orders:0", "orders:x", "orders:-1"])
def test_partitions_that_are_none(capsys: pytest.CaptureFixture[str], topic: str) -> None:
    assert "the number of partitions is not a number above 0" in mistaken(capsys, "--topic", topic)


def test_help_says_which_defaults_are_not_kafkas(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["serve", "--help"])
    shown = capsys.readouterr().out
    for here in (*DEFAULTS, *DEV_DEFAULTS):
        kafkas = BROKER[here.name].default
        assert f"  {here.name}={here.value}" + ("" if kafkas is None else f"  (Kafka: {kafkas})") in shown


def test_without_stderr_a_mistake_still_has_its_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    assert main(["serve", "-c", "no.such=1"]) == 2


# --- with a data directory


def test_topics_are_there_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    arguments = ("--port", "0", "--data-dir", str(tmp_path / "data"), "--topic", "orders:2")
    for _ in range(2):
        code, _ = served(monkeypatch, *arguments)
        assert code == 0
    assert (tmp_path / "data" / "orders-1").is_dir()
    assert (tmp_path / "data" / ".kafka_cleanshutdown").exists()


def test_a_topic_that_is_there_with_other_partitions(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    refused(capsys, "--data-dir", str(tmp_path), "--topic", "orders:2", "--host", "no-such-host.invalid")
    refused(capsys, "--data-dir", str(tmp_path), "--topic", "one:1", "--host", "no-such-host.invalid")
    for option, kept, asked in (
        ("orders:3", "2 partitions", 3),
        ("orders", "2 partitions", 1),
        ("one:2", "1 partition", 2),
    ):
        code, line = refused(capsys, "--data-dir", str(tmp_path), "--topic", option)
        name = option.partition(":")[0]
        assert code == 2
        said = (
            f"--topic {name}: it is kept with {kept} and asked for with {asked}; ask for {kept[0]} to take it as it is"
        )
        assert line.startswith(said)


def test_a_topic_of_more_partitions_than_kafka_creates_is_refused_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    said = "--topic orders: Kafka creates no topic of 1000000 partitions at once, but 9999 at most"
    assert refused(capsys, "--topic", "orders:1000000") == (2, said)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("--prot", "9092"), "there is no option --prot; did you mean --port?"),
        (("--to", "1"), "there is no option --to; groupcoord serve --help names those there are"),
        (("--topics=orders:6",), "there is no option --topics; did you mean --topic?"),
        (("--xyz",), "there is no option --xyz; groupcoord serve --help names those there are"),
        (("--dev", "orders"), "unexpected argument: orders"),
        (("--brokers",), "argument --brokers: expected one argument"),
        (("--port", "x"), "argument --port: x is not a port: a number from 0 to 65535"),
    ],
)
def test_a_wrong_option_is_one_line(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], problem: str
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["serve", *arguments])
    assert ended.value.code == 2
    shown = capsys.readouterr()
    assert (shown.out, shown.err) == ("", f"groupcoord serve: {problem}\n")


def test_a_data_directory_that_cannot_be_used(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "__cluster_metadata-0").mkdir()
    code, line = refused(capsys, "--data-dir", str(tmp_path))
    assert code == 1
    assert line.startswith(f"{tmp_path} is the log directory of a real Kafka broker")


def test_what_was_not_in_order_is_logged(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    arguments = ("--port", "0", "--data-dir", str(tmp_path), "--topic", "orders")
    assert served(monkeypatch, *arguments)[0] == 0
    (tmp_path / "orders-0" / f"{0:020d}.log").write_bytes(b"torn")
    (tmp_path / ".kafka_cleanshutdown").unlink()
    stderr = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stderr)
    assert served(monkeypatch, *arguments)[0] == 0
    assert "is cut off at byte 0, before offset 0: 4 bytes of a batch" in stderr.getvalue()


def test_a_disk_that_fails_ends_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    async def failing(server: Server, _: object) -> None:
        server.cluster.broker.storage.failed(OSError(28, "No space left on device"))  # type: ignore[attr-defined]

    monkeypatch.setattr(Server, "serve", failing)
    line = f"the data directory {tmp_path} has failed: No space left on device"
    assert refused(capsys, "--data-dir", str(tmp_path), "-q") == (1, line)


def test_a_system_without_posix(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "groupcoord.storage.file_storage_backend", None)
    code, line = refused(capsys, "--data-dir", str(tmp_path))
    assert code == 1
    assert line.startswith("--data-dir needs a POSIX system: ")


def handlers() -> list[type[logging.Handler]]:
    return [type(handler) for handler in logging.getLogger("groupcoord").handlers]


def test_lines_that_repeat_themselves_are_folded_unless_every_line_is_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    configured(monkeypatch)
    assert handlers() == [LogRateLimiter]
    for option in ("-v", "--log-every-line"):
        configured(monkeypatch, option)
        assert handlers() == [BackgroundLogHandler]


def test_the_log_goes_to_a_file(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "server.log"
    ended, _ = served(monkeypatch, "--port", "0", "--log-file", str(file), "--log-max-bytes", "300", "--log-files", "2")
    assert ended == 0
    assert capsys.readouterr().err == ""
    (limiter,) = logging.getLogger("groupcoord").handlers
    assert isinstance(limiter, LogRateLimiter)
    logging.getLogger("groupcoord.server").info("a" * 200)
    limiter.close()
    for thread in threading.enumerate():
        if thread.name == "groupcoord-log":
            thread.join(60)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["server.log", "server.log.1"]
    assert "serving at 127.0.0.1:" in (tmp_path / "server.log.1").read_text(encoding="utf-8")
    assert file.read_text(encoding="utf-8").endswith("a\n")


def test_a_log_file_that_cannot_be(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert refused(capsys, "--log-file", str(tmp_path)) == (1, f"cannot write {tmp_path}: Is a directory")
    assert "0 is not a number above 0" in mistaken(capsys, "--log-files", "0")

"""What cannot be read is said in one line, and leaves nothing behind."""

import socket
import socketserver
import threading
from pathlib import Path

import pytest

from groupcoord.cli.main import main
from groupcoord.pipeline.errors import PipelineError
from groupcoord.pipeline.sources.factory import plan_source
from groupcoord.pipeline.sources.segment_files import read_piece, survey
from groupcoord.protocol.batches.record_batch import CONTROL, TRANSACTIONAL, build_batch
from groupcoord.protocol.batches.records import Record


def refused(source: str) -> str:
    with pytest.raises(PipelineError) as problem:
        plan_source(source, {})
    return str(problem.value)


def test_sources_that_are_none() -> None:
    assert refused("postgres:db").startswith("'postgres:db' is not a source; there are kafka:HOST:PORT")
    assert refused("segments:").startswith("'segments:' is not a source")
    assert refused("kafka:somewhere") == "'somewhere' is not HOST:PORT"


def test_segments_that_are_none(tmp_path: Path) -> None:
    assert refused(f"segments:{tmp_path}/missing") == f"there is no directory {tmp_path}/missing"
    assert refused(f"segments:{tmp_path}") == f"{tmp_path} has no folders __consumer_offsets-N"
    file = tmp_path / "file"
    file.write_text("something")
    assert refused(f"segments:{file}").startswith(f"{file} is a file")
    log = tmp_path / "__consumer_offsets-3" / f"{0:020d}.log"
    log.parent.mkdir()
    log.touch()
    assert refused(f"segments:{tmp_path}").endswith("are all empty: nothing was ever committed there")
    log.write_bytes(b"no record batch at all, but some text")
    assert refused(f"segments:{tmp_path}").endswith("do not begin with record batches: are they Kafka's?")


def test_dumps_that_are_none(tmp_path: Path) -> None:
    assert refused(f"jsonl:{tmp_path}/missing") == f"cannot read {tmp_path}/missing: No such file or directory"
    assert refused(f"jsonl:{tmp_path}").endswith("is a directory; jsonl:FILE wants a file")
    (tmp_path / "empty").touch()
    assert refused(f"jsonl:{tmp_path}/empty") == f"{tmp_path}/empty is empty"


def test_a_broker_that_is_down() -> None:
    with socket.socket() as nobody:  # who has the port, and does not listen
        nobody.bind(("127.0.0.1", 0))
        port = nobody.getsockname()[1]
        assert refused(f"kafka:127.0.0.1:{port}").startswith(f"no broker answers: 127.0.0.1:{port} cannot be reached: ")


@pytest.mark.slow
def test_a_listener_that_wants_tls() -> None:
    class HangingUp(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            self.request.recv(1)

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), HangingUp) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        port = server.server_address[1]
        assert refused(f"kafka:127.0.0.1:{port}").endswith("; it may want TLS, which --command-config FILE is for")
        server.shutdown()


@pytest.mark.slow
def test_a_properties_file_that_cannot_be(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "client.properties"
    out = ["--out", str(tmp_path / "out"), "--command-config", str(path)]
    kafka = ["--source", "kafka:127.0.0.1:1", *out]
    for action in ("run", "watch"):
        assert main(["pipeline", action, *kafka]) == 1
        told = f"groupcoord pipeline: cannot read {path}: No such file or directory\n"
        assert capsys.readouterr().err == told
        path.write_text("security.protocol=SASL_SSL\nsasl.mechanism=GSSAPI\n")
        assert main(["pipeline", action, *kafka]) == 1
        mechanisms = "PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER"
        told = f"groupcoord pipeline: {path}: sasl.mechanism is one of {mechanisms}, not GSSAPI\n"
        assert capsys.readouterr().err == told
        path.unlink()
    assert main(["pipeline", "run", "--source", "connector:127.0.0.1:1", *out]) == 1
    assert capsys.readouterr().err.startswith("groupcoord pipeline: --command-config is for kafka:HOST:PORT; ")
    assert not (tmp_path / "out").exists()


def test_the_command_says_it_in_one_line_and_writes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    assert main(["pipeline", "run", "--source", f"segments:{tmp_path}/no", "--out", str(out)]) == 1
    assert capsys.readouterr().err == f"groupcoord pipeline: there is no directory {tmp_path}/no\n"
    assert not out.exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["generate", "--records", "9"],
            "generate cannot use Spark Connect: choose another --master than sc://127.0.0.1:1",
        ),
        (
            ["run", "--source", "jsonl:FILE", "--packages", "a:b:1"],
            "--packages is for a Spark that begins with this command: ",
        ),
        (["run", "--source", "jsonl:FILE"], "no server of Spark Connect answers at sc://127.0.0.1:1: "),
    ],
)
def test_what_a_server_of_spark_connect_cannot_do_is_told(
    words: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARK_MASTER", "sc://127.0.0.1:1")
    (tmp_path / "FILE").write_text('{"partition": 0, "offset": 0, "timestamp": 1, "key": "AAEA", "value": null}\n')
    monkeypatch.chdir(tmp_path)
    assert main(["pipeline", *words, "--out", "out"]) == 1
    assert capsys.readouterr().err.startswith(f"groupcoord pipeline: {said}")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ["--as-of", "yesterday"],
        ["--window", "soon"],
        ["--conf", "nothing"],
        ["--details", "0"],
        ["--offsets-retention", "7"],
    ],
)
def test_options_that_cannot_be(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["pipeline", "run", "--source", "segments:x", "--out", "y", *arguments])
    assert ended.value.code == 2
    assert repr(arguments[1]) in capsys.readouterr().err


def batch(offset: int, *, producer: int = -1, attributes: int = 0, key: bytes = b"k") -> bytes:
    return build_batch([Record(offset, 1000, key, b"v")], producer_id=producer, attributes=attributes)


def test_the_survey_counts_what_is_to_be_seen_and_remarks_the_rest(tmp_path: Path) -> None:
    folder = tmp_path / "__consumer_offsets-7"
    folder.mkdir()
    data = [
        batch(0),
        batch(1, producer=5, attributes=TRANSACTIONAL),
        batch(2),
        batch(3, producer=5, attributes=TRANSACTIONAL | CONTROL, key=b"\0\0\0\0"),
        batch(4, producer=5, attributes=TRANSACTIONAL),
        batch(5, producer=5, attributes=TRANSACTIONAL | CONTROL, key=b"\0\0\0\1"),
        batch(6, producer=6, attributes=TRANSACTIONAL),
    ]
    (folder / f"{0:020d}.log").write_bytes(b"".join(data))
    torn = batch(8)
    (folder / f"{7:020d}.log").write_bytes(batch(7) + torn[:-3])
    (folder / f"{9:020d}.log").write_bytes(b"")
    (folder / f"{9:020d}.index").write_bytes(bytes(100))
    found = survey(tmp_path, piece_bytes=150)
    assert found.records == 4  # offsets 0, 2, 4 and 7
    assert sum(piece.end - piece.start for piece in found.pieces) == len(b"".join(data)) + len(torn)
    assert len(found.pieces) > 2
    assert [(remark.what, remark.records, remark.bytes) for remark in found.warnings] == [
        (f"torn tail: no whole batch, from byte {len(batch(7))} on", None, len(torn) - 3),
        ("records of aborted transactions", 1, None),
        ("records of transactions without an end", 1, None),
    ]


def test_behind_a_damaged_batch_reading_goes_on(tmp_path: Path) -> None:
    folder = tmp_path / "__consumer_offsets-7"
    folder.mkdir()
    batches = [bytearray(batch(offset)) for offset in range(8)]
    for damaged in (0, 3):
        batches[damaged][8:12] = (0x7FFFFFF0).to_bytes(4, "big")  # its length
    (folder / f"{0:020d}.log").write_bytes(b"".join(batches))
    found = survey(tmp_path)
    read = [offset for piece in found.pieces for rows in read_piece(piece) for offset in rows["log_offset"].to_pylist()]
    assert read == [1, 2, 4, 5, 6, 7]
    size = len(batches[0])
    assert [(remark.what, remark.bytes) for remark in found.warnings] == [
        ("bytes that are not a record batch, passed over, from byte 0 on", size),
        (f"bytes that are not a record batch, passed over, from byte {3 * size} on", size),
    ]


def test_where_nothing_can_be_written_is_said_before_spark_starts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: object) -> None:
        raise AssertionError("Spark was started")

    monkeypatch.setattr("groupcoord.cli.pipeline._session", never)
    file = tmp_path / "file"
    file.write_text("something")
    for out in (file, file / "out"):
        assert main(["pipeline", "run", "--source", f"segments:{tmp_path}", "--out", str(out)]) == 1
        assert capsys.readouterr().err == f"groupcoord pipeline: cannot write to {out}: {file} is a file\n"
    foreign = tmp_path / "foreign"
    (foreign / "tables").mkdir(parents=True)
    for action, source in (("run", f"segments:{tmp_path}"), ("watch", "kafka:127.0.0.1:1")):
        assert main(["pipeline", action, "--source", source, "--out", str(foreign)]) == 1
        said = f"groupcoord pipeline: {foreign}/tables is there and not from a {action}: choose another --out\n"
        assert capsys.readouterr().err == said

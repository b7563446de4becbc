"""``groupcoord offsets``: what it prints, what it writes, and what it says of mistakes."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from groupcoord.cli import offsets
from groupcoord.cli.main import main
from groupcoord.protocol.batches.record_batch import build_batch, read_header
from groupcoord.protocol.batches.records import Record
from groupcoord.protocol.coordinator_records import transaction_log
from groupcoord.storage.file_io import DirectoryLock
from tests.broker.data_plane import patched
from tests.clients.in_process import groupcoord
from tests.offsets_log.recorded import KAFKA_FILES, log_of, positions

SOURCE = str(KAFKA_FILES / "4.3.1")
THREE = ("-c", "offsets.topic.num.partitions=3")
NOW_MS = 1_795_291_200_000
"""2026-11-21 20:00: an hour after the logs were recorded. Compaction notes until when it keeps tombstones, and the length of
that depends on how long ago they were written."""


@pytest.fixture(autouse=True)
def the_logs_are_new(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(offsets, "_now_ms", lambda: NOW_MS)


def ran(capsys: pytest.CaptureFixture[str], *argv: str, code: int = 0) -> tuple[list[str], list[str]]:
    """The lines on stdout and stderr."""
    try:
        ended: object = main(["offsets", *argv])
    except SystemExit as end:
        ended = end.code
    captured = capsys.readouterr()
    assert ended == code, captured.err
    return captured.out.splitlines(), captured.err.splitlines()


def lines(capsys: pytest.CaptureFixture[str], *argv: str) -> list[str]:
    out, err = ran(capsys, *argv)
    assert err == []
    return out


def objects(capsys: pytest.CaptureFixture[str], *argv: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in lines(capsys, *argv, "--json")]


def broken(tmp_path: Path) -> Path:
    """A copy whose partition 2 has a batch with a wrong checksum."""
    folders = Path(shutil.copytree(KAFKA_FILES / "4.3.1", tmp_path / "copied"))
    path = folders / "__consumer_offsets-2" / log_of("4.3.1", 2).name
    data = bytearray(path.read_bytes())
    data[positions(bytes(data))[3][0] + 70] ^= 1
    path.write_bytes(data)
    return folders


def test_every_record_is_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert len(lines(capsys, "dump", SOURCE)) == 40
    assert len(objects(capsys, "dump", SOURCE)) == 40
    assert len(lines(capsys, "dump", str(KAFKA_FILES / "4.3.1" / "__consumer_offsets-0"))) == 11


def test_what_is_wanted_can_be_said(capsys: pytest.CaptureFixture[str]) -> None:
    told = objects(capsys, "dump", SOURCE, "--group", "billing", "--kind", "offsetcommit", "--topic", "orders")
    assert [(each["key"]["data"]["partition"], each["value"]["data"]["offset"]) for each in told] == [
        (0, 3),
        (1, 3),
        (0, 1),
    ]
    assert {each["partition"] for each in objects(capsys, "dump", SOURCE, "--partition", "2")} == {2}
    markers = objects(capsys, "dump", SOURCE, "--kind", "TransactionMarker")
    assert [each["marker"] for each in markers] == ["commit", "abort"]


def test_a_wrong_option_is_told_by_the_command_that_does_not_know_it(capsys: pytest.CaptureFixture[str]) -> None:
    told = ran(capsys, "dump", SOURCE, "--transctions", code=2)
    assert told == ([], ["groupcoord offsets dump: there is no option --transctions; did you mean --transactions?"])


def test_what_cannot_be_read_is_told_and_the_rest_goes_on(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    out, err = ran(capsys, "dump", str(broken(tmp_path)), "--json", code=1)
    assert len(out) == 40
    (fault,) = [told for told in map(json.loads, out) if "error" in told]
    assert (fault["partition"], fault["offset"]) == (2, 4)
    assert fault["error"].startswith("the checksum of the batch with offset 4 is not")
    assert err == [f"groupcoord offsets: __consumer_offsets-2 at offset 4: {fault['error']} ({fault['place']})"]
    out, err = ran(capsys, "dump", str(broken(tmp_path / "again")), code=1)
    assert (len(out), len(err)) == (39, 1)


def test_a_running_server_is_read(capsys: pytest.CaptureFixture[str]) -> None:
    with groupcoord({"offsets.topic.num.partitions": 2}) as server:
        assert lines(capsys, "dump", server.address) == []
        assert lines(capsys, "--before-after", server.address) == [
            "all: 0 records of 0 keys, 0 bytes; compacted 0 of 0, 0 bytes, 0 % less"
        ]


def test_transactional_ids_are_shown(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    folder = tmp_path / "__transaction_state-7"
    folder.mkdir()
    value = transaction_log.TransactionLogValue(
        producer_id=5,
        producer_epoch=0,
        timeout_ms=60_000,
        status=0,
        partitions=None,
        last_update_timestamp_ms=NOW_MS,
        start_timestamp_ms=-1,
    )
    record = Record(0, NOW_MS, transaction_log.write_key("billing"), transaction_log.write_value(value, 1))
    (folder / "00000000000000000000.log").write_bytes(build_batch([record]))
    (line,) = lines(capsys, "dump", str(tmp_path), "--transactions")
    assert 'TransactionLog transactionalId="billing" = v1 producerId=5' in line
    assert "transactionStatus=Empty transactionPartitions=null" in line
    (told,) = objects(capsys, "dump", str(folder), "--transactions")
    assert told["kind"] == "TransactionLog"


def test_before_and_after(capsys: pytest.CaptureFixture[str]) -> None:
    assert lines(capsys, "--before-after", SOURCE, "--group", "payments", "--partition", "2") == [
        "__consumer_offsets-2",
        "",
        "key                records  values, oldest first",
        "-----------------  -------  -----------------------",
        "payments           3        gen 0, no members",
        "                            gen 1, range: payer 0 1",
        "                            gen 2, no members",
        "payments orders-0  2        2 → 3",
        "payments orders-1  2        2 → 3",
        "",
        "before  GG0101G",
        "after   ··01··G",
        "",
        "at offset  key                value",
        "---------  -----------------  ----------------------------",
        "2          payments orders-0  2 is the next offset to read",
        "3          payments orders-1  2 is the next offset to read",
        "7          payments           gen 2, no members",
        "",
        "11 records of 6 keys, 1,389 bytes; compacted 6 of 6, 750 bytes, 46 % less",
        "",
        "all: 11 records of 6 keys, 1,389 bytes; compacted 6 of 6, 750 bytes, 46 % less",
    ]


def test_before_and_after_of_everything(capsys: pytest.CaptureFixture[str]) -> None:
    out = lines(capsys, "--before-after", SOURCE)
    assert [line for line in out if line.startswith("__consumer_offsets-")] == [
        f"__consumer_offsets-{number}" for number in range(3)
    ]
    *parts, whole = objects(capsys, "--before-after", SOURCE)
    assert [part["partition"] for part in parts] == [0, 1, 2]
    assert (parts[2]["kept"], parts[2]["dropped"]) == ([2, 3, 7, 9, 11, 12], [0, 1, 5, 6, 10])
    assert whole["before"] == {"bytes": 4142, "records": 38, "keys": 26}
    assert whole["after"]["keys"] == 26
    nothing = objects(capsys, "--before-after", SOURCE, "--group", "nobody")
    assert [each["before"]["records"] for each in nothing] == [0]


def test_before_and_after_of_what_is_broken(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    out, err = ran(capsys, "--before-after", str(broken(tmp_path)), code=1)
    assert out[-1].startswith("all: 38 records")
    assert len(err) == 1


@pytest.mark.slow
def test_out_and_in_again(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    out = lines(capsys, "export", SOURCE, str(tmp_path / "out"))
    assert out[-1] == "3 partitions, 40 records, 4,142 bytes"
    assert out[0] == f"{tmp_path / 'out' / '__consumer_offsets-0'}: 11 records in 3 batches, 801 bytes"
    out, err = ran(capsys, "import", str(tmp_path / "out"), str(tmp_path / "data"), *THREE)
    assert out == [f"{tmp_path / 'data'}: 3 of 3 partitions imported, 40 records of 7 groups"]
    assert err == [
        f"groupcoord offsets: topic __consumer_offsets was found in {tmp_path / 'data'}, and has the broker's defaults now"
    ]
    assert lines(capsys, "dump", str(tmp_path / "data")) == lines(capsys, "dump", SOURCE)
    assert lines(capsys, "compact", str(tmp_path / "data"), *THREE) == [
        "__consumer_offsets-0 is compacted up to offset 11: 7 of 11 records are kept, 527 bytes",
        "__consumer_offsets-1 is compacted up to offset 16: 13 of 16 records are kept, 1672 bytes",
        "__consumer_offsets-2 is compacted up to offset 13: 8 of 13 records are kept, 750 bytes",
        "3 partitions compacted: 28 of 40 records are left, 2,949 of 4,142 bytes",
    ]


def test_an_export_of_some_groups(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    topic_id = ("--topic-id", "AAAAAAAAAAAAAAAAAAAABQ")
    lines(capsys, "export", SOURCE, str(tmp_path / "out"), "--group", "simple", *topic_id)
    (line,) = lines(capsys, "dump", str(tmp_path / "out"))
    assert 'group="simple"' in line
    metadata = tmp_path / "out" / "__consumer_offsets-2" / "partition.metadata"
    assert metadata.read_text() == "version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAABQ"
    _, err = ran(capsys, "export", SOURCE, str(tmp_path / "nothing"), "--group", "nobody", "--group", "me", code=1)
    assert err == ["groupcoord offsets: nothing of nobody, me is there"]


def test_an_export_without_an_id(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    folder = Path(shutil.copytree(KAFKA_FILES / "4.3.1" / "__consumer_offsets-2", tmp_path / "__consumer_offsets-2"))
    (folder / "partition.metadata").unlink()
    _, err = ran(capsys, "export", str(folder), str(tmp_path / "out"))
    assert err == ["without the topic's id, which a broker asks for: --topic-id gives it"]


def test_an_export_and_an_import_of_what_is_broken(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    folders = str(broken(tmp_path))
    out, err = ran(capsys, "export", folders, str(tmp_path / "out"), code=1)
    assert (out[-1], len(err)) == ("3 partitions, 39 records, 4,064 bytes", 1)
    _, err = ran(capsys, "import", folders, str(tmp_path / "data"), *THREE, code=1)
    assert "at offset 4: the checksum" in err[0]
    assert any("is cut off at byte" in line for line in err)


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        ((), "a command is needed, or --before-after SOURCE; --help says more"),
        (
            ("dump", SOURCE, "--transactions", "--group", "g"),
            "--transactions is about no group, topic or kind of record",
        ),
        (
            ("dump", SOURCE, "--kind", "offset"),
            "'offset' is not a kind of record; there are LegacyOffsetCommit, OffsetCommit, ",
        ),
        (
            ("export", SOURCE, "out", "--topic-id", "x"),
            "'x' is not an id as Kafka writes them: 22 letters, digits, - and _",
        ),
        (("import", SOURCE, "data", "-c", "nonsense"), "nonsense: expected key=value"),
    ],
)
def test_wrong_questions(argv: tuple[str, ...], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    _, err = ran(capsys, *argv, code=2)
    assert told in err[-1]


def test_what_is_not_there(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    def told(*argv: str) -> str:
        out, (line,) = ran(capsys, *argv, code=1)
        assert out == []
        return line.removeprefix("groupcoord offsets: ")

    assert told("dump", "nowhere") == "there is no directory nowhere"
    assert told("dump", "127.0.0.1:1").startswith("127.0.0.1:1 cannot be reached")
    assert told("dump", SOURCE, "--partition", "7") == (
        "there is no partition 7 of __consumer_offsets in it, only 0 to 2"
    )
    assert told("dump", SOURCE, "--transactions").endswith(
        "is not a folder __transaction_state-N, and there is no such folder in it"
    )
    assert told("compact", str(tmp_path)).endswith("it has no groupcoord-metadata")
    (tmp_path / "groupcoord-metadata").write_text("")
    lock = DirectoryLock(tmp_path)
    assert "is in use" in told("compact", str(tmp_path))
    lock.release()


@pytest.mark.slow
def test_what_is_wrong_with_a_directory_is_told_before_it_is_compacted(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    ran(capsys, "import", SOURCE, str(tmp_path), *THREE)
    path = tmp_path / "__consumer_offsets-1" / log_of("4.3.1", 1).name
    path.write_bytes(path.read_bytes()[:-1])
    _, told = ran(capsys, "compact", str(tmp_path), *THREE)
    assert told[0].startswith(f"groupcoord offsets: {path} is cut off at byte ")


def test_a_log_that_cannot_be_compacted(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    ran(capsys, "import", SOURCE, str(tmp_path), *THREE)
    path = tmp_path / "__consumer_offsets-1" / log_of("4.3.1", 1).name
    data = path.read_bytes()
    size = read_header(data).size
    path.write_bytes(patched(data[:size], attributes=7) + data[size:])  # a compression that there is not
    out, _ = ran(capsys, "compact", str(tmp_path), *THREE, code=1)
    assert out[1].startswith("__consumer_offsets-1 cannot be compacted: ")
    assert out[-1] == "2 partitions compacted: 15 of 24 records are left, 1,277 of 2,190 bytes"

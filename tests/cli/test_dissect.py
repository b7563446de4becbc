"""``groupcoord dissect``: what it prints, and what it says of mistakes."""

import io
import json
import re
import shlex
import sys
from pathlib import Path

import pytest

from groupcoord.cli.main import main
from tests.dissect.packets import conversation, pcap, pcapng, request, response

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "dissect.md").read_text(encoding="utf-8")
CONSOLES = re.findall(r"```console\n\$ groupcoord (.*?)\n(.*?)```", PAGE, re.DOTALL)
KAFKA_FILES = Path("tests/offsets_log/kafka_files/4.3.1/__consumer_offsets-2")
NAME = "00000000000000000000"


def dissected(capsys: pytest.CaptureFixture[str], *argv: str, code: int = 0) -> tuple[str, str]:
    """What is on stdout and stderr."""
    assert main(["dissect", *argv]) == code
    captured = capsys.readouterr()
    return captured.out, captured.err


def test_nothing_on_the_page_is_left_out() -> None:
    assert len(CONSOLES) == PAGE.count("```console") > 3


@pytest.mark.slow
@pytest.mark.parametrize(("command", "shown"), CONSOLES)
def test_a_command_prints_what_is_shown(capsys: pytest.CaptureFixture[str], command: str, shown: str) -> None:
    code = main(shlex.split(command))
    captured = capsys.readouterr()
    assert captured.out.rstrip("\n") + "\n" + captured.err == shown
    assert code == bool(captured.err)


@pytest.mark.parametrize("form", ["{}", "0x{}", "with spaces", "in arguments"])
def test_digits_may_be_written_in_many_ways(capsys: pytest.CaptureFixture[str], form: str) -> None:
    digits = request(7).hex()
    match form:
        case "with spaces":
            argv = [" ".join(re.findall("..", digits))]
        case "in arguments":
            argv = re.findall("..", digits)
        case _:
            argv = [form.format(digits)]
    out, err = dissected(capsys, *argv)
    assert (out.splitlines()[0], err) == ("Heartbeat v0 request, 25 bytes", "")


def test_frames_without_their_length_and_several_frames_are_told_apart(capsys: pytest.CaptureFixture[str]) -> None:
    out, _ = dissected(capsys, request(7)[4:].hex())
    assert out.startswith("Heartbeat v0 request, 21 bytes\n    0-2  ")
    out, _ = dissected(capsys, (request(7) + request(8)).hex())
    assert [line for line in out.splitlines() if "Heartbeat v0" in line] == [
        "Heartbeat v0 request, 25 bytes",
        "byte 25: Heartbeat v0 request, 25 bytes",
    ]
    out, err = dissected(capsys, request(7)[:-1].hex(), code=1)
    assert out.startswith("Heartbeat v0 request, 24 bytes")
    assert err == (
        "groupcoord dissect: byte 22: the frame is cut: 21 bytes should follow its length, 20 are here; "
        "member_id: 1 bytes do not fit in the 0 that are left\n"
    )


@pytest.mark.parametrize("api", ["heartbeat", "12"])
def test_a_response_is_read_as_what_it_answers(capsys: pytest.CaptureFixture[str], api: str) -> None:
    out, _ = dissected(capsys, response(7, error_code=27).hex(), "--response", api, "0")
    assert out.splitlines()[0] == "Heartbeat v0 response, 10 bytes"
    assert "REBALANCE_IN_PROGRESS" in out


def test_stdin_is_read(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    for argv, data in (([], request(7).hex().encode()), (["-"], pcap(conversation((True, request(7)))))):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
        out, _ = dissected(capsys, *argv)
        assert "Heartbeat v0 request, 25 bytes" in out


def test_a_file_may_hold_digits(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "frame.hex"
    path.write_text(request(7).hex())
    assert dissected(capsys, str(path))[0].startswith("Heartbeat v0 request")


NO_DIGITS = "the argument is neither a capture, nor a file of a segment, nor hexadecimal digits"
SAID = [(True, request(1)), (False, response(1)), (True, request(2)), (False, response(2, error_code=27))]


@pytest.mark.parametrize("form", [pcap, pcapng])
def test_a_capture_shows_who_said_what_when(capsys: pytest.CaptureFixture[str], tmp_path: Path, form: object) -> None:
    path = tmp_path / "kafka.pcap"
    path.write_bytes((pcap if form is pcap else pcapng)(conversation(*SAID)))
    out, _ = dissected(capsys, str(path), "--port", "9092")
    assert [line for line in out.splitlines() if line and not line.startswith(" ")] == [
        "00:00:03.000000  10.0.0.1:40000 → 10.0.0.2:9092  Heartbeat v0 request, 25 bytes",
        "00:00:04.000000  10.0.0.2:9092 → 10.0.0.1:40000  Heartbeat v0 response, 10 bytes",
        "00:00:05.000000  10.0.0.1:40000 → 10.0.0.2:9092  Heartbeat v0 request, 25 bytes",
        "00:00:06.000000  10.0.0.2:9092 → 10.0.0.1:40000  Heartbeat v0 response, 10 bytes",
    ]
    lines = [json.loads(line) for line in dissected(capsys, str(path), "--format", "json")[0].splitlines()]
    assert (lines[0]["at_s"], lines[0]["connection"], lines[0]["client"], lines[0]["title"]) == (
        3.0,
        1,
        "10.0.0.1:40000",
        "Heartbeat v0 request",
    )


def test_a_cut_capture_shows_what_could_be_read(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "kafka.pcap"
    path.write_bytes(pcap(conversation(*SAID, (True, b"\x00\x00\x00\x02\x00\x63")))[:-1])
    size = path.stat().st_size
    out, err = dissected(capsys, str(path), code=1)
    assert out.count("Heartbeat v0") == 4
    assert out.endswith(f"the capture is cut or damaged at byte {size}: no packet is behind it\n")
    assert err == (
        "groupcoord dissect: 00:00:07.000000 10.0.0.1:40000 → 10.0.0.2:9092, request without a header, byte 4: the frame is "
        "cut: 2 bytes should follow its length, 1 are here; request_api_key: 2 bytes do not fit in the 1 that are left "
        "(1 more could not be read whole)\n"
    )
    last = dissected(capsys, str(path), "--format", "json", code=1)[0].splitlines()[-1]
    assert json.loads(last) == {
        "problem": {"reason": f"the capture is cut or damaged at byte {size}: no packet is behind it"}
    }


@pytest.mark.slow
def test_a_segment_is_read_by_the_names_of_its_folder_and_its_files(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    out, _ = dissected(capsys, str(KAFKA_FILES / f"{NAME}.log"))
    assert "OffsetCommitValue" in out
    copied = tmp_path / f"{NAME}.log"
    copied.write_bytes((KAFKA_FILES / copied.name).read_bytes())
    assert "OffsetCommitValue" not in dissected(capsys, str(copied))[0]
    assert dissected(capsys, str(copied), "--topic", "__consumer_offsets")[0] == out
    lines = dissected(capsys, str(copied), "--format", "json")[0].splitlines()
    assert [json.loads(line)["position"] for line in lines][:2] == [0, 104]
    assert dissected(capsys, str(KAFKA_FILES / f"{NAME}.timeindex"))[0].startswith(
        ".timeindex file of the segment at offset 0"
    )


@pytest.mark.parametrize(
    ("argv", "problem"),
    [
        (
            ["00zz"],
            NO_DIGITS + ": 'z', character 3, is not a hexadecimal digit",
        ),
        (["0"], "the argument: 1 hexadecimal digits are not whole bytes"),
        (["0x"], "the argument is empty"),
        (["nowhere.pcap"], "there is no file nowhere.pcap"),
        (["tests/proxy"], "tests/proxy is a folder: name one of the files in it"),
        (["tests/nowhere"], "there is no file tests/nowhere"),
        (["00", "--response", "Hearbeat", "0"], "--response: there is no API Hearbeat; did you mean Heartbeat?"),
        (
            ["00", "--response", "?", "0"],
            "--response: there is no API ?; it is a name of Kafka, such as JoinGroup, or a number",
        ),
        (["00", "--response", "Heartbeat", "four"], "--response: the version is a number, not four"),
    ],
)
def test_what_cannot_be_read_is_said(capsys: pytest.CaptureFixture[str], argv: list[str], problem: str) -> None:
    assert dissected(capsys, *argv, code=1) == ("", f"groupcoord dissect: {problem}\n")


def test_files_that_cannot_be_read_are_said(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    index = tmp_path / "strange.index"
    index.write_bytes(bytes(8))
    _, err = dissected(capsys, str(index), code=1)
    assert err.endswith("the name of an index is the first offset of its segment, as in 00000000000000000000.index\n")
    _, err = dissected(capsys, str(index), str(index), code=1)
    assert err == "groupcoord dissect: name one file at a time, not 2\n"
    capture = tmp_path / "strange.pcap"
    capture.write_bytes(pcap([], link=147))
    _, err = dissected(capsys, str(capture), code=1)
    assert "packets of link type 147 cannot be read" in err


def test_captures_need_dpkt(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "kafka.pcap"
    path.write_bytes(pcap([]))
    monkeypatch.setitem(sys.modules, "groupcoord.dissect.tcp_capture", None)
    _, err = dissected(capsys, str(path), code=1)
    assert err == "groupcoord dissect: to read captures needs dpkt: pip install 'groupcoord[dissect]'\n"


def test_garbage_is_one_sentence_with_its_place(capsys: pytest.CaptureFixture[str]) -> None:
    _, err = dissected(capsys, "0063 0001 00000007 ffff 11", code=1)
    assert err == "groupcoord dissect: byte 10: request_api_key: 99 is no API of Kafka 4.3\n"

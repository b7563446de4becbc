"""Log lines: for people as text, for programs as JSON."""

import io
import json
import logging
import os
import re
import threading
import uuid
from collections.abc import Callable, Mapping
from dataclasses import field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from groupcoord.core.effects import Call
from groupcoord.core.events import AdminAction, Cause, Event, Requested, TimerFired, event_class
from groupcoord.protocol.message_dataclass import message
from groupcoord.server import event_logging
from groupcoord.server.event_logging import (
    CHARACTERS_PER_INTERVAL,
    INTERVAL_SECONDS,
    LINES_PER_KIND,
    BackgroundLogHandler,
    LogRateLimiter,
)
from tests.server.support import HEARTBEAT

AT_MS = 1_700_000_000_123
PATIENCE_SECONDS = 60
REQUESTED = Requested("JoinGroup", 9, "consumer-1", "/127.0.0.1", 3, 14)


@event_class
class StateChanged(Event):
    group: str = "orders"
    origin: str = "Empty"
    target: str = "Stable"

    def text(self) -> str:
        return f"{self.group} {self.origin} → {self.target}"


@message
class Nested:
    member: str


ID = uuid.UUID(int=1)
NESTED = Nested(member="m")


@event_class
class Everything(Event):
    owners: Mapping[str, tuple[tuple[str, int], ...]] = field(
        default_factory=lambda: MappingProxyType({"m": (("orders", 0),)})
    )
    names: frozenset[str] = frozenset({"b", "a"})
    blob: bytes = b"\x00\xff"
    id: uuid.UUID = ID
    nested: Nested = NESTED
    other: Any = 1j

    def text(self) -> str:
        return "everything"


pytestmark = pytest.mark.usefixtures("logging_restored")


def lines(style: str, *events: Event, level: int = logging.INFO) -> list[str]:
    stream = io.StringIO()
    event_logging.set_up(style, level, stream)
    for event in events:
        event_logging.log_event(event)
    return stream.getvalue().splitlines()


@pytest.mark.parametrize(
    ("cause", "shown"),
    [
        (REQUESTED, "JoinGroup v9 from consumer-1"),
        (TimerFired("session", "orders", "m-1", 5), "session timer of m-1"),
        (AdminAction("a test"), "a test"),
    ],
)
def test_text_says_when_about_what_what_and_why(cause: Cause, shown: str) -> None:
    (line,) = lines("text", StateChanged(at_ms=AT_MS, cause=cause))
    assert line[2:13:3] == "::." + line[11]
    assert line[8:] == f".123  orders  Empty → Stable  ({shown})"


def test_text_of_an_event_that_is_about_no_group() -> None:
    (line,) = lines("text", Everything(at_ms=AT_MS, cause=REQUESTED))
    assert line[12:] == "  everything  (JoinGroup v9 from consumer-1)"


def test_one_event_is_one_line() -> None:
    (line,) = lines("text", StateChanged(at_ms=AT_MS, cause=REQUESTED, group="two\r\nlines"))
    assert "two\\r\\nlines" in line


def test_json_has_every_field_and_the_cause_as_an_object() -> None:
    (line,) = lines("json", StateChanged(at_ms=AT_MS, cause=REQUESTED))
    assert json.loads(line) == {
        "time": "2023-11-14T22:13:20.123+00:00",
        "level": "info",
        "text": "orders Empty → Stable",
        "event": "StateChanged",
        "at_ms": AT_MS,
        "cause": {
            "kind": "Requested",
            "api": "JoinGroup",
            "version": 9,
            "client_id": "consumer-1",
            "client_host": "/127.0.0.1",
            "connection_id": 3,
            "correlation_id": 14,
        },
        "group": "orders",
        "origin": "Empty",
        "target": "Stable",
    }


def test_json_of_what_json_has_no_word_for() -> None:
    (line,) = lines("json", Everything(at_ms=AT_MS, cause=AdminAction("a test")))
    shown = json.loads(line)
    assert shown["cause"] == {"kind": "AdminAction", "action": "a test"}
    assert shown["owners"] == {"m": [["orders", 0]]}
    assert shown["names"] == ["a", "b"]
    assert shown["blob"] == "00ff"
    assert shown["id"] == "00000000-0000-0000-0000-000000000001"
    assert shown["nested"] == {"member": "m"}
    assert shown["other"] == "1j"


def test_events_are_not_even_put_in_words_when_nobody_wants_them() -> None:
    class Unspeakable(StateChanged):
        def text(self) -> str:
            raise AssertionError

    assert lines("text", Unspeakable(at_ms=AT_MS, cause=REQUESTED), level=logging.WARNING) == []


def test_json_of_what_becomes_of_connections() -> None:
    stream = io.StringIO()
    event_logging.set_up("json", logging.DEBUG, stream)
    logger = logging.getLogger("groupcoord.server.serving_loop")
    call = Call(3, 14, HEARTBEAT, 4, None, "/127.0.0.1")
    logger.debug("asks", extra={"call": call, "peer": "127.0.0.1:5", "place": {"offset": 8}})
    shown = json.loads(stream.getvalue())
    assert (shown["level"], shown["text"], shown["peer"], shown["place"]) == (
        "debug",
        "asks",
        "127.0.0.1:5",
        {"offset": 8},
    )
    assert shown["call"]["api"] == "Heartbeat"
    assert shown["call"]["correlation_id"] == 14


@pytest.mark.parametrize("style", ["text", "json"])
def test_a_traceback_is_shown(style: str) -> None:
    stream = io.StringIO()
    event_logging.set_up(style, logging.INFO, stream)
    try:
        raise ZeroDivisionError("a bug")
    except ZeroDivisionError as error:
        logging.getLogger("groupcoord.server").error("it failed", exc_info=error)
    if style == "json":
        shown = json.loads(stream.getvalue())
        assert shown["level"] == "error"
        assert "ZeroDivisionError: a bug" in shown["traceback"]
    else:
        first, *rest = stream.getvalue().splitlines()
        assert first[12:] == "  ERROR  it failed"
        assert rest[-1] == "ZeroDivisionError: a bug"


def test_asyncios_complaints_go_the_same_way() -> None:
    stream = io.StringIO()
    event_logging.set_up("text", logging.INFO, stream)
    logging.getLogger("asyncio").warning("a slow callback")
    assert "WARNING  a slow callback" in stream.getvalue()


def test_a_log_that_nobody_reads_any_more_disturbs_nobody(capsys: pytest.CaptureFixture[str]) -> None:
    class Broken(io.StringIO):
        def write(self, _: str) -> int:
            raise BrokenPipeError

    event_logging.set_up("text", logging.INFO, Broken())
    event_logging.log_event(StateChanged(at_ms=AT_MS, cause=REQUESTED))
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(("level", "is_heard"), [(logging.INFO, True), (logging.WARNING, False)])
def test_events_that_the_level_does_not_let_through_are_not_heard(level: int, is_heard: bool) -> None:
    event_logging.set_up("text", level, io.StringIO())
    assert event_logging.is_heard() is is_heard


def test_without_any_stderr(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr", None)
    event_logging.set_up("text", logging.INFO)
    event_logging.log_event(StateChanged(at_ms=AT_MS, cause=REQUESTED))


def test_stderr_is_written_in_the_background(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with (tmp_path / "stderr").open("w") as stderr:
        monkeypatch.setattr("sys.stderr", stderr)
        event_logging.set_up("text", logging.INFO)
        event_logging.log_event(StateChanged(at_ms=AT_MS, cause=REQUESTED))
        (handler,) = logging.getLogger("groupcoord").handlers
        assert isinstance(handler, BackgroundLogHandler)
        handler.close()
        handler._writer.join(PATIENCE_SECONDS)
    assert "orders  Empty → Stable" in (tmp_path / "stderr").read_text(encoding="utf-8")


@pytest.mark.parametrize("limit", [None, LogRateLimiter])
def test_what_was_set_up_before_is_closed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, limit: type[LogRateLimiter] | None
) -> None:
    of_the_application = logging.FileHandler(tmp_path / "log")
    logging.getLogger("groupcoord").handlers = [of_the_application]
    before = set(threading.enumerate())
    with (tmp_path / "stderr").open("w") as stderr:
        monkeypatch.setattr("sys.stderr", stderr)
        for _ in range(5):
            event_logging.set_up("text", logging.INFO, limit=limit)
        (handler,) = logging.getLogger("groupcoord").handlers
        (thread,) = (each for each in threading.enumerate() if each not in before)
        handler.close()
        thread.join(PATIENCE_SECONDS)
    assert of_the_application.stream is not None
    of_the_application.close()


def test_a_log_is_replaced_though_its_stream_is_closed() -> None:
    stream = io.StringIO()
    event_logging.set_up("text", logging.INFO, stream, limit=LogRateLimiter)
    stream.close()
    event_logging.set_up("text", logging.INFO, io.StringIO())


def test_a_stderr_in_memory_is_written_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    event_logging.set_up("text", logging.INFO)
    event_logging.log_event(StateChanged(at_ms=AT_MS, cause=REQUESTED))
    assert "orders  Empty → Stable" in capsys.readouterr().err


def test_a_line_about_something_long_is_cut() -> None:
    many = {f"member-{number}": (("orders", number),) for number in range(10_000)}
    whole = Everything(at_ms=AT_MS, cause=REQUESTED, owners=MappingProxyType(many))
    (line,) = lines("json", whole)
    shown = json.loads(line)
    assert shown.keys() == {"time", "level", "text", "event", "cut"}
    assert shown["cut"] > event_logging.LONGEST_LINE
    long = StateChanged(at_ms=AT_MS, cause=REQUESTED, group="g", origin="a" * 3 * event_logging.LONGEST_LINE)
    (line,) = lines("text", long)
    assert re.search(r"a… \([\d,]+ characters more\)$", line)
    assert len(line) < event_logging.LONGEST_LINE + 40


@pytest.mark.parametrize("style", ["text", "json"])
def test_a_file_of_the_log_is_followed_by_the_next_one_and_the_oldest_goes(tmp_path: Path, style: str) -> None:
    event_logging.set_up(style, logging.INFO, file=event_logging.LogFile(tmp_path / "log", 1_000, 3))
    for number in range(100):
        event_logging.log_event(StateChanged(at_ms=AT_MS, cause=REQUESTED, target=f"state-{number:02}"))
    close_log()
    files = [tmp_path / name for name in ("log.2", "log.1", "log")]
    assert sorted(files) == sorted(tmp_path.iterdir())
    assert all(file.stat().st_size <= 1_000 for file in files)
    kept = re.findall(r"→ state-(\d\d)", "".join(file.read_text(encoding="utf-8") for file in files))
    assert [int(number) for number in kept] == list(range(100 - len(kept), 100))


@pytest.mark.untraced
@pytest.mark.slow
def test_a_file_that_stands_still_stops_nobody(tmp_path: Path) -> None:
    pipe = tmp_path / "log"
    os.mkfifo(pipe)
    with os.fdopen(os.open(pipe, os.O_RDONLY | os.O_NONBLOCK), "rb") as reader:
        event_logging.set_up("text", logging.INFO, file=event_logging.LogFile(pipe, 1_000, 3))
        for number in range(50_000):  # more than the pipe and what may wait hold together
            event_logging.log_event(StateChanged(at_ms=AT_MS, cause=REQUESTED, target=f"state-{number}"))
        os.set_blocking(reader.fileno(), True)
        read = iter(reader.readline, b"")
        assert b"state-0 " in next(read)
        assert any(b"lines of the log were dropped: they could not be written in time" in line for line in read)
        close_log()


def close_log() -> None:
    """Close it, and wait until all is written, also on a machine that stalls."""
    (handler,) = logging.getLogger("groupcoord").handlers
    assert isinstance(handler, BackgroundLogHandler)
    handler.close()
    handler._writer.join(PATIENCE_SECONDS)
    assert not handler._writer.is_alive()


def test_a_file_that_cannot_be_written_is_said_at_once(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError):
        event_logging.set_up("text", logging.INFO, file=event_logging.LogFile(tmp_path, 1_000, 3))


logger = logging.getLogger("groupcoord.server.somewhere")


@event_class
class Joined(Event):
    group: str
    member: str = "m"

    def text(self) -> str:
        return f"{self.member} joins"


@event_class
class RequestRefused(Joined):
    error: str

    def text(self) -> str:
        return f"refused with {self.error}"


@event_class
class Unspeakable(Joined):
    def text(self) -> str:
        raise AssertionError


WISH = AdminAction("a test")


class Log:
    """A folded log in memory, and its clock."""

    def __init__(self, style: str = "text") -> None:
        self.now = 1_000.0
        self.stream = io.StringIO()
        self.due: list[tuple[float, Callable[[], None]]] = []
        made = event_logging.set_up(
            style, logging.INFO, self.stream, limit=lambda handler: LogRateLimiter(handler, now=lambda: self.now)
        )
        assert made is not None
        self.folding = made
        self.folding.later = lambda seconds, call: self.due.append((seconds, call))

    def joined(self, count: int, group: str = "orders") -> None:
        for number in range(count):
            event_logging.log_event(Joined(at_ms=0, cause=WISH, group=group, member=f"m-{number}"))

    def refused(self, count: int, error: str, group: str = "orders") -> None:
        for _ in range(count):
            event_logging.log_event(RequestRefused(at_ms=0, cause=WISH, group=group, error=error))

    @property
    def lines(self) -> list[str]:
        """Without the time."""
        return [line[14:] for line in self.stream.getvalue().splitlines()]

    def told(self) -> list[str]:
        """The lines about what was folded."""
        return [line for line in self.lines if "… " in line]


pytestmark = pytest.mark.usefixtures("logging_restored")


def test_a_few_lines_a_second_are_written_as_they_are() -> None:
    seen = Log()
    for _ in range(20):
        seen.joined(9)
        seen.refused(9, "UNKNOWN_MEMBER_ID")
        logger.info("closing %s", "a")
        seen.now += 1
    seen.folding.close()
    assert len(seen.lines) == 20 * 19
    assert seen.told() == []


def test_of_lines_of_one_kind_the_first_are_written_and_the_rest_is_told_once() -> None:
    seen = Log()
    seen.joined(LINES_PER_KIND + 9_999)
    assert len(seen.lines) == LINES_PER_KIND
    seen.now += INTERVAL_SECONDS - 0.001
    seen.joined(1)
    seen.now += 0.001
    seen.joined(1)
    assert seen.lines[LINES_PER_KIND:] == [
        "… 10,000 more in 10 s: Joined of orders",
        "orders  m-0 joins  (a test)",
    ]


def test_what_is_folded_is_not_even_put_in_words() -> None:
    seen = Log()
    seen.folding._seen["Unspeakable", "orders"] = LINES_PER_KIND
    event_logging.log_event(Unspeakable(at_ms=0, cause=WISH, group="orders"))
    assert seen.lines == []


def test_another_group_and_another_error_are_of_another_kind() -> None:
    seen = Log()
    seen.refused(LINES_PER_KIND + 2, "UNKNOWN_MEMBER_ID")
    seen.refused(LINES_PER_KIND + 3, "ILLEGAL_GENERATION")
    seen.refused(1, "ILLEGAL_GENERATION", "payments")
    assert seen.lines[-1] == "payments  refused with ILLEGAL_GENERATION  (a test)"
    seen.folding.flush()
    assert seen.told() == [
        "… 2 more in 1 s: RequestRefused UNKNOWN_MEMBER_ID of orders",
        "… 3 more in 1 s: RequestRefused ILLEGAL_GENERATION of orders",
    ]


@pytest.mark.slow
def test_where_every_line_is_of_another_group_the_room_runs_out() -> None:
    seen = Log()
    for number in range(10_000):
        seen.joined(1, f"group-{number}")
    logger.info("serving")
    seen.folding.close()
    *written, serving, told = seen.lines
    assert CHARACTERS_PER_INTERVAL <= len(seen.stream.getvalue()) < CHARACTERS_PER_INTERVAL + 300
    assert serving == "serving"  # other lines have room of their own
    assert told == f"… {10_000 - len(written):,} more in 1 s: Joined"


def test_an_interval_that_ends_with_nothing_more_to_log_is_told_by_a_timer_once_it_is_over() -> None:
    seen = Log()
    seen.now += 3
    seen.joined(LINES_PER_KIND + 5)
    seen.refused(LINES_PER_KIND + 5, "UNKNOWN_MEMBER_ID")
    ((seconds, call),) = seen.due
    assert seconds == INTERVAL_SECONDS - 3
    call()
    assert len(seen.told()) == 2
    seen.folding.flush()
    assert len(seen.told()) == 2


def test_without_a_timer_the_next_line_or_the_end_tells_it() -> None:
    seen = Log()
    seen.folding.later = None
    seen.joined(LINES_PER_KIND + 5)
    seen.folding.close()
    assert seen.told() == ["… 5 more in 1 s: Joined of orders"]


def test_other_lines_are_of_a_kind_by_their_format_and_keep_their_level() -> None:
    seen = Log()
    for number in range(LINES_PER_KIND + 7):
        logger.warning("closing %s: idle for %g s", number, 1.5)
    seen.folding.flush()
    assert seen.told() == ["WARNING  … 7 more in 1 s: closing …: idle for … s"]


def test_of_an_error_with_a_traceback_there_is_one_from_each_place() -> None:
    seen = Log()

    def divide() -> float:
        return 1 / 0

    def look_up() -> str:
        return dict[str, str]()["a"]

    for number in range(1_000):
        for fails in (divide, look_up):
            try:
                fails()
            except (ZeroDivisionError, KeyError) as error:
                logger.error("unexpected error in %s", number, exc_info=error)
    logger.error("unexpected error in %s", "here", exc_info=ValueError("never raised"))
    seen.folding.flush()
    assert seen.stream.getvalue().count("Traceback") == 2
    (told,) = seen.told()
    assert told == "ERROR  … 1,998 more in 1 s: unexpected error in …"


def test_the_place_of_errors_that_are_all_of_one_place_is_told() -> None:
    seen = Log()
    for _ in range(3):
        logger.error("unexpected error", exc_info=ValueError("never raised"))
    seen.folding.flush()
    assert seen.told() == ["ERROR  … 2 more in 1 s: unexpected error of ValueError"]


def test_json_says_of_folded_lines_what_they_were_and_how_many() -> None:
    seen = Log("json")
    seen.refused(LINES_PER_KIND + 7, "UNKNOWN_MEMBER_ID")
    seen.folding.flush()
    last = json.loads(seen.stream.getvalue().splitlines()[-1])
    del last["time"]
    assert last == {
        "level": "info",
        "text": "… 7 more in 1 s: RequestRefused UNKNOWN_MEMBER_ID of orders",
        "event": "SuppressedLines",
        "kind": "RequestRefused UNKNOWN_MEMBER_ID",
        "about": "orders",
        "lines": 7,
        "seconds": 1,
    }


@pytest.mark.slow
def test_a_minute_of_a_client_in_a_loop_is_bounded_and_every_line_of_it_accounted_for() -> None:
    seen = Log("json")
    for number in range(20_000):
        seen.now += 0.003
        seen.refused(1, "UNKNOWN_MEMBER_ID", f"group-{number}")
    seen.folding.flush()
    lines = [json.loads(line) for line in seen.stream.getvalue().splitlines()]
    told = sum(line["lines"] for line in lines if line["event"] == "SuppressedLines")
    assert told + sum(line["event"] == "RequestRefused" for line in lines) == 20_000
    assert len(seen.stream.getvalue()) < 6 * 1.01 * CHARACTERS_PER_INTERVAL

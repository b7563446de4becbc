"""What repeats itself in the log is counted, and what there is too much of."""

import io
import json
import logging
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from groupcoord.core.events import AdminAction, Event
from groupcoord.server import folding, log
from groupcoord.server.folding import CHARACTERS, INTERVAL_SECONDS, LINES_OF_A_KIND, Folding

logger = logging.getLogger("groupcoord.server.somewhere")


@dataclass(frozen=True, slots=True, kw_only=True)
class Joined(Event):
    group: str
    member: str = "m"

    def text(self) -> str:
        return f"{self.member} joins"


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestRefused(Joined):
    error: str

    def text(self) -> str:
        return f"refused with {self.error}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Unspeakable(Joined):
    def text(self) -> str:
        raise AssertionError


CAUSE = AdminAction("a test")


class Log:
    """A folded log in memory, and its clock."""

    def __init__(self, style: str = "text") -> None:
        self.now = 1_000.0
        self.stream = io.StringIO()
        self.due: list[tuple[float, Callable[[], None]]] = []
        made = log.set_up(style, logging.INFO, self.stream, fold=lambda handler: Folding(handler, now=lambda: self.now))
        assert made is not None
        self.folding = made
        self.folding.later = lambda seconds, call: self.due.append((seconds, call))

    def joined(self, count: int, group: str = "orders") -> None:
        for number in range(count):
            log.log_event(Joined(at_ms=0, cause=CAUSE, group=group, member=f"m-{number}"))

    def refused(self, count: int, error: str, group: str = "orders") -> None:
        for _ in range(count):
            log.log_event(RequestRefused(at_ms=0, cause=CAUSE, group=group, error=error))

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
    seen.joined(LINES_OF_A_KIND + 9_999)
    assert len(seen.lines) == LINES_OF_A_KIND
    seen.now += INTERVAL_SECONDS - 0.001
    seen.joined(1)
    seen.now += 0.001
    seen.joined(1)
    assert seen.lines[LINES_OF_A_KIND:] == [
        "… 10,000 more in 10 s: Joined of orders",
        "orders  m-0 joins  (a test)",
    ]


def test_what_is_folded_is_not_even_put_in_words() -> None:
    seen = Log()
    seen.folding._seen["Unspeakable", "orders"] = LINES_OF_A_KIND
    log.log_event(Unspeakable(at_ms=0, cause=CAUSE, group="orders"))
    assert seen.lines == []


def test_another_group_and_another_error_are_of_another_kind() -> None:
    seen = Log()
    seen.refused(LINES_OF_A_KIND + 2, "UNKNOWN_MEMBER_ID")
    seen.refused(LINES_OF_A_KIND + 3, "ILLEGAL_GENERATION")
    seen.refused(1, "ILLEGAL_GENERATION", "payments")
    assert seen.lines[-1] == "payments  refused with ILLEGAL_GENERATION  (a test)"
    seen.folding.flush()
    assert seen.told() == [
        "… 2 more in 1 s: RequestRefused UNKNOWN_MEMBER_ID of orders",
        "… 3 more in 1 s: RequestRefused ILLEGAL_GENERATION of orders",
    ]


def test_where_every_line_is_of_another_group_the_room_runs_out() -> None:
    seen = Log()
    for number in range(10_000):
        seen.joined(1, f"group-{number}")
    logger.info("serving")
    seen.folding.close()
    *written, serving, told = seen.lines
    assert CHARACTERS <= len(seen.stream.getvalue()) < CHARACTERS + 300
    assert serving == "serving"  # other lines have room of their own
    assert told == f"… {10_000 - len(written):,} more in 1 s: Joined"


def test_an_interval_that_ends_with_nothing_more_to_log_is_told_by_a_timer_once_it_is_over() -> None:
    seen = Log()
    seen.now += 3
    seen.joined(LINES_OF_A_KIND + 5)
    seen.refused(LINES_OF_A_KIND + 5, "UNKNOWN_MEMBER_ID")
    ((seconds, call),) = seen.due
    assert seconds == INTERVAL_SECONDS - 3
    call()
    assert len(seen.told()) == 2
    seen.folding.flush()
    assert len(seen.told()) == 2


def test_without_a_timer_the_next_line_or_the_end_tells_it() -> None:
    seen = Log()
    seen.folding.later = None
    seen.joined(LINES_OF_A_KIND + 5)
    seen.folding.close()
    assert seen.told() == ["… 5 more in 1 s: Joined of orders"]


def test_other_lines_are_of_a_kind_by_their_format_and_keep_their_level() -> None:
    seen = Log()
    for number in range(LINES_OF_A_KIND + 7):
        logger.warning("closing %s: nothing moved for %g s", number, 1.5)
    seen.folding.flush()
    assert seen.told() == ["WARNING  … 7 more in 1 s: closing …: nothing moved for … s"]


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
    seen.refused(LINES_OF_A_KIND + 7, "UNKNOWN_MEMBER_ID")
    seen.folding.flush()
    last = json.loads(seen.stream.getvalue().splitlines()[-1])
    del last["time"]
    assert last == {
        "level": "info",
        "text": "… 7 more in 1 s: RequestRefused UNKNOWN_MEMBER_ID of orders",
        "event": "Folded",
        "kind": "RequestRefused UNKNOWN_MEMBER_ID",
        "about": "orders",
        "lines": 7,
        "seconds": 1,
    }


def test_a_minute_of_a_client_in_a_loop_is_bounded_and_every_line_of_it_accounted_for() -> None:
    seen = Log("json")
    for number in range(20_000):
        seen.now += 0.003
        seen.refused(1, "UNKNOWN_MEMBER_ID", f"group-{number}")
    seen.folding.flush()
    lines = [json.loads(line) for line in seen.stream.getvalue().splitlines()]
    told = sum(line["lines"] for line in lines if line["event"] == "Folded")
    assert told + sum(line["event"] == "RequestRefused" for line in lines) == 20_000
    assert len(seen.stream.getvalue()) < 6 * 1.01 * folding.CHARACTERS

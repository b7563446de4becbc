import subprocess
import sys
from contextlib import suppress

import pytest

from groupcoord.cli.demo.clients.consumer_common import (
    JOIN,
    LEAVE,
    Bookkeeping,
    ReadRecord,
    Settings,
    parse_report,
    settings_from,
)

SETTINGS = Settings(
    bootstrap="127.0.0.1:9092",
    group="billing",
    topic="orders",
    client_id="confluent",
    protocols=("roundrobin", "range"),
    session_ms=10_000,
    heartbeat_ms=250,
    poll_ms=100,
    commit_every_ms=1_000,
)


def taken(books: Bookkeeping) -> dict[int, int]:
    """What is due to be committed, left uncommitted."""
    with suppress(InterruptedError), books.committing() as offsets:
        raise InterruptedError
    return offsets


@pytest.fixture
def books() -> Bookkeeping:
    made = Bookkeeping(commit_every_ms=0)
    made.assigned([0, 1, 3])
    return made


def test_settings_survive_the_command_line() -> None:
    assert settings_from(SETTINGS.arguments()) == SETTINGS


def test_what_is_read_is_reported_before_it_can_be_committed(
    books: Bookkeeping, capsys: pytest.CaptureFixture[str]
) -> None:
    records = [ReadRecord(0, 7, "ada"), ReadRecord(3, 1, "bob")]
    books.read(records)
    assert parse_report(capsys.readouterr().out.encode()) == records
    assert taken(books) == {0: 8, 3: 2}


def test_reading_nothing_is_not_reported(books: Bookkeeping, capsys: pytest.CaptureFixture[str]) -> None:
    books.read([])
    assert capsys.readouterr().out == ""
    assert not books.commit_is_due


def test_what_is_committed_is_not_due_any_more(books: Bookkeeping) -> None:
    books.read([ReadRecord(0, 7, "ada")])
    assert books.commit_is_due
    with books.committing() as offsets:
        assert offsets == {0: 8}
    assert not books.commit_is_due


def test_a_commit_that_failed_is_due_again_unless_more_was_read_since(books: Bookkeeping) -> None:
    books.read([ReadRecord(0, 7, "ada"), ReadRecord(1, 0, "bob")])
    with suppress(ConnectionError), books.committing():
        books.read([ReadRecord(0, 8, "ada")])
        raise ConnectionError
    assert taken(books) == {0: 9, 1: 1}


def test_offsets_are_forgotten_when_partitions_are_handed_out_anew(books: Bookkeeping) -> None:
    books.read([ReadRecord(0, 7, "ada")])
    books.assigned([0, 1])
    assert taken(books) == {}


def test_what_is_not_owned_is_reported_and_never_committed(
    books: Bookkeeping, capsys: pytest.CaptureFixture[str]
) -> None:
    books.read([ReadRecord(2, 7, "ada"), ReadRecord(3, 1, "bob")])
    assert "ada" in capsys.readouterr().out
    assert taken(books) == {3: 2}


def test_a_commit_that_failed_is_not_due_again_when_partitions_were_handed_out_anew(books: Bookkeeping) -> None:
    books.read([ReadRecord(0, 7, "ada")])
    with suppress(ConnectionError), books.committing():
        books.assigned([0, 1, 3])
        raise ConnectionError
    assert taken(books) == {}


def test_a_commit_is_not_due_before_its_time() -> None:
    books = Bookkeeping(commit_every_ms=1_000_000)
    books.assigned([0])
    books.read([ReadRecord(0, 7, "ada")])
    assert not books.commit_is_due


PROGRAM = """
import threading
from groupcoord.cli.demo.clients.consumer_common import Parent
parent = Parent()
print("ready", flush=True)
parent.wait_until_wanted()
print("joins", flush=True)
while parent.should_run:
    pass
print("leaves", flush=True)
threading.Event().wait()
"""


@pytest.mark.slow
def test_the_parent_says_when_to_join_and_leave_and_its_end_is_the_end() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        try:
            for word, answer in ((None, "ready"), (JOIN, "joins"), (LEAVE, "leaves")):
                if word:
                    child.stdin.write(f"{word}\n")
                assert child.stdout.readline().strip() == answer
            child.stdin.close()
            assert child.wait(timeout=10) == 1
        finally:
            child.kill()

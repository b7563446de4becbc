"""The lesson with a zombie: how its events are told, what it judges, and the lesson itself with its real clients."""

import json
import subprocess
import sys
from typing import Any

import pytest

from groupcoord.cli.demo.clients.exactly_once_worker import WROTE, report
from groupcoord.cli.demo.zombie import ORDERS, TransactionNarrator, invoices_table, wrong_invoices
from groupcoord.cli.main import main
from groupcoord.coordinator.events import Departure, GroupCreated, MemberJoined, MemberRemoved
from groupcoord.coordinator.transaction.events import (
    AbortReason,
    MarkerWritten,
    TransactionChanged,
    TransactionRefused,
    TransactionsLoaded,
)
from groupcoord.core.events import Cause, Event
from tests.cli.demo.support import GROUP, Screen, asked, fired, shown

PATIENCE_S = 90
ID = "billing-1"
INVOICES = [order.replace("order", "invoice") for order in ORDERS]


def changed(before: str, after: str, *partitions: str, cause: Cause | None = None, **more: Any) -> TransactionChanged:
    """A state of the transactional id was stored."""
    return TransactionChanged(
        at_ms=1_000,
        cause=cause or asked("EndTxn", "worker-1"),
        transactional_id=ID,
        before=before,
        after=after,
        producer_id=4,
        producer_epoch=2,
        partitions=tuple((name, 0) for name in partitions),
        **more,
    )


def marker(*, committed: bool) -> MarkerWritten:
    return MarkerWritten(
        at_ms=1_000,
        cause=asked("EndTxn", "worker-1"),
        transactional_id=ID,
        topic="invoices",
        partition=0,
        committed=committed,
    )


def refused(error: str) -> TransactionRefused:
    return TransactionRefused(
        at_ms=1_000, cause=asked("EndTxn", "worker-1"), transactional_id=ID, api="EndTxn", error=error, why="too old"
    )


def told(narrator: TransactionNarrator, screen: Screen, event: Event) -> str:
    """What is written of ``event``, without explanations; what is told says so, and what is not does not."""
    before = len(screen.text)
    is_told = narrator.tell(event)
    written = screen.text[before:]
    assert is_told == bool(written)
    return " ".join(line.strip() for line in written.splitlines() if "│" not in line)


@pytest.fixture
def screen() -> Screen:
    return Screen()


@pytest.fixture
def narrator(screen: Screen) -> TransactionNarrator:
    return TransactionNarrator(screen.output)


def test_the_first_transaction_is_told_in_full_and_of_others_how_they_end(
    narrator: TransactionNarrator, screen: Screen
) -> None:
    first = [
        told(narrator, screen, changed("Empty", "Empty")),
        told(narrator, screen, changed("Empty", "Ongoing", "invoices")),
        told(narrator, screen, changed("Ongoing", "PrepareCommit", "invoices", "orders")),
        told(narrator, screen, marker(committed=True)),
        told(narrator, screen, changed("PrepareCommit", "CompleteCommit")),
    ]
    committed = "What the transaction wrote there is committed: readers may have it"
    prepared = "Stored as PrepareCommit: from here on invoices-0 and orders-0 will be told, whatever happens"
    assert first == [
        "1.00  worker-1      is initialised as billing-1: producer 4, epoch 2",
        "1.00  worker-1      has a transaction with invoices-0",
        f"1.00  worker-1      wants to commit. {prepared}",
        f"1.00  coordinator   writes a marker into invoices-0. {committed}",
        "",
    ]
    assert told(narrator, screen, changed("CompleteCommit", "Ongoing", "invoices")) == ""
    assert told(narrator, screen, changed("Ongoing", "PrepareCommit", "invoices")).endswith("that its order was read")
    assert told(narrator, screen, marker(committed=True)) == ""
    for word in ("transactional id", "epoch", "marker", "PrepareCommit"):
        assert screen.text.count(f"│ {word}: ") == 1


def test_an_abort_is_told_with_its_reason_and_its_markers(narrator: TransactionNarrator, screen: Screen) -> None:
    event = changed("Ongoing", "PrepareAbort", "invoices", reason=AbortReason.FENCED)
    assert told(narrator, screen, event).endswith(
        "aborts the transaction of billing-1, because another producer was initialised with its transactional id"
    )
    assert "is aborted: nobody" in told(narrator, screen, marker(committed=False))


def test_a_refusal_is_told_unless_the_library_just_asks_again(narrator: TransactionNarrator, screen: Screen) -> None:
    assert told(narrator, screen, refused("CONCURRENT_TRANSACTIONS")) == ""
    assert told(narrator, screen, refused("PRODUCER_FENCED")).endswith(
        "coordinator   refuses EndTxn of worker-1 with PRODUCER_FENCED: too old"
    )
    assert "│ fenced: " in screen.text


def test_of_the_group_it_is_told_who_comes_and_who_is_missing(narrator: TransactionNarrator, screen: Screen) -> None:
    came = MemberJoined(
        at_ms=1_000,
        cause=asked("JoinGroup", "worker-1"),
        group=GROUP,
        member="worker-1-123",
        instance_id=None,
        client_id="worker-1",
        client_host="/127.0.0.1",
        protocols=("range",),
        session_timeout_ms=2_500,
        rebalance_timeout_ms=300_000,
        reason="",
    )
    assert told(narrator, screen, came) == "1.00  worker-1      joins the group billing"

    def gone(cause: Cause, how: Departure, timeout_ms: int | None) -> MemberRemoved:
        member = "worker-1-123"
        return MemberRemoved(
            at_ms=1_000, cause=cause, group=GROUP, member=member, reason="silence", how=how, timeout_ms=timeout_ms
        )

    assert told(narrator, screen, gone(asked("LeaveGroup", "worker-1"), Departure.LEFT, None)) == ""
    lost = gone(fired("session", "worker-1-123", 1_000), Departure.SESSION_OVER, 2_500)
    assert told(narrator, screen, lost) == "1.00  coordinator   takes worker-1 out of the group: silence"


def test_what_is_not_part_of_the_story_is_not_told(narrator: TransactionNarrator, screen: Screen) -> None:
    cause = asked("JoinGroup", "worker-1")
    assert told(narrator, screen, GroupCreated(at_ms=1, cause=cause, group=GROUP, simple=False)) == ""
    loaded = TransactionsLoaded(at_ms=1, cause=cause, partition=0, records=0, transactional_ids=0, took_ms=0)
    assert told(narrator, screen, loaded) == ""


def test_each_order_must_have_one_invoice() -> None:
    assert wrong_invoices(INVOICES) == []
    assert wrong_invoices([*INVOICES[1:], INVOICES[3]]) == ["invoice 1 is read 0 times", "invoice 4 is read 2 times"]


def test_the_table_says_what_is_in_the_log_and_what_is_read() -> None:
    assert shown(invoices_table(["invoice 1", "invoice 2", "invoice 2"], ["invoice 1", "invoice 2"])) == [
        "invoice     in the log   read committed",
        "───────────────────────────────────────",
        "invoice 1            1                1",
        "invoice 2            2                1",
    ]


def test_a_worker_reports_in_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    report(WROTE, "order 1")
    assert json.loads(capsys.readouterr().out) == [WROTE, "order 1"]


def test_a_lesson_that_there_is_not_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["demo", "vampire"])
    assert "invalid choice: 'vampire'" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.clients
def test_the_lesson_ends_well() -> None:
    command = [sys.executable, "-m", "groupcoord.cli.main", "demo", "zombie", "--fast", f"--time-limit={PATIENCE_S}"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=2 * PATIENCE_S, check=False)
    assert (ended.returncode, ended.stderr) == (0, ""), ended.stdout
    heads = [line for line in ended.stdout.splitlines() if line.startswith("━━")]
    assert [head.split()[1] for head in heads] == ["1", "2", "3", "4", "5"]
    for scene in (
        "worker-1      is initialised as billing-1: producer 0, epoch 0",
        "worker-1      has written the invoice of order 3, not committed it, and is stopped",
        "sees invoices-0 end at offset 5; its last stable offset is 4",
        "coordinator   aborts the transaction of billing-1",
        "coordinator   takes worker-1 out of the group",
        "coordinator   refuses EndTxn of worker-1 with PRODUCER_FENCED",
        "worker-1      is told by its library that it is fenced",
        "invoice 3            2                1",
        "✓ Each of 6 orders has one invoice",
    ):
        assert scene in ended.stdout, scene


@pytest.mark.slow
@pytest.mark.clients
def test_a_lesson_that_takes_too_long_says_what_it_waited_for() -> None:
    command = [sys.executable, "-m", "groupcoord.cli.main", "demo", "zombie", "--fast", "--time-limit=0.01"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=2 * PATIENCE_S, check=False)
    assert ended.returncode == 1
    assert "✗ the time limit of 0.01 s was over, waiting for " in ended.stdout

"""What changed nothing is one line for each client, in the text of a trace as in its diagram."""

import pytest

from groupcoord.protocol.apis.fetch import FetchPartition, FetchRequest, FetchTopic
from groupcoord.testing import Cluster
from groupcoord.testing.trace import TimerExpired
from tests.testing.trace.stage import Stage


def told(stage: Stage, *, links: bool = False) -> list[str]:
    return stage.trace.text(fold=True, links=links).splitlines()


def test_heartbeats_that_were_fine_are_one_line_for_each_member() -> None:
    stage = Stage()
    a, b = stage.stable("a", "b")
    start = len(stage.trace) + 1
    for _ in range(3):
        stage.advance(3_000)
        a.heartbeat()
        b.heartbeat()
    assert told(stage, links=True)[-2:] == [
        f"#{start}–#{start + 8} @15000 3 times Heartbeat of a, all fine, 9.0 s to 15.0 s",
        f"#{start + 2}–#{start + 10} @15000 3 times Heartbeat of b, all fine, 9.0 s to 15.0 s",
    ]
    assert told(stage)[-1] == "@15000 3 times Heartbeat of b, all fine, 9.0 s to 15.0 s"


def test_one_alone_is_a_line_too_and_one_that_says_something_is_not_folded() -> None:
    stage = Stage()
    a, b = stage.stable("a", "b")
    a.heartbeat()
    number = len(stage.trace) - 1
    b.leave()
    a.heartbeat()
    text = told(stage, links=True)
    assert f"#{number} @6000 Heartbeat of a, fine" in text
    assert text[-1].endswith(
        "is answered Heartbeat: REBALANCE_IN_PROGRESS, member a, generation 1  ← #" + str(len(stage.trace) - 1)
    )


def test_the_limit_counts_lines() -> None:
    stage = Stage()
    (a,) = stage.stable("a")
    for _ in range(10):
        a.heartbeat()
    whole = told(stage)
    assert stage.trace.text(fold=True, links=False, limit=2).splitlines() == [
        f"({len(whole) - 2} lines before)",
        *whole[-2:],
    ]


def test_without_short_names_a_line_has_the_member_id() -> None:
    stage = Stage()
    (a,) = stage.stable("a")
    a.heartbeat()
    assert stage.trace.text(fold=True, short=False).endswith(f"Heartbeat of {a.member_id}, fine")


def test_real_milliseconds_are_those_of_the_last_request() -> None:
    stage = Stage()
    (a,) = stage.stable("a")
    a.heartbeat()
    a.heartbeat()
    *_, request, _ = stage.trace
    assert stage.trace.text(fold=True, real=True).endswith(
        f"@{request.since_start_ms} ({request.real_ms} ms) 2 times Heartbeat of a, all fine"
    )


def fetch(max_wait_ms: int) -> FetchRequest:
    topic = FetchTopic(
        topic="orders", partitions=(FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1_000),)
    )
    return FetchRequest(max_wait_ms=max_wait_ms, min_bytes=1, max_bytes=1_000, topics=(topic,))


@pytest.mark.asyncio
async def test_fetches_that_find_nothing_are_folded_with_what_ended_them() -> None:
    async with Cluster(topics={"orders": 1}, clock="manual") as kafka:
        reader = kafka._connect("reader")
        answers: list[object] = []
        for _ in range(2):
            reader.ask(fetch(max_wait_ms=500), answers.append, version=12)
            await kafka.clock.advance(0.5)
        assert len(kafka.trace.of(TimerExpired, kind="fetch")) == 2
        assert kafka.trace.text(fold=True, links=False) == "@1000 2 times Fetch of reader, nothing new, 0.0 s to 0.5 s"
        assert "c1->>K: 2 times Fetch of reader, nothing new, 0.0 s to 0.5 s" in kafka.trace.mermaid()
        reader.ask(fetch(max_wait_ms=500), answers.append, version=12)
        await kafka.produce("orders", b"an espresso")
        assert len(answers) == 3
        assert kafka.trace.text(fold=True, links=False).splitlines()[1:] == [
            "@1000 reader asks Fetch v12: partitions [orders-0@0], max_wait_ms 500",
            "@1000 cluster asks Produce v12: partitions [orders-0], acks -1",
            "@1000 cluster is answered Produce: offsets [orders-0@0]",
            "@1000 reader is answered Fetch: bytes 79",
        ]


@pytest.mark.asyncio
async def test_commits_of_what_was_committed_are_folded_until_something_else_happens_to_the_group() -> None:
    async with Cluster(topics={"orders": 1}, clock="manual") as kafka:
        a = kafka.manual_member("app", "orders", client_id="a")
        await a.rejoin()
        begun = kafka.trace.last_seq
        for offset in (5, 5, 5, 6, 6):
            await a.commit({("orders", 0): offset})
        asked = "@0 app a asks OffsetCommit v9: member a, generation 1, offsets [orders-0@{}]"
        told = "@0 app a commits orders-0 at {}"
        answered = "@0 app a is answered OffsetCommit: member a, generation 1"
        text = kafka.trace.text(since=kafka.trace[begun + 1], fold=True, links=False).splitlines()
        assert text == [
            *(asked.format(5), told.format(5), answered, "@0 2 times OffsetCommit of a, nothing new"),
            *(asked.format(6), told.format(6), answered, "@0 OffsetCommit of a, nothing new"),
        ]
        await kafka.group("app").force_rebalance()
        await a.commit({("orders", 0): 6})
        kafka.faults.when("OffsetCommit").refuse_answer("COORDINATOR_NOT_AVAILABLE")
        await a.commit({("orders", 0): 6})
        text = kafka.trace.text(since=kafka.trace[begun + 1], fold=True, links=False).splitlines()
        assert text[-6:-4] == [told.format(6), answered]
        assert text[-1].startswith("@0 app a is answered OffsetCommit: COORDINATOR_NOT_AVAILABLE")

"""What a failed test is told of its broker."""

from pathlib import Path

import pytest

from groupcoord.testing import Cluster, failure_report

pytestmark = pytest.mark.asyncio
ORDERS = {"orders": 2}


def part(report: str, title: str) -> list[str]:
    """The lines under ``title``."""
    lines = report.split(f"{title}:\n")[1].split("\n\n", maxsplit=1)[0].splitlines()
    return [line.removeprefix("  ") for line in lines]


async def test_groups_are_told_with_why_their_last_generations_began() -> None:
    async with Cluster(topics=ORDERS, clock="manual") as kafka:
        a, b = await kafka.consumers(2, group="app", topics="orders")
        for _ in range(failure_report.GENERATIONS):
            await kafka.group("app").force_rebalance("a drill")
            await kafka.clock.advance(10)
        b.leave()
        await kafka.clock.advance(10)
        last = a.generation
        told = part(kafka.report(), "groups")
        assert told[0] == f"app Stable gen={last}, 1 member: app-1"
        assert told[1:] == [f"  {kafka.trace.why('app', number)}" for number in range(last - 4, last + 1)]
        assert "app-2 left" in told[-1]


@pytest.mark.slow
@pytest.mark.untraced
async def test_epochs_of_consumer_groups_and_groups_that_are_gone_are_told_too() -> None:
    async with Cluster(topics=ORDERS, clock="manual") as kafka:
        (member,) = await kafka.consumers(1, group="modern", topics="orders", protocol="consumer")
        assert part(kafka.report(), "groups") == [
            "modern Stable epoch=2, 1 member: modern-1 at 2",
            f"  {kafka.trace.why('modern', epoch=2)}",
        ]
        member.leave()
        await kafka.settle()
        await kafka.group("modern").wait_empty()
        await kafka.clock.advance(8 * 86_400)
        told = part(kafka.report(), "groups")
        assert (told[0], len(told)) == ("modern Dead gen=0, 0 members", 3)


async def test_what_is_pending_is_told_earliest_first() -> None:
    async with Cluster(topics=ORDERS, clock="manual") as kafka:
        member = kafka.manual_member("app", "orders", client_id="a", session_timeout_ms=10_000)
        await member.rejoin()
        await kafka.clock.advance(2.5)
        assert part(kafka.report(), "pending at 2.5 s") == [
            "group app: sessions end unless members are heard: a at 10.0 s",
            "the clock is manual and shows 2.5 s: kafka.clock.advance(seconds)",
        ]


async def test_of_many_only_the_first_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(failure_report, "SHOWN", 2)
    async with Cluster(topics=ORDERS, clock="manual") as kafka:
        for name in "abcd":
            await kafka.manual_member(name, "orders").rejoin()
        told = part(kafka.report(), "groups")
        assert [line for line in told if not line.startswith(" ")] == [
            "a Stable gen=1, 1 member: a-1",
            "b Stable gen=1, 1 member: b-2",
            "and 2 more",
        ]


async def test_rules_are_told_with_how_often_they_acted() -> None:
    async with Cluster(topics=ORDERS, clock="manual") as kafka:
        refused = kafka.faults.when("Heartbeat").refuse("REBALANCE_IN_PROGRESS").times(2)
        held = kafka.faults.when("OffsetCommit").hold()
        kafka.faults.when("LeaveGroup").drop().optional()
        member = kafka.manual_member("app", "orders")
        await member.rejoin()
        kafka.fail_append("NOT_ENOUGH_REPLICAS", group="app", times=2)
        kafka.hold_append(group="other").uses = 1
        for _ in range(2):
            await member.heartbeat()
        member.commit({("orders", 0): 1})
        await kafka.settle()
        assert part(kafka.report(), "fault rules") == [
            f"rule 1 acted twice: {refused.rule}",
            f"rule 2 acted once, 1 request still held: {held.rule}",
            "rule 3 never acted: when(LeaveGroup).drop().optional()",
            "  no LeaveGroup came; what came: JoinGroup (2), Heartbeat (2), SyncGroup (1), OffsetCommit (1)",
            "fail_append NOT_ENOUGH_REPLICAS of group app met 0 appends",
            "hold_append of group other met 1 append",
        ]
        held.release()
        await kafka.settle()
        assert "fail_append NOT_ENOUGH_REPLICAS of group app met 1 append" in part(kafka.report(), "fault rules")


@pytest.mark.slow
async def test_transactions_are_told_with_what_became_of_them(tmp_path: Path) -> None:
    async with Cluster(topics=ORDERS, clock="manual", data_dir=tmp_path) as kafka:
        producer = kafka.manual_producer("billing")
        await producer.init()
        await producer.produce("orders", b"an espresso")
        assert part(kafka.report(), "transactions") == [
            "billing Ongoing, producer 0 epoch 0, with orders-0",
            f"  {kafka.trace.why(transaction='billing')}",
        ]
    async with Cluster(topics=ORDERS, clock="manual", data_dir=tmp_path) as kafka:
        assert part(kafka.report(), "transactions") == ["billing Ongoing, producer 0 epoch 0, with orders-0"]


@pytest.mark.slow
async def test_the_story_is_folded_and_its_last_lines_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    title = "what happened, what changed nothing in one line"
    async with Cluster(topics=ORDERS, clock="manual") as kafka:
        assert kafka.report().startswith(f"{title}:\nnothing; the broker answers while the event loop of the test runs")
        (a,) = await kafka.consumers(1, group="app", topics="orders")
        await kafka.clock.advance(3_600)
        before = kafka.trace.last_seq
        story = kafka.trace.text(fold=True, real=True)
        assert kafka.report().endswith(f"{title}:\n{story}")
        assert "times Heartbeat of app-1, all fine" in story.splitlines()[-3]
        a.leave()
        await kafka.settle()
        assert part(kafka.report(after=before), title)[0].endswith(" action: app-1 is to leave")
        monkeypatch.setattr(failure_report, "STORY_LINES", 1)
        assert len(part(kafka.report(), title)) == 2


async def test_brokers_that_do_not_run_and_partitions_that_they_leave_without_a_leader_are_told() -> None:
    async with Cluster(topics={"orders": 3}, brokers=3, clock="manual") as kafka:
        assert "brokers:" not in kafka.report()
        await kafka.broker(2).kill()
        await kafka.clock.advance(10)
        (number,) = (
            number for number, on in enumerate(kafka.core.broker.topics["orders"].metadata.replicas) if on == (2,)
        )
        assert part(kafka.report(), "brokers") == [
            "broker 2: stopped, fenced",
            f"orders-{number} has no leader: its replicas are on broker 2",
        ]


async def test_there_is_a_report_after_the_end() -> None:
    async with Cluster(topics=ORDERS, clock="manual") as kafka:
        await kafka.manual_member("app", "orders").rejoin()
    assert part(kafka.report(), "groups")[0] == "app Stable gen=1, 1 member: app-1"


async def test_a_synchronous_cluster_reports_from_its_own_thread_while_that_runs() -> None:
    cluster = Cluster(topics=ORDERS, clock="manual")
    with cluster.sync() as kafka:
        kafka.group("app")
        member = kafka.manual_member("app", "orders")
        member.join().result()
        assert kafka.report() == cluster.report()
    assert "app-1 joins, offers range" in cluster.report()

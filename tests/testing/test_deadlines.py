"""What is pending, in words."""

import pytest

from groupcoord.testing import Cluster

pytestmark = pytest.mark.asyncio


async def test_what_rules_delay_is_pending_too() -> None:
    async with Cluster(topics={"orders": 1}, clock="manual") as kafka:
        member = kafka.manual_member("app", "orders")
        await member.rejoin()
        kafka.faults.when("Heartbeat").delay(5_000)
        beating = member.heartbeat()
        first, second = kafka.clock.deadlines()
        assert (first.kind, first.at_ms - kafka.clock.now_ms(), second.kind) == ("fault", 5_000, "session")
        assert str(first).startswith("in 5.000 s rule 1 lets go what it delays: Heartbeat")
        await kafka.clock.advance(5)
        assert await beating == 0


async def test_a_group_waits_for_its_members() -> None:
    async with Cluster(topics={"orders": 1}, clock="manual") as kafka:
        a, b = kafka.manual_member("app", "orders"), kafka.manual_member("app", "orders")
        await a.rejoin()
        joining = b.join()
        await kafka.settle()
        assert [each.reason for each in kafka.clock.deadlines() if each.kind == "join"] == [
            "group app waits no longer for members to join"
        ]
        await a.join()
        await joining
        assert "group app waits no longer for members to sync" in [each.reason for each in kafka.clock.deadlines()]
        kafka.faults.when("JoinGroup").refuse("NOT_COORDINATOR").optional()

"""A test sets the offsets of a group, and deletes them, as an administrator does."""

from typing import Any

import pytest

from groupcoord import Cluster, KafkaCluster, RemoteCluster, WaitTimeoutError
from groupcoord.testing import waiting

pytestmark = pytest.mark.asyncio


async def story(kafka: KafkaCluster) -> None:
    await kafka.create_topic("payouts", 3)
    await kafka.create_topic("returns", 1)
    group = kafka.group("seeded")
    await group.commit({("payouts", 0): 5, ("payouts", 2): 7, ("returns", 0): 0})
    assert await group.state() == "Empty"
    await group.delete_offsets(("payouts", 2), ("returns", 0), ("payouts", 1))
    assert await group.offsets() == {("payouts", 0): 5}
    with pytest.raises(ValueError, match="there is no topic 'payout'; did you mean 'payouts'"):
        await group.commit({("payouts", 0): 6, ("payout", 0): 5})
    (member,) = await kafka.consumers(1, group="seeded", topics="payouts")
    with pytest.raises(
        ValueError, match=r"payouts-1 is refused: UNKNOWN_MEMBER_ID: It has members.* The group: seeded Stable"
    ):
        await group.commit({("payouts", 1): 5})
    with pytest.raises(ValueError, match=r"payouts-0 is refused: GROUP_SUBSCRIBED_TO_TOPIC: "):
        await group.delete_offsets(("payouts", 0))
    with pytest.raises(ValueError, match=r"it is not deleted: NON_EMPTY_GROUP: .* The group: seeded Stable"):
        await group.delete()
    member.leave()
    await group.wait_empty()
    await group.delete()
    assert await group.state() == "Dead"
    assert await group.offsets() == {}
    with pytest.raises(ValueError, match=r"it is not deleted: GROUP_ID_NOT_FOUND: .* The group: seeded Dead"):
        await group.delete()
    with pytest.raises(ValueError, match="no offset is deleted: GROUP_ID_NOT_FOUND"):
        await group.delete_offsets(("payouts", 0))


@pytest.mark.slow
async def test_the_same_in_this_process_and_elsewhere() -> None:
    async with Cluster(clock="manual") as kafka:
        await story(kafka)
    async with Cluster() as kafka, RemoteCluster(kafka.address) as remote:
        await story(remote)


@pytest.mark.slow
async def test_a_coordinator_elsewhere_that_is_not_ready_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async with Cluster(topics={"orders": 1}) as kafka, RemoteCluster(kafka.address) as remote:
        kafka.faults.when("OffsetCommit").refuse("COORDINATOR_LOAD_IN_PROGRESS").times(2)
        kafka.faults.when("OffsetDelete").refuse("NOT_COORDINATOR").times(2)
        kafka.faults.when("DeleteGroups").refuse("COORDINATOR_NOT_AVAILABLE").times(2)
        await remote.group("app").commit({("orders", 0): 5})
        await remote.group("app").delete_offsets(("orders", 0))
        await remote.group("app").delete()
        assert await kafka.list_groups() == []
        monkeypatch.setattr(waiting, "TIMEOUT_S", 0.0)
        kafka.faults.when("OffsetCommit").refuse("NOT_COORDINATOR")
        with pytest.raises(
            WaitTimeoutError, match=r"coordinator of group app should be ready.* It said NOT_COORDINATOR"
        ):
            await remote.group("app").commit({("orders", 0): 5})
        await kafka.group("app").unload_coordinator()
        with pytest.raises(
            ValueError, match=r"orders-0 is refused: NOT_COORDINATOR: .* The group: app NOT_COORDINATOR"
        ):
            await kafka.group("app").commit({("orders", 0): 5})


async def test_a_member_begins_where_the_test_said() -> None:
    async with Cluster(topics={"orders": 1}, clock="manual") as kafka:
        await kafka.produce("orders", b"done", b"new")
        await kafka.group("app").commit({("orders", 0): 1})
        assert await kafka.group("app").committed("orders", 0) == 1


@pytest.mark.parametrize(
    ("offsets", "error", "text"),
    [
        ([("orders", 0)], TypeError, r"offsets=.*: offsets by their partitions, such as {\(\"orders\", 0\): 5}"),
        ({}, ValueError, "there are no offsets to commit"),
        ({"orders": 5}, TypeError, r"a partition is a topic and a number, such as \(\"orders\", 0\), not 'orders'"),
        ({("orders", "0"): 5}, TypeError, "a partition is a topic and a number"),
        ({("orders", 0): "5"}, TypeError, "the offset of orders-0 is a number, such as 5, not '5'"),
        ({("orders", 0): True}, TypeError, "the offset of orders-0 is a number, such as 5, not True"),
        ({("orders", 0): -1}, ValueError, "the offset of orders-0 is 0 or more, not -1; delete_offsets takes one away"),
    ],
)
async def test_what_are_no_offsets(offsets: Any, error: type[Exception], text: str) -> None:
    async with Cluster(topics={"orders": 1}, clock="manual") as kafka:
        with pytest.raises(error, match=text):
            await kafka.group("app").commit(offsets)


async def test_what_are_no_partitions() -> None:
    async with Cluster(topics={"orders": 1}, clock="manual") as kafka:
        with pytest.raises(ValueError, match="there are no offsets to delete"):
            await kafka.group("app").delete_offsets()
        with pytest.raises(TypeError, match="a partition is a topic and a number"):
            await kafka.group("app").delete_offsets("orders", 0)  # type: ignore[arg-type]

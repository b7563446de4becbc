"""Assignors: members without a common one, members that change theirs, and the guarantees of the sticky ones."""

from typing import Any

import pytest

from groupcoord.protocol.errors import ErrorCode as E
from groupcoord.testing import RemoteCluster
from tests.scenarios.steps import again, enters

pytestmark = [pytest.mark.asyncio, pytest.mark.slow]


async def test_a_newcomer_with_nothing_in_common_is_refused(cluster: RemoteCluster, app: str, orders: str) -> None:
    """confluentinc/confluent-kafka-go#605 "migrating to coopartive-sticky rebalance protocol"
    confluentinc/confluent-kafka-javascript#208 "Incompatibility between KafkaJS and Confluent "round robin"
    partition assigment"

    A rolling update changes the assignor, or the client library, which has another name for the same one:
    RoundRobinAssigner instead of roundrobin. The new pods end with "Inconsistent group protocol".

    Right: the new member is refused, and the group is not affected. To change the assignor, do two rolling restarts: first
    configure both assignors for all members, then remove the old one.
    """
    await cluster.create_topic(orders, 2)
    group = cluster.group(app)
    a = cluster.manual_member(app, orders, assignors="range")
    b = cluster.manual_member(app, orders, assignors="cooperative-sticky")
    await a.rejoin()
    assert (await b.join()).error_code == E.INCONSISTENT_GROUP_PROTOCOL
    assert b.member_id == ""
    assert await a.heartbeat() == E.NONE
    assert list((await group.wait_stable()).assignment) == [a.member_id]

    both = cluster.manual_member(app, orders, assignors=["cooperative-sticky", "range"])
    await enters(cluster, both, a)
    assert (await group.wait_stable()).protocol == "range"
    await a.leave()
    await both.rejoin()
    assert (await group.wait_stable()).protocol == "cooperative-sticky"
    await enters(cluster, b, both)  # in which it is told what to give up, and in the next one it is b's
    await again(cluster, both, b)
    assert len(both.assigned) == len(b.assigned) == 1


async def test_a_lone_member_cannot_change_its_assignor_either(cluster: RemoteCluster, app: str, orders: str) -> None:
    """confluentinc/confluent-kafka-go#605 "migrating to coopartive-sticky rebalance protocol"

    There is only one consumer, so there should be no conflict with another member: it joins again, with another assignor.

    Right: its new list must have an assignor in common with its own previous list. It can leave first, or list both
    assignors for one join.
    """
    await cluster.create_topic(orders, 1)
    a = cluster.manual_member(app, orders, assignors="range")
    await a.rejoin()
    changed = cluster.manual_member(app, orders, assignors="cooperative-sticky")
    changed.member_id = a.member_id
    assert (await changed.join()).error_code == E.INCONSISTENT_GROUP_PROTOCOL
    assert await a.heartbeat() == E.NONE
    await a.leave()
    changed.member_id = ""
    await changed.rejoin()
    assert (await cluster.group(app).wait_stable()).protocol == "cooperative-sticky"


async def test_from_eager_to_cooperative(cluster: RemoteCluster, app: str, orders: str) -> None:
    """twmb/franz-go#686 "Consumer group rebalancing bug when switching from eager to cooperative consumers"

    Between the two restarts, members with only `range` and members with both assignors are in the group, under `range`. The
    last of the former leaves, and the vote selects the cooperative one. The remaining members had revoked everything, as
    eager members do, but remembered their partitions and ignored that they were assigned them again: no consumer read those
    partitions.

    Right: after the change a member is notified of its whole assignment, including partitions that it had before.
    """
    await cluster.create_topic(orders, 4)
    group = cluster.group(app)
    (a,) = await cluster.consumers(1, group=app, topics=orders, assignors="range")
    (b,) = await cluster.consumers(1, group=app, topics=orders, assignors=["cooperative-sticky", "range"])
    assert (await group.wait_stable(members=2)).protocol == "range"
    a.leave()
    await cluster.wait_until(lambda: b.is_stable and len(b.assigned) == 4, "b should have everything")
    assert (await group.wait_stable(members=1)).protocol == "cooperative-sticky"
    believed: set[tuple[str, int]] = set()  # by its user, who knows only what it was told
    for what, partitions in b.rebalance_callbacks:
        believed = believed | set(partitions) if what == "assigned" else believed - set(partitions)
    assert believed == b.assigned


async def test_only_what_has_to_move_moves(cluster: RemoteCluster, app: str, orders: str) -> None:
    """confluentinc/librdkafka#3306 "Issues with "partition.assignment.strategy=cooperative-sticky""
    confluentinc/confluent-kafka-go#622 "cooperative-sticky doesn't work as expected"

    A third member joins, and the two others exchange partitions with each other. It leaves, and the partitions of the
    remaining members are shuffled again.

    Right: a joining member gets partitions from the members that have most; the others gain none. The partitions of a
    leaving member are distributed, and no other member loses a partition.
    """
    await cluster.create_topic(orders, 10)
    how: dict[str, Any] = {"group": app, "topics": orders, "assignors": "cooperative-sticky"}
    a, b = await cluster.consumers(2, **how)
    await cluster.wait_until(lambda: len(a.assigned) == len(b.assigned) == 5, "a and b should have five each")
    before, told = (a.assigned, b.assigned), (len(a.rebalance_callbacks), len(b.rebalance_callbacks))
    (c,) = await cluster.consumers(1, **how)
    await cluster.wait_until(
        lambda: sorted(len(each.assigned) for each in (a, b, c)) == [3, 3, 4], "each should have three or four"
    )
    assert a.assigned < before[0]
    assert b.assigned < before[1]
    news = a.rebalance_callbacks[told[0] :] + b.rebalance_callbacks[told[1] :]
    assert {partition for what, some in news if what == "revoked" for partition in some} == c.assigned
    assert {what for what, some in news if some} == {"revoked"}

    between, told = (a.assigned, b.assigned), (len(a.rebalance_callbacks), len(b.rebalance_callbacks))
    c.leave()
    await cluster.wait_until(lambda: len(a.assigned) == len(b.assigned) == 5, "a and b should have five each again")
    assert a.assigned > between[0]
    assert b.assigned > between[1]
    assert {what for what, some in a.rebalance_callbacks[told[0] :] + b.rebalance_callbacks[told[1] :] if some} == {
        "assigned"
    }

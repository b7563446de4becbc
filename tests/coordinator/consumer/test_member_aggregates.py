"""What follows from the members of a group, member by member."""

import uuid

from groupcoord.coordinator.consumer.member import ConsumerMember
from groupcoord.coordinator.consumer.member_aggregates import MemberIndex, ResolvedRegex
from groupcoord.core.effect_collector import HandlerContext
from groupcoord.core.events import AdminAction
from groupcoord.protocol.errors import ErrorCode
from tests.coordinator.consumer.consumers import ConsumerWorld
from tests.coordinator.invariants import index_is_right

T = uuid.UUID(int=1)


def test_a_partition_that_another_has_by_now_keeps_its_epoch() -> None:
    """A log may say so."""
    index = MemberIndex()
    old, new = (
        ConsumerMember(member_id=name, member_epoch=epoch, assigned={T: {0: epoch, 1: epoch}})
        for name, epoch in (("a", 2), ("b", 3))
    )
    index.add(old)
    index.add(new)
    index.remove(old)
    assert index.partition_epochs == {T: {0: 3, 1: 3}}
    index.remove(new)
    assert index.partition_epochs == {}


def test_after_an_undone_write_it_is_built_anew_when_it_is_needed() -> None:
    w = ConsumerWorld()
    (a,) = w.joined_consumers("a")
    group = w.consumers
    before = group.members["a"]
    ctx = HandlerContext(0, AdminAction("the test"))
    group.members.restore(ctx, "a", None, ErrorCode.NOT_ENOUGH_REPLICAS)
    group.members.put("a", before)
    group.regexes.put("x", ResolvedRegex(frozenset({"t"}), 1, 0))
    index_is_right(group)
    assert a.heartbeat().error is ErrorCode.NONE

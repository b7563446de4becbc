"""OffsetDelete (KIP-496): which offsets may be deleted, and when."""

from groupcoord.protocol.apis.offset_delete import OffsetDeleteRequestPartition, OffsetDeleteRequestTopic
from groupcoord.protocol.messages import OffsetDeleteRequest
from tests.conformance.actors import Stagehand
from tests.conformance.admin import Admin, until_forgotten
from tests.conformance.embedded import subscription
from tests.conformance.members import Member, share_out, stable
from tests.conformance.story import Story, story


@story(gotchas=[39, 50], sections=["9.4"])
def refusals_of_offset_delete(s: Story) -> None:
    """Missing and nameless groups, unknown topics and partitions, missing offsets."""
    topic = Stagehand(s).topic("orders", partitions=3)
    group, admin = s.group(), Admin(s, "admin")
    unknown = s.topic_name("unknown")
    admin.deletes_offsets(group, {topic: [0]})
    admin.deletes_offsets("", {topic: [0]})
    admin.deletes_offsets("", {unknown: [0]})
    admin.deletes_offsets(s.group("missing"), {unknown: [0]})
    admin.deletes_offsets(s.group("missing"), {})
    admin.commits(group, {(topic, 0): 1, (topic, 1): 2})
    admin.deletes_offsets(group, {unknown: [0, 1], topic: [0, 9, 2]})
    admin.fetches(group, None)
    admin.deletes_offsets(group, {topic: [0]})
    admin.deletes_offsets(group, {})
    admin.deletes_offsets(group, {topic: []})
    admin.deletes_offsets(group, {topic: [1, 1]})
    admin.describes(group)
    admin.deletes_offsets(group, {topic: [1]})


@story(gotchas=[50], sections=["9.4"])
def offsets_of_subscribed_topics(s: Story) -> None:
    """A live consumer group keeps the offsets of its subscribed topics; during its first rebalance, all offsets."""
    stage = Stagehand(s)
    orders, other, third = stage.topic("orders"), stage.topic("other"), stage.topic("third")
    group, admin = s.group(), Admin(s, "admin")
    everything = {orders: [0], other: [0], third: [0]}
    admin.commits(group, {(orders, 0): 1, (other, 0): 2, (third, 0): 3})
    a = Member(s, "a", group_id=group, offers={"range": subscription(orders)})
    b = Member(s, "b", group_id=group, offers={"range": subscription(third)})
    a.asks_for_an_id()
    b.asks_for_an_id()
    a.joins()
    admin.deletes_offsets(group, everything)
    a.syncs({a: b"x"})
    admin.commits(group, {(other, 0): 2})
    a.commits({(other, 0): 2, (third, 0): 3})
    b.joins_parked()
    admin.deletes_offsets(group, everything)
    a.joins(does="rejoins")
    b.is_answered()
    a.syncs({a: b"x", b: b"y"})
    b.syncs()
    a.commits({(other, 0): 2, (third, 0): 3})
    admin.deletes_offsets(group, everything)
    admin.fetches(group, None)
    b.leaves()
    admin.deletes_offsets(group, {third: [0]})
    a.joins(does="rejoins")
    a.syncs({a: b"x"})
    admin.deletes_offsets(group, {third: [0]})
    a.leaves()
    admin.deletes_offsets(group, everything)
    admin.fetches(group, None)


@story(gotchas=[50], sections=["9.4"])
def the_first_rebalance_of_a_group_with_offsets(s: Story) -> None:
    """A simple group's offsets while its very first consumer is in the join phase: none may be deleted."""
    topic = Stagehand(s).topic("orders")
    group, admin = s.group(), Admin(s, "admin")
    admin.commits(group, {(topic, 0): 1})
    a, b = (Member(s, name, group_id=group, offers={"range": subscription("elsewhere")}) for name in "ab")
    a.asks_for_an_id()
    admin.deletes_offsets(group, {topic: [0]})
    a.joins()
    b.enters_parked()
    admin.commits(group, {(topic, 0): 1})
    admin.deletes_offsets(group, {topic: [0]})
    a.joins(does="rejoins")
    b.is_answered()
    admin.deletes_offsets(group, {topic: [0]})
    share_out(a, b)


@story(gotchas=[51], sections=["9.4"])
def offsets_of_a_group_of_another_type(s: Story) -> None:
    """A live group whose protocol type is not consumer refuses the request; an empty one does not."""
    topic = Stagehand(s).topic("orders")
    group, admin = s.group(), Admin(s, "admin")
    a = Member(s, "a", group_id=group, protocol_type="connect", offers={"eager": b"worker"})
    a.asks_for_an_id()
    admin.deletes_offsets(group, {topic: [0]})
    a.joins()
    admin.deletes_offsets(group, {topic: [0]})
    a.syncs({a: b"tasks"})
    a.commits({(topic, 0): 1})
    admin.deletes_offsets(group, {topic: [0]})
    admin.deletes_offsets(group, {s.topic_name("unknown"): [0]})
    a.leaves()
    admin.deletes_offsets(group, {topic: [0]})


@story(sections=["9.5", "11.3"])
def offsets_of_a_deleted_topic(s: Story) -> None:
    """With a topic its offsets in all groups are deleted, live and empty; those of other topics stay."""
    stage = Stagehand(s)
    gone, stays = stage.topic("gone", partitions=2), stage.topic("stays")
    live, simple, admin = s.group("live"), s.group("simple"), Admin(s, "admin")
    a = Member(s, "a", group_id=live, offers={"range": subscription(gone)})
    stable(a)
    a.commits({(gone, 0): 1, (gone, 1): 2, (stays, 0): 3})
    admin.commits(simple, {(gone, 1): 4, (stays, 0): 5})
    stage.deletes(gone)
    s.wait(300, "the coordinator hears of it")
    for group in (live, simple):
        until_forgotten(s, stage, group, gone)
    admin.fetches_many({live: None, simple: None})
    a.heartbeats()
    a.commits({(gone, 0): 9})


@story(sections=["9.4"])
def offsets_of_a_topic_that_is_named_twice(s: Story) -> None:
    """Such a topic is in the response twice, unless some partition does not exist: then each topic is there once."""
    stage = Stagehand(s)
    orders, other = stage.topic("orders", partitions=3), stage.topic("other", partitions=2)
    group, admin = s.group(), Admin(s, "admin")
    unknown = s.topic_name("unknown")

    def delete(*topics: tuple[str, tuple[int, ...]]) -> None:
        asked = tuple(
            OffsetDeleteRequestTopic(
                name=name, partitions=tuple(OffsetDeleteRequestPartition(partition_index=index) for index in indexes)
            )
            for name, indexes in topics
        )
        admin.asks(OffsetDeleteRequest(group_id=group, topics=asked), 0, does="deletes offsets")

    for _ in range(2):
        admin.commits(group, {(orders, 0): 1, (orders, 2): 2, (other, 0): 3})
        delete((orders, (0,)), (other, (0,)), (orders, (2, 0)), (other, ()))
        delete((orders, (0,)), (other, (5,)), (orders, (1,)), (other, (1,)))
        delete((orders, (0,)), (unknown, (0,)), (orders, (1,)), (unknown, ()))
        member = Member(s, "a", group_id=group, offers={"range": subscription(orders)})
        member.asks_for_an_id()
        member.joins()
        member.syncs({member: b"x"})
        delete((orders, (0,)), (other, (0,)), (orders, (2, 0)), (other, (0,)))
        member.leaves()

"""Static members of consumer groups (KIP-848)."""

from tests.conformance.actors import Stagehand
from tests.conformance.consumers import Consumer, Watcher, settled, topics_with_ids
from tests.conformance.settings import CONSUMERS
from tests.conformance.story import Story, story


@story(settings=CONSUMERS, sections=["848 7"])
def a_static_consumer_comes_back(s: Story) -> None:
    """It leaves temporarily, and returns with another member id and with the same one."""
    group, stage = s.group(), Stagehand(s)
    topics, _ = topics_with_ids(s, stage, orders=4)
    a = Consumer(s, "a", group_id=group, topics=topics)
    b = Consumer(s, "b", group_id=group, topics=topics, instance="i")
    admin = Watcher(s, "admin")
    a.joins()
    b.joins()
    settled(a, b)
    b.leaves(-2)
    admin.looks_at(group)
    a.heartbeats()
    again = Consumer(s, "b2", group_id=group, topics=topics, instance="i")
    again.joins()
    admin.looks_at(group)
    b.heartbeats(member_epoch=3)
    b.leaves()
    again.owns()
    again.leaves(-2)
    again.joins(does="joins again under the same member id")
    again.heartbeats()
    again.leaves(-2)
    other = Consumer(s, "b3", group_id=group, topics=[*topics, s.topic_name("nowhere")], instance="i")
    other.joins(does="joins in its place with other topics")
    admin.looks_at(group)
    settled(a, other)
    other.leaves()
    admin.looks_at(group)


@story(settings=CONSUMERS, sections=["848 7"])
def an_instance_id_that_is_taken(s: Story) -> None:
    """No process can join with it until its owner has left temporarily, not even the owner."""
    group, stage = s.group(), Stagehand(s)
    topics, _ = topics_with_ids(s, stage, orders=2)
    a = Consumer(s, "a", group_id=group, topics=topics, instance="i")
    b = Consumer(s, "b", group_id=group, topics=topics, instance="i")
    a.joins()
    b.joins()
    a.joins(does="joins again")
    b.heartbeats(member_epoch=2)
    b.heartbeats(does="heartbeats as the other without an instance id", member_id="a", member_epoch=2, instance_id=None)
    a.heartbeats(does="heartbeats with another instance id", instance_id="j")
    a.heartbeats(does="heartbeats without its instance id", instance_id=None)
    a.heartbeats(does="heartbeats with a greater epoch", member_epoch=7)
    a.joins(does="joins again without its instance id", instance_id=None)
    Watcher(s, "admin").looks_at(group)
    a.heartbeats()
    a.leaves(-2)
    b.joins(does="joins with the member id that left", member_id="a")
    b.heartbeats()
    b.joins(does="joins with a list of no topics and the same ids", subscribed_topic_names=())


@story(settings=CONSUMERS, sections=["848 7"])
def a_static_consumer_is_away_while_others_move(s: Story) -> None:
    """It keeps its partitions until it returns, even if the target assignment changes."""
    group, stage = s.group(), Stagehand(s)
    topics, _ = topics_with_ids(s, stage, orders=6)
    a = Consumer(s, "a", group_id=group, topics=topics, instance="i")
    b, c = Consumer(s, "b", group_id=group, topics=topics), Consumer(s, "c", group_id=group, topics=topics)
    admin = Watcher(s, "admin")
    a.joins()
    b.joins()
    settled(a, b)
    a.leaves(-2)
    c.joins()
    settled(b, c, rounds=4)
    admin.looks_at(group)
    back = Consumer(s, "a2", group_id=group, topics=topics, instance="i")
    back.joins()
    admin.looks_at(group)
    settled(back, b, c)
    admin.looks_at(group)


@story(settings=CONSUMERS, sections=["848 7"])
def a_static_consumer_leaves_while_it_gives_back(s: Story) -> None:
    """Its pending revocation is dropped; when it returns, it has its target assignment."""
    group, stage = s.group(), Stagehand(s)
    topics, _ = topics_with_ids(s, stage, orders=4)
    a = Consumer(s, "a", group_id=group, topics=topics, instance="i")
    b = Consumer(s, "b", group_id=group, topics=topics)
    admin = Watcher(s, "admin")
    a.joins()
    b.joins()
    a.heartbeats()
    a.leaves(-2)
    admin.looks_at(group)
    b.heartbeats()
    back = Consumer(s, "a2", group_id=group, topics=topics, instance="i", rack="r", rebalance_ms=5000)
    back.joins()
    settled(back, b)
    admin.looks_at(group)


@story(settings=CONSUMERS, sections=["848 7"])
def two_instances(s: Story) -> None:
    """Range sorts members with instance ids first; each keeps its own place."""
    group, stage = s.group(), Stagehand(s)
    topics, _ = topics_with_ids(s, stage, orders=5)
    z = Consumer(s, "z", group_id=group, topics=topics, instance="1", assignor="range")
    a = Consumer(s, "a", group_id=group, topics=topics, instance="2", assignor="range")
    m = Consumer(s, "m", group_id=group, topics=topics, assignor="range")
    for member in (m, a, z):
        member.joins()
    settled(m, a, z)
    admin = Watcher(s, "admin")
    admin.looks_at(group)
    z.leaves(-2)
    b = Consumer(s, "b", group_id=group, topics=topics, instance="1", assignor="range")
    b.joins()
    settled(b, a, m)
    admin.looks_at(group)
    a.leaves()
    settled(b, m)
    admin.looks_at(group)


@story(settings=CONSUMERS)
def a_consumer_that_changes_its_instance_id(s: Story) -> None:
    """It can be addressed by each of its instance ids; when it is gone, nobody can use the earlier one."""
    stage, group = Stagehand(s), s.group()
    (orders,), ids = topics_with_ids(s, stage, orders=3)
    a = Consumer(s, "a", group_id=group, topics=[orders], ids=ids, instance="i")
    b = Consumer(s, "b", group_id=group, topics=[orders], ids=ids)
    admin = Watcher(s, "admin")
    a.joins()
    a.joins(does="joins with another instance id", instance_id="j")
    for instance in ("i", "j", None, "k"):
        a.heartbeats(does=f"heartbeats with instance id {instance}", instance_id=instance)
    b.joins(does="joins with the earlier instance id", instance_id="i")
    b.joins()
    a.owns(instance_id="i")
    a.leaves(instance_id="i")
    admin.looks_at(group)
    b.joins(does="joins with the instance id of one that is gone", instance_id="j")
    b.heartbeats(does="heartbeats with the earlier instance id", instance_id="i")
    a.joins(does="joins with the instance id of one that is gone", instance_id="j")
    b.leaves()
    admin.removes(group, "i", "j")
    admin.looks_at(group)

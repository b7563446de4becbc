"""The server-side assignors of consumer groups: which one is chosen, and its assignments (KIP-848)."""

from tests.conformance.actors import Stagehand
from tests.conformance.consumers import Consumer, Watcher, settled, topics_with_ids
from tests.conformance.settings import CONSUMERS, UPGRADE_ONLY
from tests.conformance.story import Story, story


@story(settings=CONSUMERS, sections=["848 5.2", "848 6"])
def the_assignor_that_most_consumers_want(s: Story) -> None:
    """No preference, one preference, a tie, a majority, and changed preferences."""
    group, stage = s.group(), Stagehand(s)
    topics, _ = topics_with_ids(s, stage, orders=7)
    a = Consumer(s, "a", group_id=group, topics=topics)
    b = Consumer(s, "b", group_id=group, topics=topics, assignor="range")
    c = Consumer(s, "c", group_id=group, topics=topics, assignor="uniform")
    d = Consumer(s, "d", group_id=group, topics=topics, assignor="range")
    admin = Watcher(s, "admin")
    members: list[Consumer] = []
    for member in (a, b, c, d):
        member.joins()
        members.append(member)
        settled(*members)
        admin.looks_at(group)
    a.heartbeats(does="wants uniform", server_assignor="uniform")
    admin.looks_at(group)
    a.heartbeats(
        does="wants uniform, and another topic", server_assignor="uniform", subscribed_topic_names=("nowhere",)
    )
    settled(*members)
    admin.looks_at(group)
    b.leaves()
    settled(a, c, d)
    admin.looks_at(group)


@story(settings=CONSUMERS, sections=["848 5.2"])
def the_assignor_that_is_shown_in_a_tie(s: Story) -> None:
    """The order in which members joined has no effect."""
    for first, second in (("range", "uniform"), ("uniform", "range")):
        group = s.group(first)
        a, b = (Consumer(s, each, group_id=group, topics=["nowhere"], assignor=each) for each in (first, second))
        admin = Watcher(s, "admin")
        a.joins()
        admin.looks_at(group)
        b.joins()
        admin.looks_at(group)


@story(settings=CONSUMERS, sections=["848 6"])
def the_range_assignor_of_the_server(s: Story) -> None:
    """Each member gets the same partition numbers of every topic to which all subscribe; other topics are assigned
    separately."""
    group, stage = s.group(), Stagehand(s)
    topics, _ = topics_with_ids(s, stage, orders=5, payments=5, refunds=2)
    a = Consumer(s, "a", group_id=group, topics=topics, assignor="range")
    b = Consumer(s, "b", group_id=group, topics=topics, assignor="range")
    c = Consumer(s, "c", group_id=group, topics=topics[:2], assignor="range")
    admin = Watcher(s, "admin")
    members: list[Consumer] = []
    for member in (c, b, a):
        member.joins()
        members.append(member)
        settled(*members)
        admin.looks_at(group)
    b.leaves()
    settled(c, a)
    admin.looks_at(group)


@story(settings=CONSUMERS, sections=["848 6"])
def the_uniform_assignor_of_the_server(s: Story) -> None:
    """It moves as few partitions as possible when members with one topic join and leave."""
    group, stage = s.group(), Stagehand(s)
    topics, _ = topics_with_ids(s, stage, orders=10)
    members: list[Consumer] = []
    admin = Watcher(s, "admin")
    for name in ("m3", "m1", "m4", "m2"):
        member = Consumer(s, name, group_id=group, topics=topics, assignor="uniform")
        member.joins()
        members.append(member)
        settled(*members)
        admin.looks_at(group)
    while len(members) > 1:
        members.pop(1).leaves()
        settled(*members)
        admin.looks_at(group)


@story(settings=CONSUMERS, sections=["848 6"])
def racks_of_consumers(s: Story) -> None:
    """The broker has no rack: racks of members are shown in descriptions and have no effect."""
    group, stage = s.group(), Stagehand(s)
    topics, _ = topics_with_ids(s, stage, orders=4)
    a = Consumer(s, "a", group_id=group, topics=topics, rack="r1")
    b = Consumer(s, "b", group_id=group, topics=topics, rack="r2")
    admin = Watcher(s, "admin")
    a.joins()
    b.joins()
    settled(a, b)
    admin.looks_at(group, version=0)
    a.heartbeats(does="moves to another rack", rack_id="r2")
    a.joins(does="joins again without a rack", rack_id=None)
    admin.looks_at(group)


@story(settings=UPGRADE_ONLY, sections=["848 5.2"])
def the_first_assignor_of_the_broker(s: Story) -> None:
    """If no member has a preference, it is the first one configured for the broker."""
    group, stage = s.group(), Stagehand(s)
    topics, _ = topics_with_ids(s, stage, orders=5)
    a, b = Consumer(s, "a", group_id=group, topics=topics), Consumer(s, "b", group_id=group, topics=topics)
    admin = Watcher(s, "admin")
    admin.looks_at(group)
    a.joins(server_assignor="nobody")
    a.joins()
    b.joins()
    settled(a, b)
    admin.looks_at(group)
    b.heartbeats(does="wants uniform", server_assignor="uniform")
    admin.looks_at(group)
    a.heartbeats(does="wants another topic too", subscribed_topic_names=(*topics, "nowhere"))
    settled(a, b)
    admin.looks_at(group)
    a.leaves()
    b.leaves()
    admin.looks_at(group)

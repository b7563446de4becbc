"""How members of consumer groups move to their target assignment, step by step (KIP-848)."""

from typing import Any

from tests.conformance.actors import Stagehand
from tests.conformance.consumers import Consumer, Watcher, settled, topics_with_ids
from tests.conformance.settings import CONSUMERS
from tests.conformance.story import Story, story


@story(settings=CONSUMERS, sections=["848 4"])
def three_consumers_come_and_go(s: Story) -> None:
    """Each new member gets partitions from earlier members; those of each leaving member go to the others."""
    group, stage = s.group(), Stagehand(s)
    topics, _ = topics_with_ids(s, stage, orders=9)
    a, b, c = (Consumer(s, name, group_id=group, topics=topics) for name in "abc")
    admin = Watcher(s, "admin")
    a.joins()
    b.joins()
    settled(a, b)
    admin.looks_at(group)
    c.joins()
    settled(a, b, c)
    admin.looks_at(group)
    a.leaves()
    admin.looks_at(group)
    settled(b, c)
    admin.looks_at(group)
    c.leaves()
    settled(b)
    admin.looks_at(group)


@story(settings=CONSUMERS, sections=["848 4"])
def a_consumer_that_gives_back_piece_by_piece(s: Story) -> None:
    """Partitions to revoke are shown until none of them is owned; meanwhile the target changes again."""
    group, stage = s.group(), Stagehand(s)
    topics, ids = topics_with_ids(s, stage, orders=8)
    topic = ids[topics[0]]
    a, b, c = (Consumer(s, name, group_id=group, topics=topics) for name in "abc")
    admin = Watcher(s, "admin")
    a.joins()
    b.joins()
    a.owns({topic: range(8)}, does="still owns everything")
    a.owns({topic: range(7)}, does="has given one back")
    b.owns({})
    admin.looks_at(group)
    c.joins()
    admin.looks_at(group)
    a.owns({topic: range(6)}, does="has given another back")
    a.owns({topic: range(4)}, does="has given the last back")
    admin.looks_at(group)
    b.owns({})
    c.owns({})
    a.owns({topic: range(4)}, does="owns what it keeps, and more")
    a.owns({topic: [0, 1, 2]}, does="owns what it keeps")
    b.owns({})
    c.owns({})
    settled(a, b, c)
    admin.looks_at(group)


@story(settings=CONSUMERS, sections=["848 4"])
def giving_back_what_is_wanted_again(s: Story) -> None:
    """The new owner leaves before the partitions are revoked."""
    group, stage = s.group(), Stagehand(s)
    topics, ids = topics_with_ids(s, stage, orders=4)
    topic = ids[topics[0]]
    a, b = (Consumer(s, name, group_id=group, topics=topics) for name in "ab")
    admin = Watcher(s, "admin")
    a.joins()
    b.joins()
    a.heartbeats()
    b.leaves()
    admin.looks_at(group)
    a.owns({topic: range(4)}, does="still owns everything")
    admin.looks_at(group)
    a.owns({topic: [0, 1]}, does="has given back")
    admin.looks_at(group)
    a.owns()
    admin.looks_at(group)


@story(settings=CONSUMERS, sections=["848 4"])
def two_consumers_wait_for_a_third(s: Story) -> None:
    """Both have the new epoch, but get no partitions until the third has revoked them."""
    group, stage = s.group(), Stagehand(s)
    topics, _ = topics_with_ids(s, stage, orders=3)
    a, b, c = (Consumer(s, name, group_id=group, topics=topics) for name in "abc")
    admin = Watcher(s, "admin")
    a.joins()
    b.joins()
    c.joins()
    b.heartbeats()
    c.heartbeats()
    admin.looks_at(group)
    a.heartbeats()
    b.heartbeats()
    c.heartbeats()
    a.owns()
    b.heartbeats()
    admin.looks_at(group)
    c.heartbeats()
    admin.looks_at(group)
    settled(a, b, c)


@story(settings=CONSUMERS, sections=["848 4"])
def a_consumer_joins_again_with_partitions(s: Story) -> None:
    """A member that joins again with its old id releases at once the partitions that it is not assigned."""
    group, stage = s.group(), Stagehand(s)
    topics, _ = topics_with_ids(s, stage, orders=4)
    a, b = (Consumer(s, name, group_id=group, topics=topics) for name in "ab")
    admin = Watcher(s, "admin")
    a.joins()
    a.joins(does="joins again")
    b.joins()
    a.joins(does="joins again")
    admin.looks_at(group)
    b.heartbeats()
    a.joins(does="joins again")
    b.joins(does="joins again, with other topics", subscribed_topic_names=(*topics, s.topic_name("nowhere")))
    a.heartbeats()
    b.heartbeats()
    b.joins(does="joins again, with a list of no topics", subscribed_topic_names=())
    a.heartbeats()
    b.heartbeats()
    a.heartbeats()
    admin.looks_at(group)


@story(settings=CONSUMERS, sections=["848 4"])
def many_consumers_of_few_partitions(s: Story) -> None:
    """More members than partitions: some have none and are stable nevertheless."""
    group, stage = s.group(), Stagehand(s)
    topics, _ = topics_with_ids(s, stage, orders=2)
    members = [Consumer(s, name, group_id=group, topics=topics) for name in "abcdefgh"]
    for member in members:
        member.joins()
    settled(*members, rounds=4)
    admin = Watcher(s, "admin")
    admin.looks_at(group)
    members[0].leaves()
    members[1].leaves()
    settled(*members[2:], rounds=3)
    admin.looks_at(group)


@story(settings=CONSUMERS, sections=["848 3.5"])
def full_heartbeats_are_answered_in_full(s: Story) -> None:
    """Each heartbeat with all fields gets the assignment; one that lacks a field does not."""
    group, stage = s.group(), Stagehand(s)
    topics, _ = topics_with_ids(s, stage, orders=2)
    a = Consumer(s, "a", group_id=group, topics=topics)
    a.joins()
    everything: dict[str, Any] = {
        "rebalance_timeout_ms": a.rebalance_ms,
        "subscribed_topic_names": tuple(topics),
        "topic_partitions": (),
    }
    a.heartbeats(does="says everything", **everything)
    for name in everything:
        fewer = {key: value for key, value in everything.items() if key != name}
        a.heartbeats(does=f"leaves out {name}", **fewer)
    a.heartbeats(does="says a regular expression too", **everything, subscribed_topic_regex="")
    a.heartbeats(does="says an assignor too", **everything, server_assignor="uniform")
    a.heartbeats(
        does="says an empty regular expression and no topics",
        rebalance_timeout_ms=a.rebalance_ms,
        subscribed_topic_regex="",
        topic_partitions=(),
    )
    a.heartbeats(does="says everything in version 0", version=0, **everything)

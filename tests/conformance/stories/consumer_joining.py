"""ConsumerGroupHeartbeat: how members join consumer groups (KIP-848)."""

from typing import Any

from tests.conformance.actors import Stagehand
from tests.conformance.consumers import Consumer, Watcher, topics_with_ids
from tests.conformance.settings import CONSUMERS
from tests.conformance.story import Story, story


@story(settings=CONSUMERS, sections=["848 3.5"])
def the_first_consumer_of_a_group(s: Story) -> None:
    """One member joins, heartbeats with and without owned partitions and with all fields, and leaves."""
    group, stage = s.group(), Stagehand(s)
    topics, _ = topics_with_ids(s, stage, orders=3)
    a = Consumer(s, "a", group_id=group, topics=topics)
    admin = Watcher(s, "admin")
    admin.looks_at(group)
    a.joins()
    admin.looks_at(group)
    a.heartbeats()
    a.owns()
    a.heartbeats(does="says everything again", **everything(a))
    a.leaves()
    admin.looks_at(group)


def everything(member: Consumer) -> dict[str, Any]:
    """What a heartbeat says that says all there is."""
    request = member.join_request()
    names = ("rack_id", "rebalance_timeout_ms", "subscribed_topic_names", "subscribed_topic_regex", "server_assignor")
    said = {name: getattr(request, name) for name in names}
    return {**said, "topic_partitions": ()}


@story(settings=CONSUMERS, sections=["848 3.5", "848 4"])
def a_second_consumer_joins(s: Story) -> None:
    """Two members with one topic: the second gets its partitions only when the first has confirmed their revocation."""
    group, stage = s.group(), Stagehand(s)
    topics, _ = topics_with_ids(s, stage, orders=4)
    a, b = Consumer(s, "a", group_id=group, topics=topics), Consumer(s, "b", group_id=group, topics=topics)
    admin = Watcher(s, "admin")
    a.joins()
    b.joins()
    admin.looks_at(group)
    b.heartbeats()
    a.heartbeats()
    admin.looks_at(group)
    a.heartbeats(does="heartbeats, without saying what it owns")
    a.owns(does="says that it has given back")
    admin.looks_at(group)
    b.heartbeats()
    admin.looks_at(group)
    b.owns()
    a.heartbeats()
    b.leaves()
    admin.looks_at(group)
    a.heartbeats()
    a.leaves()
    admin.looks_at(group)

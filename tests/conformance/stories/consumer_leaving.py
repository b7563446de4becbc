"""How members leave consumer groups (KIP-848)."""

from typing import Any

from tests.conformance.actors import Stagehand
from tests.conformance.consumers import Consumer, Watcher, settled, topics_with_ids
from tests.conformance.members import Member
from tests.conformance.settings import CONSUMERS
from tests.conformance.story import Story, story


@story(settings=CONSUMERS, sections=["848 3.6"])
def every_way_to_leave_a_consumer_group(s: Story) -> None:
    """With and without an instance id, with its own and another one, twice, and from missing groups."""
    group, stage = s.group(), Stagehand(s)
    topics, _ = topics_with_ids(s, stage, orders=4)
    a = Consumer(s, "a", group_id=group, topics=topics)
    b = Consumer(s, "b", group_id=group, topics=topics, instance="i")
    admin = Watcher(s, "admin")
    for epoch in (-1, -2):
        a.leaves(epoch, does=f"leaves a group that is not there with {epoch}", group_id="nowhere", instance_id="i")
    a.joins()
    b.joins()
    settled(a, b)
    for epoch in (-1, -2):
        a.leaves(epoch, does=f"leaves with {epoch} and an unknown instance id", instance_id="j")
        a.leaves(epoch, does=f"leaves with {epoch} and another's instance id", instance_id="i")
        a.leaves(epoch, does=f"leaves with {epoch} and an unknown member id", member_id="z")
        b.leaves(epoch, does=f"leaves with {epoch} and an unknown member id", member_id="z")
        b.leaves(epoch, does=f"leaves with {epoch} and an empty instance id", instance_id="")
    b.leaves(-2, does="leaves for now without its instance id", instance_id=None)
    b.leaves(-2)
    admin.looks_at(group)
    b.leaves(-2, does="leaves for now again")
    b.heartbeats(does="heartbeats with epoch -2")
    b.heartbeats(does="heartbeats with its old epoch", member_epoch=3)
    b.leaves(-1, does="leaves for good without its instance id", instance_id=None)
    admin.looks_at(group)
    b.leaves(-1, does="leaves for good again")
    a.leaves(-1, does="leaves with everything said", **{**said(a), "topic_partitions": ()})
    a.leaves(-1, does="leaves again")
    admin.looks_at(group)
    admin.lists(types=["consumer"])
    admin.deletes(group)
    admin.looks_at(group)
    a.leaves(-1, does="leaves the group that was deleted")


def said(member: Consumer) -> dict[str, Any]:
    """What a first heartbeat says beside its ids."""
    return {
        "rebalance_timeout_ms": member.rebalance_ms,
        "subscribed_topic_names": tuple(member.topics or ()),
        "server_assignor": "range",
    }


@story(settings=CONSUMERS, sections=["848 3.6", "848 15"])
def a_consumer_group_keeps_its_epoch(s: Story) -> None:
    """A group that became empty continues at its epoch, unless it was deleted."""
    group, stage = s.group(), Stagehand(s)
    topics, _ = topics_with_ids(s, stage, orders=1)
    a, admin = Consumer(s, "a", group_id=group, topics=topics), Watcher(s, "admin")
    for _ in range(3):
        a.joins()
        admin.looks_at(group)
        a.leaves()
        admin.looks_at(group)
    admin.deletes(group)
    a.joins()
    admin.deletes(group)
    a.leaves()


@story(settings=CONSUMERS, sections=["848 12.3"])
def classic_goodbyes_to_members_of_a_consumer_group(s: Story) -> None:
    """LeaveGroup in every version, by member id and by instance id."""
    stage = Stagehand(s)
    topics, _ = topics_with_ids(s, stage, orders=3)
    admin = Watcher(s, "admin")
    for version in range(6):
        group = s.group(f"v{version}")
        a, b = Consumer(s, "a", group_id=group, topics=topics), Consumer(s, "b", group_id=group, topics=topics)
        c = Consumer(s, "c", group_id=group, topics=topics, instance="i")
        for member in (a, b, c):
            member.joins()
        admin.removes(group, ("nobody", None), version=version)
        admin.removes(group, ("a", None), version=version)
        a.heartbeats()
        if version >= 3:
            admin.removes(group, ("b", "i"), ("b", None), ("b", None), "j", version=version)
            admin.removes(group, ("c", "j"), ("b", "i"), "i", version=version)
            admin.removes(group, version=version)
        admin.looks_at(group)
    admin.removes(s.group("unknown"), ("a", None))
    classic = Member(s, "m", group_id=s.group("v0"))
    classic.heartbeats(member_id="b", generation_id=4)
    classic.heartbeats(member_id="nobody", generation_id=4)

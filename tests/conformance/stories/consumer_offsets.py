"""Offsets of consumer groups: commits and fetches by epoch, in every version (KIP-848, KIP-1251)."""

from tests.conformance.actors import Stagehand
from tests.conformance.consumers import Consumer, Watcher, settled, topics_with_ids
from tests.conformance.settings import CONSUMERS
from tests.conformance.story import Story, story


@story(settings=CONSUMERS, sections=["848 11"])
def every_version_of_commits_by_consumers(s: Story) -> None:
    """With the right, a future, an older or no epoch; as the member, as another member, without a member id."""
    group, stage = s.group(), Stagehand(s)
    topics, ids = topics_with_ids(s, stage, orders=2)
    topic = topics[0]
    a = Consumer(s, "a", group_id=group, topics=topics, ids=ids)
    admin = Watcher(s, "admin", ids=dict(ids))
    a.joins()
    for version in range(2, 11):
        a.commits({(topic, 0): version}, version)
        a.commits({(topic, 0): 100}, version, does="commits with a future epoch", generation_id_or_member_epoch=3)
        a.commits({(topic, 0): 101}, version, does="commits with an older epoch", generation_id_or_member_epoch=1)
        a.commits({(topic, 0): 102}, version, does="commits with epoch 0", generation_id_or_member_epoch=0)
        a.commits({(topic, 0): 103}, version, does="commits with epoch -1", generation_id_or_member_epoch=-1)
        a.commits({(topic, 0): 104}, version, does="commits with epoch -2", generation_id_or_member_epoch=-2)
        a.commits({(topic, 0): 105}, version, does="commits as another member", member_id="z")
        a.commits({(topic, 0): 106}, version, does="commits as nobody, with an epoch", member_id="")
        a.commits({(topic, 0): version}, version, does="commits with an instance id", group_instance_id="i")
        admin.commits(group, {(topic, 0): 107}, version)
    a.fetches_offsets({topic: [0, 1]})


@story(settings=CONSUMERS, sections=["848 11"])
def every_version_of_offset_fetches_by_consumers(s: Story) -> None:
    """With the right, another or no epoch, as another member, without a member id; named topics and all topics."""
    group, stage = s.group(), Stagehand(s)
    topics, ids = topics_with_ids(s, stage, orders=2)
    topic = topics[0]
    a = Consumer(s, "a", group_id=group, topics=topics, ids=ids)
    a.joins()
    a.commits({(topic, 0): (5, "m", 3)})
    for version in range(1, 11):
        a.fetches_offsets({topic: [1, 0]}, version)
        if version < 8:
            continue
        a.fetches_offsets(None, version)
        a.fetches_offsets({topic: [0]}, version, member_epoch=1)
        a.fetches_offsets({topic: [0]}, version, member_epoch=3)
        a.fetches_offsets({topic: [0]}, version, member_epoch=-1)
        a.fetches_offsets(None, version, member_epoch=7)
        a.fetches_offsets({topic: [0]}, version, member_id="z")
        a.fetches_offsets({topic: [0]}, version, member_id="z", member_epoch=-1)
        a.fetches_offsets({topic: [0]}, version, member_id="", member_epoch=-1)
        a.fetches_offsets({topic: [0]}, version, member_id="", member_epoch=2)
        a.fetches_offsets({topic: [0]}, version, member_id=None, member_epoch=-1)
        a.fetches_offsets({topic: [0]}, version, member_id=None, member_epoch=2)
        a.fetches_offsets({topic: [0]}, version, group_id=s.group("missing"))
        a.fetches_offsets({topic: [0]}, version, stable=True)
    a.leaves()
    for version in (8, 9, 10):
        a.fetches_offsets({topic: [0]}, version, member_epoch=2)
        a.fetches_offsets({topic: [0]}, version, member_id=None, member_epoch=-1)


@story(settings=CONSUMERS, sections=["848 11"])
def commits_with_the_epoch_before(s: Story) -> None:
    """For each partition the coordinator stores the epoch at which the member got it (KIP-1251)."""
    group, stage = s.group(), Stagehand(s)
    topics, ids = topics_with_ids(s, stage, orders=6)
    topic = topics[0]
    a, b, c = (Consumer(s, name, group_id=group, topics=topics, ids=ids) for name in "abc")
    a.joins()
    b.joins()
    settled(a, b)
    c.joins()
    settled(a, b, c)
    c.leaves()
    settled(a, b)
    Watcher(s, "admin").looks_at(group)
    for epoch in range(-1, 8):
        for version in (9, 10):
            for member in (a, b):
                for partition in range(6):
                    member.commits(
                        {(topic, partition): epoch + 10},
                        version,
                        does=f"commits partition {partition} with epoch {epoch}",
                        generation_id_or_member_epoch=epoch,
                    )
    a.commits({(topic, 0): 50, (topic, 5): 51}, 9, does="commits two of different age", generation_id_or_member_epoch=4)
    a.commits({(topic, 0): 52, (topic, 1): 53}, 9, does="commits two of one age", generation_id_or_member_epoch=3)
    a.commits(
        {(topic, 0): 54, (topic, 9): 55}, 9, does="commits one that is not there", generation_id_or_member_epoch=3
    )
    a.commits({(topic, 9): 55}, 9, does="commits one that is not there, in time")
    a.commits({("nowhere", 0): 55}, 9, does="commits a topic that is not there", generation_id_or_member_epoch=3)
    a.commits({}, 9, does="commits nothing", generation_id_or_member_epoch=3)
    a.fetches_offsets(None)


@story(settings=CONSUMERS, sections=["848 11"])
def commits_while_giving_back(s: Story) -> None:
    """Partitions that are being revoked may still be committed, only by their present owner."""
    group, stage = s.group(), Stagehand(s)
    topics, ids = topics_with_ids(s, stage, orders=4, payments=1)
    topic, other = topics
    a, b = (Consumer(s, name, group_id=group, topics=[topic], ids=ids) for name in "ab")
    a.joins()
    a.commits({(topic, 3): 1})
    b.joins()
    a.commits({(topic, 3): 2}, does="commits before it knows")
    b.commits({(topic, 3): 3}, does="commits what it is to have")
    b.commits({(topic, 3): 4}, does="commits what it is to have, with an older epoch", generation_id_or_member_epoch=2)
    a.heartbeats()
    a.commits({(topic, 3): 5}, does="commits what it must give back")
    a.commits({(topic, 3): 6}, does="commits it with the target's epoch", generation_id_or_member_epoch=3)
    a.commits({(other, 0): 7}, does="commits a topic that it does not want")
    a.commits({(topic, 3): 8}, does="commits it with an older epoch", generation_id_or_member_epoch=1)
    a.owns()
    a.commits({(topic, 3): 9}, does="commits what it gave back")
    a.commits({(topic, 3): 10}, does="commits what it gave back with the old epoch", generation_id_or_member_epoch=2)
    a.commits({(topic, 0): 11}, does="commits what it kept with the old epoch", generation_id_or_member_epoch=2)
    a.commits({(topic, 0): 12}, 10, does="commits what it kept with the old epoch", generation_id_or_member_epoch=2)
    a.commits({(topic, 0): 12}, 8, does="commits what it kept with the old epoch", generation_id_or_member_epoch=2)
    b.heartbeats()
    b.commits({(topic, 3): 13})
    b.commits({(topic, 3): 14}, does="commits with an older epoch", generation_id_or_member_epoch=2)
    a.fetches_offsets({topic: [0, 3]}, member_epoch=2)
    a.fetches_offsets({topic: [0, 3]})


@story(settings=CONSUMERS, sections=["848 11"])
def commits_of_those_who_are_not_there(s: Story) -> None:
    """To missing, empty and full groups, without a member id, after leaving, and from a static member that is away."""
    group, stage = s.group(), Stagehand(s)
    topics, ids = topics_with_ids(s, stage, orders=1)
    topic = topics[0]
    a = Consumer(s, "a", group_id=group, topics=topics, ids=ids)
    b = Consumer(s, "b", group_id=group, topics=topics, ids=ids, instance="i")
    admin = Watcher(s, "admin", ids=dict(ids))
    for version in (8, 9, 10):
        a.commits({(topic, 0): 1}, version, does="commits to a missing group", generation_id_or_member_epoch=3)
        a.commits({(topic, 0): 1}, version, does="commits to a missing group", generation_id_or_member_epoch=0)
    b.joins()
    b.leaves(-2)
    b.commits({(topic, 0): 2}, does="commits while it is away")
    b.commits({(topic, 0): 3}, does="commits with its old epoch", generation_id_or_member_epoch=2)
    b.commits({(topic, 0): 3}, does="commits with epoch 0", generation_id_or_member_epoch=0)
    b.commits({(topic, 0): 4}, does="commits with -1", generation_id_or_member_epoch=-1)
    b.fetches_offsets({topic: [0]})
    b.joins(does="joins again")
    b.commits({(topic, 0): 5})
    b.commits({(topic, 0): 6}, does="commits with an older epoch", generation_id_or_member_epoch=1)
    b.leaves()
    for version in (2, 5, 8, 9, 10):
        b.commits({(topic, 0): 7}, version, does="commits after it left", generation_id_or_member_epoch=2)
        b.commits({(topic, 0): 8}, version, does="commits with -1 after it left", generation_id_or_member_epoch=-1)
        admin.commits(group, {(topic, 0): 9}, version)
    a.joins()
    admin.commits(group, {(topic, 0): 10})
    admin.fetches(group, None)


@story(settings=CONSUMERS, sections=["848 10.2"])
def deleting_offsets_of_consumer_groups(s: Story) -> None:
    """Offsets of subscribed topics cannot be deleted, in any state."""
    group, stage = s.group(), Stagehand(s)
    topics, ids = topics_with_ids(s, stage, orders=2, payments=2)
    orders, payments = topics
    a = Consumer(s, "a", group_id=group, topics=[orders], ids=ids)
    b = Consumer(s, "b", group_id=group, topics=[payments, "nowhere"], ids=ids)
    admin = Watcher(s, "admin")
    a.joins()
    b.joins()
    for member, topic in ((a, orders), (b, payments)):
        member.commits({(topic, 0): 1, (topic, 1): 2})
    admin.deletes_offsets(group, {orders: [0, 1], payments: [0, 9], "nowhere": [0], "elsewhere": [0]})
    b.leaves()
    admin.deletes_offsets(group, {orders: [0], payments: [0, 9]})
    a.heartbeats(does="wants other topics", subscribed_topic_names=(payments,))
    admin.deletes_offsets(group, {orders: [0], payments: [1]})
    a.leaves()
    admin.deletes_offsets(group, {orders: [0, 1], payments: [0, 1]})
    admin.deletes_offsets(group, {})
    admin.fetches(group, None)
    admin.deletes_offsets(s.group("missing"), {orders: [0]})

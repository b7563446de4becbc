"""Topics that are created, grow and are deleted while consumer groups subscribe to them (KIP-848)."""

from groupcoord.protocol.apis.create_partitions import CreatePartitionsTopic
from groupcoord.protocol.messages import CreatePartitionsRequest
from tests.conformance.actors import Stagehand
from tests.conformance.consumers import Consumer, Watcher, settled, topics_with_ids, until_coordinated
from tests.conformance.settings import CONSUMERS
from tests.conformance.story import Story, story


def grow(s: Story, stage: Stagehand, name: str, partitions: int) -> None:
    """More partitions for a topic, and wait until they are there."""
    wanted = CreatePartitionsTopic(name=name, count=partitions, assignments=None)
    stage.ask(CreatePartitionsRequest(topics=(wanted,), timeout_ms=10_000, validate_only=False))
    stage.knows(name, partitions)
    until_coordinated(s, stage, s.name, name, partitions)


def create(s: Story, stage: Stagehand, suffix: str, partitions: int) -> None:
    """A topic that the coordinator knows."""
    until_coordinated(s, stage, s.name, stage.topic(suffix, partitions=partitions), partitions)


def delete(s: Story, stage: Stagehand, name: str) -> None:
    """A topic that the coordinator does not know any more."""
    stage.deletes(name)
    until_coordinated(s, stage, s.name, name, 0)


@story(settings=CONSUMERS, sections=["848 5.1"])
def a_topic_is_created_after_it_was_wanted(s: Story) -> None:
    """Nothing happens until a member heartbeats; then its partitions are assigned."""
    group, stage = s.group(), Stagehand(s)
    name = s.topic_name("later")
    a, b = (Consumer(s, each, group_id=group, topics=[name]) for each in "ab")
    admin = Watcher(s, "admin")
    a.joins()
    b.joins()
    settled(a, b)
    admin.looks_at(group)
    create(s, stage, "later", 3)
    admin.looks_at(group)
    b.heartbeats()
    admin.looks_at(group)
    a.heartbeats()
    admin.looks_at(group)
    settled(a, b)


@story(settings=CONSUMERS, sections=["848 5.1"])
def a_topic_grows(s: Story) -> None:
    """New partitions are assigned at the next heartbeat of any member."""
    group, stage = s.group(), Stagehand(s)
    topics, _ = topics_with_ids(s, stage, orders=2, payments=1)
    a, b = (Consumer(s, each, group_id=group, topics=topics[:1]) for each in "ab")
    admin = Watcher(s, "admin")
    a.joins()
    b.joins()
    settled(a, b)
    grow(s, stage, topics[0], 5)
    admin.looks_at(group)
    a.heartbeats()
    admin.looks_at(group)
    b.heartbeats()
    settled(a, b)
    grow(s, stage, topics[1], 2)
    a.heartbeats(does="heartbeats after another topic has grown")
    admin.looks_at(group)
    a.leaves()
    b.leaves()
    grow(s, stage, topics[0], 6)
    admin.looks_at(group)
    a.joins(does="joins after it has grown again")
    admin.looks_at(group)


@story(settings=CONSUMERS, sections=["848 5.1", "848 10.1"])
def a_topic_is_deleted(s: Story) -> None:
    """Its partitions disappear from descriptions at once, from assignments with heartbeats; created again, it is another
    topic."""
    group, stage = s.group(), Stagehand(s)
    topics, ids = topics_with_ids(s, stage, orders=2, payments=2)
    orders, payments = topics
    a, b = (Consumer(s, each, group_id=group, topics=topics, ids=ids, assignor="range") for each in "ab")
    admin = Watcher(s, "admin")
    a.joins()
    b.joins()
    settled(a, b)
    admin.looks_at(group)
    delete(s, stage, payments)
    admin.looks_at(group)
    a.heartbeats()
    admin.looks_at(group)
    b.heartbeats()
    settled(a, b)
    admin.looks_at(group)
    a.commits({(payments, 0): 1}, does="commits the topic that is gone")
    create(s, stage, "payments", 3)
    admin.looks_at(group)
    a.heartbeats()
    admin.looks_at(group)
    b.heartbeats()
    settled(a, b)
    admin.looks_at(group)
    delete(s, stage, orders)
    delete(s, stage, payments)
    b.heartbeats()
    settled(a, b)
    admin.looks_at(group)


@story(settings=CONSUMERS, sections=["848 5.1"])
def a_topic_is_made_anew_between_heartbeats(s: Story) -> None:
    """It is deleted and created again with the same name, without a heartbeat in between."""
    group, stage = s.group(), Stagehand(s)
    topics, ids = topics_with_ids(s, stage, orders=2)
    a, admin = Consumer(s, "a", group_id=group, topics=topics, ids=ids), Watcher(s, "admin")
    a.joins()
    a.commits({(topics[0], 0): 5})
    old = a.assigned
    delete(s, stage, topics[0])
    create(s, stage, "orders", 3)
    admin.looks_at(group)
    a.owns(old, does="owns the old partitions")
    admin.looks_at(group)
    a.owns()
    a.fetches_offsets(None)
    admin.looks_at(group)
    a.leaves()

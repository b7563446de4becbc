"""Subscriptions of members of consumer groups, and their changes (KIP-848)."""

from tests.conformance.actors import Stagehand
from tests.conformance.consumers import Consumer, Watcher, settled, topics_with_ids
from tests.conformance.settings import CONSUMERS
from tests.conformance.story import Story, story


@story(settings=CONSUMERS, sections=["848 5"])
def a_consumer_that_changes_its_topics(s: Story) -> None:
    """More topics, fewer topics, others, none, and topics that do not exist."""
    group, stage = s.group(), Stagehand(s)
    topics, ids = topics_with_ids(s, stage, orders=2, payments=3, refunds=1)
    orders, payments, refunds = topics
    a, admin = Consumer(s, "a", group_id=group, topics=[orders]), Watcher(s, "admin")
    a.joins()
    a.heartbeats(does="wants payments too", subscribed_topic_names=(orders, payments))
    a.owns()
    a.heartbeats(does="wants only payments", subscribed_topic_names=(payments,))
    admin.looks_at(group)
    a.owns({ids[orders]: [0, 1], ids[payments]: [0, 1, 2]}, does="has not given back yet")
    a.owns({ids[orders]: [1], ids[payments]: [0, 1, 2]}, does="has given one back")
    a.owns({ids[payments]: [0, 1, 2]}, does="has given back")
    admin.looks_at(group)
    a.heartbeats(
        does="wants only refunds, and owns nothing any more",
        subscribed_topic_names=(refunds,),
        topic_partitions=(),
    )
    admin.looks_at(group)
    a.heartbeats(does="wants nothing", subscribed_topic_names=())
    a.owns()
    admin.looks_at(group)
    a.heartbeats(does="wants what is not there", subscribed_topic_names=("nowhere",))
    a.heartbeats(does="wants everything", subscribed_topic_names=(refunds, "nowhere", payments, orders))
    a.owns()
    admin.looks_at(group)


@story(settings=CONSUMERS, sections=["848 5"])
def consumers_that_want_different_topics(s: Story) -> None:
    """One topic each, one in common, and a change while another member revokes partitions."""
    group, stage = s.group(), Stagehand(s)
    topics, _ = topics_with_ids(s, stage, orders=4, payments=2)
    orders, payments = topics
    a = Consumer(s, "a", group_id=group, topics=[orders])
    b = Consumer(s, "b", group_id=group, topics=[payments])
    admin = Watcher(s, "admin")
    a.joins()
    b.joins()
    settled(a, b)
    admin.looks_at(group)
    b.heartbeats(does="wants both", subscribed_topic_names=(orders, payments))
    settled(a, b)
    admin.looks_at(group)
    b.heartbeats(does="wants only orders", subscribed_topic_names=(orders,))
    settled(b, a)
    admin.looks_at(group)
    a.heartbeats(does="wants only payments", subscribed_topic_names=(payments,))
    b.heartbeats()
    settled(b, a)
    admin.looks_at(group)
    a.leaves()
    b.heartbeats(does="wants the topics again that it has", subscribed_topic_names=(orders,))
    b.owns()
    admin.looks_at(group)


@story(settings=CONSUMERS, sections=["848 4"])
def a_topic_given_up_while_giving_back(s: Story) -> None:
    """Partitions of a topic that is no longer subscribed are added to those being revoked."""
    group, stage = s.group(), Stagehand(s)
    topics, ids = topics_with_ids(s, stage, orders=4, payments=2)
    orders, payments = topics
    a, b = Consumer(s, "a", group_id=group, topics=topics), Consumer(s, "b", group_id=group, topics=[orders])
    admin = Watcher(s, "admin")
    a.joins()
    b.joins()
    a.heartbeats()
    admin.looks_at(group)
    a.heartbeats(does="does not want payments any more", subscribed_topic_names=(orders,))
    admin.looks_at(group)
    a.owns({ids[payments]: [0]}, does="still owns some payments")
    a.owns()
    admin.looks_at(group)
    settled(a, b)
    a.heartbeats(does="wants payments again", subscribed_topic_names=tuple(topics), topic_partitions=())
    a.owns()
    a.heartbeats(does="wants only payments, and owns nothing", subscribed_topic_names=(payments,), topic_partitions=())
    settled(b, a)
    admin.looks_at(group)


@story(settings=CONSUMERS, sections=["848 5.2"])
def names_and_owned_partitions_in_one_heartbeat(s: Story) -> None:
    """A change of topics together with owned partitions: once still owned, once already revoked."""
    group, stage = s.group(), Stagehand(s)
    topics, ids = topics_with_ids(s, stage, orders=2, payments=2)
    orders, payments = topics
    a, admin = Consumer(s, "a", group_id=group, topics=[orders]), Watcher(s, "admin")
    a.joins()
    a.owns({ids[orders]: [0, 1]}, does="wants payments, and owns orders", subscribed_topic_names=(payments,))
    admin.looks_at(group)
    a.owns({}, does="owns nothing")
    a.owns({}, does="wants orders, and owns nothing", subscribed_topic_names=(orders,))
    admin.looks_at(group)
    a.joins(does="joins again with payments", subscribed_topic_names=(payments,))
    admin.looks_at(group)
    a.heartbeats(
        does="wants no topics, and no regular expression", subscribed_topic_names=(), subscribed_topic_regex=""
    )
    a.owns({}, does="owns nothing")
    admin.looks_at(group)

"""Epochs of members of consumer groups: fencing, and lost responses (KIP-848)."""

from tests.conformance.actors import Stagehand
from tests.conformance.consumers import Consumer, Watcher, settled, topics_with_ids
from tests.conformance.settings import CONSUMERS
from tests.conformance.story import Story, story


@story(settings=CONSUMERS, sections=["848 3.4"])
def answers_to_consumers_that_got_lost(s: Story) -> None:
    """The previous epoch is accepted from a member that owns no more partitions than it is assigned."""
    group, stage = s.group(), Stagehand(s)
    topics, ids = topics_with_ids(s, stage, orders=4)
    topic = ids[topics[0]]
    a, b = (Consumer(s, name, group_id=group, topics=topics) for name in "ab")
    a.joins()
    b.joins()
    a.heartbeats()
    a.owns()
    a.owns({topic: [0, 1]}, does="asks again with the epoch before", member_epoch=2)
    a.owns({topic: [0]}, does="asks again, owning less", member_epoch=2)
    a.owns({}, does="asks again, owning nothing", member_epoch=2)
    a.owns({topic: [0, 1, 2]}, does="asks again, owning more", member_epoch=2)
    a.heartbeats(does="asks again, not saying what it owns", member_epoch=2)
    a.owns({topic: [0, 1]}, does="asks with an older epoch", member_epoch=1)
    a.heartbeats(does="heartbeats on", member_epoch=3)
    b.heartbeats()
    b.owns({}, does="asks again as it was before", member_epoch=3)
    b.joins(does="joins again as if the first answer was lost")
    b.heartbeats()
    Watcher(s, "admin").looks_at(group)


@story(settings=CONSUMERS, sections=["848 3.4"])
def the_first_answer_got_lost(s: Story) -> None:
    """A member that got no response to its first heartbeat joins again, twice, before and after others."""
    group, stage = s.group(), Stagehand(s)
    topics, _ = topics_with_ids(s, stage, orders=2)
    a, b = (Consumer(s, name, group_id=group, topics=topics) for name in "ab")
    a.joins()
    a.joins(does="joins again")
    a.joins(does="joins again with another timeout", rebalance_timeout_ms=5)
    b.joins()
    b.joins(does="joins again")
    a.joins(does="joins again")
    b.joins(does="joins again")
    a.owns()
    b.owns()
    Watcher(s, "admin").looks_at(group)


@story(settings=CONSUMERS, sections=["848 3.4"])
def consumers_are_fenced_by_their_epoch(s: Story) -> None:
    """Lower and higher epochs in each state of a member."""
    group, stage = s.group(), Stagehand(s)
    topics, ids = topics_with_ids(s, stage, orders=3)
    topic = ids[topics[0]]
    a, b, c = (Consumer(s, name, group_id=group, topics=topics) for name in "abc")

    def each_epoch(member: Consumer) -> None:
        known = member.epoch
        for epoch in range(1, known + 2):
            if epoch != known:
                member.heartbeats(does=f"heartbeats with epoch {epoch}", member_epoch=epoch)
                member.epoch = known
                member.owns({}, does=f"owns nothing, with epoch {epoch}", member_epoch=epoch)
                member.epoch = known

    a.joins()
    each_epoch(a)
    b.joins()
    each_epoch(b)
    a.heartbeats()
    each_epoch(a)
    a.owns({topic: [0, 1]}, does="has given back")
    c.joins()
    each_epoch(c)
    each_epoch(b)
    each_epoch(a)
    settled(a, b, c)
    each_epoch(a)
    Watcher(s, "admin").looks_at(group)


@story(settings=CONSUMERS, sections=["848 5.1"])
def what_moves_the_epoch_of_a_group(s: Story) -> None:
    """Only changes that can affect the assignment increase it."""
    group, stage = s.group(), Stagehand(s)
    topics, _ = topics_with_ids(s, stage, orders=2, payments=2)
    a, admin = Consumer(s, "a", group_id=group, topics=topics[:1]), Watcher(s, "admin")
    a.joins()
    a.heartbeats(does="has another client id now")
    a.client_id = "other"
    a.heartbeats(does="has another client id now")
    a.heartbeats(does="has another rack", rack_id="r")
    a.heartbeats(does="wants another assignor", server_assignor="range")
    a.heartbeats(does="has another timeout", rebalance_timeout_ms=9000)
    admin.looks_at(group)
    a.heartbeats(does="says the same topics", subscribed_topic_names=tuple(topics[:1]))
    a.heartbeats(does="says the same topics twice", subscribed_topic_names=(topics[0], topics[0]))
    a.heartbeats(does="says more topics", subscribed_topic_names=tuple(topics))
    a.heartbeats(does="says them in another order", subscribed_topic_names=tuple(reversed(topics)))
    a.heartbeats(does="says a topic that is not there, too", subscribed_topic_names=(*topics, "nowhere"))
    a.heartbeats(does="says no topics", subscribed_topic_names=())
    a.owns()
    admin.looks_at(group)
    a.heartbeats(does="says a topic again", subscribed_topic_names=tuple(topics[1:]))
    admin.looks_at(group)

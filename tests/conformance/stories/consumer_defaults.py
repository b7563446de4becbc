"""Consumer groups with the default configuration: assignments are computed at most once a second (KIP-848)."""

from tests.conformance.actors import Stagehand
from tests.conformance.consumers import Consumer, Watcher, topics_with_ids
from tests.conformance.settings import FAST, SHORT_MEMORY
from tests.conformance.story import Story, story

COMPUTED_MS = 300
"""Longer than a computation takes, should it be done beside the request, and much shorter than a second."""


@story(settings=FAST, sections=["848 14"], lasts_ms=4000)
def the_first_consumer_by_default(s: Story) -> None:
    """The first assignment of a group is computed at once."""
    group, stage = s.group(), Stagehand(s)
    topics, _ = topics_with_ids(s, stage, orders=3)
    a, admin = Consumer(s, "a", group_id=group, topics=topics), Watcher(s, "admin")
    a.joins()
    s.wait(COMPUTED_MS, "the assignment is computed")
    admin.looks_at(group)
    a.heartbeats()
    admin.looks_at(group)
    a.owns()
    a.leaves()
    admin.looks_at(group)
    s.wait(1500, "a second is over")
    admin.looks_at(group)


@story(settings=FAST, sections=["848 14"], lasts_ms=12000)
def more_consumers_by_default(s: Story) -> None:
    """Until the second is over the group is Assigning and all members keep the old assignment."""
    group, stage = s.group(), Stagehand(s)
    topics, _ = topics_with_ids(s, stage, orders=4)
    a, b, c = (Consumer(s, each, group_id=group, topics=topics) for each in "abc")
    admin = Watcher(s, "admin")
    a.joins()
    b.joins()
    c.joins()
    s.wait(COMPUTED_MS, "the first assignment is computed")
    admin.looks_at(group)
    a.heartbeats()
    b.heartbeats()
    admin.looks_at(group)
    s.wait(1500, "a second is over")
    c.heartbeats(does="heartbeats, which has the assignment computed")
    s.wait(COMPUTED_MS, "the assignment is computed")
    admin.looks_at(group)
    for _ in range(3):
        for member in (a, b, c):
            member.owns()
    admin.looks_at(group)
    b.leaves()
    s.wait(1500, "a second is over")
    a.owns()
    s.wait(COMPUTED_MS, "the assignment is computed")
    for _ in range(2):
        for member in (a, c):
            member.owns()
    admin.looks_at(group)
    a.heartbeats(does="wants another topic", subscribed_topic_names=("nowhere",))
    s.wait(COMPUTED_MS, "the assignment is computed, if a second is over")
    a.heartbeats()
    s.wait(1500, "a second is over")
    a.heartbeats()
    s.wait(COMPUTED_MS, "the assignment is computed")
    a.owns()
    c.owns()
    admin.looks_at(group)


@story(settings=SHORT_MEMORY, sections=["848 10.2"], lasts_ms=6000)
def an_empty_consumer_group_vanishes(s: Story) -> None:
    """Without offsets it is deleted at the next check for expired offsets."""
    group, stage = s.group(), Stagehand(s)
    topics, _ = topics_with_ids(s, stage, orders=1)
    a, admin = Consumer(s, "a", group_id=group, topics=topics), Watcher(s, "admin")
    a.joins()
    s.wait(1500, "offsets are looked through several times")
    admin.looks_at(group)
    a.heartbeats()
    a.commits({(topics[0], 0): 1})
    a.leaves()
    s.wait(1500, "offsets are looked through several times")
    admin.looks_at(group)
    admin.deletes_offsets(group, {topics[0]: [0]})
    s.wait(1500, "offsets are looked through several times")
    admin.looks_at(group)
    a.joins()

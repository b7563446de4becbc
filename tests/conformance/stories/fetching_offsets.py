"""OffsetFetch: missing offsets, several groups in one request, and the effect of members and states (none)."""

from dataclasses import replace

from tests.conformance.actors import Stagehand
from tests.conformance.admin import Admin, fetch_offsets
from tests.conformance.members import Member, stable
from tests.conformance.story import Story, story


@story(gotchas=[37, 38, 39], sections=["9.3"])
def offsets_that_are_not_there(s: Story) -> None:
    """A missing group, topic, partition or offset: -1 without an error; all topics of a missing group are none."""
    topic = Stagehand(s).topic("orders", partitions=2)
    group, admin = s.group(), Admin(s, "admin")
    unknown = s.topic_name("unknown")
    admin.commits(group, {(topic, 0): (3, "x")})
    for version in (1, 2, 5, 7, 8, 9):
        admin.fetches(group, {topic: [0, 1, 99, -1], unknown: [0]}, version)
        admin.fetches(s.group("missing"), {topic: [0]}, version)
        if version > 1:
            admin.fetches(s.group("missing"), None, version)
        admin.fetches("", {topic: [0]}, version)
    admin.fetches(group, {topic: []})
    admin.fetches(group, {topic: [0], unknown: []}, stable=True)
    admin.fetches(group, None, stable=True)


@story(sections=["9.3"])
def offsets_of_several_groups(s: Story) -> None:
    """Groups in one request are independent; the response keeps their order, including a group listed twice."""
    topic = Stagehand(s).topic("orders", partitions=2)
    one, two, missing = s.group("one"), s.group("two"), s.group("missing")
    admin = Admin(s, "admin")
    admin.commits(one, {(topic, 0): (1, "one")})
    admin.commits(two, {(topic, 1): (2, "two")})
    for version in (8, 9):
        admin.fetches_many({two: {topic: [0, 1]}, missing: {topic: [0]}, one: None, "": None}, version)
    admin.fetches_many({})
    twice = fetch_offsets(9, {one: None})

    admin.asks(replace(twice, groups=twice.groups + twice.groups), 9, does="asks for a group twice")


@story(sections=["9.3"])
def member_ids_in_a_fetch(s: Story) -> None:
    """Version 9 has a member id and epoch; for a classic group they are not checked, in any state."""

    topic = Stagehand(s).topic("orders")
    group, admin = s.group(), Admin(s, "admin")
    a = Member(s, "a", group_id=group)
    stable(a)
    a.commits({(topic, 0): (1, "mine")})
    for member_id, epoch in ((None, -1), (a.member_id, 1), (a.member_id, 99), ("stranger", 1), ("", 0)):
        request = fetch_offsets(9, {group: {topic: [0]}})
        (wanted,) = request.groups
        changed = replace(request, groups=(replace(wanted, member_id=member_id, member_epoch=epoch),))
        admin.asks(changed, 9, does=f"fetches as {'nobody' if member_id is None else 'somebody'} in epoch {epoch}")
    a.joins(does="rejoins")
    admin.fetches(group, None)
    a.leaves()
    admin.fetches(group, None)


@story(sections=["9.3"])
def the_order_of_all_topics(s: Story) -> None:
    """A request for all topics gets them in the order of the broker's hash tables: the same each time."""
    stage = Stagehand(s)
    group, admin = s.group(), Admin(s, "admin")
    topics = [stage.topic(name, partitions=4) for name in ("a", "b", "c", "d", "e")]
    for topic in topics:
        admin.commits(group, {(topic, 3): 3, (topic, 1): 1, (topic, 0): 0})
    admin.fetches(group, None)
    admin.commits(group, {(topics[2], 2): 2})
    admin.fetches(group, None)

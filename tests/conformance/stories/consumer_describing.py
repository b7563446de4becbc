"""Administration of consumer groups: ConsumerGroupDescribe, ListGroups, DescribeGroups, DeleteGroups (KIP-848)."""

from tests.conformance.actors import Stagehand
from tests.conformance.admin import Admin
from tests.conformance.consumers import Consumer, Watcher, settled, topics_with_ids
from tests.conformance.members import Member, stable
from tests.conformance.settings import CONSUMERS
from tests.conformance.story import Story, story


@story(settings=CONSUMERS, sections=["848 10"])
def consumer_groups_in_every_version_and_state(s: Story) -> None:
    """Empty, Assigning, Reconciling, Stable: described, listed, described as a classic group, deleted."""
    group, stage = s.group(), Stagehand(s)
    topics, _ = topics_with_ids(s, stage, orders=4)
    a = Consumer(s, "a", group_id=group, topics=topics, rack="r1", assignor="range")
    b = Consumer(s, "b", group_id=group, topics=topics, instance="i")
    admin = Watcher(s, "admin")

    def look() -> None:
        for version in (0, 1):
            admin.looks_at(group, version=version)
        admin.looks_at(group, authorized=True)
        for version in range(3, 6):
            admin.lists(version=version)
        for version in (0, 3, 5, 6):
            admin.describes(group, version=version)
        admin.deletes(group)

    a.joins()
    look()
    b.joins()
    look()
    settled(a, b)
    look()
    a.leaves()
    look()
    b.leaves(-2)
    look()
    b.leaves()
    look()


@story(settings=CONSUMERS, sections=["848 10.2"])
def listing_consumer_groups_by_state_and_type(s: Story) -> None:
    """Filters by state and type, in upper and lower case, known and unknown, alone and together."""
    stage = Stagehand(s)
    topics, _ = topics_with_ids(s, stage, orders=2)
    admin = Watcher(s, "admin")
    empty = Consumer(s, "a", group_id=s.group("empty"), topics=topics)
    empty.joins()
    empty.leaves()
    one = Consumer(s, "a", group_id=s.group("stable"), topics=topics)
    one.joins()
    for name in "ab":
        Consumer(s, name, group_id=s.group("reconciling"), topics=topics).joins()
    gone = Consumer(s, "b", group_id=s.group("assigning"), topics=topics)
    Consumer(s, "a", group_id=s.group("assigning"), topics=topics).joins()
    gone.joins()
    gone.leaves()
    stable(Member(s, "m", group_id=s.group("classic")))
    admin.commits(s.group("simple"), {(topics[0], 0): 1})
    wanted: tuple[tuple[str, ...], ...] = (
        (),
        ("Empty",),
        ("empty", "STABLE"),
        ("Assigning",),
        ("Reconciling",),
        ("Stable",),
        ("Dead",),
        ("Odd",),
    )
    for states in wanted:
        for types in ((), ("consumer",), ("classic",)):
            admin.lists(states=states, types=types)
    for kinds in (
        ("Consumer",),
        ("CONSUMER", "classic"),
        ("share",),
        ("streams",),
        ("odd",),
        ("",),
        ("classic", "odd"),
    ):
        admin.lists(types=kinds)
    for version in range(6):
        admin.lists(version=version)


@story(settings=CONSUMERS, sections=["848 10.1"])
def describing_what_is_no_consumer_group(s: Story) -> None:
    """Missing, unnamed, classic, empty classic and simple groups; several groups, and one listed twice."""
    stage = Stagehand(s)
    topics, _ = topics_with_ids(s, stage, orders=1)
    admin, group = Watcher(s, "admin"), s.group("consumer")
    Consumer(s, "a", group_id=group, topics=topics).joins()
    classic = s.group("classic")
    member = Member(s, "m", group_id=classic)
    stable(member)
    admin.commits(s.group("simple"), {(topics[0], 0): 1})
    for version in (0, 1):
        admin.looks_at(version=version)
        admin.looks_at("", version=version)
        admin.looks_at(" ", version=version)
        admin.looks_at(s.group("missing"), version=version)
        admin.looks_at(classic, version=version)
        admin.looks_at(s.group("simple"), version=version)
        admin.looks_at(group, version=version, authorized=True)
    member.leaves()
    admin.looks_at(classic)
    admin.looks_at(group, group)
    Admin(s, "other").describes(group, classic)


@story(settings=CONSUMERS, sections=["848 10.2"])
def deleting_consumer_groups(s: Story) -> None:
    """Only empty ones are deleted, with their offsets; several in one request."""
    stage = Stagehand(s)
    topics, _ = topics_with_ids(s, stage, orders=2)
    admin = Watcher(s, "admin")
    full, empty = s.group("full"), s.group("empty")
    a, b = Consumer(s, "a", group_id=full, topics=topics), Consumer(s, "b", group_id=empty, topics=topics)
    a.joins()
    b.joins()
    b.commits({(topics[0], 0): 5, (topics[0], 1): 6})
    b.leaves()
    admin.fetches(empty, None)
    for version in range(3):
        admin.deletes(full, version=version)
    admin.deletes("", version=2)
    admin.deletes(empty)
    admin.deletes(empty)
    admin.fetches(empty, None)
    admin.looks_at(empty)
    b.heartbeats(member_epoch=3)
    b.joins(does="joins again")
    a.leaves()
    admin.deletes(full)
    b.leaves()
    admin.deletes(empty)

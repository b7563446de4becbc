"""Groups that change their type: classic to consumer and back, under each policy (KIP-848)."""

from itertools import count

from tests.conformance.actors import Stagehand
from tests.conformance.consumers import Consumer, Watcher, settled, topics_with_ids
from tests.conformance.embedded import assignment, subscription
from tests.conformance.members import Member
from tests.conformance.offsets_topic import partition_of
from tests.conformance.settings import CONSUMERS, DOWNGRADE_ONLY, NO_MIGRATION, UPGRADE_ONLY, Settings
from tests.conformance.stories.consumer_classic_members import offers
from tests.conformance.story import Story, story


def classic_group(s: Story, group: str, topics: list[str], *names: str, shares: list[list[int]]) -> list[Member]:
    """Members of one Stable generation; the first leads."""
    members = [Member(s, name, group_id=group, offers=offers(*topics)) for name in names]
    members[0].enters()
    for follower in members[1:]:
        follower.enters_parked()
    if len(members) > 1:
        members[0].joins(does="rejoins")
        for follower in members[1:]:
            follower.is_answered()
    given = {member: assignment({topics[0]: share}) for member, share in zip(members, shares, strict=True)}
    members[0].asks(members[0].sync_request(given), 5, does="syncs")
    for follower in members[1:]:
        follower.asks(follower.sync_request(), 5, does="syncs")
    return members


@story(settings=CONSUMERS, sections=["848 12.1"])
def a_classic_group_becomes_a_consumer_group(s: Story) -> None:
    """A consumer joins two classic members; one of these changes its protocol, the other leaves."""
    group, stage = s.group(), Stagehand(s)
    topics, _ = topics_with_ids(s, stage, orders=4)
    admin = Watcher(s, "admin")
    m, n = classic_group(s, group, topics, "m", "n", shares=[[0, 1], [2, 3]])
    a = Consumer(s, "a", group_id=group, topics=topics, assignor="range")
    a.joins()
    admin.looks_at(group)
    admin.describes(group)
    admin.lists()
    m.heartbeats()
    n.heartbeats()
    m.offers = offers(*topics, owned={topics[0]: [0, 1]}, generation=1)
    m.asks(m.join_request(), 9, does="rejoins with what it owns")
    m.asks(m.sync_request(), 5, does="syncs")
    n.offers = offers(*topics, owned={topics[0]: [2, 3]}, generation=1)
    n.asks(n.join_request(), 9, does="rejoins with what it owns")
    n.asks(n.sync_request(), 5, does="syncs")
    admin.looks_at(group)
    a.heartbeats()
    m.heartbeats()
    n.heartbeats()
    admin.looks_at(group)
    m.leaves()
    b = Consumer(s, "b", group_id=group, topics=topics, assignor="range")
    b.joins()
    n.heartbeats()
    n.leaves()
    settled(a, b)
    admin.looks_at(group)


@story(settings=CONSUMERS, sections=["848 12.1"])
def classic_groups_in_every_state_meet_a_consumer(s: Story) -> None:
    """Empty, simple, waiting for JoinGroup or SyncGroup, of another protocol type, with unreadable metadata."""
    stage = Stagehand(s)
    topics, _ = topics_with_ids(s, stage, orders=2)
    admin = Watcher(s, "admin")

    def meets(suffix: str) -> None:
        a = Consumer(s, "a", group_id=s.group(suffix), topics=topics, assignor="range")
        a.joins(does="joins")
        admin.looks_at(a.group_id)
        admin.describes(a.group_id)

    admin.commits(s.group("simple"), {(topics[0], 0): 5})
    meets("simple")
    admin.fetches(s.group("simple"), None)
    m = Member(s, "m", group_id=s.group("empty"), offers=offers(*topics))
    m.enters()
    m.leaves()
    meets("empty")
    named = Member(s, "m", group_id=s.group("named"), offers=offers(*topics))
    named.asks_for_an_id()
    meets("named")
    completing = Member(s, "m", group_id=s.group("completing"), offers=offers(*topics))
    completing.enters()
    meets("completing")
    completing.heartbeats()
    completing.asks(completing.sync_request(), 5, does="syncs")
    preparing = Member(s, "m", group_id=s.group("preparing"), offers=offers(*topics))
    preparing.enters()
    preparing.syncs({preparing: assignment({topics[0]: [0, 1]})})
    other = Member(s, "o", group_id=s.group("preparing"), offers=offers(*topics))
    other.enters_parked()
    meets("preparing")
    other.is_answered()
    syncing = Member(s, "m", group_id=s.group("syncing"), offers=offers(*topics))
    follower = Member(s, "f", group_id=s.group("syncing"), offers=offers(*topics))
    syncing.enters()
    follower.enters_parked()
    syncing.joins(does="rejoins")
    follower.is_answered()
    follower.syncs_parked()
    meets("syncing")
    follower.is_answered()
    connect = Member(s, "m", group_id=s.group("connect"), protocol_type="connect", offers={"default": b"x"})
    connect.enters()
    connect.syncs({connect: b"y"})
    meets("connect")
    broken = Member(s, "m", group_id=s.group("broken"), offers={"range": b"x"})
    broken.enters()
    broken.syncs({broken: b"y"})
    meets("broken")
    custom = Member(s, "m", group_id=s.group("custom"), offers={"range": subscription(*topics, user_data=b"mine")})
    custom.enters()
    custom.syncs({custom: assignment({topics[0]: [0, 1]})})
    meets("custom")
    odd = Member(s, "m", group_id=s.group("odd"), offers={"mine": subscription(*topics)})
    odd.enters()
    odd.syncs({odd: assignment({topics[0]: [0]})})
    meets("odd")
    unreadable = Member(s, "m", group_id=s.group("unreadable"), offers=offers(*topics))
    unreadable.enters()
    unreadable.syncs({unreadable: b"nonsense"})
    meets("unreadable")
    nothing = Member(s, "m", group_id=s.group("nothing"), offers=offers(*topics))
    nothing.enters()
    nothing.syncs({})
    meets("nothing")
    static = Member(s, "m", group_id=s.group("static"), offers=offers(*topics), instance="i")
    static.enters()
    static.syncs({static: assignment({topics[0]: [0, 1]})})
    meets("static")
    static.heartbeats()
    replaced = Consumer(s, "c", group_id=s.group("static"), topics=topics, assignor="range", instance="i")
    replaced.joins(does="joins in the place of the classic member")
    admin.looks_at(s.group("static"))


@story(settings=CONSUMERS, sections=["848 12.1"])
def a_leader_has_given_partitions_that_do_not_exist(s: Story) -> None:
    """The uniform assignor fails over them where members subscribe to different topics; the group stays a classic one."""
    stage, admin = Stagehand(s), Watcher(s, "admin")
    topics, _ = topics_with_ids(s, stage, orders=2)
    for suffix, share in (("after", [0, 2]), ("before", [0, -1]), ("far", [2**31 - 1])):
        group = s.group(suffix)
        (m,) = classic_group(s, group, topics, "m", shares=[share])
        a = Consumer(s, "a", group_id=group, topics=[*topics, "nowhere"], assignor="uniform")
        a.joins()
        admin.looks_at(group)
        m.heartbeats()


@story(settings=CONSUMERS, sections=["848 12.1"])
def the_first_member_that_cannot_be_upgraded_decides(s: Story) -> None:
    """Two members were given the same partition, the metadata of a third cannot be read: which error a consumer gets goes by
    their order."""
    stage, admin = Stagehand(s), Watcher(s, "admin")
    topics, _ = topics_with_ids(s, stage, orders=2)
    for suffix, broken_one in (("last", range(8, 16)), ("first", range(4))):
        group = s.group(suffix)
        m, n, o = (Member(s, each, group_id=group, offers=offers(*topics)) for each in "mno")
        o.offers = {"range": b"x"}
        admin.describes(group)
        for member, buckets in ((m, range(4, 6)), (n, range(6, 8)), (o, broken_one)):
            member.gets_an_id_in(buckets)
        m.joins()
        n.joins_parked()
        o.joins_parked()
        m.joins(does="rejoins")
        n.is_answered()
        o.is_answered()
        m.syncs({each: assignment({topics[0]: [0]}) for each in (m, n)})
        a = Consumer(s, "a", group_id=group, topics=topics, assignor="range")
        a.joins()
        admin.looks_at(group)


@story(settings=CONSUMERS, sections=["848 12.2"])
def a_consumer_group_becomes_a_classic_group(s: Story) -> None:
    """The last consumer leaves; the classic members rejoin and continue."""
    group, stage = s.group(), Stagehand(s)
    topics, _ = topics_with_ids(s, stage, orders=4)
    admin = Watcher(s, "admin")
    a = Consumer(s, "a", group_id=group, topics=topics, assignor="range")
    a.joins()
    m = Member(s, "m", group_id=group, offers=offers(*topics), member_id="m-1")
    m.asks(m.join_request(), 9, does="joins")
    m.asks(m.sync_request(), 5, does="syncs")
    a.owns()
    a.owns()
    m.asks(m.join_request(), 9, does="rejoins")
    m.asks(m.sync_request(), 5, does="syncs")
    admin.looks_at(group)
    a.leaves()
    admin.looks_at(group)
    admin.describes(group)
    admin.lists()
    a.heartbeats(member_epoch=3)
    m.heartbeats()
    m.asks(m.join_request(), 9, does="rejoins")
    m.syncs({m: assignment({topics[0]: [0, 1, 2, 3]})})
    m.heartbeats()
    admin.describes(group)
    m.leaves()


@story(settings=CONSUMERS, sections=["848 12.2"])
def the_last_consumer_is_replaced_by_a_classic_member(s: Story) -> None:
    """A static member returns with the classic protocol, with the same topics and with others."""
    stage = Stagehand(s)
    topics, _ = topics_with_ids(s, stage, orders=2)
    admin = Watcher(s, "admin")
    for what, wanted in (("same", topics), ("other", [*topics, "nowhere"])):
        group = s.group(what)
        a = Consumer(s, "a", group_id=group, topics=topics, assignor="range", instance="i")
        a.joins()
        m = Member(s, "m", group_id=group, offers=offers(*topics), member_id="m-1")
        m.asks(m.join_request(), 9, does="joins")
        m.asks(m.sync_request(), 5, does="syncs")
        settled(a)
        m.asks(m.join_request(), 9, does="rejoins")
        m.asks(m.sync_request(), 5, does="syncs")
        n = Member(s, "n", group_id=group, offers=offers(*wanted), instance="i")
        n.parks(n.join_request(), 9, does="joins in the place of the last consumer")
        admin.looks_at(group)
        admin.describes(group)
        m.heartbeats()


@story(settings=CONSUMERS, sections=["848 12.3"])
def a_classic_member_joins_an_empty_consumer_group(s: Story) -> None:
    """The group becomes a classic one; its offsets stay."""
    group, stage = s.group(), Stagehand(s)
    topics, _ = topics_with_ids(s, stage, orders=1)
    a, admin = Consumer(s, "a", group_id=group, topics=topics, assignor="range"), Watcher(s, "admin")
    a.joins()
    a.commits({(topics[0], 0): 7})
    a.leaves()
    m = Member(s, "m", group_id=group, offers=offers(*topics))
    m.heartbeats(member_id="x", generation_id=1)
    m.asks(m.sync_request(member_id="x", generation_id=1), 5, does="syncs")
    m.enters()
    m.syncs({m: b"all"})
    admin.looks_at(group)
    admin.describes(group)
    admin.fetches(group, None)
    m.leaves()
    a.joins()
    admin.looks_at(group)
    admin.fetches(group, None)


@story(settings=CONSUMERS, sections=["848 12.3"])
def a_stranger_joins_an_empty_consumer_group(s: Story) -> None:
    """A refused JoinGroup removes the group, but this is seen only when the next record of its partition is stored."""
    stage, admin = Stagehand(s), Watcher(s, "admin")
    topics, _ = topics_with_ids(s, stage, orders=1)
    for suffix in ("seen", "stored", "consumer", "member", "deleted"):
        group = s.group(suffix)
        a = Consumer(s, f"a-{suffix}", group_id=group, topics=topics)
        m = Member(s, "m", group_id=group, offers=offers(*topics))
        a.joins()
        a.leaves()
        for does in ("joins with an unknown member id", "joins so once more"):
            m.joins(does=does, member_id="unknown")
        if suffix == "seen":
            admin.looks_at(group)
            admin.describes(group)
            admin.lists()
            m.heartbeats(member_id="unknown", generation_id=1)
            admin.fetches(group, {topics[0]: [0]})
            admin.looks_at(group)
        elif suffix == "stored":
            neighbour = next(
                f"{number}" for number in count() if partition_of(f"{s.name}-{number}") == partition_of(group)
            )
            admin.commits(s.group(neighbour), {(topics[0], 0): 5})
            admin.looks_at(group)
            admin.describes(group)
            admin.lists()
        elif suffix == "consumer":
            a.joins()
            admin.looks_at(group)
        elif suffix == "member":
            m.asks_for_an_id()
            admin.describes(group)
            m.joins()
        else:
            admin.deletes(group)
            admin.looks_at(group)


def _under(setting: Settings, name: str) -> None:
    """Registers a story of both directions under a policy."""

    def tells(s: Story) -> None:
        group, stage = s.group("up"), Stagehand(s)
        topics, _ = topics_with_ids(s, stage, orders=2)
        admin = Watcher(s, "admin")
        (m,) = classic_group(s, group, topics, "m", shares=[[0, 1]])
        a = Consumer(s, "a", group_id=group, topics=topics, assignor="range")
        a.joins()
        admin.looks_at(group)
        m.heartbeats()
        m.leaves()
        a.joins(does="joins when the classic member has left")
        admin.looks_at(group)
        down = s.group("down")
        b = Consumer(s, "b", group_id=down, topics=topics, assignor="range")
        b.joins()
        n = Member(s, "n", group_id=down, offers=offers(*topics), member_id="n-1")
        n.asks(n.join_request(), 9, does="joins")
        o = Member(s, "o", group_id=down, offers=offers(*topics), member_id="o-1")
        o.asks(o.join_request(), 9, does="joins")
        p = Member(s, "p", group_id=down, offers=offers(*topics), member_id="p-1")
        p.asks(p.join_request(), 9, does="joins")
        admin.looks_at(down)
        b.leaves()
        admin.looks_at(down)
        admin.describes(down)
        n.heartbeats()
        o.leaves()
        admin.looks_at(down)
        admin.describes(down)
        n.leaves()
        empty = s.group("empty")
        c = Consumer(s, "c", group_id=empty, topics=topics, assignor="range")
        c.joins()
        c.leaves()
        q = Member(s, "q", group_id=empty, offers=offers(*topics))
        q.asks(q.join_request(), 9, does="joins an empty consumer group")
        admin.looks_at(empty)
        admin.describes(empty)

    tells.__name__, tells.__doc__ = name, f"Classic to consumer and back, and empty groups, where {setting.why}."
    story(settings=setting, sections=["848 12"])(tells)


_under(CONSUMERS, "migration_both_ways")
_under(UPGRADE_ONLY, "migration_by_upgrade_only")
_under(DOWNGRADE_ONLY, "migration_by_downgrade_only")
_under(NO_MIGRATION, "no_migration")


@story(settings=CONSUMERS, sections=["848 12.1"])
def a_consumer_group_that_cannot_become_a_classic_group(s: Story) -> None:
    """The last consumer cannot leave as long as the metadata of a classic member have no version, or one below zero."""
    stage = Stagehand(s)
    topics, _ = topics_with_ids(s, stage, orders=2)
    admin = Watcher(s, "admin")
    for name, metadata in (("none", b""), ("half", b"\0"), ("below", b"\xff\xff" + subscription(*topics)[2:])):
        group = s.group(name)
        a = Consumer(s, "a", group_id=group, topics=topics, assignor="range")
        m = Member(s, "m", group_id=group, member_id="m", offers={"": subscription(), "range": metadata})
        n = Member(s, "n", group_id=group, member_id="n", offers={"range": subscription()})
        a.joins()
        m.joins()
        m.asks(m.sync_request(), 5, does="syncs")
        n.joins()
        a.leaves()
        admin.removes(group, ("a", None))
        admin.looks_at(group)
        m.leaves()
        a.leaves()
        admin.describes(group)

"""Members of the classic protocol in consumer groups: JoinGroup, SyncGroup, Heartbeat, LeaveGroup (KIP-848)."""

from collections.abc import Mapping, Sequence

from tests.conformance.actors import Stagehand
from tests.conformance.consumers import Consumer, Watcher, settled, topics_with_ids
from tests.conformance.embedded import subscription
from tests.conformance.members import Member
from tests.conformance.settings import CONSUMERS
from tests.conformance.story import Story, story


def offers(
    *topics: str, owned: Mapping[str, Sequence[int]] | None = None, generation: int = -1, version: int = 3
) -> dict[str, bytes]:
    """What a consumer of the classic protocol offers: range, with what it owns."""
    return {"range": subscription(*topics, version=version, owned=owned, generation=generation)}


@story(settings=CONSUMERS, sections=["848 12.3"])
def a_classic_member_joins_a_consumer_group(s: Story) -> None:
    """Both steps of its join, its assignment, heartbeats in each phase, and LeaveGroup."""
    group, stage = s.group(), Stagehand(s)
    topics, _ = topics_with_ids(s, stage, orders=4)
    a, admin = Consumer(s, "a", group_id=group, topics=topics), Watcher(s, "admin")
    m = Member(s, "m", group_id=group, offers=offers(*topics))
    a.joins()
    m.asks(m.join_request(member_id=""), 9, does="asks for a member id")
    m.asks(m.join_request(), 9, does="joins")
    admin.looks_at(group)
    admin.looks_at(group, version=0)
    admin.describes(group)
    m.asks(m.sync_request(), 5, does="syncs")
    m.heartbeats()
    a.heartbeats()
    m.heartbeats()
    a.owns()
    m.heartbeats()
    m.asks(m.join_request(), 9, does="rejoins")
    m.asks(m.sync_request(), 5, does="syncs")
    m.heartbeats()
    admin.looks_at(group)
    m.offers = offers(*topics, owned={topics[0]: [2, 3]}, generation=m.generation)
    m.asks(m.join_request(), 9, does="rejoins with what it owns")
    m.asks(m.sync_request(), 5, does="syncs")
    a.heartbeats(does="heartbeats with more topics", subscribed_topic_names=(*topics, "nowhere"))
    m.heartbeats()
    m.asks(m.sync_request(), 5, does="syncs")
    m.asks(m.join_request(), 9, does="rejoins")
    m.asks(m.sync_request(), 5, does="syncs")
    m.heartbeats()
    m.leaves()
    admin.looks_at(group)
    a.owns()
    admin.looks_at(group)


@story(settings=CONSUMERS, sections=["848 12.3"])
def every_version_of_classic_requests_to_a_consumer_group(s: Story) -> None:
    """JoinGroup, SyncGroup, Heartbeat and LeaveGroup in each version."""
    stage = Stagehand(s)
    topics, _ = topics_with_ids(s, stage, orders=2)
    for version in range(10):
        group = s.group(f"v{version}")
        a = Consumer(s, "a", group_id=group, topics=topics)
        m = Member(s, f"m{version}", group_id=group, offers=offers(*topics, version=min(version, 3)))
        a.joins()
        m.asks(m.join_request(member_id=""), version, does="joins without a member id")
        if version >= 4:
            m.asks(m.join_request(), version, does="joins")
        m.asks(m.sync_request(), min(version, 5), does="syncs")
        m.heartbeats(min(version, 4))
        a.heartbeats()
        a.owns()
        m.heartbeats(min(version, 4))
        m.asks(m.join_request(), version, does="rejoins")
        m.asks(m.sync_request(), min(version, 5), does="syncs")
        m.heartbeats(min(version, 4))
        m.leaves(min(version, 5))


@story(settings=CONSUMERS, sections=["848 12.3"])
def classic_members_that_are_refused_by_a_consumer_group(s: Story) -> None:
    """Protocols that do not fit, unknown member and instance ids, generations that are not the member's."""
    group, stage = s.group(), Stagehand(s)
    topics, _ = topics_with_ids(s, stage, orders=3)
    a, admin = Consumer(s, "a", group_id=group, topics=topics), Watcher(s, "admin")
    m = Member(s, "m", group_id=group, offers=offers(*topics), member_id="m-1")
    a.joins()
    m.asks(m.join_request(protocol_type="connect"), 9, does="joins with another type of protocols")
    m.asks(m.join_request(protocol_type=""), 9, does="joins without a type of protocols")
    m.asks(m.join_request(protocols=()), 9, does="joins without protocols")
    m.offers = {"range": b"nonsense"}
    m.asks(m.join_request(), 9, does="joins with a subscription that is none")
    m.offers = {"range": b""}
    m.asks(m.join_request(), 9, does="joins with an empty subscription")
    m.offers = offers(*topics)
    m.asks(m.join_request(session_timeout_ms=1), 9, does="joins with too short a session")
    m.asks(m.join_request(session_timeout_ms=600_001), 9, does="joins with too long a session")
    m.asks(m.join_request(), 9, does="joins with an id of its own making")
    n = Member(s, "n", group_id=group, member_id="n-1")
    n.offers = {"roundrobin": subscription(*topics)}
    n.asks(n.join_request(), 9, does="joins with protocols that the other does not offer")
    n.offers = {"sticky": subscription(*topics), "range": subscription(*topics)}
    n.asks(n.join_request(), 9, does="joins with a protocol that the other offers too")
    for changes in (
        {"member_id": "z"},
        {"member_id": "a"},
        {"generation_id": m.generation + 1},
        {"generation_id": m.generation - 1},
        {"generation_id": -1},
        {"group_instance_id": "i"},
        {"protocol_name": "sticky"},
        {"protocol_type": "connect"},
        {"protocol_name": None, "protocol_type": None},
    ):
        m.asks(m.sync_request(**changes), 5, does=f"syncs with {changes}")
    for changes in (
        {"member_id": "z"},
        {"member_id": "a"},
        {"member_id": ""},
        {"generation_id": m.generation + 1},
        {"generation_id": m.generation - 1},
        {"group_instance_id": "i"},
    ):
        m.heartbeats(does=f"heartbeats with {changes}", **changes)
    m.asks(m.sync_request(), 5, does="syncs")
    m.asks(m.join_request(member_id="a"), 9, does="joins with the id of a consumer")
    admin.looks_at(group)
    b = Consumer(s, "m-1", group_id=group, topics=topics)
    b.heartbeats(does="heartbeats as the classic member", member_epoch=m.generation)
    b.joins(does="joins with the id of the classic member")
    m.heartbeats()
    m.asks(m.sync_request(), 5, does="syncs")
    admin.looks_at(group)


@story(settings=CONSUMERS, sections=["848 12.3"])
def static_classic_members_of_a_consumer_group(s: Story) -> None:
    """They replace the current member with that instance id, of either protocol."""
    group, stage = s.group(), Stagehand(s)
    topics, _ = topics_with_ids(s, stage, orders=4)
    a = Consumer(s, "a", group_id=group, topics=topics)
    b = Consumer(s, "b", group_id=group, topics=topics, instance="i")
    admin = Watcher(s, "admin")
    a.joins()
    b.joins()
    settled(a, b)
    m = Member(s, "m", group_id=group, offers=offers(*topics), instance="i")
    m.asks(m.join_request(), 9, does="joins in the place of the consumer")
    admin.looks_at(group)
    m.asks(m.sync_request(), 5, does="syncs")
    b.heartbeats(member_epoch=3)
    m.heartbeats()
    n = Member(s, "n", group_id=group, offers=offers(*topics), instance="i")
    n.asks(n.join_request(), 9, does="joins in the place of the classic member")
    n.asks(n.join_request(member_id="z"), 9, does="joins with another member id")
    n.asks(
        n.join_request(group_instance_id="j", member_id="z"), 9, does="joins with an unknown instance and a member id"
    )
    n.asks(n.sync_request(), 5, does="syncs")
    m.heartbeats()
    m.asks(m.sync_request(), 5, does="syncs")
    admin.looks_at(group)
    c = Consumer(s, "c", group_id=group, topics=topics, instance="i")
    c.joins(does="joins in the place of the classic member")
    n.heartbeats()
    admin.looks_at(group)
    c.leaves()
    a.heartbeats()
    admin.looks_at(group)


@story(settings=CONSUMERS, sections=["848 11", "848 12.3"])
def offsets_of_classic_members_of_a_consumer_group(s: Story) -> None:
    """Commits and fetches with generations."""
    group, stage = s.group(), Stagehand(s)
    topics, ids = topics_with_ids(s, stage, orders=2)
    topic = topics[0]
    a, admin = Consumer(s, "a", group_id=group, topics=topics, ids=ids), Watcher(s, "admin", ids=dict(ids))
    m = Member(s, "m", group_id=group, offers=offers(*topics), member_id="m-1")
    a.joins()
    m.asks(m.join_request(), 9, does="joins")
    m.asks(m.sync_request(), 5, does="syncs")
    for version in range(2, 10):
        m.commits({(topic, 1): version}, version)
        m.commits({(topic, 1): 50}, version, does="commits with a future generation", generation_id_or_member_epoch=9)
        m.commits({(topic, 1): 51}, version, does="commits with an older generation", generation_id_or_member_epoch=1)
        m.commits({(topic, 1): 52}, version, does="commits with -1", generation_id_or_member_epoch=-1)
        m.commits({(topic, 1): 53}, version, does="commits with an instance id", group_instance_id="i")
    a.group_id, a.member_id = group, "m-1"
    for epoch in (m.generation, m.generation + 1, 1, -1):
        a.fetches_offsets({topic: [1]}, member_epoch=epoch)
    admin.commits(group, {(topic, 0): 1})


@story(settings=CONSUMERS, sections=["848 9", "848 12.3"], lasts_ms=10000)
def classic_members_that_are_too_late(s: Story) -> None:
    """One does not send SyncGroup in time, one does not rejoin in time, one sends nothing."""
    stage = Stagehand(s)
    topics, _ = topics_with_ids(s, stage, orders=2)
    admin = Watcher(s, "admin")
    for what in ("sync", "rejoin", "session", "kept"):
        group = s.group(what)
        a = Consumer(s, "a", group_id=group, topics=topics)
        m = Member(s, "m", group_id=group, offers=offers(*topics), member_id="m-1", rebalance_ms=1500, session_ms=5000)
        if what == "session":
            m.session_ms, m.rebalance_ms = 1500, 5000
        a.joins()
        m.asks(m.join_request(), 9, does="joins")
        if what != "sync":
            m.asks(m.sync_request(), 5, does="syncs")
        if what == "rejoin":
            a.heartbeats()
            a.owns()
            m.heartbeats(does="is told to rejoin")
        s.wait(2200, "the time is over")
        m.heartbeats()
        admin.looks_at(group)

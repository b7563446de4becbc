"""Expiration by the coordinator (KIP-211): offsets are kept for a minute, checked every 300 ms. And Kafka's session
bounds."""

from tests.conformance.actors import Stagehand
from tests.conformance.admin import Admin
from tests.conformance.embedded import subscription
from tests.conformance.members import Member, stable
from tests.conformance.settings import SHORT_MEMORY
from tests.conformance.story import Story, story

# Members enter with JoinGroup v3, in one step: between the two steps of later versions the group is empty and without
# offsets, so that the coordinator may drop it with its pending id, as the first story shows.


@story(gotchas=[48], sections=["9.5"], settings=SHORT_MEMORY, lasts_ms=3000)
def empty_groups_without_offsets(s: Story) -> None:
    """A group with only a MEMBER_ID_REQUIRED, a group that was left, a refused one: all are deleted at the next check."""
    admin = Admin(s, "admin")
    pending, left, refused, live = (s.group(name) for name in ("pending", "left", "refused", "live"))
    d = Member(s, "d", group_id=live)
    stable(d, version=3)
    a = Member(s, "a", group_id=pending)
    a.asks_for_an_id()
    b = Member(s, "b", group_id=left)
    stable(b, version=3)
    b.leaves()
    Member(s, "c", group_id=refused, offers={}).joins()
    s.wait(900, "the coordinator looks through its groups")
    for group in (pending, left, refused, live):
        admin.describes(group)
    a.joins(does="joins with the id it got")
    d.heartbeats()


@story(sections=["9.5", "9.1"], settings=SHORT_MEMORY, lasts_ms=4000)
def offsets_with_their_own_retention(s: Story) -> None:
    """Offsets with a retention time of half a second expire after it: in a simple group, and in a live one if not
    subscribed."""
    stage = Stagehand(s)
    topic, other = stage.topic("orders", partitions=2), stage.topic("other")
    admin = Admin(s, "admin")
    simple, mixed, live, connect = (s.group(name) for name in ("simple", "mixed", "live", "connect"))
    a = Member(s, "a", group_id=live, offers={"range": subscription(topic)})
    stable(a, version=3)
    a.commits({(topic, 0): 1, (other, 0): 2}, 4, retention_time_ms=500)
    w = Member(s, "w", group_id=connect, protocol_type="connect", offers={"eager": b"worker"})
    stable(w, version=3)
    w.commits({(topic, 0): 1}, 4, retention_time_ms=500)
    admin.commits(simple, {(topic, 0): 1}, 4, retention_time_ms=500)
    admin.commits(mixed, {(topic, 0): 1}, 4, retention_time_ms=500)
    admin.commits(mixed, {(topic, 1): 1}, 4)
    s.wait(1600, "half a second, and a look")
    for group in (simple, mixed, live, connect):
        admin.describes(group)
        admin.fetches(group, None)


@story(gotchas=[49], sections=["9.5"], settings=SHORT_MEMORY, lasts_ms=70_000)
def offsets_after_a_minute(s: Story) -> None:
    """A simple group's offsets expire a minute after the commit, an emptied group's a minute after it became empty. A live
    one keeps those of subscribed topics; a group of another type keeps all while it has members."""
    stage = Stagehand(s)
    topic, other = stage.topic("orders"), stage.topic("other")
    admin = Admin(s, "admin")
    simple, emptied, live, connect = (s.group(name) for name in ("simple", "emptied", "live", "connect"))
    admin.commits(simple, {(topic, 0): 1})
    members = [
        Member(s, "e", group_id=emptied, session_ms=120_000, offers={"range": subscription(topic)}),
        Member(s, "l", group_id=live, session_ms=120_000, offers={"range": subscription(topic)}),
        Member(s, "w", group_id=connect, session_ms=120_000, protocol_type="connect", offers={"eager": b"worker"}),
    ]
    for member in members:
        stable(member, version=3)
        member.commits({(topic, 0): 1, (other, 0): 2})
    s.wait(30_000, "half of the retention")
    members[0].leaves()
    admin.fetches_many(dict.fromkeys((simple, emptied, live, connect)))
    s.wait(25_000, "not yet a minute")
    admin.fetches_many(dict.fromkeys((simple, emptied, live, connect)))
    s.wait(8_000, "more than a minute since the commits, less since the group became empty")
    admin.fetches_many(dict.fromkeys((simple, emptied, live, connect)))
    admin.describes(simple)
    s.wait(30_000, "more than a minute since the group became empty")
    admin.fetches_many(dict.fromkeys((simple, emptied, live, connect)))
    admin.describes(emptied)


@story(sections=["4.2", "2.1"], settings=SHORT_MEMORY)
def kafkas_own_session_bounds(s: Story) -> None:
    """By default a session timeout may be from 6 seconds to 30 minutes."""
    a = Member(s, "a", group_id=s.group())
    stable(Member(s, "keeper", group_id=s.group(), session_ms=60_000), version=3)
    for session_ms in (5_999, 6_000, 1_800_000, 1_800_001):
        a.joins(does=f"asks with a session of {session_ms} ms", member_id="", session_timeout_ms=session_ms)
    a.leaves()

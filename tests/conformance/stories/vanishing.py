"""Members that are killed at every step: the connection is closed, but they stay members until a timer expires."""

from tests.conformance.actors import Stagehand
from tests.conformance.admin import Admin
from tests.conformance.members import Member, share_out, stable
from tests.conformance.story import Story, story


@story(sections=["4.10", "8"], lasts_ms=8000)
def vanishing_before_the_second_join(s: Story) -> None:
    """A client requests an id and is killed: its pending id delays the next rebalance until it expires."""
    group = s.group()
    a, b = Member(s, "a", group_id=group), Member(s, "b", group_id=group, session_ms=2600)
    stable(a)
    b.asks_for_an_id()
    b.vanishes()
    a.heartbeats()
    a.joins_parked(does="rejoins and waits")
    a.stays_unanswered(1000)
    a.is_answered()
    share_out(a)


@story(sections=["4.11", "8"], lasts_ms=8000)
def vanishing_while_the_join_is_parked(s: Story) -> None:
    """A new member is killed while its JoinGroup waits: it becomes part of the generation, is assigned partitions, and
    expires later."""
    group, admin = s.group(), Admin(s, "admin")
    a, b = Member(s, "a", group_id=group), Member(s, "b", group_id=group, session_ms=2400)
    stable(a)
    b.enters_parked()
    b.vanishes()
    a.joins(does="rejoins")
    a.syncs({a: b"1", b: b"2"})
    admin.describes(group)
    s.wait(3600, "its session is over")
    a.heartbeats()
    admin.describes(group)


@story(sections=["4.11", "8"], lasts_ms=8000)
def vanishing_while_the_rejoin_is_parked(s: Story) -> None:
    """A member is killed while its JoinGroup waits and returns with its id: only the new request counts."""
    group = s.group()
    a, b = Member(s, "a", group_id=group), Member(s, "b", group_id=group)
    stable(a, b)
    b.joins(does="rejoins, nothing new")
    a.joins_parked(does="rejoins and waits")
    a.vanishes()
    again = a.joins_parked(does="rejoins on a new connection and waits")
    b.joins(does="rejoins")
    a.is_answered(again)
    share_out(a, b)


@story(sections=["5", "8"], lasts_ms=8000)
def vanishing_while_the_sync_is_parked(s: Story) -> None:
    """A follower is killed while its SyncGroup waits; it counts as synced, and its session starts with the lost
    response."""
    group = s.group()
    a, b = Member(s, "a", group_id=group), Member(s, "b", group_id=group, session_ms=2400)
    a.enters()
    b.enters_parked()
    a.joins(does="rejoins")
    b.is_answered()
    b.syncs_parked()
    b.vanishes()
    a.syncs({a: b"1", b: b"2"})
    s.wait(1200, "its session is not over")
    a.heartbeats()
    s.wait(2200, "its session is over")
    a.heartbeats()
    a.joins(does="rejoins")
    share_out(a)


@story(sections=["5", "8"], lasts_ms=8000)
def a_leader_vanishes_before_it_syncs(s: Story) -> None:
    """The leader is killed before its SyncGroup: the follower waits until the leader's session times out, then rejoins and
    leads."""
    group = s.group()
    a, b = Member(s, "a", group_id=group, session_ms=2400), Member(s, "b", group_id=group)
    a.enters()
    b.enters_parked()
    a.joins(does="rejoins")
    b.is_answered()
    a.vanishes()
    b.syncs_parked()
    b.stays_unanswered(1000)
    b.is_answered()
    b.joins(does="rejoins")
    share_out(b)


@story(sections=["8", "9.1"], lasts_ms=8000)
def vanishing_after_a_commit(s: Story) -> None:
    """A member commits and is killed: the offsets stay, the member is removed when its session times out."""
    topic = Stagehand(s).topic("orders")
    group, admin = s.group(), Admin(s, "admin")
    a = Member(s, "a", group_id=group, session_ms=2000)
    stable(a)
    a.commits({(topic, 0): (42, "so far")})
    a.vanishes()
    admin.describes(group)
    s.wait(3000, "its session is over")
    admin.describes(group)
    admin.fetches(group, {topic: [0]})
    b = Member(s, "b", group_id=group)
    stable(b)
    admin.fetches(group, None)


@story(sections=["4.8"])
def a_static_member_vanishes_and_comes_back(s: Story) -> None:
    """A killed static member that returns within its session timeout causes no rebalance."""
    group = s.group()
    a, b = Member(s, "a", group_id=group), Member(s, "b", group_id=group, instance="instance-b")
    stable(a, b)
    b.vanishes()
    a.heartbeats()
    b.joins(does="starts again", member_id="")
    b.syncs()
    a.heartbeats()
    b.heartbeats()


@story(sections=["3"])
def half_a_request_and_gone(s: Story) -> None:
    """A connection that breaks in the middle of a request changes nothing."""
    group = s.group()
    a = Member(s, "a", group_id=group)
    stable(a)
    a.sends_bytes(
        b"\x00\x00\x00\x40\x00\x0d\x00\x05", does="starts a LeaveGroup and stops in its header", within_ms=200
    )
    a.heartbeats()

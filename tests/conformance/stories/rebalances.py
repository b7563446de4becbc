"""Rebalances: what starts one, and which members are kept and removed."""

from tests.conformance.admin import Admin
from tests.conformance.embedded import subscription
from tests.conformance.members import Member, protocols_of, share_out, stable
from tests.conformance.story import Story, story


def offers(**protocols: bytes) -> dict[str, bytes]:
    """Protocols with readable subscriptions."""
    return {name: subscription(user_data=data) for name, data in protocols.items()}


@story(gotchas=[9, 11, 27], sections=["4.6"])
def a_follower_rejoins_in_stable(s: Story) -> None:
    """An identical rejoin returns the old generation at once; new timeouts alone change nothing; new metadata
    rebalances."""
    group, admin = s.group(), Admin(s, "admin")
    a, b = Member(s, "a", group_id=group), Member(s, "b", group_id=group, offers=offers(range=b"1", sticky=b"2"))
    a.offers = offers(range=b"1", sticky=b"2")
    stable(a, b)
    b.joins(does="rejoins, nothing new")
    b.joins(does="rejoins with other timeouts", session_timeout_ms=50_000, rebalance_timeout_ms=40_000)
    b.joins(does="rejoins, saying why", reason="restless")
    a.heartbeats()
    admin.describes(group)
    b.joins_parked(
        does="rejoins with the same protocols in another order", protocols=protocols_of(offers(sticky=b"2", range=b"1"))
    )
    a.heartbeats()
    admin.describes(group)
    a.joins(does="rejoins")
    b.is_answered()
    share_out(a, b)
    b.joins_parked(does="rejoins with other metadata", protocols=protocols_of(offers(sticky=b"2", range=b"new")))
    a.heartbeats()
    a.joins(does="rejoins")
    b.is_answered()
    share_out(a, b)
    b.joins_parked(does="rejoins with fewer protocols", protocols=protocols_of(offers(range=b"new")))
    a.joins(does="rejoins")
    b.is_answered()
    admin.describes(group)


@story(gotchas=[9, 45], sections=["4.6", "10.3"])
def the_leader_rejoins_in_stable(s: Story) -> None:
    """The leader's rejoin always rebalances; until the next sync the old assignments are described, without
    metadata."""
    group, admin = s.group(), Admin(s, "admin")
    a, b = Member(s, "a", group_id=group), Member(s, "b", group_id=group)
    stable(a, b)
    a.joins_parked(does="rejoins and waits")
    admin.describes(group)
    b.heartbeats()
    b.joins(does="rejoins")
    a.is_answered()
    admin.describes(group)
    share_out(a, b)
    admin.describes(group)


@story(gotchas=[10], sections=["4.6"])
def rejoins_while_the_leader_has_not_synced(s: Story) -> None:
    """In CompletingRebalance an identical rejoin returns the current generation, to the leader with all members."""
    group, admin = s.group(), Admin(s, "admin")
    a, b = Member(s, "a", group_id=group), Member(s, "b", group_id=group)
    a.enters()
    b.enters_parked()
    a.joins(does="rejoins")
    b.is_answered()
    b.joins(does="rejoins, nothing new")
    a.joins(does="rejoins, nothing new")
    a.joins(does="rejoins with other timeouts", session_timeout_ms=50_000, rebalance_timeout_ms=40_000)
    admin.describes(group)
    b.syncs_parked()
    a.joins_parked(does="rejoins with other metadata", protocols=protocols_of(offers(range=b"new")))
    b.is_answered()
    b.joins(does="rejoins")
    a.is_answered()
    share_out(a, b)


@story(sections=["4.6", "1.3"])
def a_follower_changes_its_mind_while_completing(s: Story) -> None:
    """New metadata from a follower in CompletingRebalance restarts the rebalance; waiting SyncGroups get an error."""
    group = s.group()
    a, b, c = (Member(s, name, group_id=group) for name in "abc")
    stable(a, b, c)
    a.joins_parked(does="rejoins and waits")
    b.joins_parked(does="rejoins and waits")
    c.joins(does="rejoins")
    a.is_answered()
    b.is_answered()
    b.syncs_parked()
    c.joins_parked(does="rejoins with other metadata", protocols=protocols_of(offers(range=b"new")))
    b.is_answered()
    a.heartbeats()
    a.syncs({a: b"too late"})
    a.joins_parked(does="rejoins and waits")
    b.joins(does="rejoins")
    a.is_answered()
    c.is_answered()
    share_out(a, b, c)


@story(gotchas=[55], sections=["4.7"])
def a_lone_member_cannot_switch_protocols(s: Story) -> None:
    """A lone member of a Stable group that lists only new protocols is refused, and accepted after leaving."""
    group = s.group()
    a = Member(s, "a", group_id=group)
    stable(a)
    a.joins(does="offers only a new protocol", protocols=protocols_of(offers(sticky=b"x")))
    a.joins(does="offers the old protocol and a new one", protocols=protocols_of(offers(sticky=b"x", range=b"y")))
    a.syncs({a: b"share"})
    a.joins(does="offers only the new protocol", protocols=protocols_of(offers(sticky=b"x")))
    a.syncs({a: b"share"})
    a.joins(does="offers only the first one again", protocols=protocols_of(offers(range=b"y")))
    a.leaves()
    a.asks_for_an_id()
    a.joins(does="offers only the first one again", protocols=protocols_of(offers(range=b"y")))


@story(gotchas=[42], sections=["4.6", "14"])
def a_join_that_is_superseded(s: Story) -> None:
    """A member that joins again while its first JoinGroup waits gets one response: to the second."""
    group = s.group()
    a, b = Member(s, "a", group_id=group), Member(s, "b", group_id=group)
    stable(a, b)
    first = a.joins_parked(does="rejoins and waits")
    second = a.joins_parked(does="rejoins on another connection and waits")
    b.joins(does="rejoins")
    a.is_answered(second)
    a.stays_unanswered(400, first)
    share_out(a, b)


@story(gotchas=[5, 6], sections=["4.10", "4.11"], lasts_ms=6000)
def a_pending_id_holds_up_a_rebalance(s: Story) -> None:
    """A member id that was given out keeps the join phase open until the rebalance timeout, and stays valid after it."""
    group, admin = s.group(), Admin(s, "admin")
    a, b, c = (Member(s, name, group_id=group, rebalance_ms=3000) for name in "abc")
    stable(a, b)
    c.asks_for_an_id()
    admin.describes(group)
    a.joins_parked(does="rejoins and waits")
    b.joins_parked(does="rejoins and waits")
    a.stays_unanswered(1400)
    a.is_answered()
    b.is_answered()
    share_out(a, b)
    c.joins_parked(does="joins with its old id and waits")
    a.joins_parked(does="rejoins and waits")
    b.joins(does="rejoins")
    a.is_answered()
    c.is_answered()


@story(gotchas=[5, 6], sections=["4.10", "7"])
def a_pending_id_that_joins_or_leaves_ends_the_wait(s: Story) -> None:
    """All others have joined; the last pending id joins, or is removed by LeaveGroup: the phase completes."""
    group = s.group()
    a, b = Member(s, "a", group_id=group), Member(s, "b", group_id=group)
    stable(a)
    b.asks_for_an_id()
    a.joins_parked(does="rejoins and waits")
    b.joins(does="joins")
    a.is_answered()
    share_out(a, b)
    c = Member(s, "c", group_id=group)
    c.asks_for_an_id()
    a.joins_parked(does="rejoins and waits")
    b.joins_parked(does="rejoins and waits")
    c.leaves()
    a.is_answered()
    b.is_answered()
    share_out(a, b)
    d = Member(s, "d", group_id=group)
    d.asks_for_an_id()
    d.leaves()
    a.heartbeats()


@story(gotchas=[19], sections=["4.10", "8"], lasts_ms=6000)
def the_rebalance_timeout_is_the_longest_of_the_members(s: Story) -> None:
    """A member that does not rejoin is removed after the longest rebalance timeout of the members at the start."""
    group, admin = s.group(), Admin(s, "admin")
    a, b = Member(s, "a", group_id=group, rebalance_ms=600), Member(s, "b", group_id=group, rebalance_ms=3600)
    stable(a, b)
    a.joins_parked(does="rejoins and waits")
    a.stays_unanswered(2400)
    a.is_answered()
    admin.describes(group)
    b.heartbeats()
    b.joins(does="comes back too late")


@story(gotchas=[19], sections=["4.10", "8"], lasts_ms=6000)
def a_late_joiner_does_not_prolong_the_rebalance(s: Story) -> None:
    """The timeout is computed when the rebalance starts; a member that joins during it cannot make it longer."""
    group = s.group()
    a, b = Member(s, "a", group_id=group, rebalance_ms=2400), Member(s, "b", group_id=group, rebalance_ms=2400)
    c = Member(s, "c", group_id=group, rebalance_ms=60_000)
    stable(a, b)
    a.joins_parked(does="rejoins and waits")
    c.enters_parked()
    a.is_answered(within_ms=10_000)
    c.is_answered()
    share_out(a, c)


@story(sections=["4.9"])
def the_leader_leaves_and_the_other_leads(s: Story) -> None:
    """When the leader has left the remaining member leads, and its identical rejoin then rebalances."""
    group = s.group()
    a, b = Member(s, "a", group_id=group), Member(s, "b", group_id=group)
    stable(a, b)
    a.leaves()
    b.heartbeats()
    b.joins(does="rejoins")
    b.syncs({b: b"everything"})
    b.joins(does="rejoins as the leader")
    b.syncs({b: b"everything again"})


@story(sections=["4.9"])
def the_next_leader_is_the_first_in_hash_order(s: Story) -> None:
    """Of two remaining members the one whose id comes first in Java's hash order leads, whichever joined first."""
    for number, c_is_first in enumerate((True, False)):
        group = s.group(str(number))
        a, b, c = (Member(s, name, group_id=group) for name in "abc")
        a.enters()
        b.gets_an_id_in(range(5, 11))
        b.joins_parked()
        c.gets_an_id_in(range(5) if c_is_first else range(11, 16))
        c.joins_parked()
        a.joins(does="rejoins")
        b.is_answered()
        c.is_answered()
        share_out(a, b, c)
        a.leaves()
        leader, follower = (c, b) if c_is_first else (b, c)
        follower.joins_parked(does="rejoins and waits")
        leader.joins(does="rejoins")
        follower.is_answered()
        share_out(leader, follower)

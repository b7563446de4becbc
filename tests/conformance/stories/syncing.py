"""SyncGroup: which members wait, what they get, and every error."""

from dataclasses import replace

from groupcoord.protocol.apis.sync_group import SyncGroupRequestAssignment
from tests.conformance.admin import Admin
from tests.conformance.members import Member, share_out, stable
from tests.conformance.story import Story, story


def completing(leader: Member, *followers: Member) -> None:
    """Bring members to where the leader's SyncGroup is awaited."""
    leader.enters()
    for follower in followers:
        follower.enters_parked()
    if followers:
        leader.joins(does="rejoins")
    for follower in followers:
        follower.is_answered()


@story(sections=["5"])
def followers_wait_for_the_leader(s: Story) -> None:
    """Followers' SyncGroups wait until the leader's assignment is stored; a late one gets its response at once."""
    group, admin = s.group(), Admin(s, "admin")
    a, b, c = (Member(s, name, group_id=group) for name in "abc")
    completing(a, b, c)
    b.syncs_parked()
    admin.describes(group)
    a.syncs({a: b"1", b: b"2", c: b"3"})
    b.is_answered()
    c.syncs()
    c.syncs(does="syncs again")
    a.syncs({a: b"new", b: b"new", c: b"new"}, does="syncs again with another assignment")
    admin.describes(group)


@story(sections=["5"])
def odd_assignments(s: Story) -> None:
    """Unknown members are ignored, the later of two entries counts, missing members get nothing, a follower's list is
    ignored."""
    group, admin = s.group(), Admin(s, "admin")
    a, b, c = (Member(s, name, group_id=group) for name in "abc")
    completing(a, b, c)
    b.syncs_parked({a: b"b says", b: b"b says", c: b"b says"})
    shares = tuple(
        SyncGroupRequestAssignment(member_id=member_id, assignment=share)
        for member_id, share in (
            (a.member_id, b"first"),
            ("stranger", b"x"),
            (a.member_id, b"second"),
            (b.member_id, b"for b"),
        )
    )
    a.syncs(assignments=shares)
    b.is_answered()
    c.syncs()
    admin.describes(group)


@story(sections=["5"])
def a_leader_that_assigns_nothing(s: Story) -> None:
    """An empty list of assignments stores empty ones, and the group is Stable."""
    group, admin = s.group(), Admin(s, "admin")
    a, b = Member(s, "a", group_id=group), Member(s, "b", group_id=group)
    completing(a, b)
    a.syncs()
    b.syncs()
    admin.describes(group)


@story(gotchas=[56, 39], sections=["5"])
def refusals_of_sync(s: Story) -> None:
    """Every error of SyncGroup, and which of two comes first."""
    group, missing = s.group(), s.group("missing")
    a, b = Member(s, "a", group_id=group), Member(s, "b", group_id=group, instance="instance-b")
    stable(a)
    b.joins_parked()
    a.joins(does="rejoins")
    b.is_answered()
    a.syncs(does="syncs without a protocol name", protocol_name=None)
    a.syncs(does="syncs without a protocol type", protocol_type=None)
    a.syncs(does="syncs without either, for no group", protocol_type=None, protocol_name=None, group_id="")
    a.syncs(does="syncs for no group", group_id="")
    a.syncs(does="syncs for a missing group", group_id=missing)
    a.syncs(does="syncs as a stranger", member_id="stranger")
    a.syncs(does="syncs as a stranger in a wrong generation", member_id="stranger", generation_id=99)
    a.syncs(does="syncs as an unknown instance", group_instance_id="nobody")
    a.syncs(does="syncs as another's instance", group_instance_id="instance-b")
    a.syncs(does="syncs as another's instance in a wrong generation", group_instance_id="instance-b", generation_id=99)
    b.syncs(does="syncs as a static member with a stranger's id", member_id="stranger")
    a.syncs(does="syncs in an old generation", generation_id=1)
    a.syncs(does="syncs in a future generation", generation_id=99)
    a.syncs(does="syncs in no generation", generation_id=-1)
    a.syncs(does="syncs in a wrong generation with a wrong type", generation_id=99, protocol_type="connect")
    a.syncs(does="syncs with a wrong type", protocol_type="connect")
    a.syncs(does="syncs with a wrong protocol", protocol_name="sticky")
    a.syncs(does="syncs with both wrong", protocol_type="connect", protocol_name="sticky")
    a.syncs(does="syncs with an empty protocol", protocol_name="")
    b.parks(replace(b.sync_request(), group_instance_id=None), does="syncs without its instance id and waits")
    a.syncs({a: b"1", b: b"2"})
    b.is_answered()
    c = Member(s, "c", group_id=group)
    c.asks_for_an_id()
    c.syncs(does="syncs with a pending id", generation_id=2, protocol_name="range")
    c.joins_parked()
    a.syncs(does="syncs while the group rebalances")
    a.syncs(does="syncs while the group rebalances, with a wrong type", protocol_type="connect")
    a.syncs(does="syncs while the group rebalances, in a wrong generation", generation_id=99)
    b.syncs(does="syncs while the group rebalances")


@story(sections=["5"])
def versions_of_a_refused_sync(s: Story) -> None:
    """Each field of a refused SyncGroup, by version; before version 5 there are no protocol fields."""
    group = s.group()
    a = Member(s, "a", group_id=group)
    stable(a)
    for version in range(6):
        a.syncs(version=version, does="syncs for no group", group_id="")
        a.syncs(version=version, does="syncs as a stranger", member_id="stranger")
        a.syncs(version=version, does="syncs in a wrong generation", generation_id=99)
        a.syncs(version=version, does="syncs with a wrong type", protocol_type="connect")
        a.syncs(version=version, does="syncs well")


@story(sections=["5"])
def sync_in_an_empty_group(s: Story) -> None:
    """When the last member has left, its SyncGroup gets UNKNOWN_MEMBER_ID."""
    group = s.group()
    a = Member(s, "a", group_id=group)
    stable(a)
    a.leaves()
    a.syncs({a: b"x"})
    a.syncs({a: b"x"}, does="syncs in the empty generation", generation_id=2)
    a.heartbeats()


@story(gotchas=[42], sections=["5", "14"])
def a_sync_that_is_superseded(s: Story) -> None:
    """A follower that syncs again while its first SyncGroup waits gets one response: to the second."""
    group = s.group()
    a, b = Member(s, "a", group_id=group), Member(s, "b", group_id=group)
    completing(a, b)
    first = b.syncs_parked()
    second = b.syncs_parked()
    share = {a: b"1", b: b"2"}
    a.syncs(share)
    b.is_answered(second)
    b.stays_unanswered(400, first)


@story(gotchas=[42], sections=["7"])
def a_parked_sync_of_a_removed_member(s: Story) -> None:
    """An admin removes a follower whose SyncGroup waits: that SyncGroup never gets a response."""
    group, admin = s.group(), Admin(s, "admin")
    a, b = Member(s, "a", group_id=group), Member(s, "b", group_id=group)
    completing(a, b)
    b.syncs_parked()
    admin.removes(group, b)
    a.heartbeats()
    b.stays_unanswered(400)
    a.joins(does="rejoins")
    a.syncs({a: b"everything"})
    b.stays_unanswered(200)


@story(sections=["5", "1.3"])
def parked_syncs_when_somebody_joins(s: Story) -> None:
    """A new member in CompletingRebalance restarts the rebalance: waiting SyncGroups get REBALANCE_IN_PROGRESS."""
    group, admin = s.group(), Admin(s, "admin")
    a, b = Member(s, "a", group_id=group), Member(s, "b", group_id=group)
    completing(a, b)
    b.syncs_parked()
    c = Member(s, "c", group_id=group)
    c.enters_parked()
    b.is_answered()
    admin.describes(group)
    a.syncs({a: b"1"}, does="syncs too late")
    b.joins_parked(does="rejoins and waits")
    a.joins(does="rejoins")
    b.is_answered()
    c.is_answered()
    share_out(a, b, c)


@story(sections=["5", "8"], lasts_ms=6000)
def the_leader_never_syncs(s: Story) -> None:
    """At the sync timeout all members without SyncGroup are removed, the leader too, and the waiting one has to rejoin."""
    group, admin = s.group(), Admin(s, "admin")
    a, b = (Member(s, name, group_id=group, rebalance_ms=2400) for name in "ab")
    completing(a, b)
    b.syncs_parked()
    b.stays_unanswered(1000)
    b.is_answered()
    admin.describes(group)
    a.heartbeats()
    b.joins(does="rejoins")
    share_out(b)


@story(gotchas=[20], sections=["5", "8"], lasts_ms=6000)
def a_follower_never_syncs(s: Story) -> None:
    """A Stable group rebalances at the sync timeout if a follower has not sent SyncGroup; a static one is removed as
    well."""
    for kind in ("dynamic", "static"):
        group, admin = s.group(kind), Admin(s, "admin")
        a = Member(s, "a", group_id=group, rebalance_ms=2400)
        b = Member(s, "b", group_id=group, rebalance_ms=2400, instance=None if kind == "dynamic" else "instance-b")
        completing(a, b)
        a.syncs({a: b"1", b: b"2"})
        admin.describes(group)
        s.wait(1200, "the sync timeout is not over")
        a.heartbeats()
        s.wait(2000, "the sync timeout is over")
        a.heartbeats()
        admin.describes(group)
        b.heartbeats()
        a.joins(does="rejoins")
        a.syncs({a: b"all"})


@story(sections=["5", "8"], lasts_ms=6000)
def nobody_syncs(s: Story) -> None:
    """If no member syncs, all are removed at the sync timeout and the group is empty."""
    group, admin = s.group(), Admin(s, "admin")
    a, b = (Member(s, name, group_id=group, rebalance_ms=2000) for name in "ab")
    completing(a, b)
    s.wait(3200, "the sync timeout is over")
    admin.describes(group)
    a.heartbeats()
    b.heartbeats()

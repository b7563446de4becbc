"""LeaveGroup: one member, several, on behalf of others; in every state."""

from groupcoord.protocol.apis.leave_group import MemberIdentity
from groupcoord.protocol.messages import LeaveGroupRequest
from tests.conformance.admin import Admin
from tests.conformance.members import Member, share_out, stable
from tests.conformance.stories.syncing import completing
from tests.conformance.story import Story, story


@story(gotchas=[40], sections=["7"])
def leaving_what_is_not_there(s: Story) -> None:
    """A missing group and unknown members: from version 3 on an error per member, before that one top-level error."""
    group, missing, admin = s.group(), s.group("missing"), Admin(s, "admin")
    a = Member(s, "a", group_id=group)
    stable(a)
    for version in range(6):
        admin.removes(missing, ("stranger", None), version=version)
        admin.removes(group, ("stranger", None), version=version)
        admin.removes("", ("stranger", None), version=version)
    for version in (3, 4, 5):
        admin.removes(missing, ("x", None), ("", "instance-x"), ("", None), version=version)
        admin.removes(missing, version=version)
        admin.removes(group, version=version)
    a.heartbeats()


@story(gotchas=[41], sections=["7"])
def a_batch_of_leavers(s: Story) -> None:
    """Members by id, by instance id, by both, twice, fenced and unknown, in one request: results in its order."""
    group, admin = s.group(), Admin(s, "admin")
    a = Member(s, "a", group_id=group)
    b = Member(s, "b", group_id=group, instance="instance-b")
    c = Member(s, "c", group_id=group, instance="instance-c")
    d = Member(s, "d", group_id=group)
    stable(a, b, c, d)
    admin.removes(
        group,
        ("", None),
        ("", "nobody"),
        (c.member_id, "instance-b"),
        ("stranger", "instance-c"),
        (d.member_id, "nobody"),
        "instance-b",
        "instance-b",
        c,
        (d.member_id, None),
        (d.member_id, None),
    )
    a.heartbeats()
    for member in (b, c, d):
        member.heartbeats()
    a.joins(does="rejoins")
    share_out(a)


@story(sections=["7"])
def every_version_of_leaving(s: Story) -> None:
    """Two members leave with every version, one of them last."""
    for version in range(6):
        group, admin = s.group(f"v{version}"), Admin(s, "admin")
        a, b = Member(s, "a", group_id=group), Member(s, "b", group_id=group)
        stable(a, b)
        b.leaves(version, reason="enough" if version >= 5 else None)
        b.leaves(version)
        a.heartbeats()
        a.leaves(version)
        admin.describes(group)


@story(gotchas=[6], sections=["7"])
def a_pending_id_leaves(s: Story) -> None:
    """LeaveGroup of a pending id succeeds, with any instance id; in Stable and CompletingRebalance it starts a
    rebalance."""
    group, admin = s.group(), Admin(s, "admin")
    a, b = Member(s, "a", group_id=group), Member(s, "b", group_id=group)
    b.asks_for_an_id()
    b.leaves()
    admin.describes(group)
    stable(a)
    b.asks_for_an_id()
    admin.removes(group, (b.member_id, "whatever"))
    admin.describes(group)
    a.joins(does="rejoins")
    b.asks_for_an_id()
    b.leaves()
    admin.describes(group)
    a.joins(does="rejoins")
    a.syncs({a: b"x"})
    b.joins(does="joins with the id it gave back")


@story(sections=["7"])
def leaving_in_every_state(s: Story) -> None:
    """A follower leaves while the group is Stable, rebalancing, and completing; then the leader does."""
    group, admin = s.group(), Admin(s, "admin")
    a, b, c, d = (Member(s, name, group_id=group) for name in "abcd")
    stable(a, b, c, d)
    d.leaves()
    admin.describes(group)
    a.joins_parked(does="rejoins and waits")
    b.joins_parked(does="rejoins and waits")
    c.leaves()
    a.is_answered()
    b.is_answered()
    admin.describes(group)
    b.leaves()
    admin.describes(group)
    a.joins(does="rejoins")
    a.leaves()
    admin.describes(group)


@story(sections=["7"])
def a_parked_join_is_removed(s: Story) -> None:
    """An admin removes members that wait in JoinGroup: they get UNKNOWN_MEMBER_ID, without an id."""
    group, admin = s.group(), Admin(s, "admin")
    a, b, c = (Member(s, name, group_id=group) for name in "abc")
    stable(a, b)
    c.enters_parked()
    b.joins_parked(does="rejoins and waits")
    admin.removes(group, c)
    c.is_answered()
    admin.removes(group, b)
    b.is_answered()
    a.joins(does="rejoins")
    share_out(a)


@story(sections=["7", "1.2"])
def everybody_is_removed_at_once(s: Story) -> None:
    """One LeaveGroup removes all members of a Stable group, of a completing one, and of a rebalancing one."""
    for state in ("stable", "completing", "preparing"):
        group, admin = s.group(state), Admin(s, "admin")
        a, b = Member(s, "a", group_id=group), Member(s, "b", group_id=group)
        completing(a, b)
        if state != "completing":
            share_out(a, b)
        if state == "preparing":
            a.joins_parked(does="rejoins and waits")
        admin.removes(group, a, b)
        if state == "preparing":
            a.is_answered()
        admin.describes(group)
        a.heartbeats()


@story(sections=["7"])
def a_leader_leaves_while_the_others_wait(s: Story) -> None:
    """The leader leaves during the join phase: the waiting member becomes the new leader."""
    group = s.group()
    a, b = Member(s, "a", group_id=group), Member(s, "b", group_id=group)
    stable(a, b)
    b.joins(does="rejoins, nothing new")
    c = Member(s, "c", group_id=group)
    c.enters_parked()
    c_waits = c.parked[-1]
    a.leaves()
    c.stays_unanswered(200, c_waits)
    b.leaves()
    c.is_answered(c_waits)
    share_out(c)


@story(sections=["7"])
def reasons_for_leaving(s: Story) -> None:
    """A reason may be empty, long or absent; it is only logged."""
    group = s.group()
    for reason in (None, "", "the consumer is being closed", "x" * 5000):
        a = Member(s, "a", group_id=group)
        stable(a)
        identity = MemberIdentity(member_id=a.member_id, reason=reason)
        a.asks(LeaveGroupRequest(group_id=group, members=(identity,)), 5, does="leaves with a reason")

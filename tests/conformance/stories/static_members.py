"""Static members (KIP-345, KIP-814): replaced, fenced, missing and waited for."""

from tests.conformance.admin import Admin
from tests.conformance.members import Member, protocols_of, share_out, stable
from tests.conformance.stories.rebalances import offers
from tests.conformance.stories.syncing import completing
from tests.conformance.story import Story, story


def static(s: Story, name: str, group: str, **given: object) -> Member:
    """A static member whose instance id is ``instance-NAME``."""
    return Member(s, name, group_id=group, instance=f"instance-{name}", **given)  # type: ignore[arg-type]


@story(gotchas=[4], sections=["4.5"])
def static_members_skip_the_second_step(s: Story) -> None:
    """Two static members join with one request each; their ids start with the instance ids."""
    group, admin = s.group(), Admin(s, "admin")
    a, b = static(s, "a", group), static(s, "b", group)
    stable(a, b)
    admin.describes(group)
    a.leaves()
    b.joins(does="rejoins")
    share_out(b)


@story(gotchas=[23, 24, 25, 26], sections=["4.8"])
def a_follower_is_replaced(s: Story) -> None:
    """A static follower restarts, in every version: new id, same generation, no rebalance; the old id is fenced or
    unknown."""
    group, admin = s.group(), Admin(s, "admin")
    a, b = Member(s, "a", group_id=group), static(s, "b", group)
    stable(a, b)
    for version in range(5, 10):
        old_id = b.member_id
        b.joins(version, does="starts again", member_id="")
        a.heartbeats()
        b.heartbeats(does="heartbeats with its old id", member_id=old_id)
        b.heartbeats(does="heartbeats with its old id and no instance id", member_id=old_id, group_instance_id=None)
        b.heartbeats()
        b.syncs()
    b.joins(
        does="starts again with another subscription and client id",
        member_id="",
        protocols=protocols_of(offers(range=b"new")),
    )
    b.client_id = "another-client"
    b.joins(does="starts again under another client id and session timeout", member_id="", session_timeout_ms=30_000)
    admin.describes(group)
    a.joins_parked(does="rejoins and waits")
    b.joins(does="rejoins with its new id")
    a.is_answered()
    share_out(a, b)
    admin.describes(group)


@story(gotchas=[24], sections=["4.8", "4.12"])
def a_leader_is_replaced(s: Story) -> None:
    """A static leader restarts: up to version 8 it gets the old leader's id, from 9 on it leads with SkipAssignment."""
    for version in range(5, 10):
        group, admin = s.group(f"v{version}"), Admin(s, "admin")
        a, b = static(s, "a", group), Member(s, "b", group_id=group)
        stable(a, b)
        a.joins(version, does="starts again", member_id="")
        admin.describes(group)
        a.syncs(version=min(version, 5))
        b.heartbeats()


@story(gotchas=[23], sections=["4.8"])
def a_replacement_with_other_protocols(s: Story) -> None:
    """A restarted member may list other protocols: no rebalance if the vote stays the same, one if it changes."""
    group, admin = s.group(), Admin(s, "admin")
    a = Member(s, "a", group_id=group, offers=offers(range=b"1", sticky=b"1"))
    b = static(s, "b", group, offers=offers(range=b"2", sticky=b"2"))
    stable(a, b)
    b.joins(
        does="starts again with one more", member_id="", protocols=protocols_of(offers(range=b"2", sticky=b"2", x=b"2"))
    )
    a.heartbeats()
    b.joins_parked(
        does="starts again with only the other one", member_id="", protocols=protocols_of(offers(sticky=b"2"))
    )
    a.heartbeats()
    a.joins(does="rejoins")
    b.is_answered()
    admin.describes(group)
    share_out(a, b)
    b.joins(
        does="starts again with the old one, which it lacked", member_id="", protocols=protocols_of(offers(range=b"2"))
    )
    b.joins(does="starts again with nothing in common", member_id="", protocols=protocols_of(offers(other=b"2")))
    b.heartbeats()


@story(gotchas=[26], sections=["4.8"])
def a_replacement_while_the_old_one_waits(s: Story) -> None:
    """The waiting JoinGroup of the replaced member gets FENCED_INSTANCE_ID."""
    group = s.group()
    a, b, c = Member(s, "a", group_id=group), static(s, "b", group), Member(s, "c", group_id=group)
    stable(a, b, c)
    a.joins_parked(does="rejoins and waits")
    old = b.joins_parked(does="rejoins and waits")
    again = Member(s, "b again", client_id="b", group_id=group, instance="instance-b")
    again.joins_parked(does="starts again and waits")
    b.is_answered(old)
    c.joins(does="rejoins")
    a.is_answered()
    again.is_answered()
    share_out(a, again, c)


@story(sections=["4.8", "5"])
def a_replacement_while_completing(s: Story) -> None:
    """In CompletingRebalance a replacement always restarts the rebalance; the waiting SyncGroup of the old member is
    fenced."""
    group = s.group()
    a, b = Member(s, "a", group_id=group), static(s, "b", group)
    completing(a, b)
    old = b.syncs_parked()
    again = Member(s, "b again", client_id="b", group_id=group, instance="instance-b")
    again.joins_parked(does="starts again and waits")
    b.is_answered(old)
    a.syncs({a: b"too late"})
    a.joins(does="rejoins")
    again.is_answered()
    share_out(a, again)


@story(sections=["4.8"])
def a_replacement_in_the_join_phase(s: Story) -> None:
    """While the group rebalances, the restart of the last missing static member completes the phase."""
    group = s.group()
    a, b = Member(s, "a", group_id=group), static(s, "b", group)
    stable(a, b)
    a.joins_parked(does="rejoins and waits")
    b.joins(does="starts again", member_id="")
    a.is_answered()
    share_out(a, b)
    b.heartbeats()


@story(gotchas=[20], sections=["4.8", "4.11"], lasts_ms=6000)
def a_static_member_that_does_not_rejoin_stays(s: Story) -> None:
    """At the rebalance timeout a static member is kept, listed to the leader and assigned partitions; it may sync later."""
    group, admin = s.group(), Admin(s, "admin")
    a, b, c = (Member(s, "a", group_id=group, rebalance_ms=2000), static(s, "b", group, rebalance_ms=2000),
               Member(s, "c", group_id=group, rebalance_ms=2000))  # fmt: skip
    stable(a, b, c)
    a.joins_parked(does="rejoins and waits")
    a.is_answered()
    admin.describes(group)
    a.syncs({a: b"a", b: b"for the absent one"})
    admin.describes(group)
    b.heartbeats()
    b.heartbeats(does="heartbeats in the new generation", generation_id=a.generation)
    b.generation = a.generation
    b.syncs(does="fetches what it was given")
    c.heartbeats()


@story(gotchas=[11], sections=["4.6"], lasts_ms=6000)
def timeouts_on_the_short_path_are_not_stored(s: Story) -> None:
    """A follower's identical rejoin with other timeouts returns at once and leaves the stored timeouts as they were."""
    group = s.group()
    a, b = Member(s, "a", group_id=group, rebalance_ms=2000), static(s, "b", group, rebalance_ms=2000)
    stable(a, b)
    b.joins(does="rejoins with other timeouts", session_timeout_ms=24_690, rebalance_timeout_ms=54_321)
    a.joins_parked(does="rejoins and waits")
    a.is_answered()
    a.syncs({a: b"a", b: b"b"})


@story(gotchas=[21], sections=["4.9", "4.11"], lasts_ms=6000)
def a_static_leader_that_does_not_return(s: Story) -> None:
    """The static leader stays a member but a member that has joined leads."""
    group, admin = s.group(), Admin(s, "admin")
    a, b = static(s, "a", group, rebalance_ms=2000), Member(s, "b", group_id=group, rebalance_ms=2000)
    stable(a, b)
    b.joins_parked(does="rejoins with other metadata", protocols=protocols_of(offers(range=b"new")))
    b.is_answered()
    share_out(b, a) if b.leader == b.member_id else None
    admin.describes(group)


@story(gotchas=[22], sections=["4.11"], lasts_ms=8000)
def only_static_members_are_missing(s: Story) -> None:
    """If only static members are left and none has rejoined, the join phase restarts instead of completing."""
    group, admin = s.group(), Admin(s, "admin")
    a, b = static(s, "a", group, rebalance_ms=1800), Member(s, "b", group_id=group, rebalance_ms=1800)
    stable(a, b)
    b.leaves()
    admin.describes(group)
    s.wait(2700, "the rebalance timeout is over")
    admin.describes(group)
    a.heartbeats()
    a.joins(does="rejoins")
    share_out(a)


@story(gotchas=[22], sections=["4.11", "8"], lasts_ms=8000)
def a_missing_static_member_whose_session_ends(s: Story) -> None:
    """The session of a static member ends during the join phase that waits for it alone: the group becomes empty."""
    group, admin = s.group(), Admin(s, "admin")
    a, b = static(s, "a", group, session_ms=2000, rebalance_ms=1000), Member(s, "b", group_id=group, rebalance_ms=1000)
    stable(a, b)
    b.leaves()
    admin.describes(group)
    s.wait(3400, "the session is over")
    admin.describes(group)
    a.joins(does="starts again", member_id="")
    share_out(a)


@story(gotchas=[26], sections=["4.6", "4.8"])
def a_static_member_with_its_id(s: Story) -> None:
    """A static member that sends its id is like any other: identical rejoins return at once, with or without instance
    id."""
    group = s.group()
    a, b = Member(s, "a", group_id=group), static(s, "b", group)
    stable(a, b)
    b.joins(does="rejoins, nothing new")
    b.joins(does="rejoins without its instance id", group_instance_id=None)
    b.joins(does="rejoins under another instance id", group_instance_id="instance-x")
    b.joins(does="rejoins with a stranger's id", member_id="stranger")
    b.heartbeats()
    b.commits({}, does="commits nothing")


@story(sections=["4.8", "8"], lasts_ms=6000)
def a_replacement_keeps_the_old_session(s: Story) -> None:
    """The restarted member has the old session timeout until a rebalance, though it asked for a longer one."""
    group, admin = s.group(), Admin(s, "admin")
    a, b = Member(s, "a", group_id=group), static(s, "b", group, session_ms=2400)
    stable(a, b)
    b.joins(does="starts again with a long session", member_id="", session_timeout_ms=60_000)
    s.wait(1200, "the old session timeout is not over")
    admin.describes(group)
    s.wait(2400, "the old session timeout is over")
    admin.describes(group)
    b.heartbeats()


@story(sections=["4.8"])
def a_lone_static_member_starts_again(s: Story) -> None:
    """A group of one static member: a restart causes no rebalance but SkipAssignment; then it is removed by instance id."""
    group, admin = s.group(), Admin(s, "admin")
    a = static(s, "a", group)
    stable(a)
    a.joins(does="starts again", member_id="")
    a.syncs({a: b"new share"}, does="syncs with another assignment")
    admin.removes(group, "instance-a")
    admin.describes(group)
    stable(a) if a.joins(does="starts again with its old id").error_code == 0 else None
    a.member_id = ""
    stable(a)

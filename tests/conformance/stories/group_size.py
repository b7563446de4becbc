"""group.max.size, here three (KIP-389): which members are refused, and which are removed."""

from tests.conformance.admin import Admin
from tests.conformance.members import Member, share_out
from tests.conformance.settings import SLOW_START
from tests.conformance.story import Story, story


def three(s: Story, group: str, **given: object) -> tuple[Member, Member, Member]:
    """Three members in their first generation, not yet synced; the first of them leads."""
    a, b, c = (Member(s, name, group_id=group, **given) for name in "abc")  # type: ignore[arg-type]
    for member in (a, b, c):
        member.enters_parked()
    for member in (a, b, c):
        member.is_answered(within_ms=10_000)
    return a, b, c


@story(sections=["4.4"], settings=SLOW_START, lasts_ms=8000)
def a_full_group(s: Story) -> None:
    """A fourth member gets an id but cannot join: Stable, completing, and with an unknown id."""
    group, admin = s.group(), Admin(s, "admin")
    a, b, c = three(s, group)
    d = Member(s, "d", group_id=group)
    d.joins(does="asks for an id while the group completes")
    share_out(a, b, c)
    d.joins(does="asks for an id while the group is Stable")
    d.joins(3, does="joins in one step")
    d.joins(does="joins with an id that nobody knows", member_id="stranger")
    d.joins(does="joins with nothing in common", protocol_type="connect")
    Member(s, "e", group_id=group, instance="instance-e").joins(does="joins as a static member")
    b.joins(does="rejoins, nothing new")
    a.heartbeats()
    admin.describes(group)
    c.leaves()
    d.member_id = ""
    d.asks_for_an_id()
    d.joins_parked()


@story(gotchas=[54], sections=["4.4"], settings=SLOW_START, lasts_ms=10000)
def late_rejoiners_are_thrown_out(s: Story) -> None:
    """In the join phase the first three requests count: an old member that comes fourth is removed."""
    group, admin = s.group(), Admin(s, "admin")
    a, b, c = three(s, group, rebalance_ms=6000)
    share_out(a, b, c)
    a.joins_parked(does="rejoins and waits")
    d, e = Member(s, "d", group_id=group), Member(s, "e", group_id=group)
    d.enters_parked()
    e.enters_parked()
    b.joins(does="rejoins too late")
    admin.describes(group)
    b.heartbeats()
    c.joins(does="rejoins too late")
    a.is_answered()
    d.is_answered()
    e.is_answered()
    share_out(a, d, e)


@story(gotchas=[54], sections=["4.4", "4.5"], settings=SLOW_START, lasts_ms=8000)
def pending_ids_do_not_count(s: Story) -> None:
    """Five request an id of an empty group and get one; the fourth that uses it is refused and its id dropped."""
    group = s.group()
    members = [Member(s, name, group_id=group) for name in "abcde"]
    for member in members:
        member.asks_for_an_id()
    for member in members[:3]:
        member.joins_parked()
    for member in members[3:]:
        member.joins()
        member.joins(does="joins with its id again")
    for member in members[:3]:
        member.is_answered(within_ms=10_000)


@story(sections=["4.4", "4.8"], settings=SLOW_START, lasts_ms=8000)
def a_static_member_of_a_full_group_starts_again(s: Story) -> None:
    """Whether a replacement counts as a new member for the limit of a full group."""
    group = s.group()
    a = Member(s, "a", group_id=group, instance="instance-a")
    b, c = Member(s, "b", group_id=group), Member(s, "c", group_id=group)
    a.joins_parked()
    b.enters_parked()
    c.enters_parked()
    for member in (a, b, c):
        member.is_answered(within_ms=10_000)
    share_out(a, b, c)
    a.joins(does="starts again", member_id="")
    a.heartbeats()

"""The first rebalance of an empty group waits for more members (KIP-134): here in intervals of two seconds, up to a
limit."""

from tests.conformance.admin import Admin
from tests.conformance.embedded import subscription
from tests.conformance.members import Member, share_out
from tests.conformance.settings import SLOW_START
from tests.conformance.story import Story, story


@story(gotchas=[15], sections=["4.10"], settings=SLOW_START, lasts_ms=6000)
def a_lone_member_waits_once(s: Story) -> None:
    """The first member waits one delay and no longer, also when it rejoins meanwhile; a later empty group waits
    again."""
    group, admin = s.group(), Admin(s, "admin")
    a = Member(s, "a", group_id=group)
    mark = s.mark()
    a.enters_parked()
    admin.describes(group)
    a.stays_unanswered(1500, mark=mark)
    a.is_answered(within_ms=2300)
    share_out(a)
    a.leaves()
    a.member_id = ""
    mark = s.mark()
    a.enters_parked()
    a.stays_unanswered(1500, mark=mark)
    a.is_answered(within_ms=2300)


@story(gotchas=[15], sections=["4.10"], settings=SLOW_START, lasts_ms=8000)
def company_extends_the_delay(s: Story) -> None:
    """A member that joins during the delay extends it by one more delay; two in one interval extend it once."""
    group = s.group()
    a, b, c = (Member(s, name, group_id=group) for name in "abc")
    mark = s.mark()
    a.enters_parked()
    b.enters_parked()
    c.enters_parked()
    a.stays_unanswered(3200, mark=mark)
    a.is_answered(within_ms=2300)
    b.is_answered()
    c.is_answered()
    share_out(a, b, c)


@story(gotchas=[15], sections=["4.10"], settings=SLOW_START, lasts_ms=10000)
def company_in_every_slice(s: Story) -> None:
    """One new member per interval extends the delay each time."""
    group = s.group()
    a, b, c = (Member(s, name, group_id=group) for name in "abc")
    mark = s.mark()
    a.enters_parked()
    s.wait_until(mark, 800, "within the first slice")
    b.enters_parked()
    s.wait_until(mark, 2800, "within the second slice")
    c.enters_parked()
    a.stays_unanswered(5200, mark=mark)
    a.is_answered(within_ms=2300)
    b.is_answered()
    c.is_answered()


@story(gotchas=[16], sections=["4.10"], settings=SLOW_START, lasts_ms=8000)
def the_delay_is_bounded_by_the_first_joiner(s: Story) -> None:
    """The sum of delays never exceeds the first member's rebalance timeout, whatever those of the others are."""
    group = s.group()
    a = Member(s, "a", group_id=group, rebalance_ms=3000)
    b = Member(s, "b", group_id=group, rebalance_ms=60_000)
    c = Member(s, "c", group_id=group, rebalance_ms=60_000)
    mark = s.mark()
    a.enters_parked()
    b.enters_parked()
    s.wait_until(mark, 2300, "into the second slice, which is cut to a second")
    c.enters_parked()
    a.is_answered(within_ms=1700)
    b.is_answered()
    c.is_answered()


@story(gotchas=[16], sections=["4.10"], settings=SLOW_START, lasts_ms=6000)
def a_rebalance_timeout_below_the_delay(s: Story) -> None:
    """With a rebalance timeout below the delay the first interval is not shortened, and never extended."""
    group = s.group()
    a, b = Member(s, "a", group_id=group, rebalance_ms=300), Member(s, "b", group_id=group)
    mark = s.mark()
    a.enters_parked()
    b.enters_parked()
    a.stays_unanswered(1500, mark=mark)
    a.is_answered(within_ms=1700)
    b.is_answered()


@story(gotchas=[17, 18], sections=["4.10", "7"], settings=SLOW_START, lasts_ms=8000)
def leaving_does_not_end_the_delay(s: Story) -> None:
    """All members leave during the delay: the group stays PreparingRebalance until the timer, then is empty in the next
    generation."""
    group, admin = s.group(), Admin(s, "admin")
    a, b = Member(s, "a", group_id=group), Member(s, "b", group_id=group)
    a.enters_parked()
    b.enters_parked()
    admin.removes(group, a)
    a.is_answered()
    b.stays_unanswered(300)
    admin.removes(group, b)
    b.is_answered()
    admin.describes(group)
    c = Member(s, "c", group_id=group, protocol_type="connect", offers={"other": b"x"})
    c.joins(does="joins with another type")
    s.wait(5000, "the delay and its extension are over")
    admin.describes(group)
    admin.lists()


@story(gotchas=[18], sections=["4.7", "4.10"], settings=SLOW_START, lasts_ms=8000)
def joining_after_all_left_during_the_delay(s: Story) -> None:
    """In a rebalancing group without members any protocol name of the right type is accepted; the new member leads."""
    group = s.group()
    a, b = Member(s, "a", group_id=group), Member(s, "b", group_id=group, offers={"sticky": subscription()})
    a.enters_parked()
    admin = Admin(s, "admin")
    admin.removes(group, a)
    a.is_answered()
    b.enters_parked()
    b.is_answered(within_ms=8300)
    share_out(b)


@story(gotchas=[17], sections=["8"], settings=SLOW_START, lasts_ms=6000)
def an_expiring_pending_id_ends_the_delay(s: Story) -> None:
    """A pending id that expires when all others have joined ends the delay early, though leaving would not."""
    group = s.group()
    a = Member(s, "a", group_id=group)
    b = Member(s, "b", group_id=group, session_ms=1200)
    b.asks_for_an_id()
    mark = s.mark()
    a.joins_parked(3, does="joins in one step and waits")
    a.is_answered(within_ms=1800, mark=mark)
    share_out(a)


@story(sections=["4.10"], settings=SLOW_START, lasts_ms=8000)
def a_pending_id_does_not_prolong_the_delay(s: Story) -> None:
    """A pending id does not delay the end of the initial delay."""
    group = s.group()
    a, b = Member(s, "a", group_id=group), Member(s, "b", group_id=group)
    mark = s.mark()
    a.enters_parked()
    b.asks_for_an_id()
    a.stays_unanswered(1500, mark=mark)
    a.is_answered(within_ms=2300)
    share_out(a)
    b.joins_parked()
    a.joins(does="rejoins")
    b.is_answered()


@story(sections=["4.10"], settings=SLOW_START, lasts_ms=8000)
def an_extension_that_leaks(s: Story) -> None:
    """A member that joins in the last interval has a late effect: the next first rebalance of the group is extended
    once."""
    group = s.group()
    a, b, c = (Member(s, name, group_id=group, rebalance_ms=3700) for name in "abc")
    mark = s.mark()
    a.enters_parked()
    b.enters_parked()
    s.wait_until(mark, 2500, "into the second and last slice, of 1700 ms")
    c.enters_parked()
    for member in (a, b, c):
        member.is_answered(within_ms=3000)
    share_out(a, b, c)
    for member in (a, b, c):
        member.leaves()
    d = Member(s, "d", group_id=group)
    mark = s.mark()
    d.enters_parked()
    d.stays_unanswered(3200, mark=mark)
    d.is_answered(within_ms=2300)


@story(sections=["4.10", "4.6"], settings=SLOW_START, lasts_ms=6000)
def rejoining_during_the_delay(s: Story) -> None:
    """A member that sends JoinGroup again during the delay does not extend it; only the second request gets a response."""
    group = s.group()
    a = Member(s, "a", group_id=group)
    mark = s.mark()
    first = a.enters_parked()
    s.wait_until(mark, 1000, "within the delay")
    second = a.joins_parked(does="joins again with its id and waits")
    a.is_answered(second, within_ms=1700)
    a.stays_unanswered(700, first)


@story(gotchas=[15], sections=["4.10", "4.8"], settings=SLOW_START, lasts_ms=8000)
def static_members_and_the_delay(s: Story) -> None:
    """Static members wait for the delay as well; a replacement during it fences the old member's JoinGroup."""
    group = s.group()
    a = Member(s, "a", group_id=group, instance="instance-a")
    old = a.joins_parked()
    again = Member(s, "a again", client_id="a", group_id=group, instance="instance-a")
    again.joins_parked(does="starts again and waits")
    a.is_answered(old)
    again.is_answered(within_ms=5000)
    stable_again = again.sync_request({again: b"all"})
    again.asks(stable_again, 5, does="syncs")


@story(sections=["4.10"], settings=SLOW_START, lasts_ms=6000)
def a_stable_group_knows_no_delay(s: Story) -> None:
    """When the group is not empty, rebalances wait for members and not for the delay."""
    group = s.group()
    a, b = Member(s, "a", group_id=group), Member(s, "b", group_id=group)
    a.enters_parked()
    a.is_answered(within_ms=5000)
    share_out(a)
    a.joins(does="rejoins")
    share_out(a)
    b.enters_parked()
    a.joins(does="rejoins")
    b.is_answered(within_ms=1000)

"""Join phases that cannot complete: an exception escapes from the coordinator because of a member's data, and earlier
changes are kept."""

from collections.abc import Mapping, Sequence

from groupcoord.protocol.apis.join_group import JoinGroupRequestProtocol
from tests.conformance.admin import Admin
from tests.conformance.embedded import subscription
from tests.conformance.members import Member, share_out, stable
from tests.conformance.story import Story, story

GOOD = {"range": subscription("orders")}
BAD = {"range": subscription("orders")[:10]}
LOW, HIGH = range(8), range(8, 16)


def _listed(*names: str) -> Sequence[JoinGroupRequestProtocol]:
    return tuple(JoinGroupRequestProtocol(name=name, metadata=b"of " + name.encode()) for name in names)


def _member(s: Story, name: str, group: str, offers: Mapping[str, bytes] = GOOD, session_ms: int = 60_000) -> Member:
    return Member(s, name, group_id=group, offers=offers, session_ms=session_ms)


@story(sections=["4", "9.4"])
def a_leader_breaks_the_join_phase_and_mends_it(s: Story) -> None:
    """A leader that rejoins with unreadable metadata gets UNKNOWN_SERVER_ERROR; the generation has already increased."""
    group, admin = s.group(), Admin(s, "admin")
    a = _member(s, "a", group)
    stable(a)
    a.offers = BAD
    a.joins(does="rejoins with cut metadata")
    admin.describes(group)
    a.heartbeats()
    a.heartbeats(does="heartbeats one generation on", generation_id=2)
    a.syncs(does="syncs one generation on", generation_id=2)
    admin.lists(states=["PreparingRebalance"])
    a.joins(does="rejoins with cut metadata again")
    a.offers = GOOD
    a.joins(does="rejoins with good metadata")
    share_out(a)
    admin.describes(group)


@story(sections=["4", "9.4"])
def who_comes_to_a_stuck_group(s: Story) -> None:
    """A member that joins after a first one with unreadable metadata waits, too: only LeaveGroup can end this join
    phase."""
    group, admin = s.group(), Admin(s, "admin")
    a, b = _member(s, "a", group, BAD), _member(s, "b", group)
    a.enters_parked()
    b.enters_parked()
    admin.describes(group)
    a.heartbeats(generation_id=1)
    b.leaves()
    b.is_answered()
    admin.describes(group)
    a.leaves()
    a.is_answered()
    admin.describes(group)


@story(sections=["4", "7"])
def a_leave_breaks_the_join_phase(s: Story) -> None:
    """The last LeaveGroup before a join phase that cannot complete gets UNKNOWN_SERVER_ERROR, but is effective; joins get
    it, too."""
    group, admin = s.group(), Admin(s, "admin")
    a, b, c = _member(s, "a", group), _member(s, "b", group), _member(s, "c", group)
    stable(a, b)
    b.offers = BAD
    b.joins_parked(does="rejoins with cut metadata and waits")
    a.leaves()
    admin.describes(group)
    c.asks_for_an_id()
    c.joins()
    admin.describes(group)
    b.stays_unanswered(100)
    b.offers = GOOD
    answer = b.joins(does="rejoins with good metadata")
    admin.describes(group)
    if answer.leader == b.member_id:
        share_out(b, c)
    c.joins(does="rejoins")


@story(sections=["4", "8"], lasts_ms=6000)
def an_expiry_breaks_the_join_phase(s: Story) -> None:
    """A session times out; the join phase has all its members but cannot complete: no response is sent."""
    group, admin = s.group(), Admin(s, "admin")
    a, b = _member(s, "a", group, session_ms=2000), _member(s, "b", group)
    stable(a, b)
    b.offers = BAD
    b.joins_parked(does="rejoins with cut metadata and waits")
    s.wait(3000, "the session of a is over")
    admin.describes(group)
    a.heartbeats()
    b.stays_unanswered(100)
    b.heartbeats(does="heartbeats a generation on", generation_id=3)
    b.leaves()
    b.is_answered()
    admin.describes(group)


@story(sections=["4"])
def a_protocol_that_counts_twice(s: Story) -> None:
    """A protocol listed twice by a lone member is no candidate, but is one if another member does not list it."""
    group, admin = s.group(), Admin(s, "admin")
    a = Member(s, "a", group_id=group, protocol_type="other", offers={"x": b"", "y": b""})
    b = Member(s, "b", group_id=group, protocol_type="other", offers={"y": b""})
    c = Member(s, "c", group_id=group, protocol_type="other", offers={"x": b""})
    c.asks_for_an_id()
    c.leaves()
    a.gets_an_id_in(LOW)
    b.gets_an_id_in(HIGH)
    a.joins(does="offers x twice, then y", protocols=_listed("x", "x", "y"))
    a.syncs({a: b"all"})
    admin.describes(group)
    c.joins(does="offers x only")
    b.joins_parked()
    a.joins(does="rejoins, offers x twice, then y", protocols=_listed("x", "x", "y"))
    admin.describes(group)
    a.heartbeats(generation_id=2)
    a.syncs({a: b"all"}, does="syncs", generation_id=2, protocol_name="x")
    b.joins(does="rejoins as before")
    b.heartbeats()
    b.leaves()
    admin.describes(group)


@story(sections=["4"])
def a_follower_that_lists_a_protocol_twice(s: Story) -> None:
    """The join phase cannot complete while a protocol counts three times for two members; that follower can correct it."""
    group, admin = s.group(), Admin(s, "admin")
    a, b, c = _member(s, "a", group), _member(s, "b", group), _member(s, "c", group)
    stable(a)
    b.asks_for_an_id()
    b.joins_parked(does="offers range twice", protocols=_listed("range", "range"))
    a.joins(does="rejoins")
    admin.describes(group)
    c.joins()
    a.joins(does="rejoins again")
    b.joins(does="rejoins with range twice", protocols=_listed("range", "range"))
    b.joins(does="rejoins with range once")
    b.leaves()
    b.is_answered()
    admin.describes(group)


@story(sections=["5", "9.4"])
def a_static_member_comes_back_and_breaks_it(s: Story) -> None:
    """A static leader that returns with unreadable metadata changes nothing while the group is stable."""
    group, admin = s.group(), Admin(s, "admin")
    a = Member(s, "a", group_id=group, instance="i", offers=GOOD)
    stable(a)
    a.offers = BAD
    a.joins(does="is back with cut metadata", member_id="")
    admin.describes(group)
    a.joins(does="is back with range twice", member_id="", protocols=_listed("range", "range"))
    admin.describes(group)
    a.offers = GOOD
    a.joins(does="is back with good metadata", member_id="")
    admin.describes(group)


@story(sections=["4", "8"], lasts_ms=305_000)
def a_stuck_newcomer_is_let_go(s: Story) -> None:
    """After five minutes the new member with unreadable metadata gets UNKNOWN_MEMBER_ID, and its group is empty."""
    group, admin = s.group(), Admin(s, "admin")
    a = _member(s, "a", group, BAD)
    a.enters_parked()
    a.stays_unanswered(298_000)
    a.is_answered()
    admin.describes(group)
    a.offers = GOOD
    a.enters()

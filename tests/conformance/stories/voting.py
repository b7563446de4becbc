"""Which protocol a group selects, and which members can join."""

from tests.conformance.admin import Admin
from tests.conformance.embedded import subscription
from tests.conformance.members import Member, share_out, stable
from tests.conformance.story import Story, story


def voter(s: Story, name: str, group: str, *protocols: str) -> Member:
    """A member that prefers ``protocols`` in this order."""
    offers = {protocol: subscription(user_data=f"{protocol} of {name}".encode()) for protocol in protocols}
    return Member(s, name, group_id=group, offers=offers)


def _elect(*members: Member) -> None:
    first, *others = members
    first.enters()
    for other in others:
        other.enters_parked()
    first.joins(does="rejoins")
    for other in others:
        other.is_answered()
    share_out(first, *others)


@story(sections=["4.9"])
def the_majority_decides(s: Story) -> None:
    """Each member votes for the first of its protocols that all support; the most votes win, whatever the leader
    prefers."""
    group, admin = s.group(), Admin(s, "admin")
    a = voter(s, "a", group, "range", "roundrobin", "sticky")
    b = voter(s, "b", group, "roundrobin", "sticky", "range")
    c = voter(s, "c", group, "sticky", "roundrobin", "range")
    d = voter(s, "d", group, "sticky", "range", "roundrobin")
    _elect(a, b, c, d)
    admin.describes(group)


@story(sections=["4.9"])
def only_what_all_have_can_win(s: Story) -> None:
    """A favourite that one member does not support is no candidate; votes go to protocols that all support."""
    group, admin = s.group(), Admin(s, "admin")
    a = voter(s, "a", group, "new", "range", "roundrobin")
    b = voter(s, "b", group, "new", "roundrobin", "range")
    c = voter(s, "c", group, "roundrobin", "range")
    _elect(a, b, c)
    c.leaves()
    b.joins_parked(does="rejoins and waits")
    a.joins(does="rejoins")
    b.is_answered()
    share_out(a, b)
    admin.describes(group)


@story(sections=["4.9"])
def ties_follow_the_hash_order_of_names(s: Story) -> None:
    """With equal votes the first name in Java's hash order wins, not the first voted for or the alphabetically first."""
    pairs = [("range", "roundrobin"), ("roundrobin", "range"), ("sticky", "range"), ("x", "y"), ("zebra", "ant"), ("b", "a"),
             ("cooperative-sticky", "sticky"), ("one", "two")]  # fmt: skip
    for number, (first, second) in enumerate(pairs):
        group = s.group(str(number))
        _elect(voter(s, "a", group, first, second), voter(s, "b", group, second, first))


@story(sections=["4.7", "4.9"])
def one_vote_each_for_three_names(s: Story) -> None:
    """Three members, three favourites: again the hash order."""
    for number, names in enumerate([("range", "roundrobin", "sticky"), ("alpha", "beta", "gamma"), ("p1", "p2", "p3")]):
        group = s.group(str(number))
        one, two, three = names
        _elect(
            voter(s, "a", group, one, two, three),
            voter(s, "b", group, two, three, one),
            voter(s, "c", group, three, one, two),
        )


@story(sections=["4.7"])
def newcomers_must_have_something_in_common(s: Story) -> None:
    """Another type or no common protocol is INCONSISTENT_GROUP_PROTOCOL; one name that all support is enough."""
    group = s.group()
    a, b = voter(s, "a", group, "range", "sticky"), voter(s, "b", group, "sticky", "range")
    _elect(a, b)
    voter(s, "c", group, "roundrobin").joins()
    c = voter(s, "c", group, "roundrobin", "range")
    c.joins(does="joins with another type", protocol_type="connect")
    c.joins(does="joins with the type in capitals", protocol_type="Consumer")
    c.enters_parked()
    voter(s, "d", group, "sticky").joins(does="joins with what only the others have")
    d = voter(s, "d", group, "range")
    d.enters_parked()
    a.joins_parked(does="rejoins and waits")
    b.joins(does="rejoins")
    for member in (a, c, d):
        member.is_answered()
    share_out(a, b, c, d)


@story(gotchas=[14], sections=["4.7"])
def an_empty_group_takes_any_type(s: Story) -> None:
    """The type stays with the empty group, but the next first member may bring another one."""
    group, admin = s.group(), Admin(s, "admin")
    a = voter(s, "a", group, "range")
    stable(a)
    a.leaves()
    admin.describes(group)
    b = Member(s, "b", group_id=group, protocol_type="connect", offers={"eager": b"worker"})
    b.asks_for_an_id()
    admin.describes(group)
    b.joins()
    voter(s, "c", group, "range").joins()
    b.syncs({b: b"tasks"})
    admin.describes(group)
    admin.lists()

"""DescribeGroups, ListGroups, DeleteGroups: in every version, on groups in every state."""

from groupcoord.protocol.messages import DeleteGroupsRequest, DescribeGroupsRequest
from tests.conformance.actors import Stagehand
from tests.conformance.admin import Admin
from tests.conformance.members import Member, stable
from tests.conformance.stories.syncing import completing
from tests.conformance.story import Story, story


def a_group_in_each_state(s: Story) -> dict[str, str]:
    """Group ids by state; the members are left to themselves."""
    topic = Stagehand(s).topic("orders")
    admin = Admin(s, "admin")
    groups = {
        name: s.group(name) for name in ("missing", "simple", "pending", "empty", "preparing", "completing", "stable")
    }
    admin.commits(groups["simple"], {(topic, 0): 1})
    Member(s, "p", group_id=groups["pending"]).asks_for_an_id()
    e = Member(s, "e", group_id=groups["empty"])
    stable(e)
    e.commits({(topic, 0): 1})
    e.leaves()
    a, b = (
        Member(s, "a", group_id=groups["preparing"]),
        Member(s, "b", group_id=groups["preparing"], instance="instance-b"),
    )
    stable(a, b)
    a.joins_parked(does="rejoins and waits")
    completing(Member(s, "c", group_id=groups["completing"]))
    d = Member(s, "d", group_id=groups["stable"], protocol_type="connect", offers={"eager": b"worker d"})
    stable(d)
    return groups


@story(gotchas=[44, 45, 58], sections=["10.3"])
def describing_in_every_version_and_state(s: Story) -> None:
    """All versions of DescribeGroups for a missing, simple, pending, empty, rebalancing, completing and stable
    group."""
    groups = a_group_in_each_state(s)
    admin = Admin(s, "admin")
    for version in range(7):
        for group in groups.values():
            admin.describes(group, version=version)
        if version >= 3:
            admin.describes(groups["stable"], version=version, include_authorized_operations=True)
            admin.describes(groups["missing"], version=version, include_authorized_operations=True)
    admin.describes("")


@story(gotchas=[59], sections=["10.3"])
def describing_many(s: Story) -> None:
    """Several groups in one request, some twice: the response is ordered by the coordinator's partitions."""
    topic = Stagehand(s).topic("orders")
    admin = Admin(s, "admin")
    groups = [s.group(f"g{number}") for number in range(8)]
    for group in groups[:5]:
        admin.commits(group, {(topic, 0): 1})
    admin.describes(*groups)
    admin.describes(*reversed(groups))
    admin.describes(groups[0], groups[0], groups[6], groups[6])
    admin.asks(DescribeGroupsRequest(groups=()), 6, does="describes nothing")


@story(sections=["10.2"])
def listing_in_every_version_and_state(s: Story) -> None:
    """All versions of ListGroups with a group in each state; filters by state and type, alone and together, in any
    case."""
    a_group_in_each_state(s)
    admin = Admin(s, "admin")
    for version in range(6):
        admin.lists(version=version)
    for version in (4, 5):
        admin.lists(states=["Stable"], version=version)
        admin.lists(states=["stable", "EMPTY"], version=version)
        admin.lists(states=["preparingrebalance", " CompletingRebalance "], version=version)
        admin.lists(states=["Dead"], version=version)
        admin.lists(states=["nonsense"], version=version)
        admin.lists(states=["nonsense", "Stable"], version=version)
        admin.lists(states=[""], version=version)
    admin.lists(types=["classic"])
    admin.lists(types=["Classic", "CONSUMER"])
    admin.lists(types=["consumer"])
    admin.lists(types=[" classic "])
    admin.lists(types=["nonsense"])
    admin.lists(types=["nonsense", "classic"])
    admin.lists(types=[""])
    admin.lists(types=["share", "streams"])
    admin.lists(types=["classic"], states=["Stable"])
    admin.lists(types=["consumer"], states=["Stable"])


@story(gotchas=[53, 60], sections=["10.4", "11.3"])
def deleting_in_every_state(s: Story) -> None:
    """Only groups without members are deleted, with their offsets; a simple group gets a tombstone although it had no
    record."""
    groups = a_group_in_each_state(s)
    admin = Admin(s, "admin")
    for group in groups.values():
        admin.deletes(group)
    admin.lists()
    for group in groups.values():
        admin.describes(group)
        admin.fetches(group, None)


@story(gotchas=[39, 59, 60], sections=["10.4"])
def deleting_many(s: Story) -> None:
    """Several groups in one request, live, missing and listed twice: each gets its own result."""
    topic = Stagehand(s).topic("orders")
    admin = Admin(s, "admin")
    for version in range(3):
        names = [s.group(f"v{version}-{letter}") for letter in "abcd"]
        for group in names[:2]:
            admin.commits(group, {(topic, 0): 1})
        live = Member(s, "l", group_id=names[2])
        stable(live)
        admin.deletes(*names, names[0], version=version)
        admin.deletes(*names, version=version)
        live.heartbeats()
    admin.deletes("")
    admin.asks(DeleteGroupsRequest(groups_names=()), 2, does="deletes nothing")


@story(sections=["10.4"])
def a_deleted_group_starts_over(s: Story) -> None:
    """After a deletion the generation starts at 1 again, pending ids are unknown, and old offsets are gone."""
    topic = Stagehand(s).topic("orders")
    group, admin = s.group(), Admin(s, "admin")
    a, b = Member(s, "a", group_id=group), Member(s, "b", group_id=group)
    stable(a)
    a.commits({(topic, 0): 1})
    a.leaves()
    b.asks_for_an_id()
    admin.deletes(group)
    b.joins(does="joins with the id it got before")
    a.heartbeats()
    a.joins(does="rejoins with its old id")
    a.member_id = ""
    stable(a)
    admin.fetches(group, {topic: [0]})


@story(sections=["10.3", "4.5"])
def what_describing_knows_of_a_client(s: Story) -> None:
    """Client id and host are those of the request that added the member."""
    group, admin = s.group(), Admin(s, "admin")
    a = Member(s, "a", client_id="first-name", group_id=group)
    stable(a)
    a.client_id = "second-name"
    a.joins(does="rejoins under another client id")
    a.syncs({a: b"x"})
    admin.describes(group)

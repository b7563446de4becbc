"""JoinGroup: both steps, every version, and the state after a refusal."""

from typing import Any

from tests.conformance.admin import Admin
from tests.conformance.members import Member, stable
from tests.conformance.story import Story, story


@story(gotchas=[1], sections=["4.3"])
def an_id_for_an_absent_group(s: Story) -> None:
    """A JoinGroup with an id for a group that does not exist is UNKNOWN_MEMBER_ID and creates nothing."""
    group, admin = s.group(), Admin(s, "admin")
    a = Member(s, "a", group_id=group, member_id="made-up")
    a.joins()
    a.joins(does="joins as a static member", group_instance_id="instance-a")
    admin.describes(group)
    admin.lists()


@story(gotchas=[2, 44], sections=["4.3", "11.3"])
def a_refused_first_join_leaves_a_group(s: Story) -> None:
    """A first JoinGroup is refused because of its protocols, but the empty group exists, is listed, and has a record."""
    admin = Admin(s, "admin")
    refused: dict[str, dict[str, Any]] = {
        "no-protocols": {"protocols": ()},
        "no-type": {"protocol_type": ""},
        "neither": {"protocols": (), "protocol_type": ""},
    }
    for suffix, changes in refused.items():
        group = s.group(suffix)
        Member(s, "a", group_id=group).joins(**changes)
        Member(s, "b", group_id=group, instance="b").joins(does="joins as a static member", **changes)
        admin.describes(group)
    admin.lists()


@story(gotchas=[3, 6, 13, 52, 58], sections=["4.5", "4.6", "4.12", "5"])
def a_lone_member_reaches_stable(s: Story) -> None:
    """A dynamic member requests an id, joins with it, leads generation 1 and syncs; the group is described at every
    step."""
    group, admin = s.group(), Admin(s, "admin")
    a = Member(s, "a", group_id=group)
    a.asks_for_an_id()
    admin.describes(group)
    a.joins()
    admin.describes(group)
    a.syncs({a: b"all of it"})
    admin.describes(group, include_authorized_operations=True)
    a.heartbeats()
    a.leaves()
    admin.describes(group)


@story(gotchas=[13, 14], sections=["4.11", "11.3"])
def generations_count_the_empty_one(s: Story) -> None:
    """A member leaves and returns: the empty group had generation 2, so the next is 3; its protocol type is kept."""
    group, admin = s.group(), Admin(s, "admin")
    a = Member(s, "a", group_id=group)
    stable(a)
    a.leaves()
    admin.describes(group)
    stable(a)
    a.leaves()
    admin.describes(group)
    b = Member(s, "b", group_id=group, protocol_type="connect", offers={"eager": b"worker b"})
    stable(b)
    admin.describes(group)
    b.leaves()
    admin.lists()


@story(sections=["4.1", "5", "6", "7"])
def every_version_of_joining(s: Story) -> None:
    """Two members join, sync, heartbeat and leave with every version of JoinGroup and the nearest ones of the others."""
    for version in range(10):
        group = s.group(f"v{version}")
        a, b = Member(s, "a", group_id=group), Member(s, "b", group_id=group)
        a.enters(version)
        b.enters_parked(version)
        a.joins(version, does="rejoins")
        b.is_answered()
        sync = min(version, 5)
        b.syncs_parked(version=sync)
        a.syncs({a: b"share of a", b: b"share of b"}, sync)
        b.is_answered()
        a.heartbeats(min(version, 4))
        b.leaves(min(version, 5))
        a.heartbeats(min(version, 4))
        a.leaves(min(version, 5))


@story(sections=["4.1", "4.12"])
def every_version_of_a_refused_join(s: Story) -> None:
    """Each field of a refused JoinGroup, by version: invalid group, invalid session timeout, unknown id, no common
    protocol."""
    group = s.group()
    stable(Member(s, "a", group_id=group))
    for version in range(10):
        b = Member(s, "b", group_id=group)
        b.joins(version, does="joins no group", group_id="")
        b.joins(version, does="joins with a session too short", session_timeout_ms=9)
        b.joins(version, does="joins with an unknown id", member_id="made-up")
        b.joins(version, does="joins with nothing in common", protocol_type="connect")


@story(gotchas=[4], sections=["4.5", "4.8"])
def every_version_of_a_static_join(s: Story) -> None:
    """A static member joins with one request in every version that has the instance id."""
    for version in range(5, 10):
        group = s.group(f"v{version}")
        a = Member(s, "a", group_id=group, instance="instance-a")
        a.joins(version)
        a.syncs({a: b"all of it"}, min(version, 5))


@story(sections=["4.2"])
def bounds_of_the_session_timeout(s: Story) -> None:
    """The bounds themselves are allowed; one beyond is INVALID_SESSION_TIMEOUT; rebalance timeouts are not checked."""
    a = Member(s, "a", group_id=s.group())
    for session_ms in (9, 10, 600_000, 600_001, 0, -1, -2147483648, 2147483647):
        a.joins(does=f"asks with a session of {session_ms} ms", member_id="", session_timeout_ms=session_ms)
    for rebalance_ms in (-1, 0, -2147483648, 2147483647):
        a.joins(
            does=f"asks with a rebalance timeout of {rebalance_ms} ms", member_id="", rebalance_timeout_ms=rebalance_ms
        )


@story(sections=["4.2", "4.3", "4.6", "4.7"])
def order_of_the_checks_of_join(s: Story) -> None:
    """Requests with two errors: which one is returned."""
    group = s.group()
    absent = s.group("absent")
    a, b = Member(s, "a", group_id=group, instance="instance-a"), Member(s, "b", group_id=group)
    stable(a)
    b.joins(does="joins no group, with a session too short", group_id="", session_timeout_ms=1)
    b.joins(does="joins no group, with an unknown id", group_id="", member_id="made-up")
    b.joins(
        does="joins an absent group, with an id and a session too long",
        group_id=absent,
        member_id="made-up",
        session_timeout_ms=700_000,
    )
    b.joins(
        does="joins an absent group, with an id and no protocols", group_id=absent, member_id="made-up", protocols=()
    )
    b.joins(does="joins with an unknown id and nothing in common", member_id="made-up", protocol_type="connect")
    b.joins(
        does="joins with an unknown instance id and nothing in common",
        member_id="made-up",
        group_instance_id="other",
        protocol_type="connect",
    )
    b.joins(
        does="joins as the instance of another and nothing in common",
        member_id="made-up",
        group_instance_id="instance-a",
        protocol_type="connect",
    )
    b.joins(does="joins as the instance of another", member_id="made-up", group_instance_id="instance-a")
    b.joins(does="joins with an id and an unknown instance id", member_id=a.member_id, group_instance_id="other")
    b.joins(does="asks for an id with nothing in common", protocol_type="connect")
    b.joins(does="joins with no protocols", protocols=())
    b.joins(does="joins without a type", protocol_type="")
    b.asks_for_an_id()
    b.joins(does="joins with a pending id and an instance id", group_instance_id="instance-b")
    b.joins(does="joins with a pending id and nothing in common", protocol_type="connect")
    b.joins(does="joins with a pending id and a session too short", session_timeout_ms=1)


@story(sections=["4.5"])
def client_ids_and_instance_ids_in_member_ids(s: Story) -> None:
    """Member ids start with the client id or the instance id, whatever those are; a null client id counts as empty."""
    admin = Admin(s, "admin")
    names: list[str | None] = ["", None, "with space", "ünïcode", "a-b-c"]
    for number, client_id in enumerate(names):
        group = s.group(f"client-{number}")
        a = Member(s, "a", client_id=client_id, group_id=group)
        a.client_id = client_id
        stable(a)
        admin.describes(group)
    for number, instance in enumerate(["i", "", "with space", "ünïcode"]):
        group = s.group(f"instance-{number}")
        b = Member(s, "b", group_id=group, instance=instance)
        b.joins()
        admin.describes(group)


@story(sections=["4.1"])
def reasons_and_odd_protocol_lists(s: Story) -> None:
    """A reason is only logged, even a very long one; a protocol listed twice, an empty name, empty metadata."""
    group, admin = s.group(), Admin(s, "admin")
    a = Member(s, "a", group_id=group)
    a.joins(does="asks for an id and says why", reason="just because")
    a.joins(does="joins and says why at length", reason="why " * 2000)
    a.syncs({a: b""})
    b = Member(s, "b", group_id=s.group("twice"), protocol_type="other")
    b.asks_for_an_id()
    twice = (*b.join_request().protocols, *b.join_request().protocols)
    b.joins_parked(does="offers a protocol twice", protocols=twice)
    c = Member(s, "c", group_id=s.group("nameless"), protocol_type="other", offers={"": b""})
    stable(c)
    admin.describes(group, s.group("twice"), s.group("nameless"))

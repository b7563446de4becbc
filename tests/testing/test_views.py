"""A group at one moment."""

import pytest

from groupcoord.protocol.consumer_protocol import Assignment, TopicPartition, write_assignment
from groupcoord.testing.views import SeenGroup, SeenMember, assigned_by

ASSIGNMENT = write_assignment(Assignment(assigned_partitions=(TopicPartition(topic="orders", partitions=(0, 2)),)))


def seen(member_id: str, client_id: str = "", instance_id: str | None = None) -> SeenMember:
    assigned = assigned_by(ASSIGNMENT, "consumer")
    return SeenMember(
        member_id=member_id, instance_id=instance_id, client_id=client_id, client_host="/127.0.0.1", assigned=assigned
    )


def test_members_are_found_by_any_of_their_names() -> None:
    one, two = seen("m-1", "a", "i"), seen("m-2", "b")
    group = SeenGroup(group="app", state="Stable", protocol="range", members=(one, two))
    assert group.member("m-1") is group.member("a") is group.member("i") is one
    assert group.assignment == {"m-1": frozenset({("orders", 0), ("orders", 2)}), "m-2": two.assigned}
    with pytest.raises(LookupError, match="no member called 'c' in app Stable, 2 members: a, b"):
        group.member("c")
    with pytest.raises(LookupError, match="2 members called"):
        SeenGroup(group="app", state="Stable", protocol="range", members=(one, one)).member("a")


def test_a_group_in_one_line() -> None:
    assert SeenGroup(group="app", state="Empty", protocol=None, members=()).text() == "app Empty, 0 members"
    assert (
        SeenGroup(group="app", state="Stable", protocol="p", members=(seen("m"),)).text() == "app Stable, 1 member: m"
    )


def test_what_is_no_assignment_of_a_consumer_is_none() -> None:
    assert assigned_by(ASSIGNMENT, "connect") == assigned_by(b"", "consumer") == frozenset()
    assert assigned_by(b"\0", "consumer") == frozenset()

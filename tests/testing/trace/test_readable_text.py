"""Names of members, and numbers and lists as sentences have them."""

from collections.abc import Sequence

import pytest

from groupcoord.coordinator.events import MemberIdAssigned, MemberJoined, StaticMemberReplaced
from groupcoord.core.events import AdminAction, Event, Requested, counted
from groupcoord.testing.trace.events import TraceEntry
from groupcoord.testing.trace.short_member_names import ShortMemberNames
from groupcoord.testing.trace.times_and_lists_in_words import duration, listed, moment, times

TEST = AdminAction("the test")


def joined(member: str, client_id: str, instance_id: str | None = None) -> MemberJoined:
    return MemberJoined(
        at_ms=0,
        cause=TEST,
        group="g",
        member=member,
        instance_id=instance_id,
        client_id=client_id,
        client_host="/127.0.0.1",
        protocols=("range",),
        session_timeout_ms=1,
        rebalance_timeout_ms=1,
        reason="",
    )


def names(*events: Event) -> ShortMemberNames:
    return ShortMemberNames(entries(events))


def entries(events: Sequence[Event]) -> list[TraceEntry]:
    return [TraceEntry(seq, event.at_ms, event) for seq, event in enumerate(events, 1)]


def test_a_member_is_called_as_its_client() -> None:
    assert names(joined("a-5bd1", "a")).of("a-5bd1") == "a"


def test_a_static_member_is_called_as_its_instance() -> None:
    assert names(joined("i-5bd1", "a", "i")).of("i-5bd1") == "i"


def test_members_of_one_client_id_have_the_beginning_of_their_random_part() -> None:
    known = names(joined("a-5bd10000", "a"), joined("a-77c10000", "a"))
    assert [known.of("a-5bd10000"), known.of("a-77c10000")] == ["a-5bd1", "a-77c1"]


def test_and_more_of_it_where_the_beginning_is_the_same() -> None:
    known = names(joined("a-5bd10000", "a"), joined("a-5bd17000", "a"))
    assert [known.of("a-5bd10000"), known.of("a-5bd17000")] == ["a-5bd10", "a-5bd17"]


def test_a_member_without_a_client_id_is_called_by_its_random_part() -> None:
    assert names(joined("-5bd10000", "")).of("-5bd10000") == "5bd1"


def test_somebody_with_a_fresh_id_has_a_name() -> None:
    asked = Requested("JoinGroup", 9, "a", "/127.0.0.1", 1, 1)
    assert names(MemberIdAssigned(at_ms=0, cause=asked, group="g", member="a-1")).of("a-1") == "a"


def test_an_id_assigned_to_nobody_known_is_called_by_itself() -> None:
    assert names(MemberIdAssigned(at_ms=0, cause=TEST, group="g", member="a-1")).of("a-1") == "a-1"


def test_incarnations_of_a_static_member_are_told_apart() -> None:
    back = StaticMemberReplaced(
        at_ms=0, cause=TEST, group="g", instance_id="i", old_member="i-1", new_member="i-2", rebalances=False
    )
    known = names(joined("i-1", "a", "i"), back)
    assert [known.of("i-1"), known.of("i-2")] == ["i-1", "i-2"]


def test_nobody_known_is_called_by_the_id() -> None:
    assert names().of("a-5bd1") == "a-5bd1"


def test_an_id_is_no_part_of_a_word() -> None:
    assert names(joined("b", "bob")).shortened("b asks Heartbeat: b, a-b") == "bob asks Heartbeat: bob, a-b"


def test_ids_in_a_text_become_names() -> None:
    assert names(joined("a-5bd1", "a")).shortened("a-5bd1 joins") == "a joins"


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (0, "0.0 s"),
        (16_200, "16.2 s"),
        (61_250, "61.25 s"),
        (5, "0.005 s"),
        (86_400_000, "86,400.0 s"),
        (1_010, "1.01 s"),
    ],
)
def test_a_moment_has_a_tenth_of_a_second_at_least(ms: int, text: str) -> None:
    assert moment(ms) == text


def test_a_duration_has_its_thousands_apart() -> None:
    assert duration(45_000) == "45,000 ms"


@pytest.mark.parametrize(
    ("names", "text"), [([], ""), (["a"], "a"), (["a", "b"], "a and b"), (["a", "b", "c"], "a, b and c")]
)
def test_a_list_ends_with_and(names: list[str], text: str) -> None:
    assert listed(names) == text


def test_counts() -> None:
    assert [counted(1, "step"), counted(2, "step")] == ["1 step", "2 steps"]
    assert [times(1), times(2), times(3)] == ["once", "twice", "3 times"]

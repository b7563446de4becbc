import dataclasses

import pytest

from groupcoord.cli.demo.narrator import MemberVote, Narrator, explain_vote, member_votes
from groupcoord.coordinator import events as e
from groupcoord.core.events import AdminAction
from tests.cli.demo.narration import AIO, GOLDEN, PY, life, narrated
from tests.cli.demo.support import GROUP, TOPIC, Screen, asked


def narrator(screen: Screen) -> Narrator:
    return Narrator(screen.output, GROUP, TOPIC, 6)


def test_a_whole_life_reads_as_it_should() -> None:
    assert narrated() == GOLDEN.read_text(encoding="utf-8"), "python -m tests.cli.demo.narration writes it anew"


def test_nothing_is_wider_than_the_screen() -> None:
    assert max(map(len, narrated().splitlines())) <= 100


def test_real_ids_are_shown_once() -> None:
    text = narrated()
    assert [text.count(member) for member in (PY, AIO)] == [1, 1]


def test_other_groups_are_not_told() -> None:
    screen = Screen()
    for event in life():
        if isinstance(event, e.GroupEvent):
            assert not narrator(screen).tell(dataclasses.replace(event, group="another"))
    assert screen.text == ""


@pytest.mark.slow
def test_it_says_whether_it_wrote_something() -> None:
    for event in life():
        screen = Screen()
        teller = narrator(screen)
        assert teller.tell(event) == bool(screen.text)


def test_an_assignment_that_is_not_a_consumers_stays_opaque() -> None:
    screen = Screen()
    event = e.AssignmentReceived(
        at_ms=0, cause=asked("SyncGroup", "connect"), group=GROUP, generation=1, leader="connect-1", owners=None
    )
    assert narrator(screen).tell(event)
    assert "connect-1     brings an assignment that only its members can read" in screen.text


def test_a_member_that_joins_again_by_itself_did_not_hear_of_anything() -> None:
    screen = Screen()
    cause = asked("JoinGroup", "confluent")
    narrator(screen).tell(
        e.MemberRejoined(at_ms=0, cause=cause, group=GROUP, member="confluent", changed=True, reason="new topics")
    )
    assert "joins again of its own accord: new topics" in screen.text


def test_a_vote_of_members_it_has_not_seen_joining_is_told_without_ballots() -> None:
    screen = Screen()
    event = e.GenerationStarted(
        at_ms=0,
        cause=AdminAction("a start in the middle"),
        group=GROUP,
        generation=7,
        protocol="range",
        votes={"range": 1},
        leader="m",
        members=("m",),
    )
    assert narrator(screen).tell(event)
    assert "wants" not in screen.text
    assert "announces protocol range and leader m" in screen.text


def test_a_member_votes_for_the_first_on_its_list_that_all_know() -> None:
    cast = member_votes({"a": ("sticky", "range", "roundrobin"), "b": ("roundrobin", "range")})
    assert cast == [
        MemberVote("a", ("sticky", "range", "roundrobin"), "range"),
        MemberVote("b", ("roundrobin", "range"), "roundrobin"),
    ]


@pytest.mark.parametrize("offers", [{}, {"a": ("range",), "b": ("sticky",)}])
def test_without_anything_that_all_know_there_is_no_vote(offers: dict[str, tuple[str, ...]]) -> None:
    with pytest.raises(ValueError, match="no protocol that all members know"):
        member_votes(offers)


@pytest.mark.parametrize(
    ("offers", "winner", "said"),
    [
        ({"a": ("sticky", "range")}, "sticky", ["Nobody else is there, so a gets what it wants most."]),
        ({"a": ("x", "y"), "b": ("x", "y")}, "x", ["All 2 vote for x."]),
        (
            {"a": ("s", "x"), "b": ("x",), "c": ("x",), "d": ("x",)},
            "x",
            [
                "s is out of the question: b, c and d do not know it.",
                "All 4 vote for x, the only one that everybody knows.",
            ],
        ),
        ({"a": ("x", "y"), "b": ("y", "x"), "c": ("y", "x")}, "y", ["y wins (y 2, x 1)."]),
        (
            {"a": ("x", "y"), "b": ("y", "x")},
            "x",
            ["A tie (x 1, y 1): Kafka takes the one that its hash table has first, x."],
        ),
    ],
)
def test_the_outcome_is_explained(offers: dict[str, tuple[str, ...]], winner: str, said: list[str]) -> None:
    assert explain_vote(member_votes(offers), winner) == said

import pytest

from groupcoord.cli.demo.ballots import Ballot, ballots, outcome


def test_a_member_votes_for_the_first_on_its_list_that_all_know() -> None:
    cast = ballots({"a": ("sticky", "range", "roundrobin"), "b": ("roundrobin", "range")})
    assert cast == [
        Ballot("a", ("sticky", "range", "roundrobin"), "range"),
        Ballot("b", ("roundrobin", "range"), "roundrobin"),
    ]


@pytest.mark.parametrize("offers", [{}, {"a": ("range",), "b": ("sticky",)}])
def test_without_anything_that_all_know_there_is_no_vote(offers: dict[str, tuple[str, ...]]) -> None:
    with pytest.raises(ValueError, match="no protocol that all members know"):
        ballots(offers)


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
    assert outcome(ballots(offers), winner) == said

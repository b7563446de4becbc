import pytest

from groupcoord.protocol.errors import ErrorCode
from groupcoord.testing.faults import FaultRulesFailed, Heartbeat, JoinGroup, Rulebook, when
from groupcoord.testing.faults.asked import Asked
from tests.testing.faults.support import World, heartbeat


@pytest.fixture
def asked() -> Asked:
    return Asked(World().heartbeat().call, heartbeat(), 0)


def test_the_first_that_matches_is_taken(asked: Asked) -> None:
    book = Rulebook()
    other = book.add(when(JoinGroup).drop())
    first, second = (book.add(when(Heartbeat).drop()) for _ in range(2))
    assert (book.take(asked), book.take(asked), book.take(asked)) == (first, second, None)
    assert other.matches == 0
    assert repr(book) == "<Rulebook 3 rules>"


def test_rules_are_counted_or_named() -> None:
    book = Rulebook()
    names = [book.add(when(Heartbeat).drop(), name).name for name in (None, "mine", None)]
    assert names == ["rule 1", "mine", "rule 3"]


def test_at_the_end_all_that_is_wrong_is_told(asked: Asked) -> None:
    book = Rulebook()
    book.check()
    book.add(when(Heartbeat, group="x").drop(), "mine")
    book.add(when(JoinGroup).drop())
    book.add(when(JoinGroup).drop().optional())
    book.take(asked)
    assert [text.splitlines()[0] for text in book.unused()] == [
        "mine never acted: when(Heartbeat, group='x').drop()",
        "rule 2 never acted: when(JoinGroup).drop()",
    ]
    with pytest.raises(FaultRulesFailed) as failed:
        book.check()
    assert str(failed.value) == "\n".join(["fault rules:", *book.unused()])
    assert failed.value.__cause__ is None


def test_what_a_function_raised_is_the_cause() -> None:
    book = Rulebook()
    error = ZeroDivisionError("a bug of the test")
    book.function_failed(book.add(when(Heartbeat).answer(max).optional()), error)
    with pytest.raises(
        FaultRulesFailed, match=r"rule 1: a function of .*answer\(max\).* raised ZeroDivisionError"
    ) as failed:
        book.check()
    assert failed.value.__cause__ is error


def test_a_removed_rule_must_have_acted_all_the_same() -> None:
    book = Rulebook()
    book.add(when(Heartbeat).drop()).remove()
    with pytest.raises(FaultRulesFailed):
        book.check()


def test_every_rule_says_what_it_would_do(asked: Asked) -> None:
    book = Rulebook()
    assert book.explain(asked) == f"{asked}\n  there are no rules"
    used = book.add(when(Heartbeat).drop())
    assert book.take(asked) is used
    used.acted(asked)
    book.add(when(Heartbeat).drop().optional()).remove()
    book.add(when(Heartbeat, group="x").drop(), "mine")
    book.add(when(Heartbeat, nth=2).refuse(ErrorCode.NOT_COORDINATOR))
    book.add(when(Heartbeat).drop())
    book.add(when().drop())
    assert book.explain(asked).splitlines()[1:] == [
        "  rule 1, when(Heartbeat).drop(): no longer: it has acted 1 of 1 times",
        "  rule 2, when(Heartbeat).drop().optional(): no longer: it was removed",
        "  mine, when(Heartbeat, group='x').drop(): no: group is 'app', not 'x'",
        f"  rule 4, {when(Heartbeat, nth=2).refuse(16)}: no: it is number 1 of those that match otherwise, and nth is 2",
        "  rule 5, when(Heartbeat).drop(): yes",
        "  rule 6, when().drop(): no: rule 5 comes before",
    ]

import inspect

import pytest

from groupcoord.testing.faults import Heartbeat, Match, Rule, Verdict, when
from groupcoord.testing.faults.grammar import Verbs, When
from groupcoord.testing.faults.verdicts import VERBS

ARGUMENTS = {"code": "NOT_COORDINATOR", "ms": 5, "how": "cut", "fn": max}


@pytest.mark.parametrize("name", VERBS)
def test_every_verb_of_the_table_is_a_method(name: str) -> None:
    argument = VERBS[name].argument
    given = () if argument is None else (ARGUMENTS[argument.name],)
    rule = getattr(when(Heartbeat), name)(*given)
    assert rule == Rule(Match(api=Heartbeat), Verdict(name, *given))
    parameters = list(inspect.signature(getattr(When, name)).parameters)[1:]
    assert parameters == ([] if argument is None else [argument.name])


def test_every_method_is_a_verb_of_the_table() -> None:
    assert {name for name in vars(Verbs) if name in VERBS or not name.startswith("_")} == set(VERBS)


def test_damage_is_a_flipped_bit_unless_told() -> None:
    assert when(Heartbeat).corrupt() == when(Heartbeat).corrupt("flip")


def test_a_rule_can_be_about_everything() -> None:
    assert when().drop().match == Match()

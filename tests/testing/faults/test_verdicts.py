from typing import Any

import pytest

from groupcoord.protocol.errors import ErrorCode
from groupcoord.testing.faults import Damage, RuleProblems, Verdict
from groupcoord.testing.faults.verdicts import VERBS


def named(request: Any) -> Any:
    return request


@pytest.mark.parametrize(
    ("name", "argument", "text", "action"),
    [
        ("refuse", "NOT_COORDINATOR", ".refuse('NOT_COORDINATOR')", "is refused with NOT_COORDINATOR"),
        ("refuse", ErrorCode.NOT_COORDINATOR, ".refuse('NOT_COORDINATOR')", "is refused with NOT_COORDINATOR"),
        ("refuse", 16, ".refuse('NOT_COORDINATOR')", "is refused with NOT_COORDINATOR"),
        ("refuse", 999, ".refuse(999)", "is refused with UNKNOWN_999"),
        ("refuse_answer", -1, ".refuse_answer('UNKNOWN_SERVER_ERROR')", "is handled and told UNKNOWN_SERVER_ERROR"),
        ("delay", 20, ".delay(20)", "is handled 20 ms late"),
        ("drop", None, ".drop()", "is lost"),
        ("corrupt", "crc", ".corrupt('crc')", "is answered with damaged bytes (CRC)"),
        ("answer", named, ".answer(named)", "is answered by the rule"),
        ("after", max, ".after(max)", "is answered what the rule makes of its answer"),
    ],
)
def test_a_verb_with_its_argument(name: str, argument: object, text: str, action: str) -> None:
    verdict = Verdict(name, argument)
    assert (repr(verdict), verdict.action) == (text, action)
    assert verdict == Verdict(name, argument)


@pytest.mark.parametrize(
    ("name", "argument", "problem"),
    [
        ("refuse", "NOT_COORD", "code: there is no error 'NOT_COORD'; do you mean NOT_COORDINATOR?"),
        ("refuse", "NONE", "code: NONE is no error"),
        ("refuse", 0, "code: NONE is no error"),
        *(
            (
                "refuse",
                code,
                f"code: {code!r} is not an error: give its name, an ErrorCode, or a number that an int16 can carry",
            )
            for code in (40_000, -40_000, True, None, 1.5)
        ),
        *(("delay", ms, f"ms: {ms!r} is not a number of milliseconds above 0") for ms in (0, -1, True, "5", 1.5, None)),
        ("answer", 3, "fn: 3 is not a function"),
        ("corrupt", "x", "how: 'x' is no damage; there is flip, crc, length, truncated, garbage, correlation, cut"),
    ],
)
def test_what_a_verb_cannot_have(name: str, argument: object, problem: str) -> None:
    with pytest.raises(RuleProblems) as found:
        Verdict(name, argument)
    assert str(found.value) == problem


def test_the_argument_as_data() -> None:
    assert Verdict("refuse", 16).plain_argument == "NOT_COORDINATOR"
    assert Verdict("refuse", 999).plain_argument == 999
    assert Verdict("corrupt", Damage.CUT).plain_argument == "cut"
    for verdict in (Verdict("answer", named), Verdict("drop")):
        with pytest.raises(ValueError, match="has no data to write"):
            _ = verdict.plain_argument


def test_every_verb_says_what_it_does() -> None:
    assert all(name == verb.name and verb.text and verb.action for name, verb in VERBS.items())
    assert all(verb.on_answer for name, verb in VERBS.items() if name.endswith("_answer"))
    assert {verb.needs_answer for verb in VERBS.values() if verb.on_answer} == {True}

import pytest

from groupcoord.client import verdicts
from groupcoord.client.verdicts import Verdict
from groupcoord.protocol.errors import ErrorCode as E

OF = [
    verdicts.of_find,
    verdicts.of_join,
    verdicts.of_sync,
    verdicts.of_heartbeat,
    verdicts.of_commit,
    verdicts.of_offset_fetch,
]


@pytest.mark.parametrize("of", OF)
def test_no_error_is_no_problem_and_a_strange_one_is(of: object) -> None:
    assert of(E.NONE) is Verdict.GO_ON  # type: ignore[operator]
    strange = of(E(999))  # type: ignore[operator]
    assert strange is (Verdict.RETRY if of is verdicts.of_heartbeat else Verdict.FAIL)


@pytest.mark.parametrize("of", OF[1:])
def test_another_coordinator_is_looked_for_wherever_there_is_one(of: object) -> None:
    for code in (E.NOT_COORDINATOR, E.COORDINATOR_NOT_AVAILABLE):
        assert of(code) is Verdict.SEARCH  # type: ignore[operator]


def test_offsets_that_a_transaction_may_change_are_asked_for_again() -> None:
    assert verdicts.of_offset_fetch(E.UNSTABLE_OFFSET_COMMIT) is Verdict.RETRY
    assert verdicts.of_offset_fetch(E.GROUP_AUTHORIZATION_FAILED) is Verdict.FAIL


def test_every_verdict_can_be_read() -> None:
    assert len({verdict.value for verdict in Verdict}) == len(Verdict)

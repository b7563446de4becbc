"""A process that is stopped for longer than a session, on either event loop, reads what has come before it expires anybody."""

import pytest

from tests.reliability import paused

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("loop", "pauses", "greedy"), [((), 2, 20), (("--no-uvloop",), 1, 0)], ids=["uvloop", "asyncio"]
)
def test_whoever_sent_a_heartbeat_in_time_is_still_a_member(loop: tuple[str, ...], pauses: int, greedy: int) -> None:
    outcome = paused.attack(pauses, greedy=greedy, arguments=loop)
    assert outcome.problems == ()
    assert "with 50 members" in outcome.tried

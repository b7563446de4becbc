"""A small one of the attack that ``make break`` runs at length."""

import pytest

from tests.reliability.damaged_files import attack


@pytest.mark.slow
def test_damaged_files_hang_no_start_and_hide_nothing() -> None:
    outcome = attack(40, 1)
    assert outcome.problems == ()
    assert outcome.tried == "40 damaged files"

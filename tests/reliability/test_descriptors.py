"""Out of descriptors, small: 300 clients at a server that may have 256."""

import pytest

from tests.reliability.descriptors import attack

pytestmark = pytest.mark.slow


def test_who_is_in_is_served_and_nothing_acknowledged_is_lost() -> None:
    assert attack(300, seed=1).problems == ()

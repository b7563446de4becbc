"""Brokers that are registered, fenced and unregistered: three real brokers do what was recorded.

What groupcoord does is in ``tests/cluster/test_broker_admin.py``.
"""

import pytest

from tests.conformance.brokers_registered import STORIES, recorded
from tests.conformance.trios import look_until, real_trio


@pytest.mark.slow
@pytest.mark.real_kafka
@pytest.mark.parametrize("story", STORIES)
def test_real_brokers_do_what_was_recorded(story: str) -> None:
    tell, properties = STORIES[story]
    with real_trio(properties) as trio:
        tell(trio, look_until(recorded()[story], once="answer"))  # what is asked is done

"""Elections and reassignments that an administrator asks for: three real brokers do what was recorded.

What groupcoord does is in ``tests/cluster/test_partition_admin.py``.
"""

import pytest

from tests.conformance.partitions_administered import STORIES, recorded
from tests.conformance.trios import look_until, real_trio

pytestmark = pytest.mark.minutes(1)


@pytest.mark.slow
@pytest.mark.real_kafka
@pytest.mark.kafka_alone
@pytest.mark.parametrize("story", STORIES)
def test_real_brokers_do_what_was_recorded(story: str) -> None:
    tell, properties = STORIES[story]
    with real_trio(properties) as trio:
        tell(trio, look_until(recorded()[story], once="answer"))  # what is asked is done

from collections.abc import Callable
from itertools import count
from typing import Any

import pytest

from groupcoord.partitioners.partitioners import StickyPartition
from tests.partitioners.known import KNOWN


def counting(start: int = 0) -> Callable[[], int]:
    return count(start).__next__


@pytest.mark.parametrize("case", KNOWN["adaptive_cft"])
def test_shorter_queues_are_likelier(case: dict[str, Any]) -> None:
    listed, length = case["queue_sizes"], case["length"]
    sticky = StickyPartition(1, counting())
    sticky.loads(listed[:length], case["partition_ids"][:length], left_out=len(listed) - length)
    if not case["adaptive_used"]:
        assert sticky.cumulative is None
        return
    assert sticky.cumulative == case["cumulative"]
    drawn = []
    for _ in case["partition_for_random_0_to_end"]:
        drawn.append(sticky.current([], 1))
        sticky.appended(1, [], 1)
    assert drawn == case["partition_for_random_0_to_end"]


def test_it_stays_until_a_batch_is_full() -> None:
    sticky = StickyPartition(100, counting())
    seen = []
    for _ in range(6):
        seen.append(sticky.current([0, 2], 3))
        sticky.appended(50, [0, 2], 3)
    assert seen == [0, 0, 2, 2, 0, 0]


def test_a_batch_that_is_not_full_is_waited_for_up_to_another() -> None:
    sticky = StickyPartition(100, counting())
    seen = []
    for full in (False, False, False, False, False, False, True, True):
        seen.append(sticky.current([0, 1], 2))
        sticky.appended(60, [0, 1], 2, batch_full=full)
    assert seen == [0, 0, 0, 0, 1, 1, 1, 0]


def test_without_leaders_any_partition_will_do_and_signs_do_not_matter() -> None:
    assert StickyPartition(1, lambda: -1).current([], 3) == 0x7FFFFFFF % 3


def test_nothing_known_of_the_queues() -> None:
    sticky = StickyPartition(1, counting())
    for queued in (None, [], [4]):
        sticky.loads(queued, [0])
        assert sticky.cumulative is None


def test_a_batch_of_no_bytes() -> None:
    with pytest.raises(ValueError, match="0 bytes"):
        StickyPartition(0, counting())

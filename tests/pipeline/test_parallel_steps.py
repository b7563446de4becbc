"""Steps wait for one another, and fail together. No Spark is needed for this."""

import threading
from collections.abc import Callable

import pytest

from groupcoord.pipeline.parallel_steps import ParallelSteps


def cancel() -> None:
    pytest.fail("nothing failed")


@pytest.mark.parametrize("threads", [1, 4])
def test_a_step_has_the_rows_of_those_before_it(threads: int) -> None:
    found: list[int] = []

    def last() -> int:
        found.append(steps.rows("sum"))
        return 0

    with ParallelSteps(cancel, threads) as steps:
        steps.done("read", 1)
        steps.add("double", lambda: 2 * steps.rows("read"))
        steps.add("sum", lambda: steps.rows("double") + steps.rows("read"))
        steps.add("last", last)
    assert found == [3]


def test_steps_that_wait_for_nothing_run_side_by_side() -> None:
    both = threading.Barrier(2)
    with ParallelSteps(cancel) as steps:
        for name in ("one", "other"):
            steps.add(name, lambda: both.wait(60))


def add_failing(cancel: Callable[[], None], until: threading.Event) -> None:
    def fail() -> int:
        raise ValueError("the disk is full")

    with ParallelSteps(cancel) as steps:
        steps.add("fails", fail)
        steps.add("waits", lambda: steps.rows("fails"))
        steps.add("works", lambda: int(until.wait(60)))


def fail_between(cancel: Callable[[], None], until: threading.Event) -> None:
    with ParallelSteps(cancel) as steps:
        steps.add("works", lambda: int(until.wait(60)))
        raise ValueError("no records")


def test_the_first_failure_is_raised_and_ends_what_others_are_at() -> None:
    is_cancelled = threading.Event()
    with pytest.raises(ValueError, match="the disk is full"):
        add_failing(is_cancelled.set, is_cancelled)
    assert is_cancelled.is_set()


def test_a_failure_between_steps_ends_them_too() -> None:
    is_cancelled = threading.Event()
    with pytest.raises(ValueError, match="no records"):
        fail_between(is_cancelled.set, is_cancelled)
    assert is_cancelled.is_set()

"""The clock keeps the wall clock's time at first and the monotonic clock's pace from then on."""

import time

import pytest

from groupcoord.server.clock import wall_clock


def test_it_starts_at_the_time_of_the_day() -> None:
    before = time.time_ns() // 1_000_000
    now = wall_clock()()
    assert before - 1 <= now <= time.time_ns() // 1_000_000 + 1


def test_it_follows_the_monotonic_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monotonic_ns = [5_000_000_000]
    monkeypatch.setattr(time, "monotonic_ns", lambda: monotonic_ns[0])
    monkeypatch.setattr(time, "time_ns", lambda: 1_700_000_000_000_000_000)
    clock = wall_clock()
    assert clock() == 1_700_000_000_000
    monotonic_ns[0] += 1_500_000_000
    monkeypatch.setattr(time, "time_ns", lambda: 0)  # somebody sets the machine's clock back
    assert clock() == 1_700_000_001_500

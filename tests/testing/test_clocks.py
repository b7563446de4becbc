"""What each clock shows, and how long the loop has to wait for a moment on it."""

import asyncio
import time

import pytest

from groupcoord.testing import clocks
from groupcoord.testing.clocks import ClockMode, LoopClock, ManualClock, RunningClock
from groupcoord.testing.virtual_loop import VirtualTimeLoop


def test_a_manual_clock_moves_when_it_is_told() -> None:
    clock = ManualClock(1_000)
    assert clock() == 1_000
    assert clock.seconds_until(1_001) is None
    assert clock.seconds_until(1_000) == 0.0
    clock.move_to(5_000)
    assert clock() == 5_000
    with pytest.raises(ValueError, match="it is 5000 ms, and 4999 ms is over"):
        clock.move_to(4_999)


def test_a_running_clock_runs() -> None:
    slow, fast = RunningClock(1_000), RunningClock(1_000, speed=1_000_000.0)
    while slow() < 1_002:
        pass
    assert fast() >= 900_000
    assert 0 < (slow.seconds_until(slow() + 10_000) or 0) <= 10.0
    assert (fast.seconds_until(fast() + 1_000_000) or 0) < 0.01
    with pytest.raises(ValueError, match="speed above 0, not 0"):
        RunningClock(0, speed=0)


def test_a_running_clock_shows_the_millisecond_of_the_wall_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monotonic_ns = [5_000_000_000]
    monkeypatch.setattr(time, "monotonic_ns", lambda: monotonic_ns[0])
    monkeypatch.setattr(time, "time_ns", lambda: 1_700_000_000_000_900_000)
    clock = RunningClock()
    assert clock() == 1_700_000_000_000
    monotonic_ns[0] += 100_000
    assert clock() == 1_700_000_000_001


def test_the_clock_of_a_loop_is_due_when_its_timers_are() -> None:
    loop = VirtualTimeLoop(0.0)
    clock = LoopClock(1_000, loop)
    assert clock.seconds_until(1_300) == 0.3
    loop.pass_time(0.3)
    assert clock() == 1_300
    loop.close()


@pytest.mark.parametrize(
    ("mode", "kind"),
    [("manual", ManualClock), ("real", RunningClock), ("fast", RunningClock), ("virtual", LoopClock)],
)
def test_every_mode_has_its_clock(mode: str, kind: type) -> None:
    loop = asyncio.new_event_loop()
    clock = clocks.make(ClockMode(mode), start_ms=5_000, speed=10.0, loop=loop)
    assert isinstance(clock, kind)
    assert 5_000 <= clock() < 1_700_000_000_000
    assert clocks.make(ClockMode(mode), start_ms=None, speed=10.0, loop=loop)() > 1_700_000_000_000
    loop.close()

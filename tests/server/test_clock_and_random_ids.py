"""The clock and random ids."""

import os
import time
import uuid

import pytest

from groupcoord.server.clock_and_random_ids import SystemRandomSource
from groupcoord.wall_clock import wall_clock


def test_ids_differ() -> None:
    drawn = SystemRandomSource()
    assert len({drawn.uuid() for _ in range(100)}) == 100
    assert len({drawn.session_id() for _ in range(100)}) > 90


def test_no_topic_id_starts_with_a_dash(monkeypatch: pytest.MonkeyPatch) -> None:
    dash = uuid.UUID(bytes=b"\xf8" + bytes(15))  # base64 of it starts with "-"
    fine = uuid.UUID(bytes=b"\xfc" + bytes(15))
    draws = iter([dash, dash, fine])
    monkeypatch.setattr(uuid, "uuid4", lambda: next(draws))
    assert SystemRandomSource().uuid() == fine


def test_a_session_id_is_a_positive_int32(monkeypatch: pytest.MonkeyPatch) -> None:
    draws = iter([b"\0\0\0\1", b"\xff\xff\xff\xff", b"\0\0\0\2"])
    monkeypatch.setattr(os, "urandom", lambda _: next(draws))
    assert SystemRandomSource().session_id() == 2**31 - 1
    assert SystemRandomSource().session_id() == 1


def test_a_number_below_another_is_any_of_them() -> None:
    drawn = SystemRandomSource()
    assert {drawn.next_int(3) for _ in range(200)} == {0, 1, 2}


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


def test_an_interruption_while_it_is_made_does_not_set_it_back(monkeypatch: pytest.MonkeyPatch) -> None:
    readings = iter([5_000_000_000 + 7_000_000])  # the first comes 7 ms after the wall clock was read
    monkeypatch.setattr(time, "monotonic_ns", lambda: next(readings, 5_000_000_000))
    monkeypatch.setattr(time, "time_ns", lambda: 1_700_000_000_000_000_000)
    assert wall_clock()() == 1_700_000_000_000

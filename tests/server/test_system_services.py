"""The clock, random ids, file descriptors and how addresses are written."""

import os
import resource
import time
import uuid

import pytest

from groupcoord.server.connection import Software
from groupcoord.server.system_services import (
    PLENTY_OF_DESCRIPTORS,
    SystemRandomSource,
    descriptors_left,
    host_and_port,
    java_host_text,
    raise_descriptor_limit,
    wall_clock,
)


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


INFINITY = resource.RLIM_INFINITY


@pytest.mark.parametrize(
    ("soft", "hard", "after"),
    [
        (1_024, 4_096, 4_096),
        (1_024, 1 << 20, PLENTY_OF_DESCRIPTORS),
        (1_024, INFINITY, PLENTY_OF_DESCRIPTORS),
        (PLENTY_OF_DESCRIPTORS + 1, INFINITY, PLENTY_OF_DESCRIPTORS + 1),
        (INFINITY, INFINITY, INFINITY),
        (1_024, 1_024, 1_024),
    ],
)
def test_raised(monkeypatch: pytest.MonkeyPatch, soft: int, hard: int, after: int) -> None:
    limits = {"soft": soft}
    monkeypatch.setattr(resource, "getrlimit", lambda _: (limits["soft"], hard))
    monkeypatch.setattr(resource, "setrlimit", lambda _, wanted: limits.update(soft=wanted[0]))
    assert raise_descriptor_limit() == after
    assert limits["soft"] == after


def test_a_system_that_refuses_keeps_its_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise ValueError("current limit exceeds maximum limit")

    monkeypatch.setattr(resource, "getrlimit", lambda _: (256, INFINITY))
    monkeypatch.setattr(resource, "setrlimit", refuse)
    assert raise_descriptor_limit() == 256


def test_a_system_without_such_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "resource", None)
    assert raise_descriptor_limit() is None


def test_how_many_are_left(monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[int] = []
    limits = {"soft": 256}
    monkeypatch.setattr(resource, "getrlimit", lambda _: (limits["soft"], INFINITY))
    monkeypatch.setattr(os, "dup", lambda descriptor: descriptor + 1)
    monkeypatch.setattr(os, "close", closed.append)
    assert descriptors_left(250) == 5
    assert closed == [251]
    limits["soft"] = INFINITY
    assert descriptors_left(250) is None


def test_none_are_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (1_024, INFINITY))
    assert descriptors_left(-1) == 0  # no copy can be made


def test_nobody_knows_how_many_are_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "resource", None)
    assert descriptors_left(0) is None


@pytest.mark.parametrize(
    ("ip", "java"),
    [
        ("127.0.0.1", "/127.0.0.1"),
        ("::1", "/0:0:0:0:0:0:0:1"),
        ("2001:db8::a:0:ff", "/2001:db8:0:0:0:a:0:ff"),
        ("fe80::1%eth0", "/fe80:0:0:0:0:0:0:1%eth0"),
        ("::ffff:10.1.2.3", "/10.1.2.3"),
    ],
)
def test_client_host(ip: str, java: str) -> None:
    assert java_host_text(ip) == java


def test_host_and_port() -> None:
    assert host_and_port("localhost", 9092) == "localhost:9092"
    assert host_and_port("::1", 9092) == "[::1]:9092"


def test_software_prints_as_name_and_version() -> None:
    assert str(Software("apache-kafka-java", "4.3.1")) == "apache-kafka-java 4.3.1"
    assert str(Software()) == "unknown unknown"

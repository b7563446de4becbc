"""The limit of file descriptors is raised, and it is known how many are left."""

import os
import resource

import pytest

from groupcoord.server.file_descriptor_limit import PLENTY_OF_DESCRIPTORS, descriptors_left, raise_descriptor_limit

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

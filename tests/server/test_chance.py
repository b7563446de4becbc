"""Ids are random, and none that Kafka avoids."""

import os
import uuid

import pytest

from groupcoord.server.chance import SystemChance


def test_ids_differ() -> None:
    drawn = SystemChance()
    assert len({drawn.uuid() for _ in range(100)}) == 100
    assert len({drawn.session_id() for _ in range(100)}) > 90


def test_no_topic_id_starts_with_a_dash(monkeypatch: pytest.MonkeyPatch) -> None:
    dash = uuid.UUID(bytes=b"\xf8" + bytes(15))  # base64 of it starts with "-"
    fine = uuid.UUID(bytes=b"\xfc" + bytes(15))
    draws = iter([dash, dash, fine])
    monkeypatch.setattr(uuid, "uuid4", lambda: next(draws))
    assert SystemChance().uuid() == fine


def test_a_session_id_is_a_positive_int32(monkeypatch: pytest.MonkeyPatch) -> None:
    draws = iter([b"\0\0\0\1", b"\xff\xff\xff\xff", b"\0\0\0\2"])
    monkeypatch.setattr(os, "urandom", lambda _: next(draws))
    assert SystemChance().session_id() == 2**31 - 1
    assert SystemChance().session_id() == 1


def test_a_number_below_another_is_any_of_them() -> None:
    drawn = SystemChance()
    assert {drawn.next_int(3) for _ in range(200)} == {0, 1, 2}

"""A trouble is told once when it begins and once when it is over, and not too often."""

import logging

import pytest

from groupcoord.client.trouble_log import QUIET_MS, TroubleLog
from groupcoord.core.events import Event


class Client:
    """What is told of its troubles, and its clock."""

    def __init__(self) -> None:
        self.now_ms = 0
        self.events: list[Event] = []
        self.troubles = TroubleLog("consumer in g", now_ms=lambda: self.now_ms, listen=self.events.append)

    def told(self) -> list[str]:
        texts = [event.text() for event in self.events]
        self.events.clear()
        return texts


@pytest.fixture
def client() -> Client:
    return Client()


def test_a_trouble_is_told_when_it_begins_and_when_it_is_over(client: Client, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "groupcoord.client")
    client.troubles.begin("the broker", "it is gone")
    client.now_ms = 1_500
    client.troubles.begin("the broker", "it is still gone")
    assert client.troubles.subjects() == ("the broker",)
    client.troubles.end("the broker")
    client.troubles.end("the broker")
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        ("WARNING", "consumer in g: trouble with the broker: it is gone"),
        ("INFO", "consumer in g: no more trouble with the broker, after 1500 ms"),
    ]
    assert client.told() == [record.getMessage() for record in caplog.records]
    assert client.troubles.subjects() == ()


def test_subjects_have_their_own_troubles(client: Client) -> None:
    client.troubles.begin("a", "x")
    client.troubles.begin("b", "y")
    client.troubles.end("c")
    client.troubles.end("a")
    assert client.troubles
    assert client.troubles.subjects() == ("b",)
    assert len(client.told()) == 3


def test_what_comes_and_goes_is_told_seldom_and_counted(client: Client) -> None:
    for _ in range(50):
        client.troubles.begin("a", "x")
        client.troubles.end("a")
        client.now_ms += 100
    assert client.told() == ["consumer in g: trouble with a: x", "consumer in g: no more trouble with a, after 0 ms"]
    client.now_ms = QUIET_MS
    client.troubles.begin("a", "x")
    assert client.told() == [
        "consumer in g: trouble with a: x (49 more troubles with it since the last one that was told)"
    ]


def test_a_trouble_that_was_not_told_and_lasts_is_told_later(client: Client) -> None:
    client.troubles.begin("a", "x")
    client.troubles.end("a")
    client.told()
    client.now_ms = 1_000
    client.troubles.begin("a", "y")
    client.now_ms = 2_000
    client.troubles.begin("a", "y")
    assert client.told() == []
    client.now_ms = QUIET_MS
    client.troubles.begin("a", "z")
    assert client.told() == ["consumer in g: trouble with a: z"]
    client.now_ms += 500
    client.troubles.end("a")
    assert client.told() == [f"consumer in g: no more trouble with a, after {QUIET_MS - 500} ms"]

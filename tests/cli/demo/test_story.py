import asyncio
import json
from itertools import combinations
from typing import Any

import pytest

from groupcoord.cli.demo import missing_libraries, story
from groupcoord.cli.demo.narrator import member_votes
from groupcoord.cli.demo.observed_group import RecordPosition
from groupcoord.cli.demo.story import CUSTOMERS, produce


def test_three_libraries_play() -> None:
    assert {role.library for role in story.CONSUMERS} == {"aiokafka", "kafka-python", "confluent-kafka"}


@pytest.mark.parametrize("size", [1, 2, 3])
def test_whoever_is_there_can_agree(size: int) -> None:
    for roles in combinations(story.CONSUMERS, size):
        assert member_votes({role.name: role.protocols for role in roles})


def test_the_vote_comes_out_differently_as_members_come_and_go() -> None:
    def votes(*roles: story.ConsumerSettings) -> list[str]:
        return [ballot.vote for ballot in member_votes({role.name: role.protocols for role in roles})]

    assert votes(story.KILLED) == ["sticky"]
    assert votes(story.KILLED, story.LAST) == ["range", "roundrobin"]
    assert votes(*story.CONSUMERS) == ["roundrobin"] * 3


def test_customers_are_told_apart() -> None:
    assert len(set(CUSTOMERS)) == len(CUSTOMERS)


def test_what_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    assert missing_libraries() == []
    monkeypatch.setattr("importlib.util.find_spec", lambda module: None if module == "kafka" else module)
    assert missing_libraries() == ["kafka-python"]


class Log:
    """A producer of one partition, which has had enough after ``limit`` records."""

    def __init__(self, limit: int, stopping: asyncio.Event) -> None:
        self.sent: list[tuple[str, bytes, bytes]] = []
        self._limit = limit
        self._stopping = stopping

    async def send_and_wait(self, topic: str, *, key: bytes, value: bytes) -> Any:
        self.sent.append((topic, key, value))
        if len(self.sent) == self._limit:
            self._stopping.set()
        return RecordPosition(0, len(self.sent) - 1)


@pytest.mark.asyncio
async def test_every_order_that_is_sent_is_acknowledged_under_its_customer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("groupcoord.cli.demo.story.ORDERS_PER_SECOND", 1_000_000)
    stopping = asyncio.Event()
    log = Log(len(CUSTOMERS) + 1, stopping)
    acknowledged: list[tuple[RecordPosition, str]] = []
    await produce(log, "orders", stopping, lambda *stored: acknowledged.append(stored))
    assert acknowledged == [(RecordPosition(0, n), customer) for n, customer in enumerate([*CUSTOMERS, CUSTOMERS[0]])]
    assert [(topic, key.decode()) for topic, key, _ in log.sent] == [("orders", name) for _, name in acknowledged]
    assert json.loads(log.sent[1][2]) == {"order": 1, "customer": CUSTOMERS[1], "cents": 137}

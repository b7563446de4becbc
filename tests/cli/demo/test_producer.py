import asyncio
import json
from typing import Any

import pytest

from groupcoord.cli.demo.observed_group import RecordPosition
from groupcoord.cli.demo.producer import CUSTOMERS, produce


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
    monkeypatch.setattr("groupcoord.cli.demo.producer.ORDERS_PER_SECOND", 1_000_000)
    stopping = asyncio.Event()
    log = Log(len(CUSTOMERS) + 1, stopping)
    acknowledged: list[tuple[RecordPosition, str]] = []
    await produce(log, "orders", stopping, lambda *stored: acknowledged.append(stored))
    assert acknowledged == [(RecordPosition(0, n), customer) for n, customer in enumerate([*CUSTOMERS, CUSTOMERS[0]])]
    assert [(topic, key.decode()) for topic, key, _ in log.sent] == [("orders", name) for _, name in acknowledged]
    assert json.loads(log.sent[1][2]) == {"order": 1, "customer": CUSTOMERS[1], "cents": 137}

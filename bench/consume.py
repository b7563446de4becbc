"""The consumer process of ``bench consumers``: reads a topic to its end (``python -m bench.consume LIBRARY HOW PORT TOPIC
RECORDS``).

Prints the records per second, and the microseconds of processor time that this process, with all its threads, has spent on
each, from the moment it was assigned its partitions. It has read all of them once before, so that imports are left out.
"""

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Any
from uuid import uuid4

import aiokafka
import confluent_kafka

from groupcoord.client import Consumer

AT_A_TIME = 500
"""The most records of a ``getmany``: the default of Kafka and of groupcoord."""
PATIENCE_S = 60.0


class Reading(aiokafka.ConsumerRebalanceListener):  # type: ignore[misc] # aiokafka has no types
    """Counts ``wanted`` records, and the time from the assignment on."""

    def __init__(self, wanted: int) -> None:
        self._wanted = self._left = wanted
        self._began_s = self._processor_s = self._took_s = self._took_processor_s = 0.0

    def assigned(self, *_: object) -> None:
        """The time begins."""
        self._began_s, self._processor_s = time.perf_counter(), time.process_time()

    def on_partitions_assigned(self, assigned: object) -> None:
        """The same, as aiokafka calls it."""
        self.assigned(assigned)

    def on_partitions_revoked(self, revoked: object) -> None:
        """Nothing to be done."""

    def goes_on(self, records: int) -> bool:
        """So many records have come. Are there more to come?"""
        self._left -= records
        if self._left > 0:
            return True
        self._took_s, self._took_processor_s = (
            time.perf_counter() - self._began_s,
            time.process_time() - self._processor_s,
        )
        return False

    def __str__(self) -> str:
        """Records per second, microseconds of processor time per record."""
        return f"{self._wanted / self._took_s} {self._took_processor_s / self._wanted * 1e6}"


async def _in_batches(getmany: Callable[[], Awaitable[Mapping[Any, Sequence[Any]]]], reading: Reading) -> None:
    while reading.goes_on(sum(map(len, (await getmany()).values()))):
        pass


async def _one_by_one(records: AsyncIterator[object], reading: Reading) -> None:
    async for _ in records:
        if not reading.goes_on(1):
            return


async def _groupcoord(how: str, bootstrap: str, topic: str, reading: Reading) -> None:
    async with Consumer(
        topic,
        bootstrap_servers=bootstrap,
        group_id=uuid4().hex,
        auto_offset_reset="earliest",
        on_assigned=reading.assigned,
    ) as consumer:
        if how == "getmany":
            await _in_batches(lambda: consumer.getmany(1_000, AT_A_TIME), reading)
        else:
            await _one_by_one(consumer, reading)


async def _aiokafka(how: str, bootstrap: str, topic: str, reading: Reading) -> None:
    consumer = aiokafka.AIOKafkaConsumer(
        bootstrap_servers=bootstrap, group_id=uuid4().hex, auto_offset_reset="earliest"
    )
    consumer.subscribe([topic], listener=reading)
    async with consumer:
        if how == "getmany":
            await _in_batches(lambda: consumer.getmany(timeout_ms=1_000, max_records=AT_A_TIME), reading)
        else:
            await _one_by_one(consumer, reading)


def _confluent(how: str, bootstrap: str, topic: str, reading: Reading) -> None:
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": bootstrap, "group.id": uuid4().hex, "auto.offset.reset": "earliest"}
    )
    consumer.subscribe([topic], on_assign=reading.assigned)
    more = True
    while more:
        if how == "getmany":
            more = reading.goes_on(len(consumer.consume(AT_A_TIME, 1.0)))
        else:
            more = reading.goes_on(consumer.poll(1.0) is not None)
    consumer.close()


def main(library: str, how: str, port: str, topic: str, records: str) -> None:
    """Read ``records`` of ``topic`` twice, and print what it took the second time."""
    bootstrap = f"127.0.0.1:{port}"
    for _ in range(2):
        reading = Reading(int(records))
        if library == "confluent-kafka":
            _confluent(how, bootstrap, topic, reading)
        else:
            consume = {"groupcoord": _groupcoord, "aiokafka": _aiokafka}[library]
            asyncio.run(asyncio.wait_for(consume(how, bootstrap, topic, reading), PATIENCE_S))
    print(reading)


if __name__ == "__main__":
    main(*sys.argv[1:])

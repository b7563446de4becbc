"""Producers and consumers without a group, of three client libraries behind one interface."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, Protocol

import aiokafka
import confluent_kafka
import kafka

from tests.clients.members import told_by_confluent, told_by_python
from tests.clients.support import PATIENCE_S, Header, Record, eventually

LIBRARIES = ("aiokafka", "kafka-python", "confluent")
COMPRESSIONS = ("none", "gzip", "snappy", "lz4", "zstd")
ROOM = 4_000_000
FETCH_WAIT_MS = 100


class Draft(NamedTuple):
    """A record that is yet to be produced."""

    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...] = ()
    partition: int = 0

    def at(self, topic: str, offset: int) -> Record:
        """What a consumer should be told of it."""
        return Record(topic, self.partition, offset, self.timestamp_ms, self.key, self.value, self.headers)


class Reader(Protocol):
    """A consumer without a group."""

    def read(self, topic: str, partition: int, start: int, count: int) -> list[Record]:
        """``count`` records from offset ``start`` on, or fewer when no more came in time."""

    def bounds(self, topic: str, partition: int) -> tuple[int, int]:
        """The beginning and end offsets."""

    def offset_at(self, topic: str, partition: int, timestamp_ms: int) -> int | None:
        """The offset of the first record that is not older, None if all are older."""

    def close(self) -> None: ...


class AiokafkaReader:
    def __init__(self, bootstrap: str) -> None:
        self._runner = asyncio.Runner()
        self._runner.run(self._start(bootstrap))

    async def _start(self, bootstrap: str) -> None:
        self._consumer = aiokafka.AIOKafkaConsumer(bootstrap_servers=bootstrap, fetch_max_wait_ms=FETCH_WAIT_MS)
        await self._consumer.start()

    def read(self, topic: str, partition: int, start: int, count: int) -> list[Record]:
        return self._runner.run(self._read(aiokafka.TopicPartition(topic, partition), start, count))

    async def _read(self, place: Any, start: int, count: int) -> list[Record]:
        if place not in self._consumer.assignment():
            self._consumer.assign([place])
            self._consumer.seek(place, start)
        records: list[Record] = []
        async with asyncio.timeout(PATIENCE_S):
            while len(records) < count:
                records.append(told_by_python(await self._consumer.getone(place)))
        return records

    def bounds(self, topic: str, partition: int) -> tuple[int, int]:
        place = aiokafka.TopicPartition(topic, partition)
        first = self._runner.run(self._consumer.beginning_offsets([place]))[place]
        return first, self._runner.run(self._consumer.end_offsets([place]))[place]

    def offset_at(self, topic: str, partition: int, timestamp_ms: int) -> int | None:
        place = aiokafka.TopicPartition(topic, partition)
        found = self._runner.run(self._consumer.offsets_for_times({place: timestamp_ms}))[place]
        return found.offset if found else None

    def close(self) -> None:
        self._runner.run(self._consumer.stop())
        self._runner.close()


class KafkaPythonReader:
    def __init__(self, bootstrap: str) -> None:
        self._consumer = kafka.KafkaConsumer(bootstrap_servers=bootstrap, fetch_max_wait_ms=FETCH_WAIT_MS)

    def read(self, topic: str, partition: int, start: int, count: int) -> list[Record]:
        place = kafka.TopicPartition(topic, partition)
        if place not in self._consumer.assignment():
            self._consumer.assign([place])
            self._consumer.seek(place, start)
        records: list[Record] = []

        def enough() -> bool:
            batches = self._consumer.poll(timeout_ms=PATIENCE_S * 1000, max_records=count - len(records))
            records.extend(told_by_python(record) for batch in batches.values() for record in batch)
            return len(records) == count

        eventually(enough, saying=f"kafka-python reads {count} records of {place}")
        return records

    def bounds(self, topic: str, partition: int) -> tuple[int, int]:
        place = kafka.TopicPartition(topic, partition)
        return self._consumer.beginning_offsets([place])[place], self._consumer.end_offsets([place])[place]

    def offset_at(self, topic: str, partition: int, timestamp_ms: int) -> int | None:
        place = kafka.TopicPartition(topic, partition)
        found = self._consumer.offsets_for_times({place: timestamp_ms})[place]
        return found.offset if found else None

    def close(self) -> None:
        self._consumer.close()


class ConfluentReader:
    def __init__(self, bootstrap: str) -> None:
        # librdkafka wants a group id even of those that never join.
        self._consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "unused",
                "enable.auto.commit": False,
                "fetch.wait.max.ms": FETCH_WAIT_MS,
            }
        )

    def read(self, topic: str, partition: int, start: int, count: int) -> list[Record]:
        place = confluent_kafka.TopicPartition(topic, partition, start)
        if place not in self._consumer.assignment():
            self._consumer.assign([place])
        records: list[Record] = []

        def enough() -> bool:
            records.extend(map(told_by_confluent, self._consumer.consume(count - len(records), 1)))
            return len(records) == count

        eventually(enough, saying=f"confluent-kafka reads {count} records of {place}")
        return records

    def bounds(self, topic: str, partition: int) -> tuple[int, int]:
        place = confluent_kafka.TopicPartition(topic, partition)
        first, last = self._consumer.get_watermark_offsets(place, timeout=PATIENCE_S)
        return first, last

    def offset_at(self, topic: str, partition: int, timestamp_ms: int) -> int | None:
        place = confluent_kafka.TopicPartition(topic, partition, timestamp_ms)
        [found] = self._consumer.offsets_for_times([place], timeout=PATIENCE_S)
        return found.offset if found.offset >= 0 else None

    def close(self) -> None:
        self._consumer.close()


READERS: dict[str, Callable[[str], Reader]] = {
    "aiokafka": AiokafkaReader,
    "kafka-python": KafkaPythonReader,
    "confluent": ConfluentReader,
}


@contextmanager
def reader(library: str, bootstrap: str) -> Iterator[Reader]:
    """A consumer of ``library`` for the length of a block."""
    opened = READERS[library](bootstrap)
    try:
        yield opened
    finally:
        opened.close()


def write(
    library: str,
    bootstrap: str,
    topic: str,
    drafts: Sequence[Draft],
    *,
    compression: str = "none",
    idempotent: bool = False,
) -> list[Record]:
    """Produce ``drafts`` in their order; answers them as acknowledged. Raises what the library raises."""
    offsets = WRITERS[library](bootstrap, topic, drafts, compression, idempotent)
    return [draft.at(topic, offset) for draft, offset in zip(drafts, offsets, strict=True)]


def _write_aiokafka(
    bootstrap: str, topic: str, drafts: Sequence[Draft], compression: str, idempotent: bool
) -> list[int]:
    async def send_all() -> list[int]:
        async with aiokafka.AIOKafkaProducer(
            bootstrap_servers=bootstrap,
            compression_type=None if compression == "none" else compression,
            enable_idempotence=idempotent,
            max_request_size=ROOM,
        ) as producer:
            sent = [
                await producer.send(
                    topic,
                    draft.value,
                    draft.key,
                    draft.partition,
                    timestamp_ms=draft.timestamp_ms,
                    headers=list(draft.headers),
                )
                for draft in drafts
            ]
            return [acknowledged.offset for acknowledged in await asyncio.gather(*sent)]

    return asyncio.run(send_all())


def _write_kafka_python(
    bootstrap: str, topic: str, drafts: Sequence[Draft], compression: str, idempotent: bool
) -> list[int]:
    producer = kafka.KafkaProducer(
        bootstrap_servers=bootstrap,
        compression_type=None if compression == "none" else compression,
        enable_idempotence=idempotent,
        acks="all",
        max_request_size=ROOM,
    )
    try:
        sent = [
            producer.send(
                topic,
                draft.value,
                draft.key,
                partition=draft.partition,
                timestamp_ms=draft.timestamp_ms,
                headers=list(draft.headers),
            )
            for draft in drafts
        ]
        producer.flush(PATIENCE_S)
        return [acknowledged.get(PATIENCE_S).offset for acknowledged in sent]
    finally:
        producer.close()


def _write_confluent(
    bootstrap: str, topic: str, drafts: Sequence[Draft], compression: str, idempotent: bool
) -> list[int]:
    producer = confluent_kafka.Producer(
        {
            "bootstrap.servers": bootstrap,
            "compression.type": compression,
            "enable.idempotence": idempotent,
            "message.max.bytes": ROOM,
            "linger.ms": 1,
        }
    )
    answers: dict[int, Any] = {}

    def answer_to(number: int) -> Callable[[Any, Any], None]:
        return lambda error, message: answers.update({number: error or message.offset()})

    try:
        for number, draft in enumerate(drafts):
            producer.produce(
                topic,
                value=draft.value,
                key=draft.key,
                partition=draft.partition,
                timestamp=draft.timestamp_ms,
                headers=list(draft.headers),
                on_delivery=answer_to(number),
            )
        producer.flush(PATIENCE_S)
    finally:
        producer.close()
    for answer in answers.values():
        if isinstance(answer, confluent_kafka.KafkaError):
            raise confluent_kafka.KafkaException(answer)
    return [answers[number] for number in range(len(drafts))]


WRITERS = {"aiokafka": _write_aiokafka, "kafka-python": _write_kafka_python, "confluent": _write_confluent}

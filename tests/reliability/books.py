"""What each kind of client has been promised, and whether the promise was kept, as the server that came after says.

A client's ``live`` asks until the server is killed; its ``check`` then looks, at the next server, at everything that was ever
answered: what is there must be what was acknowledged, with or without what was still on its way.
"""

import random
import struct
from collections.abc import Iterator
from typing import Any, Protocol

from groupcoord.protocol.apis.delete_records import DeleteRecordsPartition, DeleteRecordsTopic
from groupcoord.protocol.apis.list_offsets import ListOffsetsPartition, ListOffsetsTopic
from groupcoord.protocol.batches.record_batch import records_in
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages import (
    DeleteRecordsRequest,
    InitProducerIdRequest,
    ListOffsetsRequest,
)
from tests.conformance.batches import Rec, batch
from tests.reliability.load import Ask, Asking
from tests.reliability.requests import fetch, fetched, produce, stored
from tests.reliability.talk import Talk

IN_FLIGHT = 5


class Client(Protocol):
    """One kind of client."""

    def live(self, chance: random.Random) -> Asking:
        """What it asks in one life of the server."""

    def check(self, talk: Talk) -> Iterator[str]:
        """What is not as it was promised."""


def log_start(talk: Talk, topic: str, partition: int) -> int:
    """The first offset of a partition."""
    asked = ListOffsetsTopic(name=topic, partitions=(ListOffsetsPartition(partition_index=partition, timestamp=-2),))
    answer = talk.ask(ListOffsetsRequest(replica_id=-1, topics=(asked,)))
    offset: int = answer.topics[0].partitions[0].offset
    return offset


def batches_of(talk: Talk, topic: str, partition: int, start: int) -> dict[int, bytes]:
    """Every batch from ``start`` on, by its base offset."""
    found: dict[int, bytes] = {}
    offset = start
    while True:
        data = fetched(talk.ask(fetch(topic, partition, offset=offset))).records or b""
        at = 0
        while at + 61 <= len(data):
            base, length = struct.unpack_from(">qi", data, at)
            if at + 12 + length > len(data):
                break
            (delta,) = struct.unpack_from(">i", data, at + 23)
            found[base] = data[at : at + 12 + length]
            offset = base + delta + 1
            at += 12 + length
        if not at:
            return found


def _same(one: bytes, other: bytes) -> bool:
    """Are they the same batch but for what a broker writes into it, base offset and leader epoch?"""
    return one[8:12] == other[8:12] and one[16:] == other[16:]


def _key_of(data: bytes) -> bytes:
    return data[16:]


class Plain:
    """Produces without ids, with any compression, each batch once."""

    def __init__(self, topic: str, partition: int) -> None:
        self.topic, self.partition = topic, partition
        self.acknowledged: dict[int, bytes] = {}
        self.sent: set[bytes] = set()
        self._number = 0

    def live(self, chance: random.Random) -> Asking:
        while True:
            yield [self._one(chance) for _ in range(chance.randint(1, IN_FLIGHT))]

    def _one(self, chance: random.Random) -> Ask:
        self._number += 1
        records = [
            Rec(b"%d-%d " % (self._number, index) * chance.choice((1, 10, 40)), timestamp_ms=1_700_000_000_000)
            for index in range(chance.choice((1, 1, 3, 10)))
        ]
        data = batch(records, codec=chance.randrange(5))
        self.sent.add(_key_of(data))

        def answered(answer: Any) -> None:
            result = stored(answer)
            assert result.error_code == 0, f"{self.topic}-{self.partition}: {result}"
            self.acknowledged[result.base_offset] = data

        acks = chance.choice((1, -1))
        return Ask(produce(self.topic, {self.partition: data}, acks), answered)

    def check(self, talk: Talk) -> Iterator[str]:
        where = f"{self.topic}-{self.partition}"
        start = log_start(talk, self.topic, self.partition)
        there = batches_of(talk, self.topic, self.partition, start)
        while (now := log_start(talk, self.topic, self.partition)) != start:  # retention has gone on meanwhile
            start, there = now, batches_of(talk, self.topic, self.partition, now)
        yield from self.check_start(start, there)
        for offset, data in self.acknowledged.items():
            if offset >= start and (offset not in there or not _same(there[offset], data)):
                yield f"{where}: the batch acknowledged at offset {offset} is {'another' if offset in there else 'gone'}"
        seen: set[bytes] = set()
        for offset, data in there.items():
            key = _key_of(data)
            if key not in self.sent:
                yield f"{where}: nobody sent what is at offset {offset}"
            if key in seen:
                yield f"{where}: what is at offset {offset} was sent once and is there twice"
            seen.add(key)

    def check_start(self, start: int, there: dict[int, bytes]) -> Iterator[str]:
        """Is the start of the log where it should be?"""
        if start:
            yield f"{self.topic}-{self.partition}: the log starts at {start}"


class Retained(Plain):
    """The same on a topic of which old segments are deleted, and some records on demand."""

    def __init__(self, topic: str, partition: int, retention_bytes: int) -> None:
        super().__init__(topic, partition)
        self.retention_bytes = retention_bytes
        self.deleted_to = 0  # acknowledged
        self._asked_to = 0

    def live(self, chance: random.Random) -> Asking:
        while True:
            yield [self._one(chance) for _ in range(IN_FLIGHT)]
            if self.acknowledged and chance.random() < 0.1:
                yield [self._delete_some(chance)]

    def _delete_some(self, chance: random.Random) -> Ask:
        end = max(self.acknowledged)
        to = max(self._asked_to, end - chance.randrange(20))
        self._asked_to = to
        part = DeleteRecordsTopic(
            name=self.topic, partitions=(DeleteRecordsPartition(partition_index=self.partition, offset=to),)
        )

        def answered(answer: Any) -> None:
            result = answer.topics[0].partitions[0]
            # Retention may have been quicker.
            if result.error_code == 0:
                self.deleted_to = max(self.deleted_to, result.low_watermark)

        return Ask(DeleteRecordsRequest(topics=(part,), timeout_ms=1_000), answered)

    def check_start(self, start: int, there: dict[int, bytes]) -> Iterator[str]:
        where = f"{self.topic}-{self.partition}"
        if start < self.deleted_to:
            yield f"{where}: records before {self.deleted_to} were deleted, and the log starts at {start}"
        kept = sum(map(len, there.values()))
        if start > self._asked_to and kept < self.retention_bytes:
            yield f"{where}: retention has left {kept} bytes and had to leave {self.retention_bytes}"


class Idempotent:
    """Produces each batch exactly once, over all restarts: what was not answered is sent again with its numbers."""

    def __init__(self, topic: str, partition: int, ids: "ProducerIds") -> None:
        self.topic, self.partition, self.ids = topic, partition, ids
        self.producer_id = -1
        self.batches: list[bytes] = []
        """All that were ever sent; the sequence number of each is its place, for each has one record."""
        self.offsets: dict[int, int] = {}
        """Of those that were acknowledged with one, by sequence number."""
        self.acknowledged = 0
        """So many are acknowledged: they are in order."""
        self._there = 0
        """So many were there at the last look."""

    def live(self, chance: random.Random) -> Asking:
        if self.producer_id < 0:
            yield [self.ids.ask(self._has_id)]
        if self.acknowledged and chance.random() < 0.3:
            yield [self._send(self.acknowledged - 1)]
        while True:
            first = self.acknowledged
            while len(self.batches) < first + chance.randint(1, IN_FLIGHT):
                number = len(self.batches)
                value = b"%d " % number * chance.choice((1, 5, 100))
                self.batches.append(batch([value], producer=(self.producer_id, 0, number)))
            yield [self._send(number) for number in range(first, min(len(self.batches), first + IN_FLIGHT))]

    def _has_id(self, producer_id: int) -> None:
        self.producer_id = producer_id

    def _send(self, number: int) -> Ask:
        def answered(answer: Any) -> None:
            result = stored(answer)
            if result.error_code == 0:
                known = self.offsets.setdefault(number, result.base_offset)
                assert known == result.base_offset, f"batch {number} was at {known} and is at {result.base_offset}"
            else:
                # Of a producer that is known from a snapshot only the last batch is remembered, as in Kafka.
                old = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER if number < self._there - 1 else None
                assert result.error_code in (ErrorCode.DUPLICATE_SEQUENCE_NUMBER, old), f"batch {number}: {result}"
            self.acknowledged = max(self.acknowledged, number + 1)

        data = self.batches[number]
        return Ask(produce(self.topic, {self.partition: data}), answered)

    def check(self, talk: Talk) -> Iterator[str]:
        where = f"{self.topic}-{self.partition}"
        there = batches_of(talk, self.topic, self.partition, 0)
        numbers = [struct.unpack_from(">i", data, 53)[0] for data in there.values()]
        self._there = len(numbers)
        if numbers != list(range(len(numbers))):
            yield f"{where}: the sequence numbers are not 0, 1, 2 …: {numbers[-20:]}"
        if len(numbers) < self.acknowledged:
            yield f"{where}: {self.acknowledged} batches were acknowledged, and {len(numbers)} are there"
        for (offset, data), sent in zip(there.items(), self.batches, strict=False):
            if not _same(data, sent):
                yield f"{where}: the batch at offset {offset} is another one"
        for number, offset in self.offsets.items():
            if number < len(numbers) and list(there)[number] != offset:
                yield f"{where}: batch {number} was acknowledged at {offset} and is at {list(there)[number]}"


class ProducerIds:
    """Asks for producer ids, of which none may ever be handed out twice."""

    def __init__(self) -> None:
        self.given: set[int] = set()

    def ask(self, then: Any) -> Ask:
        """One more; ``then`` is given it."""

        def answered(answer: Any) -> None:
            assert answer.error_code == 0, answer
            assert answer.producer_id not in self.given, f"producer id {answer.producer_id} was handed out twice"
            self.given.add(answer.producer_id)
            then(answer.producer_id)

        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1_000)
        return Ask(request, answered)

    def live(self, chance: random.Random) -> Asking:
        while True:
            yield [self.ask(lambda _: None) for _ in range(chance.choice((1, 20)))]

    def check(self, talk: Talk) -> Iterator[str]:
        """It is looked at when they are given."""
        yield from ()


class Compacted:
    """Writes a growing number under each key of a compacted topic: the last acknowledged, or one after it, must be there."""

    KEYS = 20

    def __init__(self, topic: str, partition: int) -> None:
        self.topic, self.partition = topic, partition
        self.acknowledged: dict[bytes, int] = {}
        self.sent: dict[bytes, int] = {}

    def live(self, chance: random.Random) -> Asking:
        while True:
            yield [self._one(chance) for _ in range(chance.randint(1, IN_FLIGHT))]

    def _one(self, chance: random.Random) -> Ask:
        keys = [b"k%d" % number for number in chance.sample(range(self.KEYS), 3)]
        numbers = {}
        for key in keys:
            numbers[key] = self.sent[key] = self.sent.get(key, 0) + 1
        data = batch([Rec(b"%d" % number + b"." * 50, key) for key, number in numbers.items()])

        def answered(answer: Any) -> None:
            result = stored(answer)
            assert result.error_code == 0, result
            self.acknowledged.update(numbers)

        return Ask(produce(self.topic, {self.partition: data}), answered)

    def check(self, talk: Talk) -> Iterator[str]:
        there: dict[bytes, int] = {}
        for data in batches_of(talk, self.topic, self.partition, 0).values():
            for record in records_in(data):
                assert record.key is not None
                assert record.value is not None
                number = int(record.value.rstrip(b"."))
                if number < there.get(record.key, 0):
                    yield f"{self.topic}-{self.partition}: {record.key!r} went back to {number}"
                there[record.key] = number
        for key, number in self.acknowledged.items():
            if not number <= there.get(key, 0) <= self.sent[key]:
                yield f"{self.topic}-{self.partition}: {key!r} was {number} and is {there.get(key)}"

"""ProducerRecord, and how ``kafka.produce`` sends records: choosing partitions, building batches and Produce requests."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from groupcoord.client.producer.sent_records import (
    Headers,
    RecordMetadata,
    header_pairs,
    require_bytes,
)
from groupcoord.partitioners import DefaultPartitioner
from groupcoord.protocol.apis.produce import PartitionProduceData, PartitionProduceResponse, TopicProduceData
from groupcoord.protocol.batches.record_batch import build_batch
from groupcoord.protocol.batches.records import Record
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages import ProduceRequest
from groupcoord.testing.topic_settings import is_number, unknown_partition

BATCH_BYTES = 524_288
"""The largest batch: half of the default of ``message.max.bytes``."""
_RECORD_OVERHEAD_BYTES, _LENGTH_BYTES = 21, 5
"""Upper bounds of a record's size without keys, values and headers, and of the length field of each (``DefaultRecord``)."""
_TIMEOUT_MS = 30_000


@dataclass(frozen=True, slots=True)
class ProducerRecord:
    """A record to produce: ``ProducerRecord(b"paid", key=b"order 7", headers={"trace": b"1"})``.

    Raises TypeError for values that are not bytes, and ValueError for a negative timestamp or partition.
    """

    value: bytes | None
    """None is a tombstone: it deletes the key in a compacted topic."""
    key: bytes | None = None
    headers: Headers = ()
    """A mapping, or (key, value) pairs if a key occurs twice."""
    timestamp_ms: int | None = None
    """Milliseconds since 1970; now, on the cluster's clock, unless given."""
    partition: int | None = None
    """The partition; chosen by Kafka's default partitioner unless given."""

    def __post_init__(self) -> None:
        require_bytes("value", self.value)
        require_bytes("key", self.key)
        for header in header_pairs(self.headers):
            require_bytes(f"header {header.key!r}", header.value)
        for name, number in (("timestamp_ms", self.timestamp_ms), ("partition", self.partition)):
            if number is not None and not is_number(number):
                raise TypeError(f"{name}={number!r}: it is a whole number or None")
            if number is not None and number < 0:
                raise ValueError(f"{name}={number}: it is 0 or more")

    @property
    def size(self) -> int:
        """An upper bound of its bytes in a batch (``DefaultRecord.recordSizeUpperBound``)."""
        texts = [self.key, self.value]
        for header in header_pairs(self.headers):
            texts += header.key.encode(), header.value
        return _RECORD_OVERHEAD_BYTES + sum(_LENGTH_BYTES + len(text or b"") for text in texts)


@dataclass(slots=True)
class Batch:
    """Records that are sent to one partition as one batch; ``numbers`` are their indexes in the test's list."""

    topic: str
    partition: int
    numbers: list[int] = field(default_factory=list)
    records: list[ProducerRecord] = field(default_factory=list)
    size: int = 0

    def add(self, number: int, record: ProducerRecord) -> None:
        """Append the record with this number."""
        self.numbers.append(number)
        self.records.append(record)
        self.size += record.size

    def times_ms(self, now_ms: int) -> list[int]:
        """The timestamp of each record; ``now_ms`` where none is given."""
        return [now_ms if each.timestamp_ms is None else each.timestamp_ms for each in self.records]

    def data(self, now_ms: int) -> PartitionProduceData:
        """The batch as it is sent in a Produce request."""
        records = [
            Record(number, at_ms, each.key, each.value, header_pairs(each.headers))
            for number, (each, at_ms) in enumerate(zip(self.records, self.times_ms(now_ms), strict=True))
        ]
        return PartitionProduceData(index=self.partition, records=build_batch(records))

    def written(self, answer: PartitionProduceResponse, now_ms: int) -> list[RecordMetadata]:
        """The metadata of the written records. Raises ValueError, with the broker's message, if it refused them."""
        if answer.error_code:
            code = ErrorCode(answer.error_code)
            why = [
                answer.error_message or code.text,
                *(each.batch_index_error_message for each in answer.record_errors),
            ]
            raise ValueError(f"{self.topic}-{self.partition}: {code.name}: {' '.join(filter(None, why))}")
        stamped_ms = answer.log_append_time_ms
        return [
            RecordMetadata(self.topic, self.partition, offset, at_ms if stamped_ms < 0 else stamped_ms)
            for offset, at_ms in enumerate(self.times_ms(now_ms), answer.base_offset)
        ]


def produce_request(batches: Sequence[Batch], now_ms: int) -> ProduceRequest:
    """A Produce request with ``batches``, each for another partition of one topic."""
    data = TopicProduceData(name=batches[0].topic, partition_data=tuple(each.data(now_ms) for each in batches))
    return ProduceRequest(transactional_id=None, acks=-1, timeout_ms=_TIMEOUT_MS, topic_data=(data,))


def records_of(
    values: Sequence[bytes | None], records: object, key: bytes | None, partition: int | None
) -> list[ProducerRecord]:
    """The records that the arguments of ``produce`` describe. Raises TypeError if they do not go together or are missing."""
    for value in values:
        if isinstance(value, ProducerRecord):
            raise TypeError(f"{value!r} is one of records=[…]; what follows the topic are values")
    if records is None:
        if not values:
            raise TypeError("produce what? The values follow the topic, or records=[ProducerRecord(…)] has more to say")
        at = 0 if key is None and partition is None else partition
        return [ProducerRecord(value, key, partition=at) for value in values]
    if values or key is not None or partition is not None:
        raise TypeError("a record of records= has its own value, key and partition: these are not given beside it")
    if isinstance(records, ProducerRecord | bytes | str) or not isinstance(records, Iterable):
        raise TypeError(f"records={records!r}: it is a list of records, such as [ProducerRecord(b'paid', key=b'7')]")
    found = list(records)
    for number, record in enumerate(found):
        if not isinstance(record, ProducerRecord):
            raise TypeError(f"records[{number}] is a ProducerRecord, such as ProducerRecord(b'paid'), not {record!r}")
    return found


def batches_of(
    records: Sequence[ProducerRecord], topic: str, leaders: Mapping[int, int | None], partitioner: DefaultPartitioner
) -> list[tuple[int, list[Batch]]]:
    """(broker id, batches) of each Produce request, in order: a request has at most one batch for each partition (KIP-98).

    ``leaders`` has the leader of each partition. Raises ValueError for a partition that does not exist or has no leader.
    """
    of_partition: dict[int, list[Batch]] = {}
    led = [number for number, leader in leaders.items() if leader is not None]
    for number, record in enumerate(records):
        at = record.partition
        if at is None:
            at = partitioner(record.key, sorted(leaders), led, topic=topic, size=record.size)
        if at not in leaders:
            raise unknown_partition(topic, at, len(leaders))
        batches = of_partition.setdefault(at, [])
        if not batches or batches[-1].size + record.size > BATCH_BYTES:
            batches.append(Batch(topic, at))
        batches[-1].add(number, record)
    sent: dict[tuple[int, int], list[Batch]] = {}
    for at, batches in of_partition.items():
        leader = leaders[at]
        if leader is None:
            raise ValueError(f"{topic}-{at} has no leader at present: nothing can be written there")
        for turn, batch in enumerate(batches):
            sent.setdefault((turn, leader), []).append(batch)
    return [(leader, sent[turn, leader]) for turn, leader in sorted(sent)]

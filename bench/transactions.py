"""Benchmark of transactions per second over the wire, and of aiokafka's transactional producer, beside a real broker."""

import asyncio
import contextlib
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack

import aiokafka

from bench.servers import groupcoord
from bench.table import Table
from bench.wire import Connection
from groupcoord.protocol.apis import ApiKey
from groupcoord.protocol.apis.create_topics import CreatableTopic
from groupcoord.protocol.apis.produce import PartitionProduceData, TopicProduceData
from groupcoord.protocol.batches.record_batch import TRANSACTIONAL, build_batch
from groupcoord.protocol.batches.records import Record
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages import (
    CreateTopicsRequest,
    EndTxnRequest,
    FindCoordinatorRequest,
    InitProducerIdRequest,
    ProduceRequest,
)
from tests.real_kafka.broker import RealKafkaUnavailable
from tests.real_kafka.kafka_java import KafkaJava
from tests.real_kafka.process import KafkaProcess

PRODUCERS = (1, 10)
RECORDS = (1, 100)
RECORD_BYTES = 100
WARM_UP_S = 1.0
SECONDS = 3.0
PATIENCE_MS = 60_000
MB_RECORDS = 20_000
MB_RECORD_BYTES = 1000
MB_TRANSACTIONS = (1_000, 100)
_PRODUCE_VERSION = 12  # the last that names topics, and the first that adds the partition by itself
_TRY_AGAIN = {
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
}


class Producer:
    """Asks for one step of a transaction after the other (KIP-890: Produce adds, EndTxn brings the next epoch)."""

    def __init__(self, port: int, number: int) -> None:
        self.committed = 0
        self._connection = Connection(port)
        self._partition = number
        self._transactional_id = f"bench-{number}"
        self._written = False
        # Who looks for the coordinator makes the topic that says who it is.
        finds = FindCoordinatorRequest(key_type=1, coordinator_keys=(self._transactional_id,))
        while self._connection.ask(ApiKey.FIND_COORDINATOR, finds).coordinators[0].error_code in _TRY_AGAIN:
            time.sleep(0.05)
        asks = InitProducerIdRequest(
            transactional_id=self._transactional_id,
            transaction_timeout_ms=PATIENCE_MS,
            producer_id=-1,
            producer_epoch=-1,
        )
        while (answer := self._connection.ask(ApiKey.INIT_PRODUCER_ID, asks)).error_code in _TRY_AGAIN:
            time.sleep(0.05)
        _check(answer.error_code)
        self._id, self._epoch = answer.producer_id, answer.producer_epoch

    def send(self, records: Sequence[Record]) -> None:
        """Ask for the next step."""
        if self._written:
            ends = EndTxnRequest(
                transactional_id=self._transactional_id,
                producer_id=self._id,
                producer_epoch=self._epoch,
                committed=True,
            )
            self._connection.send(ApiKey.END_TXN, ends)
            return
        batch = build_batch(
            records,
            attributes=TRANSACTIONAL,
            producer_id=self._id,
            producer_epoch=self._epoch,
            base_sequence=0,
        )
        partitions = (PartitionProduceData(index=self._partition, records=batch),)
        writes = ProduceRequest(
            transactional_id=self._transactional_id,
            acks=-1,
            timeout_ms=PATIENCE_MS,
            topic_data=(TopicProduceData(name="bench", partition_data=partitions),),
        )
        self._connection.send(ApiKey.PRODUCE, writes, _PRODUCE_VERSION)

    def receive(self) -> None:
        """Take the answer; what was refused for now is asked again."""
        if self._written:
            ended = self._connection.receive(ApiKey.END_TXN)
            if ended.error_code not in _TRY_AGAIN:
                _check(ended.error_code)
                self._id, self._epoch, self._written = ended.producer_id, ended.producer_epoch, False
                self.committed += 1
            return
        answer = self._connection.receive(ApiKey.PRODUCE, _PRODUCE_VERSION)
        error = answer.responses[0].partition_responses[0].error_code
        if error not in _TRY_AGAIN:
            _check(error)
            self._written = True

    def close(self) -> None:
        """Close its connection."""
        self._connection.close()


def run() -> list[Table]:
    """The same producers, one thread of Python, at each server; each asks again when all have been answered."""
    names, per_second, megabytes = [], [], []
    for name, port in _servers():
        names.append(name)
        _create_topics(port)
        per_second.append([_per_second(port, *case) for case in _cases()])
        megabytes.append([asyncio.run(_megabytes(f"127.0.0.1:{port}", each)) for each in (None, *MB_TRANSACTIONS)])
    rates = Table("transactions per second, records of 100 bytes", "producers", "records in each", *names)
    for number, case in enumerate(_cases()):
        rates.add(*case, *(f"{figures[number]:,.0f}" for figures in per_second))
    produced = Table(f"aiokafka produces {MB_RECORDS:,} records of {MB_RECORD_BYTES:,} bytes, MB/s", "how", *names)
    hows = ["without transactions", *(f"in transactions of {each:,}" for each in MB_TRANSACTIONS)]
    for number, how in enumerate(hows):
        produced.add(how, *(f"{figures[number]:.1f}" for figures in megabytes))
    return [rates, produced]


def _cases() -> list[tuple[int, int]]:
    return [(producers, records) for producers in PRODUCERS for records in RECORDS]


def _servers() -> Iterator[tuple[str, int]]:
    for loop in ("asyncio", "uvloop"):
        with groupcoord("--dev", loop=loop) as server:
            yield f"groupcoord, {loop}", server.port
    with contextlib.suppress(RealKafkaUnavailable), KafkaProcess(java=KafkaJava) as broker:
        yield "Kafka", broker.port


def _per_second(port: int, count: int, records: int) -> float:
    now_ms = int(time.time() * 1000)
    batch = [Record(offset, now_ms, None, bytes(RECORD_BYTES)) for offset in range(records)]
    with ExitStack() as running:
        producers = [Producer(port, number) for number in range(count)]
        for producer in producers:
            running.callback(producer.close)
        _commit(producers, batch, WARM_UP_S)
        before, begin = sum(producer.committed for producer in producers), time.perf_counter()
        _commit(producers, batch, SECONDS)
        return (sum(producer.committed for producer in producers) - before) / (time.perf_counter() - begin)


def _commit(producers: Sequence[Producer], batch: Sequence[Record], seconds: float) -> None:
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        for producer in producers:
            producer.send(batch)
        for producer in producers:
            producer.receive()


async def _megabytes(bootstrap: str, in_each: int | None) -> float:
    value = bytes(range(250)) * (MB_RECORD_BYTES // 250)
    producer = aiokafka.AIOKafkaProducer(
        bootstrap_servers=bootstrap,
        max_batch_size=100 * MB_RECORD_BYTES,
        linger_ms=5,
        transactional_id=None if in_each is None else f"bench-aiokafka-{in_each}",
    )
    async with producer:
        await producer.partitions_for("bench")
        begin = time.perf_counter()
        for _ in range(MB_RECORDS // (in_each or MB_RECORDS)):
            async with producer.transaction() if in_each else contextlib.nullcontext():
                sent = [await producer.send("bench", value, partition=0) for _ in range(in_each or MB_RECORDS)]
                await asyncio.gather(*sent)
        return MB_RECORDS * MB_RECORD_BYTES / 1e6 / (time.perf_counter() - begin)


def _create_topics(port: int) -> None:
    connection = Connection(port)
    topic = CreatableTopic(name="bench", num_partitions=max(PRODUCERS), replication_factor=1)
    created = connection.ask(ApiKey.CREATE_TOPICS, CreateTopicsRequest(topics=(topic,), timeout_ms=PATIENCE_MS))
    _check(created.topics[0].error_code)
    connection.close()


def _check(error: ErrorCode | int) -> None:
    if error:
        raise SystemExit(f"bench: a transaction was refused: {ErrorCode(error).name}")

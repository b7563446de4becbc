"""Transactional producers of several client libraries, unmodified, behind one interface."""

import asyncio
import contextlib
import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import aiokafka
import confluent_kafka
import kafka

from tests.clients.support import PATIENCE_S, Partition, unique

TIMEOUT_MS = 60_000

_filtering = threading.Lock()
"""Which warnings are shown is said for all threads."""


class TransactionalProducer(Protocol):
    """Each verb returns when the broker has answered, and raises what the library raises.

    A ``member`` is what that library's consumer says of itself, or a ``group`` of which one is not a member.
    """

    def group(self, group: str) -> Any: ...
    def begin(self) -> None: ...
    def write(self, topic: str, values: Sequence[str]) -> None: ...
    def send_offsets(self, offsets: Mapping[Partition, int], member: Any) -> None: ...
    def commit(self) -> None: ...
    def abort(self) -> None: ...
    def close(self) -> None: ...


class ConfluentProducer:
    """confluent-kafka, that is librdkafka. That a record is refused is told by the next verb, not by ``write``."""

    def __init__(self, bootstrap: str, transactional_id: str, timeout_ms: int = TIMEOUT_MS) -> None:
        self._producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": bootstrap,
                "transactional.id": transactional_id,
                "transaction.timeout.ms": timeout_ms,
                "linger.ms": 0,
                "log_level": 0,
            }
        )
        self._producer.init_transactions(PATIENCE_S)
        self._bootstrap = bootstrap

    def group(self, group: str) -> Any:
        outsider = confluent_kafka.Consumer({"bootstrap.servers": self._bootstrap, "group.id": group})
        member = outsider.consumer_group_metadata()
        outsider.close()
        return member

    def begin(self) -> None:
        self._producer.begin_transaction()

    def write(self, topic: str, values: Sequence[str]) -> None:
        for value in values:
            self._producer.produce(topic, value, partition=0)
        assert self._producer.flush(PATIENCE_S) == 0

    def send_offsets(self, offsets: Mapping[Partition, int], member: Any) -> None:
        places = [confluent_kafka.TopicPartition(*partition, offset) for partition, offset in offsets.items()]
        self._producer.send_offsets_to_transaction(places, member, PATIENCE_S)

    def commit(self) -> None:
        self._producer.commit_transaction(PATIENCE_S)

    def abort(self) -> None:
        self._producer.abort_transaction(PATIENCE_S)

    def close(self) -> None:
        # It aborts what is open, and if it is fenced complains once more that it cannot.
        with _filtering, warnings.catch_warnings(), contextlib.suppress(confluent_kafka.KafkaException):
            warnings.simplefilter("ignore", RuntimeWarning)
            self._producer.close()


class AiokafkaProducer:
    """aiokafka, which knows nothing of KIP-447: a member is to it the name of its group."""

    def __init__(self, bootstrap: str, transactional_id: str, timeout_ms: int = TIMEOUT_MS) -> None:
        self._runner = asyncio.Runner()
        self._runner.run(self._start(bootstrap, transactional_id, timeout_ms))

    async def _start(self, bootstrap: str, transactional_id: str, timeout_ms: int) -> None:
        self._producer = aiokafka.AIOKafkaProducer(
            bootstrap_servers=bootstrap, transactional_id=transactional_id, transaction_timeout_ms=timeout_ms
        )
        await self._producer.start()

    def group(self, group: str) -> Any:
        return group

    def begin(self) -> None:
        self._runner.run(self._producer.begin_transaction())

    def write(self, topic: str, values: Sequence[str]) -> None:
        async def write() -> None:
            await asyncio.gather(*[await self._producer.send(topic, value.encode(), partition=0) for value in values])

        self._runner.run(write())

    def send_offsets(self, offsets: Mapping[Partition, int], member: Any) -> None:
        named = {aiokafka.TopicPartition(*partition): offset for partition, offset in offsets.items()}
        self._runner.run(self._producer.send_offsets_to_transaction(named, member))

    def commit(self) -> None:
        self._runner.run(self._producer.commit_transaction())

    def abort(self) -> None:
        self._runner.run(self._producer.abort_transaction())

    def close(self) -> None:
        self._runner.run(self._producer.stop())
        self._runner.close()


class KafkaPythonProducer:
    """kafka-python."""

    def __init__(self, bootstrap: str, transactional_id: str, timeout_ms: int = TIMEOUT_MS) -> None:
        self._producer = kafka.KafkaProducer(
            bootstrap_servers=bootstrap, transactional_id=transactional_id, transaction_timeout_ms=timeout_ms
        )
        self._producer.init_transactions()

    def group(self, group: str) -> Any:
        return group

    def begin(self) -> None:
        self._producer.begin_transaction()

    def write(self, topic: str, values: Sequence[str]) -> None:
        for sent in [self._producer.send(topic, value.encode(), partition=0) for value in values]:
            sent.get(PATIENCE_S)

    def send_offsets(self, offsets: Mapping[Partition, int], member: Any) -> None:
        named = {
            kafka.TopicPartition(*partition): kafka.OffsetAndMetadata(offset, "", -1)
            for partition, offset in offsets.items()
        }
        self._producer.send_offsets_to_transaction(named, member)

    def commit(self) -> None:
        self._producer.commit_transaction()

    def abort(self) -> None:
        self._producer.abort_transaction()

    def close(self) -> None:
        self._producer.close(PATIENCE_S)


PRODUCERS: dict[str, Callable[..., TransactionalProducer]] = {
    "aiokafka": AiokafkaProducer,
    "kafka-python": KafkaPythonProducer,
    "confluent": ConfluentProducer,
}


ERRORS = (confluent_kafka.KafkaException, kafka.errors.KafkaError, aiokafka.errors.KafkaError)
"""What the libraries raise."""


def named(failure: BaseException) -> str:
    """What the library calls it, and what librdkafka adds: whether it asks for an abort or for another producer."""
    if not isinstance(failure, confluent_kafka.KafkaException):
        return type(failure).__name__
    error = failure.args[0]
    name: str = error.name()
    return f"{name}{', fatal' * error.fatal()}{', to be aborted' * error.txn_requires_abort()}"


def refusal(verb: Callable[..., None], *arguments: Any) -> str:
    """What the library calls the refusal of ``verb``; "" if it is not refused."""
    try:
        verb(*arguments)
    except ERRORS as failure:
        return named(failure)
    return ""


def read(bootstrap: str, topic: str, isolation: str = "read_committed") -> list[str]:
    """What a reader of that isolation level finds in partition 0, up to where it ends for that reader."""
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": unique("reader"),
            "isolation.level": isolation,
            "enable.partition.eof": True,
            "enable.auto.commit": False,
            "fetch.wait.max.ms": 10,
        }
    )
    consumer.assign([confluent_kafka.TopicPartition(topic, 0, 0)])
    found: list[str] = []
    try:
        while (message := consumer.poll(PATIENCE_S)) is not None:
            if (end := message.error()) is not None:
                assert end.code() == confluent_kafka.KafkaError._PARTITION_EOF
                return found
            found.append((message.value() or b"").decode())
        raise AssertionError(f"{topic} never ended after {found}")
    finally:
        consumer.close()

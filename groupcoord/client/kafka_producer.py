"""Producer, the asyncio counterpart of Kafka's ``KafkaProducer``::

    async with Producer("localhost:9092") as producer:
        stored = await producer.send("orders", b"an espresso", key=b"table 7")
        print(await stored)

``send`` adds the record to a batch and returns a future, which is done when the broker has acknowledged the record.
"""

import asyncio
import inspect
import random
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any, Self

from groupcoord.assignors import TopicPartition
from groupcoord.client.option_value_parsing import parse_addresses
from groupcoord.client.producer.producer_batch import HeaderPairs, record_size_upper_bound
from groupcoord.client.producer.producer_config import ProducerConfig
from groupcoord.client.producer.producer_errors import (
    BufferExhaustedError,
    ProducerClosedError,
    RecordTooLargeError,
    TransactionTimeoutError,
)
from groupcoord.client.producer.record_accumulator import SMALL_OVERHEAD_BYTES, Appended, TopicQueues
from groupcoord.client.producer.sent_records import Headers, RecordMetadata, header_pairs, require_bytes
from groupcoord.client.producer.transaction_manager import GroupMetadata, ProducerState, TransactionManager
from groupcoord.client.producer_driver import ProducerDriver
from groupcoord.core.events import Event
from groupcoord.partitioners import KEYED
from groupcoord.wall_clock import wall_clock

CLOSE_TIMEOUT_MS = 5_000
"""``stop`` gives up after so long without an acknowledgement."""
_ENDING = (ProducerState.ABORTING_TRANSACTION, ProducerState.COMMITTING_TRANSACTION)
_OPEN = (ProducerState.IN_TRANSACTION, ProducerState.ABORTABLE_ERROR)
_hash_key = KEYED["java"]

Serializer = Callable[[Any], bytes | None]
Partitioner = Callable[..., int]
_Record = tuple[str, int | None, int, bytes | None, bytes | None, HeaderPairs, Any]
"""The arguments of ``Sender.append``, without the time."""


class Producer:
    """A producer, open while its ``async with`` block runs, or from ``start`` to ``stop``.

    ``bootstrap_servers`` is ``host:port`` of any brokers. ``key_serializer`` and ``value_serializer`` return bytes.
    ``partitioner`` is called for every record without a partition, as in aiokafka: with the key as bytes, all partitions and
    those with a leader; a partitioner of :mod:`groupcoord.partitioners` also gets the topic and the size. ``chance`` returns a
    number from 0 up to 1, for the choice of partitions and the jitter of back-offs. ``listeners`` are called with an event for
    each step (:mod:`groupcoord.client.producer.producer_events`). ``settings`` are the fields of
    :class:`~groupcoord.client.producer.producer_config.ProducerConfig`; times are milliseconds and sizes bytes.

    Raises ValueError for unknown settings and for settings that cannot work.
    """

    def __init__(
        self,
        bootstrap_servers: str | Iterable[str],
        *,
        client_id: str = "groupcoord",
        key_serializer: Serializer | None = None,
        value_serializer: Serializer | None = None,
        partitioner: Partitioner | None = None,
        metadata_max_age_ms: int = 300_000,
        allow_auto_create_topics: bool = True,
        listeners: Iterable[Callable[[Event], None]] = (),
        chance: Callable[[], float] = random.random,
        **settings: Any,
    ) -> None:
        config = self._config = ProducerConfig.of(settings)
        self._serialize_key, self._serialize_value = key_serializer, value_serializer
        self._partitioner = partitioner
        self._partitioner_takes_topic = partitioner is not None and "topic" in inspect.signature(partitioner).parameters
        self._surely_fits = min(config.max_request_size, config.buffer_memory) - SMALL_OVERHEAD_BYTES
        self._now_ms = wall_clock()
        self._driver = ProducerDriver(
            config,
            parse_addresses(bootstrap_servers),
            client_id=client_id,
            metadata_max_age_ms=metadata_max_age_ms,
            allow_auto_create_topics=allow_auto_create_topics,
            listeners=listeners,
            chance=chance,
            now_ms=self._now_ms,
        )
        self._sender = self._driver.sender
        self._accumulator = self._sender.accumulator
        self._topics = self._driver.topics
        self._open = False
        self._loop: asyncio.AbstractEventLoop

    def __repr__(self) -> str:
        state = "open" if self._open else "closed"
        return f"<Producer {state}, {len(self._accumulator.incomplete)} batches not acknowledged>"

    # Opening and closing.

    async def __aenter__(self) -> Self:
        """See ``start``."""
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """See ``stop``."""
        await self.stop()

    async def start(self) -> None:
        """Connect to the cluster and, with a ``transactional_id``, initialise transactions, which fences older producers.

        Raises DisconnectedError if no broker can be reached, and errors of InitProducerId.
        """
        self._loop = asyncio.get_running_loop()
        try:
            await self._driver.start()
            self._open = True
            if self._driver.transactions is not None:
                self._driver.transactions.init_transactions()
                await self._transaction_is(ProducerState.READY)
        except BaseException:
            await self.stop(timeout_ms=0)
            raise

    async def stop(self, *, timeout_ms: int = CLOSE_TIMEOUT_MS) -> None:
        """Send the buffered records, wait until they are acknowledged, and close the connections.

        An open transaction is aborted. If nothing is acknowledged for ``timeout_ms``, the rest is given up: the futures of
        these records raise ProducerClosedError.
        """
        if self._open:
            self._open = False
            self._accumulator.closed = True
            transactions = self._driver.transactions
            if transactions is not None and transactions.state in _OPEN:
                transactions.abort_transaction()
            self._driver.wake()
            await self._finished(timeout_ms)
        await self._driver.stop(ProducerClosedError("the producer was stopped before the record was acknowledged"))

    async def _finished(self, timeout_ms: int) -> None:
        """Wait until all records are acknowledged, or until none was acknowledged for ``timeout_ms``."""
        acknowledged, until_s = -1, 0.0
        transactions = self._driver.transactions
        while self._accumulator.incomplete or (transactions is not None and transactions.state in _ENDING):
            if acknowledged != self._driver.acknowledged:
                acknowledged = self._driver.acknowledged
                until_s = self._loop.time() + timeout_ms / 1000
            try:
                async with asyncio.timeout_at(until_s):
                    await self._driver.changed.wait()
            except TimeoutError:
                return

    # Records.

    async def send(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: Headers = (),
    ) -> "asyncio.Future[RecordMetadata]":
        """Add a record to the batch of its partition; the future returns its RecordMetadata when it is acknowledged.

        It waits, for ``max_block_ms`` at most, for the metadata of a new topic and for buffer memory. Raises
        ProducerClosedError, MetadataTimeoutError, BufferExhaustedError, RecordTooLargeError; TypeError if key or value are not
        bytes; ValueError for a partition that the topic does not have; BrokerError for an invalid or forbidden topic; with
        transactions TransactionStateError. The future raises BrokerError, DeliveryTimeoutError, ProducerClosedError and, if
        its transaction is aborted first, TransactionAbortedError.
        """
        key, value = self._as_bytes(key, value)
        pairs: HeaderPairs = () if not headers else _checked(headers)
        self._check_can_send()
        queues = self._topics.get(topic)
        if queues is None or not queues.leaders:
            await self._driver.find_topic(topic)
            queues = self._topics[topic]
        if partition is None:
            partition = self._choose(topic, queues, key, value)
        elif partition not in queues.leaders:
            await self._driver.refresh_topic(topic)
            if partition not in queues.leaders:
                raise ValueError(f"topic {topic} has no partition {partition!r}: {_partitions(queues)}")
        if len(value or b"") + len(key or b"") > self._surely_fits or pairs:
            self._check_size(key, value, pairs)
        now_ms = self._now_ms()
        if timestamp_ms is None:
            timestamp_ms = now_ms
        stored: asyncio.Future[RecordMetadata] = self._loop.create_future()
        record = topic, partition, timestamp_ms, key, value, pairs, (stored, timestamp_ms)
        appended = self._sender.append(*record, now_ms)
        if appended is None:
            appended = await self._append_when_possible(record)
        if appended.opened or appended.ready:
            self._driver.wake()
            if appended.opened:
                await asyncio.sleep(0)  # a loop of sends lets other tasks, such as the sender, run
        return stored

    async def send_and_wait(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: Headers = (),
    ) -> RecordMetadata:
        """Send a record and wait until it is acknowledged. Raises what ``send`` and its future raise."""
        return await (await self.send(topic, value, key, partition, timestamp_ms, headers))

    async def flush(self) -> None:
        """Send all buffered records without lingering, and wait until each is acknowledged or given up."""
        pending = self._accumulator.flush()
        if pending:
            self._driver.wake()
        while pending:
            await self._driver.changed.wait()

    async def partitions_for(self, topic: str) -> set[int]:
        """The partitions of ``topic``. Raises MetadataTimeoutError, BrokerError, ProducerClosedError."""
        self._check_open()
        await self._driver.find_topic(topic)
        return set(self._topics[topic].leaders)

    def _as_bytes(self, key: Any, value: Any) -> tuple[bytes | None, bytes | None]:
        if self._serialize_key is not None:
            key = self._serialize_key(key)
        if self._serialize_value is not None:
            value = self._serialize_value(value)
        if type(key) is not bytes:  # saves a function call per record
            require_bytes("key", key)
        if type(value) is not bytes:
            require_bytes("value", value)
        return key, value

    def _choose(self, topic: str, queues: TopicQueues, key: bytes | None, value: bytes | None) -> int | None:
        """The partition of the record; None: the sticky partition for records without a key."""
        if self._partitioner is None:
            keyless = key is None or self._config.partitioner_ignore_keys
            return None if keyless else _hash_key(key or b"", queues.partition_count)
        more: dict[str, Any] = {}
        if self._partitioner_takes_topic:
            more = {"topic": topic, "size": len(key or b"") + len(value or b"")}
        chosen = self._partitioner(key, list(queues.leaders), list(queues.available), **more)
        if chosen not in queues.leaders:
            raise ValueError(f"the partitioner chose {chosen!r} for topic {topic}: {_partitions(queues)}")
        return chosen

    def _check_size(self, key: bytes | None, value: bytes | None, headers: HeaderPairs) -> None:
        size = record_size_upper_bound(key, value, headers)
        for name in ("max_request_size", "buffer_memory"):
            most = getattr(self._config, name)
            if size > most:
                raise RecordTooLargeError(f"the record takes up to {size:,} bytes, and {name} is {most:,}")

    async def _append_when_possible(self, record: _Record) -> Appended:
        """Append the record as soon as there is memory. Raises BufferExhaustedError, and other errors of the producer."""
        self._sender.memory_is_short(self._now_ms())
        self._accumulator.waiting_for_memory += 1
        appended: Appended | None = None
        try:
            async with asyncio.timeout(self._config.max_block_ms / 1000):
                self._driver.wake()  # batches do not linger while a record waits for memory
                while appended is None:
                    await self._driver.changed.wait()
                    self._check_can_send()
                    appended = self._sender.append(*record, self._now_ms())
        except TimeoutError:
            raise BufferExhaustedError(
                f"there was no memory for {self._config.max_block_ms} ms: the {self._config.buffer_memory:,} bytes of "
                "buffer_memory are taken by records that are not acknowledged"
            ) from None
        finally:
            self._accumulator.waiting_for_memory -= 1
        return appended

    def _check_open(self) -> None:
        if not self._open:
            raise ProducerClosedError("the producer is not open: use it in its `async with` block, or after start()")
        if self._sender.failure is not None:
            raise self._sender.failure

    def _check_can_send(self) -> None:
        if not self._open or self._sender.failure is not None:
            self._check_open()
        if self._driver.transactions is not None:
            self._driver.transactions.require(ProducerState.IN_TRANSACTION)

    # Transactions.

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[None]:
        """Run the block in a transaction: committed at its end, aborted if the block raises."""
        manager = self._manager()
        await self.begin_transaction()
        try:
            yield
        except BaseException:
            if manager.state in _OPEN:
                await self.abort_transaction()
            raise
        await self.commit_transaction()

    async def begin_transaction(self) -> None:
        """Begin a transaction. Raises TransactionStateError."""
        self._manager().begin_transaction()
        self._driver.wake()

    async def commit_transaction(self) -> None:
        """Wait until all sent records are acknowledged, and commit the transaction.

        Raises the error that prevents the commit: then the transaction can only be aborted, unless the error is fatal. After a
        TransactionTimeoutError, raised after ``max_block_ms``, it may be called again.
        """
        manager = self._manager()
        await self.flush()
        if manager.state is ProducerState.ABORTABLE_ERROR and manager.error is not None:
            raise manager.error
        if manager.state is not ProducerState.COMMITTING_TRANSACTION:
            manager.commit_transaction()
        await self._transaction_is(ProducerState.READY)

    async def abort_transaction(self) -> None:
        """Abort the transaction; its unsent records are dropped. It may be called again after a TransactionTimeoutError.

        Raises the fatal error of the producer, if any.
        """
        manager = self._manager()
        if manager.state is not ProducerState.ABORTING_TRANSACTION:
            manager.abort_transaction()
        await self._transaction_is(ProducerState.READY)

    async def send_offsets_to_transaction(
        self, offsets: Mapping[TopicPartition, int], group: GroupMetadata | str
    ) -> None:
        """Commit ``offsets``, each that of the next record to consume, as part of the transaction.

        ``group`` is ``Consumer.group_metadata()``, so that the coordinator rejects a member that has left its group (KIP-447),
        or a group id alone. Raises the error that prevents the commit.
        """
        manager = self._manager()
        manager.send_offsets_to_transaction(offsets, GroupMetadata(group) if isinstance(group, str) else group)
        await self._transaction_is(ProducerState.IN_TRANSACTION, until=lambda: not manager.has_offsets_to_commit)

    def _manager(self) -> TransactionManager:
        self._check_open()
        if self._driver.transactions is None:
            raise ValueError("a producer has transactions if it has a transactional_id")
        return self._driver.transactions

    async def _transaction_is(self, state: ProducerState, until: Callable[[], bool] = lambda: True) -> None:
        """Wait for that state. Raises the error of the transaction, and TransactionTimeoutError."""
        manager = self._manager()
        self._driver.wake()
        try:
            async with asyncio.timeout(self._config.max_block_ms / 1000):
                while manager.state is not state or not until():
                    if manager.error is not None:
                        raise manager.error
                    await self._driver.changed.wait()
        except TimeoutError:
            raise TransactionTimeoutError(
                f"the transaction was not {state.value} after {self._config.max_block_ms} ms, but {manager.state.value}"
            ) from None


def _checked(headers: Headers) -> HeaderPairs:
    pairs = header_pairs(headers)
    for name, value in pairs:
        require_bytes(f"header {name!r}", value)
    return pairs


def _partitions(queues: TopicQueues) -> str:
    return f"it has {queues.partition_count}, from 0 on"

"""Drives the sender of a producer on asyncio: a task per request, one timer for the next deadline, metadata of topics."""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable
from typing import Any

from groupcoord.client.client_errors import BrokerError, ClientError, DisconnectedError, UnsupportedVersionError
from groupcoord.client.exponential_backoff import ExponentialBackoff
from groupcoord.client.network_client import ConnectionPurpose, NetworkClient
from groupcoord.client.option_value_parsing import Address
from groupcoord.client.producer.producer_config import ProducerConfig
from groupcoord.client.producer.producer_errors import MetadataTimeoutError
from groupcoord.client.producer.record_accumulator import PartitionLeader
from groupcoord.client.producer.sender import (
    Action,
    BatchDone,
    Connect,
    GetProducerId,
    SendBatches,
    Sender,
    answers_by_partition,
    produce_request,
)
from groupcoord.client.producer.sent_records import RecordMetadata
from groupcoord.client.producer.transaction_manager import (
    ProducerRequest,
    ProducerState,
    TransactionManager,
)
from groupcoord.client.trouble_log import TroubleLog
from groupcoord.core.events import Event
from groupcoord.protocol.apis.produce import ProduceRequest
from groupcoord.protocol.errors import ErrorCode

_BY_NAME = 12
"""The last version of Produce with topic names, not ids; and the first that adds partitions to transactions (KIP-890)."""
_HOPELESS = frozenset({ErrorCode.INVALID_TOPIC_EXCEPTION, ErrorCode.TOPIC_AUTHORIZATION_FAILED})
_TROUBLE_AFTER_ATTEMPTS = 3
"""Failed lookups of a topic before that is logged: automatic creation of a topic takes a moment."""
_LOG = logging.getLogger("groupcoord.client")


class ProducerDriver:
    """Drives one producer on the running loop; the arguments are those of ``Producer``."""

    def __init__(
        self,
        config: ProducerConfig,
        addresses: tuple[Address, ...],
        *,
        client_id: str,
        metadata_max_age_ms: int,
        allow_auto_create_topics: bool,
        listeners: Iterable[Callable[[Event], None]],
        chance: Callable[[], float],
        now_ms: Callable[[], int],
    ) -> None:
        self.now_ms = now_ms
        self.transactions = None if config.transactional_id is None else TransactionManager(config, chance=chance)
        self._listeners = tuple(listeners)
        self.sender = Sender(
            config,
            client_id=client_id,
            chance=chance,
            emit=self._emit,
            told_of_steps=bool(self._listeners),
            transactions=self.transactions,
            troubles=TroubleLog(f"producer {client_id}", now_ms=now_ms, listen=self._emit),
        )
        self.topics = self.sender.accumulator.topics
        self.changed = asyncio.Event()
        """Is set, and replaced by another, whenever something has changed."""
        self.acknowledged = 0
        """How many batches were acknowledged so far."""
        self._config = config
        self._backoff = ExponentialBackoff(config.retry_backoff_ms, config.retry_backoff_max_ms, chance)
        self._cluster = NetworkClient(
            addresses,
            client_id=client_id,
            request_timeout_ms=config.request_timeout_ms,
            metadata_max_age_ms=metadata_max_age_ms,
            backoff=self._backoff,
            allow_auto_create_topics=allow_auto_create_topics,
            on_change=self._cluster_changed,
        )
        self._poll_is_due = False
        self._timer: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._finding: dict[str, asyncio.Task[None]] = {}
        self._state_told = ProducerState.UNINITIALIZED
        self._stopped = False
        self._loop: asyncio.AbstractEventLoop

    async def start(self) -> None:
        """Connect to the cluster. Raises DisconnectedError if no broker can be reached."""
        self._loop = asyncio.get_running_loop()
        await self._cluster.refresh(())
        self._start(self._cluster.refresh_periodically())

    async def stop(self, error: ClientError) -> None:
        """Stop at once: the futures of unacknowledged records raise ``error``."""
        self._execute(self.sender.close(error, self.now_ms()))
        self._stopped = True
        if self._timer is not None:
            self._timer.cancel()
        tasks = (*self._tasks, *self._finding.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._cluster.close()
        self._notify()

    # Topics.

    async def find_topic(self, topic: str) -> None:
        """Wait until the partitions of ``topic`` are known. Raises MetadataTimeoutError, BrokerError."""
        finding = self._finding.get(topic)
        if finding is None:
            finding = self._finding[topic] = self._loop.create_task(self._until_known(topic))
            finding.add_done_callback(lambda _: self._finding.pop(topic))
        try:
            async with asyncio.timeout(self._config.max_block_ms / 1000):
                await asyncio.shield(finding)
        except TimeoutError:
            finding.cancel()
            raise MetadataTimeoutError(
                f"topic {topic}: for {self._config.max_block_ms} ms {self._why_unknown(topic)}"
            ) from None

    async def refresh_topic(self, topic: str) -> None:
        """Fetch the metadata of ``topic``. Raises DisconnectedError."""
        await self._cluster.refresh([topic])

    async def _until_known(self, topic: str) -> None:
        sender, attempts = self.sender, 0
        while True:
            try:
                await self._cluster.refresh([topic])
            except DisconnectedError as error:
                sender.begin_trouble("metadata", str(error), self.now_ms())
            else:
                sender.trouble_is_over("metadata", self.now_ms())
            if topic in self._cluster.topics:
                break
            code = self._cluster.topic_errors.get(topic)
            if code in _HOPELESS:
                raise BrokerError(ErrorCode(code), f"topic {topic}")
            attempts += 1
            if attempts == _TROUBLE_AFTER_ATTEMPTS:
                sender.begin_trouble(f"topic {topic}", self._why_unknown(topic), self.now_ms())
            await asyncio.sleep(self._backoff.delay_ms(attempts - 1) / 1000)
        self._cluster.watch(self._cluster.watched | {topic})
        sender.trouble_is_over(f"topic {topic}", self.now_ms())

    def _why_unknown(self, topic: str) -> str:
        code = self._cluster.topic_errors.get(topic)
        return "no broker said which partitions it has" if code is None else f"brokers said {code.name}: {code.text}"

    def _cluster_changed(self) -> None:
        for name, topic in self._cluster.topics.items():
            self.sender.accumulator.set_leaders(
                name,
                {
                    number: PartitionLeader(place.leader, place.leader_epoch)
                    for number, place in topic.partitions.items()
                },
            )
        self.wake()

    # The sender.

    def wake(self) -> None:
        """Schedule a poll of the sender."""
        if not self._poll_is_due:
            self._poll_is_due = True
            self._loop.call_soon(self._poll)

    def _poll(self) -> None:
        self._poll_is_due = False
        if self._stopped:
            return
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._execute(self.sender.poll(self.now_ms()))
        times = [self.sender.next_deadline()]
        if self.transactions is not None:
            times.append(self._advance_transaction(self.transactions))
        at_ms = min((each for each in times if each is not None), default=None)
        if at_ms is not None:
            self._timer = self._loop.call_later(max(at_ms - self.now_ms(), 0) / 1000, self._poll)
        self._notify()

    def _notify(self) -> None:
        self.changed.set()
        self.changed = asyncio.Event()

    def _execute(self, actions: Iterable[Action]) -> None:
        for action in actions:
            match action:
                case BatchDone():
                    self._complete(action)
                case SendBatches():
                    self._start(self._produce(action))
                case Connect():
                    self._start(self._connect(action.node_id))
                case GetProducerId():
                    self._start(self._get_producer_id(action))
                case _:  # RefreshMetadata
                    self._cluster.request_refresh()

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _complete(self, done: BatchDone) -> None:
        """Complete the futures of the records of a batch. A promise is a future and the timestamp of the record."""
        batch, error = done.batch, done.error
        if error is not None:
            for stored, _ in batch.promises:
                if not stored.done():
                    stored.set_exception(error)
                    stored.exception()  # marks the exception as retrieved: the failure is logged once, not per record
            return
        self.acknowledged += 1
        topic, partition = batch.partition
        offset, append_time_ms = done.base_offset, done.append_time_ms
        step = 0 if offset < 0 else 1
        for stored, timestamp_ms in batch.promises:
            if not stored.done():
                at_ms = timestamp_ms if append_time_ms < 0 else append_time_ms
                stored.set_result(RecordMetadata(topic, partition, offset, at_ms))
            offset += step

    # A response is handled without an await in between, so that the futures of a completed batch are done at once.

    async def _connect(self, node_id: int) -> None:
        try:
            connection = await self._cluster.connection_to(node_id, ConnectionPurpose.PRODUCING)
            if self.transactions is not None and connection.highest_version(ProduceRequest) < _BY_NAME:
                raise UnsupportedVersionError(
                    f"{connection.host}:{connection.port}: this producer's transactions need a broker with "
                    "transaction.version 2, of Kafka 4.0 or newer (KIP-890)"
                )
        except ClientError as error:
            self.sender.connection_failed(node_id, error, self.now_ms())
        else:
            self.sender.connected(node_id, self.now_ms())
        self._poll()

    async def _produce(self, sent: SendBatches) -> None:
        request = produce_request(self._config, sent.batches, self._cluster.topic_id)
        limit = None if all(topic.topic_id is not None for topic in request.topic_data) else _BY_NAME
        purpose = ConnectionPurpose.PRODUCING
        answers = None
        try:
            if self._config.required_acks:
                answer = await self._cluster.request_of(sent.node_id, request, purpose, limit=limit)
                answers = answers_by_partition(request, answer)
            else:
                connection = await self._cluster.connection_to(sent.node_id, purpose)
                connection.send(request, limit=limit)
        except ClientError as error:
            self.sender.request_failed(sent, error, self.now_ms())
        else:
            self.sender.produced(sent, answers, self.now_ms())
        self._poll()

    async def _get_producer_id(self, asked: GetProducerId) -> None:
        try:
            answer = await self._cluster.request_any(asked.request)
        except ClientError as error:
            self.sender.producer_id_failed(error, self.now_ms())
        else:
            self.sender.producer_id_given(answer, self.now_ms())
        self._poll()

    # Transactions.

    def _advance_transaction(self, manager: TransactionManager) -> int | None:
        """Send the next request of the transaction, if any; returns the next deadline (ms) or None."""
        request = manager.next_request(self.now_ms())
        if request is not None:
            self._start(self._ask_coordinator(manager, request))
        if manager.state is not self._state_told:
            self._state_told = manager.state
            self.sender.transaction_changed(manager.state.value, manager.error, self.now_ms())
        return manager.next_deadline()

    async def _ask_coordinator(self, manager: TransactionManager, asked: ProducerRequest) -> None:
        cluster, timeout_ms = self._cluster, asked.timeout_ms
        try:
            if asked.to is None:
                answer = await cluster.request_any(asked.request, timeout_ms)
            else:
                address = asked.to.host, asked.to.port
                answer = await cluster.request_at(address, asked.request, ConnectionPurpose.GENERAL, timeout_ms)
        except ClientError as error:
            manager.fail(error, self.now_ms())
        else:
            manager.complete(answer, self.now_ms())
        self.wake()

    # Events.

    def _emit(self, event: Event) -> None:
        for listener in self._listeners:
            try:
                listener(event)
            except Exception:
                _LOG.exception("a listener raised at %r", event)  # it must not stop the producer

"""Simulated clients without a group, which send requests to the leaders of a topic's partitions: a consumer, and producers."""

from abc import ABC, abstractmethod
from typing import Any, NamedTuple, Protocol

from groupcoord.client.member.metadata_and_commit_requests import metadata_request
from groupcoord.protocol.apis.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from groupcoord.protocol.apis.init_producer_id import InitProducerIdRequest
from groupcoord.protocol.apis.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from groupcoord.protocol.batches.record_batch import (
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    build_batch,
    iter_batches,
)
from groupcoord.protocol.batches.records import Record
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages import MetadataResponse, ProduceResponse
from groupcoord.simulation.event_queue import Callback, EventQueue
from groupcoord.simulation.network import GENERAL, MEMBER_ACTS, OnResponse, PendingRequests, SimulatedNetwork, rank
from groupcoord.simulation.plan import WRITTEN_TOPIC, SimulationPlan, StandaloneProducerPlan

REQUEST_TIMEOUT_MS = 12_000


class ClientEnvironment(Protocol):
    """The part of the simulated world that a client uses."""

    plan: SimulationPlan
    event_queue: EventQueue
    network: SimulatedNetwork

    def broker_number(self, node_id: int) -> int:
        """The number of a broker (from 0)."""

    def random_broker(self, slot_id: int) -> int:
        """The number of a random broker."""


class StandaloneClient(ABC):
    """A client that calls ``act`` every ``interval_ms``."""

    def __init__(self, environment: ClientEnvironment, slot_id: int, name: str, topic: str, interval_ms: int) -> None:
        self.name, self.topic = name, topic
        self.leaders: dict[int, int] = {}
        """The number of the broker that leads each partition, as far as it is known."""
        self._environment, self._slot_id, self._interval_ms = environment, slot_id, interval_ms
        self._event_queue = environment.event_queue
        self.requests = PendingRequests(environment.network, slot_id, lambda callback: callback(), self.later)
        self._last_ticket = 0

    def start(self, first_ms: int, last_ms: int) -> None:
        """Call ``act`` periodically, from ``first_ms`` to ``last_ms``."""

        def tick() -> None:
            if self._event_queue.now_ms + self._interval_ms <= last_ms:
                self.later(tick, self._interval_ms)
            self.act()

        self.later(tick, first_ms)

    @abstractmethod
    def act(self) -> None:
        """The periodic action of a subclass."""

    def later(self, callback: Callback, after_ms: int = 0) -> None:
        """Schedule ``callback`` as a separate event."""
        self._event_queue.schedule(self._event_queue.now_ms + after_ms, rank(self._slot_id, MEMBER_ACTS), callback)

    def send(self, broker: int, request: Any, on_response: OnResponse, on_failure: Callback) -> None:
        """Send ``request`` to that broker (numbered from 0), then call ``on_response`` or ``on_failure``."""
        queue, self._last_ticket = self._event_queue, self._last_ticket + 1
        due_ms = queue.now_ms + REQUEST_TIMEOUT_MS
        timer = queue.schedule(
            due_ms, rank(self._slot_id, MEMBER_ACTS), lambda: self.requests.expire(self._event_queue.now_ms)
        )

        def responded(response: Any) -> None:
            queue.cancel(timer)
            on_response(response)

        self.requests.send(
            self._last_ticket, (broker, GENERAL), request, due_ms, responded, lambda _: on_failure(), routine=False
        )

    def find_leaders(self, then: Callback) -> None:
        """Fetch the partition leaders from a random broker, then call ``then``, even if that failed."""

        def found(response: MetadataResponse) -> None:
            (topic,) = response.topics
            self.leaders = {
                each.partition_index: self._environment.broker_number(each.leader_id)
                for each in topic.partitions
                if each.leader_id >= 0
            }
            then()

        request = metadata_request([self.topic])
        self.send(self._environment.random_broker(self._slot_id), request, found, then)


_MAX_BYTES = 1 << 20


class StandaloneConsumer(StandaloneClient):
    """Fetches with isolation level read_uncommitted."""

    def __init__(self, environment: ClientEnvironment, slot_id: int, topic: str, interval_ms: int) -> None:
        super().__init__(environment, slot_id, "reader", topic, interval_ms)
        self.positions: dict[int, int] = {}
        """The position in each partition."""

    def act(self) -> None:
        """Fetch from all leaders."""
        if len(self.leaders) < self._environment.plan.topics[self.topic]:
            self.find_leaders(self._fetch)
        else:
            self._fetch()

    def _fetch(self) -> None:
        for broker in sorted(set(self.leaders.values())):
            wanted = tuple(
                FetchPartition(
                    partition=partition,
                    fetch_offset=self.positions.get(partition, 0),
                    partition_max_bytes=_MAX_BYTES,
                )
                for partition, leader in self.leaders.items()
                if leader == broker
            )
            topics = (FetchTopic(topic=self.topic, partitions=wanted),)
            request = FetchRequest(max_wait_ms=0, min_bytes=0, topics=topics)
            self.send(broker, request, self._fetched, self.leaders.clear)

    def _fetched(self, response: FetchResponse) -> None:
        partitions = response.responses[0].partitions
        refused = {each.partition_index for each in partitions if each.error_code}
        self.leaders = {partition: leader for partition, leader in self.leaders.items() if partition not in refused}
        for each in partitions:
            for header, _ in iter_batches(bytes(each.records or b"")):
                self.positions[each.partition_index] = header.last_offset + 1


_DELIVERY_TIMEOUT_MS = 30_000
_RETRY_MS = 500
_PRODUCE_TIMEOUT_MS = 8_000
_MAX_RECORDS = 3


class _Batch(NamedTuple):
    """A batch for a partition, and the time until which it is retried (ms)."""

    partition: int
    data: bytes
    until_ms: int


class StandaloneProducer(StandaloneClient):
    """One batch is in flight at a time; it is given up after 30 seconds without an acknowledgement."""

    def __init__(self, environment: ClientEnvironment, slot_id: int, plan: StandaloneProducerPlan) -> None:
        super().__init__(environment, slot_id, plan.name, WRITTEN_TOPIC, plan.interval_ms)
        self.plan = plan
        self._batch: _Batch | None = None
        self._records = self._batches = 0
        self._producer_id, self._epoch = NO_PRODUCER_ID, -1
        self._sequences: dict[int, int] = {}  # the next sequence number of each partition
        self._told: set[int] = set()  # the brokers to which a request without a response (acks=0) was sent

    @property
    def is_done(self) -> bool:
        """Is no batch in flight?"""
        return self._batch is None

    def act(self) -> None:
        """Write a new batch, unless one is in flight."""
        if self.plan.idempotent and self._producer_id == NO_PRODUCER_ID:
            self._initialise()
        elif self._batch is None:
            self._batch = self._new_batch()
            self._write(self._batch)

    def _initialise(self) -> None:
        def initialised(response: Any) -> None:
            self._producer_id, self._epoch = response.producer_id, response.producer_epoch

        broker = self._environment.random_broker(self._slot_id)
        self.send(broker, InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=0), initialised, _ignore)

    def _new_batch(self) -> _Batch:
        partition = self._batches % self._environment.plan.topics[WRITTEN_TOPIC]
        count, now_ms = 1 + self._batches % _MAX_RECORDS, self._event_queue.now_ms
        self._batches += 1
        keys = [f"{self.name}-{number}".encode() for number in range(self._records, self._records + count)]
        self._records += count
        sequence = self._sequences.get(partition, 0)
        if self.plan.idempotent:
            self._sequences[partition] = sequence + count
        data = build_batch(
            [Record(offset, now_ms, key, b"") for offset, key in enumerate(keys)],
            producer_id=self._producer_id,
            producer_epoch=self._epoch,
            base_sequence=sequence if self.plan.idempotent else NO_SEQUENCE,
        )
        return _Batch(partition, data, now_ms + _DELIVERY_TIMEOUT_MS)

    def _write(self, batch: _Batch) -> None:
        broker = self.leaders.get(batch.partition)
        if broker in self._told and self.requests.working_connection(broker) is None:
            broker = None  # the broker closed the connection, because it refused a batch with acks=0
        if broker is None:
            self._told.clear()
            self.find_leaders(lambda: self._write_to(self.leaders.get(batch.partition), batch))
        else:
            self._write_to(broker, batch)

    def _write_to(self, broker: int | None, batch: _Batch) -> None:
        if broker is None:
            self._try_again(batch)
            return
        of_partition = PartitionProduceData(index=batch.partition, records=batch.data)
        request = ProduceRequest(
            acks=self.plan.acks,
            timeout_ms=_PRODUCE_TIMEOUT_MS,
            topic_data=(TopicProduceData(name=WRITTEN_TOPIC, partition_data=(of_partition,)),),
        )
        if self.plan.acks == 0:
            self._told.add(broker)
            self.requests.tell((broker, GENERAL), request)
            self._batch = None
        else:
            self.send(broker, request, lambda response: self._answered(batch, response), lambda: self._try_again(batch))

    def _answered(self, batch: _Batch, response: ProduceResponse) -> None:
        (each,) = response.responses[0].partition_responses
        code = ErrorCode(each.error_code)
        if code.retriable:
            self._try_again(batch)
        else:
            self._batch = None

    def _try_again(self, batch: _Batch) -> None:
        self.leaders.clear()
        if self._event_queue.now_ms < batch.until_ms:
            self.later(lambda: self._write(batch), _RETRY_MS)
            return
        self._batch = None
        if self.plan.idempotent:  # bump the epoch, so that the batch cannot be stored after later ones (KIP-360)
            self._epoch += 1
            self._sequences.clear()


def _ignore() -> None:
    """Nothing to do: the next ``act`` retries."""

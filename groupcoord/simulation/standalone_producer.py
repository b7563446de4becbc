"""A simulated producer without group and transactions, which writes numbered records, one batch at a time."""

from typing import Any, NamedTuple

from groupcoord.protocol.apis.init_producer_id import InitProducerIdRequest
from groupcoord.protocol.apis.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from groupcoord.protocol.batches.record_batch import NO_PRODUCER_ID, NO_SEQUENCE, build_batch
from groupcoord.protocol.batches.records import Record
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages import ProduceResponse
from groupcoord.simulation.network import GENERAL
from groupcoord.simulation.standalone_client import ClientEnvironment, StandaloneClient
from groupcoord.simulation.standalone_producer_plan import WRITTEN_TOPIC, StandaloneProducerPlan

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

"""A simulated consume-transform-produce application: one output record per input record, with offsets, in transactions.

Offsets are sent with the group metadata of the begin of the transaction (KIP-447). After an aborted transaction it continues at
the committed offsets.
"""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple

from groupcoord.assignors import TopicPartition
from groupcoord.client.client_errors import RequestTimedOutError
from groupcoord.client.producer.producer_config import ProducerConfig
from groupcoord.client.producer.transaction_manager import (
    GroupMetadata,
    ProducerState,
    TransactionBatch,
    TransactionManager,
)
from groupcoord.protocol.apis.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from groupcoord.protocol.batches.record_batch import TRANSACTIONAL, build_batch
from groupcoord.protocol.batches.records import Record
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages import ProduceResponse
from groupcoord.simulation.consumer_application import GROUP, ApplicationHost, ConsumerApplication
from groupcoord.simulation.event_queue import Callback, EventQueue
from groupcoord.simulation.plan import OUTPUT_TOPIC, SimulationPlan
from groupcoord.simulation.prng import Prng

_MS_PER_RECORD = 8_000
_DELIVERY_TIMEOUT_MS = 30_000
_RETRY_MS = 100
_MAX_BATCH = 40
"""Records in a batch."""
_ABORTS_EVERY = 12
"""The application itself aborts every twelfth transaction, until ``heal_ms``: of the few that follow, all could be such."""

Records = list[tuple[bytes, bytes]]


def end_of_input(partition: TopicPartition, now_ms: int) -> int:
    """The end offset of an input partition, which grows at a constant rate."""
    return now_ms // (_MS_PER_RECORD - 500 * partition[1])


def input_key(partition: TopicPartition, offset: int) -> bytes:
    """The key of the output record for that input record."""
    return f"{partition[0]}-{partition[1]}@{offset}".encode()


class OpenTransaction(NamedTuple):
    """The input of a transaction (first and end offset per partition), and the group metadata of the member."""

    work: dict[TopicPartition, tuple[int, int]]
    group: GroupMetadata


class TransactionalApplication(ConsumerApplication):
    """Processes all available input, in one transaction at a time."""

    commits_are_routine: ClassVar[bool] = False
    requires_stable: ClassVar[bool] = True

    def __init__(
        self,
        host: ApplicationHost,
        event_queue: EventQueue,
        settings: ProducerConfig,
        random: Prng,
        plan: SimulationPlan,
    ) -> None:
        super().__init__(host, event_queue)
        self.producer = TransactionManager(settings, chance=random.fraction)
        self._random, self._plan = random, plan
        self._open: OpenTransaction | None = None
        self._closing = self._commits = self._retries = False
        self._queues: dict[int, deque[Records]] = {}  # by output partition, the records to be written
        self._unanswered = 0
        self._leaders: dict[int, int] = {}
        self._when_ended: list[Callback] = []

    # Calls of the process.

    def start(self) -> None:
        """Schedule the next transaction; get a producer id first if there is none yet."""
        super().start()
        if self.producer.state is ProducerState.UNINITIALIZED:
            self.producer.init_transactions()
            self._advance()

    def resume_reading(self) -> None:
        """Does nothing: positions advance only by transactions."""

    def commit(self, done: Callback) -> None:
        """Call ``done`` when no transaction is open."""
        if self._open is None:
            done()
        else:
            self._when_ended.append(done)

    def close(self, leave: Callback) -> None:
        """Begin no more transactions, and call ``leave`` when none is open."""
        self._closing = True
        self.commit(leave)

    def _commit_if_polling(self) -> None:
        self._commit_overdue = not self.is_polling
        if self.is_polling:
            self._begin()

    def _start_at(self, partition: TopicPartition, committed: int) -> None:
        if partition in self._host.owned and partition not in self._positions:
            self._positions.set(partition, max(committed, 0), self._event_queue.now_ms, reading=False)

    # A transaction.

    def _begin(self) -> None:
        host, producer, now_ms = self._host, self.producer, self._event_queue.now_ms
        ready = producer.state is ProducerState.READY and self._open is None and host.membership.is_stable
        if not ready or self._closing or now_ms > self._plan.last_begin_ms:
            return
        work = {
            partition: (offset, end)
            for partition, offset in self._positions.at(now_ms).items()
            if (end := end_of_input(partition, now_ms)) > offset
        }
        if not work:
            return
        producer.begin_transaction()
        generation = host.membership.commits_as()
        member = GroupMetadata(GROUP, generation.generation_id, generation.member_id, host.plan.instance_id)
        self._open, self._commits = OpenTransaction(work, member), False
        outputs: dict[int, Records] = {}
        for partition, (offset, end) in work.items():
            records = [(input_key(partition, number), b"") for number in range(offset, end)]
            outputs.setdefault(partition[1] % self._plan.topics[OUTPUT_TOPIC], []).extend(records)
        for output, records in outputs.items():
            batches = (records[start : start + _MAX_BATCH] for start in range(0, len(records), _MAX_BATCH))
            self._queues[output] = deque(batches)
        for output in outputs:
            self._write_next(output)

    def _write_next(self, output: int) -> None:
        """Write the next batch of that output partition; after the last batch of all, send the offsets."""
        queue = self._queues[output]
        if queue and self.producer.state is ProducerState.IN_TRANSACTION:
            records = queue.popleft()
            batch = self.producer.new_batch((OUTPUT_TOPIC, output), len(records))
            self._unanswered += 1
            self._write(batch, records, self._event_queue.now_ms + _DELIVERY_TIMEOUT_MS)
        elif not self._unanswered:
            self._queues.clear()
            if self.producer.state is ProducerState.IN_TRANSACTION and self._open is not None:
                self._after_processing(self._open, self._send_offsets)
            else:
                self._advance()

    def _write(self, batch: TransactionBatch, records: Records, until_ms: int) -> None:
        producer, output, settings = self.producer, batch.partition[1], self.producer.settings

        def answered(response: ProduceResponse) -> None:
            (each,) = response.responses[0].partition_responses
            if each.current_leader.leader_id >= 0:
                self._leaders[output] = each.current_leader.leader_id
            if producer.batch_answered(batch, ErrorCode(each.error_code)):
                try_again("Produce is refused again and again")
            else:
                done()

        def failed(error: Exception) -> None:
            self._leaders.pop(output, None)
            try_again(str(error))

        def try_again(why: str) -> None:
            if self._event_queue.now_ms < until_ms:
                self._host.run_later(lambda: self._write(batch, records, until_ms), _RETRY_MS)
            else:
                producer.batch_failed(batch, RequestTimedOutError(why))
                done()

        def done() -> None:
            self._unanswered -= 1
            self._write_next(output)

        request = transactional_produce(settings, batch, records, self._event_queue.now_ms)
        self._host.send(self._leaders.get(output), request, settings.request_timeout_ms, answered, failed)

    def _after_processing(self, transaction: OpenTransaction, then: Callable[[OpenTransaction], None]) -> None:
        """Call ``then`` after the processing time, unless the transaction cannot be committed any more."""
        plan = self._host.plan.transactions
        assert plan is not None

        def go_on() -> None:
            if self._open is transaction and self.producer.state is ProducerState.IN_TRANSACTION:
                then(transaction)

        self._host.run_later(go_on, plan.processing_ms)

    def _send_offsets(self, transaction: OpenTransaction) -> None:
        offsets = {partition: end for partition, (_, end) in transaction.work.items()}
        self.producer.send_offsets_to_transaction(offsets, transaction.group)
        self._after_processing(transaction, self._commit)
        self._advance()

    def _commit(self, _: OpenTransaction) -> None:
        has_reason_to_abort = (
            self._random.next_int(_ABORTS_EVERY) == 0 and self._event_queue.now_ms < self._plan.heal_ms
        )
        self._commits = not has_reason_to_abort
        if self._commits:
            self.producer.commit_transaction()
        else:
            self.producer.abort_transaction()
        self._advance()

    def _advance(self) -> None:
        """Send the next request of the producer, if any."""
        producer, now_ms = self.producer, self._event_queue.now_ms
        if producer.state is ProducerState.FATAL_ERROR:
            assert producer.error is not None
            self._host.application_failed(producer.error)
            return
        if producer.state is ProducerState.ABORTABLE_ERROR:
            self._commits = False
            producer.abort_transaction()
        request = producer.next_request(now_ms)
        deadline = producer.next_deadline()
        if request is not None:
            to = None if request.to is None else request.to.node_id
            self._host.send(to, request.request, request.timeout_ms, self._answered, self._failed)
        elif deadline is not None and not self._retries:
            self._retries = True
            self._host.run_later(self._retry, deadline - now_ms)
        if self._open is not None and producer.state is ProducerState.READY:
            self._end(self._open)

    def _answered(self, response: Any) -> None:
        self.producer.complete(response, self._event_queue.now_ms)
        self._advance()

    def _failed(self, error: Exception) -> None:
        self.producer.fail(error, self._event_queue.now_ms)
        self._advance()

    def _retry(self) -> None:
        self._retries = False
        self._advance()

    def _end(self, ended: OpenTransaction) -> None:
        """Set the positions: after the committed input or, if it was aborted, to the committed offsets."""
        now_ms, positions = self._event_queue.now_ms, self._positions
        present = positions.at(now_ms)
        if self._commits:
            for partition, (offset, end) in ended.work.items():
                if present.get(partition) == offset:
                    positions.set(partition, end, now_ms, reading=False)
        else:
            positions.keep_only(frozenset(present) - ended.work.keys())
            self._host.run_later(self._fetch_committed)
        self._open = None
        when_ended, self._when_ended = self._when_ended, []
        for done in when_ended:
            done()


def transactional_produce(
    settings: ProducerConfig,
    batch: TransactionBatch,
    records: Sequence[tuple[bytes | None, bytes | None]],
    now_ms: int,
) -> ProduceRequest:
    """The Produce request (v12) for ``batch`` with ``records``, pairs of key and value."""
    data = build_batch(
        [Record(offset, now_ms, key, value) for offset, (key, value) in enumerate(records)],
        attributes=TRANSACTIONAL,
        producer_id=batch.producer_id,
        producer_epoch=batch.producer_epoch,
        base_sequence=batch.base_sequence,
    )
    topic, number = batch.partition
    return ProduceRequest(
        transactional_id=settings.transactional_id,
        acks=-1,
        timeout_ms=settings.request_timeout_ms,
        topic_data=(TopicProduceData(name=topic, partition_data=(PartitionProduceData(index=number, records=data),)),),
    )

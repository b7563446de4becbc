"""A simulated application that consumes and also produces numbered records, each of which is tracked until it completes.

Its producer is groupcoord's idempotent producer without I/O: it looks up leaders, retries, and expires batches by the delivery
timeout. Half of the records have a key, which decides their partition; the others go to the sticky partition.
"""

from collections.abc import Callable
from itertools import count
from typing import Any, ClassVar

from groupcoord.client.member.metadata_and_commit_requests import metadata_request
from groupcoord.client.producer.producer_config import ProducerConfig
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
from groupcoord.core.events import Event
from groupcoord.partitioners import KEYED
from groupcoord.protocol.apis.metadata import MetadataResponse
from groupcoord.simulation.consumer_application import ApplicationHost, ConsumerApplication
from groupcoord.simulation.event_queue import Callback, EventQueue
from groupcoord.simulation.plan import OUTPUT_TOPIC, ProducingPlan, SimulationPlan
from groupcoord.simulation.prng import Prng

_TOPICS = frozenset({OUTPUT_TOPIC})
_METADATA_RETRY_MS = 100
_REQUEST_TIMEOUT_MS = 10_000
_BURST = 5
"""The most records sent at a time."""


class ConsumerAndProducerApplication(ConsumerApplication):
    """``name`` is the name of the process, different after each start; ``tell`` is called with the producer's events."""

    commits_are_routine: ClassVar[bool] = False

    def __init__(
        self,
        host: ApplicationHost,
        event_queue: EventQueue,
        random: Prng,
        plan: SimulationPlan,
        producing: ProducingPlan,
        *,
        name: str,
        tell: Callable[[Event], None],
    ) -> None:
        super().__init__(host, event_queue)
        self.name = name
        self._config = ProducerConfig(
            batch_size=producing.batch_size,
            linger_ms=producing.linger_ms,
            max_in_flight_requests_per_connection=producing.max_in_flight,
            request_timeout_ms=_REQUEST_TIMEOUT_MS,
            delivery_timeout_ms=producing.delivery_timeout_ms,
        )
        self.sender = Sender(self._config, client_id=name, chance=random.fraction, emit=tell)
        self._random, self._plan, self._producing = random, plan, producing
        self._numbers = count()
        self._started = self._finding = self._poll_is_due = False
        self._poll_at_ms: int | None = None

    def start(self) -> None:
        """Begin to produce when called first; later calls, one per commit, do not begin again."""
        super().start()
        if not self._started:
            self._started = True
            self._find_leaders()
            self._produce()

    def close(self, leave: Callback) -> None:
        """Call ``leave`` when all records are acknowledged or given up."""
        self._started = False
        self.sender.accumulator.closed = True
        self._poll()

        def look() -> None:
            if self.sender.accumulator.incomplete:
                self._host.run_later(look, _METADATA_RETRY_MS)
            else:
                ConsumerApplication.close(self, leave)

        look()

    # Records.

    def _produce(self) -> None:
        """Send some records now and schedule the next ones, until the end of the faults."""
        now_ms = self._event_queue.now_ms
        if not self._started or now_ms >= self._plan.heal_ms:
            return
        partitions = self._plan.topics[OUTPUT_TOPIC]
        for _ in range(1 + self._random.next_int(_BURST) if self._has_leaders() else 0):
            number = next(self._numbers)
            record = f"{self.name}:{number}".encode()
            partition = KEYED["java"](b"%d" % (number % 6), partitions) if number % 2 else None
            appended = self.sender.append(OUTPUT_TOPIC, partition, now_ms, None, record, (), record, now_ms)
            assert appended is not None  # it never fills the buffer memory
            self._host.record_sent(record, appended.batch.partition)
        self._poll()
        self._host.run_later(self._produce, self._producing.every_ms)

    def _has_leaders(self) -> bool:
        return bool(self.sender.accumulator.topic(OUTPUT_TOPIC).leaders)

    def _poll(self) -> None:
        """Execute the actions of the sender, and schedule the next poll."""
        self._poll_is_due = False
        now_ms = self._event_queue.now_ms
        for action in self.sender.poll(now_ms):
            self._execute(action)
        due_ms = self.sender.next_deadline()
        if self.sender.failure is not None:
            self._host.application_failed(self.sender.failure)
        elif due_ms is not None and (
            self._poll_at_ms is None or due_ms < self._poll_at_ms or self._poll_at_ms <= now_ms
        ):
            self._poll_at_ms = due_ms
            self._host.run_later(self._poll, max(due_ms - now_ms, 1))

    def _poll_soon(self) -> None:
        if not self._poll_is_due:
            self._poll_is_due = True
            self._host.run_later(self._poll)

    def _execute(self, action: Action) -> None:
        host, now_ms = self._host, self._event_queue.now_ms
        match action:
            case SendBatches():
                self._send(action)
            case Connect(node_id):
                self.sender.connected(node_id, now_ms)
                self._poll_soon()
            case GetProducerId(request):
                host.send(
                    None,
                    request,
                    _REQUEST_TIMEOUT_MS,
                    self._telling(self.sender.producer_id_given),
                    self._telling(self.sender.producer_id_failed),
                )
            case BatchDone(batch, offset, _, error):
                for place, record in enumerate(batch.promises):
                    host.record_ended(record, None if error is not None else (batch.partition, offset + place))
            case _:  # RefreshMetadata
                self._find_leaders()

    def _telling(self, what_came: Callable[[Any, int], None]) -> Callable[[Any], None]:
        def tell(result: Any) -> None:
            what_came(result, self._event_queue.now_ms)
            self._poll_soon()

        return tell

    def _send(self, sent: SendBatches) -> None:
        request = produce_request(self._config, sent.batches, lambda _: None)
        self._host.send(
            sent.node_id,
            request,
            _REQUEST_TIMEOUT_MS,
            self._telling(
                lambda response, now_ms: self.sender.produced(sent, answers_by_partition(request, response), now_ms)
            ),
            self._telling(lambda error, now_ms: self.sender.request_failed(sent, error, now_ms)),
        )

    def _find_leaders(self) -> None:
        """Fetch the leaders from a random broker, with retries and at most one request at a time."""
        if self._finding:
            return
        self._finding = True

        def found(response: MetadataResponse, _: int) -> None:
            self._host.run_later(done, _METADATA_RETRY_MS)
            (topic,) = response.topics
            leaders = {
                each.partition_index: PartitionLeader(each.leader_id, each.leader_epoch)
                for each in sorted(topic.partitions, key=lambda each: each.partition_index)
            }
            self.sender.accumulator.set_leaders(OUTPUT_TOPIC, leaders)

        def done() -> None:
            self._finding = False

        def failed(*_: Any) -> None:
            done()
            self._host.run_later(self._find_leaders, _METADATA_RETRY_MS)

        request = metadata_request(_TOPICS)
        self._host.send(None, request, _REQUEST_TIMEOUT_MS, self._telling(found), self._telling(failed))

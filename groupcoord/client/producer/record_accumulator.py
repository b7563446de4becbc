"""The RecordAccumulator: a queue of batches per partition, their memory, and the sticky partitioner (KIP-794).

It has no I/O and no clock: the sender asks which brokers have batches ready at a given time, and drains them. Records without a
key stay with one partition until a batch is full there, and prefer partitions with short queues.
"""

import enum
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from itertools import count
from typing import Any, NamedTuple

from groupcoord.assignors import TopicPartition
from groupcoord.client.exponential_backoff import ExponentialBackoff
from groupcoord.client.producer.producer_batch import HeaderPairs, ProducerBatch, record_size_upper_bound
from groupcoord.client.producer.producer_config import ProducerConfig
from groupcoord.partitioners import StickyPartition
from groupcoord.protocol.batches.compression import Compression

SMALL_OVERHEAD_BYTES = 100
"""More than the overhead of a batch with one record without headers."""
_RATIO_FALLS_BY, _RATIO_RISES_BY = 0.005, 0.05
"""How fast the estimated compression ratio of a topic follows the actual one (``CompressionRatioEstimator``)."""


class SendReason(enum.Enum):
    """Why a batch is sent now. The value is the text in events."""

    FULL = "it is full"
    LINGERED = "it has waited for linger_ms"
    FLUSHED = "somebody waits for all that was sent"
    CLOSED = "the producer is being closed"
    MEMORY = "others wait for the memory it takes"
    BACKED_OFF = "the back-off is over"
    NEW_LEADER = "its partition has another leader"
    ALONG = "another batch for the same broker is sent"


class PartitionLeader(NamedTuple):
    """The broker that leads a partition, and its epoch; ``node_id`` is -1 if there is none."""

    node_id: int
    epoch: int = -1


NO_LEADER = PartitionLeader(-1)


class TopicQueues:
    """The queues of one topic, and its sticky partition for records without a key."""

    def __init__(self, batch_size: int, random: Callable[[], int]) -> None:
        self.queues: dict[int, deque[ProducerBatch]] = {}
        self.leaders: Mapping[int, PartitionLeader] = {}
        self.available: list[int] = []
        self.sticky = StickyPartition(max(1, batch_size), random)
        self.compression_ratio = 1.0

    @property
    def partition_count(self) -> int:
        """The number of partitions."""
        return len(self.leaders)

    def queue(self, partition: int) -> deque[ProducerBatch]:
        """The queue of a partition."""
        found = self.queues.get(partition)
        if found is None:
            found = self.queues[partition] = deque()
        return found

    def saw_ratio(self, ratio: float) -> None:
        """Update the estimate by the ``ratio`` of a compressed batch (``CompressionRatioEstimator.updateEstimation``)."""
        expected = self.compression_ratio
        if ratio > expected:
            self.compression_ratio = max(expected + _RATIO_RISES_BY, ratio)
        else:
            self.compression_ratio = max(expected - _RATIO_FALLS_BY, ratio)


class Appended(NamedTuple):
    """The batch of an appended record; ``opened``: it is a new batch; ``ready``: its queue has a full batch."""

    batch: ProducerBatch
    opened: bool
    ready: bool


class ReadyNodes(NamedTuple):
    """The brokers with batches to send, when to check again (ms), and the topics with a partition without leader."""

    nodes: list[int]
    next_check_ms: int | None
    leaderless: set[str]


class RecordAccumulator:
    """The unsent and unacknowledged batches of one producer. ``chance`` returns a number from 0 up to 1."""

    def __init__(self, config: ProducerConfig, chance: Callable[[], float]) -> None:
        self.topics: dict[str, TopicQueues] = {}
        self.incomplete: dict[ProducerBatch, None] = {}
        """The batches that are neither acknowledged nor given up, in the order in which they were opened."""
        self.free_bytes = config.buffer_memory
        self.waiting_for_memory = 0
        """How many calls of ``send`` wait until there is memory: then every batch is sent at once."""
        self.flushes: list[set[ProducerBatch]] = []
        """What each call of ``flush`` still waits for: as long as there is any, nothing lingers."""
        self.closed = False
        self.muted: set[TopicPartition] = set()
        """Partitions with a batch in flight, if only one may be (``max.in.flight.requests.per.connection=1``)."""
        self._config = config
        self._compression = config.compression
        self._backoff = ExponentialBackoff(config.retry_backoff_ms, config.retry_backoff_max_ms, chance)
        self._random = lambda: int(chance() * (1 << 31))
        self._numbers = count(1)
        self._drained_from: dict[int, TopicPartition] = {}
        self._slow_nodes: Callable[[int], bool] = lambda _: False

    def topic(self, name: str) -> TopicQueues:
        """The queues of a topic."""
        found = self.topics.get(name)
        if found is None:
            found = self.topics[name] = TopicQueues(self._config.batch_size, self._random)
        return found

    def set_leaders(self, topic: str, leaders: Mapping[int, PartitionLeader]) -> None:
        """Set the leaders of the partitions of a topic, in ascending order."""
        queues = self.topic(topic)
        queues.leaders = leaders
        queues.available = [number for number, leader in leaders.items() if leader.node_id >= 0]

    def leader(self, partition: TopicPartition) -> PartitionLeader:
        """The leader of a partition; NO_LEADER if there is none."""
        queues = self.topics.get(partition[0])
        return NO_LEADER if queues is None else queues.leaders.get(partition[1], NO_LEADER)

    # Records.

    def append(
        self,
        topic: str,
        partition: int | None,
        timestamp_ms: int,
        key: bytes | None,
        value: bytes | None,
        headers: HeaderPairs,
        promise: Any,
        now_ms: int,
    ) -> Appended | None:
        """Add a record to the batch of its partition, or to a new batch; None if there is no memory for one.

        The partitions of ``topic`` must be known. Without ``partition`` it is added to the sticky partition.
        """
        queues = self.topics[topic]
        sticky = None
        if partition is None:
            sticky, available, partitions = queues.sticky, queues.available, len(queues.leaders)
            partition = sticky.current(available, partitions)
            queue = queues.queue(partition)
            if not queue or queue[-1].is_full:
                sticky.appended(0, available, partitions)
                partition = sticky.current(available, partitions)
                queue = queues.queue(partition)
        else:
            queue = queues.queue(partition)
        last = queue[-1] if queue else None
        before = 0 if last is None else last.size
        opened = False
        if last is None or not last.try_append(timestamp_ms, key, value, headers, promise):
            if last is not None:
                self._close(last)
            size = self.memory_needed(key, value, headers)
            if size > self.free_bytes:
                return None
            before, opened = 0, True
            last = self._open((topic, partition), size, queues, now_ms)
            last.try_append(timestamp_ms, key, value, headers, promise)
            queue.append(last)
        if sticky is not None:
            sticky.appended(last.size - before, available, partitions, batch_full=last.is_full)
        return Appended(last, opened, last.is_full or len(queue) > 1)

    def memory_needed(self, key: bytes | None, value: bytes | None, headers: HeaderPairs) -> int:
        """The share of ``buffer.memory`` of a new batch that begins with this record."""
        size = self._config.batch_size
        at_most = len(value or b"") + len(key or b"")
        if headers or at_most + SMALL_OVERHEAD_BYTES > size:
            return max(size, record_size_upper_bound(key, value, headers))
        return size

    def _open(self, partition: TopicPartition, size: int, queues: TopicQueues, now_ms: int) -> ProducerBatch:
        self.free_bytes -= size
        batch = ProducerBatch(partition, next(self._numbers), now_ms, size, self._compression, queues.compression_ratio)
        self.incomplete[batch] = None
        return batch

    def _close(self, batch: ProducerBatch) -> None:
        if not batch.closed:
            ratio = batch.close()
            if self._compression is not Compression.NONE:
                self.topics[batch.partition[0]].saw_ratio(ratio)

    def complete(self, batch: ProducerBatch) -> None:
        """``batch`` is acknowledged or has failed: free its memory."""
        batch.done = True
        self.free_bytes += batch.reserved_bytes
        del self.incomplete[batch]
        for flush in self.flushes:
            flush.discard(batch)
        self.flushes = [flush for flush in self.flushes if flush]

    def flush(self) -> set[ProducerBatch]:
        """Let all batches be sent without lingering; returns a live set of those that are incomplete."""
        flush = set(self.incomplete)
        if flush:
            self.flushes.append(flush)
        return flush

    # What can be sent.

    def ready(self, now_ms: int) -> ReadyNodes:
        """The brokers to which a batch can be sent; also updates the queue lengths that the sticky partitioner uses."""
        nodes: dict[int, None] = {}
        next_ms: int | None = None
        leaderless: set[str] = set()
        for name, queues in self.topics.items():
            self._balance(queues)
            for number, queue in queues.queues.items():
                if not queue:
                    continue
                leader = queues.leaders.get(number, NO_LEADER)
                if leader.node_id < 0:
                    leaderless.add(name)
                elif leader.node_id not in nodes and (name, number) not in self.muted:
                    queue[0].saw_leader_epoch(leader.epoch)
                    if self.reason_to_send(queue, now_ms) is not None:
                        nodes[leader.node_id] = None
                    else:
                        first = queue[0]
                        wait_ms = first.backoff_ms if first.attempts else self._config.linger_ms
                        due_ms = now_ms + max(wait_ms - first.waited_ms(now_ms), 0)
                        next_ms = due_ms if next_ms is None else min(next_ms, due_ms)
        return ReadyNodes(list(nodes), next_ms, leaderless)

    def reason_to_send(self, queue: deque[ProducerBatch], now_ms: int) -> SendReason | None:
        """Why the first batch of ``queue`` can be sent now; None if it waits (``RecordAccumulator.batchReady``)."""
        first = queue[0]
        if first.attempts:
            if first.has_new_leader:
                return SendReason.NEW_LEADER
            return SendReason.BACKED_OFF if first.waited_ms(now_ms) >= first.backoff_ms else None
        if len(queue) > 1 or first.is_full:
            return SendReason.FULL
        if first.waited_ms(now_ms) >= self._config.linger_ms:
            return SendReason.LINGERED
        if self.waiting_for_memory:
            return SendReason.MEMORY
        if self.closed:
            return SendReason.CLOSED
        return SendReason.FLUSHED if self.flushes else None

    def drain(
        self, node_id: int, now_ms: int, may_send: Callable[[ProducerBatch], bool]
    ) -> Iterator[tuple[ProducerBatch, SendReason]]:
        """The batches of one request to a broker, at most one per partition, and why each is sent (``drainBatchesForOneNode``).

        It takes batches of all its partitions, lingering or not, up to ``max.request.size``. The next request begins with the
        next partition, so that none starves.
        """
        partitions = [
            (name, number)
            for name, queues in self.topics.items()
            for number, leader in queues.leaders.items()
            if leader.node_id == node_id
        ]
        last = self._drained_from.get(node_id)
        start = partitions.index(last) if last in partitions else 0
        size = 0
        for partition in (*partitions[start:], *partitions[:start]):
            self._drained_from[node_id] = partition
            queue = self.topics[partition[0]].queues.get(partition[1])
            if not queue or partition in self.muted:
                continue
            first = queue[0]
            first.saw_leader_epoch(self.leader(partition).epoch)
            reason = self.reason_to_send(queue, now_ms)
            if (reason is None and first.attempts) or not may_send(first):
                continue
            if size and size + first.size > self._config.max_request_size:
                break
            queue.popleft()
            self._close(first)
            size += first.size
            yield first, reason or SendReason.ALONG

    def _balance(self, queues: TopicQueues) -> None:
        """Weight partitions by queue length, once every partition has had a queue (KIP-794)."""
        if not self._config.partitioner_adaptive_partitioning_enable or len(queues.queues) < queues.partition_count:
            queues.sticky.loads(None)
            return
        lengths, partitions, left_out = [], [], 0
        for number in queues.available:
            queue = queues.queue(number)
            if queue and self._slow_nodes(queues.leaders[number].node_id):
                left_out += 1
            else:
                lengths.append(len(queue))
                partitions.append(number)
        queues.sticky.loads(lengths, partitions, left_out)

    def avoid(self, slow_nodes: Callable[[int], bool]) -> None:
        """Exclude partitions led by brokers for which ``slow_nodes`` is true from the sticky partitioner."""
        self._slow_nodes = slow_nodes

    # Retries, splits and expiry.

    def reenqueue(self, batch: ProducerBatch, now_ms: int) -> None:
        """Put ``batch`` back into its queue, in sequence order (``insertInSequenceOrder``)."""
        batch.reenqueued(now_ms, self._backoff.delay_ms(batch.attempts))
        self._insert(batch)

    def split(self, batch: ProducerBatch) -> list[ProducerBatch]:
        """Put the records of ``batch`` back in smaller batches (``splitAndReenqueue``)."""
        queues = self.topics[batch.partition[0]]
        queues.compression_ratio = max(1.0, batch.close())
        limit = batch.size // 2 if batch.is_part else self._config.batch_size
        parts = batch.parts(limit, self._numbers)
        for part in reversed(parts):
            self._insert(part)
        for flush in self.flushes:
            if batch in flush:
                flush.update(parts)
        before = list(self.incomplete)
        place = before.index(batch)
        self.incomplete = dict.fromkeys([*before[: place + 1], *parts, *before[place + 1 :]])
        self.complete(batch)
        return parts

    def _insert(self, batch: ProducerBatch) -> None:
        topic, number = batch.partition
        queue = self.topics[topic].queue(number)
        place = 0
        if batch.has_sequence:
            while place < len(queue) and queue[place].has_sequence and _is_before(queue[place], batch):
                place += 1
        queue.insert(place, batch)

    def take_expired(self, now_ms: int) -> list[ProducerBatch]:
        """Remove and return the batches that are in their queues for longer than ``delivery.timeout.ms``."""
        oldest_ms = now_ms - self._config.delivery_ms
        expired = []
        for queues in self.topics.values():
            for queue in queues.queues.values():
                while queue and queue[0].created_ms <= oldest_ms:
                    expired.append(queue.popleft())
        return expired

    def take_unsent(self) -> list[ProducerBatch]:
        """Remove and return all batches that were never sent (``abortUndrainedBatches``)."""
        taken = []
        for queues in self.topics.values():
            for queue in queues.queues.values():
                while queue and not queue[-1].attempts and not queue[-1].has_sequence:
                    taken.append(queue.pop())
        return taken[::-1]


def _is_before(one: ProducerBatch, other: ProducerBatch) -> bool:
    return (one.producer_epoch, one.base_sequence) < (other.producer_epoch, other.base_sequence)

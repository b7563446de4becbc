"""The events of a producer (batch opened, sent, acknowledged …), which it passes to its ``listeners``."""

from groupcoord.assignors import TopicPartition
from groupcoord.core.events import Event, counted, event_class, partition_names


@event_class
class ProducerEvent(Event):
    """Something happened to the producer with the client id ``producer``."""

    producer: str


@event_class
class BatchEvent(ProducerEvent):
    """Something happened to a batch; ``batch`` is its number: the producer numbers its batches from 1."""

    partition: TopicPartition
    batch: int

    @property
    def name(self) -> str:
        """The batch, for a text."""
        return f"batch {self.batch} of {partition_names([self.partition])}"


@event_class
class PartitionChosen(ProducerEvent):
    """Records without a key go to another partition from now on, until a batch is full there (KIP-794)."""

    partition: TopicPartition

    def text(self) -> str:
        return f"records of {self.partition[0]} without a key go to {partition_names([self.partition])} from now on"


@event_class
class BatchOpened(BatchEvent):
    """A new batch was created, because no open batch had room for a record."""

    limit_bytes: int

    def text(self) -> str:
        return f"{self.name} is opened, for {self.limit_bytes:,} bytes"


@event_class
class BatchSent(BatchEvent):
    """A batch was sent to the leader of its partition; ``why`` says why now; ``base_sequence`` -1: it has no number."""

    why: str
    broker: int
    records: int
    size_bytes: int
    base_sequence: int
    attempts: int

    def text(self) -> str:
        sequence = "" if self.base_sequence < 0 else f", sequence {self.base_sequence}"
        again = f", for the {self.attempts + 1}. time" if self.attempts else ""
        return (
            f"{self.name} is sent to broker {self.broker}{again} because {self.why}: "
            f"{counted(self.records, 'record')}, {self.size_bytes:,} bytes{sequence}"
        )


@event_class
class BatchAcknowledged(BatchEvent):
    """A batch was acknowledged; ``base_offset`` is the offset of its first record, -1 if it is not known."""

    records: int
    base_offset: int

    def text(self) -> str:
        where = "" if self.base_offset < 0 else f" from offset {self.base_offset} on"
        return f"{self.name} is acknowledged: {counted(self.records, 'record')}{where}"


@event_class
class BatchRetried(BatchEvent):
    """A batch failed and will be sent again after ``after_ms``, or as soon as its partition has another leader."""

    error: str
    after_ms: int

    def text(self) -> str:
        return f"{self.name} is put back and sent again in {self.after_ms} ms: {self.error}"


@event_class
class BatchSplit(BatchEvent):
    """The broker refused a batch as too large: its records are sent in smaller batches."""

    into: tuple[int, ...]

    def text(self) -> str:
        return f"{self.name} is too large for the broker and goes on as batches {', '.join(map(str, self.into))}"


@event_class
class BatchExpired(BatchEvent):
    """A batch was not acknowledged within ``delivery.timeout.ms``; if ``was_sent``, it may be stored nevertheless."""

    records: int
    after_ms: int
    was_sent: bool

    def text(self) -> str:
        stored = "it is not known whether they are stored" if self.was_sent else "they are not stored"
        return f"{self.name} is given up {self.after_ms} ms after it was opened: {counted(self.records, 'record')}, {stored}"


@event_class
class BatchFailed(BatchEvent):
    """A batch failed for good: its records are not stored."""

    records: int
    error: str

    def text(self) -> str:
        return f"{self.name} has failed, {counted(self.records, 'record')}: {self.error}"


@event_class
class ProducerIdGiven(ProducerEvent):
    """The producer has got its producer id and epoch."""

    producer_id: int
    epoch: int

    def text(self) -> str:
        return f"is producer {self.producer_id} with epoch {self.epoch}"


@event_class
class EpochBumped(ProducerEvent):
    """The producer has bumped its epoch; the sequence numbers of ``partitions`` begin at 0 again (KIP-360)."""

    epoch: int
    partitions: tuple[TopicPartition, ...]

    def text(self) -> str:
        begin = f"the sequence numbers of {partition_names(self.partitions)} begin at 0"
        return f"goes on with epoch {self.epoch}, in which {begin}" if self.epoch >= 0 else f"needs another id: {begin}"


@event_class
class SendBlocked(ProducerEvent):
    """A call of ``send`` waits until there is memory for its record (``buffer.memory``)."""

    free_bytes: int

    def text(self) -> str:
        return f"send waits for memory: {self.free_bytes:,} bytes of buffer_memory are free"


@event_class
class TransactionStep(ProducerEvent):
    """The transaction of the producer has changed to ``state`` (``TransactionManager.State``)."""

    state: str
    error: str = ""

    def text(self) -> str:
        return f"its transaction is in state {self.state}{f': {self.error}' if self.error else ''}"

"""Transactional producers for tests of logs and brokers."""

from collections.abc import Mapping, Sequence

from groupcoord.broker.partition_log import PartitionLog
from groupcoord.core.effect_collector import HandlerContext
from groupcoord.core.effects import Call
from groupcoord.core.transaction_verification_types import (
    TopicPartition,
    TransactionalWrite,
    TransactionMarker,
    Verified,
)
from groupcoord.protocol.batches.record_batch import TRANSACTIONAL
from groupcoord.protocol.errors import ErrorCode
from tests.broker.data_plane import NOW_MS, THEN_MS, batch


def part(
    sequence: int = 0,
    count: int = 1,
    *,
    producer: int = 7,
    epoch: int = 0,
    transactional: bool = True,
    value: bytes = b"x",
    at_ms: int = THEN_MS,
) -> bytes:
    """A batch of a producer with transactions."""
    return batch(
        *[value] * count,
        attributes=TRANSACTIONAL if transactional else 0,
        producer_id=producer,
        producer_epoch=epoch,
        base_sequence=sequence,
        at_ms=at_ms,
    )


def end(
    *, committed: bool = False, producer: int = 7, epoch: int = 0, coordinator: int = 0, version: int = 0
) -> TransactionMarker:
    """The end of a transaction, an abort unless it is ``committed``."""
    return TransactionMarker(producer, epoch, coordinator, committed, version)


def write(log: PartitionLog, *steps: bytes | TransactionMarker) -> None:
    """Append batches and markers."""
    for step in steps:
        if isinstance(step, TransactionMarker):
            log.append_marker(step, NOW_MS)
        else:
            log.append(step, NOW_MS)


class Coordinator:
    """Stands for the coordinator of a broker: it says of every partition what ``errors`` has, or that it may be written to.

    With ``later`` it says so when the test calls ``answer``. ``asked`` is what it was asked.
    """

    def __init__(self, errors: Mapping[TopicPartition, ErrorCode] | None = None, *, later: bool = False) -> None:
        self.errors = dict(errors or {})
        self.asked: list[tuple[TransactionalWrite, tuple[TopicPartition, ...]]] = []
        self._later = later
        self._waiting: list[tuple[Verified, tuple[TopicPartition, ...]]] = []

    def __call__(
        self,
        ctx: HandlerContext,
        _call: Call,
        wanted: TransactionalWrite,
        partitions: Sequence[TopicPartition],
        verified: Verified,
    ) -> None:
        self.asked.append((wanted, tuple(partitions)))
        if self._later:
            self._waiting.append((verified, tuple(partitions)))
        else:
            self._tell(ctx, verified, tuple(partitions))

    def answer(self, ctx: HandlerContext) -> None:
        """Say what was not said yet."""
        waiting, self._waiting = self._waiting, []
        for verified, partitions in waiting:
            self._tell(ctx, verified, partitions)

    def _tell(self, ctx: HandlerContext, verified: Verified, partitions: tuple[TopicPartition, ...]) -> None:
        verified(ctx, {each: self.errors[each] for each in partitions if each in self.errors})

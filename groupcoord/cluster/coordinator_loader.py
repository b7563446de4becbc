"""Loads coordinators from their logs, a piece at a time, while requests are served.

Source: ``CoordinatorLoaderImpl``, which uses a thread.
"""

from typing import Any

from groupcoord.broker.partition_log import PartitionLog
from groupcoord.coordinator.runtime.shard_loader import ShardLoader
from groupcoord.core.effect_collector import HandlerContext
from groupcoord.protocol.batches.key_value_reader import read_key_values
from groupcoord.protocol.batches.record_batch import COMMIT_MARKER, BatchError, marker_type
from groupcoord.protocol.batches.records import InvalidRecordsError
from groupcoord.protocol.coordinator_records.commit_fast_path import batch_size

PIECE_BYTES = 1_048_576
"""How many bytes are read at once; a piece takes some 20 ms, in which no request is handled."""


class CoordinatorLoader:
    """The partitions that are being loaded, one after the other."""

    def __init__(self) -> None:
        self._waiting: list[tuple[ShardLoader[Any], PartitionLog, int]] = []

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def begin(self, loading: ShardLoader[Any], log: PartitionLog) -> None:
        """Load ``log`` into ``loading``, after those that were begun before."""
        self._waiting.append((loading, log, log.log_start_offset))

    def read_next_piece(self, ctx: HandlerContext) -> None:
        """Read the next piece; a partition that is read to its end is served from then on."""
        loading, log, offset = self._waiting.pop(0)
        try:
            after = _read_piece(loading, log, offset)
        except (BatchError, InvalidRecordsError) as problem:
            loading.fail(f"the batch at offset {offset} or one after it is broken: {problem}")
            after = log.log_end_offset
        if after < log.log_end_offset and loading.failure is None:
            self._waiting.insert(0, (loading, log, after))
        else:
            loading.finish(ctx, log.log_end_offset)


def _read_piece(loading: ShardLoader[Any], log: PartitionLog, offset: int) -> int:
    """Read a piece from ``offset``; returns the offset of the next one."""
    data = log.read(offset, PIECE_BYTES, at_least_one=True, to_end=True).data()
    after = log.log_end_offset
    position = 0
    while True:
        run = loading.apply_run(data, position)
        if run.last_offset >= 0:
            after = run.last_offset + 1
        position = run.position
        if loading.failure is not None or not (size := batch_size(data, position)):
            return after
        found = read_key_values(data, position)
        if found.control:
            for _, key, _ in found.records:
                loading.end_transaction(found.producer_id, committed=marker_type(key) == COMMIT_MARKER)
        else:
            loading.apply(found.records, found.producer_id)
        after = found.last_offset + 1
        position += size

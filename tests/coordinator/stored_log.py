"""The log that a shard has written, and loading it into a new shard."""

from collections.abc import Iterable
from typing import Any

from groupcoord.coordinator.runtime.shard_loader import ShardLoader
from groupcoord.core.effects import Append
from groupcoord.protocol.batches.key_value_reader import OffsetKeyValue
from groupcoord.protocol.batches.record_batch import build_batch
from groupcoord.protocol.batches.records import Record

Log = list[tuple[Append, list[OffsetKeyValue]]]
"""Each append with those of its records that are still there."""


def log_of(stored: Iterable[Append], partition: int, *, compacted: bool) -> Log:
    """The appends of a partition; ``compacted``: of each key the last record alone, unless one was written in a transaction."""
    log: Log = []
    last: dict[bytes, int] = {}
    position = 0
    for append in stored:
        if append.partition == partition:
            records = [(position + index, each.encoded) for index, each in enumerate(append.records)]
            log.append((append, [(offset, each.key, each.value) for offset, each in records]))
            last.update({each.key: offset for offset, each in records})
            position += _size(append)
    kept = {each.encoded.key for append, _ in log if append.producer_id >= 0 for each in append.records}
    return [
        (append, [each for each in records if not compacted or each[1] in kept or last[each[1] or b""] == each[0]])
        for append, records in log
    ]


def read_into(loading: ShardLoader[Any], log: Log) -> int:
    """Apply ``log``; returns the offset behind it."""
    for append, found in log:
        if append.marker is not None:
            loading.end_transaction(append.marker.producer_id, committed=append.marker.committed)
        elif append.producer_id >= 0:
            loading.apply(found, append.producer_id)
        else:
            before = loading.records
            batches = [build_batch([Record(offset, 0, key, value)]) for offset, key, value in found]
            assert loading.apply_run(b"".join(batches), 0).records == loading.records - before == len(found)
    return sum(_size(append) for append, _ in log)


def _size(append: Append) -> int:
    """How many offsets it takes; a marker takes one."""
    return len(append.records) or 1

"""Which producer ids folders know that somebody put into a data directory: none of them may be handed out once more.

A log that knows an id takes the first batch of the next producer with that id for a repetition, or for one out of order.
"""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from groupcoord.protocol.batches.record_batch import NO_PRODUCER_ID
from groupcoord.storage.batch_files import BatchFault, checked_batches
from groupcoord.storage.names import LOG, PRODUCER_SNAPSHOT, segment_file
from groupcoord.storage.producer_snapshot import SnapshotError, producer_ids

BLOCK = 1000
"""Kafka hands out ids in blocks of so many (``ProducerIdsBlock``); of a block from which one was used, all may be in use."""
_LARGEST = (1 << 63) - 1 - 2 * BLOCK
"""Above it there is no further block to hand out."""


def next_block(producer_id: int) -> int:
    """The first id of the block behind that of ``producer_id``; 0 for NO_PRODUCER_ID."""
    return (producer_id // BLOCK + 1) * BLOCK


def largest_producer_id(folder: Path) -> int:
    """The largest id in the logs and snapshots of ``folder``, or NO_PRODUCER_ID. Raises OSError.

    It reads all of it, as far as it is in order; what is not is said when the log is put in order.
    """
    return max((found for found in _found(folder) if found <= _LARGEST), default=NO_PRODUCER_ID)


def _found(folder: Path) -> Iterator[int]:
    for path in folder.iterdir():
        file = segment_file(path.name)
        if file is None or not path.is_file():
            continue
        if file.kind == PRODUCER_SNAPSHOT:
            with contextlib.suppress(SnapshotError):
                yield from producer_ids(path.read_bytes())
        elif file.kind == LOG:
            with contextlib.suppress(BatchFault):
                for batch in checked_batches(path):
                    yield batch.header.producer_id

"""How the transactions of record batches ended: the next marker of the same producer decides.

All batches are looked at together, sorted by producer, so that a million transactions take seconds. Source: KIP-98,
``ProducerStateManager``.
"""

from collections.abc import Collection
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from groupcoord.pipeline.sources.columnar_batch_reader import BatchHeaders, is_control, is_transactional, read
from groupcoord.protocol.batches.record_batch import ABORT_MARKER, COMMIT_MARKER

NO_MARKER = -1


class TransactionEnds(NamedTuple):
    """The ends of the transactions of some batches, an array with an element for each batch.

    ``marker`` is ABORT_MARKER or COMMIT_MARKER for batches that end a transaction, else NO_MARKER; ``end`` is which batch ends
    the transaction of a batch of data, and the number of batches if none of them does, or for a batch of no transaction.
    """

    marker: Any
    end: Any

    def ended_by(self, marker: int) -> Any:
        """Which batches are data of transactions that such a marker ends."""
        decided = self.end < len(self.end)
        return decided & (self.marker[np.where(decided, self.end, 0)] == marker)


def transaction_ends(data: Any, found: BatchHeaders) -> TransactionEnds:
    """The ends of the transactions of ``found``, whose batches are in ``data``, in the order of the log."""
    size = len(found.start)
    marker = _markers(data, found)
    end = np.full(size, size)
    involved = np.nonzero((marker != NO_MARKER) | is_transactional(found))[0]
    order = involved[np.argsort(found.producer_id[involved], kind="stable")]
    places = np.arange(len(order))
    following = np.where(marker[order] != NO_MARKER, places, len(order))
    following = np.minimum.accumulate(following[::-1])[::-1]
    decided = following < len(order)
    next_marker = order[np.where(decided, following, 0)]
    decided &= (marker[order] == NO_MARKER) & (found.producer_id[next_marker] == found.producer_id[order])
    end[order[decided]] = next_marker[decided]
    return TransactionEnds(marker, end)


def _markers(data: Any, found: BatchHeaders) -> Any:
    """What each batch of ``found`` ends: ABORT_MARKER, COMMIT_MARKER, or NO_MARKER if it ends nothing or cannot be read."""
    kinds = np.full(len(found.start), NO_MARKER, np.int8)
    control = np.nonzero(is_control(found))[0]
    if not len(control):
        return kinds
    of_control = found.where(control)
    together, moved = batches_alone(data, of_control)
    for records in read(together, 0, moved):
        keys = pc.binary_slice(records.column("key"), 2, 4)
        for kind in (ABORT_MARKER, COMMIT_MARKER):
            says_it = pc.equal(
                keys, pa.scalar(kind.to_bytes(2, "big"))
            )  # null: there is no key, and filter takes it not
            offsets = records.column("log_offset").filter(says_it).to_numpy()
            kinds[control[np.searchsorted(of_control.base_offset, offsets, side="right") - 1]] = kind
    return kinds


def batches_alone(data: Any, found: BatchHeaders) -> tuple[bytes, BatchHeaders]:
    """The bytes of the batches ``found`` of ``data``, without what is between them, and their headers there."""
    with memoryview(data) as view:
        batches = [view[start:end] for start, end in zip(found.start, found.end, strict=True)]
        together = b"".join(batches)
        for batch in batches:
            batch.release()
    ends = np.cumsum(found.end - found.start)
    return together, found._replace(start=ends - (found.end - found.start), end=ends)


def is_open(found: BatchHeaders, ends: TransactionEnds) -> Any:
    """Which batches are data of transactions that none of ``found`` ends."""
    return is_transactional(found) & (ends.end == len(ends.end))


def first_ends(found: BatchHeaders, ends: TransactionEnds, producers: Collection[int]) -> dict[int, bool]:
    """Of those of ``producers`` that have a marker in ``found``: whether the first one commits."""
    if not producers:
        return {}
    markers = np.nonzero(ends.marker != NO_MARKER)[0]
    ending, first = np.unique(found.producer_id[markers], return_index=True)
    asked = np.isin(ending, list(producers))
    commits = ends.marker[markers[first[asked]]] == COMMIT_MARKER
    return dict(zip(ending[asked].tolist(), commits.tolist(), strict=True))


def is_aborted(found: BatchHeaders, aborted: list[tuple[int, int]]) -> Any:
    """Which batches are data of ``aborted`` transactions: (producer id, first offset), as a broker says it beside ``found``.

    Such a transaction goes on to the next marker of its producer.
    """
    size = len(found.start)
    if not aborted:
        return np.zeros(size, bool)
    producers, firsts = (np.array(column, np.int64) for column in zip(*aborted, strict=True))
    producer_id = np.concatenate([producers, found.producer_id])
    # Where one begins comes before the batch that begins there.
    order = np.lexsort((np.concatenate([firsts, found.base_offset]), producer_id))
    places = np.arange(len(order))
    is_beginning = order < len(aborted)
    batch = order - len(aborted)
    is_end = np.concatenate([np.zeros(len(aborted), bool), is_control(found)])[order]
    begun, ended = (np.maximum.accumulate(np.where(what, places, -1)) for what in (is_beginning, is_end))
    of_producer = producer_id[order[np.maximum(begun, 0)]] == producer_id[order]
    hidden = np.zeros(size, bool)
    inside = (begun > ended) & of_producer & ~is_beginning
    hidden[batch[inside]] = True
    return hidden & is_transactional(found)

"""Finds whether the transactions of record batches were committed or aborted: by the next marker of the same producer.

All batches are processed at once with numpy, sorted by producer, so that a million transactions take seconds. Source: KIP-98,
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
    """How the transactions of batches end: arrays with an element for each batch.

    ``marker`` is ABORT_MARKER or COMMIT_MARKER for a batch that ends a transaction, else NO_MARKER. ``end`` is, for
    transactional data, the index of the batch with the marker; it is the number of batches if none has it, and for all other
    batches.
    """

    marker: Any
    end: Any

    def ended_by(self, marker: int) -> Any:
        """A mask of the data batches whose transactions are ended by such a marker."""
        decided = self.end < len(self.end)
        return decided & (self.marker[np.where(decided, self.end, 0)] == marker)


def transaction_ends(data: Any, found: BatchHeaders) -> TransactionEnds:
    """How the transactions end of the batches ``found`` in ``data``, which are in the order of the log."""
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
    """The marker in each batch of ``found``: ABORT_MARKER, COMMIT_MARKER, or NO_MARKER if it has none or cannot be read."""
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
            )  # null where there is no key; filter drops these
            offsets = records.column("log_offset").filter(says_it).to_numpy()
            kinds[control[np.searchsorted(of_control.base_offset, offsets, side="right") - 1]] = kind
    return kinds


def batches_alone(data: Any, found: BatchHeaders) -> tuple[bytes, BatchHeaders]:
    """Copy the batches ``found`` out of ``data``, one after the other; returns the bytes, and the headers with the new
    positions."""
    with memoryview(data) as view:
        batches = [view[start:end] for start, end in zip(found.start, found.end, strict=True)]
        together = b"".join(batches)
        for batch in batches:
            batch.release()
    ends = np.cumsum(found.end - found.start)
    return together, found._replace(start=ends - (found.end - found.start), end=ends)


def is_open(found: BatchHeaders, ends: TransactionEnds) -> Any:
    """A mask of the data batches whose transactions have no marker in ``found``."""
    return is_transactional(found) & (ends.end == len(ends.end))


def first_ends(found: BatchHeaders, ends: TransactionEnds, producers: Collection[int]) -> dict[int, bool]:
    """For each of ``producers`` that has a marker in ``found``: does the first one commit?"""
    if not producers:
        return {}
    markers = np.nonzero(ends.marker != NO_MARKER)[0]
    ending, first = np.unique(found.producer_id[markers], return_index=True)
    asked = np.isin(ending, list(producers))
    commits = ends.marker[markers[first[asked]]] == COMMIT_MARKER
    return dict(zip(ending[asked].tolist(), commits.tolist(), strict=True))


def is_aborted(found: BatchHeaders, aborted: list[tuple[int, int]]) -> Any:
    """A mask of the data batches of ``aborted`` transactions: (producer id, first offset), as in the fetch response.

    An aborted transaction extends to the next marker of its producer.
    """
    size = len(found.start)
    if not aborted:
        return np.zeros(size, bool)
    producers, firsts = (np.array(column, np.int64) for column in zip(*aborted, strict=True))
    producer_id = np.concatenate([producers, found.producer_id])
    # The begin of a transaction is sorted before the batch at the same offset.
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

"""The segments of one log, oldest first: which of them has an offset, and which aborted transactions overlap a part of them.
Source: ``LogSegments`` and ``LocalLog``.
"""

from bisect import bisect_right
from collections.abc import Sequence
from operator import attrgetter

from groupcoord.broker.log_segment import FoundBatch
from groupcoord.broker.producer_state_manager import AbortedTransaction
from groupcoord.broker.storage_backend import Segment

_base_offset = attrgetter("base_offset")


class LogSegments(list[Segment]):
    """Only the last one is appended to; together they have no gaps but those that compaction leaves."""

    @property
    def size(self) -> int:
        """Bytes of all batches."""
        return sum(segment.size for segment in self)

    def index_of(self, offset: int) -> int:
        """The index of the segment in which ``offset`` is or would be."""
        return max(0, bisect_right(self, offset, key=_base_offset) - 1)

    def has(self, segments: Sequence[Segment]) -> bool:
        """Are ``segments`` still part of the log, and adjacent?"""
        first = self.index(segments[0]) if segments[0] in self else 0
        return self[first : first + len(segments)] == list(segments)

    def find(self, offset: int) -> tuple[Segment, FoundBatch] | None:
        """The first batch that contains ``offset`` or comes after it, and its segment; None: there is none."""
        for segment in self[self.index_of(offset) :]:
            if (found := segment.find(offset)) is not None:
                return segment, found
        return None

    def aborted_transactions(self, from_offset: int, upper_bound: int) -> list[AbortedTransaction]:
        """The aborted transactions that end at ``from_offset`` or later and begin before ``upper_bound``, in the order of their
        markers. Source: ``LocalLog.collectAbortedTransactions``."""
        found = []
        for segment in self[self.index_of(from_offset) :]:
            for aborted in segment.aborted:
                if aborted.last_offset >= from_offset and aborted.first_offset < upper_bound:
                    found.append(aborted)
                if aborted.last_stable_offset >= upper_bound:
                    return found
        return found

    def aborted_in(self, segment: Segment, offset: int, end_byte: int, log_end_offset: int) -> list[AbortedTransaction]:
        """The aborted transactions for a fetch response with the bytes of ``segment`` before ``end_byte``, from ``offset`` on.

        As in Kafka these can be too many, because the offset index gives only an upper bound of the last offset.
        """
        upper_bound = segment.upper_bound(end_byte)
        if upper_bound is None:
            following = self.index_of(segment.base_offset) + 1
            upper_bound = log_end_offset if following == len(self) else self[following].base_offset
        return self.aborted_transactions(offset, upper_bound)

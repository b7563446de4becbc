"""Finds the member that has least: a heap whose sizes may change."""

from collections.abc import Iterable
from heapq import heapify, heappush, heapreplace


class MemberHeap:
    """Members by (size, rank); a member is its rank, and ``sizes`` is shared by all pools of a group.

    A member that grew is found out when it comes to the top; one that shrank has to be told with ``shrunk``.
    """

    __slots__ = ("_heap", "_sizes")

    def __init__(self, members: Iterable[int], sizes: list[int]) -> None:
        self._sizes = sizes
        count = len(sizes)
        self._heap = [sizes[member] * count + member for member in members]
        heapify(self._heap)

    def __bool__(self) -> bool:
        return bool(self._heap)

    def least(self) -> int:
        """The member that has least; of several the one of lowest rank. The pool must not be empty."""
        heap, sizes = self._heap, self._sizes
        count = len(sizes)
        while True:
            # Of a member that shrank there are several entries; the one at the top is never more than its size.
            member = heap[0] % count
            now = sizes[member] * count + member
            if heap[0] == now:
                return member
            heapreplace(heap, now)

    def shrunk(self, member: int) -> None:
        """``member``, one of the pool, has less than before."""
        heappush(self._heap, self._sizes[member] * len(self._sizes) + member)

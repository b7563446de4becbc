"""Who is to get the next partition, and who is to give one. Source: ``MemberAssignmentBalancer`` in
``UniformHeterogeneousAssignmentBuilder``.

The members stand in a row, by load. Those with least are a range at the left end that is served member by member and, when
all have got one, stands one higher and takes in its neighbours of that height; those with most are the same thing at the
right end, coming down.
"""

from collections.abc import Iterable, Sequence


class Balancer:
    """One row of members; ``loads`` is how much each member has now, and is kept by the caller."""

    def __init__(self, members: Iterable[int], loads: Sequence[int]) -> None:
        self._loads = loads
        self._row = sorted(members, key=lambda member: (loads[member], member))
        lowest, highest = loads[self._row[0]], loads[self._row[-1]]
        self.imbalance = highest - lowest
        """By how much the loads differ at first."""
        self._low_level, self._low_end, self._low_next = lowest - 1, 0, 0
        size = len(self._row)
        self._high_level, self._high_start, self._high_end, self._high_next = highest + 1, size, size, size - 1

    def next_least(self) -> int:
        """A member with least, which is taken to get one more."""
        if self._low_next >= self._low_end:
            self._low_level += 1
            while self._low_end < len(self._row) and self._loads[self._row[self._low_end]] == self._low_level:
                self._low_end += 1
            self._low_next = 0
        self._low_next += 1
        return self._row[self._low_next - 1]

    def next_most(self) -> int | None:
        """A member with most, which is taken to lose one; None if nobody is left."""
        if self._high_next < self._high_start:
            if self._high_end <= self._high_start and self._high_start > 0:
                self._high_level = self._loads[self._row[self._high_start - 1]]
            else:
                self._high_level -= 1
            while self._high_start > 0 and self._loads[self._row[self._high_start - 1]] == self._high_level:
                self._high_start -= 1
            self._high_next = self._high_end - 1
        if self._high_next < 0:
            return None
        self._high_next -= 1
        return self._row[self._high_next + 1]

    def exclude_most(self) -> None:
        """The member that ``next_most`` has just named has nothing to give: it leaves the range."""
        row, place, last = self._row, self._high_next + 1, self._high_end - 1
        row[place], row[last] = row[last], row[place]
        self._high_end = last

    @property
    def is_balanced(self) -> bool:
        """Do the two ranges differ by one or less?"""
        return self._high_level - self._low_level <= 1

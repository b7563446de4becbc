"""A number or several in a row: ``3``, ``range(2, 5)`` or ``"2-4"``, ``"3-"`` (3 and all after it)."""

import re
from typing import NamedTuple

from groupcoord.testing.faults.problems import is_number

_TEXT = re.compile(r"(\d+)(-(\d*))?")


class Span(NamedTuple):
    """The numbers from ``first`` to ``last``; None: without end."""

    first: int
    last: int | None

    @classmethod
    def of(cls, value: object) -> "Span":
        """Raises ValueError for what is none."""
        if isinstance(value, Span):
            return value
        if isinstance(value, int) and is_number(value) and value >= 0:
            return cls(value, value)
        if isinstance(value, range) and value.step == 1 and 0 <= value.start < value.stop:
            return cls(value.start, value.stop - 1)
        found = _TEXT.fullmatch(value) if isinstance(value, str) else None
        if found:
            first = int(found[1])
            last = first if found[2] is None else int(found[3]) if found[3] else None
            if last is None or last >= first:
                return cls(first, last)
        raise ValueError(f"{value!r} is neither a number nor a span of numbers such as '2-4' or '3-'")

    def __contains__(self, number: object) -> bool:
        return isinstance(number, int) and self.first <= number and (self.last is None or number <= self.last)

    def __str__(self) -> str:
        if self.last is None:
            return f"{self.first}-"
        return f"{self.first}" if self.first == self.last else f"{self.first}-{self.last}"

    @property
    def size(self) -> int | None:
        """How many numbers it has; None: without end."""
        return None if self.last is None else self.last - self.first + 1

    @property
    def plain(self) -> int | str:
        """As data has it."""
        return self.first if self.size == 1 else str(self)

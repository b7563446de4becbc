"""What is wrong with a rule: every field that is, and what would be right."""

from collections.abc import Callable, Iterable
from typing import NamedTuple, TypeVar

T = TypeVar("T")


class Problem(NamedTuple):
    """What is wrong with ``field``."""

    field: str
    text: str

    def __str__(self) -> str:
        return f"{self.field}: {self.text}"


class RuleProblems(ValueError):
    """A rule that cannot be meant; ``problems`` are all that were found."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(map(str, self.problems)))

    @classmethod
    def one(cls, field: str, text: str) -> "RuleProblems":
        """``field`` is wrong, and that is all."""
        return cls([Problem(field, text)])


def is_number(value: object) -> bool:
    """Is it an int, and not one of those that mean yes and no?"""
    return isinstance(value, int) and not isinstance(value, bool)


def is_flag(value: object) -> bool:
    """Is it true or false?"""
    return isinstance(value, bool)


class Findings:
    """Collects problems, to tell all of them at once."""

    def __init__(self) -> None:
        self.found: list[Problem] = []

    def add(self, field: str, text: str) -> None:
        """``field`` is wrong."""
        self.found.append(Problem(field, text))

    def read(self, field: str, read: Callable[[], T]) -> T | None:
        """What ``read`` returns, or None if it raises ValueError, which is then a problem of ``field``."""
        try:
            return read()
        except RuleProblems as several:
            self.found += several.problems
        except ValueError as problem:
            self.add(field, str(problem))
        return None

    def tell(self) -> None:
        """Raises RuleProblems if there are any."""
        if self.found:
            raise RuleProblems(self.found)

"""Renders a table of measurements as text."""

from typing import Any


class Table:
    """Rows under a title; ``str`` aligns the columns."""

    def __init__(self, title: str, *columns: str) -> None:
        self.title = title
        self.rows: list[tuple[str, ...]] = [columns]

    def add(self, *cells: Any) -> None:
        """Add a row."""
        self.rows.append(tuple(map(str, cells)))

    def __str__(self) -> str:
        widths = [max(map(len, column)) for column in zip(*self.rows, strict=True)]
        lines = ["  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) for row in self.rows]
        lines.insert(1, "  ".join("-" * width for width in widths))
        return "\n".join([self.title, *lines, ""])

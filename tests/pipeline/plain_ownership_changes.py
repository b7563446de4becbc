"""Ownership changes, the plain way: the records of a group one after the other. The oracle for ``ownership_changes``."""

from collections import Counter
from collections.abc import Iterator
from itertools import chain
from typing import Any

import pyarrow as pa

from groupcoord.pipeline.arrow_columns import arrow_schema, parts
from groupcoord.pipeline.schemas import OWNERSHIP, TableSchema
from groupcoord.pipeline.tables.ownership_changes import ASSIGNMENTS

Row = list[Any]
Owner = tuple[str, str, str]
_AT, _UNTIL = OWNERSHIP.names.index("append_ts"), OWNERSHIP.names.index("until_ts")


def plain_ownership_changes(batches: Iterator[Any]) -> Iterator[tuple[TableSchema, Any]]:
    """The same as ``compared``: of record batches in which all records of a group come together and in order."""
    changes: list[Row] = []
    counted: list[Row] = []
    group = _Group()
    for batch in batches:
        plain = batch.set_column(2, "append_ts", batch.column("append_ts").cast(pa.int64()))
        for record in chain.from_iterable(part.to_pylist() for part in parts(plain)):
            if record["group"] != group.name:
                changes += group.end()
                group = _Group(record["group"])
            ended, counts = group.play(record)
            changes += ended
            counted.append([*(record[name] for name in ASSIGNMENTS.names[:-3]), *counts])
    changes += group.end()
    for table, rows in ((OWNERSHIP, changes), (ASSIGNMENTS, counted)):
        if rows:
            yield table, _batch(rows, arrow_schema(table.columns))


def _batch(rows: list[Row], schema: Any) -> Any:
    columns = zip(*rows, strict=True)
    return pa.RecordBatch.from_arrays(
        [_array(column, field.type) for column, field in zip(columns, schema, strict=True)], schema=schema
    )


def _array(values: tuple[Any, ...], kind: Any) -> Any:
    return pa.array(values, pa.int64()).cast(kind) if pa.types.is_timestamp(kind) else pa.array(values, kind)


class _Group:
    """Who had each partition of one group last, in which of its records, and the change that made it so."""

    def __init__(self, name: str | None = None) -> None:
        self.name = name
        self._number = 0
        self._last: dict[tuple[str, int], tuple[Owner, int]] = {}
        self._held: set[tuple[str, int]] = set()
        self._open: dict[tuple[str, int], Row] = {}

    def play(self, record: dict[str, Any]) -> tuple[list[Row], tuple[int, int, int]]:
        """The rows of the changes that this record ends, and its ``moved``, ``kept`` and ``could_stay``."""
        self._number += 1
        number, last = self._number, self._last
        rows: list[Row] = []
        of = self.name, record["kind"], record["generation"]
        where = record["log_partition"], record["log_offset"], record["append_ts"], *of
        end = None, False  # until when, and whether it is to be revoked
        now: Counter[str] = Counter()
        before: Counter[str] = Counter()
        kept = 0
        held = set()
        # Should two have the same partition, which no assignor does, the later one by member id has it.
        given = zip(record["members"] or (), record["assigned"] or (), strict=True)
        for member, assigned in sorted(given, key=lambda one: one[0]["member_id"]):
            member_id, who = member["member_id"], member["who"]
            owner = member_id, member["client_id"], who
            for topic in assigned or ():
                name = topic["topic"]
                for partition in topic["partitions"]:
                    key = name, partition
                    now[who] += 1
                    held.add(key)
                    if (known := last.get(key)) is None:
                        self._change(rows, key, [*where, *key, *owner[:2], None, *end])
                    else:
                        (previous, _, previous_who), previous_number = known
                        before[previous_who] += 1
                        kept += previous_who == who
                        if previous != member_id or previous_number < number - 1:
                            self._change(rows, key, [*where, *key, *owner[:2], previous, *end])
                    last[key] = owner, number
        for key in self._held - held:
            self._change(rows, key, [*where, *key, None, None, last[key][0][0], *end])
        self._held = held
        present = {member["who"] for member in record["members"] or ()}
        shares = zip(
            sorted(now.values(), reverse=True), sorted((before[who] for who in present), reverse=True), strict=False
        )
        could_stay = sum(min(pair) for pair in shares)
        return rows, (before.total() - kept, kept, could_stay)

    def end(self) -> list[Row]:
        """The rows of the changes that were the last of their partitions."""
        return list(self._open.values())

    def _change(self, rows: list[Row], key: tuple[str, int], row: Row) -> None:
        """A change, which goes to ``rows`` when it has an end: when the next one comes, as for the one before now."""
        if (past := self._open.get(key)) is not None:
            past[_UNTIL] = row[_AT]
            rows.append(past)
        self._open[key] = row

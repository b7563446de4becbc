"""What a watch tells after a batch, from a few rows of its views."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import pyarrow as pa

from groupcoord.pipeline.arrow_columns import arrow_schema
from groupcoord.pipeline.schemas import TableSchema
from groupcoord.pipeline.watch.batch_outcome import BatchOutcome
from groupcoord.pipeline.watch.output_directory import WatchManifest
from tests.pipeline.frames import at


def outcome(
    views: Mapping[str, Sequence[Mapping[str, Any]]], *, now: datetime | None = None, records: int = 0, **more: Any
) -> BatchOutcome:
    """The outcome of a batch at ``now``; ``views`` are rows of views, by name, with the columns that matter."""

    def view(table: TableSchema, columns: Sequence[str]) -> Any:
        whole = arrow_schema(table.columns)
        rows = [{name: row.get(name) for name in whole.names} for row in views.get(table.name, ())]
        return pa.Table.from_pylist(rows, schema=whole).select(list(columns))

    manifest = WatchManifest(source="kafka:broker:9092", identity={}, writer="w", records=records)
    return BatchOutcome(manifest=manifest, now=now or at(600), view=view, **more)


def lag_row(group: str, partition: int, lag: int | None, status: str | None = "OK") -> dict[str, Any]:
    """A row of ``lag``."""
    end = None if lag is None else 100
    committed = 100 - (lag or 0)
    place = {"group": group, "topic": "orders", "partition": partition, "last_commit_ts": at(500)}
    return {**place, "committed_offset": committed, "end_offset": end, "lag": lag, "status": status}


def group_row(group: str, members: int = 0, kind: str = "classic") -> dict[str, Any]:
    """A row of ``current_groups``."""
    there = [{"member_id": f"m{number}"} for number in range(members)]
    return {"group": group, "kind": kind, "state": "Stable" if members else "Empty", "members": there or None}

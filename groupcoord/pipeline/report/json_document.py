"""The report for machines: one JSON document, with all that the page says in numbers and without what it only draws."""

import dataclasses
import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from groupcoord.pipeline.report.report_model import GroupDetail, Overview, Report

VERSION = 1
"""Of the document; it changes when something in it goes away or means something else."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DRAWN = {GroupDetail: {"members", "heat", "partitions"}, Overview: {"course"}}
"""What is only to look at."""


def report_to_json(report: Report) -> str:
    """``report`` as JSON, with a new line at its end. Moments are ISO 8601 in UTC, under the names that columns of tables
    have: ``from_ts``, not ``from_ms``."""
    said = {"version": VERSION, **_plain(report)}
    said["quality"]["adds_up"] = report.quality.adds_up
    return json.dumps(said, indent=2, ensure_ascii=True) + "\n"


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [field.name for field in dataclasses.fields(value)]
        drawn = _DRAWN.get(type(value), set())
        return _fields({name: getattr(value, name) for name in names if name not in drawn})
    if hasattr(value, "_asdict"):
        return _fields(value._asdict())
    if isinstance(value, Mapping):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, tuple):
        return [_plain(one) for one in value]
    return value


def _fields(fields: Mapping[str, Any]) -> dict[str, Any]:
    said = {}
    for name, value in fields.items():
        if name.endswith("_ms"):
            said[f"{name.removesuffix('_ms')}_ts"] = _moment(value)
        else:
            said[name] = _plain(value)
    return said


def _moment(ms: int | None) -> str | None:
    if ms is None:
        return None
    try:
        return (_EPOCH + timedelta(milliseconds=ms)).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    except OverflowError:
        return f"{ms} ms since 1970"

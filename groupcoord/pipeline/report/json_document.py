"""The report as one JSON document: what a run stores as ``report.json``, and what the page is rendered from.

Times are ISO 8601 in UTC under the names that columns of tables have: ``from_ts``, not ``from_ms``.
"""

import dataclasses
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints

from groupcoord.pipeline.errors import PipelineError
from groupcoord.pipeline.report.formatting import iso_time
from groupcoord.pipeline.report.report_model import Report

VERSION = 1
"""Of the document; it changes when a field goes away or means something else."""
_DURATIONS = {"width_ms"}
"""Fields in milliseconds that are no times."""
_NO_CALENDAR = " ms since 1970"


def report_to_json(report: Report) -> str:
    """``report`` as JSON, with a new line at its end."""
    document = {"version": VERSION, **_encoded(report)}
    document["quality"]["adds_up"] = report.quality.adds_up
    return json.dumps(document, indent=2, ensure_ascii=True) + "\n"


def report_from_json(text: str, where: str) -> Report:
    """The report in ``text``. Raises PipelineError if it is none, or one of another version; ``where`` names the file."""
    try:
        document = json.loads(text)
        if document["version"] != VERSION:
            raise PipelineError(f"{where} was written by another version of groupcoord: run again")
        report: Report = _decoded(Report, document)
    except (ValueError, KeyError, TypeError):
        raise PipelineError(f"{where} is not the report of a run") from None
    return report


def _encoded(value: Any) -> Any:
    kind: type = type(value)
    if _is_record(kind):
        return {_json_name(name): _encoded_field(name, getattr(value, name)) for name in _fields(kind)}
    if isinstance(value, Mapping):
        return {key: _encoded(one) for key, one in value.items()}
    return [_encoded(one) for one in value] if isinstance(value, tuple) else value


def _encoded_field(name: str, value: Any) -> Any:
    if not _is_time(name):
        return _encoded(value)
    return iso_time(value) or (None if value is None else f"{value}{_NO_CALENDAR}")


def _decoded(kind: Any, value: Any) -> Any:
    """``value`` of the document as the type ``kind`` of the model."""
    if get_origin(kind) is UnionType:
        [kind] = [one for one in get_args(kind) if one is not NoneType]
        return None if value is None else _decoded(kind, value)
    if get_origin(kind) is tuple:
        return tuple(_decoded(get_args(kind)[0], one) for one in value)
    if get_origin(kind) is dict:
        return {key: _decoded(get_args(kind)[1], one) for key, one in value.items()}
    if _is_record(kind):
        return kind(**{name: _decoded_field(name, of, value[_json_name(name)]) for name, of in _fields(kind).items()})
    return value


def _decoded_field(name: str, kind: Any, value: Any) -> Any:
    if not _is_time(name):
        return _decoded(kind, value)
    if value is None or value.endswith(_NO_CALENDAR):
        return value and int(value.removesuffix(_NO_CALENDAR))
    return round((datetime.fromisoformat(value) - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds() * 1000)


def _is_record(kind: Any) -> bool:
    return dataclasses.is_dataclass(kind) or hasattr(kind, "_fields")


@cache
def _fields(kind: type) -> Mapping[str, Any]:
    """The fields of a dataclass or a named tuple, with their types."""
    hints = get_type_hints(kind)
    return {
        name: hints[name] for name in getattr(kind, "_fields", None) or [one.name for one in dataclasses.fields(kind)]
    }


def _is_time(name: str) -> bool:
    return name.endswith("_ms") and name not in _DURATIONS


def _json_name(name: str) -> str:
    return f"{name.removesuffix('_ms')}_ts" if _is_time(name) else name

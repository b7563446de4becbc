"""The report as files: ``report.json``, which a run stores, and ``report.html``, the page that is rendered from it.

In the JSON document times are ISO 8601 in UTC under the names that columns of tables have: ``from_ts``, not ``from_ms``. The
page is one HTML file that needs nothing else, and the same bytes for the same report: what ``make page`` builds from
``web/src/report``, with the JSON document in it.
"""

import dataclasses
import json
import os
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, get_args, get_origin, get_type_hints

from groupcoord.page.html_embedding import built_page, embed
from groupcoord.pipeline.errors import PipelineError
from groupcoord.pipeline.health_symptoms import SYMPTOMS
from groupcoord.pipeline.report.report_model import Report, column_name, is_time
from groupcoord.pipeline.schemas import CAUSE_KINDS, MEMBER_EVENTS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


VERSION = 4
"""The version of the JSON document. It changes when a field is removed or its meaning changes."""
_NO_CALENDAR = " ms since 1970"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def report_to_json(report: Report) -> str:
    """``report`` as JSON text with a newline at its end."""
    document = {"version": VERSION, **_encoded(report)}
    document["quality"]["adds_up"] = report.quality.adds_up
    return json.dumps(document, indent=2, ensure_ascii=True) + "\n"


def report_from_json(text: str, where: str) -> Report:
    """Parse a report. Raises PipelineError if ``text`` is not a report or has another version; ``where`` names the file in the
    error."""
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
        return {column_name(name): _encoded_field(name, getattr(value, name)) for name in _fields(kind)}
    if isinstance(value, Mapping):
        return {key: _encoded(one) for key, one in value.items()}
    return [_encoded(one) for one in value] if isinstance(value, tuple) else value


def _encoded_field(name: str, value: Any) -> Any:
    if not is_time(name):
        return _encoded(value)
    return iso_time(value) or (None if value is None else f"{value}{_NO_CALENDAR}")


def _decoded(kind: Any, value: Any) -> Any:
    """Convert ``value``, from the JSON document, to the type ``kind`` of the model."""
    if get_origin(kind) is UnionType:
        [kind] = [one for one in get_args(kind) if one is not NoneType]
        return None if value is None else _decoded(kind, value)
    if get_origin(kind) is tuple:
        return tuple(_decoded(get_args(kind)[0], one) for one in value)
    if get_origin(kind) is dict:
        return {key: _decoded(get_args(kind)[1], one) for key, one in value.items()}
    if _is_record(kind):
        # A field that is missing was added after the document was written, and has a default.
        return kind(
            **{
                name: _decoded_field(name, of, value[column_name(name)])
                for name, of in _fields(kind).items()
                if column_name(name) in value
            }
        )
    return value


def _decoded_field(name: str, kind: Any, value: Any) -> Any:
    if not is_time(name):
        return _decoded(kind, value)
    if value is None or value.endswith(_NO_CALENDAR):
        return value and int(value.removesuffix(_NO_CALENDAR))
    return round((datetime.fromisoformat(value) - _EPOCH).total_seconds() * 1000)


def _is_record(kind: Any) -> bool:
    return dataclasses.is_dataclass(kind) or hasattr(kind, "_fields")


@cache
def _fields(kind: type) -> Mapping[str, Any]:
    """The fields of a dataclass or a named tuple, with their types."""
    hints = get_type_hints(kind)
    return {
        name: hints[name] for name in getattr(kind, "_fields", None) or [one.name for one in dataclasses.fields(kind)]
    }


def iso_time(ms: int | None) -> str | None:
    """Format a time like ``2026-11-21T13:26:51.007Z``; None if it is unknown or outside of the years 1 to 9999."""
    if ms is None:
        return None
    try:
        return (_EPOCH + timedelta(milliseconds=ms)).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    except OverflowError:
        return None


def render_page(report: Report) -> str:
    """The HTML page of ``report``. Raises PageNotBuiltError if ``make page`` has not been run."""
    vocabulary = {
        "symptoms": [one._asdict() for one in SYMPTOMS],
        "cause_kinds": CAUSE_KINDS,
        "member_events": MEMBER_EVENTS,
    }
    return embed(built_page(ENTRY), {"report": report_to_json(report), "vocabulary": json.dumps(vocabulary)})


ENTRY = "report"
"""The entry of ``web/`` that the page is built from."""
REPORT = "report.json"
PAGE = "report.html"


def render_stored(root: Path) -> Report:
    """Render the page of a run in the local directory ``root`` again; returns the report. Raises PipelineError,
    PageNotBuiltError."""
    try:
        document = (root / REPORT).read_text(encoding="utf-8")
    except OSError as problem:
        raise PipelineError(f"{root} has no {REPORT}, so no run: {problem.strerror}") from None
    report = report_from_json(document, f"{root}/{REPORT}")
    aside = root / f"{PAGE}.partial"
    try:
        aside.write_text(render_page(report), encoding="utf-8", newline="\n")
        os.replace(aside, root / PAGE)  # noqa: PTH105 - says that it replaces
        (root / f".{PAGE}.crc").unlink(missing_ok=True)  # Hadoop's checksum file of the previous page
    except OSError as problem:
        aside.unlink(missing_ok=True)
        raise PipelineError(f"cannot write {root / PAGE}: {problem.strerror}") from None
    return report


def render_stored_by_spark(spark: "SparkSession", root: str) -> Report:
    """Like ``render_stored``, for any URL that Spark can read and write. Raises PipelineError, PageNotBuiltError."""
    from py4j.protocol import Py4JJavaError  # noqa: PLC0415 - of the extra

    from groupcoord.pipeline.hadoop_files import HadoopFiles, java_reason  # noqa: PLC0415

    try:
        files = HadoopFiles(spark, root)
        document = files.read_text(REPORT)
    except Py4JJavaError as problem:
        raise PipelineError(
            f"{root} has no {REPORT}, so no run, or it cannot be read: {java_reason(problem)}"
        ) from None
    report = report_from_json(document, f"{files.root}/{REPORT}")
    try:
        files.write_text(PAGE, render_page(report))
    except Py4JJavaError as problem:
        raise PipelineError(f"cannot write {files.root}/{PAGE}: {java_reason(problem)}") from None
    return report

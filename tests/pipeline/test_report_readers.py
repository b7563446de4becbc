"""Tables read in this process and in the tasks of Spark: the same answers as from plain rows; and stored reports."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from groupcoord.cli.main import main
from groupcoord.pipeline.arrow_columns import arrow_schema
from groupcoord.pipeline.errors import PipelineError
from groupcoord.pipeline.report import arrow_table_reader
from groupcoord.pipeline.report.arrow_table_reader import Aggregate, ArrowTableReader, local_scan, spark_scan
from groupcoord.pipeline.report.build_report import build_report
from groupcoord.pipeline.report.report_files import render_page, render_stored, render_stored_by_spark, report_to_json
from groupcoord.pipeline.report.report_model import TimeBins
from groupcoord.pipeline.schemas import TABLES
from tests.pipeline.plain_reader import PlainReader, Tables
from tests.pipeline.report_tables import START, add, at, empty, history, what_if

SUMMARY = {"source": "segments:data", "as_of": None, "now": "2026-01-01T00:01:50"}


def write(tables: Tables, folder: Path, pieces: int = 2) -> Path:
    """``tables`` as Parquet files, some of them in several."""
    for name, rows in tables.items():
        schema = arrow_schema(TABLES[name].columns)
        moments = [field.name for field in schema if pa.types.is_timestamp(field.type)]
        ready = [
            row | {one: None if row[one] is None else 1000 * row[one] for one in moments} for row in rows
        ]  # the files have microseconds
        (folder / name).mkdir(parents=True)
        for piece in range(pieces):
            part = pa.Table.from_pylist(ready[piece::pieces], schema=schema)
            pq.write_table(part, folder / name / f"part-{piece}.parquet", row_group_size=7)
    return folder


def chance(seed: int) -> Tables:
    """Rows with nulls, large numbers and names that are not words."""
    of = random.Random(seed)
    tables = empty()
    names = ["a", "b", "ü", "Z", "\U0001f600", "", "'"]
    for index in range(80):
        add(
            tables,
            "lag",
            group=of.choice(names),
            topic=of.choice(names),
            partition=of.randrange(3),
            lag=of.choice([None, 0, 1, 2**63 - 1, 2**63 - 1]),
            last_commit_ts=of.choice([None, at(of.randrange(50))]),
            status=of.choice([None, "OK", "STOP"]),
        )
        add(
            tables,
            "commits",
            log_partition=0,
            log_offset=index,
            group=of.choice(names),
            append_ts=at(of.randrange(-9, 60)),
        )
    return {name: tables[name] for name in ("lag", "commits", "storms")}


QUESTIONS: dict[str, Callable[[ArrowTableReader], Any]] = {
    "rows": lambda reader: reader.rows(
        "lag",
        ["group", "lag", "last_commit_ts", "status", "topic", "partition"],
        "-lag status -last_commit_ts group topic partition",
        30,
    ),
    "rows of each group": lambda reader: reader.rows(
        "commits", ["group", "log_offset"], "-log_offset", 3, of_each="group"
    ),
    "rows among some": lambda reader: reader.rows(
        "commits",
        ["group", "log_offset", "append_ts"],
        "log_offset",
        2,
        among={"group": ["b", "ü", "nobody", "'"]},
        of_each="group",
    ),
    "totals": lambda reader: reader.totals(
        "lag",
        ["group", "status"],
        [
            Aggregate("n", "count"),
            Aggregate("sum", "sum", "lag"),
            Aggregate("least", "min", "lag"),
            Aggregate("last", "max", "last_commit_ts"),
        ],
        "-n group status",
        11,
    ),
    "totals of each group": lambda reader: reader.totals(
        "lag",
        ["group", "topic"],
        [Aggregate("n", "count")],
        "-n topic",
        2,
        among={"group": ["a", "", "Z"]},
        of_each="group",
    ),
    "totals of each topic": lambda reader: reader.totals(
        "lag",
        ["topic", "group"],
        [Aggregate("n", "count")],
        "-n group",
        2,
        of_each="topic",
    ),
    "number of rows": lambda reader: reader.totals("lag", [], [Aggregate("n", "count")], "", 1),
    "total": lambda reader: reader.totals("lag", [], [Aggregate("n", "count"), Aggregate("sum", "sum", "lag")], "", 1),
    "total of nothing": lambda reader: reader.totals(
        "storms", [], [Aggregate("n", "count"), Aggregate("last", "max", "to"), Aggregate("sum", "sum", "moved")], "", 1
    ),
    "totals of nothing": lambda reader: reader.totals("storms", ["group"], [Aggregate("n", "count")], "", 5),
    "rows of nothing": lambda reader: reader.rows("storms", ["group", "to"], "to", 5),
    "bins": lambda reader: reader.binned("commits", "append_ts", TimeBins(START, 7_000, 6), [Aggregate("n", "count")]),
    "bins of groups": lambda reader: reader.binned(
        "commits",
        "append_ts",
        {"a": TimeBins(START, 1_000, 50), "Z": TimeBins(at(20), 13_000, 3), "nobody": TimeBins(START, 1, 1)},
        [Aggregate("n", "count"), Aggregate("sum", "sum", "log_offset")],
    ),
    "bins by a column": lambda reader: reader.binned(
        "lag", "last_commit_ts", {"a": TimeBins(START, 20_000, 2)}, [Aggregate("n", "count")], by=["topic", "status"]
    ),
    "bins of no groups": lambda reader: reader.binned("commits", "append_ts", {}, [Aggregate("n", "count")]),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("merge_at", [200_000, 1])
def test_local_files_give_the_answers_of_plain_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, merge_at: int
) -> None:
    monkeypatch.setattr(arrow_table_reader, "MERGE_AT", merge_at)
    for seed in range(3):
        tables = chance(seed)
        reader = ArrowTableReader(local_scan(write(tables, tmp_path / str(seed))))
        for name, question in QUESTIONS.items():
            assert question(reader) == question(PlainReader(tables)), name


@pytest.mark.slow
@pytest.mark.parametrize("pieces", [1, 3])
def test_the_page_is_the_same_however_the_rows_lie_in_files(tmp_path: Path, pieces: int) -> None:
    tables = history()
    what_if(tables)
    page = render_page(build_report(ArrowTableReader(local_scan(write(tables, tmp_path, pieces))), SUMMARY))
    assert page == render_page(build_report(PlainReader(tables), SUMMARY))


def test_times_as_spark_writes_them_without_a_zone(tmp_path: Path) -> None:
    (tmp_path / "storms").mkdir()
    schema = pa.schema([("group", pa.string()), ("from", pa.timestamp("ns"))])
    rows = [{"group": "g", "from": None}, {"group": "g", "from": START * 1_000_000 + 999_999}]
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), tmp_path / "storms" / "part.parquet")
    found = ArrowTableReader(local_scan(tmp_path)).rows("storms", ["from"], "from", 2)
    assert found == [{"from": START}, {"from": None}]


def test_a_file_that_is_none_is_said(tmp_path: Path) -> None:
    (tmp_path / "lag").mkdir()
    (tmp_path / "lag" / "part.parquet").write_bytes(b"no parquet at all")
    with pytest.raises(PipelineError, match=r"^cannot read the table lag: "):
        ArrowTableReader(local_scan(tmp_path)).rows("lag", ["group"], "", 1)


def run_in(folder: Path) -> Path:
    """A directory as a run leaves it, without its tables and its page."""
    report = build_report(PlainReader(history()), SUMMARY)
    (folder / "report.json").write_text(report_to_json(report))
    return folder


@pytest.mark.slow
def test_the_command_renders_the_page_anew(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run_in(tmp_path)
    assert main(["pipeline", "report", str(tmp_path)]) == 0
    assert capsys.readouterr().out == (
        "20 records: 5 rebalances of 4 groups, 1 storm, 1 pause in which commits stopped\n"
        f"tables in {tmp_path}/tables, report in {tmp_path}/report.html\n"
    )
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert page == render_page(build_report(PlainReader(history()), SUMMARY))
    assert main(["pipeline", "report", str(tmp_path), "--format", "json"]) == 0
    assert capsys.readouterr().out == (tmp_path / "report.json").read_text()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["report.html", "report.json"]


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        (None, "has no report.json, so no run: No such file or directory"),
        ("{", "report.json is not the report of a run"),
    ],
)
def test_what_is_no_run_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], said: str | None, problem: str
) -> None:
    if said is not None:
        (tmp_path / "report.json").write_text(said)
    assert main(["pipeline", "report", str(tmp_path)]) == 1
    assert problem in capsys.readouterr().err
    assert not (tmp_path / "report.html").exists()


def test_a_page_that_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    run_in(tmp_path)
    (tmp_path / "report.html").mkdir()
    with pytest.raises(PipelineError, match="cannot write"):
        render_stored(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["report.html", "report.json"]


def test_tasks_of_spark_give_the_answers_of_plain_rows(spark: SparkSession, tmp_path: Path) -> None:
    tables = chance(1)
    reader = ArrowTableReader(spark_scan(spark, str(write(tables, tmp_path))))
    answers = {name: question(reader) for name, question in QUESTIONS.items()}
    assert answers == {name: question(PlainReader(tables)) for name, question in QUESTIONS.items()}


def test_spark_renders_the_page_where_only_it_can_read(spark: SparkSession, tmp_path: Path) -> None:
    run_in(tmp_path)
    render_stored(tmp_path)
    page = (tmp_path / "report.html").read_bytes()
    (tmp_path / "report.html").unlink()
    render_stored_by_spark(spark, f"file://{tmp_path}/")
    assert (tmp_path / "report.html").read_bytes() == page
    with pytest.raises(PipelineError, match=r"has no report\.json, so no run"):
        render_stored_by_spark(spark, f"file://{tmp_path}/tables")

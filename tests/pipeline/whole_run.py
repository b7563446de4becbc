"""A whole run of the pipeline in the session of the tests, and what must be true of what any run leaves."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from groupcoord.pipeline.progress import RunProgress
from groupcoord.pipeline.run import RunOptions, run_pipeline
from groupcoord.pipeline.run_output import RunOutput
from groupcoord.pipeline.schemas import TABLES
from groupcoord.pipeline.sources.factory import plan_source
from tests.pipeline.report_checks import check_report

RECORDED = Path(__file__).parent / "recordings" / "4.3.1"
"""The log of a real Kafka. The fixture ``recorded_out`` is what a run makes of it."""
Tables = dict[str, list[dict[str, Any]]]


def run(spark: SparkSession, source: str, out: Path, options: RunOptions | None = None) -> Tables:
    """The tables that a run writes into ``out``, when what must be true of any run has been checked."""
    summary = run_unchecked(spark, source, str(out), options)
    assert_whole(out)
    assert json.loads((out / "run.json").read_text()) == summary
    tables = tables_in(out)
    assert {name: len(rows) for name, rows in tables.items()} == summary["rows"]
    counts = {row["what"]: row["records"] for row in tables["record_counts"]}
    assert counts.pop("in") == sum(counts.values())
    check_report(out, tables)
    assert_owners(tables)
    return tables


def run_unchecked(spark: SparkSession, source: str, out: str, options: RunOptions | None = None) -> dict[str, Any]:
    """Returns the summary of the run."""
    with RunOutput(spark, out) as output:
        return run_pipeline(spark, plan_source(source, {}), output, options or RunOptions(), RunProgress(_say_nothing))


def _say_nothing(_: str) -> None:
    return


def assert_whole(out: Path) -> None:
    """Everything that a run leaves is there, and nothing else."""
    found = sorted(path.name for path in out.iterdir() if not path.name.startswith("."))
    assert found == ["report.html", "report.json", "run.json", "tables"]


def assert_owners(tables: Tables) -> None:
    """Who has a partition in the last generation of a classic group is its last owner in ``ownership``."""
    owners = {
        (row["group"], row["topic"], row["partition"]): row["member"]
        for row in sorted(tables["ownership"], key=lambda row: row["log_offset"])
    }
    last = {row["group"]: row for row in sorted(tables["generations"], key=lambda row: row["log_offset"])}
    became_modern = {row["group"] for row in tables["modern_generations"]}
    for group, row in last.items():
        for member in row["members"] or [] if group not in became_modern else []:
            for topic in member["assigned"] or []:
                for partition in topic["partitions"]:
                    assert owners[group, topic["topic"], partition] == member["member_id"]


def tables_in(out: Path) -> Tables:
    """All tables of a run."""
    return {name: pq.read_table(out / "tables" / name).to_pylist() for name in TABLES}


def in_any_order(out: Path) -> dict[str, Counter[str]]:
    """The rows of all tables of a run, as texts."""
    return {name: Counter(repr(sorted(row.items())) for row in rows) for name, rows in tables_in(out).items()}

"""Records come into the same tables on both ways; what a task left that did not end is in none of them."""

import contextlib
import json
from base64 import b64encode
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from groupcoord.pipeline.columnar_decoder import OF_RECORDS
from groupcoord.pipeline.errors import PipelineError
from groupcoord.pipeline.record_table_writer import HIDDEN, WRITTEN, collect_written, table_writer
from groupcoord.pipeline.run import RunOptions
from groupcoord.pipeline.run_output import CODEC, CODECS
from groupcoord.pipeline.sources.factory import plan_source
from groupcoord.protocol.coordinator_records.group_records import (
    OffsetCommitKey,
    OffsetCommitValue,
    write_key,
    write_value,
)
from tests.pipeline.random_log import START_MS, RandomLog
from tests.pipeline.whole_run import in_any_order, run, run_unchecked, tables_in

BEGIN = datetime.fromtimestamp(START_MS / 1000, UTC)
ODD_AS_OF = BEGIN + timedelta(seconds=6)
"""When the last record but one of the odd log was appended."""
OF_SPARK = "lz4_raw"
"""A codec whose name only Spark knows, so that Spark writes."""


@pytest.fixture
def codecs(spark: SparkSession) -> Iterator[None]:
    """The codec is as it was when the test ends."""
    before = spark.conf.get(CODEC)
    yield
    spark.conf.set(CODEC, before)


@pytest.fixture(scope="module")
def odd(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with ``log.jsonl``, which is odd, and ``out``, which a run has made of it as of ODD_AS_OF."""
    folder = tmp_path_factory.mktemp("odd")
    odd_log(folder / "log.jsonl")
    run(spark, f"jsonl:{folder}/log.jsonl", folder / "out", RunOptions(as_of=ODD_AS_OF))
    return folder


def line(offset: int, key: bytes | None, value: bytes | None) -> str:
    said = {"partition": 0, "offset": offset, "timestamp": START_MS + offset * 1000}
    texts = {"key": key, "value": value}
    return json.dumps(said | {name: text and b64encode(text).decode() for name, text in texts.items()})


def odd_log(path: Path) -> None:
    """Commits as Kafka writes them, one with a tagged field that nobody knows, a group of KIP-848, and records that cannot be
    read; a second apart."""
    key = write_key(OffsetCommitKey(group="g", topic="t", partition=0))
    value = write_value(OffsetCommitValue(offset=7, leader_epoch=1, metadata="é", commit_timestamp_ms=START_MS), 4)
    assert value[-1] == 0  # tagged fields
    odd = value[:-1] + b"\x01\x05\x01\xff"
    modern = (b"\0\3\0\1m", b"\0\0" + (7).to_bytes(4, "big") + b"\0")
    found = [(key, value), (key, odd), (key, None), (b"\0", value), (key, value[:9]), (None, None), modern, (key, odd)]
    lines = [line(offset, *said) for offset, said in enumerate(found)]
    path.write_text("\n".join([*lines, "nonsense"]) + "\n", encoding="utf-8")


@pytest.mark.usefixtures("codecs")
def test_spark_writes_what_tasks_write(spark: SparkSession, tmp_path: Path, odd: Path) -> None:
    RandomLog(11, partitions=3, steps=120).write(tmp_path / "random")
    random_log, as_of = f"segments:{tmp_path}/random", BEGIN + timedelta(minutes=15)
    spark.conf.set(CODEC, "snappy")
    run_unchecked(spark, random_log, str(tmp_path / "by-tasks"), RunOptions(as_of=as_of))
    counts = {row["what"]: row["records"] for row in tables_in(tmp_path / "by-tasks")["record_counts"]}
    assert 0 < counts["later"] < counts["in"]
    assert OF_SPARK not in CODECS
    spark.conf.set(CODEC, OF_SPARK)
    for source, moment, by_tasks in (
        (random_log, as_of, tmp_path / "by-tasks"),
        (f"jsonl:{odd}/log.jsonl", ODD_AS_OF, odd / "out"),
    ):
        run_unchecked(spark, source, str(tmp_path / "by-spark"), RunOptions(as_of=moment))
        assert in_any_order(tmp_path / "by-spark") == in_any_order(by_tasks)


def test_as_of_a_moment_the_log_ended_then_and_no_odd_record_is_lost(odd: Path) -> None:
    found = tables_in(odd / "out")
    assert {row["what"]: row["records"] for row in found["record_counts"]} == {
        "in": 9,
        "later": 1,
        "commits": 3,
        "generations": 0,
        "modern_records": 1,
        "bad_records": 4,
    }
    assert sorted(row["log_offset"] for row in found["commits"]) == [0, 1, 2]
    assert [row["log_offset"] for row in found["modern_records"]] == [6]  # appended at that very moment
    assert any(row["value"] == b"nonsense" for row in found["bad_records"])  # nobody knows when that was
    assert len(list((odd / "out" / "tables" / "commits").glob("*.parquet"))) == 1


@pytest.mark.usefixtures("codecs")
@pytest.mark.parametrize("codec", ["zstd", OF_SPARK])
def test_where_nothing_is_left_no_table_has_rows(spark: SparkSession, tmp_path: Path, codec: str) -> None:
    spark.conf.set(CODEC, codec)
    odd_log(tmp_path / "odd.jsonl")
    beginning = RunOptions(as_of=datetime.fromtimestamp(0, UTC))
    run_unchecked(spark, f"jsonl:{tmp_path}/odd.jsonl", str(tmp_path / "out"), beginning)
    found = tables_in(tmp_path / "out")
    assert {name: len(found[name]) for name in OF_RECORDS} == {**dict.fromkeys(OF_RECORDS, 0), "bad_records": 1}
    ends_nowhere = json.loads(line(0, b"\0\1", None)) | {"transaction": {"producerId": 7}}
    (tmp_path / "open.jsonl").write_text(json.dumps(ends_nowhere) + "\n")
    with pytest.raises(PipelineError, match="holds no records: no group has ever committed there"):
        run_unchecked(spark, f"jsonl:{tmp_path}/open.jsonl", str(tmp_path / "none"))
    assert [path.name for path in (tmp_path / "none").iterdir()] == [".lock"]


def test_only_files_of_tasks_that_ended_count(spark: SparkSession, tmp_path: Path) -> None:
    """A task that fails after it began to write, and the same one tried again: Spark does that with ``local[2, 2]``."""
    RandomLog(3, partitions=1, steps=40).write(tmp_path / "random")
    plan = plan_source(f"segments:{tmp_path}/random", {}).surveyed(spark)
    folder = tmp_path / "written"

    def fails(batches: Iterator[Any]) -> Iterator[Any]:
        yield from plan.open_batches(batches)
        raise OSError(5, "Input/output error")

    def first_fails_then_reads(batches: Iterator[Any]) -> Iterator[Any]:
        numbers = list(batches)
        with contextlib.suppress(OSError):
            list(table_writer(fails, folder, "zstd", None)(iter(numbers)))
        yield from table_writer(plan.open_batches, folder, "zstd", None)(iter(numbers))

    frame = plan.read(spark).mapInArrow(first_fails_then_reads, WRITTEN.ddl)
    found = collect_written(frame.collect, folder)
    assert (found.read, found.later) == (plan.records, 0)
    assert len(list((folder / "commits").iterdir())) == 1
    rows = {
        table.name: pq.read_table(folder / table.name).num_rows
        for table in (*OF_RECORDS.values(), HIDDEN)
        if (folder / table.name).is_dir()
    }
    assert rows == {name: found.rows[name] for name in (*OF_RECORDS, HIDDEN.name) if found.rows[name]}
    assert sum(rows.values()) - rows[HIDDEN.name] == found.read


def test_what_cannot_be_written_fails_the_run(spark: SparkSession, tmp_path: Path) -> None:
    RandomLog(3, partitions=1, steps=40).write(tmp_path / "random")
    plan = plan_source(f"segments:{tmp_path}/random", {}).surveyed(spark)
    (tmp_path / "written").mkdir()
    (tmp_path / "written" / "commits").write_bytes(b"")  # where a folder should be
    with pytest.raises(PySparkException, match=r"cannot write .*/written/commits/part-.*: File exists"):
        plan.read(spark).mapInArrow(
            table_writer(plan.open_batches, tmp_path / "written", "zstd", None), WRITTEN.ddl
        ).collect()

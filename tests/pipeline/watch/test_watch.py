"""The watch as a whole: cut into batches anywhere, killed anywhere, it has the tables that one run over the same log has."""

import json
import os
import random
import threading
from collections import Counter
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from groupcoord.pipeline.errors import PipelineError
from groupcoord.pipeline.progress import RunProgress
from groupcoord.pipeline.run import RunOptions, run_pipeline
from groupcoord.pipeline.run_output import RunOutput
from groupcoord.pipeline.schemas import CURRENT_OFFSETS, END_OFFSETS, LOG, TABLES
from groupcoord.pipeline.sources.columnar_batch_reader import headers, read, walk
from groupcoord.pipeline.sources.end_offsets import EarlierEnds
from groupcoord.pipeline.sources.factory import SourcePlan, StreamSource, open_stream
from groupcoord.pipeline.sources.kafka_source import ClusterUnavailableError
from groupcoord.pipeline.watch.batch_writer import (
    GROWING,
    RECENT_COMMITS,
    VIEWS,
    BatchWriter,
    lag_after,
    partitions_behind,
)
from groupcoord.pipeline.watch.output_directory import WatchDirectory, WatchManifest
from groupcoord.pipeline.watch.query_loop import WatchSchedule, _check_positions, _plain, _why_gone, run_watch
from tests.pipeline.frames import at, commit, frame
from tests.pipeline.frames import rows as table_rows
from tests.pipeline.random_log import RandomLog
from tests.pipeline.watch.stormy_log import StormyLog

COMPARED = [table.name for table in (*GROWING, *VIEWS) if table.name not in {"source_warnings", "open_transactions"}]


class Killed(Exception):
    """As by kill -9: nothing that comes behind it is done."""


class At:
    """Kills at the ``number``-th call, counted from 0."""

    def __init__(self, number: int | None) -> None:
        self._left = number

    def __call__(self, *_: object) -> None:
        if self._left == 0:
            raise Killed
        if self._left is not None:
            self._left -= 1


class Cut:
    """A log as a folder of Parquet files, one a batch: cut into ``pieces`` anywhere."""

    def __init__(self, folder: Path, log: RandomLog, pieces: int, seed: int) -> None:
        self.folder = folder
        self.positions: list[dict[str, int]] = []
        chance = random.Random(seed)
        whole = [_rows(number, b"".join(batches)) for number, batches in enumerate(log.batches)]
        cuts = [[0, *sorted(chance.choices(range(len(rows)), k=pieces - 1)), len(rows)] for rows in whole]
        folder.mkdir()
        for piece in range(pieces):
            parts = [rows[cut[piece] : cut[piece + 1]] for rows, cut in zip(whole, cuts, strict=True)]
            path = folder / f"{piece}.parquet"
            pq.write_table(pa.concat_tables(parts), path)
            os.utime(path, (piece, piece))
            self.positions.append({str(number): cut[piece + 1] for number, cut in enumerate(cuts)})

    def stream(self) -> StreamSource:
        """Batches of one file each; the ends of topics are what nobody doubts."""

        def load(spark: SparkSession) -> DataFrame:
            return spark.readStream.schema(LOG.ddl).option("maxFilesPerTrigger", 1).parquet(str(self.folder))

        def ends(wanted: DataFrame, now_ms: int, _: EarlierEnds | None) -> DataFrame:
            end = F.expr("500 + 100L * partition").alias("end_offset")
            known = wanted.select("topic", "partition", end, F.timestamp_millis(F.lit(now_ms)).alias("at")).distinct()
            return wanted.sparkSession.createDataFrame([], END_OFFSETS.ddl).unionByName(known, allowMissingColumns=True)

        return StreamSource(
            spec="files",
            identity={"topic": "t"},
            load=load,
            positions=lambda text: self.positions[json.loads(text)["logOffset"]],
            bounds=lambda: {int(number): (0, end) for number, end in self.positions[-1].items()},
            ends=ends,
            latest_ends=lambda _: {},
        )

    def plan(self) -> SourcePlan:
        """All of it at once."""
        return SourcePlan(spec="files", read=lambda spark: spark.read.schema(LOG.ddl).parquet(str(self.folder)))


def _rows(partition: int, data: bytes) -> pa.Table:
    starts, _ = walk(data)
    return pa.Table.from_batches(list(read(data, partition, headers(np.frombuffer(data, np.uint8), starts))))


def watch(
    spark: SparkSession,
    stream: StreamSource,
    out: Path,
    *,
    move: int | None = None,
    staged: int | None = None,
    line: int | None = None,
    merge_every: int = 2,
) -> list[str]:
    """Take what is there, unless killed at a move, a file written aside, or a line said. Returns the lines."""
    lines: list[str] = []
    kill_at_line = At(line)

    def say(text: str) -> None:
        lines.append(text)
        kill_at_line()

    with WatchDirectory(spark, str(out), before_move=At(move)) as output:
        kill_at_stage, stage = At(staged), output.stage_file

        def stage_file(*arguments: Any, **named: Any) -> str:
            kill_at_stage()
            return stage(*arguments, **named)

        output.stage_file = stage_file  # type: ignore[method-assign]
        batch_writer = BatchWriter(
            output, stream, output.begin(stream.spec, stream.identity), say, merge_every=merge_every
        )
        try:
            run_watch(spark, batch_writer, WatchSchedule(is_once=True), threading.Event())
        except Killed:
            lines.append("killed")
    return lines


def manifest(out: Path) -> WatchManifest:
    return WatchManifest.from_json((out / "watch.json").read_text(), "watch.json")


def rows(path: Path) -> list[str]:
    """The rows in Parquet files below ``path``, as texts in order."""
    files = sorted(path.rglob("*.parquet"))
    found = [row for file in files for row in pq.ParquetFile(file).read().to_pylist()]
    return sorted(json.dumps(row, sort_keys=True, default=str) for row in found)


def whole_run(spark: SparkSession, plan: SourcePlan, watched: Path, out: Path) -> None:
    """``pipeline run`` over the same log, with the ends of topics that the watch saw."""
    ends = spark.read.schema(END_OFFSETS.ddl).parquet(str(watched / "state" / END_OFFSETS.name))
    at = manifest(watched).at
    assert at is not None
    with RunOutput(spark, str(out)) as output:
        run_pipeline(
            spark, plan, output, RunOptions(ends=ends, now=datetime.fromisoformat(at)), RunProgress(lambda line: None)
        )


@pytest.mark.slow
def test_it_has_the_tables_of_one_run_however_it_was_cut_and_killed(spark: SparkSession, tmp_path: Path) -> None:
    cut = Cut(tmp_path / "log", StormyLog(5, partitions=2, steps=250, with_transactions=False), pieces=3, seed=5)
    stream, out = cut.stream(), tmp_path / "out"
    assert watch(spark, stream, out, staged=2) == ["killed"]  # nothing of the first batch is there
    assert not (out / "tables").exists()
    assert watch(spark, stream, out, move=4) == ["killed"]  # killed while it comes in
    assert len(manifest(out).moves) > 4
    [said, end] = watch(spark, stream, out, line=0)  # the next one is in, and Spark does not know
    assert said.startswith("batch 1: ")
    assert end == "killed"
    [said] = watch(spark, stream, out)
    assert said.startswith("batch 2: ")
    whole_run(spark, cut.plan(), out, tmp_path / "run")
    found = manifest(out)
    assert found.positions == cut.positions[-1]
    assert any(directory.level for directory in found.directories["commits"])
    for name, directories in found.directories.items():
        assert {path.name for path in (out / "tables" / name).iterdir()} == {
            directory.folder for directory in directories
        }
    for name in COMPARED:
        expected = rows(tmp_path / "run" / "tables" / name)
        assert expected, name
        assert rows(out / "tables" / name) == expected, name
    for name in ("rebalances", "current_groups"):
        kinds = {json.loads(row)["kind"] for row in rows(out / "tables" / name)}
        assert kinds >= {"classic", "consumer", "share", "streams"}, name
    assert found.records == sum(found.positions.values())
    assert not list((out / ".work").iterdir())
    _not_again_with_another_source(spark, out)


def _not_again_with_another_source(spark: SparkSession, out: Path) -> None:
    with WatchDirectory(spark, str(out)) as output:
        with pytest.raises(PipelineError, match=r"watches topic t; kafka:x is topic b: choose another --out"):
            output.begin("kafka:x", {"topic": "b"})
        with pytest.raises(PipelineError, match="another watch is writing to"), WatchDirectory(spark, str(out)):
            pass


class Said:
    """Stands for a sink that has got so far."""

    def __init__(self, **positions: int) -> None:
        positions_ = {name.strip("p"): offset for name, offset in positions.items()}
        self.manifest = WatchManifest(source="s", identity={}, writer="w", batch=3, positions=positions_)
        self.warnings = ["of an earlier look"]
        self.is_resumed = False
        self.stream: StreamSource | None = None


def look(bounds: dict[int, tuple[int, int]], batch_writer: Said) -> list[Any]:
    batch_writer.stream = replace(open_stream("connector:x:1", {}), bounds=lambda: bounds)
    _check_positions(cast("BatchWriter", batch_writer))
    return batch_writer.warnings


def test_before_it_goes_on_it_looks_what_is_still_there() -> None:
    batch_writer = Said(p0=5, p1=7)
    assert look({0: (0, 5), 1: (0, 99), 2: (0, 1)}, batch_writer) == []
    assert batch_writer.is_resumed
    [remark] = look({0: (5, 9), 1: (20, 30)}, batch_writer)
    assert (remark.log_partition, remark.what) == (1, "offsets 7 to 19 were deleted from the log before they were read")


@pytest.mark.parametrize("bounds", [{0: (0, 4)}, {1: (0, 99)}])
def test_a_log_that_ends_before_is_another_one(bounds: dict[int, tuple[int, int]]) -> None:
    with pytest.raises(
        PipelineError, match=r"has no offset 5 of partition 0 of the log, .* it is another log; choose another"
    ):
        look(bounds, Said(p0=5))


@pytest.mark.parametrize(
    ("text", "gone"),
    [
        (
            "…\ngroupcoord.pipeline.sources.kafka_source.ClusterUnavailableError: no broker answers: x:1 refused\n at …",
            "no broker answers: x:1 refused",
        ),
        (
            "org.apache.kafka.common.errors.TimeoutException: Timed out waiting for a node",
            "Timed out waiting for a node",
        ),
        ("groupcoord.pipeline.errors.PipelineError: x-0: TOPIC_AUTHORIZATION_FAILED", None),
    ],
)
def test_what_may_pass_is_told_from_what_does_not(text: str, gone: str | None) -> None:
    assert _why_gone(PySparkException(message=text)) == gone
    assert _why_gone(ClusterUnavailableError("x:1 closed the connection")) == "x:1 closed the connection"


def test_a_partition_of_the_log_is_behind_if_much_is_left_of_it() -> None:
    """What came while the batch was written is not much; what a batch of limited size has left is."""
    ends = {0: 1000, 1: 500_000, 2: 50, 3: 101, 4: 40_000}
    assert partitions_behind(
        ends, {"0": 1000, "1": 100_000, "3": 0, "4": 38_000}, Counter({"1": 90_000, "4": 30_000})
    ) == {
        1: 400_000,
        3: 101,
    }


def test_lags_are_unknown_where_the_log_is_not_read_to_its_end(spark: SparkSession) -> None:
    offsets = frame(
        spark,
        CURRENT_OFFSETS,
        [{**commit(1, 5, group=group), "log_partition": number} for number, group in enumerate(("here", "behind"))],
    )
    recent = frame(spark, RECENT_COMMITS, [{**commit(1, 5, group="here"), "log_partition": 0}])
    ends = frame(spark, END_OFFSETS, [{"topic": "t", "partition": 0, "end_offset": 9}])
    found = lag_after(offsets, recent, ends, at(10), behind=[1])
    assert table_rows(found, "group", "end_offset", "lag") == [("behind", None, None), ("here", 9, 4)]


def test_what_it_ends_with_is_one_line() -> None:
    told = _plain(PySparkException(message="Job aborted\n  PipelineError: x-0: no\n at org…"))
    assert isinstance(told, PipelineError)
    assert str(told) == "x-0: no"
    assert str(_plain(PySparkException(message="[CONCURRENT_STREAM_LOG_UPDATE] Concurrent…"))) == (
        "another watch is using this checkpoint"
    )
    assert str(_plain(PySparkException(message="something else\n at org…"))) == "something else"
    other = ValueError("of another kind")
    assert _plain(other) is other


def test_all_schemas_are_of_the_run() -> None:
    assert all(TABLES[table.name] == table for table in (*GROWING, *VIEWS))

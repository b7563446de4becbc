"""The pipeline: made-up logs of growing size from segment files to all tables, beside a plain reading of the same records.

``BENCH_PIPELINE_RECORDS`` (``1000000,10000000``) says which sizes, ``BENCH_PIPELINE_MASTER`` (``local[2]``) where.
"""

import os
import shutil
import tempfile
import time
from pathlib import Path

from pyspark.sql import SparkSession

from bench.table import Table
from groupcoord.pipeline.log_generator import generate
from groupcoord.pipeline.progress import RunProgress
from groupcoord.pipeline.run import RunOptions, run_pipeline
from groupcoord.pipeline.run_output import RunOutput
from groupcoord.pipeline.schemas import TABLES
from groupcoord.pipeline.sources.factory import plan_source
from groupcoord.pipeline.spark_session import session

SIZES = [int(size) for size in os.environ.get("BENCH_PIPELINE_RECORDS", "1000000,10000000").split(",")]
MASTER = os.environ.get("BENCH_PIPELINE_MASTER", "local[2]")
SEED = 1


def run() -> list[Table]:
    """Each size in a directory of its own, which is removed."""
    table = Table(
        f"pipeline: {MASTER}, from segment files to {len(TABLES)} tables",
        "records",
        "MB",
        "made, rec/s",
        "scanned, rec/s",
        "read and decoded, rec/s",
        "all tables, rec/s",
        "all tables, s",
        "time a record, of the first",
    )
    first = 0.0
    with session(MASTER, {}) as spark:
        for records in SIZES:
            with tempfile.TemporaryDirectory(prefix="groupcoord-bench-") as name:
                cells, each = _measure(spark, records, Path(name))
                first = first or each
                table.add(*cells, f"{each / first:.2f}")
    return [table]


def _measure(spark: SparkSession, records: int, directory: Path) -> tuple[list[str], float]:
    """The figures of one size, and how many seconds all tables took for each record."""
    segments, plain = directory / "segments", directory / "plain"
    began = time.perf_counter()
    generate(spark, records, SEED, str(segments), as_segments=True)
    made = time.perf_counter() - began
    size = sum(path.stat().st_size for path in segments.rglob("*.log"))

    generate(spark, records, SEED, str(plain), as_segments=False)
    began = time.perf_counter()
    spark.read.parquet(str(plain)).write.format("noop").mode("overwrite").save()
    scanned = time.perf_counter() - began
    shutil.rmtree(plain)

    lines: list[str] = []
    began = time.perf_counter()
    plan = plan_source(f"segments:{segments}", {})
    with RunOutput(spark, str(directory / "out")) as output:
        run_pipeline(spark, plan, output, RunOptions(), RunProgress(lines.append))
    took = time.perf_counter() - began
    decoded = float(next(line for line in lines if line.startswith("read and decode")).split()[-2])
    return [
        f"{records:,}",
        f"{size / 1e6:,.0f}",
        *(f"{records / seconds:,.0f}" for seconds in (made, scanned, decoded, took)),
        f"{took:,.0f}",
    ], took / records

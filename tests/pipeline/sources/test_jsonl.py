"""``groupcoord offsets dump --raw`` writes what ``jsonl:`` reads, and reads as the files themselves are."""

import json
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from groupcoord.cli.main import main
from groupcoord.pipeline.errors import PipelineError
from groupcoord.pipeline.schemas import LOG
from groupcoord.pipeline.sources import jsonl_source
from groupcoord.pipeline.sources.factory import plan_source
from tests.pipeline.cluster import serving
from tests.pipeline.frames import log_of
from tests.pipeline.random_log import RandomLog

CONFIG: dict[str, object] = {
    "offsets.topic.num.partitions": 2,
    "offsets.retention.minutes": 2_000_000,
    "log.cleaner.enable": False,
}


def of(log: DataFrame) -> list[tuple[object, ...]]:
    return sorted(tuple(row[name] for name in LOG.names) for row in log.collect())


def test_a_dump_is_read_as_the_log_is(spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    RandomLog(4, partitions=2, steps=150).write(tmp_path / "data")
    files = plan_source(f"segments:{tmp_path}/data", {}).surveyed(spark)
    committed = set(log_of(spark, files).select(*LOG.names[:2]).collect())
    with serving(tmp_path / "data", CONFIG) as address:
        living = plan_source(f"kafka:{address}", {}).surveyed(spark)
        served = of(log_of(spark, living))
        assert living.remarks() == files.warnings != []
        assert main(["offsets", "dump", address, "--raw"]) == 0
    # Read with read_committed: what was aborted is neither in the files' table nor served.
    assert {row[:2] for row in served} == committed
    dump = tmp_path / "dump.jsonl"
    dump.write_text(capsys.readouterr().out)
    markers = {line["marker"] for line in map(json.loads, dump.read_text().splitlines()) if "marker" in line}
    assert markers == {"commit", "abort"}
    jsonl_source.check(str(dump))
    found = of(jsonl_source.read(spark, str(dump)))
    assert found == served
    hidden = jsonl_source.hidden(spark, str(dump)).count()
    assert len(found) + hidden == len(dump.read_text().splitlines())
    assert len(found) < len(dump.read_text().splitlines()) - 2


def test_what_else_is_written_as_lines_is_told_apart(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_text('{"schema": "groupcoord-trace", "version": 1}\n')
    with pytest.raises(PipelineError, match=r"is a trace, .* does not hold the log; groupcoord offsets dump --raw"):
        jsonl_source.check(str(path))
    path.write_text('{"partition": 0, "offset": 1, "key": {"type": 1, "data": {}}, "value": null}\n')
    with pytest.raises(PipelineError, match=r"tells keys and values in words; groupcoord offsets dump --raw"):
        jsonl_source.check(str(path))
    for line in ('{"key": "AAEA"}', "[1]", "nonsense"):
        path.write_text(f"{line}\n")
        jsonl_source.check(str(path))

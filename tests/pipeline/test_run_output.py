"""The directory of a run: one run at a time, and what killed ones have left is put in order by the next."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from groupcoord.pipeline.errors import PipelineError
from groupcoord.pipeline.run_output import RUN, TABLES, RunOutput


def names(out: Path) -> list[str]:
    return sorted(path.name for path in out.iterdir() if not path.name.startswith("."))


def test_two_runs_at_once_do_not_mix(spark: SparkSession, tmp_path: Path) -> None:
    out = str(tmp_path / "out")
    with RunOutput(spark, out):
        with pytest.raises(PipelineError, match=rf"^another run is writing to {out}$"), RunOutput(spark, out):
            pass
        assert len(names(tmp_path / "out")) == 1  # what the first is writing
    with RunOutput(spark, out):
        pass
    assert names(tmp_path / "out") == []


def test_what_a_killed_run_has_left_is_removed(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "run-0123456789ab.partial" / TABLES / "commits").mkdir(parents=True)
    with RunOutput(spark, str(tmp_path)):
        assert len(names(tmp_path)) == 1
    assert names(tmp_path) == []


def test_a_run_that_was_killed_while_it_took_its_place_takes_it(spark: SparkSession, tmp_path: Path) -> None:
    """It had moved its tables, so that they are beside the summary of the run before."""
    left = tmp_path / "run-0123456789ab.partial"
    (left / "before-tables").mkdir(parents=True)
    (tmp_path / TABLES).mkdir()
    for path, text in ((left / RUN, "new"), (left / "report.json", "new"), (tmp_path / "report.json", "old")):
        path.write_text(text)
    with RunOutput(spark, str(tmp_path)):
        pass
    assert names(tmp_path) == ["report.json", RUN, TABLES]
    assert (tmp_path / RUN).read_text() == (tmp_path / "report.json").read_text() == "new"


def test_tables_of_somebody_else_are_left_alone(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / TABLES).mkdir()
    with pytest.raises(PipelineError, match="is there and not from a run: choose another --out"):
        RunOutput(spark, str(tmp_path)).__enter__()
    assert [path.name for path in tmp_path.iterdir()] == [TABLES]

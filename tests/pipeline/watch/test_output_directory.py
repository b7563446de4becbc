"""The directory of a watch: who may write to it, and how files come to their places, whatever happens meanwhile."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from groupcoord.pipeline.errors import PipelineError
from groupcoord.pipeline.schemas import END_OFFSETS
from groupcoord.pipeline.watch.output_directory import WatchDirectory, WatchManifest
from tests.pipeline.frames import frame

IDENTITY = {"topic": "t"}


def staged(output: WatchDirectory, spark: SparkSession, end: int) -> str:
    """One file aside with a row that says ``end``."""
    rows = frame(spark, END_OFFSETS, [{"topic": "t", "partition": 0, "end_offset": end}])
    return output.stage_file(rows, END_OFFSETS, rows=1)


def shown(out: Path) -> list[int]:
    found: list[int] = pq.ParquetFile(out / "tables" / "v" / "view.parquet").read()["end_offset"].to_pylist()
    return found


def committed(output: WatchDirectory, manifest: WatchManifest, origin: str) -> WatchManifest:
    return output.commit(replace(manifest, batch=manifest.batch + 1, moves=[(origin, "tables/v/view.parquet")]))


def test_a_view_is_replaced_and_has_no_checksum_beside_it(spark: SparkSession, tmp_path: Path) -> None:
    with WatchDirectory(spark, str(tmp_path / "out")) as output:
        manifest = output.begin("s", IDENTITY)
        manifest = committed(output, manifest, staged(output, spark, 1))
        assert shown(place_of(output)) == [1]
        committed(output, manifest, staged(output, spark, 2))
        assert shown(place_of(output)) == [2]
        assert [path.name for path in (place_of(output) / "tables" / "v").iterdir()] == ["view.parquet"]


def place_of(output: WatchDirectory) -> Path:
    return Path(output.root)


class Strict:
    """A file system that renames nothing to what is there, as HDFS."""

    def __init__(self, files: Any) -> None:
        self._files = files

    def __getattr__(self, name: str) -> Any:
        return getattr(self._files, name)

    def rename(self, source: Any, target: Any) -> bool:
        return not self._files.exists(target) and bool(self._files.rename(source, target))


def test_where_a_rename_does_not_replace_it_is_told_to(spark: SparkSession, tmp_path: Path) -> None:
    with WatchDirectory(spark, str(tmp_path)) as output:
        output._files._system = Strict(output._files._system)
        manifest = output.begin("s", IDENTITY)
        manifest = committed(output, manifest, staged(output, spark, 1))
        committed(output, manifest, staged(output, spark, 2))
    assert shown(tmp_path) == [2]
    assert json.loads((tmp_path / "watch.json").read_text())["batch"] == 1


class ObjectStore(Strict):
    """A file system in which a file appears when it is closed, and a rename to what is there is an error, as ``s3a``."""

    def hasPathCapability(self, path: Any, name: str) -> bool:  # noqa: N802 - Java's name
        del path
        return name == "fs.capability.outputstream.abortable"

    def rename(self, source: Any, target: Any) -> bool:
        if self._files.exists(target):
            raise AssertionError(f"{target} is there")
        return super().rename(source, target)

    def delete(self, path: Any, is_recursive: bool) -> bool:
        if path.getName() in {"watch.json", "view.parquet"}:
            raise AssertionError(f"{path} would be missing for a while")
        return bool(self._files.delete(path, is_recursive))


def test_in_an_object_store_a_file_is_replaced_without_a_rename_and_is_never_missing(
    spark: SparkSession, tmp_path: Path
) -> None:
    with WatchDirectory(spark, str(tmp_path)) as output:
        output._files._system = ObjectStore(output._files._system)
        manifest = output.begin("s", IDENTITY)
        manifest = committed(output, manifest, staged(output, spark, 1))
        committed(output, manifest, staged(output, spark, 2))
    assert shown(tmp_path) == [2]
    assert json.loads((tmp_path / "watch.json").read_text())["batch"] == 1


class Stop(Exception):
    pass


def stop(path: str) -> None:
    raise Stop(path)


def test_moves_that_were_not_made_are_made_at_the_next_start(spark: SparkSession, tmp_path: Path) -> None:
    with WatchDirectory(spark, str(tmp_path), before_move=stop) as output:
        manifest = output.begin("s", IDENTITY)
        origin = staged(output, spark, 1)
        with pytest.raises(Stop):
            committed(output, manifest, origin)
        assert not (tmp_path / "tables").exists()
    with WatchDirectory(spark, str(tmp_path)) as output:
        assert shown(tmp_path) == [1]
        assert output.begin("s", IDENTITY).moves == []
        assert [path.name for path in (tmp_path / ".work").iterdir()] == [output._writer]


def test_who_was_taken_over_writes_nothing_more(spark: SparkSession, tmp_path: Path) -> None:
    with WatchDirectory(spark, str(tmp_path)) as output:
        manifest = output.begin("s", IDENTITY)
        said = json.loads((tmp_path / "watch.json").read_text())
        (tmp_path / "watch.json").write_text(json.dumps({**said, "writer": "another"}))
        with pytest.raises(PipelineError, match=r"^another watch has taken over "):
            committed(output, manifest, staged(output, spark, 1))
    assert not (tmp_path / "tables").exists()


def test_directories_of_others_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    def refused() -> str:
        with pytest.raises(PipelineError) as problem, WatchDirectory(spark, str(tmp_path / "out")) as output:
            output.begin("s", IDENTITY)
        return str(problem.value)

    out = tmp_path / "out"
    out.touch()
    assert refused().endswith("/out is a file; --out wants a directory")
    out.unlink()
    (out / "tables").mkdir(parents=True)
    assert refused().endswith("/out/tables is there and not from a watch: choose another --out")
    (out / "tables").rmdir()
    (out / "checkpoint").mkdir()
    (out / "checkpoint" / "metadata").write_text('{"id": "q"}')
    assert refused().endswith("/out has a checkpoint and no watch.json: choose another --out")
    (out / "watch.json").write_text(
        WatchManifest(source="s", identity=IDENTITY, writer="w", batch=1, checkpoint="p").to_json()
    )
    assert refused() == f"the checkpoint in {out} is not the one its tables were made with: another --out"
    (out / "watch.json").write_text(WatchManifest(source="s", identity={"topic": "u"}, writer="w").to_json())
    assert refused() == f"{out} watches topic u; s is topic t: choose another --out"


def test_what_cannot_be_written_to_is_said(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with (
        pytest.raises(PipelineError, match=r"^cannot write to "),
        WatchDirectory(spark, str(tmp_path / "file" / "out")),
    ):
        pass

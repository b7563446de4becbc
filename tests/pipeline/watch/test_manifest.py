"""The manifest of a watch, and which directories of a table are merged."""

from itertools import pairwise

import pytest

from groupcoord.pipeline.errors import PipelineError
from groupcoord.pipeline.watch.output_directory import BatchDirectory, WatchManifest, directories_to_merge

MANIFEST = WatchManifest(
    source="kafka:localhost:9092",
    identity={"topic": "__consumer_offsets"},
    writer="w",
    checkpoint="c",
    batch=7,
    at="2026-11-21T12:00:00+00:00",
    records=12,
    positions={"0": 9, "1": 0},
    directories={"commits": [BatchDirectory(0, 4, 10, 1), BatchDirectory(7, 7, 2)]},
    moves=[(".work/w/1", "tables/commits/batch=7")],
)


def test_what_is_written_is_read_back() -> None:
    assert WatchManifest.from_json(MANIFEST.to_json(), "watch.json") == MANIFEST


def test_directories_are_named_for_their_batches() -> None:
    assert [directory.folder for directory in MANIFEST.directories["commits"]] == ["batch=0-4", "batch=7"]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": 2}', '{"format": 2, "directories": [], "moves": []}'])
def test_a_file_of_something_else_is_refused(text: str) -> None:
    with pytest.raises(PipelineError, match=r"^here is not what pipeline watch writes there$"):
        WatchManifest.from_json(text, "here")


def test_a_file_of_another_version_is_refused() -> None:
    with pytest.raises(PipelineError, match=r"^here was written by another version of groupcoord$"):
        WatchManifest.from_json('{"format": 1}', "here")


def test_so_many_batches_become_one_and_so_many_of_those() -> None:
    """As a counter: with three of each level merged, no level ever has more than two for long."""
    directories: list[BatchDirectory] = []
    for batch in range(200):
        directories.append(BatchDirectory(batch, batch, 1))
        while chosen := directories_to_merge(directories, 3):
            assert len(chosen) == 3
            whole = BatchDirectory(
                chosen[0].first, chosen[-1].last, sum(directory.rows for directory in chosen), chosen[0].level + 1
            )
            directories = sorted(
                [whole, *(directory for directory in directories if directory not in chosen)],
                key=lambda directory: directory.first,
            )
        assert sum(directory.rows for directory in directories) == batch + 1
        assert all(before.last + 1 == after.first for before, after in pairwise(directories))
        assert len({directory.folder for directory in directories}) == len(directories)
    assert len(directories) == 2 + 1 + 1 + 0 + 2  # the digits of 200 in base three are 2 1 1 0 2


def test_few_are_left_alone() -> None:
    assert directories_to_merge([BatchDirectory(0, 0, 1), BatchDirectory(1, 1, 1)], 3) == []
    assert directories_to_merge([], 2) == []

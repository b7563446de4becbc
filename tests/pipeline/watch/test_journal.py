import pytest

from groupcoord.pipeline.errors import PipelineError
from groupcoord.pipeline.watch.journal import Journal, Span

JOURNAL = Journal(
    source="kafka:localhost:9092",
    identity={"topic": "__consumer_offsets"},
    writer="w",
    checkpoint="c",
    batch=7,
    at="2026-11-21T12:00:00+00:00",
    records=12,
    positions={"0": 9, "1": 0},
    spans={"commits": [Span(0, 4, 10, 1), Span(7, 7, 2)]},
    moves=[(".work/w/1", "tables/commits/batch=7")],
)


def test_what_is_written_is_read_back() -> None:
    assert Journal.from_json(JOURNAL.to_json(), "watch.json") == JOURNAL


def test_directories_are_named_for_their_batches() -> None:
    assert [span.folder for span in JOURNAL.spans["commits"]] == ["batch=0-4", "batch=7"]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": 1}', '{"format": 1, "spans": [], "moves": []}'])
def test_a_file_of_something_else_is_refused(text: str) -> None:
    with pytest.raises(PipelineError, match=r"^here is not what pipeline watch writes there$"):
        Journal.from_json(text, "here")


def test_a_file_of_another_version_is_refused() -> None:
    with pytest.raises(PipelineError, match=r"^here was written by another version of groupcoord$"):
        Journal.from_json('{"format": 2}', "here")

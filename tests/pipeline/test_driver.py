"""Nothing but a few numbers comes to the driver: a run's records stay where they are, however many there are."""

import ast
from pathlib import Path

import pytest

import groupcoord.pipeline

ROOT = Path(groupcoord.pipeline.__file__).parent
COLLECTING = {"collect", "toPandas", "toLocalIterator", "toArrow", "first", "head", "tail"}
BOUNDED = {
    "run.py": 3,  # what is around the last holes, the first partitions with an open transaction, the first topics without ends
    "record_table_writer.py": 1,  # the names of the files that tasks wrote
    "run_output.py": 1,  # one line, over Spark Connect
    "spark_session.py": 1,  # a small log, whose tasks are done in the driver
    "tables/consecutive_commits.py": 1,  # at most MOST_SLOW partitions that commit rarely
    "tables/log_coverage.py": 1,  # a row for a thousand offsets
    "sources/factory.py": 1,  # which slices of segments there are
    "sources/spark_kafka_source.py": 1,  # the partitions of topics for which the cluster is asked
    "watch/batch_writer.py": 5,  # numbers for each partition of the log, table and group, the sum of lags, storms
    "report/arrow_table_reader.py": 1,  # partial results, which are bounded
}


def collects(path: Path) -> int:
    """How often ``path`` has rows of a frame brought to the driver; the functions of ``F`` do not."""
    calls = [node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.Call)]
    return sum(
        isinstance(call.func, ast.Attribute)
        and call.func.attr in COLLECTING
        and not (isinstance(call.func.value, ast.Name) and call.func.value.id == "F")
        for call in calls
    )


@pytest.mark.slow
def test_frames_are_collected_only_where_they_are_small() -> None:
    found = {path.relative_to(ROOT).as_posix(): collects(path) for path in sorted(ROOT.rglob("*.py"))}
    assert {name: number for name, number in found.items() if number} == BOUNDED

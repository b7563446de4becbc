"""What is made up is a log: batches as the plain writer makes them, and the same for the same seed."""

from pathlib import Path

import pyarrow as pa
import pytest

from groupcoord.pipeline.log_generator import (
    BATCH_RECORDS,
    START_MS,
    STEP_MS,
    LogChunk,
    chunks,
    records_of,
    write_partition,
)
from groupcoord.pipeline.sources.segment_files import read_piece, survey
from groupcoord.protocol.batches.record_batch import build_batch
from groupcoord.protocol.batches.records import Record

RECORDS = 10_030


@pytest.mark.slow
def test_batches_are_what_the_plain_writer_makes(tmp_path: Path) -> None:
    chunk = LogChunk(3, 0, RECORDS)
    made = records_of(chunk, 7)
    said = write_partition([chunk], 7, str(tmp_path))
    pairs = list(zip(made.column("key").to_pylist(), made.column("value").to_pylist(), strict=True))
    assert len({len(value or b"") for _, value in pairs}) > 3  # generations and tombstones among them
    plain = [
        build_batch(
            [
                Record(offset, START_MS + offset * STEP_MS, *pairs[offset])
                for offset in range(low, min(low + BATCH_RECORDS, RECORDS))
            ],
            leader_epoch=0,
        )
        for low in range(0, RECORDS, BATCH_RECORDS)
    ]
    written = Path(said["path"]).read_bytes()
    assert written == b"".join(plain)
    assert (said["records"], said["bytes"]) == (RECORDS, len(written))


def test_the_pipeline_reads_what_was_made(tmp_path: Path) -> None:
    wanted = [chunk for chunk in chunks(300) if chunk.partition < 2]
    for chunk in wanted:
        write_partition([chunk], 7, str(tmp_path))
    found = [batch for piece in survey(tmp_path).pieces for batch in read_piece(piece)]
    expected = [records_of(chunk, 7) for chunk in wanted]
    assert pa.Table.from_batches(found).equals(pa.Table.from_batches(expected))

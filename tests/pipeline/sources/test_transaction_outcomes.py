"""What transactions hide is found by one look at each batch, by files and over the wire alike."""

from collections.abc import Callable, Iterable
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from groupcoord.pipeline.columnar_decoder import is_of_places
from groupcoord.pipeline.sources import columnar_batch_reader, segment_files, transaction_outcomes
from groupcoord.pipeline.sources.columnar_batch_reader import headers, walk
from groupcoord.pipeline.sources.segment_files import read_piece, survey
from groupcoord.pipeline.sources.transaction_outcomes import is_aborted, transaction_ends
from groupcoord.protocol.batches.record_batch import (
    ABORT_MARKER,
    COMMIT_MARKER,
    CONTROL,
    TRANSACTIONAL,
    build_batch,
)
from groupcoord.protocol.batches.records import Record

Step = tuple[int, str]
"""A producer, and what it does: data, commit or abort; producer -1 has no transactions."""
STEPS = st.lists(st.tuples(st.integers(-1, 3), st.sampled_from(["data", "data", "commit", "abort"])), max_size=40)


def batch(offset: int, step: Step) -> bytes:
    producer, what = step
    if producer < 0:
        return build_batch([Record(offset, 1000, b"key", b"value")])
    if what == "data":
        return build_batch([Record(offset, 1000, b"key", b"value")], producer_id=producer, attributes=TRANSACTIONAL)
    kind = COMMIT_MARKER if what == "commit" else ABORT_MARKER
    marker = Record(offset, 1000, b"\0\0" + kind.to_bytes(2, "big"), bytes(6))
    return build_batch([marker], producer_id=producer, attributes=TRANSACTIONAL | CONTROL)


def plainly(steps: list[Step]) -> tuple[list[int], list[int], list[int], list[tuple[int, int]]]:
    """The offsets that are shown, aborted and open; and the aborted transactions as a broker says them."""
    shown: list[int] = []
    aborted: list[int] = []
    running: dict[int, list[int]] = {}
    transactions_: list[tuple[int, int]] = []
    for offset, (producer, what) in enumerate(steps):
        if producer < 0:
            shown.append(offset)
        elif what == "data":
            running.setdefault(producer, []).append(offset)
        else:
            data = running.pop(producer, [])
            (shown if what == "commit" else aborted).extend(data)
            if what == "abort" and data:
                transactions_.append((producer, data[0]))
    return sorted(shown), sorted(aborted), sorted(chain.from_iterable(running.values())), transactions_


def offsets(batches: Iterable[Any]) -> list[int]:
    return [offset for rows in batches for offset in rows["log_offset"].to_pylist()]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("log") / "__consumer_offsets-3"
    made.mkdir()
    return made


@pytest.mark.slow
@given(STEPS, st.integers(1, 40), st.integers(100, 600))
def test_files_hide_what_the_next_marker_of_the_producer_says(
    folder: Path, steps: list[Step], cut: int, piece_bytes: int
) -> None:
    steps = [(-1, "data"), *steps]
    batches = [batch(offset, step) for offset, step in enumerate(steps)]
    for path in folder.iterdir():
        path.unlink()
    for first in range(0, len(batches), cut):  # several files, and each in several slices
        (folder / f"{first:020d}.log").write_bytes(b"".join(batches[first : first + cut]))
    shown, aborted, is_open, _ = plainly(steps)
    found = survey(folder, piece_bytes=piece_bytes)
    read = [rows for one in found.pieces for rows in read_piece(one)]
    places = [rows for rows in read if is_of_places(rows)]
    assert offsets(rows for rows in read if not is_of_places(rows)) == shown
    assert sorted(offsets(places) + shown) == list(range(len(steps)))  # none is missing
    assert found.records == len(shown)
    said = {warning.what: warning.records for warning in found.warnings}
    assert said.get("records of aborted transactions", 0) == len(aborted)
    assert said.get("records of transactions without an end", 0) == len(is_open)


@pytest.mark.slow
@given(STEPS)
def test_what_a_broker_says_is_aborted_is_hidden(steps: list[Step]) -> None:
    data = b"".join(batch(offset, step) for offset, step in enumerate([*steps, (-1, "data")]))
    found = headers(np.frombuffer(data, np.uint8), walk(data)[0])
    _, aborted, _, transactions_ = plainly(steps)
    assert np.nonzero(is_aborted(found, transactions_))[0].tolist() == aborted
    assert np.nonzero(transaction_ends(data, found).ended_by(ABORT_MARKER))[0].tolist() == aborted


def test_a_marker_that_cannot_be_read_ends_nothing() -> None:
    marker = bytearray(batch(1, (5, "abort")))
    marker[-1] ^= 1
    data = batch(0, (5, "data")) + bytes(marker)
    found = headers(np.frombuffer(data, np.uint8), walk(data)[0])
    assert transaction_ends(data, found).end.tolist() == [2, 2]


def test_the_survey_looks_at_each_batch_a_few_times_however_many_transactions_there_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "__consumer_offsets-0"
    log.mkdir()
    steps = [(number % 7, what) for number in range(400) for what in ("data", "abort")]
    (log / f"{0:020d}.log").write_bytes(b"".join(batch(offset, step) for offset, step in enumerate(steps)))
    looked_at = 0

    def counting(look: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def count(found: Any) -> Any:
            nonlocal looked_at
            looked_at += len(found.start)
            return look(found)

        return count

    for name in ("is_control", "is_transactional"):
        for module in (segment_files, transaction_outcomes):
            monkeypatch.setattr(module, name, counting(getattr(columnar_batch_reader, name)))
    read = [rows for one in survey(tmp_path).pieces for rows in read_piece(one)]
    assert len(offsets(read)) == len(steps)
    assert all(map(is_of_places, read))
    assert looked_at < 20 * len(steps)


def test_a_broker_may_tell_of_more_transactions_than_it_sends_batches() -> None:
    """Those of other producers go on from before what it sends to behind it."""
    data = batch(10, (1, "data"))
    found = headers(np.frombuffer(data, np.uint8), [0])
    assert is_aborted(found, [(5, 2), (1, 3), (7, 4)]).tolist() == [True]
    assert is_aborted(found, [(5, 2), (7, 4)]).tolist() == [False]

"""A short history dies at each of its file operations; and an attack notices what is broken."""

import random
from pathlib import Path

import pytest

from groupcoord.storage import cluster_metadata_file
from tests.reliability.crash_points import KINDS, attack, fault_at, operations, try_point

STEPS = 6
SHARES = 4


@pytest.mark.slow
@pytest.mark.parametrize("share", range(SHARES))
def test_whatever_happens_at_any_operation_what_was_acknowledged_is_there(tmp_path: Path, share: int) -> None:
    directory, history = tmp_path / "data", "short.1"
    rng = random.Random(share)
    count = operations(directory, history, STEPS)
    assert count > 100
    for at in range(1 + share, count + 1, SHARES):
        kind = rng.choice(KINDS)
        fault = fault_at(at, kind, rng)
        assert try_point(directory, history, fault, rng, power_cut=kind == "power cut", steps=STEPS) is None


@pytest.mark.slow
def test_an_attack_says_what_it_tried() -> None:
    outcome = attack(40, 3)
    assert outcome.problems == ()
    assert outcome.tried.startswith("40 file operations of 1 histories: ")


@pytest.mark.slow
def test_an_attack_notices_a_change_that_was_answered_and_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_metadata_file, "write_at", lambda *_: None)
    outcome = attack(100, 3)
    assert outcome.problems
    assert outcome.problems[0].startswith("history 3.1, ")

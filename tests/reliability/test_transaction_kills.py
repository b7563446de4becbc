"""A small version of the attack by ``kill -9`` inside transactions, and that it notices what is missing or stuck."""

import random
from pathlib import Path

import pytest

from tests.reliability.exactly_once import Fate
from tests.reliability.forks import Forks
from tests.reliability.transaction_kills import TransactionLives, attack

pytestmark = [pytest.mark.slow, pytest.mark.clients]


def test_no_transaction_is_lost_or_read_in_part() -> None:
    outcome = attack(8, seed=5)
    assert outcome.problems == ()
    assert "8 kills in 1 directories, " in outcome.tried


@pytest.mark.parametrize(
    ("log", "problem"),
    [
        ("output-*", "are read, and it wrote"),
        ("__consumer_offsets-*", "the group's offset is -1"),
    ],
)
def test_what_is_gone_from_one_of_the_logs_is_noticed(tmp_path: Path, log: str, problem: str) -> None:
    with Forks() as forks:
        lives = TransactionLives(forks, tmp_path, random.Random(1))
        committed = 0
        while not committed:
            assert list(lives.kill_by_force(lives.kills + 2)) == []
            committed = min(client.count(Fate.COMMITTED) for client in lives.clients if not client.abandons)
        for path in (tmp_path / "data").glob(f"{log}/*"):
            if path.suffix in {".log", ".snapshot", ".index", ".timeindex", ".txnindex"}:
                path.unlink()
        with pytest.raises(AssertionError, match=problem):
            assert not list(lives.kill_by_force(lives.kills))

"""A small version of the attack by ``kill -9``, and that it notices what is missing."""

import random
import shutil
from pathlib import Path

import pytest

from tests.reliability.books import Plain
from tests.reliability.forks import Forks
from tests.reliability.kills import Lives, attack
from tests.reliability.served import NotServing
from tests.reliability.talk import Talk

pytestmark = [pytest.mark.slow, pytest.mark.clients]


def test_nothing_acknowledged_is_lost() -> None:
    assert attack(20, seed=5).problems == ()


def test_a_batch_that_is_gone_is_noticed(tmp_path: Path) -> None:
    with Forks() as forks:
        lives = Lives(forks, tmp_path, random.Random(1))
        plain = lives.clients[0]
        assert isinstance(plain, Plain)
        while not plain.acknowledged and lives.kills < 60:  # on a busy machine a life may end before its first answer
            assert list(lives.kill_by_force(lives.kills + 3)) == []
        for log in (tmp_path / "data" / "plain-0").glob("*.log"):
            log.write_bytes(b"")
        with forks.serving(lives.arguments, lives.log) as address, Talk(address) as talk:
            gone = [problem for problem in plain.check(talk) if problem.endswith("is gone")]
    assert len(gone) == len(plain.acknowledged) > 0


def test_a_directory_that_does_not_start_is_noticed(tmp_path: Path) -> None:
    with Forks() as forks:
        lives = Lives(forks, tmp_path, random.Random(1))
        assert list(lives.kill_by_force(2)) == []
        shutil.copy(tmp_path / "log", tmp_path / "data" / "meta.properties")
        with pytest.raises(NotServing, match="ended with 1"):
            list(lives.kill_by_force(lives.kills + 3))

import runpy
import sys
from pathlib import Path

import pytest

import groupcoord.simulation
from groupcoord.simulation.__main__ import main
from tests.simulation.planted_defects import PLANTED_DEFECTS

pytestmark = pytest.mark.slow


def test_seeds_and_how_fast(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--seeds", "2", "--first", "5"]) == 0
    assert "2 seeds from 5 on: all invariants held in " in (said := capsys.readouterr().out)
    assert "group-hours a minute" in said


def test_a_failure_is_a_command(capsys: pytest.CaptureFixture[str]) -> None:
    with PLANTED_DEFECTS["leader-stays"].applied():
        assert main(["--seeds", "9"]) == 1
        said = capsys.readouterr().out
        assert ": leader-is-member at " in said
        again = said.splitlines()[-1].removeprefix("again: python -m groupcoord.simulation ").split()
        assert main([argument.strip("'") for argument in again]) == 1
    assert "violated: leader-is-member" in capsys.readouterr().out


def test_one_seed_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--seed", "1", "--keep", ""]) == 0
    assert "all invariants held" in (said := capsys.readouterr().out)
    assert "has to join again" in said


@pytest.mark.parametrize("life", ["classic", "consumer", "transactions", "producers"])
def test_a_failure_of_the_code_itself(capsys: pytest.CaptureFixture[str], life: str) -> None:
    with pytest.MonkeyPatch.context() as patching:
        patching.setattr("groupcoord.simulation.brokers.SimulatedBrokers.reload", None)
        patching.setattr("groupcoord.simulation.brokers.SimulatedBrokers.move", None)
        assert main(["--seeds", "60", "--life", life]) == 1
    assert "no-crash at " in (said := capsys.readouterr().out)
    assert (f"--life {life}" in said) == (life != "classic")


def test_as_a_module(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["simulation", "--seed", "1", "--keep", ""])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(Path(groupcoord.simulation.__file__).with_name("__main__.py")), run_name="__main__")
    assert ended.value.code == 0

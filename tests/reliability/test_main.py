"""What ``make break`` runs, prints and returns."""

import inspect
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

from tests.reliability import __main__ as command
from tests.reliability.__main__ import ATTACKS, Attack, main
from tests.reliability.outcome import Outcome

FOLDER = Path(__file__).parent


def test_every_attack_in_the_folder_is_run_and_there_are_no_others() -> None:
    there = {path.stem for path in FOLDER.glob("*.py") if "\ndef attack(" in path.read_text(encoding="utf-8")}
    assert {attack.name for attack in ATTACKS} == there


@pytest.mark.parametrize("name", [attack.name for attack in ATTACKS])
def test_an_attack_takes_a_count_and_a_seed(name: str) -> None:
    attack: Callable[[int, int], Outcome] = import_module(f"tests.reliability.{name}").attack
    count, seed, *others = inspect.signature(attack).parameters.values()
    assert (count.name, seed.name) == ("count", "seed")
    assert all(other.default is not other.empty for other in others)


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int, int]]:
    """The attacks that were made, with count and seed: ``calm`` is one that finds nothing, ``bad`` finds two problems."""
    calls: list[tuple[str, int, int]] = []

    def attack_of(name: str, *problems: str) -> None:
        def attack(count: int, seed: int) -> Outcome:
            calls.append((name, count, seed))
            return Outcome(tried=f"{count} times", result="seen", problems=problems)

        module = ModuleType(f"tests.reliability.{name}")
        vars(module)["attack"] = attack
        monkeypatch.setitem(sys.modules, module.__name__, module)

    attack_of("calm")
    attack_of("bad", "seed 3: one", "seed 3: two")
    attack_of("soak")
    attacks = (Attack("calm", 1_000, "a"), Attack("bad", 20, "b"), Attack("soak", 10, "c"), Attack("gone", 1, "d"))
    monkeypatch.setattr(command, "ATTACKS", attacks)
    return calls


def test_what_finds_nothing_is_a_row_and_code_0(
    made: list[tuple[str, int, int]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["calm", "--scale", "0.01", "--seed", "7"]) == 0
    assert made == [("calm", 10, 7)]
    assert capsys.readouterr().out.splitlines() == [
        "| attack | tried | result | problems | seconds |",
        "|---|---|---|---|---|",
        "| calm | 10 times | seen | 0 | 0 |",
    ]


def test_every_problem_is_told_with_how_to_see_it_again(
    made: list[tuple[str, int, int]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bad", "calm", "--seed", "3"]) == 1
    assert made == [("bad", 20, 3), ("calm", 1_000, 3)]
    assert capsys.readouterr().out.splitlines()[2:] == [
        "| bad | 20 times | seen | 2 | 0 |",
        "| calm | 1000 times | seen | 0 | 0 |",
        "",
        "bad, again: python -m tests.reliability bad --scale 1 --seed 3",
        "- seed 3: one",
        "- seed 3: two",
    ]


def test_an_attack_that_fails_itself_is_a_problem_and_the_others_are_made(
    made: list[tuple[str, int, int]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["gone", "calm"]) == 1
    assert made == [("calm", 1_000, 1)]
    assert "the attack itself failed" in capsys.readouterr().out


def test_a_soak_takes_the_minutes_that_it_is_told(made: list[tuple[str, int, int]]) -> None:
    main(["soak", "--scale", "0.1", "--soak-minutes", "60"])
    main(["soak", "--scale", "0.1"])
    assert made == [("soak", 60, 1), ("soak", 1, 1)]


def test_the_list_says_what_there_is(made: list[tuple[str, int, int]], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list"]) == 0
    assert capsys.readouterr().out.splitlines()[0] == f"{'calm':<25}    1,000  a"
    assert made == []


def test_an_attack_that_there_is_not_is_a_mistake(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["kils"])
    assert "there is no attack kils; there are kills" in capsys.readouterr().err

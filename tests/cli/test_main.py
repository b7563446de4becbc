"""The command line ends as a good Unix program does, whatever the subcommand."""

import os
import subprocess
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from groupcoord.cli import main as main_module
from groupcoord.cli.main import COMMANDS, main


def command(monkeypatch: pytest.MonkeyPatch, run: Callable[[Any], int]) -> None:
    """``groupcoord probe`` does ``run``."""
    module = types.ModuleType("groupcoord.cli.probe")
    module.configure = lambda parser: parser.add_argument("--loud", action="store_true")  # type: ignore[attr-defined]
    module.run = run  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "groupcoord.cli.probe", module)
    monkeypatch.setitem(COMMANDS, "probe", "a command of this test")


def ended(*argv: str) -> object:
    """The exit code of a command line that argparse ends."""
    with pytest.raises(SystemExit) as exit_:
        main(argv)
    return exit_.value.code


def test_a_command_gets_its_arguments_and_gives_the_code(monkeypatch: pytest.MonkeyPatch) -> None:
    command(monkeypatch, lambda arguments: 7 if arguments.loud else 3)
    assert main(["probe"]) == 3
    assert main(["probe", "--loud"]) == 7
    monkeypatch.setattr(sys, "argv", ["groupcoord", "probe", "--loud"])
    assert main() == 7


def test_no_command_is_a_mistake(capsys: pytest.CaptureFixture[str]) -> None:
    assert ended() == 2
    said = capsys.readouterr().err
    assert said.startswith("groupcoord: the following arguments are required: COMMAND, one of serve, cluster, demo, ")
    assert said.endswith("; groupcoord --help says more\n")


def test_an_unknown_command_is_a_mistake(capsys: pytest.CaptureFixture[str]) -> None:
    assert ended("sserve") == 2
    assert "invalid choice: 'sserve'" in capsys.readouterr().err


def test_an_unknown_option_is_a_mistake(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    command(monkeypatch, lambda _: 0)
    assert ended("probe", "--quiet") == 2
    assert "there is no option --quiet" in capsys.readouterr().err


def test_help_names_the_commands(capsys: pytest.CaptureFixture[str]) -> None:
    assert ended("--help") == 0
    shown = capsys.readouterr().out
    for name, summary in COMMANDS.items():
        assert name in shown
        assert summary in shown


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert ended("--version") == 0
    assert capsys.readouterr().out.startswith("groupcoord 0.")


@pytest.mark.parametrize("name", list(COMMANDS))
def test_every_command_can_be_configured(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert ended(name, "--help") == 0
    assert f"usage: groupcoord {name}" in capsys.readouterr().out


def test_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_: Any) -> int:
        raise KeyboardInterrupt

    command(monkeypatch, interrupted)
    assert main(["probe"]) == 130


def test_nobody_reads_the_output(monkeypatch: pytest.MonkeyPatch) -> None:
    def unread(_: Any) -> int:
        raise BrokenPipeError

    forgotten: list[None] = []
    monkeypatch.setattr(main_module, "forget_output", lambda: forgotten.append(None))
    command(monkeypatch, unread)
    assert main(["probe"]) == 141
    assert forgotten == [None]


def test_without_stdout(monkeypatch: pytest.MonkeyPatch) -> None:
    command(monkeypatch, lambda _: 0)
    monkeypatch.setattr(sys, "stdout", None)
    assert main(["probe"]) == 0


def python(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.slow
def test_the_help_imports_no_command() -> None:
    source = "import sys; sys.argv = ['groupcoord', '--help']; from groupcoord.cli.main import main\n"
    source += "try: main()\nexcept SystemExit: print('asyncio' in sys.modules, 'kio' in sys.modules)"
    assert python("-c", source).stdout.endswith("\nFalse False\n")


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [["--version"], ["serve", "--help"]])
def test_a_pipe_that_nobody_reads_is_no_traceback(arguments: list[str]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as unread:
        finished = subprocess.run(
            [sys.executable, "-m", "groupcoord", *arguments],
            stdout=unread,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
            check=False,
        )
    assert finished.returncode in {0, 141}  # argparse does not mind
    assert finished.stderr == ""


@pytest.mark.slow
def test_as_a_module() -> None:
    finished = python("-m", "groupcoord", "--version")
    assert (finished.returncode, finished.stdout[:13]) == (0, "groupcoord 0.")


@pytest.mark.slow
def test_a_full_disk_is_one_sentence() -> None:
    with Path("/dev/full").open("w") as full:
        finished = subprocess.run(
            [sys.executable, "-m", "groupcoord", "assign", "--members", "2", "--topics", "orders:2"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
            check=False,
        )
    assert finished.returncode == 1
    assert finished.stderr == "groupcoord: cannot write the output: No space left on device\n"


def test_any_other_error_of_the_system_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: Any) -> int:
        raise PermissionError("not this one")

    command(monkeypatch, broken)
    with pytest.raises(PermissionError):
        main(["probe"])


@pytest.mark.slow
def test_a_locale_without_utf_8_shows_the_code_of_a_character() -> None:
    finished = subprocess.run(
        [sys.executable, "-m", "groupcoord", "assign", "--help"],
        env={**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (finished.returncode, finished.stderr) == (0, "")
    assert r"NAME[:TOPIC+\u2026]" in finished.stdout


def test_dashes_make_no_option_similar_to_another(capsys: pytest.CaptureFixture[str]) -> None:
    assert ended("proxy", "--to", "kafka:9092", "--port", "19092") == 2
    assert capsys.readouterr().err == (
        "groupcoord proxy: there is no option --port; groupcoord proxy --help names those there are\n"
    )

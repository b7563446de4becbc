"""``groupcoord pipeline demo`` and ``report`` before anything is read: what is missing is said; browsers open for people."""

from importlib.util import find_spec
from pathlib import Path

import pytest

from groupcoord.cli import pipeline
from groupcoord.cli.main import main


class Terminal:
    """Somebody looks, or nobody does."""

    def __init__(self, is_terminal: bool) -> None:
        self._is_terminal = is_terminal

    def isatty(self) -> bool:
        return self._is_terminal


@pytest.mark.parametrize(
    ("platform", "environment", "is_terminal", "expected"),
    [
        ("linux", {"DISPLAY": ":0"}, True, True),
        ("linux", {"WAYLAND_DISPLAY": "wayland-0"}, True, True),
        ("linux", {}, True, False),
        ("linux", {"DISPLAY": ":0"}, False, False),
        ("linux", {"DISPLAY": ":0", "CI": "true"}, True, False),
        ("darwin", {}, True, True),
        ("darwin", {"CI": "1"}, True, False),
    ],
)
def test_a_browser_opens_where_somebody_looks_and_never_in_a_ci(
    monkeypatch: pytest.MonkeyPatch, platform: str, environment: dict[str, str], is_terminal: bool, expected: bool
) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "CI"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("groupcoord.cli.pipeline.sys.platform", platform)
    monkeypatch.setattr("groupcoord.cli.pipeline.sys.stdout", Terminal(is_terminal))
    found = pipeline.has_display()
    monkeypatch.undo()
    assert found is expected


def test_the_demo_says_which_libraries_it_lacks(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("groupcoord.cli.pipeline.find_spec", find_nothing_missing)
    monkeypatch.setattr(pipeline, "missing_libraries", lambda: ["kafka-python"])
    assert main(["pipeline", "demo"]) == 1
    assert capsys.readouterr().err == (
        "groupcoord pipeline: not installed: kafka-python; pip install 'groupcoord[client]' installs all it needs\n"
    )


def test_a_report_needs_no_spark(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr("groupcoord.cli.pipeline.find_spec", lambda name: None)
    assert main(["pipeline", "report", str(tmp_path / "nowhere")]) == 1
    assert capsys.readouterr().err == f"groupcoord pipeline: there is no directory {tmp_path}/nowhere\n"


def find_nothing_missing(name: str) -> object:
    """As if everything were installed."""
    return find_spec("json")

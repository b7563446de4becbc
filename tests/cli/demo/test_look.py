import io

import pytest

from groupcoord.cli.demo.look import WIDTH, console
from groupcoord.cli.demo.stage import Stage


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def colourful(stream: io.StringIO) -> str:
    stage = Stage(console(stream), start_ms=0)
    stage.chapter("One", "what")
    stage.line(0, "confluent", "asks aiokafka", "group")
    return stream.getvalue()


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "COLORTERM", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")


def test_a_terminal_gets_colour() -> None:
    text = colourful(Terminal())
    assert "\x1b[35mconfluent     \x1b[0masks \x1b[32maiokafka\x1b[0m\n" in text


def test_a_terminal_with_no_color_gets_not_one_control_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    text = colourful(Terminal())
    assert "confluent     asks aiokafka" in text
    assert "\x1b" not in text


def test_a_pipe_gets_not_one_control_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    text = colourful(io.StringIO())
    assert "confluent     asks aiokafka" in text
    assert "\x1b" not in text


@pytest.mark.parametrize(("columns", "width"), [("80", 80), ("100", 100), ("220", WIDTH)])
def test_a_terminal_is_used_up_to_a_hundred_columns(monkeypatch: pytest.MonkeyPatch, columns: str, width: int) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    assert console(Terminal()).width == width


def test_a_pipe_is_a_hundred_columns_wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    assert console(io.StringIO()).width == WIDTH


class Closed(io.StringIO):
    def write(self, text: str) -> int:
        raise BrokenPipeError

    def flush(self) -> None:
        raise BrokenPipeError


def test_a_closed_pipe_is_reported_to_whoever_writes() -> None:
    with pytest.raises(BrokenPipeError):
        colourful(Closed())

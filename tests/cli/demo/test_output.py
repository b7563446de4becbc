import io

import pytest

from groupcoord.cli.demo.output import GLOSSARY, WIDTH, DemoOutput, Glossary, console, rows
from tests.cli.demo.support import Screen


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def colourful(stream: io.StringIO) -> str:
    output = DemoOutput(console(stream), start_ms=0)
    output.chapter("One", "what")
    output.line(0, "confluent", "asks aiokafka", "group")
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


def test_a_line_has_time_actor_and_text_and_hangs() -> None:
    screen = Screen()
    screen.output.line(12_345, "confluent", "reads " * 20)
    first, second = screen.text.splitlines()
    assert first.startswith("12.35  confluent     reads reads")
    assert second.startswith(" " * 21 + "reads")


def test_words_are_explained_where_they_come_up_first() -> None:
    screen = Screen()
    screen.output.line(0, "confluent", "asks", "JoinGroup")
    screen.output.line(0, "aiokafka", "asks", "JoinGroup")
    assert screen.text.count("│ JoinGroup: the request to be a member of a group.") == 1


def test_a_word_without_a_meaning_is_a_mistake() -> None:
    with pytest.raises(KeyError):
        Glossary().explain("zookeeper")


def test_explanations_are_short() -> None:
    assert not [word for word, meaning in GLOSSARY.items() if len(f"{word}: {meaning}") > 3 * 77]


def test_chapters_are_numbered() -> None:
    screen = Screen()
    screen.output.chapter("One", "What to look out for.")
    screen.output.chapter("Two")
    heads = [line for line in screen.text.splitlines() if line.startswith("━━")]
    assert [head.rstrip("━") for head in heads] == ["━━ 1  One ", "━━ 2  Two "]
    assert {len(head) for head in heads} == {100}


def test_nothing_ends_with_spaces_and_no_two_lines_in_a_row_are_empty() -> None:
    screen = Screen()
    screen.output.title("A title", "and more")
    screen.output.show(rows([("a", "b"), ("longer", "b")]))
    screen.output.chapter("One")
    screen.output.say("plain", style="bold")
    screen.output.under("below", rows([("x",)]))
    assert not [line for line in screen.text.splitlines() if line != line.rstrip()]
    assert "\n\n\n" not in screen.text
    assert "longer  b" in screen.text

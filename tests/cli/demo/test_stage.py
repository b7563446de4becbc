import pytest

from groupcoord.cli.demo.stage import rows
from groupcoord.cli.demo.words import WORDS, Glossary
from tests.cli.demo.support import Screen


def test_a_line_has_time_actor_and_text_and_hangs() -> None:
    screen = Screen()
    screen.stage.line(12_345, "confluent", "reads " * 20)
    first, second = screen.text.splitlines()
    assert first.startswith("12.35  confluent     reads reads")
    assert second.startswith(" " * 21 + "reads")


def test_words_are_explained_where_they_come_up_first() -> None:
    screen = Screen()
    screen.stage.line(0, "confluent", "asks", "JoinGroup")
    screen.stage.line(0, "aiokafka", "asks", "JoinGroup")
    assert screen.text.count("│ JoinGroup: the request to be a member of a group.") == 1


def test_a_word_without_a_meaning_is_a_mistake() -> None:
    with pytest.raises(KeyError):
        Glossary().explain("zookeeper")


def test_explanations_are_short() -> None:
    assert not [word for word, meaning in WORDS.items() if len(f"{word}: {meaning}") > 3 * 77]


def test_chapters_are_numbered() -> None:
    screen = Screen()
    screen.stage.chapter("One", "What to look out for.")
    screen.stage.chapter("Two")
    heads = [line for line in screen.text.splitlines() if line.startswith("━━")]
    assert [head.rstrip("━") for head in heads] == ["━━ 1  One ", "━━ 2  Two "]
    assert {len(head) for head in heads} == {100}


def test_nothing_ends_with_spaces_and_no_two_lines_in_a_row_are_empty() -> None:
    screen = Screen()
    screen.stage.title("A title", "and more")
    screen.stage.show(rows([("a", "b"), ("longer", "b")]))
    screen.stage.chapter("One")
    screen.stage.say("plain", style="bold")
    screen.stage.under("below", rows([("x",)]))
    assert not [line for line in screen.text.splitlines() if line != line.rstrip()]
    assert "\n\n\n" not in screen.text
    assert "longer  b" in screen.text

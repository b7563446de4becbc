"""Every lesson is true: each of its steps leads to what it says, and says why."""

import dataclasses
import inspect
from pathlib import Path

import pytest

from groupcoord.playground.lesson import Lesson, LessonError, LessonRun, lessons, parse
from groupcoord.playground.playground import ACTIONS

DOCS = Path(__file__).parents[2] / "docs"

STEP = """
[[steps]]
title = "One"
text = "It begins."
"""
HEAD = 'title = "A lesson"\nsummary = "Short."\nchapter = "trace.md"\n'


@pytest.mark.slow
@pytest.mark.parametrize("name", lessons())
def test_each_step_of_a_lesson_leads_to_what_it_says(name: str) -> None:
    run = LessonRun(lessons()[name])
    for step in run.lesson.steps:
        found = run.step()
        assert [each["text"] for each in found["expectations"] if not each["holds"]] == [], step.title
        assert bool(found["why"]) == bool(step.why), step.title
        assert all(run.playground.last_seq >= each["seq"] >= run.first_seq for each in found["entries"])
    with pytest.raises(IndexError):
        run.step()


@pytest.mark.parametrize("name", lessons())
def test_each_lesson_is_told_in_a_chapter_that_there_is_and_says_why(name: str) -> None:
    lesson = lessons()[name]
    assert (DOCS / lesson.chapter).is_file()
    assert any(step.why for step in lesson.steps)
    assert lesson.outline()["steps"][0]["title"] == lesson.steps[0].title


def test_an_expectation_that_does_not_hold_is_told() -> None:
    wrong = """
actions = [{ do = "commit", member = "a", offsets = { orders-0 = 1 } }]
expect = [
  { trace = "nobody says this" },
  { untraced = "commits orders-0 at 1" },
  { at = "members.a.owns.count", is = 7 },
  { at = "members.a.owns.9", is = 7 },
  { at = "members.b.owns", is = [] },
  { answer = "ILLEGAL_GENERATION" },
]
why = { group = "app", says = "nobody came" }
"""
    first = STEP + 'actions = [{ do = "add_member", group = "app", topics = ["orders"], name = "a" }]\n'
    run = LessonRun(parse("wrong", HEAD + first + STEP + wrong))
    run.step()
    found = run.step()
    assert {each["text"]: each["holds"] for each in found["expectations"]} == {
        "the trace says: nobody says this": False,
        "the trace does not say: commits orders-0 at 1": False,
        "members.a.owns.count is 7": False,
        "members.a.owns.9 is 7": False,
        "members.b.owns is []": False,
        "the answer is ILLEGAL_GENERATION": False,
        "why() says: nobody came": False,
    }


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("title =", "lesson x: this is not TOML"),
        (HEAD, "lesson x: steps is missing"),
        (
            HEAD + "author = 1\n" + STEP,
            "lesson x: there is no field author; there is chapter, setup, steps, summary, title",
        ),
        (HEAD + '[[steps]]\ntitle = "One"\n', "lesson x, step 1: text is missing"),
        (HEAD + STEP + 'why = { group = "app" }', "lesson x, step 1: why needs says"),
        (HEAD + STEP + 'expect = [{ at = "groups" }]', "is not an expectation: trace, untraced, answer, or at with is"),
        (HEAD + STEP + 'expect = [{ trace = "a", answer = "b" }]', "is not an expectation"),
    ],
)
def test_what_is_no_lesson_is_refused_with_what_would_be_right(text: str, problem: str) -> None:
    with pytest.raises(LessonError) as refused:
        parse("x", text)
    assert problem in str(refused.value)


def test_a_step_whose_action_cannot_be_says_so() -> None:
    run = LessonRun(parse("x", HEAD + STEP + 'actions = [{ group = "app" }]'))
    with pytest.raises(ValueError, match="is not an action: do says which"):
        run.step()


def test_every_action_is_described() -> None:
    for name, action in ACTIONS.items():
        assert inspect.getdoc(action), name


@pytest.mark.slow
def test_lessons_are_the_same_each_time() -> None:
    def told(lesson: Lesson) -> list[object]:
        run = LessonRun(lesson)
        return [run.step()["entries"] for _ in lesson.steps]

    lesson = lessons()["fenced-transaction"]
    assert told(lesson) == told(dataclasses.replace(lesson))

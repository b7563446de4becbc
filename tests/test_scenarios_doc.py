"""Every story of tests/scenarios says where it is from and what is right, and docs/scenarios.md lists it."""

import pytest

from tools import scenarios
from tools.scenarios import Thread

SOURCE = '''"""Commits: who may."""

async def test_a_late_one(cluster, app):
    """one/repo#12 "It is late"
    other.org/re-po#3 "A title that is "quoted", and
    goes on | here"
    one/repo#4 'A "quoted" one'

    It happened.

    Right: it is
    refused.
    """

async def helper(): ...
'''


def test_a_story_is_read_from_its_docstring() -> None:
    part = scenarios.part("test_x.py", SOURCE)
    (story,) = part.stories
    assert (part.title, story.name, story.right, story.on_both) == (
        "Commits: who may",
        "a late one",
        "it is refused.",
        True,
    )
    assert story.threads == (
        Thread("one/repo", 12, "It is late"),
        Thread("other.org/re-po", 3, 'A title that is "quoted", and goes on | here'),
        Thread("one/repo", 4, 'A "quoted" one'),
    )
    assert scenarios.summary([part]).startswith("1 stories from 3 threads of 2 repositories; 1 of them")
    text = scenarios.tables([part])
    assert "### Commits: who may\n" in text
    assert "[one/repo#12](https://github.com/one/repo/issues/12) It is late<br>" in text
    assert "goes on \\| here<br>" in text
    assert text.endswith('A "quoted" one | yes |\n')


@pytest.mark.parametrize(
    ("docstring", "problem"),
    [
        ("", "test_x ends without `Right: ...`"),
        ('a/b#1 "t"\n\nIt happened.', "test_x ends without `Right: ...`"),
        ("It happened.\n\nRight: it is.", "does not begin with lines like"),
        ('a/b#1 "t"\nc/d#2\n\nRight: it is.', "does not begin with lines like .*: c/d#2"),
    ],
)
def test_a_docstring_that_tells_too_little_is_refused(docstring: str, problem: str) -> None:
    source = f"def test_x(kafka):\n    {docstring!r}\n"
    with pytest.raises(ValueError, match=problem):
        scenarios.part("test_y.py", source)


def test_there_are_stories_of_both_kinds() -> None:
    stories = [story for part in scenarios.of_sources() for story in part.stories]
    assert len(stories) >= 40
    assert {story.on_both for story in stories} == {True, False}
    assert len({(story.file, story.name) for story in stories}) == len(stories)

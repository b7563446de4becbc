"""What producers, consumers, groups, transactions and administrators see of brokers that fail: groupcoord answers as three real
brokers did."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.conformance.trio_recordings import STORIES, as_recorded, recorded, told_by_groupcoord, told_by_kafka

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("story", STORIES)
def test_groupcoord_answers_as_was_recorded(story: str) -> None:
    expected, seen = recorded(story), list[str]()

    def look(step: str, find: Callable[[], Any], _settles: bool) -> None:
        seen.append(step)
        assert as_recorded(find()) == expected[step], step

    told_by_groupcoord(story, look)
    assert seen == list(expected)


@pytest.mark.real_kafka
@pytest.mark.parametrize("story", STORIES)
def test_real_brokers_answer_as_was_recorded(story: str) -> None:
    assert told_by_kafka(story, recorded(story)) == recorded(story)

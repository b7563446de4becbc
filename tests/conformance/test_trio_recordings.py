"""What producers, consumers, groups, transactions and administrators see of brokers that fail: groupcoord answers as three real
brokers did."""

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest

from tests.conformance.trio_recordings import STORIES, Answers, RealTrios, as_recorded, recorded, told_by_groupcoord
from tests.conformance.trio_story import errors_in

pytestmark = [pytest.mark.slow, pytest.mark.minutes(3)]
AT_A_TIME = 2
"""So many stories are told to real brokers at the same time, to three each: they mostly wait."""


@pytest.mark.parametrize("story", STORIES)
def test_groupcoord_answers_as_was_recorded(story: str) -> None:
    expected, seen = recorded(story), list[str]()
    deviations: Mapping[str, list[str]] = getattr(STORIES[story], "DEVIATIONS", {})

    def look(step: str, find: Callable[[], Any], _settles: bool) -> None:
        seen.append(step)
        answer, name = as_recorded(find()), step.partition(" ")[2]
        if name in deviations:
            assert (errors_in(answer), answer != expected[step]) == (deviations[name], True), step
        else:
            assert answer == expected[step], step

    told_by_groupcoord(story, look)
    assert seen == list(expected)


@pytest.fixture(scope="module")
def told_by_kafka(request: pytest.FixtureRequest) -> Iterator[Mapping[str, Future[Answers]]]:
    """What real brokers answer in those stories that this run has chosen."""
    tests = (item for item in request.session.items if isinstance(item, pytest.Function))
    chosen = {test.callspec.params["story"] for test in tests if "told_by_kafka" in test.fixturenames}
    with RealTrios() as trios, ThreadPoolExecutor(AT_A_TIME) as pool:
        yield {story: pool.submit(trios.tell, story, recorded(story)) for story in STORIES if story in chosen}


@pytest.mark.real_kafka
@pytest.mark.kafka_alone
@pytest.mark.parametrize("story", STORIES)
def test_real_brokers_answer_as_was_recorded(story: str, told_by_kafka: Mapping[str, Future[Answers]]) -> None:
    assert told_by_kafka[story].result() == recorded(story)

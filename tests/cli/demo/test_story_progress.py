import asyncio

import pytest

from groupcoord.cli.demo.observed_group import ObservedGroup
from groupcoord.cli.demo.story_progress import StoryError, StoryProgress
from groupcoord.core.events import Event
from tests.cli.demo.narration import life
from tests.cli.demo.support import GROUP, TOPIC

pytestmark = pytest.mark.asyncio


def progress(told: list[Event] | None = None) -> StoryProgress:
    def tell(event: Event) -> bool:
        if told is None:
            raise OSError("the screen is broken")
        told.append(event)
        return True

    return StoryProgress(ObservedGroup(GROUP, TOPIC), tell, breath_s=0)


async def test_events_become_facts_at_once_and_are_told_in_order() -> None:
    told: list[Event] = []
    behind = progress(told)
    for event in life():
        behind.happened(event)
    assert (behind.observed.generation, told) == (6, [])
    behind.begin()
    await behind.wait_until_told()
    assert told == life()
    await behind.end()


async def test_who_waits_is_woken_by_news() -> None:
    behind = progress([])
    waiting = asyncio.create_task(behind.until("a record", lambda: bool(behind.observed.sightings)))
    await asyncio.wait([waiting], timeout=0)
    assert behind.waiting_for == "a record"
    behind.news()
    await asyncio.wait([waiting], timeout=0)
    assert not waiting.done()
    behind.read("confluent", b'[[0, 0, "ada"]]')
    await asyncio.wait_for(waiting, 5)


async def test_what_is_so_already_is_not_waited_for() -> None:
    await progress([]).until("nothing", lambda: True)


async def test_a_screen_that_breaks_ends_the_story_and_not_the_telling() -> None:
    behind = progress(None)
    behind.begin()
    for event in life():
        behind.happened(event)
    await asyncio.wait_for(behind.wait_until_told(), 5)
    with pytest.raises(OSError, match="the screen is broken"):
        await behind.until("anything", lambda: True)
    await behind.end()


async def test_work_beside_the_story_that_fails_ends_the_story() -> None:
    async def work() -> None:
        raise ValueError("no more paper")

    behind = progress([])
    task = behind.run("printing", work())
    with pytest.raises(StoryError, match="printing failed: ValueError\\('no more paper'\\)"):
        await asyncio.wait_for(behind.until("anything", task.cancelled), 5)


async def test_the_end_ends_what_was_begun() -> None:
    behind = progress([])
    task = behind.run("waiting", asyncio.Event().wait())  # type: ignore[arg-type]
    await asyncio.wait([task], timeout=0)
    await behind.end()
    assert task.done()

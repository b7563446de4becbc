import asyncio

import pytest

from groupcoord.cli.demo.clients.consumer_common import ReadRecord, parse_report
from groupcoord.cli.demo.consumer_process import ConsumerProcess, start_consumer
from groupcoord.cli.demo.observed_group import ObservedGroup
from groupcoord.cli.demo.story_progress import StoryError, StoryProgress
from tests.cli.demo.clients.test_consumer_common import SETTINGS
from tests.cli.demo.support import GROUP, TOPIC

pytestmark = [pytest.mark.asyncio, pytest.mark.slow]


async def talker(program: str) -> ConsumerProcess:
    """A consumer whose process runs ``program`` with the shell."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec("sh", "-c", program, stdin=pipe, stdout=pipe, stderr=pipe)
    return ConsumerProcess("talker", process)


async def watched(consumer: ConsumerProcess) -> list[ReadRecord]:
    told: list[ReadRecord] = []
    ended: list[ConsumerProcess] = []
    await asyncio.wait_for(consumer.watch(lambda _, line: told.extend(parse_report(line)), ended.append), 10)
    assert ended == [consumer]
    return told


async def test_what_it_says_before_its_end_is_passed_on() -> None:
    consumer = await talker('read word; test $word = join && echo \'[[0, 7, "ada"], [1, 0, "bob"]]\'; exit 3')
    consumer.join()
    assert await watched(consumer) == [ReadRecord(0, 7, "ada"), ReadRecord(1, 0, "bob")]
    assert consumer.exit_code == 3


async def test_its_last_words_are_kept() -> None:
    consumer = await talker("for word in $(seq 20); do echo $word >&2; done")
    await watched(consumer)
    assert list(consumer.last_words) == [str(number) for number in range(9, 21)]


async def test_it_can_be_killed_more_than_once() -> None:
    consumer = await talker("exec cat")
    consumer.kill()
    assert consumer.may_end
    await watched(consumer)
    assert consumer.exit_code == -9
    consumer.kill()


async def test_one_that_ends_by_itself_ends_the_story_with_its_last_words() -> None:
    behind = StoryProgress(ObservedGroup(GROUP, TOPIC), lambda _: False, breath_s=0)
    consumer = await start_consumer("no_such_program", SETTINGS)
    assert consumer.name == "confluent"
    behind.watch(consumer)
    with pytest.raises(StoryError, match=r"confluent ended by itself, with code 1; its last words:\n.*no_such_program"):
        await asyncio.wait_for(behind.until("its end", lambda: False), 10)
    await behind.end()


async def test_the_end_ends_those_that_still_run() -> None:
    behind = StoryProgress(ObservedGroup(GROUP, TOPIC), lambda _: False, breath_s=0)
    consumer = await talker("exec cat")
    behind.watch(consumer)
    await asyncio.wait_for(behind.end(), 10)
    assert consumer.exit_code == -9

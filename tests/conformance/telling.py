"""Plays stories on a server: the steps of each, and at its end the records of its groups in ``__consumer_offsets``."""

import importlib
import pkgutil
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from groupcoord.protocol.messages import DescribeGroupsRequest, FindCoordinatorRequest, InitProducerIdRequest
from tests.conformance import offsets_topic, stories
from tests.conformance.actors import Stagehand
from tests.conformance.kafka_format import Unreadable
from tests.conformance.members import Member, share_out
from tests.conformance.story import TALES, Story, StoryBroken, Tale
from tests.conformance.transcript import Step, as_recorded
from tests.conformance.wire import Hungup, Target

Versions = Mapping[int, int] | None
"""The newest version of each API, by its key, that an older server speaks; none are needed for one like groupcoord."""


def all_tales() -> list[Tale]:
    """Every story, in the order of the modules' names and of the modules' text."""
    for module in pkgutil.iter_modules(stories.__path__):
        importlib.import_module(f"{stories.__name__}.{module.name}")
    return list(TALES.values())


def tell(tale: Tale, target: Target, versions: Versions = None) -> list[Step]:
    """The transcript of ``tale`` told to ``target``."""
    story = new_story(tale.name, target, versions)
    try:
        with breaking_off(story):
            tale.tell(story)
            read_what_is_left(story)
    finally:
        story.close()
    return as_recorded(story.steps)


def new_story(name: str, target: Target, versions: Versions = None) -> Story:
    """A story called ``name`` that knows where ``target`` says it is, and nothing else so far."""
    story = Story(name, target, versions=versions or {})
    story.names.story = name
    story.names.stories = frozenset(TALES)
    try:
        _learn_endpoints(story, Stagehand(story))
    except BaseException:
        story.close()
        raise
    return story


@contextmanager
def breaking_off(story: Story) -> Iterator[None]:
    """What goes wrong in here ends ``story``, and is its last step."""
    try:
        yield
    except (StoryBroken, Hungup, Unreadable) as problem:
        story.steps.append({"actor": "story", "does": f"breaks off: {problem}"})
    except Exception as problem:  # an answer that a story could not make sense of must not end all others
        story.steps.append({"actor": "story", "does": f"breaks off: {problem!r}"})


def tell_all(tales: Iterable[Tale], target: Target, versions: Versions = None) -> Iterator[tuple[Tale, list[Step]]]:
    """The transcripts of all ``tales``.

    Those that wait for timers are told together, and before the others: a busy machine must not make a session end early.
    The few that wait for minutes run beside everything; their timers are too long to care.
    """
    chosen = list(tales)
    with ThreadPoolExecutor(8) as minutes, ThreadPoolExecutor(6) as seconds:
        long = [(tale, minutes.submit(tell, tale, target, versions)) for tale in chosen if tale.lasts_ms > 60_000]
        short = [(tale, seconds.submit(tell, tale, target, versions)) for tale in chosen if 0 < tale.lasts_ms <= 60_000]
        for tale, running in short:
            yield tale, running.result()
        for tale in chosen:
            if not tale.lasts_ms:
                yield tale, tell(tale, target, versions)
        for tale, running in long:
            yield tale, running.result()


def ready(target: Target, versions: Versions = None) -> None:
    """Wait until the coordinator of every group is there: the offsets topic is made when it is first asked for."""
    story = Story("ready", target, versions=versions or {})
    stagehand = Stagehand(story)
    keys = tuple(_a_group_per_partition())
    asking = FindCoordinatorRequest(coordinator_keys=keys), DescribeGroupsRequest(groups=keys)

    def is_ready() -> bool:
        coordinators, groups = (stagehand.ask(each) for each in asking)
        groups_are_loaded = all(item.error_code == 0 for item in coordinators.coordinators) and not any(
            group.error_code in {14, 15, 16} for group in groups.groups
        )
        # The first block of producer ids is fetched when somebody asks for an id; whoever asks first is told to wait.
        wants_id = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000)
        return groups_are_loaded and bool(stagehand.ask(wants_id).error_code == 0)

    story.until(is_ready, "the coordinators answer for all groups")
    story.close()
    _warm_up(target, versions)


def _warm_up(target: Target, versions: Versions) -> None:
    """A cold JVM takes a tenth of a second for its first join, which would look as if the request was parked."""
    for round_number in range(3):
        story = Story(f"warm-up-{round_number}", target, versions=versions or {})
        try:
            a, b = Member(story, "a", group_id=story.name), Member(story, "b", group_id=story.name)
            a.enters_parked(0)
            if a.parked:
                a.is_answered()
            share_out(a)
            b.enters_parked()
            a.joins()
            b.is_answered()
            share_out(a, b)
            b.leaves()
            a.leaves()
        except StoryBroken:
            pass  # as cold as that; the next round is warmer
        finally:
            story.close()


def _a_group_per_partition() -> list[str]:
    found: dict[int, str] = {}
    number = 0
    while len(found) < offsets_topic.PARTITIONS:
        found.setdefault(offsets_topic.partition_of(f"ready-{number}"), f"ready-{number}")
        number += 1
    return list(found.values())


def _learn_endpoints(story: Story, stagehand: Stagehand) -> None:
    found = stagehand.ask(FindCoordinatorRequest(coordinator_keys=(story.name,)))
    for item in found.coordinators:
        if item.error_code == 0:
            story.names.endpoints.add((item.host, item.port))


def read_what_is_left(story: Story) -> None:
    """The last step of every story that had groups."""
    if not story.groups:
        return
    stagehand = Stagehand(story)
    # A record that no answer waited for, such as that of a group that became empty, may still be on its way.
    story.target.wait(story.target.settle_ms)
    step = story.begin("log", "holds in __consumer_offsets")
    for partition in sorted({offsets_topic.partition_of(group_id) for group_id in story.groups}):
        answer = stagehand.ask(offsets_topic.end_request(partition), 9)
        end = answer.topics[0].partitions[0].offset
        data, offset = b"", 0
        while offset < end:
            found = stagehand.ask(offsets_topic.fetch_request(partition, offset), 12)
            data += bytes(found.responses[0].partitions[0].records or b"")
            reached = offsets_topic.next_offset(data, offset)
            if reached == offset:
                raise StoryBroken(f"__consumer_offsets-{partition} gave nothing at {offset} of {end}")
            offset = reached
        for record in offsets_topic.in_comparable_order(offsets_topic.records_of(data, story.groups), story.names):
            step.setdefault("gets", []).append(story.shown(record, "__consumer_offsets"))
    step.setdefault("gets", [])
    story.end()

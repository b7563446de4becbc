"""Generates the tables of ``docs/conformance.md``: what the recordings of a real broker cover."""

import dataclasses
import importlib
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import groupcoord as gc
from groupcoord.protocol.apis import API_BY_REQUEST, APIS
from groupcoord.protocol.errors import ErrorCode
from tests.conformance import brokers_registered, brokers_that_fail, normalise, partitions_administered, stories
from tests.conformance.compare import recorded
from tests.conformance.record import KAFKA_VERSION, RECORDINGS
from tests.conformance.story import Tale
from tests.conformance.telling import all_tales
from tests.conformance.transcript import Step
from tests.conformance.trios import Observation, OwnTrio
from tools.markdown import table


class Asked(NamedTuple):
    """One request of a recording: of which API, in which version, and every error code in its answer."""

    api: str
    version: int
    error_codes: frozenset[int]


class TrioStory(NamedTuple):
    """A story of three brokers as it was told: its steps, and what was asked of the brokers for them."""

    name: str
    text: str
    steps: int
    asked: tuple[Asked, ...]


def summary() -> str:
    """How much was recorded, of which broker, when."""
    about = json.loads((RECORDINGS / KAFKA_VERSION / "about.json").read_text(encoding="utf-8"))
    told = _told()
    steps = sum(len(transcript) for _, transcript in told)
    compared = sum(_answers(step) for _, transcript in told for step in transcript)
    title = (
        f"Recorded from Apache Kafka {about['kafka']} on {about['recorded']}: {len(told)} stories with {steps:,} steps, "
        f"of which {compared:,} have a response, no response within a time, or a closed connection to compare."
    )
    trios = _trio_stories()
    of_trios = (
        f"In addition, {len(trios)} stories with {sum(story.steps for story in trios)} steps have three brokers, which are "
        "stopped, killed, paused and administered; the responses of the brokers after each step are compared."
    )
    rows = []
    for name, settings in about["settings"].items():
        properties = "<br>".join(f"`{key}={value}`" for key, value in settings["properties"].items())
        rows.append(f"| {name} | {settings['why']} | {properties} |")
    of_settings = table("| settings | purpose | broker properties |", rows)
    return "\n".join([title, "", of_trios, "", _by_kind(told), of_settings])


def _by_kind(told: Sequence[tuple[Tale, list[Step]]]) -> str:
    """What the steps are, for stories of consumer groups and for all others."""
    kinds = ("immediate response", "no response yet, or a later one", "other", "records in the log at the end")
    rows = []
    for what, wanted in (("of consumer groups (KIP-848)", True), ("all others", False)):
        steps = [step for tale, each in told if tale.topic.startswith("consumer_") is wanted for step in each]
        counted = Counter(_kind(step) for step in steps)
        counted[kinds[3]] = sum(len(step["gets"]) for step in steps if step["actor"] == "log")
        rows.append(f"| {what} | {len(steps):,} | " + " | ".join(f"{counted[kind]:,}" for kind in kinds) + " |")
    return table(f"| stories | steps | {' | '.join(kinds)} |", rows)


def _kind(step: Step) -> str:
    if step["does"].startswith(("is answered", "still waits", "looks for")) or step.get("gets") == "no answer yet":
        return "no response yet, or a later one"
    return "immediate response" if "sends" in step and isinstance(step.get("gets"), dict) else "other"


def apis() -> str:
    """Per API: versions, requests, error codes."""
    asked: dict[str, list[Asked]] = defaultdict(list)
    for _, transcript in _told():
        for request in _requests(transcript):
            asked[request.api].append(request)
    for story in _trio_stories():
        for request in story.asked:
            asked[request.api].append(request)
    rows = []
    for api in sorted(APIS.values(), key=lambda api: api.key):
        requests = asked[api.name]
        counted = Counter(request.version for request in requests)
        served = range(api.min_version, api.max_version + 1)
        missing = [str(version) for version in served if not counted[version]]
        versions = f"{api.min_version}–{api.max_version}" + (f", without {', '.join(missing)}" if missing else "")
        codes = sorted({code for request in requests for code in request.error_codes})
        rows.append(f"| {api.name} | {versions} | {len(requests):,} | {', '.join(map(_error_name, codes))} |")
    return table("| API | versions | requests | error codes in the responses |", rows)


def topics() -> str:
    """Every story under its topic, with its steps."""
    lines = []
    by_topic: dict[str, list[tuple[Tale, list[Step]]]] = defaultdict(list)
    for tale, transcript in _told():
        by_topic[tale.topic].append((tale, transcript))
    for topic, told in sorted(by_topic.items()):
        text = importlib.import_module(f"{stories.__name__}.{topic}").__doc__ or ""
        steps = sum(len(transcript) for _, transcript in told)
        lines += [f"### {topic.replace('_', ' ').capitalize()} ({steps} steps)", "", " ".join(text.split()), ""]
        lines += ["| story | steps | content |", "|---|---|---|"]
        for tale, transcript in told:
            marks = "" if tale.settings.name == "fast" else f" *({tale.settings.name})*"
            text = tale.text.replace("|", "\\|")
            lines.append(f"| {tale.name.replace('_', ' ')}{marks} | {len(transcript)} | {text} |")
        lines.append("")
    trios = _trio_stories()
    lines += [f"### Three brokers ({sum(story.steps for story in trios)} steps)", ""]
    lines += ["Three brokers with a separate controller; Kafka's run as child processes.", ""]
    lines += ["| story | steps | content |", "|---|---|---|"]
    lines += [f"| {story.name} | {story.steps} | {story.text} |" for story in trios]
    return "\n".join([*lines, ""])


def rules() -> str:
    """What is not compared as it is, and why."""
    rows = [f"| {_code(*rule.fields)} | {rule.reason} |" for rule in (*normalise.VALUES, *normalise.TEXTS)]
    rows += [f"| order of {_code(order.path)} | {order.reason} |" for order in normalise.ORDERS]
    return table("| field | rule |", rows)


def _code(*names: str) -> str:
    return ", ".join(f"`{name}`" for name in names)


@cache
def _told() -> list[tuple[Tale, list[Step]]]:
    return [(tale, recorded(RECORDINGS / KAFKA_VERSION, tale)) for tale in all_tales()]


@cache
def _trio_stories() -> list[TrioStory]:
    """The stories of three brokers, told to groupcoord, whose answers are those that were recorded of Kafka's."""
    tellers: dict[str, tuple[str, Callable[..., None], Mapping[str, str]]] = {}
    for module in (brokers_that_fail, partitions_administered, brokers_registered):
        for name, (tell, properties) in module.STORIES.items():
            about = tell.__doc__ if tell is not module.tell else module.__doc__
            tellers[name] = ((about or "").partition("\n")[0], tell, properties)
    return [_told_to_trio(name, *teller) for name, teller in tellers.items()]


def _told_to_trio(name: str, text: str, tell: Callable[..., None], properties: Mapping[str, str]) -> TrioStory:
    asked: list[Asked] = []
    steps = 0

    class Listening(OwnTrio):
        def ask(self, broker_id: int, request: Any, version: int) -> Any:
            answer = super().ask(broker_id, request, version)
            api = API_BY_REQUEST[type(request)].name
            asked.append(Asked(api, version, frozenset(_error_codes(dataclasses.asdict(answer)))))
            return answer

    def look(_: str, find: Callable[[], Observation]) -> None:
        nonlocal steps
        steps += 1
        find()

    with gc.Cluster(brokers=3, clock="manual", config=properties).sync() as kafka:
        tell(Listening(kafka), look)
    return TrioStory(name, text, steps, tuple(asked))


def _answers(step: Step) -> bool:
    return "gets" in step


def _requests(transcript: list[Step]) -> Iterator[Asked]:
    """The requests in a transcript with the errors of their answers; that of a parked one comes in a later step."""
    for number, step in enumerate(transcript, 1):
        sends = step.get("sends")
        if not isinstance(sends, dict):
            continue
        (title,) = sends
        api, _, version = title.rpartition(" v")
        codes = set(_error_codes(step.get("gets")))
        for later in transcript[number:]:
            if f"{api} of step {number}" in later["does"]:
                codes |= set(_error_codes(later.get("gets")))
        yield Asked(api, int(version), frozenset(codes))


def _error_codes(answer: Any) -> Iterator[int]:
    if isinstance(answer, dict):
        for name, value in answer.items():
            if name.endswith("error_code"):
                yield value
            else:
                yield from _error_codes(value)
    elif isinstance(answer, list | tuple):
        for item in answer:
            yield from _error_codes(item)


def _error_name(code: int) -> str:
    return f"{ErrorCode(code).name} ({code})" if code else "NONE"

"""What the recordings of a real broker cover, as the tables of ``docs/conformance.md``."""

import importlib
import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple

from groupcoord.protocol.apis import APIS
from groupcoord.protocol.errors import ErrorCode
from tests.conformance import normalise, stories
from tests.conformance.compare import recorded
from tests.conformance.record import KAFKA_VERSION, RECORDINGS
from tests.conformance.story import Tale
from tests.conformance.telling import all_tales
from tests.conformance.transcript import Step


class Asked(NamedTuple):
    """One request of a recording: of which API, in which version, and every error code in its answer."""

    api: str
    version: int
    error_codes: frozenset[int]


def summary() -> str:
    """How much was recorded, of which broker, when."""
    about = json.loads((RECORDINGS / KAFKA_VERSION / "about.json").read_text(encoding="utf-8"))
    told = _told()
    steps = sum(len(transcript) for _, transcript in told)
    compared = sum(_answers(step) for _, transcript in told for step in transcript)
    title = (
        f"Recorded from Apache Kafka {about['kafka']} on {about['recorded']}: {len(told)} stories with {steps:,} steps, "
        f"of which {compared:,} have an answer, a silence or a hang-up to compare."
    )
    lines = [title, "", *_by_kind(told), "", "| settings | what for | broker properties |", "|---|---|---|"]
    for name, settings in about["settings"].items():
        properties = "<br>".join(f"`{key}={value}`" for key, value in settings["properties"].items())
        lines.append(f"| {name} | {settings['why']} | {properties} |")
    return "\n".join(lines) + "\n"


def _by_kind(told: Sequence[tuple[Tale, list[Step]]]) -> list[str]:
    """What the steps are, for stories of consumer groups and for all others."""
    kinds = ("answered", "left waiting, or answered later", "other", "records left in the log")
    lines = ["| stories | steps | " + " | ".join(kinds) + " |", "|---|---|" + "---|" * len(kinds)]
    for what, wanted in (("of consumer groups (KIP-848)", True), ("all others", False)):
        steps = [step for tale, each in told if tale.topic.startswith("consumer_") is wanted for step in each]
        counted = Counter(_kind(step) for step in steps)
        counted[kinds[3]] = sum(len(step["gets"]) for step in steps if step["actor"] == "log")
        lines.append(f"| {what} | {len(steps):,} | " + " | ".join(f"{counted[kind]:,}" for kind in kinds) + " |")
    return lines


def _kind(step: Step) -> str:
    if step["does"].startswith(("is answered", "still waits", "looks for")) or step.get("gets") == "no answer yet":
        return "left waiting, or answered later"
    return "answered" if "sends" in step and isinstance(step.get("gets"), dict) else "other"


def apis() -> str:
    """Per API: versions, requests, error codes."""
    asked: dict[str, list[Asked]] = defaultdict(list)
    for _, transcript in _told():
        for request in _requests(transcript):
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
    return "\n".join(["| API | versions | requests | error codes in the answers |", "|---|---|---|---|", *rows]) + "\n"


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
        lines += ["| story | steps | what it tells |", "|---|---|---|"]
        for tale, transcript in told:
            marks = "" if tale.settings.name == "fast" else f" *({tale.settings.name})*"
            text = tale.text.replace("|", "\\|")
            lines.append(f"| {tale.name.replace('_', ' ')}{marks} | {len(transcript)} | {text} |")
        lines.append("")
    return "\n".join(lines)


def rules() -> str:
    """What is not compared as it is, and why."""
    rows = [f"| {_code(*rule.fields)} | {rule.reason} |" for rule in (*normalise.VALUES, *normalise.TEXTS)]
    rows += [f"| order of {_code(order.path)} | {order.reason} |" for order in normalise.ORDERS]
    return "\n".join(["| field | rule |", "|---|---|", *rows]) + "\n"


def _code(*names: str) -> str:
    return ", ".join(f"`{name}`" for name in names)


@cache
def _told() -> list[tuple[Tale, list[Step]]]:
    return [(tale, recorded(RECORDINGS / KAFKA_VERSION, tale)) for tale in all_tales()]


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
    elif isinstance(answer, list):
        for item in answer:
            yield from _error_codes(item)


def _error_name(code: int) -> str:
    return f"{ErrorCode(code).name} ({code})" if code else "NONE"

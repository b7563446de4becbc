"""Compares another Kafka version with the recorded one, as a table: ``python -m tests.conformance.versions``.

Every story is told to fresh brokers of ``KAFKA_VERSION``. Of a story that goes otherwise, the first step that does is told:
what follows may only follow from that. Requests that the other Kafka knows only in older versions are asked in its newest;
what such a version cannot say is not compared.
"""

# ruff: noqa: T201 -- a command says what it does
import argparse
import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from groupcoord.protocol.apis import APIS
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages import ConsumerGroupHeartbeatRequest
from tests.conformance import settings
from tests.conformance.actors import Stagehand
from tests.conformance.compare import recorded
from tests.conformance.live import LiveTarget, Transcripts, served_by, tell_to_fresh
from tests.conformance.otherwise import Otherwise, first_otherwise
from tests.conformance.record import KAFKA_VERSION, RECORDINGS, chosen_by
from tests.conformance.story import Story, Tale
from tests.conformance.telling import all_tales
from tests.conformance.transcript import Step
from tests.real_kafka import kafka_version, running

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "kafka-versions.md"
TITLE = f"""# Other versions of Kafka

groupcoord responds as Kafka {KAFKA_VERSION} does. This page lists how other versions differ in the stories of
`tests/conformance`. `KAFKA_VERSION=… make kafka-versions` runs the stories on a real broker of that version, and rewrites its
section. For a story that differs, only the first differing step is listed.
"""
LOG = "`__consumer_offsets`"
NO_CONSUMER_GROUPS = """It responds to ConsumerGroupHeartbeat with UNSUPPORTED_VERSION unless it is configured otherwise, so the
stories of consumer groups (KIP-848) are left out."""
PLACES = 3
"""Of a step that differs in more places, the first few tell enough."""

Versions = Mapping[int, tuple[int, int]]


def of_consumer_groups(tale: Tale) -> bool:
    """Is the story about consumer groups (KIP-848)?"""
    return tale.topic.startswith("consumer_")


def refuses_consumer_groups(port: int) -> bool:
    """Does the server at ``port`` say that it has none? Kafka 3.9 does, unless it is told to have them."""
    story = Story("versions", LiveTarget(port))
    try:
        asked = ConsumerGroupHeartbeatRequest(group_id="versions", member_id="nobody", member_epoch=1)
        return bool(Stagehand(story).ask(asked, 0).error_code == ErrorCode.UNSUPPORTED_VERSION)
    finally:
        story.close()


def section(version: str, served: Versions, told: Transcripts, tales: Sequence[Tale]) -> str:
    """The part of the document about one version: what it serves, and what it does otherwise, alike things in one row.

    Of ``tales`` only those that were told are compared.
    """
    left_out = len(tales)
    tales = [tale for tale in tales if tale.name in told]
    left_out -= len(tales)
    found: dict[tuple[str, str], list[tuple[Tale, Otherwise]]] = defaultdict(list)
    for tale in tales:
        if other := first_otherwise(recorded(RECORDINGS / KAFKA_VERSION, tale), told[tale.name]):
            api = other.api if other.asked_as is None else f"{other.api} asked as v{other.asked_as}"
            found[api, _without(tale, other.phrases[0])].append((tale, other))
    unlike = sum(map(len, found.values()))
    in_log = sum(len(places) for (api, _), places in found.items() if api == LOG)
    count = (
        f"Of {len(tales)} stories, {len(tales) - unlike} are the same as with {KAFKA_VERSION}, "
        f"and {in_log} have the same responses but other records in {LOG}."
    )
    if left_out:
        count += f"\n{NO_CONSUMER_GROUPS}"
    return "\n".join(
        [
            f"## Kafka {version}",
            "",
            count,
            "",
            f"| API | versions of {KAFKA_VERSION} | versions of {version} |",
            "|---|---|---|",
            *_ranges(served),
            "",
            f"| API | difference in {version} | story, step |",
            "|---|---|---|",
            *(_row(api, places) for (api, _), places in sorted(found.items(), key=_rank)),
            "",
        ]
    )


def _row(api: str, places: Sequence[tuple[Tale, Otherwise]]) -> str:
    """One row for all stories that go otherwise in the same way; told is the one that does so in the fewest places."""
    tale, other = min(places, key=lambda place: len(place[1].phrases))
    phrases = [_without(tale, phrase) for phrase in other.phrases[:PLACES]]
    if len(other.phrases) > PLACES:
        phrases.append("and so on")
    more = f"; {len(places) - 1} more" if len(places) > 1 else ""
    cells = (api, "; ".join(phrases), f"`{tale.name}`, {other.step}: {other.does}{more}")
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"


def _without(tale: Tale, phrase: str) -> str:
    """``phrase`` without the name of the story, which stands before all of its groups and topics."""
    return phrase.replace(f"{tale.name}-", "").replace(tale.name, "the group")


def _rank(item: tuple[tuple[str, str], Sequence[object]]) -> tuple[int, int, tuple[str, str]]:
    """APIs in the order of their numbers, the most frequent difference first."""
    names = [api.name for api in APIS.values()]
    api = item[0][0].split()[0]
    return names.index(api) if api in names else len(names), -len(item[1]), item[0]


def document(old: str, version: str, new_section: str) -> str:
    """``old`` with the section of ``version`` replaced or put at its end."""
    _, *sections = re.split(r"^(?=## Kafka )", old, flags=re.MULTILINE)
    others = [each.rstrip("\n") + "\n" for each in sections if not each.startswith(f"## Kafka {version}\n")]
    return "\n".join([TITLE, *sorted([*others, new_section], reverse=True)])


def _ranges(served: Versions) -> Iterator[str]:
    for key, api in sorted(APIS.items()):
        if served.get(key) != (api.advertised_min, api.max_version):
            theirs = f"{served[key][0]}–{served[key][1]}" if key in served else "none"
            yield f"| {api.name} | {api.advertised_min}–{api.max_version} | {theirs} |"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.versions", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="leave out the stories that last longer than a minute")
    parser.add_argument("--story", action="append", help="only this story (repeatable); a word of its name will do")
    parser.add_argument("--into", type=Path, default=DOCUMENT, help="the document whose section is written")
    options = parser.parse_args()
    version = kafka_version()
    tales = [tale for tale in all_tales() if chosen_by(tale, options) and recorded(RECORDINGS / KAFKA_VERSION, tale)]
    told: dict[str, list[Step]] = {}
    with running(version=version) as broker:
        port = int(broker.bootstrap_servers.rpartition(":")[2])
        served = served_by(port)
        refuses = refuses_consumer_groups(port)
    chosen = [tale for tale in tales if not (refuses and of_consumer_groups(tale))]
    for setting in settings.ALL:
        print(f"{setting.name}: telling its stories to Kafka {version}", flush=True)
        told.update(tell_to_fresh(setting, chosen, version, by_its_versions=True))
    old = options.into.read_text() if options.into.exists() else ""
    options.into.write_text(document(old, version, section(version, served, told, tales)))
    return 0


if __name__ == "__main__":
    sys.exit(main())

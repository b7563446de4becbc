"""Records the responses of a real broker in every story: ``python -m tests.conformance.record --bootstrap HOST:PORT``.

The broker must be fresh and run with the properties of the chosen settings; ``--print-settings`` says which those are. With
``--fresh`` such brokers are started, one after the other, in a container (``make record``).
"""

# ruff: noqa: T201 -- a command says what it found
import argparse
import datetime as dt
import json
import sys
from pathlib import Path

from tests.conformance import settings
from tests.conformance.live import Transcripts, tell_to_fresh
from tests.conformance.story import Tale
from tests.conformance.telling import all_tales, ready, tell_all
from tests.conformance.transcript import path_of, to_text
from tests.conformance.wire import SocketTarget
from tests.real_kafka import kafka_version

RECORDINGS = Path(__file__).parent / "recordings"
KAFKA_VERSION = "4.3.1"


def chosen_by(tale: Tale, options: argparse.Namespace) -> bool:
    """Do the options of the command line ask for this story?"""
    wanted = not options.story or any(word in tale.name for word in options.story)
    return wanted and not (options.quick and tale.lasts_ms > 60_000)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.record", description=__doc__)
    parser.add_argument("--bootstrap", metavar="HOST:PORT", help="the broker to record")
    parser.add_argument("--fresh", action="store_true", help="record brokers started for this, one for each settings")
    parser.add_argument("--settings", choices=[known.name for known in settings.ALL], default=settings.FAST.name)
    parser.add_argument("--into", type=Path, default=RECORDINGS, help="folder of all recordings")
    parser.add_argument("--kafka-version", default=kafka_version(), help="what the broker is; names the folder")
    parser.add_argument("--quick", action="store_true", help="leave out the stories that last longer than a minute")
    parser.add_argument("--story", action="append", help="only this story (repeatable); a word of its name will do")
    parser.add_argument("--print-settings", action="store_true", help="print the broker properties, one a line")
    options = parser.parse_args()
    chosen = next(known for known in settings.ALL if known.name == options.settings)
    if options.print_settings:
        print("\n".join(f"{key}={value}" for key, value in chosen.properties.items()))
        return 0
    folder = options.into / options.kafka_version
    folder.mkdir(parents=True, exist_ok=True)
    tales = [tale for tale in all_tales() if chosen_by(tale, options)]
    if options.fresh:
        for each in settings.ALL:
            _write(folder, each, tell_to_fresh(each, tales, options.kafka_version))
    else:
        target = SocketTarget.at(options.bootstrap)
        ready(target)
        told = tell_all([tale for tale in tales if tale.settings is chosen], target)
        _write(folder, chosen, {tale.name: steps for tale, steps in told})
    if not options.story and not options.quick:
        _write_header(folder, options.kafka_version)
    return 0


def _write(folder: Path, chosen: settings.Settings, told: Transcripts) -> None:
    """One file for each story."""
    texts = {tale.name: tale.text for tale in all_tales()}
    for name, steps in told.items():
        path_of(folder, name).write_text(to_text({"story": name, "tells": texts[name], "settings": chosen.name}, steps))
        broken = [step["does"] for step in steps if step["actor"] == "story"]
        print(f"{name}: {len(steps)} steps{''.join(f', {what}' for what in broken)}", flush=True)
    print(f"{chosen.name}: {len(told)} stories, {sum(map(len, told.values()))} steps", file=sys.stderr)


def _write_header(folder: Path, version: str) -> None:
    """``about.json``: which broker, with which settings, when."""
    header = {
        "kafka": version,
        "recorded": dt.datetime.now(dt.UTC).date().isoformat(),
        "settings": {known.name: {"why": known.why, "properties": dict(known.properties)} for known in settings.ALL},
    }
    (folder / "about.json").write_text(json.dumps(header, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())

"""``groupcoord pipeline watch``: tables that follow the log of a living cluster."""

import argparse
import logging
import re
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_UNITS = {"second": 1, "minute": 60, "hour": 3600, "day": 86400}
_DURATION = re.compile(r"([1-9]\d{0,8}) ?(s|m|h|d|second|minute|hour|day)s?")
_MERGE_EVERY = 100
_MOST_MERGED = 10_000


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``pipeline watch``, but those of Spark."""
    parser.description = """\
Follow the log of __consumer_offsets of a living cluster: tables that grow, and
views (current_offsets, current_groups, lag, storms) that are replaced after each
batch. After a kill it continues where it was: nothing is lost, nothing comes twice."""
    parser.epilog = """\
  groupcoord pipeline watch --source kafka:localhost:9092 --out watched
  groupcoord pipeline watch --source kafka:localhost:9092 --out watched --once"""
    parser.set_defaults(action=_run_query)
    parser.add_argument(
        "--source", required=True, metavar="KIND:WHERE", help="kafka:HOST:PORT, or connector:HOST:PORT with --packages"
    )
    parser.add_argument(
        "--out", required=True, metavar="DIR", help="where to write; a directory, or any URL Spark can write to"
    )
    parser.add_argument(
        "--source-option",
        action="append",
        default=[],
        type=_pair,
        metavar="KEY=VALUE",
        help="an option of the source, such as maxrecords=… of kafka: so many offsets a batch; may be repeated",
    )
    parser.add_argument(
        "--every", type=_seconds, default=5, metavar="TIME", help="how often to look (default: '5 seconds')"
    )
    end = parser.add_mutually_exclusive_group()
    end.add_argument("--for", dest="for_s", type=_seconds, metavar="TIME", help="end after so long, such as '1 hour'")
    end.add_argument("--once", "--available-now", action="store_true", help="take what is there now, and end")
    parser.add_argument(
        "--merge-every",
        type=_merge_every,
        default=_MERGE_EVERY,
        metavar="N",
        help=f"make one directory of so many batches (default: {_MERGE_EVERY}; 0: never)",
    )


def _run_query(arguments: argparse.Namespace) -> None:
    # These need the extra, and take a second to import.
    from groupcoord.pipeline.spark_session import session  # noqa: PLC0415
    from groupcoord.pipeline.watch.batch_writer import BatchWriter  # noqa: PLC0415
    from groupcoord.pipeline.watch.output_directory import WatchDirectory  # noqa: PLC0415
    from groupcoord.pipeline.watch.query_loop import WatchSchedule, run_watch  # noqa: PLC0415
    from groupcoord.pipeline.watch.stream_source import open_stream  # noqa: PLC0415

    if not arguments.verbose:
        logging.getLogger("py4j").setLevel(logging.CRITICAL + 1)  # what goes wrong in a batch is raised, too
    with signals() as stopping:
        stream = open_stream(arguments.source, dict(arguments.source_option))
        started = session(
            arguments.master, dict(arguments.conf), packages=arguments.packages, is_verbose=arguments.verbose
        )
        with started as spark, WatchDirectory(spark, arguments.out) as output:
            stopping.arm()
            manifest = output.begin(stream.spec, stream.identity)
            batch_writer = BatchWriter(output, stream, manifest, _say, merge_every=arguments.merge_every)
            schedule = WatchSchedule(every_s=arguments.every, for_s=arguments.for_s, is_once=arguments.once)
            run_watch(spark, output, stream, batch_writer, schedule, stopping.event, _say)
    print(outcome(batch_writer.manifest.records, batch_writer.manifest.batch + 1, arguments.out))
    if stopping.by == signal.SIGINT:
        raise KeyboardInterrupt


def outcome(records: int, batches: int, out: str) -> str:
    """What the watch says at its end."""
    if batches == 0:
        return f"ended before the first batch: there are no tables in {out} yet"
    return f"{records:,} records in {batches:,} batches: tables in {out}/tables"


class Stopping:
    """Ends the watch between two batches at the first signal, and at once at the second."""

    def __init__(self) -> None:
        self.event = threading.Event()
        """Set when the watch is to end."""
        self.by: int | None = None
        """The last signal."""
        self._before: dict[int, Any] = {}

    def arm(self) -> None:
        """Catch the signals from now on; called again after Spark has installed a handler of its own."""
        for number in (signal.SIGINT, signal.SIGTERM):
            self._before.setdefault(number, signal.signal(number, self._received))

    def disarm(self) -> None:
        """Restore the handlers that there were before."""
        for number, before in self._before.items():
            signal.signal(number, before)

    def _received(self, number: int, frame: object) -> None:
        del frame
        self.by = number
        if self.event.is_set():
            raise KeyboardInterrupt
        self.event.set()


@contextmanager
def signals() -> Iterator[Stopping]:
    """What ends the watch; afterwards signals do again what they did before."""
    stopping = Stopping()
    try:
        yield stopping
    finally:
        stopping.disarm()


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise argparse.ArgumentTypeError(f"{text!r} is not KEY=VALUE")
    return key, value


def _seconds(text: str) -> int:
    found = _DURATION.fullmatch(text)
    if not found:
        raise argparse.ArgumentTypeError(f"{text!r} is no time such as '5 seconds' or '1 hour'")
    return int(found[1]) * next(seconds for unit, seconds in _UNITS.items() if unit.startswith(found[2]))


def _merge_every(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and int(text) <= _MOST_MERGED and int(text) != 1):
        raise argparse.ArgumentTypeError(f"{text!r} is no number of batches: 0, or 2 to {_MOST_MERGED:,}")
    return int(text)

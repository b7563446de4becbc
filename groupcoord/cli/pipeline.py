"""``groupcoord pipeline``: turns ``__consumer_offsets`` into tables and a report about consumer groups, with PySpark."""

import argparse
import asyncio
import logging
import os
import re
import signal
import sys
import threading
import webbrowser
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from groupcoord.cli.demo import TIME_LIMIT_S, missing_libraries
from groupcoord.cli.main import complain, main
from groupcoord.cli.option_types import listen_address, whole_number
from groupcoord.page.html_embedding import PageNotBuiltError, built_page
from groupcoord.pipeline.errors import PipelineError, plain_reason
from groupcoord.pipeline.open_and_hanging_transactions import HANGING_AFTER_S
from groupcoord.pipeline.report.report_model import DETAILED
from groupcoord.pipeline.watch.metric_names import LIMIT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from groupcoord.pipeline.report.report_model import Report
    from groupcoord.pipeline.watch.batch_outcome import BatchOutcome

NEEDED = ("pyspark", "pyarrow", "pandas")
MOST_RECORDS = 10_000_000_000
_MOST_DETAILS = 500
_WINDOW = re.compile(r"[1-9]\d* (second|minute|hour|day)s?")


def _pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise argparse.ArgumentTypeError(f"{text!r} is not KEY=VALUE")
    return key, value


_PAIRS: dict[str, Any] = {"action": "append", "default": [], "type": _pair, "metavar": "KEY=VALUE"}
"""Help text of an option that may be repeated."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``pipeline``."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.description = """\
Read the log of __consumer_offsets, of groupcoord or of any Kafka cluster, with
PySpark, and write tables and a report about consumer groups: when groups
rebalanced and the probable causes, which partitions moved, where commits
stopped, and which offsets are committed now."""
    actions = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    add = partial(actions.add_parser, formatter_class=parser.formatter_class)
    _configure_generate(add("generate", help="generate a synthetic log"))
    _configure_run(add("run", help="read a log once, and write tables and a report"))
    report = add("report", help="write the report of a run again")
    _configure_report(report)
    _configure_spark(report)
    _configure_demo(add("demo", help="run groupcoord demo, then the pipeline on its log"))
    watch = add("watch", help="update tables, metrics and alerts continuously")
    _configure_watch(watch)
    _configure_spark(watch)


def _configure_run(parser: argparse.ArgumentParser) -> None:
    parser.description = """\
Read a log of __consumer_offsets once, and write tables as Parquet files to
DIR/tables and a report to DIR/report.html. Each run reads the whole log; pipeline
watch --once reads only the records since the last time, but writes fewer tables."""
    parser.epilog = """\
sources
  kafka:HOST:PORT      a running cluster, read by groupcoord's own client
  segments:DIR         folders __consumer_offsets-N from a broker's log directory
  jsonl:FILE           lines of {"partition", "offset", "timestamp", "key", "value"},
                       as groupcoord offsets dump --raw prints them
  connector:HOST:PORT  a running cluster, read by Spark's Kafka connector (--packages)

  groupcoord pipeline run --source kafka:localhost:9092 --out groups
  groupcoord pipeline run --source segments:/var/lib/kafka/data --out groups
  spark-submit --master yarn $(python -c 'import groupcoord.__main__ as m; print(m.__file__)') pipeline run …"""
    parser.set_defaults(action=_run)
    _add_source(parser, "log to read, see below", "topic=… for kafka, or kafka.security.protocol=… for connector")
    parser.add_argument(
        "--as-of",
        type=_time,
        metavar="TIME",
        help="read the log as if it ended then, such as 2026-11-21T12:00:00 (in UTC) or 2026-11-21T12:00:00+02:00",
    )
    parser.add_argument(
        "--end-offsets",
        metavar="FILE",
        help="log end offsets of topics, for lags: CSV or JSON lines with topic, partition, end_offset, and optionally "
        "log_start_offset and at (default: with kafka: those of the cluster)",
    )
    parser.add_argument(
        "--window", type=_window, default="1 minute", help="time window of commit_rates (default: 1 minute)"
    )
    parser.add_argument(
        "--replay-with",
        default="",
        metavar="ASSIGNOR,…",
        help="also simulate the history of each group with these assignors, for the tables what_if and what_if_summary, such "
        "as sticky,cooperative-sticky,range",
    )
    parser.add_argument(
        "--details",
        type=whole_number(f"{{text!r}} is not a number of groups from 1 to {_MOST_DETAILS}", 1, _MOST_DETAILS),
        default=DETAILED,
        metavar="N",
        help=f"give the N groups with the most trouble a section in the report (default: {DETAILED}; at most {_MOST_DETAILS}); "
        "those of the incidents on its top have one anyway",
    )
    _add_format(parser)
    _configure_spark(parser)


def _configure_generate(parser: argparse.ArgumentParser) -> None:
    parser.description = """\
Generate the log of a cluster of 400 groups, which commit and rebalance, and
sometimes have rebalance storms. The same seed always gives the same log."""
    parser.set_defaults(action=_generate)
    parser.add_argument(
        "--records",
        required=True,
        type=whole_number(f"{{text!r}} is not a number of records up to {MOST_RECORDS:,}", 1, MOST_RECORDS),
        metavar="N",
        help="number of records",
    )
    parser.add_argument("--seed", type=int, default=1, metavar="S", help="seed of the random numbers (default: 1)")
    parser.add_argument("--out", required=True, metavar="DIR", help="where to write; must not exist")
    parser.add_argument(
        "--format",
        choices=("segments", "parquet"),
        default="segments",
        help="folders __consumer_offsets-N as on a broker's disk (default), or Parquet files of keys and values",
    )
    _configure_spark(parser)


def _add_source(parser: argparse.ArgumentParser, source: str, option: str) -> None:
    """Declare the options for the source and the output; ``source`` and ``option`` are their help texts."""
    parser.add_argument("--source", required=True, metavar="KIND:WHERE", help=source)
    parser.add_argument(
        "--out", required=True, metavar="DIR", help="where to write: a directory, or any URL that Spark can write to"
    )
    parser.add_argument(
        "--command-config",
        metavar="FILE",
        help="TLS and SASL settings for kafka: a properties file of a Kafka client, as for --command-config of Kafka's tools",
    )
    parser.add_argument(
        "--offsets-retention",
        type=_seconds,
        metavar="TIME",
        help="offsets.retention.minutes of the cluster, such as '14 days' (default: '7 days'; with kafka: the cluster's value)",
    )
    parser.add_argument("--source-option", **_PAIRS, help=f"an option of the source, such as {option}; may be repeated")


def _source_options(arguments: argparse.Namespace) -> dict[str, str]:
    """The options of the source. Raises PipelineError for a properties file that the source would ignore."""
    options = dict(arguments.source_option)
    if arguments.command_config is not None:
        if not arguments.source.startswith("kafka:"):
            raise PipelineError(
                "--command-config is for kafka:HOST:PORT; connector:HOST:PORT takes --source-option kafka.security.protocol=…"
            )
        options["commandconfig"] = str(Path(arguments.command_config).absolute())
    return options


def _retention_ms(arguments: argparse.Namespace) -> int | None:
    return None if arguments.offsets_retention is None else 1000 * arguments.offsets_retention


def _configure_spark(parser: argparse.ArgumentParser) -> None:
    spark = parser.add_argument_group("Spark")
    spark.add_argument(
        "--master",
        help="Spark's master, or for run the address of a server of Spark Connect, sc://HOST:PORT (default: the master of "
        "spark-submit, else all cores of this machine)",
    )
    spark.add_argument("--packages", help="Maven coordinates of jars to download, as for spark-submit")
    spark.add_argument("--conf", **_PAIRS, help="set a Spark property; may be repeated")
    spark.add_argument("--verbose", action="store_true", help="show the log of Spark")


def run(arguments: argparse.Namespace) -> int:
    """Run the subcommand; returns the exit code."""
    missing = [name for name in getattr(arguments, "needed", NEEDED) if find_spec(name) is None]
    if missing:
        return complain("pipeline", f"{', '.join(missing)} missing: pip install 'groupcoord[pipeline]'", 1)
    action: Callable[[argparse.Namespace], None] = arguments.action
    try:
        action(arguments)
    except (PipelineError, PageNotBuiltError) as problem:
        return complain("pipeline", str(problem), 1)
    except Exception as problem:
        if not _is_of_spark(problem):
            raise
        return complain("pipeline", plain_reason(problem), 1)
    return 0


def _is_of_spark(problem: Exception) -> bool:
    """Is ``problem`` an error of Spark? Spark may not be installed, because not every subcommand needs it."""
    if "pyspark" not in sys.modules:
        return False
    from py4j.protocol import Py4JError  # noqa: PLC0415 - of the extra
    from pyspark.errors import PySparkException  # noqa: PLC0415 - of the extra

    return isinstance(problem, PySparkException | Py4JError)


def _run(arguments: argparse.Namespace) -> None:
    # These need the extra, and take a second to import.
    from groupcoord.pipeline.assignor_replay.assignor_choice import choices  # noqa: PLC0415
    from groupcoord.pipeline.progress import RunProgress, running_tasks  # noqa: PLC0415
    from groupcoord.pipeline.report.report_files import ENTRY  # noqa: PLC0415
    from groupcoord.pipeline.run import RunOptions, run_pipeline  # noqa: PLC0415
    from groupcoord.pipeline.run_output import RunOutput, refuse_unwritable  # noqa: PLC0415
    from groupcoord.pipeline.sources.end_offsets import ends_of_file  # noqa: PLC0415
    from groupcoord.pipeline.sources.factory import plan_source  # noqa: PLC0415
    from groupcoord.pipeline.spark_session import chosen_master, is_one_machine  # noqa: PLC0415

    built_page(ENTRY)  # raises before Spark has done any work if the page is not built
    if is_one_machine(chosen_master(arguments.master)):
        refuse_unwritable(Path(arguments.out))
    chosen = choices(arguments.replay_with) if arguments.replay_with else ()
    plan = plan_source(arguments.source, _source_options(arguments))
    with _session(arguments, "run", plan.about) as spark, RunOutput(spark, arguments.out) as output:
        ends = None if arguments.end_offsets is None else ends_of_file(spark, arguments.end_offsets)
        options = RunOptions(
            as_of=arguments.as_of,
            window=arguments.window,
            ends=ends,
            replay_with=chosen,
            details=arguments.details,
            offsets_retention_ms=_retention_ms(arguments),
        )
        run_pipeline(spark, plan, output, options, RunProgress(_say, tasks=partial(running_tasks, spark)))
        report = output.finished()
    _print_report(report, output.root, arguments.format)


def _generate(arguments: argparse.Namespace) -> None:
    from groupcoord.pipeline.log_generator import generate  # noqa: PLC0415 - of the extra

    with _session(arguments, "generate", arguments.records) as spark:
        generate(spark, arguments.records, arguments.seed, arguments.out, as_segments=arguments.format == "segments")
    print(f"{arguments.records:,} records in {arguments.out}")


def _session(
    arguments: argparse.Namespace, command: str, about: int | None = None
) -> "AbstractContextManager[SparkSession]":
    from groupcoord.pipeline.spark_session import session  # noqa: PLC0415 - of the extra

    conf, verbose = dict(arguments.conf), arguments.verbose
    return session(
        arguments.master, conf, packages=arguments.packages, is_verbose=verbose, about=about, command=command
    )


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _time(text: str) -> datetime:
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a time such as 2026-11-21T12:00:00") from None
    return when.replace(tzinfo=UTC) if when.tzinfo is None else when


def _window(text: str) -> str:
    if not _WINDOW.fullmatch(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a window such as '1 minute' or '10 seconds'")
    return text


PAGE = "report.html"
REPLAYED = "range,sticky,cooperative-sticky"


def _configure_report(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``pipeline report``, without those of Spark."""
    parser.description = """\
Write DIR/report.html again from DIR/report.json of an earlier run. This needs
Spark only if DIR is a URL."""
    parser.set_defaults(action=_report, needed=())
    parser.add_argument(
        "directory", metavar="DIR", help="--out of that run: a directory, or any URL Spark can write to"
    )
    _add_format(parser)


def _configure_demo(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``pipeline demo``."""
    parser.description = """\
Run groupcoord demo, run the pipeline on its log, and open the report in a browser
if there is a display."""
    parser.set_defaults(action=_demo)
    parser.add_argument("--out", default="pipeline-demo", metavar="DIR", help="where to write (default: pipeline-demo)")
    parser.add_argument("--fast", action="store_true", help="do not pause between the steps")
    parser.add_argument("--no-open", action="store_true", help="only print where the report is")


def _add_format(parser: argparse.ArgumentParser) -> None:
    """Declare the option for the output format."""
    parser.add_argument(
        "--format",
        choices=("text", "json"),
        default="text",
        help="print a summary, or the report as JSON (default: text)",
    )


def _print_report(report: "Report", directory: str, form: str) -> None:
    """Print the result on stdout, in a few lines or as one JSON document, and on stderr what could not be read."""
    from groupcoord.pipeline.report.terminal_summary import summary_line, warning_lines  # noqa: PLC0415 - of the extra

    for line in warning_lines(report.quality):
        _say(line)
    if form == "json":
        from groupcoord.pipeline.report.report_files import report_to_json  # noqa: PLC0415 - not every command needs it

        sys.stdout.write(report_to_json(report))
        return
    print(summary_line(report))
    print(f"tables in {directory}/tables, report in {directory}/{PAGE}")


def _report(arguments: argparse.Namespace) -> None:
    is_local = Path(arguments.directory).is_dir()
    if not is_local and "://" not in arguments.directory:
        raise PipelineError(f"there is no directory {arguments.directory}")
    from groupcoord.pipeline.report.report_files import render_stored, render_stored_by_spark  # noqa: PLC0415 - of the extra

    if is_local:
        report = render_stored(Path(arguments.directory))
    else:
        with _session(arguments, "report") as spark:
            report = render_stored_by_spark(spark, arguments.directory)
    _print_report(report, arguments.directory, arguments.format)


def _demo(arguments: argparse.Namespace) -> None:
    missing = missing_libraries()
    if missing:
        raise PipelineError(
            f"not installed: {', '.join(missing)}; pip install 'groupcoord[client]' installs all it needs"
        )
    from groupcoord.cli.demo.output import console  # noqa: PLC0415
    from groupcoord.cli.demo.story import show  # noqa: PLC0415 - these need the libraries
    from groupcoord.pipeline.java_runtime import find_java  # noqa: PLC0415
    from groupcoord.pipeline.report.report_files import ENTRY  # noqa: PLC0415

    built_page(ENTRY)
    find_java()  # raises before the demo runs if there is no Java
    logging.getLogger("aiokafka").addHandler(logging.NullHandler())

    async def read_log(address: str) -> int:
        command = ["pipeline", "run", "--source", f"kafka:{address}", "--out", arguments.out, "--replay-with", REPLAYED]
        print(f"\nWhat is in the log of all this?\n\n$ groupcoord {' '.join(command)}", flush=True)
        return await asyncio.to_thread(main, command)

    code = asyncio.run(show(console(), fast=arguments.fast, time_limit_s=TIME_LIMIT_S, afterwards=read_log))
    if code:
        raise PipelineError("the demo has failed")
    page = Path(arguments.out, PAGE).resolve()
    if not arguments.no_open and has_display() and webbrowser.open(page.as_uri()):
        print("The report is open in a browser.")
    else:
        print(f"Open {page.as_uri()} in a browser.")


def has_display() -> bool:
    """Can the user see a browser? Never in a CI, never without a terminal."""
    if os.environ.get("CI") or not sys.stdout.isatty():
        return False
    return sys.platform in {"win32", "darwin"} or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


_UNITS = {"second": 1, "minute": 60, "hour": 3600, "day": 86400}
_DURATION = re.compile(r"([1-9]\d{0,8}) ?(s|m|h|d|second|minute|hour|day)s?")
_MERGE_EVERY = 100
_MOST_MERGED = 10_000
_MOST_SERIES = 10_000_000


def _configure_watch(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``pipeline watch``, without those of Spark."""
    parser.description = """\
Follow the log of __consumer_offsets of a running cluster in small batches. Each
batch appends to tables, and replaces views (current_offsets, current_groups, lag,
storms, open_transactions). If the process is killed, the next one continues where
it was, and every record is in the tables exactly once."""
    parser.epilog = """\
  groupcoord pipeline watch --source kafka:localhost:9092 --out watched
  groupcoord pipeline watch --source kafka:localhost:9092 --out watched --once"""
    parser.set_defaults(action=_run_query)
    _add_source(
        parser,
        "kafka:HOST:PORT, or connector:HOST:PORT with --packages",
        "maxrecords=… for kafka, the most offsets in a batch",
    )
    parser.add_argument(
        "--every", type=_seconds, default=5, metavar="TIME", help="how often to start a batch (default: '5 seconds')"
    )
    end = parser.add_mutually_exclusive_group()
    end.add_argument("--for", dest="for_s", type=_seconds, metavar="TIME", help="end after this time, such as '1 hour'")
    end.add_argument("--once", "--available-now", action="store_true", help="read the records that exist now, and end")
    parser.add_argument(
        "--merge-every",
        type=_merge_every,
        default=_MERGE_EVERY,
        metavar="N",
        help=f"merge the directories of N batches into one (default: {_MERGE_EVERY}; 0: never)",
    )
    metrics = parser.add_argument_group("metrics")
    metrics.add_argument(
        "--metrics",
        type=listen_address("{text!r} is not an address such as 127.0.0.1:9308"),
        metavar="ADDRESS:PORT",
        help="serve metrics for Prometheus at this address, such as 127.0.0.1:9308; port 0 is any free port, which is printed",
    )
    metrics.add_argument(
        "--metrics-limit",
        type=whole_number(f"{{text!r}} is not a number of series: 1 to {_MOST_SERIES:,}", 1, _MOST_SERIES),
        default=LIMIT,
        metavar="N",
        help=f"export at most N series of each metric, the first by group, topic and partition (default: {LIMIT:,})",
    )
    parser.add_argument(
        "--alerts",
        metavar="FILE|-|URL",
        help="send an alert in JSON when an incident begins and when it ends: append it as a line to a file, print it (-), or "
        "post it to a webhook (http://… or https://…)",
    )
    parser.add_argument(
        "--hanging-after",
        type=_seconds,
        default=HANGING_AFTER_S,
        metavar="TIME",
        help="age from which an open transaction is reported as hanging (default: '20 minutes', five minutes more than Kafka's "
        "default of transaction.max.timeout.ms)",
    )


def _run_query(arguments: argparse.Namespace) -> None:
    # These need the extra, and take a second to import.
    from groupcoord.pipeline.progress import running_tasks  # noqa: PLC0415
    from groupcoord.pipeline.run_output import refuse_unwritable  # noqa: PLC0415
    from groupcoord.pipeline.sources.factory import open_stream  # noqa: PLC0415
    from groupcoord.pipeline.spark_session import chosen_master, is_one_machine  # noqa: PLC0415
    from groupcoord.pipeline.watch.alert_sinks import STDOUT, alert_sink  # noqa: PLC0415
    from groupcoord.pipeline.watch.alerts import WatchAlerts  # noqa: PLC0415
    from groupcoord.pipeline.watch.batch_writer import BatchWriter  # noqa: PLC0415
    from groupcoord.pipeline.watch.output_directory import MANIFEST, WatchDirectory  # noqa: PLC0415
    from groupcoord.pipeline.watch.query_loop import WatchSchedule, run_watch  # noqa: PLC0415

    if is_one_machine(chosen_master(arguments.master)):
        refuse_unwritable(Path(arguments.out), MANIFEST, "watch")
    if not arguments.verbose:
        logging.getLogger("py4j").setLevel(logging.CRITICAL + 1)  # what goes wrong in a batch is raised, too
    with Stopping() as stopping, ExitStack() as serving:
        tell: list[Callable[[BatchOutcome], None]] = []
        sink = None if arguments.alerts is None else alert_sink(arguments.alerts)
        if arguments.metrics is not None:
            tell.append(_serve_metrics(arguments, serving))
        stream = open_stream(arguments.source, _source_options(arguments))
        if (retention_ms := _retention_ms(arguments)) is not None:
            stream = replace(stream, offsets_retention_ms=retention_ms)
        with _session(arguments, "watch") as spark, WatchDirectory(spark, arguments.out) as output:
            stopping.arm()
            manifest = output.begin(stream.spec, stream.identity)
            alerts = None
            if sink is not None:
                alerts = WatchAlerts(output, sink, hanging_after_s=arguments.hanging_after, say=_say)
                tell.append(alerts.update)
            batch_writer = BatchWriter(
                output,
                stream,
                manifest,
                _say,
                merge_every=arguments.merge_every,
                hanging_after_s=arguments.hanging_after,
                tell=tell,
                note_lost=None if alerts is None else alerts.note_lost,
                tasks=partial(running_tasks, spark),
            )
            schedule = WatchSchedule(every_s=arguments.every, for_s=arguments.for_s, is_once=arguments.once)
            run_watch(spark, batch_writer, schedule, stopping.event)
    ended = outcome(batch_writer.manifest.records, batch_writer.manifest.batch + 1, output.root)
    print(ended, file=sys.stderr if arguments.alerts == STDOUT else sys.stdout)
    if stopping.by == signal.SIGINT:
        raise KeyboardInterrupt


def _serve_metrics(arguments: argparse.Namespace, serving: ExitStack) -> "Callable[[BatchOutcome], None]":
    """Serve metrics until ``serving`` is closed; returns the function that updates them."""
    if find_spec("prometheus_client") is None:
        raise PipelineError("--metrics needs prometheus_client: pip install 'groupcoord[pipeline]'")
    from groupcoord.pipeline.watch.metrics import MetricsServer, WatchMetrics  # noqa: PLC0415 - of the extra

    metrics = WatchMetrics(limit=arguments.metrics_limit, hanging_after_s=arguments.hanging_after, say=_say)
    host, port = arguments.metrics
    server = serving.enter_context(MetricsServer(host, port, metrics))
    _say(f"metrics at {server.url}")
    return metrics.update


def outcome(records: int, batches: int, out: str) -> str:
    """The line that ``pipeline watch`` prints at its end."""
    if batches == 0:
        return f"ended before the first batch: there are no tables in {out} yet"
    return f"{records:,} records in {batches:,} batches: tables in {out}/tables"


class Stopping:
    """Ends the watch between two batches at the first signal, and at once at the second.

    At the end of its ``with`` block the earlier signal handlers are restored.
    """

    def __init__(self) -> None:
        self.event = threading.Event()
        """Set when the watch has to end."""
        self.by: int | None = None
        """The number of the last signal."""
        self._before: dict[int, Any] = {}

    def arm(self) -> None:
        """Install the signal handlers; called again after Spark has installed its own."""
        for number in (signal.SIGINT, signal.SIGTERM):
            self._before.setdefault(number, signal.signal(number, self._received))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)

    def _received(self, number: int, frame: object) -> None:
        del frame
        self.by = number
        if self.event.is_set():
            raise KeyboardInterrupt
        self.event.set()


def _seconds(text: str) -> int:
    found = _DURATION.fullmatch(text)
    if not found:
        raise argparse.ArgumentTypeError(f"{text!r} is not a time such as '5 seconds' or '1 hour'")
    return int(found[1]) * next(seconds for unit, seconds in _UNITS.items() if unit.startswith(found[2]))


def _merge_every(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and int(text) <= _MOST_MERGED and int(text) != 1):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of batches: 0, or 2 to {_MOST_MERGED:,}")
    return int(text)

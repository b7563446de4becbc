"""``groupcoord pipeline``: what a cluster's consumer groups did, from ``__consumer_offsets`` to tables, with PySpark."""

import argparse
import re
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from importlib.util import find_spec
from typing import TYPE_CHECKING

from groupcoord.cli import pipeline_report, pipeline_watch
from groupcoord.pipeline.errors import PipelineError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NEEDED = ("pyspark", "pyarrow", "pandas", "jinja2")
MOST_RECORDS = 10_000_000_000
_WINDOW = re.compile(r"[1-9]\d* (second|minute|hour|day)s?")
_FROM_WORKER = re.compile(r"(?:PipelineError|ClusterUnavailableError|OffsetOutOfRangeError): (.+)")


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``pipeline``."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.description = """\
Read the log of __consumer_offsets with PySpark and write what it tells of
groups, as tables and as a report: who rebalanced when and why it looks so, what
moved, where commits stopped, what is committed now. Works on groupcoord and on
any Kafka cluster."""
    actions = parser.add_subparsers(title="what to do", metavar="ACTION", required=True)
    generate = actions.add_parser("generate", help="make up a log", formatter_class=parser.formatter_class)
    _configure_generate(generate)
    _configure_run(actions.add_parser("run", help="from a log to tables", formatter_class=parser.formatter_class))
    report = actions.add_parser("report", help="the page of a run anew", formatter_class=parser.formatter_class)
    pipeline_report.configure_report(report, _session)
    _configure_spark(report)
    demo = actions.add_parser(
        "demo", help="groupcoord demo, and what its log tells", formatter_class=parser.formatter_class
    )
    pipeline_report.configure_demo(demo)
    watch = actions.add_parser("watch", help="tables that follow the log", formatter_class=parser.formatter_class)
    pipeline_watch.configure(watch)
    _configure_spark(watch)


def _configure_run(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Read a log of __consumer_offsets once, write tables of Parquet files to DIR/tables and a page about them to "
        "DIR/report.html."
    )
    parser.epilog = """\
sources
  kafka:HOST:PORT      a living cluster, over Kafka's own protocol, without TLS
  segments:DIR         folders __consumer_offsets-N, from a broker's disk
  jsonl:FILE           lines of {"partition", "offset", "timestamp", "key", "value"}
  connector:HOST:PORT  a living cluster, with Spark's Kafka connector (--packages)

  groupcoord pipeline run --source kafka:localhost:9092 --out groups
  groupcoord pipeline run --source segments:/var/lib/kafka/data --out groups
  spark-submit --master yarn $(python -c 'import groupcoord.__main__ as m; print(m.__file__)') pipeline run …"""
    parser.set_defaults(action=_run)
    parser.add_argument("--source", required=True, metavar="KIND:WHERE", help="what to read, see below")
    parser.add_argument(
        "--out", required=True, metavar="DIR", help="where to write; a directory, or any URL Spark can write to"
    )
    parser.add_argument(
        "--source-option",
        action="append",
        default=[],
        type=_pair,
        metavar="KEY=VALUE",
        help="an option of the source, such as topic=… of kafka or kafka.security.protocol=… of connector; may be repeated",
    )
    parser.add_argument(
        "--as-of",
        type=_time,
        metavar="TIME",
        help="as if the log ended then: 2026-11-21T12:00:00, in UTC unless it says",
    )
    parser.add_argument(
        "--end-offsets",
        metavar="FILE",
        help="where topics end, for lags: CSV or JSON lines with topic, partition, end_offset and perhaps at",
    )
    parser.add_argument("--window", type=_window, default="1 minute", help="of commit_rates (default: 1 minute)")
    parser.add_argument(
        "--replay-with",
        default="",
        metavar="ASSIGNOR,…",
        help="play the history of each group with these assignors, for the tables what_if: sticky,cooperative-sticky,range",
    )
    pipeline_report.add_format(parser)
    _configure_spark(parser)


def _configure_generate(parser: argparse.ArgumentParser) -> None:
    parser.description = """\
Make up the log of a cluster: 400 groups that commit, rebalance and at times do
nothing else. The same seed gives the same log."""
    parser.set_defaults(action=_generate)
    parser.add_argument("--records", required=True, type=_count, metavar="N", help="how many records")
    parser.add_argument("--seed", type=int, default=1, metavar="S", help="default: 1")
    parser.add_argument("--out", required=True, metavar="DIR", help="where to; what is there is not overwritten")
    parser.add_argument(
        "--format",
        choices=("segments", "parquet"),
        default="segments",
        help="folders __consumer_offsets-N as on a broker's disk (default), or Parquet files of keys and values",
    )
    _configure_spark(parser)


def _configure_spark(parser: argparse.ArgumentParser) -> None:
    spark = parser.add_argument_group("Spark")
    spark.add_argument("--master", help="where to run (default: all cores of this machine, or what spark-submit says)")
    spark.add_argument("--packages", help="jars to fetch, as spark-submit takes them")
    spark.add_argument(
        "--conf",
        action="append",
        default=[],
        type=_pair,
        metavar="KEY=VALUE",
        help="a setting of Spark; may be repeated",
    )
    spark.add_argument("--verbose", action="store_true", help="show what Spark logs")


def run(arguments: argparse.Namespace) -> int:
    """Do what was asked for; returns the exit code."""
    missing = [name for name in getattr(arguments, "needed", NEEDED) if find_spec(name) is None]
    if missing:
        return _complain(f"{', '.join(missing)} missing: pip install 'groupcoord[pipeline]'")
    action: Callable[[argparse.Namespace], None] = arguments.action
    try:
        action(arguments)
    except PipelineError as problem:
        return _complain(str(problem))
    except Exception as problem:
        if not _is_of_spark(problem):
            raise
        found = _FROM_WORKER.search(str(problem))
        return _complain(found[1] if found else str(problem))
    return 0


def _is_of_spark(problem: Exception) -> bool:
    """Whether Spark says it, where Spark is: not every command needs it."""
    if "pyspark" not in sys.modules:
        return False
    from pyspark.errors import PySparkException  # noqa: PLC0415 - of the extra

    return isinstance(problem, PySparkException)


def _run(arguments: argparse.Namespace) -> None:
    # These need the extra, and take a second to import.
    from groupcoord.pipeline.run import (  # noqa: PLC0415
        RunOptions,
        RunProgress,
        run_pipeline,
    )
    from groupcoord.pipeline.run_output import RunOutput  # noqa: PLC0415
    from groupcoord.pipeline.sources.end_offsets import ends_of_file  # noqa: PLC0415
    from groupcoord.pipeline.sources.factory import plan_source  # noqa: PLC0415
    from groupcoord.pipeline.whatif.assignor_choice import choices  # noqa: PLC0415

    chosen = choices(arguments.replay_with) if arguments.replay_with else ()
    plan = plan_source(arguments.source, dict(arguments.source_option))
    with (
        _session(arguments) as spark,
        RunOutput(spark, arguments.out) as output,
    ):
        ends = None if arguments.end_offsets is None else ends_of_file(spark, arguments.end_offsets)
        now = datetime.now(UTC) if plan.ends is not None else None
        options = RunOptions(as_of=arguments.as_of, window=arguments.window, ends=ends, now=now, replay_with=chosen)
        run_pipeline(spark, plan, output, options, RunProgress(_say))
        report = output.finished()
    pipeline_report.print_report(report, arguments.out, arguments.format)


def _generate(arguments: argparse.Namespace) -> None:
    from groupcoord.pipeline.log_generator import generate  # noqa: PLC0415 - of the extra

    with _session(arguments) as spark:
        generate(spark, arguments.records, arguments.seed, arguments.out, as_segments=arguments.format == "segments")
    print(f"{arguments.records:,} records in {arguments.out}")


def _session(arguments: argparse.Namespace) -> "AbstractContextManager[SparkSession]":
    from groupcoord.pipeline.spark_session import session  # noqa: PLC0415 - of the extra

    return session(arguments.master, dict(arguments.conf), packages=arguments.packages, is_verbose=arguments.verbose)


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise argparse.ArgumentTypeError(f"{text!r} is not KEY=VALUE")
    return key, value


def _count(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and 0 < int(text) <= MOST_RECORDS):
        raise argparse.ArgumentTypeError(f"{text!r} is no number of records up to {MOST_RECORDS:,}")
    return int(text)


def _time(text: str) -> datetime:
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no time such as 2026-11-21T12:00:00") from None
    return when.replace(tzinfo=UTC) if when.tzinfo is None else when


def _window(text: str) -> str:
    if not _WINDOW.fullmatch(text):
        raise argparse.ArgumentTypeError(f"{text!r} is no window such as '1 minute' or '10 seconds'")
    return text


def _complain(problem: str) -> int:
    print(f"groupcoord pipeline: {problem}", file=sys.stderr)
    return 1

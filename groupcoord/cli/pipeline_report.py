"""``groupcoord pipeline report`` and ``demo``: the page of a run anew, and all of it on the log of the demo."""

import argparse
import asyncio
import logging
import os
import sys
import webbrowser
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

from groupcoord.cli.demo.settings import missing_libraries
from groupcoord.pipeline.errors import PipelineError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from groupcoord.pipeline.report.report_model import Report

PAGE = "report.html"
REPLAYED = "range,sticky,cooperative-sticky"
Session = Callable[[argparse.Namespace], "AbstractContextManager[SparkSession]"]


def configure_report(parser: argparse.ArgumentParser, session: Session) -> None:
    """Declare the options of ``pipeline report``, but those of Spark."""
    parser.description = """\
Make DIR/report.html anew from DIR/report.json, which an earlier run has left.
Needs no Spark, unless DIR is a URL."""
    parser.set_defaults(action=_report, session=session, needed=("jinja2",))
    parser.add_argument("directory", metavar="DIR", help="what was --out; a directory, or any URL Spark can write to")
    add_format(parser)


def configure_demo(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``pipeline demo``."""
    parser.description = """\
Show groupcoord demo, read the log that it leaves by Spark, and open the report
where there is a display."""
    parser.set_defaults(action=_demo)
    parser.add_argument("--out", default="pipeline-demo", metavar="DIR", help="where to write (default: pipeline-demo)")
    parser.add_argument("--fast", action="store_true", help="do not pause for the reader")
    parser.add_argument("--no-open", action="store_true", help="name the report, and do not open it")


def add_format(parser: argparse.ArgumentParser) -> None:
    """How to say what came of it."""
    parser.add_argument(
        "--format", choices=("text", "json"), default="text", help="of what is said at the end (default: text)"
    )


def print_report(report: "Report", directory: str, form: str) -> None:
    """Say on stdout what came of it: in a few lines, or as one JSON document."""
    if form == "json":
        from groupcoord.pipeline.report.json_document import report_to_json  # noqa: PLC0415 - not every command needs it

        sys.stdout.write(report_to_json(report))
        return
    from groupcoord.pipeline.report.formatting import amount  # noqa: PLC0415

    of = report.overview
    print(
        f"{amount(of.records, 'records')}: {amount(of.rebalances, 'rebalances')} of {amount(of.groups, 'groups')}, "
        f"{amount(of.storms, 'storms')}, {amount(of.commit_gaps, 'pauses')} in which commits stopped"
    )
    print(f"tables in {directory}/tables, report in {directory}/{PAGE}")


def _report(arguments: argparse.Namespace) -> None:
    is_local = Path(arguments.directory).is_dir()
    if not is_local and "://" not in arguments.directory:
        raise PipelineError(f"there is no directory {arguments.directory}")
    from groupcoord.pipeline.report.stored_report import (  # noqa: PLC0415 - of the extra
        render_stored,
        render_stored_by_spark,
    )

    if is_local:
        report = render_stored(Path(arguments.directory))
    else:
        with arguments.session(arguments) as spark:
            report = render_stored_by_spark(spark, arguments.directory)
    print_report(report, arguments.directory, arguments.format)


def _demo(arguments: argparse.Namespace) -> None:
    missing = missing_libraries()
    if missing:
        raise PipelineError(
            f"not installed: {', '.join(missing)}; pip install 'groupcoord[client]' installs all it needs"
        )
    from groupcoord.cli.demo import TIME_LIMIT_S  # noqa: PLC0415 - these need the libraries
    from groupcoord.cli.demo.output import console  # noqa: PLC0415
    from groupcoord.cli.demo.story import show  # noqa: PLC0415
    from groupcoord.cli.main import main  # noqa: PLC0415 - which imports this
    from groupcoord.pipeline.java_runtime import find_java  # noqa: PLC0415

    find_java()  # who has none shall not hear of it after the show only
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
    """Whether a user can look at a browser: never in a CI, never without a terminal."""
    if os.environ.get("CI") or not sys.stdout.isatty():
        return False
    return sys.platform in {"win32", "darwin"} or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))

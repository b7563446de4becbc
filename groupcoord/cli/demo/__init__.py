"""``groupcoord demo``: runs a consumer group of three real client libraries on groupcoord, and explains what happens."""

import argparse
import asyncio
import logging
import sys
from importlib import util

from groupcoord.cli.main import complain
from groupcoord.cli.option_types import positive_number

TIME_LIMIT_S = 60.0
"""Three times the duration of the demo on a small machine."""
_MODULES = {"aiokafka": "aiokafka", "kafka-python": "kafka", "confluent-kafka": "confluent_kafka", "rich": "rich"}


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``demo``."""
    parser.description = (
        "Run a consumer group of aiokafka, kafka-python and confluent-kafka on a groupcoord broker in this process. They "
        "share the partitions of a topic, consume and commit; one member leaves, and one is killed. Then another group "
        "migrates to the protocol of KIP-848 while it consumes. Every step is explained as it happens. The exit code is 0 "
        "if every record was consumed and every committed offset is right, otherwise 1."
    )
    parser.add_argument(
        "lesson",
        nargs="?",
        choices=("zombie",),
        help="run this lesson instead: a worker with transactions hangs, is replaced by another one, and is fenced",
    )
    parser.add_argument("--fast", action="store_true", help="do not pause between the steps")
    parser.add_argument(
        "--page",
        action="store_true",
        help="also show the cluster on a live web page on this machine, until ctrl-C; needs groupcoord[control]",
    )
    parser.add_argument(
        "--time-limit",
        metavar="SECONDS",
        type=positive_number("{text} is not a number of seconds above 0"),
        default=TIME_LIMIT_S,
        help="give up after this time, and print what was still missing (default: 60; the demo takes about 20, or two thirds "
        "of that with --fast)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Run the demo; returns the exit code."""
    missing = missing_libraries()
    if missing:
        print(
            f"groupcoord demo: not installed: {', '.join(missing)}; pip install 'groupcoord[client]' installs all it needs",
            file=sys.stderr,
        )
        return 1
    page = None
    if arguments.page:
        if util.find_spec("fastapi") is None:
            return complain("demo", "--page needs fastapi: pip install 'groupcoord[control]'", 1)
        from groupcoord.page.html_embedding import PageNotBuiltError  # noqa: PLC0415 - rarely wanted
        from groupcoord.page.trace_page import live_page  # noqa: PLC0415

        try:
            page = live_page("groupcoord demo")
        except PageNotBuiltError as problem:
            return complain("demo", str(problem), 1)
    from groupcoord.cli.demo import story, zombie  # noqa: PLC0415 - these need the libraries
    from groupcoord.cli.demo.output import console  # noqa: PLC0415

    # The producer's library logs its retries, which are not part of the story.
    logging.getLogger("aiokafka").addHandler(logging.NullHandler())
    show = story.show if arguments.lesson is None else zombie.show
    return asyncio.run(show(console(), fast=arguments.fast, time_limit_s=arguments.time_limit, page=page))


def missing_libraries() -> list[str]:
    """The libraries that the demo needs and that are missing."""
    return [library for library, module in _MODULES.items() if util.find_spec(module) is None]

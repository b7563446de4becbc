"""``groupcoord serve``: one broker in the foreground, until SIGTERM or ctrl-C."""

import argparse
import asyncio
import contextlib
import gc
import logging
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from groupcoord.cli.main import forget_output
from groupcoord.config.errors import ConfigError
from groupcoord.config.properties import BROKER
from groupcoord.config.settings import BrokerConfig, load
from groupcoord.config.stand_in import DEFAULTS, DEV_DEFAULTS, StandIn
from groupcoord.server import log
from groupcoord.server.chance import SystemChance
from groupcoord.server.clock import wall_clock
from groupcoord.server.descriptors import raise_descriptor_limit
from groupcoord.server.server import Server

logger = logging.getLogger(__name__)

_LEVELS = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}
_EXIT_BY_SIGNAL = {"SIGINT": 130}  # SIGTERM is how a service is asked to end: it did, so 0


class Topic(NamedTuple):
    """A topic to begin with; ``partitions`` None is ``num.partitions``."""

    name: str
    partitions: int | None


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``serve``."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.description = """\
Serve one Kafka broker with its group coordinator. Everything is in memory, and
nothing is encrypted. The first line on stdout is "listening on HOST:PORT", once
connections are accepted; the log goes to stderr. SIGTERM and ctrl-C end it."""
    parser.epilog = "\n".join(
        [
            "Properties have Kafka's names and Kafka's defaults, but for these:",
            *map(_difference, DEFAULTS),
            "",
            "With --dev also these:",
            *map(_difference, DEV_DEFAULTS),
        ]
    )
    address = parser.add_argument_group("where")
    address.add_argument("--host", help="the address to listen on (127.0.0.1, or what listeners= says)")
    address.add_argument(
        "--port", type=_port, help="the port to listen on (9092, or what listeners= says); 0 picks one"
    )
    content = parser.add_argument_group("what")
    content.add_argument(
        "--topic",
        dest="topics",
        metavar="NAME[:PARTITIONS]",
        type=_topic,
        action="append",
        default=[],
        help="a topic to begin with; may be repeated",
    )
    content.add_argument(
        "-c",
        dest="properties",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="a property of a Kafka broker, as in server.properties; may be repeated, wins over --config",
    )
    content.add_argument("--config", metavar="FILE", type=Path, help="read properties from a Kafka server.properties")
    content.add_argument("--dev", action="store_true", help="defaults for quick tests, see below")
    content.add_argument(
        "--no-uvloop", action="store_true", help="use asyncio's own event loop even if uvloop is there"
    )
    logs = parser.add_argument_group("log")
    logs.add_argument("--log-format", choices=("text", "json"), default="text", help="lines to read or to parse (text)")
    level = logs.add_mutually_exclusive_group()
    level.add_argument("--log-level", choices=tuple(_LEVELS), default="info", help="the least to log (info)")
    level.add_argument(
        "-v",
        "--verbose",
        dest="log_level",
        action="store_const",
        const="debug",
        help="log every request and answer, too",
    )
    level.add_argument(
        "-q", "--quiet", dest="log_level", action="store_const", const="warning", help="log only what is wrong"
    )


def _difference(here: StandIn) -> str:
    """What ``--help`` says of a default that is not Kafka's."""
    kafkas = BROKER[here.name].default
    instead = "" if kafkas is None else f"  (Kafka: {kafkas})"
    reason = textwrap.fill(here.reason, 76, initial_indent="      ", subsequent_indent="      ")
    return f"  {here.name}={here.value}{instead}\n{reason}"


def run(arguments: argparse.Namespace) -> int:
    """Serve until told to stop; returns the exit code."""
    try:
        config = _config(arguments)
    except ConfigError as problem:
        return _complain(str(problem), 2)
    except OSError as problem:
        return _complain(f"cannot read {arguments.config}: {problem.strerror}", 1)
    log.set_up(arguments.log_format, _LEVELS[arguments.log_level])
    if config.without_effect:
        logger.info("accepted, but without effect here: %s", ", ".join(config.without_effect))
    raise_descriptor_limit()
    with asyncio.Runner(loop_factory=_loop_factory(allowed=not arguments.no_uvloop)) as runner:
        return runner.run(_serve(config, arguments.topics))


async def _serve(config: BrokerConfig, topics: list[Topic]) -> int:
    # The node is most of what there is to import, and a mistake on the command line should not wait for it.
    from groupcoord.node.node import Node  # noqa: PLC0415

    now_ms = wall_clock()
    node = Node(config, chance=SystemChance(), now_ms=now_ms())
    for topic in topics:
        partitions = config.num_partitions if topic.partitions is None else topic.partitions
        try:
            node.create_topic(topic.name, partitions, now_ms())
        except ValueError as problem:
            return _complain(f"--topic {topic.name}: {problem}", 2)
    host, port = config.served.host, config.served.port
    server = Server(node, host, port, now_ms=now_ms, listeners=[log.log_event])

    def announce(server: Server) -> None:
        gc.freeze()  # what is imported by now stays; no collection has to look at it again
        try:
            print(f"listening on {server.address}", flush=True)
        except OSError:  # whoever closed stdout does not want to know, which is no reason not to serve
            forget_output()

    try:
        ended_by = await server.serve(announce)
    except ConfigError as problem:
        return _complain(str(problem), 2)
    except OSError as problem:
        return _complain(f"cannot listen on {server.address}: {problem.strerror}", 1)
    return 0 if ended_by is None else _EXIT_BY_SIGNAL.get(ended_by.name, 0)


def _config(arguments: argparse.Namespace) -> BrokerConfig:
    """The properties of file and command line; ``--host`` and ``--port`` win over ``listeners``."""
    text, name = None, "server.properties"
    if arguments.config is not None:
        text, name = arguments.config.read_text(encoding="utf-8", errors="replace"), str(arguments.config)
    config = load(arguments.properties, file_text=text, file_name=name, dev=arguments.dev)
    if arguments.host is None and arguments.port is None:
        return config
    host = config.served.host if arguments.host is None else arguments.host
    port = config.served.port if arguments.port is None else arguments.port
    return config.listening_at(host, port)


def _loop_factory(*, allowed: bool) -> Callable[[], asyncio.AbstractEventLoop] | None:
    if not allowed:
        return None
    try:
        import uvloop  # noqa: PLC0415 - an extra that need not be installed
    except ImportError:
        return None
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory


def _topic(text: str) -> Topic:
    name, colon, count = text.rpartition(":")
    if not colon:
        return Topic(text, None)
    if not (count.isascii() and count.isdecimal() and int(count) > 0):
        raise argparse.ArgumentTypeError(f"{text}: the number of partitions is not a number above 0")
    return Topic(name, int(count))


def _port(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and int(text) <= 65_535):
        raise argparse.ArgumentTypeError(f"{text} is not a port: a number from 0 to 65535")
    return int(text)


def _complain(problem: str, code: int) -> int:
    with contextlib.suppress(OSError, ValueError):
        print(f"groupcoord serve: {problem}", file=sys.stderr)
    return code

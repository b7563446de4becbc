"""``groupcoord serve``: runs one broker, or several as a cluster, in the foreground until SIGTERM or ctrl-C."""

import argparse
import asyncio
import errno
import gc
import logging
import os
import signal
import textwrap
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from groupcoord.cli.main import complain, forget_output
from groupcoord.cli.option_types import positive_number, whole_number
from groupcoord.cli.serve_environment import read_variables
from groupcoord.config.broker_config import DEFAULTS, DEV_DEFAULTS, BrokerConfig, DefaultOverride, load
from groupcoord.config.config_def import ConfigError
from groupcoord.config.features import check_levels
from groupcoord.config.property_definitions import BROKER
from groupcoord.server import event_logging
from groupcoord.server.clock_and_random_ids import NowMs, SystemRandomSource
from groupcoord.server.event_logging import LogRateLimiter
from groupcoord.server.file_descriptor_limit import raise_descriptor_limit
from groupcoord.server.server import Server
from groupcoord.wall_clock import wall_clock

if TYPE_CHECKING:
    from groupcoord.storage.file_storage_backend import DataDirectory
    from groupcoord.testing.faults.rule_file import NamedRule

logger = logging.getLogger(__name__)

_LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}
_EXIT_BY_SIGNAL = {"SIGINT": 130}  # SIGTERM is how a service is asked to end: it did, so 0


class TopicOption(NamedTuple):
    """A topic that exists from the start; ``partitions`` None: ``num.partitions``."""

    name: str
    partitions: int | None


class BrokerOptions(NamedTuple):
    """The number of brokers, their racks (assigned in turn), and the feature levels of the cluster."""

    number: int
    racks: tuple[str, ...]
    features: dict[str, int]


_REPEATED: dict[str, Any] = {"action": "append", "default": []}
"""Help text of an option that may be repeated."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``serve``."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.description = """\
Run one Kafka broker with its group coordinator, or a cluster of several brokers,
until SIGTERM or ctrl-C. All data is in memory unless --data-dir is given;
connections are not encrypted.

When the broker accepts connections, it prints "listening on HOST:PORT" on
stdout. More lines follow:
  broker ID listening on HOST:PORT          for each further broker (--brokers)
  listening on HOST:PORT for NAME           for each further listener of listeners=
  control listening on http://HOST:PORT     with --control or --page
  page at URL                               with --page

The log is written to stderr or --log-file. In ten seconds at most a hundred
lines of one kind are written; the others are counted. If nobody reads stderr,
the server continues; lines that do not fit are dropped and counted."""
    parser.epilog = "\n".join(
        [
            "Broker properties have Kafka's names and Kafka's defaults, except these:",
            *map(_difference, DEFAULTS),
            "",
            'With --brokers N, the defaults of 1 for "there is one broker" become N, but at',
            "most Kafka's default.",
            "",
            "With --dev these defaults are different, too:",
            *map(_difference, DEV_DEFAULTS),
            "",
            "Options can also be set by environment variables: GROUPCOORD_DATA_DIR=/data,",
            "GROUPCOORD_DEV=true, GROUPCOORD_TOPICS=orders:6,payments. Any other variable",
            "GROUPCOORD_A_B sets the property a.b. It overrides --config; -c overrides both.",
        ]
    )
    address = parser.add_argument_group("addresses and brokers")
    address.add_argument(
        "--host", help="address to listen on (default: 127.0.0.1, or the host of the first of listeners=)"
    )
    address.add_argument(
        "--port",
        type=_port,
        help="port to listen on; 0: any free port (default: 9092, or the port of the first of listeners=)",
    )
    address.add_argument(
        "--brokers",
        metavar="N",
        type=whole_number("{text} is not a number of brokers above 0"),
        default=1,
        help="run a cluster of N brokers (default: 1); their ids are node.id, node.id+1 and so on, and their ports are "
        "PORT, PORT+1 and so on, or any free ports if PORT is 0",
    )
    address.add_argument(
        "--racks",
        metavar="RACK,...",
        type=_racks,
        default=(),
        help="racks of the brokers, assigned in turn (default: broker.rack for all)",
    )
    content = parser.add_argument_group("topics, data and properties")
    content.add_argument(
        "--topic",
        dest="topics",
        metavar="NAME[:PARTITIONS]",
        type=_topic,
        **_REPEATED,
        help="create this topic at the start if it does not exist; may be repeated",
    )
    content.add_argument(
        "--data-dir",
        metavar="DIR",
        type=Path,
        help="store topics and committed offsets in DIR in Kafka's file formats, and load them at the start; "
        "each of several brokers has its own directory in DIR, named by its id",
    )
    content.add_argument(
        "-c",
        dest="properties",
        metavar="KEY=VALUE",
        **_REPEATED,
        help="set a broker property, as in server.properties; overrides --config; may be repeated",
    )
    content.add_argument(
        "--feature",
        dest="features",
        metavar="NAME=LEVEL",
        type=_feature,
        **_REPEATED,
        help="set the level of a feature, such as transaction.version=0 (default: the level that kafka-features.sh has "
        "stored in --data-dir, otherwise that of a new Kafka 4.3 cluster); may be repeated",
    )
    content.add_argument("--config", metavar="FILE", type=Path, help="read properties from a Kafka server.properties")
    content.add_argument(
        "--faults",
        metavar="FILE",
        type=Path,
        help="apply the fault rules in this YAML file, which refuse, delay, lose or damage requests; see docs/faults.md",
    )
    content.add_argument("--dev", action="store_true", help="use defaults for quick tests, see below")
    content.add_argument(
        "--no-uvloop", action="store_true", help="use asyncio's own event loop even if uvloop is installed"
    )
    content.add_argument(
        "--until-stdin-ends",
        action="store_true",
        help="stop, as after SIGTERM, when stdin ends; so the server also stops if the program that started it is killed",
    )
    control = parser.add_argument_group("control over HTTP")
    control.add_argument(
        "--control",
        metavar="[HOST:]PORT",
        type=_control,
        help="serve the control API over HTTP at this address (default host: 127.0.0.1; 0: any free port), for tests in any "
        "language: see docs/control.md; needs groupcoord[control]",
    )
    control.add_argument(
        "--page",
        action="store_true",
        help="show the cluster on a live web page, with buttons that act on it, at the address of --control, or at any free "
        "port of 127.0.0.1: see docs/page.md; needs groupcoord[control]",
    )
    control.add_argument(
        "--control-token",
        metavar="TOKEN",
        help="refuse control requests without this token (or that in GROUPCOORD_CONTROL_TOKEN); required if other machines "
        "can reach the address of --control",
    )
    control.add_argument(
        "--clock",
        choices=("real", "manual", "fast"),
        help="with --control or --page, the clock of the brokers: the wall clock (real, the default), one that only "
        "POST /clock/advance moves (manual), or one that runs --speed times as fast as the wall clock (fast)",
    )
    control.add_argument(
        "--speed",
        metavar="N",
        type=positive_number("{text} is not a number above 0"),
        help="speed of --clock fast, as a multiple of the wall clock (default: 100)",
    )
    logs = parser.add_argument_group("log")
    logs.add_argument("--log-file", metavar="FILE", type=Path, help="write the log to FILE instead of stderr")
    logs.add_argument(
        "--log-max-bytes",
        metavar="BYTES",
        type=_count,
        default=100_000_000,
        help="rename FILE to FILE.1 and start a new one before it gets larger than this (default: 100,000,000)",
    )
    logs.add_argument(
        "--log-files", metavar="N", type=_count, default=5, help="keep N log files and delete older ones (default: 5)"
    )
    logs.add_argument(
        "--log-every-line", action="store_true", help="do not limit the lines of one kind in the log; -v implies this"
    )
    logs.add_argument(
        "--log-format", choices=("text", "json"), default="text", help="text, or JSON for programs (default: text)"
    )
    level = logs.add_mutually_exclusive_group()
    level.add_argument(
        "--log-level", choices=tuple(_LEVELS), default="info", help="lowest level to log (default: info)"
    )
    level.add_argument(
        "-v",
        "--verbose",
        dest="log_level",
        action="store_const",
        const="debug",
        help="also log every request and response; same as --log-level debug",
    )
    level.add_argument(
        "-q", "--quiet", dest="log_level", action="store_const", const="warning", help="log only warnings and errors"
    )
    variables = read_variables(parser._actions, os.environ)  # noqa: SLF001 - argparse lists its options nowhere else
    parser.set_defaults(variables=variables, **variables.options)


def _difference(here: DefaultOverride) -> str:
    """The text in ``--help`` for a default that differs from Kafka's."""
    kafkas = BROKER[here.name].default
    instead = "" if kafkas is None else f"  (Kafka: {kafkas})"
    reason = textwrap.fill(here.reason, 76, initial_indent="      ", subsequent_indent="      ")
    return f"  {here.name}={here.value}{instead}\n{reason}"


def run(arguments: argparse.Namespace) -> int:
    """Serve until a signal comes; returns the exit code."""
    several = BrokerOptions(arguments.brokers, arguments.racks, dict(arguments.features))
    contradiction = _contradiction(arguments, several)
    if contradiction is not None:
        return complain("serve", contradiction, 2)
    try:
        config = _config(arguments)
    except ConfigError as problem:
        return complain("serve", str(problem), 2)
    except OSError as problem:
        return complain("serve", f"cannot read {arguments.config}: {problem.strerror}", 1)
    rules: list[NamedRule] = []
    if arguments.faults is not None:
        from groupcoord.testing.faults.rule_file import RuleFileError, load_rules  # noqa: PLC0415 - rarely wanted

        try:
            rules = load_rules(arguments.faults, range(config.node_id, config.node_id + arguments.brokers))
        except RuleFileError as problem:
            return complain("serve", str(problem), 2)
        except OSError as problem:
            return complain("serve", f"cannot read {arguments.faults}: {problem.strerror}", 1)
    try:
        limiter = _set_up_log(arguments)
    except OSError as problem:
        return complain("serve", f"cannot write {arguments.log_file}: {problem.strerror}", 1)
    if config.without_effect:
        logger.info("accepted, but without effect here: %s", ", ".join(config.without_effect))
    raise_descriptor_limit()
    with asyncio.Runner(loop_factory=_loop_factory(allowed=not arguments.no_uvloop)) as runner:
        if limiter is not None:
            limiter.later = runner.get_loop().call_later
        try:
            return runner.run(_serve_until_ended(config, arguments, several, rules))
        finally:
            if limiter is not None:
                limiter.later = None  # the loop is about to close, and what is logged then is told at the end


async def _serve_until_ended(
    config: BrokerConfig, arguments: argparse.Namespace, several: BrokerOptions, rules: "list[NamedRule]"
) -> int:
    if arguments.until_stdin_ends:
        threading.Thread(target=_end_with_stdin, name="until stdin ends", daemon=True).start()
    if arguments.page or arguments.control is not None:
        return await _serve_with_control(config, arguments, several, rules)
    return await _serve(config, arguments.topics, arguments.data_dir, several, rules)


def _end_with_stdin() -> None:
    while os.read(0, 4096):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


def _contradiction(arguments: argparse.Namespace, several: BrokerOptions) -> str | None:
    """The error text for options that cannot be combined, or None."""
    if len(several.racks) > several.number:
        return f"--racks names {len(several.racks)} racks, and there are fewer brokers: {several.number}"
    is_controlled = arguments.page or arguments.control is not None
    if not is_controlled and (arguments.clock or arguments.speed or arguments.control_token):
        return "--clock, --speed and --control-token go with --control or --page"
    if arguments.speed and arguments.clock != "fast":
        return "--speed goes with --clock fast"
    return None


def _set_up_log(arguments: argparse.Namespace) -> LogRateLimiter | None:
    """Set up logging. Raises OSError if the log file cannot be opened."""
    level = _LEVELS[arguments.log_level]
    file = None
    if arguments.log_file is not None:
        file = event_logging.LogFile(arguments.log_file, arguments.log_max_bytes, arguments.log_files)
    if arguments.log_every_line or level == logging.DEBUG:
        event_logging.set_up(arguments.log_format, level, file=file)
        return None
    return event_logging.set_up(arguments.log_format, level, file=file, limit=LogRateLimiter)


async def _serve(
    config: BrokerConfig,
    topics: list[TopicOption],
    data_dir: Path | None,
    several: BrokerOptions,
    rules: "list[NamedRule]",
) -> int:
    now_ms = wall_clock()
    if data_dir is None:
        return await _serve_node(config, topics, now_ms, None, several, rules)
    # Not on every system, and a third of the start if it is not wanted.
    try:
        from groupcoord.storage.file_io import StorageError  # noqa: PLC0415
        from groupcoord.storage.file_storage_backend import DataDirectory  # noqa: PLC0415
    except ImportError as problem:  # there is no fcntl
        return complain("serve", f"--data-dir needs a POSIX system: {problem}", 1)
    try:
        storage = DataDirectory(
            data_dir, config, new_uuid=SystemRandomSource().uuid, now_ms=now_ms(), brokers=several.number
        )
    except StorageError as problem:
        return complain("serve", str(problem), 1)
    for finding in storage.findings:
        logger.warning("%s", finding)
    try:
        code = await _serve_node(storage.config, topics, now_ms, storage, several, rules)
    finally:
        storage.close()
    return code if storage.failure is None else complain("serve", storage.failure, 1)


async def _serve_node(
    config: BrokerConfig,
    topics: list[TopicOption],
    now_ms: NowMs,
    storage: "DataDirectory | None",
    several: BrokerOptions,
    rules: "list[NamedRule]",
) -> int:
    # The cluster is most of what there is to import, and a mistake on the command line should be told before that.
    from groupcoord.broker.storage_backend import IN_MEMORY_STORAGE  # noqa: PLC0415
    from groupcoord.cluster.assemble import InvalidTopicError, assemble  # noqa: PLC0415

    try:
        assembly = assemble(
            config,
            random=SystemRandomSource(),
            now_ms=now_ms(),
            topics=[(name, config.num_partitions if count is None else count) for name, count in topics],
            storage=storage or IN_MEMORY_STORAGE,
            brokers=several.number,
            racks=several.racks,
            features=several.features,
        )
    except InvalidTopicError as problem:
        return complain("serve", f"--topic {problem.topic}: {problem}", 2)
    faults = layer = None
    if rules:
        from groupcoord.testing.faults.api import Faults  # noqa: PLC0415

        faults = Faults(now_ms=now_ms)
        layer = faults.add_layer(assembly)
        faults.add_named(rules)
    server = Server(
        assembly.served,
        config.served[0].host,
        config.served[0].port,
        now_ms=now_ms,
        listeners=[event_logging.log_emitted] if event_logging.is_heard() else [],
        brokers=assembly.brokers,
        files_to_come=(lambda: 0) if storage is None else storage.files_to_come,
    )
    if layer is not None:
        layer.broker_stopped = server.close_broker_soon
    if storage is not None:
        storage.on_failure = server.stop
        storage.on_shortage = logger.warning

    try:
        ended_by = await server.serve(lambda server: _announce(_where(server.listener_addresses, assembly.brokers.ids)))
    except ConfigError as problem:
        return complain("serve", str(problem), 2)
    except OSError as problem:
        return complain("serve", _cannot_listen(problem), 1)
    if faults is not None:
        faults.log_unused()
    return _exit_code(ended_by)


async def _serve_with_control(
    config: BrokerConfig, arguments: argparse.Namespace, several: BrokerOptions, rules: "list[NamedRule]"
) -> int:
    """Serve the brokers as a ``testing.Cluster``, with the control API."""
    try:
        from groupcoord.control.access import is_loopback  # noqa: PLC0415 - an extra that need not be installed
        from groupcoord.control.controlled_clusters import DEFAULT, ControlledCluster  # noqa: PLC0415
        from groupcoord.control.serving import serve  # noqa: PLC0415
    except ImportError as problem:
        return complain("serve", f"--control needs {problem.name}: pip install 'groupcoord[control]'", 1)
    from groupcoord.storage.file_io import StorageError  # noqa: PLC0415 - as much as the others

    host, port = arguments.control or ("127.0.0.1", 0)
    token = arguments.control_token or os.environ.get("GROUPCOORD_CONTROL_TOKEN") or None
    if token is None and not is_loopback(host):
        return complain(
            "serve", f"--control {host}: others than this machine reach it, so it needs a --control-token", 2
        )
    page = None
    if arguments.page:
        from groupcoord.page.html_embedding import PageNotBuiltError  # noqa: PLC0415 - rarely wanted
        from groupcoord.page.trace_page import live_page  # noqa: PLC0415

        try:
            page = live_page("groupcoord serve")
        except PageNotBuiltError as problem:
            return complain("serve", str(problem), 1)
    topics = {name: config.num_partitions if count is None else count for name, count in arguments.topics}
    try:
        cluster = ControlledCluster(
            DEFAULT,
            rules=rules,
            topics=topics,
            brokers=several.number,
            racks=several.racks,
            features=several.features,
            config=config.static,
            dev=False,  # --dev is in the configuration
            clock=arguments.clock or "real",
            speed=arguments.speed or 100.0,
            host=config.served[0].host,
            port=config.served[0].port,
            data_dir=arguments.data_dir,
            detailed_trace=arguments.page,
            listeners=[event_logging.log_event] if event_logging.is_heard() else [],
        )
    except ValueError as problem:
        return complain("serve", str(problem), 2)

    def announce(url: str) -> None:
        _announce(
            [
                *_where(cluster.listener_addresses, list(cluster.brokers)),
                f"control listening on {url}",
                *([f"page at {url}/page/"] if page else []),
            ]
        )

    try:
        ended_by = await serve(cluster, host, port, token=token, page=page, announce=announce)
    except ConfigError as problem:
        return complain("serve", str(problem), 2)
    except StorageError as problem:
        return complain("serve", str(problem), 1)
    except OSError as problem:
        return complain("serve", _cannot_listen(problem), 1)
    if cluster.storage_failure is not None:
        return complain("serve", cluster.storage_failure, 1)
    return _exit_code(ended_by)


def _announce(lines: Iterable[str]) -> None:
    """Print on stdout that connections are accepted, and where."""
    gc.freeze()  # imported objects stay, so that no garbage collection has to look at them again
    try:
        print("\n".join(lines), flush=True)
    except OSError:  # stdout is closed, which does not prevent serving
        forget_output()


def _cannot_listen(problem: OSError) -> str:
    hint = "; port 0 is any that is free" if problem.errno == errno.EADDRINUSE else ""
    return f"cannot listen on {problem.filename}: {problem.strerror}{hint}"


def _exit_code(ended_by: signal.Signals | None) -> int:
    return 0 if ended_by is None else _EXIT_BY_SIGNAL.get(ended_by.name, 0)


def _where(listener_addresses: Mapping[str, Sequence[str]], broker_ids: Sequence[int]) -> Iterator[str]:
    """The first lines on stdout: the address of each broker, with the name of the listener except for the first one."""
    for listener, (name, addresses) in enumerate(listener_addresses.items()):
        said = f"listening on {{}} for {name}" if listener else "listening on {}"
        for broker_id, address in zip(broker_ids, addresses, strict=True):
            whose = "" if broker_id == broker_ids[0] else f"broker {broker_id} "
            yield whose + said.format(address)


def _config(arguments: argparse.Namespace) -> BrokerConfig:
    """The configs of file, variables and command line; ``--host`` and ``--port`` override the first of ``listeners``."""
    if arguments.variables.problem is not None:
        raise arguments.variables.problem
    text, name = None, "server.properties"
    if arguments.config is not None:
        text, name = arguments.config.read_text(encoding="utf-8", errors="replace"), str(arguments.config)
    config = load(
        arguments.properties,
        file_text=text,
        file_name=name,
        variables=arguments.variables.properties,
        dev=arguments.dev,
        brokers=arguments.brokers,
    )
    if arguments.host is None and arguments.port is None:
        return config
    host = config.served[0].host if arguments.host is None else arguments.host
    port = config.served[0].port if arguments.port is None else arguments.port
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


def _topic(text: str) -> TopicOption:
    name, colon, count = text.rpartition(":")
    if not colon:
        return TopicOption(text, None)
    if not (count.isascii() and count.isdecimal() and int(count) > 0):
        raise argparse.ArgumentTypeError(f"{text}: the number of partitions is not a number above 0")
    return TopicOption(name, int(count))


_count = whole_number("{text} is not a number above 0")
_port = whole_number("{text} is not a port: a number from 0 to 65535", 0, 65_535)


def _control(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    return host.removeprefix("[").removesuffix("]") or "127.0.0.1", _port(port)


def _racks(text: str) -> tuple[str, ...]:
    racks = tuple(rack.strip() for rack in text.split(","))
    if not all(racks):
        raise argparse.ArgumentTypeError(f"{text}: a rack has no name")
    return racks


def _feature(text: str) -> tuple[str, int]:
    name, _, level = text.partition("=")
    try:
        check_levels({name: int(level)})
    except ValueError as problem:
        said = f"{text} is not NAME=LEVEL" if not level.isdecimal() else str(problem)
        raise argparse.ArgumentTypeError(said) from None
    return name, int(level)

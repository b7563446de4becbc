"""``groupcoord proxy``: runs a proxy between clients and a real cluster, in the foreground until SIGTERM or ctrl-C."""

import argparse
import asyncio
import contextlib
import errno
import logging
import signal
from pathlib import Path
from typing import TextIO

from groupcoord.cli.main import complain
from groupcoord.cli.option_types import listen_address
from groupcoord.core.events import Event
from groupcoord.page.html_embedding import PageNotBuiltError
from groupcoord.page.trace_page import live_page
from groupcoord.proxy import recording
from groupcoord.proxy.proxy import Proxy
from groupcoord.proxy.recording import RecordedFrame
from groupcoord.proxy.written_trace import WrittenTrace
from groupcoord.server import event_logging
from groupcoord.server.address_text import host_and_port
from groupcoord.server.event_logging import LogRateLimiter
from groupcoord.server.file_descriptor_limit import raise_descriptor_limit
from groupcoord.server.server import captured_signals
from groupcoord.storage.file_io import write_output
from groupcoord.testing.faults.api import Faults
from groupcoord.testing.faults.rule_file import NamedRule, RuleFileError, load_rules
from groupcoord.testing.trace.events import ConnectionClosed, ConnectionOpened, RequestEvent
from groupcoord.wall_clock import wall_clock

logger = logging.getLogger(__name__)

_FLUSH_SECONDS = 0.5
_EXIT_BY_SIGINT = 130

_address = listen_address("{text} is not HOST:PORT")


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``proxy``."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.description = """\
Run a proxy between clients and a Kafka cluster, until SIGTERM or ctrl-C. It forwards requests
and responses, and logs the events of consumer groups to stderr. Clients connect to the proxy.
Each broker that a response names gets a port of the proxy, which replaces the broker's address
in responses, so that clients always connect through the proxy. At the end, it prints on stdout
for each group why its newest generation or epoch began."""
    parser.epilog = """\
  groupcoord proxy --to kafka:9092 --listen 127.0.0.1:19092 --trace kafka.jsonl
  groupcoord proxy --to kafka:9092 --faults faults.yaml
  groupcoord proxy --to kafka:9092 --record incident.jsonl && groupcoord replay incident.jsonl"""
    parser.add_argument("--to", required=True, metavar="HOST:PORT", type=_address, help="a broker of the cluster")
    parser.add_argument(
        "--listen",
        metavar="HOST:PORT",
        type=_address,
        default=("127.0.0.1", 19092),
        help="address for clients; further brokers get the ports after it; port 0: any free ports (default: 127.0.0.1:19092)",
    )
    parser.add_argument(
        "--trace", metavar="FILE", type=Path, help="write every request, response and event as JSON lines"
    )
    parser.add_argument("--log", metavar="FILE", type=Path, help="write every request, response and event as text")
    parser.add_argument(
        "--mermaid", metavar="FILE", type=Path, help="at the end, write a sequence diagram of the groups"
    )
    parser.add_argument("--record", metavar="FILE", type=Path, help="record all frames, for groupcoord replay")
    parser.add_argument(
        "--faults", metavar="FILE", type=Path, help="apply the fault rules in this YAML file; see docs/faults.md"
    )
    parser.add_argument(
        "--page",
        metavar="[HOST:]PORT",
        type=_page_address,
        help="show the traffic on a live web page for this machine only: see docs/page.md; needs groupcoord[control]",
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="log only warnings and errors")


def run(arguments: argparse.Namespace) -> int:
    """Run the proxy until a signal comes; returns the exit code."""
    rules: list[NamedRule] = []
    html = None
    if arguments.page is not None:
        try:
            import groupcoord.cli.proxy_page_server  # noqa: F401, PLC0415 - an extra that need not be installed

            html = live_page(f"groupcoord proxy --to {host_and_port(*arguments.to)}", acts=False)
        except ImportError as problem:
            return complain("proxy", f"--page needs {problem.name}: pip install 'groupcoord[control]'", 1)
        except PageNotBuiltError as problem:
            return complain("proxy", str(problem), 1)
    try:
        if arguments.faults is not None:
            rules = load_rules(arguments.faults, ())
    except RuleFileError as problem:
        return complain("proxy", str(problem), 2)
    except OSError as problem:
        return complain("proxy", f"cannot read {arguments.faults}: {problem.strerror}", 1)
    level = logging.WARNING if arguments.quiet else logging.INFO
    limiter = event_logging.set_up("text", level, limit=LogRateLimiter)
    raise_descriptor_limit()
    with contextlib.ExitStack() as files:
        try:
            json_file, text_file, record_file = (
                None if path is None else files.enter_context(path.open("w", encoding="utf-8"))
                for path in (arguments.trace, arguments.log, arguments.record)
            )
        except OSError as problem:
            return complain("proxy", f"cannot write {problem.filename}: {problem.strerror}", 1)
        trace = WrittenTrace(json_file=json_file, text_file=text_file)
        with asyncio.Runner() as runner:
            if limiter is not None:
                limiter.later = runner.get_loop().call_later
            try:
                code = runner.run(_serve(arguments, rules, trace, [json_file, text_file, record_file], html))
            except OSError as problem:
                where = problem.filename or host_and_port(*arguments.listen)
                hint = "; port 0 is any that is free" if problem.errno == errno.EADDRINUSE else ""
                return complain("proxy", f"cannot listen on {where}: {problem.strerror}{hint}", 1)
            finally:
                if limiter is not None:
                    limiter.later = None
    return _tell_the_end(arguments, trace, code)


async def _serve(
    arguments: argparse.Namespace,
    rules: list[NamedRule],
    trace: WrittenTrace,
    files: list[TextIO | None],
    html: str | None,
) -> int:
    now_ms = wall_clock()
    record_file = files[-1]

    def record(frame: RecordedFrame) -> None:
        if record_file is not None:
            record_file.write(recording.line_of(frame))

    if record_file is not None:
        record_file.write(recording.header())
    faults = None
    if rules:
        faults = Faults(now_ms=now_ms)
        faults.add_named(rules)
    stop: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    def stopped(by: signal.Signals) -> None:
        if not stop.done():
            stop.set_result(_EXIT_BY_SIGINT if by is signal.SIGINT else 0)

    proxy = Proxy(
        arguments.to,
        *arguments.listen,
        now_ms=now_ms,
        tell=[trace] if arguments.quiet else [trace, _log],
        record=None if record_file is None else record,
        faults=faults,
    )
    with captured_signals(stopped):
        async with proxy, contextlib.AsyncExitStack() as page:
            said = [f"listening on {proxy.address} for {host_and_port(*proxy.to)}"]
            if html is not None:
                from groupcoord.cli.proxy_page_server import page_server  # noqa: PLC0415 - see above

                said.append(f"page at {await page.enter_async_context(page_server(trace, html, *arguments.page))}")
            print("\n".join(said), flush=True)
            while not stop.done():
                await asyncio.wait([stop], timeout=_FLUSH_SECONDS)
                for file in files:
                    if file is not None:
                        file.flush()
    if faults is not None:
        faults.log_unused()
    return stop.result()


def _log(event: Event) -> None:
    """Log events of groups and faults; requests and connections are only in the trace."""
    if not isinstance(event, RequestEvent | ConnectionOpened | ConnectionClosed):
        event_logging.log_event(event)


def _tell_the_end(arguments: argparse.Namespace, trace: WrittenTrace, code: int) -> int:
    if arguments.mermaid is not None:
        try:
            write_output(arguments.mermaid, trace.mermaid() + "\n")
        except OSError as problem:
            return complain("proxy", f"cannot write {arguments.mermaid}: {problem.strerror}", 1)
    for group in trace.groups():
        with contextlib.suppress(LookupError):  # nothing began: it only committed
            print(f"{group}: {trace.why(group)}")
    return code


def _page_address(text: str) -> tuple[str, int]:
    host, port = _address(text if ":" in text else f"127.0.0.1:{text}")
    if host not in ("localhost", "127.0.0.1", "::1"):
        raise argparse.ArgumentTypeError(
            f"{host} is not this machine: the page has all that passes, and asks for no token"
        )
    return host, port

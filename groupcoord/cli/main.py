"""The entry point of the command ``groupcoord``: finds the subcommand, imports only that one, and runs it.

A subcommand is a module of this package with ``configure(parser)`` and ``run(arguments) -> exit code``. Exit codes: 0 success,
1 failure, 2 wrong usage, 130 stopped with ctrl-C, 141 stdout was closed by its reader (SIGPIPE).
"""

import argparse
import contextlib
import errno
import gc
import io
import os
import signal
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any, NoReturn

from groupcoord.version import VERSION

GARBAGE_THRESHOLD = 20_000
"""The threshold of Python's garbage collector (default 700), in new objects. Requests and responses create thousands of objects
a second and no reference cycles, and collections would take a tenth of the time of a start, and of a heartbeat."""

COMMANDS = {
    "serve": "run a broker, or a cluster of several",
    "cluster": "show a running cluster; stop, kill and start its brokers",
    "demo": "run and explain a consumer group of three real client libraries",
    "page": "show a saved trace as a web page",
    "assign": "show which partitions each assignor gives to which member",
    "pipeline": "turn __consumer_offsets into tables and a report, with Spark",
    "dissect": "show frames, captures and segment files field by field",
    "proxy": "run a proxy in front of a cluster, and explain its groups",
    "replay": "send the requests that the proxy has recorded to groupcoord",
    "offsets": "show, compact, export and import __consumer_offsets",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line ``argv`` (default: that of the process), and return its exit code."""
    _fill_standard_descriptors()
    if isinstance(sys.stdout, io.TextIOWrapper):  # a locale without UTF-8 lacks some of the characters that are printed
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        try:
            return _run(sys.argv[1:] if argv is None else argv)
        finally:
            if sys.stdout is not None:
                sys.stdout.flush()
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    except BrokenPipeError:
        forget_output()
        return 128 + 13  # the shell's exit code for a program that SIGPIPE has ended
    except OSError as problem:
        if problem.errno != errno.ENOSPC:
            raise
        forget_output()
        print(f"groupcoord: cannot write {problem.filename or 'the output'}: {problem.strerror}", file=sys.stderr)
        return 1


def _run(argv: Sequence[str]) -> int:
    parser = _Parser(prog="groupcoord", description="Apache Kafka's group coordination, with Kafka's wire protocol.")
    parser.add_argument(
        "--version", action="version", version=f"groupcoord {VERSION}", help="print the version and exit"
    )
    subparsers = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    parsers = {name: subparsers.add_parser(name, help=summary) for name, summary in COMMANDS.items()}
    chosen = next((argument for argument in argv if argument in COMMANDS), None)
    if chosen is None:
        parser.parse_args(argv)  # prints the error, or the requested help
        raise AssertionError("a command line without a command was accepted")
    gc.set_threshold(GARBAGE_THRESHOLD, *gc.get_threshold()[1:])
    command = import_module(f"groupcoord.cli.{chosen}")
    command.configure(parsers[chosen])
    code: int = command.run(parser.parse_args(argv))
    return code


class _Parser(argparse.ArgumentParser):
    """An argument parser whose error messages are one line, of the command to which the wrong argument belongs.

    It takes no abbreviation of an option, which might be meant for another one: ``--to`` is not ``--topic``.
    """

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings, allow_abbrev=False)

    def error(self, message: str) -> NoReturn:
        """Print the error and exit; where a command is missing, it names those there are."""
        for action in self._actions:
            if isinstance(action, argparse._SubParsersAction) and message.endswith(f"are required: {action.metavar}"):  # noqa: SLF001 - it has no public name
                message += f", one of {', '.join(action.choices)}; {self.prog} --help says more"
        self.exit(2, f"{self.prog}: {message}\n")

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        """Parse all arguments; an unknown one ends the program, with the most similar option in the error."""
        arguments, unknown = super().parse_known_args(args, namespace)
        if unknown:
            option = unknown[0].partition("=")[0]
            if not option.startswith("-"):
                self.error(f"unexpected argument: {option}")
            from groupcoord.did_you_mean import did_you_mean  # noqa: PLC0415 - only a mistake needs it

            # Without the dashes, which all have: --port is not like --to.
            there_are = {one.lstrip("-"): one for action in self._actions for one in action.option_strings}
            otherwise = f"{self.prog} --help names those there are"
            hint = did_you_mean(option.lstrip("-"), there_are, otherwise=otherwise, shown=there_are.__getitem__)
            self.error(f"there is no option {option}; {hint}")
        return arguments, unknown


def _fill_standard_descriptors() -> None:
    """Open those of stdin, stdout and stderr that the caller has closed, on /dev/null.

    Otherwise the next socket would get their number; libuv aborts the process when it closes such a socket.
    """
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest free number


def complain(command: str, problem: str, code: int) -> int:
    """Print an error on stderr, unless it is closed; returns the exit code ``code``."""
    with contextlib.suppress(OSError, ValueError):
        print(f"groupcoord {command}: {problem}", file=sys.stderr)
    return code


def forget_output() -> None:
    """Discard what is in the buffer of a closed stdout, about which the interpreter would complain at exit."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())


if __name__ == "__main__":
    sys.exit(main())

"""``python -m bench [NAME ...]`` runs these benchmarks, or all except the long ones."""

import argparse
import platform
import sys
from collections.abc import Sequence
from importlib import import_module

from tests.real_kafka.broker import RealKafkaUnavailable

NAMES = (
    "ready",
    "core",
    "batches",
    "heartbeats",
    "crowds",
    "consumer_groups",
    "throughput",
    "consumers",
    "storage",
    "offsets",
    "commits",
    "transactions",
    "producer",
    "kafka_tools",
    "topics",
    "proxy",
    "memory",
    "assignors",
    "pipeline",
)
LASTING = ("soak",)
"""Run only when named."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Print each table as it is ready. Returns 0; exits with 2 for an unknown name."""
    known = ", ".join((*NAMES, *LASTING))
    parser = argparse.ArgumentParser(
        prog="python -m bench",
        description="Run benchmarks of groupcoord and of comparable programs, and print the results as tables.",
    )
    parser.add_argument(
        "names",
        nargs="*",
        metavar="NAME",
        help=f"benchmarks to run: {known} (default: all except {', '.join(LASTING)}, which takes an hour)",
    )
    names: list[str] = parser.parse_args(arguments).names
    unknown = [name for name in names if name not in (*NAMES, *LASTING)]
    if unknown:
        parser.error(f"there is no benchmark {', '.join(unknown)}; there are {known}")
    print(f"Python {platform.python_version()}, {platform.machine()}, {platform.system()}\n")
    for name in names or NAMES:
        try:
            module = import_module(f"bench.{name}")
        except ModuleNotFoundError as problem:
            print(f"{name}: left out, {problem.name} is missing\n", flush=True)
            continue
        try:
            for table in module.run():
                print(table, flush=True)
        except RealKafkaUnavailable as reason:
            print(f"{name}: left out, {reason}\n", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

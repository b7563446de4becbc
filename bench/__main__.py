"""``python -m bench [NAME ...]`` runs these benchmarks, or all except the long ones."""

import platform
import sys
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


def main(names: list[str]) -> int:
    """Print each table as it is ready."""
    known = (*NAMES, *LASTING)
    unknown = [name for name in names if name not in known]
    if unknown:
        print(f"bench: there is no {', '.join(unknown)}; there are {', '.join(known)}", file=sys.stderr)
        return 2
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
    sys.exit(main(sys.argv[1:]))

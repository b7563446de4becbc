"""(b) Benchmark of start-up times: in process, of ``groupcoord serve`` up to its first response, of pytest with the plugin."""

import asyncio
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.servers import groupcoord
from bench.table import Table
from bench.wire import Connection
from groupcoord.protocol.apis import ApiKey
from groupcoord.protocol.messages import ApiVersionsRequest
from groupcoord.testing.cluster import Cluster

ROUNDS = 9
_HELLO = ApiVersionsRequest(client_software_name="bench", client_software_version="1")
_IMPORT = re.compile(r"import time:\s+(\d+) \|\s+(\d+) \|( +)(\S+)")


def run() -> list[Table]:
    """Medians of several starts, the costliest imports of ``groupcoord serve``, and what the plugin costs a pytest."""
    with _compiled_modules():
        table = Table("time to ready", "what", "median ms", "worst ms")
        for what, measure in (("in this process", _in_process), ("groupcoord serve, exec to first answer", _serve)):
            measure()  # after which all modules are compiled
            times = [measure() * 1000 for _ in range(ROUNDS)]
            table.add(what, f"{statistics.median(times):.0f}", f"{max(times):.0f}")
        return [table, _imports(), _collection()]


@contextmanager
def _compiled_modules() -> Iterator[None]:
    """Processes that are started within keep what Python compiles, as an installed package does, wherever this one runs."""
    before = dict(os.environ)
    with tempfile.TemporaryDirectory() as directory:
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        os.environ["PYTHONPYCACHEPREFIX"] = directory
        try:
            yield
        finally:
            os.environ.clear()
            os.environ.update(before)


def _in_process() -> float:
    async def start() -> float:
        begin = time.perf_counter()
        async with Cluster():
            return time.perf_counter() - begin

    return asyncio.run(start())


def _serve() -> float:
    begin = time.perf_counter()
    with groupcoord() as server:
        connection = Connection(server.port)
        connection.ask(ApiKey.API_VERSIONS, _HELLO)
        took = time.perf_counter() - begin
        connection.close()
    return took


def _imports() -> Table:
    """What importing everything that ``serve`` needs costs, by top-level package."""
    command = [sys.executable, "-X", "importtime", "-c", "import groupcoord.cli.serve, groupcoord.cluster.assemble"]
    report = subprocess.run(command, check=True, capture_output=True, text=True).stderr
    by_package: dict[str, int] = {}
    for own, _, _, name in _IMPORT.findall(report):
        package = ".".join(name.split(".")[:2]) if name.startswith("groupcoord") else name.split(".")[0]
        by_package[package] = by_package.get(package, 0) + int(own)
    table = Table("where the imports of groupcoord serve spend their time", "package", "ms")
    for package, micros in sorted(by_package.items(), key=lambda item: -item[1])[:12]:
        table.add(package, f"{micros / 1000:.0f}")
    table.add("all", f"{sum(by_package.values()) / 1000:.0f}")
    return table


def _collection() -> Table:
    """How long pytest takes to collect tests of which none uses groupcoord, with the plugin and without, in turn."""
    table = Table("pytest collects 100 tests that do not use groupcoord", "", "median ms", "worst ms")
    ways: dict[str, list[str]] = {"with the plugin": [], "without it": ["-p", "no:groupcoord"]}
    times: dict[str, list[float]] = {way: [] for way in ways}
    with tempfile.TemporaryDirectory() as directory:
        tests = "\n\n".join(f"def test_{number}():\n    pass" for number in range(100))
        Path(directory, "test_nothing.py").write_text(tests, encoding="ascii")
        for turn in range(ROUNDS + 1):
            for way, options in ways.items():
                begin = time.perf_counter()
                command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", *options]
                subprocess.run(command, cwd=directory, check=True, capture_output=True)
                if turn:  # before that, modules were compiled
                    times[way].append((time.perf_counter() - begin) * 1000)
    for way in ways:
        table.add(way, f"{statistics.median(times[way]):.0f}", f"{max(times[way]):.0f}")
    return table

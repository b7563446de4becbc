"""(b) Time to ready: in this process, and of ``groupcoord serve`` from exec to its first answer; where the time goes."""

import asyncio
import re
import statistics
import subprocess
import sys
import time

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
    """Medians of several starts, and the costliest imports of ``groupcoord serve``."""
    table = Table("time to ready", "what", "median ms", "worst ms")
    for what, measure in (("in this process", _in_process), ("groupcoord serve, exec to first answer", _serve)):
        times = [measure() * 1000 for _ in range(ROUNDS)]
        table.add(what, f"{statistics.median(times):.0f}", f"{max(times):.0f}")
    return [table, _imports()]


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
    command = [sys.executable, "-X", "importtime", "-c", "import groupcoord.cli.serve, groupcoord.server.server"]
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

"""Starts the servers to be measured, each in a process on loopback that ends with the ``with`` block."""

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.real_kafka.kafka_java import KafkaJava
from tests.real_kafka.process import KafkaProcess

ECHO = """
import asyncio, sys
if sys.argv[1] == "uvloop":
    import uvloop
    new_loop = uvloop.new_event_loop
else:
    new_loop = asyncio.new_event_loop

class Echo(asyncio.Protocol):
    def connection_made(self, transport):
        self.transport = transport
    def data_received(self, data):
        self.transport.write(data)

async def main():
    server = await asyncio.get_running_loop().create_server(Echo, "127.0.0.1", 0, backlog=4096)
    host, port = server.sockets[0].getsockname()
    print(f"listening on {host}:{port}", flush=True)
    await server.serve_forever()

with asyncio.Runner(loop_factory=new_loop) as runner:
    runner.run(main())
"""


RELAY = """
import asyncio, sys

class Side(asyncio.Protocol):
    def __init__(self, other=None):
        self.other, self.waiting = other, []
    def connection_made(self, transport):
        self.transport = transport
        if self.other is None:
            asyncio.get_running_loop().create_task(self.connect())
    async def connect(self):
        _, other = await asyncio.get_running_loop().create_connection(lambda: Side(self), "127.0.0.1", int(sys.argv[1]))
        self.other = other
        for data in self.waiting:
            other.transport.write(data)
    def data_received(self, data):
        if self.other is None:
            self.waiting.append(data)
        else:
            self.other.transport.write(data)
    def pause_writing(self):
        self.other.transport.pause_reading()
    def resume_writing(self):
        self.other.transport.resume_reading()
    def connection_lost(self, error):
        if self.other is not None:
            self.other.transport.close()

async def main():
    server = await asyncio.get_running_loop().create_server(Side, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    print(f"listening on {host}:{port}", flush=True)
    await server.serve_forever()

asyncio.run(main())
"""


class Running:
    """A server process that accepts on ``port``."""

    def __init__(self, pid: int, port: int) -> None:
        self.pid, self.port = pid, port

    @property
    def resident_bytes(self) -> int:
        """The memory of the process that is in RAM."""
        status = Path(f"/proc/{self.pid}/status").read_text(encoding="ascii")
        line = next(line for line in status.splitlines() if line.startswith("VmRSS:"))
        return int(line.split()[1]) * 1024

    @property
    def processor_seconds(self) -> float:
        """The processor time of the process so far, that of the kernel for it included."""
        stat = Path(f"/proc/{self.pid}/stat").read_text(encoding="ascii")
        user, system = stat.rpartition(")")[2].split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


@contextlib.contextmanager
def groupcoord(*options: str, loop: str = "asyncio") -> Iterator[Running]:
    """``groupcoord serve``, quiet, with ``options``."""
    flags = [] if loop == "uvloop" else ["--no-uvloop"]
    with _started([sys.executable, "-m", "groupcoord", "serve", "--port", "0", "--quiet", *flags, *options]) as server:
        yield server


@contextlib.contextmanager
def kafka() -> Iterator[Running]:
    """A real Kafka. Raises RealKafkaUnavailable where there is no Java, or none of its jars."""
    with KafkaProcess({"group.initial.rebalance.delay.ms": "0"}, java=KafkaJava) as broker:
        yield Running(broker.pid, broker.port)


@contextlib.contextmanager
def echo(loop: str = "asyncio") -> Iterator[Running]:
    """A server that only sends back what it gets."""
    with _started([sys.executable, "-c", ECHO, loop]) as server:
        yield server


@contextlib.contextmanager
def kfake(topic: str, partitions: int) -> Iterator[Running]:
    """The broker in one process that Go programs are tested with, franz-go's kfake, with this topic."""
    with _started([str(_kfake()), topic, str(partitions)]) as server:
        yield server


@cache
def _kfake() -> Path:
    if shutil.which("go") is None:
        raise SystemExit("bench: Go is needed for kfake, its peer")
    binary = Path(tempfile.mkdtemp(prefix="groupcoord-bench-")) / "kfake"
    subprocess.run(["go", "build", "-o", str(binary), "."], cwd=Path(__file__).with_name("kfake"), check=True)
    return binary


@contextlib.contextmanager
def relay(port: int) -> Iterator[Running]:
    """A relay that passes bytes on to ``port``, without a look at them."""
    with _started([sys.executable, "-c", RELAY, str(port)]) as server:
        yield server


@contextlib.contextmanager
def proxy(port: int) -> Iterator[Running]:
    """``groupcoord proxy`` to ``port``, quiet."""
    options = ["--to", f"127.0.0.1:{port}", "--listen", "127.0.0.1:0", "--quiet"]
    with _started([sys.executable, "-m", "groupcoord", "proxy", *options]) as server:
        yield server


@contextlib.contextmanager
def _started(command: list[str]) -> Iterator[Running]:
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        words = process.stdout.readline().split()
        if words[:2] != ["listening", "on"]:
            raise SystemExit(f"bench: {' '.join(command)} did not start")
        yield Running(process.pid, int(words[2].rpartition(":")[2]))
    finally:
        process.terminate()
        process.wait(timeout=30)
        if process.stdout is not None:
            process.stdout.close()

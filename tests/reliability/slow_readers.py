"""Consumers that ask for 60 MB and do not read: what they take of the server's memory, and whether others notice them."""

import contextlib
import itertools
import random
import selectors
import socket
import struct
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from bench.servers import Running, groupcoord
from bench.wire import Connection, request_frame
from groupcoord.protocol.apis import APIS, ApiKey
from groupcoord.protocol.batches import build_batch
from groupcoord.protocol.framing import parse_response
from groupcoord.protocol.messages import ApiVersionsRequest, FetchRequest, FetchResponse, ProduceRequest
from groupcoord.protocol.messages.fetch import FetchPartition, FetchTopic
from groupcoord.protocol.messages.produce import PartitionProduceData, TopicProduceData
from groupcoord.protocol.records import Record
from tests.reliability.outcome import Outcome

MOST_MB = 64
"""What all of them together may take beyond the log."""

MOST_MS = 100
"""So much longer than before somebody else may wait for an answer meanwhile: a busy machine is not the server's fault."""

ANSWER_BYTES = 57_000_000  # fetch.max.bytes is 55 MiB
RECORD_BYTES = 1_000_000
PARTITIONS = 5  # of a log in memory, a segment is 16 MiB, and no read goes beyond one
ANSWERED = 100
"""So often somebody else is answered before the readers come, and again before they begin to read."""

TOPIC = "slow"
_FETCH_VERSION = 12  # the newest that names topics
_PRODUCE_VERSION = 9
_HELLO = ApiVersionsRequest(client_software_name="slow", client_software_version="1")


def attack(count: int = 30, seed: int = 1, answer_bytes: int = ANSWER_BYTES) -> Outcome:
    """``count`` clients fetch ``answer_bytes`` each and read nothing, then everything: from a log in memory, from files."""
    told = [_one("in memory", count, seed, answer_bytes)]
    with tempfile.TemporaryDirectory() as folder:
        told.append(_one("in files", count, seed, answer_bytes, "--data-dir", folder))
    return Outcome(
        attack="slow readers",
        tried=f"{count} clients that fetch {answer_bytes / 1e6:.1f} MB each, do not read, and then all do",
        result="; ".join(result for result, _ in told) + f" (at most {MOST_MB} MB, and {MOST_MS} ms longer)",
        problems=tuple(itertools.chain.from_iterable(problems for _, problems in told)),
    )


def _one(where: str, count: int, seed: int, answer_bytes: int, *options: str) -> tuple[str, list[str]]:
    """What was seen, and the broken promises."""
    with groupcoord("--topic", f"{TOPIC}:{PARTITIONS}", *options) as server:
        wanted = _produce(server.port, seed, answer_bytes)
        expected = _answer(server.port)
        problems = [] if _records(expected) == wanted else [f"{where}: a client that reads gets other records"]
        before = server.resident_bytes
        with _others(server.port) as waited_ms:
            waited_ms.wait_for(ANSWERED)
            alone_ms = max(waited_ms.all)
            with contextlib.ExitStack() as open_sockets:
                readers = [open_sockets.enter_context(_asks(server.port)) for _ in range(count)]
                waited_ms.wait_for(ANSWERED)  # by then they have filled what there is to fill
                wrong = _read_all(readers, expected)
            peak_mb = (_peak_bytes(server) - before) / 1e6
        slowest_ms = max(waited_ms.all)
    if wrong:
        problems.append(f"{where}: {wrong} of {count} answers are not what the log has, seed {seed}")
    if peak_mb > MOST_MB:
        problems.append(f"{where}: {count} clients that do not read took {peak_mb:.0f} MB, seed {seed}")
    if slowest_ms > alone_ms + MOST_MS:
        problems.append(f"{where}: somebody else waited {slowest_ms:.0f} ms, seed {seed}")
    return (
        f"{where}: {peak_mb:.0f} MB beyond the log, others waited {slowest_ms:.0f} ms at most, {alone_ms:.0f} ms before",
        problems,
    )


def _produce(port: int, seed: int, answer_bytes: int) -> list[bytes]:
    """Fill the partitions; the batches of each, joined, as they will be in the log."""
    chance = random.Random(seed)
    connection = Connection(port)
    per_partition = answer_bytes // PARTITIONS
    size = min(RECORD_BYTES, per_partition)
    stored: list[bytes] = []
    for partition in range(PARTITIONS):
        batches = []
        for offset in range(per_partition // size):
            value = chance.randbytes(size)
            sent = build_batch([Record(0, 1_000, None, value)])
            data = PartitionProduceData(index=partition, records=sent)
            topic = TopicProduceData(name=TOPIC, partition_data=(data,))
            request = ProduceRequest(acks=1, timeout_ms=10_000, topic_data=(topic,))
            connection.ask(ApiKey.PRODUCE, request, version=_PRODUCE_VERSION)
            batches.append(struct.pack(">q", offset) + sent[8:12] + bytes(4) + sent[16:])
        stored.append(b"".join(batches))
    connection.close()
    return stored


def _fetch() -> bytes:
    partitions = tuple(
        FetchPartition(partition=number, fetch_offset=0, partition_max_bytes=ANSWER_BYTES)
        for number in range(PARTITIONS)
    )
    topics = (FetchTopic(topic=TOPIC, partitions=partitions),)
    return request_frame(ApiKey.FETCH, FetchRequest(max_wait_ms=0, min_bytes=0, topics=topics), _FETCH_VERSION)


def _answer(port: int) -> bytes:
    """What somebody gets who reads."""
    with _asks(port) as asking:
        parts = [_exactly(asking, 4)]
        parts.append(_exactly(asking, *struct.unpack(">i", parts[0])))
    return b"".join(parts)


def _records(answer: bytes) -> list[bytes]:
    response: FetchResponse = parse_response(APIS[ApiKey.FETCH], _FETCH_VERSION, answer[4:])[1]
    return [bytes(data.records or b"") for data in response.responses[0].partitions]


@contextlib.contextmanager
def _asks(port: int) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", port), timeout=60) as asking:
        asking.sendall(_fetch())
        yield asking


def _exactly(sock: socket.socket, size: int) -> bytes:
    data = bytearray(size)
    with memoryview(data) as view:
        at = 0
        while at < size:
            got = sock.recv_into(view[at:])
            if not got:
                raise ConnectionError("the server closed the connection")
            at += got
    return bytes(data)


def _read_all(readers: list[socket.socket], expected: bytes) -> int:
    """Read all answers, all readers at once; how many are not ``expected``."""
    wrong = 0
    buffer = memoryview(bytearray(1 << 18))
    with selectors.DefaultSelector() as selector, memoryview(expected) as right:
        for reader in readers:
            selector.register(reader, selectors.EVENT_READ, [0])
        while selector.get_map():
            for key, _ in selector.select(timeout=60):
                assert isinstance(key.fileobj, socket.socket)
                at = key.data[0]
                try:
                    got = key.fileobj.recv_into(buffer[: len(right) - at])
                except ConnectionError:
                    got = 0
                key.data[0] = at + got
                if not got or buffer[:got] != right[at : at + got]:
                    wrong += 1
                elif key.data[0] < len(right):
                    continue
                selector.unregister(key.fileobj)
    return wrong


class _Waited:
    """How long each answer to somebody else took (ms)."""

    def __init__(self) -> None:
        self.all: list[float] = []
        self._one_more = threading.Condition()

    def add(self, waited_ms: float) -> None:
        with self._one_more:
            self.all.append(waited_ms)
            self._one_more.notify()

    def wait_for(self, count: int) -> None:
        """Until there are ``count`` more."""
        with self._one_more:
            count += len(self.all)
            self._one_more.wait_for(lambda: len(self.all) >= count, timeout=60)


@contextlib.contextmanager
def _others(port: int) -> Iterator[_Waited]:
    """Somebody who asks again and again."""
    waited_ms = _Waited()
    done = threading.Event()

    def ask() -> None:
        connection = Connection(port)
        while not done.wait(0.005):
            begin = time.perf_counter()
            connection.ask(ApiKey.API_VERSIONS, _HELLO)
            waited_ms.add((time.perf_counter() - begin) * 1000)
        connection.close()

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        yield waited_ms
    finally:
        done.set()
        asking.join()


def _peak_bytes(server: Running) -> int:
    status = Path(f"/proc/{server.process.pid}/status").read_text(encoding="ascii")
    line = next(line for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024

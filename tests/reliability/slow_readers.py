"""Consumers that ask for 60 MB and do not read: what they take of the server's memory, and whether others notice them."""

import contextlib
import itertools
import random
import selectors
import socket
import struct
import tempfile
from collections.abc import Iterator

from groupcoord.protocol.apis import APIS, ApiKey
from groupcoord.protocol.framing import parse_response
from groupcoord.protocol.messages import FetchResponse
from tests.conformance.batches import batch
from tests.reliability.outcome import Outcome
from tests.reliability.quiet import Quiet
from tests.reliability.requests import fetch, produce
from tests.reliability.served import served
from tests.reliability.talk import VERSIONS, Address, Talk, frame_of

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


def attack(count: int = 30, seed: int = 1, answer_bytes: int = ANSWER_BYTES) -> Outcome:
    """``count`` clients fetch ``answer_bytes`` each and read nothing, then everything: from a log in memory, from files."""
    told = [_one("in memory", count, seed, answer_bytes)]
    with tempfile.TemporaryDirectory() as folder:
        told.append(_one("in files", count, seed, answer_bytes, "--data-dir", folder))
    return Outcome(
        tried=f"{count} clients that fetch {answer_bytes / 1e6:.1f} MB each, do not read, and then all do",
        result="; ".join(result for result, _ in told) + f" (at most {MOST_MB} MB, and {MOST_MS} ms longer)",
        problems=tuple(itertools.chain.from_iterable(problems for _, problems in told)),
    )


def _one(where: str, count: int, seed: int, answer_bytes: int, *options: str) -> tuple[str, list[str]]:
    """What was seen, and the broken promises."""
    with served("--quiet", "--no-uvloop", "--topic", f"{TOPIC}:{PARTITIONS}", *options) as server:
        wanted = _produce(server.address, seed, answer_bytes)
        expected = _answer(server.address)
        problems = [] if _records(expected) == wanted else [f"{where}: a client that reads gets other records"]
        before = server.memory_bytes
        with Quiet(server) as quiet:
            alone_ms = max((wait.all_ms for wait in quiet.ask_on(ANSWERED)), default=0.0)
            with contextlib.ExitStack() as open_sockets:
                readers = [open_sockets.enter_context(_asks(server.address)) for _ in range(count)]
                quiet.ask_on(ANSWERED)  # by then they have filled what there is to fill
                wrong = _read_all(readers, expected)
            peak_mb = (server.most_memory_bytes - before) / 1e6
        slowest_ms = quiet.longest_ms
    if quiet.problem:
        problems.append(f"{where}: somebody else: {quiet.problem}, seed {seed}")
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


def _produce(address: Address, seed: int, answer_bytes: int) -> list[bytes]:
    """Fill the partitions; the batches of each, joined, as they will be in the log."""
    chance = random.Random(seed)
    per_partition = answer_bytes // PARTITIONS
    size = min(RECORD_BYTES, per_partition)
    stored: list[bytes] = []
    with Talk(address) as talk:
        for partition in range(PARTITIONS):
            batches = []
            for offset in range(per_partition // size):
                sent = batch([chance.randbytes(size)])
                talk.ask(produce(TOPIC, {partition: sent}, acks=1))
                batches.append(struct.pack(">q", offset) + sent[8:12] + bytes(4) + sent[16:])
            stored.append(b"".join(batches))
    return stored


def _answer(address: Address) -> bytes:
    """What somebody gets who reads."""
    with _asks(address) as asking:
        parts = [_exactly(asking, 4)]
        parts.append(_exactly(asking, *struct.unpack(">i", parts[0])))
    return b"".join(parts)


def _records(answer: bytes) -> list[bytes]:
    response: FetchResponse = parse_response(APIS[ApiKey.FETCH], VERSIONS[ApiKey.FETCH], answer[4:])[1]
    return [bytes(data.records or b"") for data in response.responses[0].partitions]


@contextlib.contextmanager
def _asks(address: Address) -> Iterator[socket.socket]:
    with socket.create_connection(address, timeout=60) as asking:
        asking.sendall(frame_of(fetch(TOPIC, *range(PARTITIONS), max_bytes=ANSWER_BYTES)))
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

"""More clients than a server may have files: who is in is served, data is kept, and others come in when some leave."""

import contextlib
import random
import resource
import signal
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

from bench.wire import Connection
from groupcoord.protocol.batches import build_batch
from groupcoord.protocol.records import Record
from tests.reliability.a_server import (
    TOPIC,
    a_server,
    commit,
    committed,
    create_topic,
    delete_topic,
    fetch,
    produce,
    refused,
)
from tests.reliability.outcome import Outcome

DESCRIPTORS = 256
_GROUPS = 150
_PARTITIONS = 60
_STAY = 20
_SEGMENT_MS = 1  # nearly every append begins a new segment


@contextlib.contextmanager
def _crowd(port: int, count: int) -> Iterator[list[socket.socket]]:
    """``count`` clients that knock, and stay."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, count + 500)), hard))
    sockets: list[socket.socket] = []
    try:
        for _ in range(count):
            one = socket.socket()
            one.setblocking(False)
            one.connect_ex(("127.0.0.1", port))
            sockets.append(one)
        yield sockets
    finally:
        for one in sockets:
            one.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def _work(peer: Connection, chance: random.Random, number: int, told: dict[tuple[str, int], int]) -> list[str]:
    """One round of what needs files; what was not acknowledged."""
    problems = []
    for group in range(_GROUPS):
        name, offset = f"group-{group}", chance.randrange(1 << 40)
        errors = commit(peer, name, {0: offset})
        if errors == {0}:
            told[name, 0] = offset
        else:
            problems.append(f"a commit of {name} is answered {errors}")
    for partition in range(_PARTITIONS):
        batch = build_batch([Record(0, number + partition, b"k", b"v" * 100)])
        if error := produce(peer, TOPIC, partition, batch):
            problems.append(f"a batch for {TOPIC}-{partition} is answered {error}")
        (part,) = fetch(peer, TOPIC, partition, 0).responses[0].partitions
        if part.error_code or not part.records:
            problems.append(f"the oldest segment of {TOPIC}-{partition} is answered {part.error_code}")
    if error := create_topic(peer, f"new-{number}", 5):
        problems.append(f"the creation of a topic is answered {error}")
    if number and (error := delete_topic(peer, f"new-{number - 1}")):
        problems.append(f"the deletion of a topic is answered {error}")
    return problems


def attack(count: int, seed: int) -> Outcome:
    """``count`` clients beyond the one that works, at a server that may have 256 descriptors."""
    chance = random.Random(seed)
    rounds = min(3, 1 + count // 500)
    problems: list[str] = []
    told: dict[tuple[str, int], int] = {}
    with tempfile.TemporaryDirectory() as folder:
        data, log = Path(folder, "data"), Path(folder, "log")
        options = ("--topic", f"{TOPIC}:{_PARTITIONS}", "-c", f"log.roll.ms={_SEGMENT_MS}")
        with (
            log.open("w") as stream,
            a_server(data, *options, log=stream, descriptors=DESCRIPTORS) as server,
            contextlib.closing(Connection(server.port)) as peer,
        ):
            refused(peer, "group-0")
            with _crowd(server.port, count) as crowd:
                most = 0
                for number in range(rounds):
                    try:
                        problems += _work(peer, chance, number, told)
                        most = max(most, server.descriptors)
                    except OSError as problem:
                        problems.append(f"in round {number} who is in is not answered: {problem!r}")
                        break
                for one in crowd[_STAY:]:
                    one.close()
                try:
                    with contextlib.closing(Connection(server.port)) as late:
                        refused(late, "group-0")
                except OSError as problem:
                    problems.append(f"when all but {_STAY} clients have left, a new one is not let in: {problem!r}")
            if not server.lives:
                problems.append("the server has ended")
            server.process.kill()
            server.process.wait()
        with a_server(data, "--quiet") as server, contextlib.closing(Connection(server.port)) as peer:
            found = committed(peer, [f"group-{group}" for group in range(_GROUPS)])
            lost = {place: offset for place, offset in told.items() if found.get(place) != offset}
            if lost:
                problems.append(f"{len(lost)} of {len(told)} commits are lost after kill -9, the first {min(lost)}")
            server.process.send_signal(signal.SIGTERM)
            if server.process.wait(60):
                problems.append(f"the server ends with {server.process.returncode}")
        said = log.read_text(encoding="utf-8")
        problems += [f"the log says: {line}" for line in said.splitlines() if "Traceback" in line or "failed" in line]
        if count > DESCRIPTORS and "cannot accept" not in said:
            problems.append("the log does not say that nobody is let in")
    return Outcome(
        attack="out of descriptors",
        tried=f"{count} clients at a server with {DESCRIPTORS} descriptors; {rounds * _GROUPS} commits to quiet partitions, "
        f"{rounds * _PARTITIONS} batches, each in a segment of its own; kill -9",
        result=f"{most} descriptors in use at most; {len(told)} groups' last commits found again",
        problems=tuple(problems[:10]),
    )

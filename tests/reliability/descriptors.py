"""More clients than a server may have files: who is in is served, data is kept, and others come in when some leave."""

import contextlib
import random
import resource
import signal
import socket
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from groupcoord.protocol.apis.offset_fetch import OffsetFetchRequestGroup
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages import OffsetFetchRequest
from tests.conformance.batches import Rec, batch
from tests.reliability.outcome import Outcome
from tests.reliability.requests import commit, commit_errors, create, delete, fetch, fetched, produce, refused, stored
from tests.reliability.served import served
from tests.reliability.talk import Address, Talk

DESCRIPTORS = 256
TOPIC = "orders"
_GROUPS = 150
_PARTITIONS = 60
_STAY = 20
_SEGMENT_MS = 1  # nearly every append begins a new segment


@contextlib.contextmanager
def _crowd(address: Address, count: int) -> Iterator[list[socket.socket]]:
    """``count`` clients that knock, and stay."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, count + 500)), hard))
    sockets: list[socket.socket] = []
    try:
        for _ in range(count):
            one = socket.socket()
            one.setblocking(False)
            one.connect_ex(address)
            sockets.append(one)
        yield sockets
    finally:
        for one in sockets:
            one.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def _work(talk: Talk, chance: random.Random, number: int, told: dict[tuple[str, int], int]) -> list[str]:
    """One round of what needs files; what was not acknowledged."""
    problems = []
    for group in range(_GROUPS):
        name, offset = f"group-{group}", chance.randrange(1 << 40)
        errors = commit_errors(talk.ask(commit(name, TOPIC, {0: offset})))
        if errors == {0}:
            told[name, 0] = offset
        else:
            problems.append(f"a commit of {name} is answered {errors}")
    for partition in range(_PARTITIONS):
        data = batch([Rec(b"v" * 100, b"k", timestamp_ms=number + partition)])
        if error := stored(talk.ask(produce(TOPIC, {partition: data}))).error_code:
            problems.append(f"a batch for {TOPIC}-{partition} is answered {error}")
        part = fetched(talk.ask(fetch(TOPIC, partition)))
        if part.error_code or not part.records:
            problems.append(f"the oldest segment of {TOPIC}-{partition} is answered {part.error_code}")
    if error := talk.ask(create(f"new-{number}", 5)).topics[0].error_code:
        problems.append(f"the creation of a topic is answered {error}")
    if number and (error := talk.ask(delete(f"new-{number - 1}")).responses[0].error_code):
        problems.append(f"the deletion of a topic is answered {error}")
    return problems


def _committed(talk: Talk, groups: Sequence[str]) -> dict[tuple[str, int], int]:
    """(group, partition) → offset, once all of it is read."""
    request = OffsetFetchRequest(groups=tuple(OffsetFetchRequestGroup(group_id=one, topics=None) for one in groups))
    while True:
        answer: Any = talk.ask(request)
        if all(group.error_code != ErrorCode.COORDINATOR_LOAD_IN_PROGRESS for group in answer.groups):
            break
    return {
        (group.group_id, part.partition_index): part.committed_offset
        for group in answer.groups
        for topic in group.topics
        for part in topic.partitions
    }


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
            served("--data-dir", str(data), *options, log=log, descriptors=DESCRIPTORS) as server,
            Talk(server.address) as talk,
        ):
            refused(talk, "group-0")
            with _crowd(server.address, count) as crowd:
                most = 0
                for number in range(rounds):
                    try:
                        problems += _work(talk, chance, number, told)
                        most = max(most, server.descriptors)
                    except OSError as problem:
                        problems.append(f"in round {number} who is in is not answered: {problem!r}")
                        break
                for one in crowd[_STAY:]:
                    one.close()
                try:
                    with Talk(server.address) as late:
                        refused(late, "group-0")
                except OSError as problem:
                    problems.append(f"when all but {_STAY} clients have left, a new one is not let in: {problem!r}")
            if not server.lives:
                problems.append("the server has ended")
            server.process.kill()
            server.process.wait()
        with served("--data-dir", str(data), "--quiet") as server, Talk(server.address) as talk:
            found = _committed(talk, [f"group-{group}" for group in range(_GROUPS)])
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
        tried=f"{count} clients at a server with {DESCRIPTORS} descriptors; {rounds * _GROUPS} commits to quiet partitions, "
        f"{rounds * _PARTITIONS} batches, each in a segment of its own; kill -9",
        result=f"{most} descriptors in use at most; {len(told)} groups' last commits found again",
        problems=tuple(problems[:10]),
    )

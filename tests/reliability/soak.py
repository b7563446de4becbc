"""Minutes of everything at once, of clients that come and go and do not come back: nothing may grow for ever."""

import random
import socket
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from groupcoord.protocol.apis.fetch import FetchPartition, FetchTopic
from groupcoord.protocol.messages import FetchRequest, InitProducerIdRequest, ListGroupsRequest
from tests.conformance.batches import Rec, batch
from tests.reliability.outcome import Outcome
from tests.reliability.requests import (
    NEWEST_JOIN,
    Membership,
    commit,
    create,
    delete,
    fetch,
    join,
    joined,
    produce,
    refused,
)
from tests.reliability.served import Served, served, size_of
from tests.reliability.talk import Talk, frame_of

_SAMPLE_SECONDS = 5.0
_SHARE = 0.4  # of one core, for server and clients together
_DEEDS_A_SECOND = 100  # what there is at a time goes by how much comes, and that is to be the same all the time
_HELD_TO_FROM_MINUTES = 30  # what expires after ten minutes has not expired before
_LOG_BYTES, _LOG_FILES = 2_000_000, 3
_PARTITIONS = 4
TOPIC = "orders"
_QUIET = "quiet"
_NEVER_MS = 1 << 30
# Retention is short, so that what expires in days does so several times in a run.
_SETTINGS = {
    "group.initial.rebalance.delay.ms": 0,
    "group.min.session.timeout.ms": 1_000,
    "offsets.topic.num.partitions": 4,
    "offsets.topic.segment.bytes": 1 << 20,
    "offsets.retention.minutes": 1,
    "offsets.retention.check.interval.ms": 10_000,
    "log.segment.bytes": 1 << 20,
    "log.roll.ms": 30_000,
    "log.retention.ms": 30_000,
    "log.retention.check.interval.ms": 10_000,
    "log.cleaner.backoff.ms": 5_000,
    "log.cleaner.delete.retention.ms": 60_000,
    "log.flush.offset.checkpoint.interval.ms": 10_000,
    "producer.id.expiration.ms": 60_000,
}


class Sample(NamedTuple):
    """What the server has at a moment; ``groups`` as ListGroups counts them."""

    memory_bytes: int
    descriptors: int
    log_bytes: int
    data_bytes: int
    groups: int


MOST_PER_HOUR = Sample(
    memory_bytes=30_000_000, descriptors=30, log_bytes=1_000_000, data_bytes=30_000_000, groups=1_000
)
"""The growth from the median of the second third to that of the last, times what makes an hour of it."""


class _Clients:
    """What clients do, one thing after the other, each with whatever nobody has used before."""

    def __init__(self, server: Served, chance: random.Random) -> None:
        self._address = server.address
        self._chance = chance
        self._number = 0
        self._topics: list[str] = []
        self.talk = Talk(server.address)
        self.deeds: tuple[Callable[[str], object], ...] = (
            self.lives,
            self.vanishes,
            self.never_comes_back,
            self.commits_once,
            self.commits_again,
            self.produces,
            self.fetches,
            self.waits_and_vanishes,
            self.is_refused,
            self.is_no_client,
            self.wants_transactions,
            self.makes_topics,
        )

    def act(self) -> None:
        """One of them does something."""
        self._number += 1
        self._chance.choice(self.deeds)(f"new-{self._number}")

    def _joins(self, talk: Talk, group: str) -> Membership:
        member = joined(talk, group, 2_000, _NEVER_MS)
        talk.ask(member.heartbeat())
        return member

    def lives(self, name: str) -> None:
        """Joins a group that nobody has heard of, and leaves it."""
        member = self._joins(self.talk, name)
        self.talk.ask(member.leave())

    def vanishes(self, name: str) -> None:
        """Joins, commits, and is not heard of any more."""
        with Talk(self._address) as talk:
            self._joins(talk, name)
            talk.ask(commit(name, TOPIC, {0: 1}))

    def never_comes_back(self, name: str) -> None:
        """Is given a member id, and that was all."""
        self.talk.ask(join(name, 30_000, rebalance_ms=_NEVER_MS), NEWEST_JOIN)

    def commits_once(self, name: str) -> None:
        """Commits for a group that nobody joins."""
        self.talk.ask(commit(name, TOPIC, dict.fromkeys(range(_PARTITIONS), 7)))

    def commits_again(self, _: str) -> None:
        """Commits for one of a few groups that stay."""
        self.talk.ask(commit(f"stays-{self._chance.randrange(20)}", TOPIC, {0: self._chance.randrange(1 << 40)}))

    def produces(self, _: str) -> None:
        """Writes one batch with a producer id of its own."""
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1_000)
        producer = self.talk.ask(request)
        records = [Rec(self._chance.randbytes(1_000), b"k", time.time_ns() // 1_000_000)]
        data = batch(records, producer=(producer.producer_id, producer.producer_epoch, 0))
        self.talk.ask(produce(TOPIC, {self._chance.randrange(_PARTITIONS): data}))

    def fetches(self, _: str) -> None:
        """Opens a session, reads in it, and forgets it."""
        partition = self._chance.randrange(_PARTITIONS)
        session = self.talk.ask(fetch(TOPIC, partition, session=(0, 0))).session_id
        self.talk.ask(fetch(TOPIC, partition, session=(session, 1)))

    def waits_and_vanishes(self, _: str) -> None:
        """Asks for more than comes, and does not wait for it."""
        wanted = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1)
        topics = (FetchTopic(topic=_QUIET, partitions=(wanted,)),)
        with Talk(self._address) as talk:
            talk.send(FetchRequest(max_wait_ms=20_000, min_bytes=1 << 30, topics=topics))

    def is_refused(self, name: str) -> None:
        """Is no member of any group."""
        refused(self.talk, name)
        refused(self.talk, "stays-0", name)

    def is_no_client(self, _: str) -> None:
        """Sends something else, or half of a request."""
        frame = frame_of(Membership("g", 1, "m").heartbeat())
        broken = self._chance.choice((b"GET / HTTP/1.1\r\n\r\n", frame[:-3], b"\0\0\0\4\x7f\xff\0\0"))
        with socket.create_connection(self._address) as stranger:
            stranger.sendall(broken)

    def wants_transactions(self, name: str) -> None:
        """Is refused a transactional id."""
        request = InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=1_000)
        self.talk.ask(request)

    def makes_topics(self, name: str) -> None:
        """Creates a topic, and deletes the one before the last."""
        self.talk.ask(create(name, 2))
        self._topics.append(name)
        if len(self._topics) > 2:
            self.talk.ask(delete(self._topics.pop(0)))

    def groups(self) -> int:
        """How many groups there are."""
        return len(self.talk.ask(ListGroupsRequest()).groups)


def _take(server: Served, clients: _Clients, folder: Path) -> Sample:
    return Sample(
        server.memory_bytes, server.descriptors, size_of(folder / "logs"), size_of(folder / "data"), clients.groups()
    )


def _says_traceback(logs: Path) -> bool:
    return any("Traceback" in log.read_text(encoding="utf-8", errors="replace") for log in logs.iterdir())


def growth(samples: list[Sample], seconds: float) -> Sample:
    """By how much more an hour there was in the last third than in the second."""
    third = len(samples) // 3
    middle, last = samples[third : 2 * third], samples[-third:]
    per_hour = 3_600 / (seconds / 3)
    return Sample(
        *(
            round((statistics.median(late) - statistics.median(early)) * per_hour)
            for early, late in zip(zip(*middle, strict=True), zip(*last, strict=True), strict=True)
        )
    )


def soak(seconds: float, seed: int, sample_seconds: float = _SAMPLE_SECONDS) -> tuple[Outcome, Sample]:
    """``seconds`` of it: what came of it, and the growth of everything in an hour."""
    chance = random.Random(seed)
    problems: list[str] = []
    samples: list[Sample] = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        (folder / "logs").mkdir()
        options = [f"-c{name}={value}" for name, value in _SETTINGS.items()]
        options += ["--topic", f"{TOPIC}:{_PARTITIONS}", "--topic", _QUIET, "--log-file", str(folder / "logs" / "log")]
        options += ["--log-max-bytes", str(_LOG_BYTES), "--log-files", str(_LOG_FILES)]
        with served("--data-dir", str(folder / "data"), *options) as server:
            clients = _Clients(server, chance)
            began, deeds, next_sample = time.monotonic(), 0, 0.0
            own, others = time.process_time(), server.busy_seconds
            try:
                while (elapsed := time.monotonic() - began) < seconds:
                    for _ in range(20):
                        clients.act()
                        deeds += 1
                    if elapsed >= next_sample:
                        next_sample += sample_seconds
                        samples.append(_take(server, clients, folder))
                        if _says_traceback(folder / "logs"):
                            problems.append(f"there is a traceback in the log after {elapsed:.0f} s")
                            break
                        if len(samples) % 12 == 0:
                            sys.stderr.write(f"soak: {elapsed:.0f} s, {deeds} deeds, {samples[-1]}\n")
                    busy = time.process_time() - own + server.busy_seconds - others
                    time.sleep(max(0.0, max(busy / _SHARE, deeds / _DEEDS_A_SECOND) - (time.monotonic() - began)))
            except OSError as problem:
                problems.append(f"after {deeds} deeds the server does not answer: {problem!r}")
            if not server.lives:
                problems.append("the server has ended")
            clients.talk.close()
            server.process.terminate()
            if server.process.wait(60):
                problems.append(f"the server ends with {server.process.returncode}")
    grown = growth(samples, seconds)
    is_held_to = seconds >= _HELD_TO_FROM_MINUTES * 60
    if is_held_to:
        problems += [
            f"{name} grows by {by:,} in an hour, and {most:,} are allowed"
            for name, by, most in zip(Sample._fields, grown, MOST_PER_HOUR, strict=True)
            if by > most
        ]
    largest = max(sample.log_bytes for sample in samples)
    if largest > _LOG_FILES * _LOG_BYTES:
        problems.append(f"the log has {largest:,} bytes in {_LOG_FILES} files of at most {_LOG_BYTES:,}")
    last = samples[-1]
    said = ", ".join(
        f"{name} {value:,} ({by:+,} an hour, at most {most:,})"
        for name, value, by, most in zip(Sample._fields, last, grown, MOST_PER_HOUR, strict=True)
    )
    outcome = Outcome(
        tried=f"{seconds / 60:g} minutes, {deeds:,} deeds of twelve kinds, seed {seed}",
        result=f"at the end {said}" + ("" if is_held_to else f"; held to that from {_HELD_TO_FROM_MINUTES} minutes on"),
        problems=tuple(problems),
    )
    return outcome, grown


def attack(count: int, seed: int) -> Outcome:
    """``count`` minutes of it; what grows is held to a bound from half an hour on."""
    return soak(60.0 * count, seed)[0]

"""Minutes of everything at once, of clients that come and go and do not come back: nothing may grow for ever."""

import random
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tests.reliability.outcome import Outcome
from tests.reliability.served import Served, served, size_of
from tests.reliability.soak_clients import PARTITIONS, QUIET, TOPIC, Clients

_SAMPLE_SECONDS = 5.0
SHARE = 0.4
"""Of one core, for server and clients together."""
_DEEDS_A_SECOND = 100  # what there is at a time goes by how much comes, and that is to be the same all the time
_HELD_TO_FROM_MINUTES = 30  # what expires after ten minutes has not expired before
_LOG_BYTES, _LOG_FILES = 2_000_000, 3
# Retention is short, so that what expires in days does so several times in a run.
_SETTINGS = {
    "group.initial.rebalance.delay.ms": 0,
    "group.min.session.timeout.ms": 1_000,
    "group.consumer.min.session.timeout.ms": 1_000,
    "group.consumer.session.timeout.ms": 10_000,
    "group.consumer.min.heartbeat.interval.ms": 500,
    "group.consumer.heartbeat.interval.ms": 500,
    "offsets.topic.num.partitions": 4,
    "offsets.topic.segment.bytes": 1 << 20,
    "offsets.retention.minutes": 1,
    "offsets.retention.check.interval.ms": 10_000,
    "transaction.state.log.num.partitions": 4,
    "transaction.state.log.segment.bytes": 1 << 20,
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": 5_000,
    "transaction.remove.expired.transaction.cleanup.interval.ms": 10_000,
    "transactional.id.expiration.ms": 60_000,
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


class Moment(NamedTuple):
    """What there was so many seconds after the beginning, and how many requests had been answered."""

    seconds: float
    answers: int
    sample: Sample


class Soaked(NamedTuple):
    """What came of it, what was seen meanwhile, and the growth of everything in an hour."""

    outcome: Outcome
    moments: Sequence[Moment]
    growth: Sample


def _take(server: Served, clients: Clients, folder: Path) -> Sample:
    return Sample(
        server.memory_bytes, server.descriptors, size_of(folder / "logs"), size_of(folder / "data"), clients.groups()
    )


def _says_traceback(logs: Path) -> bool:
    return any("Traceback" in log.read_text(encoding="utf-8", errors="replace") for log in logs.iterdir())


def growth(samples: Sequence[Sample], seconds: float) -> Sample:
    """By how much more an hour there was in the last third than in the second; nothing where it ended within three samples."""
    third = len(samples) // 3
    if not third:
        return Sample(*[0] * len(Sample._fields))
    middle, last = samples[third : 2 * third], samples[-third:]
    per_hour = 3_600 / (seconds / 3)
    return Sample(
        *(
            round((statistics.median(late) - statistics.median(early)) * per_hour)
            for early, late in zip(zip(*middle, strict=True), zip(*last, strict=True), strict=True)
        )
    )


def soak(seconds: float, seed: int, sample_seconds: float = _SAMPLE_SECONDS, share: float = SHARE) -> Soaked:
    """``seconds`` of it, with ``share`` of a core for server and clients together."""
    problems: list[str] = []
    moments: list[Moment] = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        (folder / "logs").mkdir()
        options = [f"-c{name}={value}" for name, value in _SETTINGS.items()]
        options += ["--topic", f"{TOPIC}:{PARTITIONS}", "--topic", QUIET, "--log-file", str(folder / "logs" / "log")]
        options += ["--log-max-bytes", str(_LOG_BYTES), "--log-files", str(_LOG_FILES)]
        with served("--data-dir", str(folder / "data"), *options) as server:
            clients = Clients(server.address, random.Random(seed))
            began, elapsed, deeds, next_sample = time.monotonic(), 0.0, 0, 0.0
            own, others = time.process_time(), server.busy_seconds
            try:
                # Growth is told from three samples or more, however slow the machine is.
                while (elapsed := time.monotonic() - began) < seconds or len(moments) < 3:
                    for _ in range(20):
                        clients.act()
                        deeds += 1
                    if elapsed >= next_sample:
                        next_sample += sample_seconds
                        moments.append(Moment(elapsed, clients.answers, _take(server, clients, folder)))
                        if _says_traceback(folder / "logs"):
                            problems.append(f"there is a traceback in the log after {elapsed:.0f} s")
                            break
                        if len(moments) % 12 == 0:
                            sys.stderr.write(f"soak: {elapsed:.0f} s, {deeds} deeds, {moments[-1]}\n")
                    busy = time.process_time() - own + server.busy_seconds - others
                    time.sleep(max(0.0, max(busy / share, deeds / _DEEDS_A_SECOND) - (time.monotonic() - began)))
            except OSError as problem:
                problems.append(f"after {deeds} deeds the server does not answer: {problem!r}")
            except AssertionError as problem:
                problems.append(f"after {deeds} deeds an answer is wrong: {problem}")
            if not server.lives:
                problems.append("the server has ended")
            kinds = clients.kinds
            clients.close()
            server.process.terminate()
            if server.process.wait(60):
                problems.append(f"the server ends with {server.process.returncode}")
    grown = growth([moment.sample for moment in moments], elapsed)
    is_held_to = elapsed >= _HELD_TO_FROM_MINUTES * 60
    if is_held_to:
        problems += [
            f"{name} grows by {by:,} in an hour, and {most:,} are allowed"
            for name, by, most in zip(Sample._fields, grown, MOST_PER_HOUR, strict=True)
            if by > most
        ]
    largest = max(moment.sample.log_bytes for moment in moments)
    if largest > _LOG_FILES * _LOG_BYTES:
        problems.append(f"the log has {largest:,} bytes in {_LOG_FILES} files of at most {_LOG_BYTES:,}")
    last = moments[-1].sample
    said = ", ".join(
        f"{name} {value:,} ({by:+,} an hour, at most {most:,})"
        for name, value, by, most in zip(Sample._fields, last, grown, MOST_PER_HOUR, strict=True)
    )
    outcome = Outcome(
        tried=f"{elapsed / 60:.3g} minutes, {deeds:,} deeds of {kinds} kinds, seed {seed}",
        result=f"at the end {said}" + ("" if is_held_to else f"; held to that from {_HELD_TO_FROM_MINUTES} minutes on"),
        problems=tuple(problems),
    )
    return Soaked(outcome, moments, grown)


def attack(count: int, seed: int) -> Outcome:
    """``count`` minutes of it; what grows is held to a bound from half an hour on."""
    return soak(60.0 * count, seed).outcome

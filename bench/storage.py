"""Benchmark of a data directory: appending, lookups, reading and starting with 1 GB, beside the speed of a plain file."""

import os
import random
import statistics
import tempfile
import time
import uuid
from collections.abc import Callable
from pathlib import Path

from bench.table import Table
from groupcoord.broker.broker import Broker
from groupcoord.broker.partition_log import PartitionLog
from groupcoord.broker.storage_backend import IN_MEMORY_STORAGE, StorageBackend
from groupcoord.config.broker_config import BrokerConfig
from groupcoord.protocol.batches.record_batch import build_batch
from groupcoord.protocol.batches.records import Record
from groupcoord.storage.file_storage_backend import DataDirectory

TOTAL_BYTES = 1_000_000_000
RECORD_BYTES = 1_000
RECORDS_PER_BATCH = 16
LOOKUPS = 2_000
SYNCED = 200
_NOW_MS = 1_700_000_000_000
_CONFIG = BrokerConfig.of()


def run() -> list[Table]:
    """All of it, in a directory that is removed at the end."""
    batch = _batch(RECORDS_PER_BATCH)
    with tempfile.TemporaryDirectory(prefix="groupcoord-bench-") as name:
        directory = Path(name)
        speed = Table(
            f"storage: 1 GB in batches of {RECORDS_PER_BATCH} records of {RECORD_BYTES:,} bytes", "what", "MB/s"
        )
        speed.add(
            "a plain file, written batch by batch", f"{plain_write(directory / 'plain', batch, TOTAL_BYTES):,.0f}"
        )
        speed.add("a log in memory, appended to", f"{_append(_log(IN_MEMORY_STORAGE), batch):,.0f}")
        storage = DataDirectory(directory / "data", _CONFIG, new_uuid=uuid.uuid4, now_ms=_NOW_MS)
        log = _log(storage)
        speed.add("a log with --data-dir, appended to", f"{_append(log, batch):,.0f}")
        speed.add("a plain file, read 1 MB by 1 MB", f"{plain_read(directory / 'plain'):,.0f}")
        speed.add("a log with --data-dir, read 1 MB by 1 MB", f"{_read(log):,.0f}")
        return [speed, _lookups(log), _flushes(directory), _starts(directory / "data", storage)]


def _batch(records: int) -> bytes:
    value = random.Random(0).randbytes(RECORD_BYTES)  # the same in each run, and not to be compressed
    return build_batch([Record(index, _NOW_MS, None, value) for index in range(records)])


def _log(storage: StorageBackend) -> PartitionLog:
    broker = Broker(_CONFIG, new_topic_id=uuid.uuid4, new_session_id=lambda: 1, now_ms=_NOW_MS, storage=storage)
    return broker.topics.create("bench", 1, {"retention.bytes": "-1"}, _NOW_MS).partitions[0]


def _rate(size: int, work: Callable[[], None]) -> float:
    began = time.perf_counter()
    work()
    return size / (time.perf_counter() - began) / 1e6


def _append(log: PartitionLog, batch: bytes) -> float:
    def work() -> None:
        for _ in range(TOTAL_BYTES // len(batch)):
            log.append(batch, _NOW_MS)

    return _rate(TOTAL_BYTES, work)


def plain_write(path: Path, piece: bytes, size: int) -> float:
    """MB/s at which a file of ``size`` bytes is written, ``piece`` by ``piece``."""

    def work() -> None:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT)
        for _ in range(size // len(piece)):
            os.write(descriptor, piece)
        os.close(descriptor)

    return _rate(size, work)


def plain_read(path: Path) -> float:
    """MB/s at which the file is read, 1 MB by 1 MB."""

    def work() -> None:
        with path.open("rb", buffering=0) as file:
            while file.read(1 << 20):
                pass

    return _rate(path.stat().st_size, work)


def _read(log: PartitionLog) -> float:
    size = len(_batch(RECORDS_PER_BATCH))

    def work() -> None:
        offset = 0
        while offset < log.log_end_offset:
            data = log.read(offset, 1 << 20, at_least_one=True).data()
            offset += len(data) // size * RECORDS_PER_BATCH

    return _rate(log.size, work)


def _lookups(log: PartitionLog) -> Table:
    table = Table(
        f"lookups in a log of {log.size / 1e9:.2f} GB in {len(log.segments)} segments", "what", "median µs", "p99 µs"
    )
    chance = random.Random(1)
    segment = log.segments[0]
    offsets = [chance.randrange(log.log_end_offset) for _ in range(LOOKUPS)]
    _times(table, "where a random offset is", segment.find, offsets)
    _times(
        table,
        "a random offset's record set, 1 batch",
        lambda offset: log.read(offset, 1, at_least_one=True).data(),
        offsets,
    )
    return table


def _times(table: Table, what: str, work: Callable[[int], object], offsets: list[int]) -> None:
    taken = []
    for offset in offsets:
        began = time.perf_counter()
        work(offset)
        taken.append((time.perf_counter() - began) * 1e6)
    table.add(what, f"{statistics.median(taken):,.0f}", f"{statistics.quantiles(taken, n=100)[98]:,.0f}")


def _flushes(directory: Path) -> Table:
    """One record a batch, each on the disk before it is acknowledged."""
    batch = _batch(1)
    table = Table("each batch of one record flushed (flush.messages=1)", "what", "batches/s")
    descriptor = os.open(directory / "synced", os.O_WRONLY | os.O_CREAT)
    began = time.perf_counter()
    for _ in range(SYNCED):
        os.write(descriptor, batch)
        os.fsync(descriptor)
    table.add("a plain file, written and fsynced", f"{SYNCED / (time.perf_counter() - began):,.0f}")
    os.close(descriptor)
    storage = DataDirectory(directory / "flushed", _CONFIG, new_uuid=uuid.uuid4, now_ms=_NOW_MS)
    broker = Broker(_CONFIG, new_topic_id=uuid.uuid4, new_session_id=lambda: 1, now_ms=_NOW_MS, storage=storage)
    log = broker.topics.create("bench", 1, {"flush.messages": "1"}, _NOW_MS).partitions[0]
    began = time.perf_counter()
    for _ in range(SYNCED):
        log.append(batch, _NOW_MS)
    table.add("a log with --data-dir, appended to", f"{SYNCED / (time.perf_counter() - began):,.0f}")
    storage.close()
    return table


def _starts(directory: Path, storage: DataDirectory) -> Table:
    """A start after a clean end, and one that has to check every batch."""
    table = Table("starts with a data directory of 1 GB", "what", "seconds", "MB more in memory")
    storage.close()
    for what in ("after a clean end", "after a kill, everything to be checked"):
        if "kill" in what:
            (directory / ".kafka_cleanshutdown").unlink()
            (directory / "recovery-point-offset-checkpoint").unlink()
        before = _resident_bytes()
        began = time.perf_counter()
        again = DataDirectory(directory, _CONFIG, new_uuid=uuid.uuid4, now_ms=_NOW_MS)
        table.add(what, f"{time.perf_counter() - began:.2f}", f"{(_resident_bytes() - before) / 1e6:,.1f}")
        again.close()
    return table


def _resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")

"""Data directories whose files somebody or something has damaged: a start says what it found, and hides nothing.

Directories are left by servers with random histories, ended in order or killed. In each, one file is damaged in some way, and a
server is started on it, twice. It starts, serves every batch that the damage did not touch byte for byte, or says which file it
was and keeps the bytes beside it; or it refuses with a sentence that names the file. What is appended then can be read.

What was flushed long ago a start does not read, as Kafka's does not. Damage there is met by its readers: a fetch of the batch
brings it as it is, or CORRUPT_MESSAGE where its header is not one, and such a header hides what its segment holds behind it.

What was aborted stays aborted, and what was open stays open, unless the damage is to the log itself. Of an index of aborted
transactions that was flushed a start sees that it is gone, or is none; entries that could be right are believed, as by Kafka.
"""

import contextlib
import itertools
import random
import shutil
import signal
import struct
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from unittest import mock

from groupcoord.broker.partition_log import PartitionLog
from groupcoord.broker.producer_state_manager import AbortedTransaction
from groupcoord.core.transaction_verification_types import TransactionMarker
from groupcoord.protocol.batches.record_batch import (
    HEADER_BYTES,
    BatchError,
    BatchHeader,
    checksum_matches,
    read_header,
)
from groupcoord.storage import log_dir_files
from groupcoord.storage.file_io import StorageError
from groupcoord.storage.log_file_names import Partition, log_files
from tests.broker.data_plane import NOW_MS
from tests.conformance.batches import Rec, batch
from tests.reliability.outcome import Outcome
from tests.storage.directory import Life, transactional

ORIGINALS = 16
"""So many histories; each is damaged over and over."""
DEADLINE_S = 10
"""A start that takes longer hangs: it takes some 20 ms. Time of the processor, so that a busy machine is none."""
PARTITIONS = (Partition("orders", 0), Partition("orders", 1), Partition("table", 0))
_MEMORY = Path("/dev/shm")
"""Where there is such a place, files cost next to nothing."""
_CRC_AT = 17
"""What is in front of it no checksum covers, such as the epoch of the leader."""
_ENTRY_BYTES = {".index": 8, ".timeindex": 12, ".txnindex": 34}
_LENGTHS = (-12, 0, 1, 60, (1 << 31) - 1)


class HangsError(Exception):
    """The deadline has passed."""


class Stored(NamedTuple):
    """A batch as the history left it, and where; ``path`` is relative to the directory."""

    partition: Partition
    path: Path
    position: int
    data: bytes

    @property
    def header(self) -> BatchHeader:
        """Its header."""
        return read_header(self.data)


class Original(NamedTuple):
    """A directory as a server left it, with its checkpoints.

    ``looked_at``: of each file, from which byte on a start has to look at every batch. ``aborted`` are the transactions that
    were, ``unstable`` where the first begins that is open.
    """

    directory: Path
    clean: bool
    batches: list[Stored]
    points: dict[Partition, int]
    starts: dict[Partition, int]
    looked_at: dict[Path, int]
    largest_producer_id: int
    aborted: dict[Partition, list[AbortedTransaction]]
    unstable: dict[Partition, int | None]


class Damage(NamedTuple):
    """What was done to which file: the bytes from ``begin`` on and before ``end`` are not what they were."""

    path: Path
    how: str
    begin: int
    end: int
    other: Path | None = None


def attack(count: int, seed: int) -> Outcome:
    """Damage ``count`` files, one at a time, and start a server on each directory."""
    chance = random.Random(seed)
    problems: list[str] = []
    seen: Counter[str] = Counter()
    # No power is cut here: a flush changes nothing of what the next start finds, and takes nine tenths of the time.
    where = _MEMORY if _MEMORY.is_dir() else None
    with tempfile.TemporaryDirectory(prefix="damaged-files-", dir=where) as name, mock.patch("os.fsync"):
        root = Path(name)
        originals = [_original(root / f"original-{number}", chance) for number in range(min(ORIGINALS, count // 4 + 1))]
        for number in range(count):
            trial = _Trial(originals[number % len(originals)], root / "trial", random.Random(f"{seed} {number}"))
            trial.run()
            seen.update(trial.seen)
            problems += [f"seed {seed}, damage {number} ({trial}): {each}" for each in trial.problems]
            shutil.rmtree(root / "trial")
    return Outcome(
        tried=f"{count:,} damaged files",
        result=f"{seen['started']:,} starts and {seen['refused']:,} refusals that name the file; "
        f"{seen['untouched']:,} batches served byte for byte, {seen['kept']:,} kept beside their log, "
        f"{seen['as damaged'] + seen['behind damage']:,} met by readers where a start does not look, "
        f"{seen['aborted']:,} transactions still aborted; bound: nothing unsaid",
        problems=tuple(problems),
    )


# --- histories


def _original(directory: Path, chance: random.Random) -> Original:
    values = itertools.count()
    life = Life(directory)
    settings = {
        "internal_segment_bytes": chance.choice((900, 2500, 100_000)),
        "index_interval_bytes": chance.choice((1, 300, 4096)),
        "flush_messages": chance.choice((1, 9, 1000)),
    }
    life.topic("orders", 2, **settings)
    life.topic("table", 1, cleanup_policy="compact", **settings)
    producers = [life.broker.new_producer_id() for _ in range(3)]
    with_transactions = [life.broker.new_producer_id() for _ in range(2)]
    sequences: Counter[tuple[Partition, int]] = Counter()
    clean = True
    for last in (False, True):
        for _ in range(chance.randrange(15, 40)):
            partition, producer_id = chance.choice(PARTITIONS), chance.choice(producers)
            written = [b"%d " % next(values) * chance.randrange(1, 40) for _ in range(chance.randrange(1, 4))]
            key, at_ms = b"k%d" % chance.randrange(9), NOW_MS + next(values)
            producer = (producer_id, 0, sequences[partition, producer_id])
            data = batch([Rec(value, key, at_ms) for value in written], producer=producer)
            life.log(*partition).append(data, NOW_MS)
            sequences[partition, producer_id] += len(written)
            _write_in_transaction(life.log(*partition), chance.choice(with_transactions), sequences, chance)
        if chance.random() < 0.5:
            life.broker.compact("table", 0, NOW_MS)
        if chance.random() < 0.3:
            log = life.log("orders", 1)
            log.delete_records(chance.randrange(log.log_end_offset + 1))
        if chance.random() < 0.5:
            life.storage.checkpoint()
        clean = chance.random() < 0.6
        (life.end if clean else life.kill)()
        unstable = {partition: life.log(*partition).producers.first_unstable_offset for partition in PARTITIONS}
        aborted = {partition: _aborted(life.log(*partition)) for partition in PARTITIONS}
        if not last:
            life = Life(directory)
    return _surveyed(directory, clean, aborted, unstable)


def _write_in_transaction(
    log: PartitionLog, producer_id: int, sequences: Counter[tuple[Partition, int]], chance: random.Random
) -> None:
    """Write something, end the transaction, or do neither."""
    name, number = log.name.rsplit("-", 1)
    where = Partition(name, int(number)), producer_id
    what = chance.choice(("write", "write", "commit", "abort", "nothing"))
    if what == "write":
        log.append(transactional(producer_id, sequences[where], b"in a transaction", at_ms=NOW_MS), NOW_MS)
        sequences[where] += 1
    elif what != "nothing":
        log.append_marker(TransactionMarker(producer_id, 0, 0, what == "commit"), NOW_MS)


def _aborted(log: PartitionLog) -> list[AbortedTransaction]:
    return [each for segment in log.segments for each in segment.aborted]


def _surveyed(
    directory: Path,
    clean: bool,
    aborted: dict[Partition, list[AbortedTransaction]],
    unstable: dict[Partition, int | None],
) -> Original:
    batches: list[Stored] = []
    looked_at: dict[Path, int] = {}
    points = log_dir_files.read_offsets(directory / log_dir_files.RECOVERY_POINTS)
    for partition in PARTITIONS:
        files = log_files(directory / str(partition))
        for path, following in itertools.zip_longest(files, files[1:]):
            point = points.get(partition, 0)
            flushed = clean or (following is not None and int(following.name[:20]) <= point)
            file, data, position = path.relative_to(directory), path.read_bytes(), 0
            while position < len(data):
                size = read_header(data, position).size
                batches.append(Stored(partition, file, position, data[position : position + size]))
                position += size
            entries = struct.iter_unpack(">ii", path.with_suffix(".index").read_bytes())
            before = [at for last, at in entries if clean or int(path.name[:20]) + last < point]
            looked_at[file] = position if flushed and following is not None else max(before, default=0)
    starts = log_dir_files.read_offsets(directory / log_dir_files.LOG_START_OFFSETS)
    largest = max(each.header.producer_id for each in batches)
    # Of an aborted transaction compaction may have left nothing to be hidden.
    batches_of = [(each.partition, each.header.producer_id, each.header.base_offset) for each in batches]
    for partition, found in aborted.items():
        aborted[partition] = [
            each
            for each in found
            if any((partition, each.producer_id, at) in batches_of for at in range(each.first_offset, each.last_offset))
        ]
    return Original(directory, clean, batches, points, starts, looked_at, largest, aborted, unstable)


# --- damage


def _damaged(directory: Path, chance: random.Random) -> Damage:
    files = sorted(path for path in directory.rglob("*") if path.is_file() and path.name != ".lock")
    logs = [path for path in files if path.suffix == ".log" and path.stat().st_size]
    path = chance.choice(logs if chance.random() < 0.5 else files)
    data = bytearray(path.read_bytes())
    size = len(data)
    how = chance.choice(
        ("cut", "flips", "stray", "zeros", "emptied", "removed", "swapped", "folder", "special", "special")
    )
    begin, end, other = 0, size, None
    if not size and how in {"cut", "flips", "zeros", "emptied", "special"}:
        how = "stray"
    if how == "cut":
        begin = chance.randrange(size)
        del data[begin:]
    elif how == "flips":
        begin = chance.randrange(size)
        end = min(size, begin + chance.choice((1, 1, 3)))
        for at in range(begin, end):
            data[at] ^= 1 << chance.randrange(8)
    elif how == "stray":
        begin = end = size
        data += chance.randbytes(chance.randrange(1, 300))
    elif how == "zeros":
        begin = chance.randrange(size)
        end = chance.choice((size, min(size, begin + 20)))
        data[begin:end] = bytes(end - begin)
    elif how == "emptied":
        data.clear()
    elif how == "removed":
        path.unlink()
        return Damage(path.relative_to(directory), how, begin, end)
    elif how == "folder":
        path.unlink()
        path.mkdir()
        return Damage(path.relative_to(directory), how, begin, end)
    elif how == "swapped":
        second = chance.choice([each for each in files if each.parent == path.parent])
        other = second.relative_to(directory)
        path.write_bytes(second.read_bytes())
        second.write_bytes(data)
        return Damage(path.relative_to(directory), how, begin, end, other)
    else:
        how, begin, end = _special(path, data, chance)
    path.write_bytes(data)
    return Damage(path.relative_to(directory), how, begin, end, other)


def _special(path: Path, data: bytearray, chance: random.Random) -> tuple[str, int, int]:
    """What only a file of that kind can have."""
    if path.suffix == ".log":
        positions = [0]
        while positions[-1] < len(data):
            positions.append(positions[-1] + read_header(data, positions[-1]).size)
        begin = chance.choice(positions[:-1]) + 8
        length = chance.choice(_LENGTHS)
        struct.pack_into(">i", data, begin, length)
        return f"a length of {length}", begin, begin + 4
    if path.suffix in _ENTRY_BYTES:
        entry = _ENTRY_BYTES[path.suffix]
        begin = chance.randrange(0, len(data), entry)
        data[begin : begin + entry] = chance.randbytes(entry) if chance.random() < 0.5 else bytes(entry)
        return "an entry", begin, begin + entry
    digits = [at for at, byte in enumerate(data) if 48 <= byte <= 57]
    if not digits:
        data[0] ^= 1
        return "flips", 0, 1
    begin = chance.choice(digits)
    data[begin] = 48 + chance.randrange(10)
    return "another digit", begin, begin + 1


# --- what comes of it


class _Trial:
    """One damage to a copy of ``original`` in ``directory``."""

    def __init__(self, original: Original, directory: Path, chance: random.Random) -> None:
        self.problems: list[str] = []
        self.seen: Counter[str] = Counter()
        self._original = original
        self._directory = directory
        shutil.copytree(original.directory, directory)
        self._damage = _damaged(directory, chance)

    def __str__(self) -> str:
        damage = self._damage
        where = f"{damage.path} {damage.begin}-{damage.end}" + (f" and {damage.other}" if damage.other else "")
        return f"{damage.how}: {where}, {'clean' if self._original.clean else 'killed'}"

    def run(self) -> None:
        """Start on it, look at everything, append, and start again."""
        try:
            with _deadline():
                life = Life(self._directory)
                try:
                    self._look(life)
                    appended = {partition: self._append(life.log(*partition)) for partition in PARTITIONS}
                finally:
                    life.kill()
                again = Life(self._directory)
                try:
                    for partition, (offset, data) in appended.items():
                        if _read(again.log(*partition), offset) != data:
                            self.problems.append(
                                f"{partition}: offset {offset} was acknowledged and is not there again"
                            )
                finally:
                    again.kill()
            self.seen["started"] += 1
        except StorageError as refusal:
            self.seen["refused"] += 1
            if not self._names(str(refusal)):
                self.problems.append(f"refused without naming the file: {refusal}")
        except Exception as problem:  # whatever it is, it is what is looked for
            self.problems.append(f"{type(problem).__name__}: {problem}")

    def _names(self, text: str) -> bool:
        """Is the file named in ``text``, or the folder of its partition?"""
        paths = [self._damage.path, *([self._damage.other] if self._damage.other else [])]
        return any(str(path) in text or (len(path.parts) > 1 and path.parts[0] in text) for path in paths)

    def _look(self, life: Life) -> None:
        said = any(map(self._names, life.storage.findings))
        kept = b"".join(path.read_bytes() for path in self._directory.rglob("*.cut"))
        for stored in self._original.batches:
            log = life.log(*stored.partition)
            if stored.header.last_offset < max(log.log_start_offset, self._original.starts.get(stored.partition, 0)):
                if log.log_start_offset > self._original.starts.get(stored.partition, 0) and not said:
                    self._hidden(stored)
                continue
            self._look_at(stored, log, said, kept)
        highest = self._original.largest_producer_id
        if (given := life.broker.new_producer_id()) <= highest:
            self.problems.append(f"producer id {given} is handed out, and {highest} is in the logs")

        if not said:
            for partition in PARTITIONS:
                self._look_at_transactions(partition, life.log(*partition))

    def _look_at_transactions(self, partition: Partition, log: PartitionLog) -> None:
        """Where nothing was said, every end of a transaction that is there must count, as far as it is not before the start."""
        damage = self._damage
        touched = {path for path in (damage.path, damage.other) if path is not None}
        if damage.how not in {"removed", "folder"} and any(path.suffix == ".txnindex" for path in touched):
            return  # what could be right is believed
        known = {(each.producer_id, each.last_offset) for each in _aborted(log)}
        for each in self._original.aborted[partition]:
            is_there = log.log_start_offset <= each.last_offset < log.log_end_offset
            if is_there and (each.producer_id, each.last_offset) not in known:
                self.problems.append(f"{partition}: {each} is not aborted any more, unsaid")
        logs = {each.path for each in self._original.batches if each.partition == partition}
        if ".snapshot" in {path.suffix for path in touched} and damage.how == "swapped":
            return
        first, was = log.producers.first_unstable_offset, self._original.unstable[partition]
        if not logs & touched and first != was:
            self.problems.append(f"{partition}: the first open transaction begins at {first}, and not {was}, unsaid")
        self.seen["aborted"] += len(known)

    def _hidden(self, stored: Stored) -> None:
        """A log that starts further on is what a checkpoint says that can be read, or what its first file was removed for."""
        names = {path.name for path in (self._damage.path, self._damage.other) if path is not None}
        if log_dir_files.LOG_START_OFFSETS not in names and not self._is_touched(stored):
            self.problems.append(f"{stored.partition}: offset {stored.header.base_offset} is before the start, unsaid")

    def _look_at(self, stored: Stored, log: PartitionLog, said: bool, kept: bytes) -> None:
        offset = stored.header.base_offset
        found = _read(log, max(offset, log.log_start_offset))
        touched = self._is_touched(stored)
        if found == stored.data:
            self.seen["untouched"] += not touched
            return
        looked_at = stored.position + len(stored.data) > self._original.looked_at[stored.path]
        if touched:
            whole = len(found) >= HEADER_BYTES and checksum_matches(found, read_header(found))
            if found and (found[_CRC_AT:] == stored.data[_CRC_AT:] if whole else not looked_at):
                self.seen["as damaged"] += 1
            elif found and not whole:
                self.problems.append(f"{stored.partition}: a batch that nobody can read is served at offset {offset}")
            elif not said and looked_at and not self._may_be_gone(stored):
                self.problems.append(f"{stored.partition}: offset {offset} was damaged and is gone, unsaid")
        elif said and stored.data in kept:
            self.seen["kept"] += 1
        elif not self._passed_over(stored):
            self.problems.append(f"{stored.partition}: offset {offset} was not damaged and is not served as it was")

    def _is_touched(self, stored: Stored) -> bool:
        damage = self._damage
        if damage.how in {"swapped", "folder", "removed"}:
            return stored.path in {damage.path, damage.other} or (
                damage.how == "swapped" and stored.path.with_suffix("") == damage.path.with_suffix("")
            )
        begin, end = stored.position, stored.position + len(stored.data)
        return stored.path == damage.path and begin < damage.end and damage.begin < end

    def _may_be_gone(self, stored: Stored) -> bool:
        """Was it not on the disk for certain, and is what is left a log as a killed server may leave it?"""
        point = self._original.points.get(stored.partition, 0)
        return not self._original.clean and stored.header.last_offset >= point

    def _passed_over(self, stored: Stored) -> bool:
        """Is it behind damage that a start does not look at? Readers are told, or misled by what no checksum covers."""
        damage = self._damage
        in_front = stored.path == damage.path and damage.begin < stored.position
        if in_front and damage.begin < self._original.looked_at[stored.path]:
            self.seen["behind damage"] += 1
            return True
        return False

    def _append(self, log: PartitionLog) -> tuple[int, bytes]:
        offset = log.append(batch([Rec(b"appended afterwards", b"k")]), NOW_MS).base_offset
        data = _read(log, offset)
        if not data or read_header(data).base_offset != offset or not checksum_matches(data, read_header(data)):
            self.problems.append(f"{log.name}: what was appended at offset {offset} cannot be read")
        return offset, data


def _read(log: PartitionLog, offset: int) -> bytes:
    """The first batch that a fetch at ``offset`` brings, or nothing if it is told of an error."""
    try:
        data = log.read(offset, 1, at_least_one=True).data()
    except BatchError:
        return b""
    return data


@contextlib.contextmanager
def _deadline() -> Iterator[None]:
    """Raises HangsError in the block when it takes too long; in another thread than the main one there is no such thing."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def ring(_signal: int, _frame: object) -> None:
        raise HangsError(f"no end after {DEADLINE_S} s")

    before = signal.signal(signal.SIGPROF, ring)
    signal.setitimer(signal.ITIMER_PROF, DEADLINE_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)

"""A data directory, and servers that use it one after the other."""

import itertools
import uuid
from pathlib import Path
from typing import Any

from groupcoord.broker.broker import Broker
from groupcoord.broker.partition_log import PartitionLog
from groupcoord.client.completed_fetch import FetchedRecords, decode_records
from groupcoord.config.broker_config import BrokerConfig
from groupcoord.core.transaction_verification_types import TransactionMarker
from groupcoord.protocol.apis.fetch import AbortedTransaction
from groupcoord.protocol.batches.record_batch import TRANSACTIONAL, iter_batch_extents, read_header, records_in
from groupcoord.storage.file_log_backend import FileLogBackend
from groupcoord.storage.file_storage_backend import DataDirectory
from tests.broker.data_plane import NOW_MS, batch

KAFKA_FILES = Path(__file__).parent / "kafka_files"
"""``recorded-0`` as Kafka 4.3.1 left it: index.interval.bytes=300, segment.ms=2000, two producers, times in disorder."""


class Life:
    """A server's life in ``directory``, from start to ``end`` or ``kill``."""

    def __init__(self, directory: Path, **properties: object) -> None:
        named = {name.replace("_", "."): value for name, value in properties.items()}
        self.directory = directory
        self.storage = DataDirectory(directory, BrokerConfig.of(named), new_uuid=uuid.uuid4, now_ms=NOW_MS)
        sessions = itertools.count(1)
        self.broker = Broker(
            self.storage.config,
            new_topic_id=uuid.uuid4,
            new_session_id=lambda: next(sessions),
            now_ms=NOW_MS,
            storage=self.storage,
        )

    def topic(self, name: str = "orders", partitions: int = 1, **configs: object) -> PartitionLog:
        """Create a topic; the log of its first partition."""
        named = {key.replace("_", "."): str(value) for key, value in configs.items()}
        self.broker.topics.create(name, partitions, named, NOW_MS)
        return self.log(name)

    def log(self, name: str = "orders", partition: int = 0) -> PartitionLog:
        """A log that must be there."""
        log = self.broker.log(name, partition)
        assert log is not None
        return log

    def store(self, name: str = "orders", partition: int = 0) -> FileLogBackend:
        """The files of a log."""
        store = self.storage.log(name, partition, 1)
        assert isinstance(store, FileLogBackend)
        return store

    def end(self) -> None:
        """End in order."""
        self.storage.close()
        assert self.storage.failure is None

    def kill(self) -> None:
        """End at once: nothing more is written."""
        self.storage._background.close()
        for logs in self.storage._logs_of.values():
            logs.close()
        self.storage._metadata_file.close()
        self.storage._release.close()


def filled(log: PartitionLog, batches: int, first: int = 0, *, size: int = 1, **fields: Any) -> None:
    """Append ``batches`` of one record each, ``first`` and on; each a millisecond later than the one before."""
    for number in range(first, first + batches):
        log.append(batch(b"%d" % number * size, at_ms=NOW_MS - 10_000 + number, **fields), NOW_MS)


def contents(log: PartitionLog) -> list[tuple[int, bytes | None]]:
    """(offset, value) of every record, read as a consumer does."""
    found: list[tuple[int, bytes | None]] = []
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        data = log.read(offset, 1 << 20, at_least_one=True).data()
        records = [record for record in records_in(data) if record.offset >= offset]
        found += [(record.offset, record.value) for record in records]
        offset = max(read_header(data, extent.position).last_offset for extent in iter_batch_extents(data)) + 1
    return found


def transactional(producer: int, sequence: int, *values: bytes, **fields: Any) -> bytes:
    """A batch of an open transaction."""
    fields |= {"producer_id": producer, "producer_epoch": 0, "base_sequence": sequence}
    return batch(*values, attributes=TRANSACTIONAL, **fields)


def end(log: PartitionLog, producer: int, *, committed: bool) -> int:
    """Append the end of a transaction; the marker's offset."""
    return log.append_marker(TransactionMarker(producer, 0, 0, committed), NOW_MS).base_offset


def read_committed(log: PartitionLog, offset: int, max_bytes: int = 1 << 20) -> FetchedRecords:
    """What a consumer of committed records makes of one fetch."""
    found = log.read(offset, max_bytes, at_least_one=True, committed_only=True)
    hidden = [
        AbortedTransaction(producer_id=each.producer_id, first_offset=each.first_offset) for each in found.aborted or ()
    ]
    return decode_records(("orders", 0), found.data(), offset, hidden)


def committed(log: PartitionLog) -> dict[int, bytes | None]:
    """(offset, value) of every committed record up to the last stable offset."""
    found: dict[int, bytes | None] = {}
    offset = log.log_start_offset
    while offset < log.last_stable_offset:
        records, following = read_committed(log, offset)
        assert following > offset
        found.update((record.offset, record.value) for record in records)
        offset = following
    return found

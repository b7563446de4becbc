"""Lives of a node on a data directory, one after the other, which do the same each time they are run."""

import random
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

from groupcoord.broker.partition_log import PartitionLog
from groupcoord.cluster.cluster_core import ClusterCore
from groupcoord.config.broker_config import BrokerConfig
from groupcoord.core.api_error import ApiError
from groupcoord.core.effects import Call, Reply
from groupcoord.protocol.apis import APIS, ApiKey
from groupcoord.protocol.apis.offset_fetch import OffsetFetchRequestGroup, OffsetFetchRequestTopics
from groupcoord.protocol.batches.record_batch import read_header, records_in
from groupcoord.protocol.messages import OffsetFetchRequest
from groupcoord.storage import file_storage_backend as storage_module
from groupcoord.storage.file_storage_backend import DataDirectory

NOW_MS = 1_700_000_000_000
KEPT = "kept"
"""The topic that groups commit offsets of; it is never deleted."""

_CONFIG = BrokerConfig.of(
    {
        "offsets.topic.num.partitions": 2,
        "log.cleaner.min.cleanable.ratio": "0.0",
        "log.index.interval.bytes": 100,
        "group.initial.rebalance.delay.ms": 0,
    }
)


class Inline:
    """Flushes complete segments when a step is over, so that every run of a history does the same."""

    def __init__(self) -> None:
        self._waiting: list[Any] = []

    def submit(self, work: Callable[[], None]) -> Any:
        """Do it later."""
        flush = _Flushed(work)
        self._waiting.append(flush)
        return flush

    def close(self) -> None:
        """Do all."""
        waiting, self._waiting = self._waiting, []
        for flush in waiting:
            flush.run()


class _Flushed:
    def __init__(self, work: Callable[[], None]) -> None:
        self._work = work
        self._done = False
        self._error: OSError | None = None

    def run(self) -> None:
        try:
            self._work()
        except OSError as error:
            self._error = error
        self._done = True

    def done(self) -> bool:
        return self._done

    def result(self) -> None:
        if self._error is not None:
            raise self._error


class Chance:
    """Ids by ``rng``."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng

    def uuid(self) -> uuid.UUID:
        """An id."""
        return uuid.UUID(int=self._rng.getrandbits(128))

    def session_id(self) -> int:
        """A number."""
        return 1

    def next_int(self, bound: int) -> int:
        """A number below ``bound``."""
        return self._rng.randrange(bound)


class Life:
    """A node on the directory. Raises StorageError and Refused."""

    def __init__(self, directory: Path, rng: random.Random, config: BrokerConfig = _CONFIG) -> None:
        with mock.patch.object(storage_module, "BackgroundSync", Inline):
            self.storage = DataDirectory(directory, config, new_uuid=Chance(rng).uuid, now_ms=NOW_MS)
        try:
            self.node = ClusterCore(self.storage.config, random=Chance(rng), now_ms=NOW_MS, storage=self.storage)
            while self.node.next_deadline() == 0:
                self.node.expire(NOW_MS)
        except ApiError:
            self.storage.close()
            raise
        except BaseException:
            self.kill()
            raise

    def log(self, name: str, partition: int) -> PartitionLog:
        """A log that must be there."""
        log = self.node.broker.log(name, partition)
        if log is None:
            raise Broken(f"{name}-{partition} is not there")
        return log

    def ask(self, api: ApiKey, version: int, request: Any) -> Any:
        """The answer to a request."""
        call = Call(1, 1, APIS[api], version, "attack", "/127.0.0.1")
        replies = [each for each in self.node.handle(call, request, NOW_MS) if isinstance(each, Reply)]
        return replies[0].response

    def committed(self, group: str) -> int:
        """What the group has committed, or -1."""
        topics = (OffsetFetchRequestTopics(name=KEPT, partition_indexes=(0,)),)
        request = OffsetFetchRequest(groups=(OffsetFetchRequestGroup(group_id=group, topics=topics),))
        answer = self.ask(ApiKey.OFFSET_FETCH, 9, request).groups[0]
        if answer.error_code:
            raise Broken(f"group {group} is not served: error {answer.error_code}")
        offset: int = answer.topics[0].partitions[0].committed_offset
        return offset

    def end(self) -> None:
        """End in order, or after a failure."""
        self.storage.close()

    def kill(self) -> None:
        """End at once."""
        for logs in self.storage._logs_of.values():
            logs.close()
        self.storage._metadata_file.close()
        self.storage._release.close()


class Broken(Exception):
    """What was acknowledged is not there; the text says what."""


def contents(log: PartitionLog) -> dict[int, tuple[bytes | None, bytes | None]]:
    """offset → (key, value), read as a consumer does."""
    found: dict[int, tuple[bytes | None, bytes | None]] = {}
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        data = log.read(offset, 1 << 20, at_least_one=True).data()
        if not data:  # behind the last batch is a hole
            break
        records = list(records_in(data))
        found |= {each.offset: (each.key, each.value) for each in records if each.offset >= offset}
        position = 0
        while position < len(data):  # a batch that compaction has emptied has offsets all the same
            header = read_header(data[position:])
            offset = header.last_offset + 1
            position += header.size
    return found

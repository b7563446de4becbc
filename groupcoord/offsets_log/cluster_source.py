"""``__consumer_offsets`` of a running cluster, groupcoord's or Kafka's, read as any consumer could read it."""

import asyncio
import uuid
from collections.abc import Coroutine, Iterator
from typing import Any, TypeVar

from groupcoord.broker.topic_names import CONSUMER_OFFSETS
from groupcoord.client.errors import ClientError
from groupcoord.client.member.settings import ExponentialBackoff
from groupcoord.client.network_client import (
    ConnectionPurpose,
    NetworkClient,
)
from groupcoord.offsets_log.source import (
    Batch,
    SourceError,
    UnreadableData,
)
from groupcoord.protocol.apis.fetch import FetchPartition, FetchRequest, FetchTopic, PartitionData
from groupcoord.protocol.apis.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from groupcoord.protocol.batches.record_batch import BatchError, extents, has_right_checksum, read_header
from groupcoord.protocol.errors import ErrorCode

REQUEST_TIMEOUT_MS = 30_000
PIECE_BYTES = 4 << 20
"""So much is fetched in one go."""

_BY_NAME = 12  # the last version of Fetch that names topics
_EARLIEST, _LATEST = -2, -1
T = TypeVar("T")


class ClusterSource:
    """The cluster that the broker at ``host``:``port`` belongs to; asks it when it is read. Raises SourceError."""

    def __init__(self, host: str, port: int) -> None:
        self._runner = asyncio.Runner()
        self._cluster = NetworkClient(
            [(host, port)],
            client_id="groupcoord-offsets",
            request_timeout_ms=REQUEST_TIMEOUT_MS,
            metadata_max_age_ms=REQUEST_TIMEOUT_MS,
            backoff=ExponentialBackoff(100, 1_000, lambda: 0.5),
            allow_auto_create_topics=False,
        )
        try:
            self._run(self._cluster.refresh([CONSUMER_OFFSETS]))
            problem = self._cluster.topic_errors.get(CONSUMER_OFFSETS)
            if problem == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise SourceError(f"{host}:{port} has no topic {CONSUMER_OFFSETS}: no group has been there yet")
            if problem is not None:
                raise SourceError(f"{host}:{port} does not tell about {CONSUMER_OFFSETS}: {problem.text}")
        except BaseException:
            self.close()
            raise
        self.partitions = sorted(self._cluster.topics[CONSUMER_OFFSETS].places)
        self.topic_id: uuid.UUID | None = self._cluster.topic_id(CONSUMER_OFFSETS)

    def close(self) -> None:
        """Close the connections."""
        self._runner.run(self._cluster.close())
        self._runner.close()

    def read(self, partition: int) -> Iterator[Batch | UnreadableData]:
        """The batches from the start of the log to what is its end when this begins."""
        offset = self._run(self._offset(partition, _EARLIEST))
        end = self._run(self._offset(partition, _LATEST))
        segment = offset
        while offset < end:
            data = self._run(self._fetch(partition, offset))
            found = list(_batches(partition, segment, offset, data))
            yield from found
            ends = [each.header.last_offset + 1 for each in found if isinstance(each, Batch)]
            if not ends or len(ends) < len(found):
                return  # what cannot be read now cannot be read later, and an empty answer means that the rest is compacted
            offset = ends[-1]

    async def _offset(self, partition: int, timestamp: int) -> int:
        asked = ListOffsetsPartition(partition_index=partition, timestamp=timestamp)
        request = ListOffsetsRequest(
            replica_id=-1, topics=(ListOffsetsTopic(name=CONSUMER_OFFSETS, partitions=(asked,)),)
        )
        answer = await self._cluster.request_of(self._leader(partition), request, ConnectionPurpose.GENERAL)
        found = answer.topics[0].partitions[0]
        _check(partition, found.error_code)
        return int(found.offset)

    async def _fetch(self, partition: int, offset: int) -> bytes:
        asked = FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=PIECE_BYTES)
        topic = FetchTopic(topic=CONSUMER_OFFSETS, topic_id=self.topic_id, partitions=(asked,))
        request = FetchRequest(max_wait_ms=0, min_bytes=0, topics=(topic,))
        limit = _BY_NAME if self.topic_id is None else None
        answer = await self._cluster.request_of(
            self._leader(partition), request, ConnectionPurpose.FETCHING, limit=limit
        )
        _check(partition, answer.error_code)
        found: PartitionData = answer.responses[0].partitions[0]
        _check(partition, found.error_code)
        return bytes(found.records or b"")

    def _leader(self, partition: int) -> int:
        place = self._cluster.place((CONSUMER_OFFSETS, partition))
        if place is None:
            raise SourceError(f"{CONSUMER_OFFSETS}-{partition} has no leader at the moment")
        return place.leader

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        try:
            return self._runner.run(work)
        except ClientError as problem:
            raise SourceError(str(problem)) from problem


def _check(partition: int, error_code: int) -> None:
    if error_code:
        raise SourceError(f"{CONSUMER_OFFSETS}-{partition} cannot be read: {ErrorCode(error_code).text}")


def _batches(partition: int, segment: int, offset: int, data: bytes) -> Iterator[Batch | UnreadableData]:
    """The whole batches in ``data``; nothing behind a broken one."""
    try:
        for position, size, _ in extents(data):
            header = read_header(data, position)
            batch = data[position : position + size]
            if not has_right_checksum(batch, header):
                yield UnreadableData(partition, header.base_offset, "the checksum of the batch is wrong")
                return
            yield Batch(partition, segment, header, batch)
            offset = header.last_offset + 1
    except BatchError as problem:
        yield UnreadableData(partition, offset, problem.reason)

"""ListOffsets requests to the leaders of partitions: log start and end offsets, and offsets by timestamp.

Source: ``OffsetFetcher.fetchOffsetsByTimes``.
"""

import asyncio
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from groupcoord.assignors import TopicPartition
from groupcoord.client.client_errors import BrokerError, DisconnectedError
from groupcoord.client.exponential_backoff import ExponentialBackoff
from groupcoord.client.network_client import ConnectionPurpose, NetworkClient
from groupcoord.client.position_resolver import CONSUMER, UP_TO_EARLIEST_AND_LATEST
from groupcoord.protocol.apis.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from groupcoord.protocol.errors import ErrorCode

EARLIEST = -2
LATEST = -1
NO_OFFSET = -1
"""The response if no record has the requested timestamp or a later one."""


class OffsetAndTimestamp(NamedTuple):
    """The offset, timestamp (ms since 1970) and leader epoch of a record; each -1 if there is none."""

    offset: int
    timestamp_ms: int
    leader_epoch: int = -1


async def ask_leader(
    cluster: NetworkClient, leader: int, topics: Mapping[str, list[ListOffsetsPartition]], isolation_level: int
) -> ListOffsetsResponse:
    """The ListOffsets response of the broker ``leader`` for ``topics``. Raises ClientError."""
    request = ListOffsetsRequest(
        replica_id=CONSUMER,
        isolation_level=isolation_level,
        topics=tuple(ListOffsetsTopic(name=name, partitions=tuple(each)) for name, each in topics.items()),
    )
    answer: ListOffsetsResponse = await cluster.request_of(
        leader, request, ConnectionPurpose.GENERAL, limit=UP_TO_EARLIEST_AND_LATEST
    )
    return answer


class LogOffsets:
    """Sends ListOffsets to the leaders of partitions, and retries retriable errors until a time-out."""

    def __init__(self, cluster: NetworkClient, backoff: ExponentialBackoff, *, isolation_level: int) -> None:
        self._cluster = cluster
        self._backoff = backoff
        self._isolation_level = isolation_level

    async def ends(self, partitions: Iterable[TopicPartition], at: int, timeout_ms: int) -> dict[TopicPartition, int]:
        """The offset at EARLIEST or LATEST of each partition. Raises BrokerError, TimeoutError."""
        found = await self.at_times(dict.fromkeys(partitions, at), timeout_ms)
        return {partition: answer.offset for partition, answer in found.items()}

    async def at_times(
        self, times_ms: Mapping[TopicPartition, int], timeout_ms: int
    ) -> dict[TopicPartition, OffsetAndTimestamp]:
        """The first record of each partition with the given timestamp or a later one; offset -1 if there is none.

        Raises BrokerError, and TimeoutError, which names the partitions without a response.
        """
        found: dict[TopicPartition, OffsetAndTimestamp] = {}
        attempts = 0
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                while missing := {each: time for each, time in times_ms.items() if each not in found}:
                    if attempts:
                        await asyncio.sleep(self._backoff.delay_ms(attempts - 1) / 1000)
                    await self._ask(missing, found, refresh=attempts > 0)
                    attempts += 1
        except TimeoutError:
            names = ", ".join(f"{topic}-{number}" for topic, number in sorted(times_ms.keys() - found.keys()))
            raise TimeoutError(f"no leader answered for {names} within {timeout_ms} ms; do they exist?") from None
        return {partition: found[partition] for partition in times_ms}

    async def _ask(
        self, wanted: Mapping[TopicPartition, int], found: dict[TopicPartition, OffsetAndTimestamp], *, refresh: bool
    ) -> None:
        """Send one round of requests for ``wanted``; results go into ``found``."""
        unknown = [topic for topic, number in wanted if refresh or self._cluster.leader_of((topic, number)) is None]
        try:
            if unknown:
                await self._cluster.refresh(unknown)
            by_leader: dict[int, dict[str, list[ListOffsetsPartition]]] = {}
            for partition, time_ms in sorted(wanted.items()):
                place = self._cluster.leader_of(partition)
                if place is not None:
                    asked = ListOffsetsPartition(
                        partition_index=partition[1], current_leader_epoch=place.leader_epoch, timestamp=time_ms
                    )
                    by_leader.setdefault(place.leader, {}).setdefault(partition[0], []).append(asked)
            for leader, topics in by_leader.items():
                self._take(await ask_leader(self._cluster, leader, topics, self._isolation_level), found)
        except DisconnectedError:
            self._cluster.request_refresh()

    def _take(self, answer: ListOffsetsResponse, found: dict[TopicPartition, OffsetAndTimestamp]) -> None:
        for topic in answer.topics:
            for each in topic.partitions:
                code = ErrorCode(each.error_code)
                if code and not code.retriable:
                    raise BrokerError(code, f"the offsets of {topic.name}-{each.partition_index}")
                if not code:
                    at = OffsetAndTimestamp(each.offset, each.timestamp, each.leader_epoch)
                    found[topic.name, each.partition_index] = at

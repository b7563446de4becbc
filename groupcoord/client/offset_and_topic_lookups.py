"""The consumer's lookups for any topic or partition, assigned or not: ``beginning_offsets``, ``end_offsets``,
``offsets_for_times``, ``topics`` and ``partitions_for_topic``.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping

from groupcoord.assignors import TopicPartition
from groupcoord.client import log_offsets, option_value_parsing
from groupcoord.client.consumer_settings import ConsumerSettings
from groupcoord.client.log_offsets import LogOffsets, OffsetAndTimestamp
from groupcoord.client.network_client import NetworkClient


class OffsetAndTopicLookups(ABC):
    """Base class of Consumer. Each lookup raises ConsumerClosedError if the consumer is not open, and DisconnectedError."""

    def __init__(self, settings: ConsumerSettings, cluster: NetworkClient, offsets: LogOffsets) -> None:
        self._settings = settings
        self._cluster = cluster
        self._log_offsets = offsets

    @abstractmethod
    def _check_connected(self) -> None:
        """Raises ConsumerClosedError."""

    async def beginning_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The first offset of each of ``partitions``, assigned or not. Raises BrokerError, TimeoutError."""
        self._check_connected()
        return await self._log_offsets.ends(partitions, log_offsets.EARLIEST, self._settings.default_api_timeout_ms)

    async def end_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The end offset of each of ``partitions``: the high watermark or, under ``read_committed``, the last stable offset.

        Raises BrokerError, TimeoutError.
        """
        self._check_connected()
        return await self._log_offsets.ends(partitions, log_offsets.LATEST, self._settings.default_api_timeout_ms)

    async def offsets_for_times(
        self, times_ms: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """The first record of each partition whose timestamp is at or after the given time (ms since 1970); None if none is.

        Raises ValueError for a negative time; BrokerError, TimeoutError.
        """
        self._check_connected()
        for partition, time_ms in times_ms.items():
            if time_ms < 0:
                raise ValueError(f"a time is not negative: {time_ms} for {partition[0]}-{partition[1]}")
        found = await self._log_offsets.at_times(times_ms, self._settings.default_api_timeout_ms)
        return {partition: None if at.offset == log_offsets.NO_OFFSET else at for partition, at in found.items()}

    async def topics(self) -> frozenset[str]:
        """All topics of the cluster, without internal ones if ``exclude_internal_topics``. Raises DisconnectedError."""
        self._check_connected()
        found = await self._cluster.all_topics()
        return frozenset(
            name for name, internal in found.items() if not (internal and self._settings.exclude_internal_topics)
        )

    async def partitions_for_topic(self, topic: str) -> frozenset[int]:
        """The partition numbers of ``topic``; empty if it does not exist. Raises DisconnectedError."""
        self._check_connected()
        await self._cluster.refresh(option_value_parsing.topic_names(topic))
        known = self._cluster.topics.get(topic)
        return frozenset() if known is None else frozenset(known.partitions)

"""The positions of partitions without one: the committed offset, else as the reset policy says.

Sources: ``OffsetFetcher``, ``SubscriptionState``.
"""

import enum
from collections.abc import Iterable

from groupcoord.assignors import TopicPartition
from groupcoord.client.errors import BrokerError, DisconnectedError, OffsetError
from groupcoord.client.network_client import ConnectionPurpose, NetworkClient, PartitionLeader
from groupcoord.client.offsets import GroupOffsets
from groupcoord.client.partitions import PartitionState, StartPosition
from groupcoord.protocol.apis.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from groupcoord.protocol.errors import ErrorCode

CONSUMER = -1
UP_TO_EARLIEST_AND_LATEST = 6
"""Later versions of ListOffsets only add other timestamps."""


class OffsetResetStrategy(enum.Enum):
    """``auto.offset.reset``: where to begin if nothing is committed, or if what was wanted is not there any more."""

    EARLIEST = "earliest"
    LATEST = "latest"
    NONE = "none"

    @property
    def start(self) -> StartPosition | None:
        """The position that it means; None for ``none``."""
        return {
            OffsetResetStrategy.EARLIEST: StartPosition.EARLIEST,
            OffsetResetStrategy.LATEST: StartPosition.LATEST,
        }.get(self)


class PositionResolver:
    """Finds positions for partitions that have none."""

    def __init__(
        self, offsets: GroupOffsets, cluster: NetworkClient, reset: OffsetResetStrategy, *, isolation_level: int
    ) -> None:
        self._offsets = offsets
        self._cluster = cluster
        self._reset = reset
        self._isolation_level = isolation_level

    async def from_committed(self, states: Iterable[PartitionState], timeout_ms: int) -> None:
        """Set positions to the committed offsets; where there are none, as the policy says.

        Raises OffsetError if the policy says nothing, BrokerError, TimeoutError.
        """
        asked = {state.partition: (state, state.version) for state in states}
        committed = await self._offsets.committed(frozenset(asked), timeout_ms)
        lost = []
        for partition, (state, version) in asked.items():
            if state.version != version:
                continue
            offset = committed[partition]
            if offset is not None:
                state.move_to(offset.offset, offset.leader_epoch)
            elif self._reset.start is not None:
                state.find(self._reset.start)
            else:
                lost.append(partition)
        if lost:
            raise OffsetError(lost, "nothing is committed, and auto_offset_reset is none")

    def out_of_range(self, state: PartitionState) -> None:
        """The log has no record at the position of ``state``. Raises OffsetError if the policy does not say where to go."""
        if self._reset.start is None:
            where = f"there is no offset {state.fetched_to} (any more), and auto_offset_reset is none"
            raise OffsetError([state.partition], where)
        state.find(self._reset.start)

    async def from_log(self, states: Iterable[PartitionState]) -> bool:
        """Set the positions that are to be the start or the end of the log. Returns whether every leader has answered.

        Raises BrokerError.
        """
        by_leader: dict[int, list[tuple[PartitionState, StartPosition, PartitionLeader]]] = {}
        complete = True
        for state in states:
            place = self._cluster.leader_of(state.partition)
            if place is None or state.start is None:
                complete = False
            else:
                by_leader.setdefault(place.leader, []).append((state, state.start, place))
        for leader, of_leader in by_leader.items():
            complete &= await self._ask(leader, of_leader)
        if not complete:
            self._cluster.request_refresh()
        return complete

    async def _ask(self, leader: int, wanted: list[tuple[PartitionState, StartPosition, PartitionLeader]]) -> bool:
        asked = {state.partition: (state, state.version) for state, _, _ in wanted}
        by_topic: dict[str, list[ListOffsetsPartition]] = {}
        for state, start, place in wanted:
            topic, number = state.partition
            by_topic.setdefault(topic, []).append(
                ListOffsetsPartition(
                    partition_index=number, current_leader_epoch=place.leader_epoch, timestamp=start.value
                )
            )
        request = ListOffsetsRequest(
            replica_id=CONSUMER,
            isolation_level=self._isolation_level,
            topics=tuple(ListOffsetsTopic(name=name, partitions=tuple(each)) for name, each in by_topic.items()),
        )
        try:
            answer: ListOffsetsResponse = await self._cluster.request_of(
                leader, request, ConnectionPurpose.GENERAL, limit=UP_TO_EARLIEST_AND_LATEST
            )
        except DisconnectedError:
            return False
        complete = True
        for topic_answer in answer.topics:
            for each in topic_answer.partitions:
                complete &= _take(
                    asked, (topic_answer.name, each.partition_index), ErrorCode(each.error_code), each.offset
                )
        return complete


def _take(
    asked: dict[TopicPartition, tuple[PartitionState, int]], partition: TopicPartition, code: ErrorCode, offset: int
) -> bool:
    state, version = asked[partition]
    if code.retriable:
        return False
    if code:
        raise BrokerError(code, f"the offsets of {partition[0]}-{partition[1]}")
    if state.version == version:
        state.move_to(offset)
    return True

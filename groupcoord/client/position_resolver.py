"""Finds the position of newly assigned partitions: the committed offset, else as ``auto.offset.reset`` says.

Sources: ``OffsetFetcher``, ``SubscriptionState``.
"""

import enum
from collections.abc import Iterable

from groupcoord.assignors import TopicPartition
from groupcoord.client.assigned_partitions import PartitionState, StartPosition
from groupcoord.client.client_errors import BrokerError, DisconnectedError, OffsetError
from groupcoord.client.committed_offsets import GroupOffsets
from groupcoord.client.network_client import ConnectionPurpose, NetworkClient, PartitionLeader
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
    """``auto.offset.reset``: where to start if nothing is committed, or if the position is out of range."""

    EARLIEST = "earliest"
    LATEST = "latest"
    NONE = "none"

    @property
    def start(self) -> StartPosition | None:
        """The corresponding StartPosition; None for ``none``."""
        return {
            OffsetResetStrategy.EARLIEST: StartPosition.EARLIEST,
            OffsetResetStrategy.LATEST: StartPosition.LATEST,
        }.get(self)


class PositionResolver:
    """Sets the positions of partitions that have none, with OffsetFetch and ListOffsets requests."""

    def __init__(
        self, offsets: GroupOffsets, cluster: NetworkClient, reset: OffsetResetStrategy, *, isolation_level: int
    ) -> None:
        self._offsets = offsets
        self._cluster = cluster
        self._reset = reset
        self._isolation_level = isolation_level

    async def from_committed(self, states: Iterable[PartitionState], timeout_ms: int) -> None:
        """Set positions to the committed offsets; where there are none, apply the reset policy.

        Raises OffsetError if the policy is ``none``, BrokerError, TimeoutError.
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
        """Apply the reset policy after OFFSET_OUT_OF_RANGE. Raises OffsetError if the policy is ``none``."""
        if self._reset.start is None:
            where = f"there is no offset {state.fetched_to} (any more), and auto_offset_reset is none"
            raise OffsetError([state.partition], where)
        state.find(self._reset.start)

    async def from_log(self, states: Iterable[PartitionState]) -> bool:
        """Set positions to the start or the end of the log (ListOffsets). Returns whether every leader responded.

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
                if (code := ErrorCode(each.error_code)).retriable:
                    self._cluster.tell(f"records of {topic_answer.name}-{each.partition_index}", code.name)
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

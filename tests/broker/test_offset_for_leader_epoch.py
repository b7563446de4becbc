import pytest

from groupcoord.protocol.apis.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from groupcoord.protocol.errors import ErrorCode
from tests.broker.data_plane import DataPlane

UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


class TestOffsetForLeaderEpoch:
    def ask(self, plane: DataPlane, topic: str, *asked: tuple[int, int, int]) -> list[EpochEndOffset]:
        """(partition, current leader epoch, epoch) → answers."""
        parts = tuple(
            OffsetForLeaderPartition(partition=index, current_leader_epoch=current, leader_epoch=epoch)
            for index, current, epoch in asked
        )
        topics = (OffsetForLeaderTopic(topic=topic, partitions=parts),)
        (answered,) = plane.ask(OffsetForLeaderEpochRequest(topics=topics), 4).topics
        assert answered.topic == topic
        return list(answered.partitions)

    @pytest.mark.parametrize(("epoch", "answer"), [(0, (0, 5)), (-1, (-1, -1)), (3, (-1, -1)), (-5, (-5, 0))])
    def test_the_end_of_an_epoch(self, plane: DataPlane, epoch: int, answer: tuple[int, int]) -> None:
        for current in (-1, 0):
            (found,) = self.ask(plane, "orders", (0, current, epoch))
            assert (found.error_code, found.leader_epoch, found.end_offset) == (0, *answer)

    def test_what_cannot_be_told(self, plane: DataPlane) -> None:
        found = self.ask(plane, "orders", (0, 1, 0), (0, -2, 0), (7, -1, 0))
        assert [part.error_code for part in found] == [
            ErrorCode.UNKNOWN_LEADER_EPOCH,
            ErrorCode.FENCED_LEADER_EPOCH,
            UNKNOWN,
        ]
        assert [part.partition for part in found] == [0, 0, 7]
        assert self.ask(plane, "nothing", (0, -1, 0))[0].error_code == UNKNOWN

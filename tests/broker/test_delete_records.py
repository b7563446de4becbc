from groupcoord.protocol.apis.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from groupcoord.protocol.errors import ErrorCode
from tests.broker.data_plane import DataPlane

UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


class TestDeleteRecords:
    def ask(self, plane: DataPlane, topic: str, *asked: tuple[int, int]) -> list[DeleteRecordsPartitionResult]:
        """(partition, offset) → answers."""
        parts = tuple(DeleteRecordsPartition(partition_index=index, offset=offset) for index, offset in asked)
        request = DeleteRecordsRequest(topics=(DeleteRecordsTopic(name=topic, partitions=parts),), timeout_ms=0)
        (answered,) = plane.ask(request, 2).topics
        assert answered.name == topic
        return list(answered.partitions)

    def test_records_before_an_offset_go(self, plane: DataPlane) -> None:
        (done,) = self.ask(plane, "orders", (0, 3))
        assert done == DeleteRecordsPartitionResult(partition_index=0, low_watermark=3)
        assert plane.fetched("orders", 2).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
        assert plane.fetched("orders", 3).log_start_offset == 3

    def test_all_records_go(self, plane: DataPlane) -> None:
        assert self.ask(plane, "orders", (0, -1), (1, -1)) == [
            DeleteRecordsPartitionResult(partition_index=0, low_watermark=5),
            DeleteRecordsPartitionResult(partition_index=1, low_watermark=0),
        ]

    def test_what_cannot_be_done(self, plane: DataPlane) -> None:
        out = ErrorCode.OFFSET_OUT_OF_RANGE
        found = self.ask(plane, "orders", (0, 6), (1, -2), (2, 0))
        assert [(part.error_code, part.low_watermark) for part in found] == [(out, -1), (out, -1), (UNKNOWN, -1)]
        assert self.ask(plane, "nothing", (0, 0))[0].error_code == UNKNOWN

    def test_a_partition_that_is_named_twice_is_done_once(self, plane: DataPlane) -> None:
        (done,) = self.ask(plane, "orders", (0, 4), (0, 2))
        assert done.low_watermark == 2

    def test_compacted_topics_keep_theirs(self, plane: DataPlane) -> None:
        plane.topic("state", cleanup_policy="compact")
        assert self.ask(plane, "state", (0, 0))[0].error_code == ErrorCode.POLICY_VIOLATION

    def test_internal_topics_are_not_for_clients(self, plane: DataPlane) -> None:
        plane.topic("__consumer_offsets")
        assert self.ask(plane, "__consumer_offsets", (0, -1))[0].error_code == ErrorCode.INVALID_TOPIC_EXCEPTION

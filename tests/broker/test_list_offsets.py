import gzip

import pytest

from groupcoord.broker.log_segment import BatchSearch
from groupcoord.protocol.apis.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from groupcoord.protocol.batches.record_batch import HEADER_BYTES, BatchError, read_header
from groupcoord.protocol.errors import ErrorCode
from tests.broker.data_plane import THEN_MS, DataPlane, batch, patched


def wrong_sizes() -> bytes:
    """A gzip batch of one record that says to be longer than it is."""
    plain = batch(b"value")
    body = gzip.compress(bytes([plain[HEADER_BYTES] + 2]) + plain[HEADER_BYTES + 1 :], mtime=0)
    header = read_header(plain)
    length = header.length - (len(plain) - HEADER_BYTES) + len(body)
    return patched(plain[:HEADER_BYTES] + body, length=length, attributes=1)


UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


class TestListOffsets:
    def ask(
        self, plane: DataPlane, *asked: tuple[int, int], topic: str = "orders", version: int = 11, **fields: int
    ) -> list[ListOffsetsPartitionResponse]:
        """(partition, timestamp) → answers."""
        parts = tuple(ListOffsetsPartition(partition_index=index, timestamp=timestamp) for index, timestamp in asked)
        request = ListOffsetsRequest(replica_id=-1, topics=(ListOffsetsTopic(name=topic, partitions=parts),), **fields)
        (answered,) = plane.ask(request, version).topics
        assert answered.name == topic
        return list(answered.partitions)

    @pytest.mark.parametrize(
        ("timestamp", "answer"),
        [
            (-1, (-1, 5, 0)),
            (-2, (-1, 1, 0)),
            (-3, (THEN_MS + 400, 4, 0)),
            (-4, (-1, 1, 0)),
            (-5, (-1, -1, -1)),
            (-6, (-1, -1, -1)),
            (THEN_MS + 101, (THEN_MS + 200, 2, 0)),
            (THEN_MS + 401, (-1, -1, -1)),
        ],
    )
    def test_an_offset_for_a_time(self, plane: DataPlane, timestamp: int, answer: tuple[int, int, int]) -> None:
        plane.log("orders").delete_records(1)
        (found,) = self.ask(plane, (0, timestamp))
        assert (found.error_code, found.timestamp, found.offset, found.leader_epoch) == (0, *answer)

    @pytest.mark.parametrize(
        ("timestamp", "since"), [(-1, 1), (-2, 1), (-3, 7), (-4, 8), (-5, 9), (-6, 11), (-7, 99), (-99, 99)]
    )
    def test_each_special_time_came_with_a_version(self, plane: DataPlane, timestamp: int, since: int) -> None:
        for version in range(1, 12):
            (found,) = self.ask(plane, (1, timestamp), version=version)
            assert found.error_code == (0 if version >= since else ErrorCode.UNSUPPORTED_VERSION)

    def test_what_is_not_there(self, plane: DataPlane) -> None:
        found = {part.partition_index: part.error_code for part in self.ask(plane, (2, -1), (-1, -1), (0, -1))}
        assert found == {2: UNKNOWN, -1: UNKNOWN, 0: 0}
        assert [found.error_code for found in self.ask(plane, (0, -1), topic="nothing")] == [UNKNOWN]

    def test_the_order_is_that_of_scalas_maps(self, plane: DataPlane) -> None:
        """As a real 4.3.1 answered these very names."""
        names = ("refusals_of_list_offsets-orders", "refusals_of_list_offsets-unknown")
        asked = ((names[0], 9), (names[0], 0), (names[1], 0))
        request = ListOffsetsRequest(
            replica_id=-1,
            topics=tuple(
                ListOffsetsTopic(name=name, partitions=(ListOffsetsPartition(partition_index=index, timestamp=-1),))
                for name, index in asked
            ),
        )
        answer = plane.ask(request, 11)
        assert [(topic.name, [part.partition_index for part in topic.partitions]) for topic in answer.topics] == [
            (names[1], [0]),
            (names[0], [9, 0]),
        ]

    def test_a_log_with_records_that_nobody_can_read(self, plane: DataPlane) -> None:
        """Kafka stores a compressed batch whose records say wrong sizes."""
        plane.topic("odd")
        assert plane.produced("odd", wrong_sizes()).error_code == 0
        (found,) = self.ask(plane, (0, THEN_MS), topic="odd")
        assert found.error_code == ErrorCode.INVALID_RECORD

    def test_a_partition_that_is_named_twice(self, plane: DataPlane) -> None:
        found = self.ask(plane, (0, -1), (1, -1), (0, -2))
        assert [(part.partition_index, part.error_code) for part in found] == [(0, ErrorCode.INVALID_REQUEST), (1, 0)]

    def test_isolation_makes_no_difference_but_has_to_exist(self, plane: DataPlane) -> None:
        assert self.ask(plane, (0, -1), isolation_level=1) == self.ask(plane, (0, -1), isolation_level=0)
        (found,) = self.ask(plane, (0, -1), isolation_level=2)
        assert found.error_code == ErrorCode.UNKNOWN_SERVER_ERROR

    @pytest.mark.parametrize(
        ("epoch", "error"),
        [(-1, 0), (0, 0), (1, ErrorCode.UNKNOWN_LEADER_EPOCH), (-2, ErrorCode.FENCED_LEADER_EPOCH)],
    )
    def test_a_leader_that_is_not_there(self, plane: DataPlane, epoch: int, error: int) -> None:
        part = ListOffsetsPartition(partition_index=0, timestamp=-1, current_leader_epoch=epoch)
        request = ListOffsetsRequest(replica_id=-1, topics=(ListOffsetsTopic(name="orders", partitions=(part,)),))
        assert plane.ask(request, 7).topics[0].partitions[0].error_code == error

    def test_a_log_that_cannot_be_searched(self, plane: DataPlane, monkeypatch: pytest.MonkeyPatch) -> None:
        def fail(_timestamp_ms: int, _find: BatchSearch, *, committed_only: bool) -> None:
            raise BatchError(ErrorCode.UNKNOWN_SERVER_ERROR, "a batch that cannot be unpacked")

        monkeypatch.setattr(plane.log("orders"), "offset_for_timestamp", fail)
        (found,) = self.ask(plane, (0, 5))
        assert found.error_code == ErrorCode.UNKNOWN_SERVER_ERROR

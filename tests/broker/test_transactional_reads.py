"""Fetch, ListOffsets and DeleteRecords where there are transactions."""

from typing import Any

import pytest

from groupcoord.broker.fetch import READ_COMMITTED, READ_UNCOMMITTED
from groupcoord.core.effects import Effect
from groupcoord.protocol.apis.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from groupcoord.protocol.apis.fetch import AbortedTransaction, FetchResponse
from groupcoord.protocol.apis.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from groupcoord.protocol.batches.record_batch import iter_batch_extents, read_header
from groupcoord.protocol.errors import ErrorCode
from tests.broker.data_plane import THEN_MS, DataPlane, batch, fetch_request, reading, wanting
from tests.broker.transactions import end, part, write


@pytest.fixture
def plane() -> DataPlane:
    """Offsets: 0 in no transaction, 1 aborted by 2, 3 in an open one, 4 in none."""
    made = DataPlane()
    made.topic("orders", 2)
    write(made.log("orders"), batch(b"a"), part(0, producer=1), end(producer=1), part(0, producer=2), batch(b"b"))
    return made


def offsets(records: Any) -> list[int]:
    data = bytes(records)
    return [read_header(data, extent.position).base_offset for extent in iter_batch_extents(data)]


class TestFetch:
    def test_who_reads_everything_is_told_what_is_stable(self, plane: DataPlane) -> None:
        data = plane.fetched("orders", 0, isolation_level=READ_UNCOMMITTED)
        assert offsets(data.records) == [0, 1, 2, 3, 4]
        assert (data.high_watermark, data.last_stable_offset, data.aborted_transactions) == (5, 3, None)

    def test_who_reads_what_is_committed_is_told_what_is_not(self, plane: DataPlane) -> None:
        data = plane.fetched("orders", 0, isolation_level=READ_COMMITTED)
        assert offsets(data.records) == [0, 1, 2]
        assert (data.high_watermark, data.last_stable_offset) == (5, 3)
        assert data.aborted_transactions == (AbortedTransaction(producer_id=1, first_offset=1),)

    @pytest.mark.parametrize("offset", [3, 4, 5])
    def test_behind_that_there_is_nothing_for_him(self, plane: DataPlane, offset: int) -> None:
        data = plane.fetched("orders", offset, isolation_level=READ_COMMITTED)
        assert (data.error_code, data.records, data.aborted_transactions) == (0, b"", ())
        assert plane.fetched("orders", 6, isolation_level=READ_COMMITTED).error_code == ErrorCode.OFFSET_OUT_OF_RANGE

    @pytest.mark.parametrize(("replica", "found"), [(-1, [0, 1, 2]), (-2, [0, 1, 2]), (-3, [0, 1, 2, 3, 4])])
    def test_only_consumers_are_held_back(self, plane: DataPlane, replica: int, found: list[int]) -> None:
        data = plane.fetched("orders", 0, isolation_level=READ_COMMITTED, replica_id=replica)
        assert offsets(data.records) == found

    def test_brokers_read_everything(self) -> None:
        plane = DataPlane(brokers=2, node_id=1, default_replication_factor=2)
        plane.broker.topics.create("orders", 1, {}, plane.now_ms, replicas=[(1, 2)])
        write(plane.log("orders"), part(0))
        request = fetch_request(reading("orders", wanting(0)), isolation_level=READ_COMMITTED, replica_id=2)
        ((data,),) = (topic.partitions for topic in plane.ask(request, 12, to=1).responses)
        assert (offsets(data.records), data.aborted_transactions) == ([0], None)


class TestWaiting:
    def send(self, plane: DataPlane, offset: int, isolation_level: int = READ_COMMITTED) -> Any:
        request = fetch_request(reading("orders", wanting(offset)), wait_ms=500, isolation_level=isolation_level)
        return plane.send(request, 12)

    def answered(self, plane: DataPlane, call: Any, effects: list[Effect]) -> list[int] | None:
        plane.later += effects
        response: FetchResponse | None = plane.answer_to(call)
        return None if response is None else offsets(response.responses[0].partitions[0].records)

    def test_a_fetch_of_what_is_committed_waits_for_the_end(self, plane: DataPlane) -> None:
        call = self.send(plane, 3)
        assert plane.answer_to(call) is None
        assert plane.produced("orders", batch(b"c")).base_offset == 5
        assert plane.answer_to(call) is None
        effects = plane.broker.append_marker("orders", 0, end(producer=2, committed=True), plane.now_ms)
        assert self.answered(plane, call, effects) == [3, 4, 5, 6]

    def test_another_one_does_not(self, plane: DataPlane) -> None:
        call = self.send(plane, 5, READ_UNCOMMITTED)
        plane.produced("orders", batch(b"c"))
        assert self.answered(plane, call, []) == [5]

    def test_a_marker_is_worth_an_answer(self, plane: DataPlane) -> None:
        call = self.send(plane, 5, READ_UNCOMMITTED)
        effects = plane.broker.append_marker("orders", 0, end(producer=2), plane.now_ms)
        assert self.answered(plane, call, effects) == [5]

    def test_who_is_behind_the_stable_end_does_not_wait(self, plane: DataPlane) -> None:
        assert self.answered(plane, self.send(plane, 4), []) == []

    def test_an_older_segment_is_read_at_once(self) -> None:
        plane = DataPlane()
        plane.topic("orders")
        write(plane.log("orders"), batch(b"a"))
        plane.log("orders").roll(plane.now_ms)
        write(plane.log("orders"), part(0))
        request = fetch_request(
            reading("orders", wanting(0)), wait_ms=500, min_bytes=5_000, isolation_level=READ_COMMITTED
        )
        assert self.answered(plane, plane.send(request, 12), []) == [0]


class TestListOffsets:
    def ask(self, plane: DataPlane, timestamp: int, isolation_level: int) -> tuple[int, int, int, int]:
        topic = ListOffsetsTopic(
            name="orders", partitions=(ListOffsetsPartition(partition_index=0, timestamp=timestamp),)
        )
        request = ListOffsetsRequest(replica_id=-1, isolation_level=isolation_level, topics=(topic,))
        ((found,),) = (topic.partitions for topic in plane.ask(request, 9).topics)
        return found.error_code, found.timestamp, found.offset, found.leader_epoch

    def test_the_end_is_where_it_is_stable(self, plane: DataPlane) -> None:
        assert self.ask(plane, -1, READ_UNCOMMITTED) == (0, -1, 5, 0)
        assert self.ask(plane, -1, READ_COMMITTED) == (0, -1, 3, 0)
        assert self.ask(plane, -2, READ_COMMITTED) == (0, -1, 0, 0)

    def test_what_is_not_stable_is_not_found(self, plane: DataPlane) -> None:
        write(plane.log("orders"), batch(b"c", at_ms=THEN_MS + 90_000))
        for timestamp in (-3, THEN_MS + 90_000):
            assert self.ask(plane, timestamp, READ_UNCOMMITTED) == (0, THEN_MS + 90_000, 5, 0)
            assert self.ask(plane, timestamp, READ_COMMITTED) == (0, -1, -1, -1)
        assert self.ask(plane, THEN_MS, READ_COMMITTED) == (0, THEN_MS, 0, 0)


class TestDeleteRecords:
    def ask(self, plane: DataPlane, offset: int) -> tuple[int, int]:
        topic = DeleteRecordsTopic(
            name="orders", partitions=(DeleteRecordsPartition(partition_index=0, offset=offset),)
        )
        request = DeleteRecordsRequest(topics=(topic,), timeout_ms=1_000)
        ((result,),) = (topic.partitions for topic in plane.ask(request, 2).topics)
        return result.error_code, result.low_watermark

    @pytest.mark.parametrize(("offset", "start"), [(4, 4), (5, 5), (-1, 5)])
    def test_an_open_transaction_does_not_hold_it_back(self, plane: DataPlane, offset: int, start: int) -> None:
        assert self.ask(plane, offset) == (0, start)
        data = plane.fetched("orders", start, isolation_level=READ_COMMITTED)
        assert (data.log_start_offset, data.last_stable_offset) == (start, start)

    def test_the_end_does(self, plane: DataPlane) -> None:
        assert self.ask(plane, 6) == (ErrorCode.OFFSET_OUT_OF_RANGE, -1)


class TestMarkersOfTheNode:
    def test_they_need_a_partition(self, plane: DataPlane) -> None:
        with pytest.raises(KeyError):
            plane.broker.append_marker("orders", 2, end(), plane.now_ms)

"""What takes long is done aside: with the same answer, and nothing has happened before it is done."""

from collections.abc import Callable
from typing import Any

import pytest

from groupcoord.broker import log_segment, log_validator
from groupcoord.core.background_work import BackgroundWork, run_to_end
from groupcoord.core.effect_collector import HandlerContext
from groupcoord.core.effects import Call
from groupcoord.core.events import AdminAction
from groupcoord.protocol.apis.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from groupcoord.protocol.apis.produce import PartitionProduceResponse
from groupcoord.protocol.batches.compression import Compression
from groupcoord.protocol.batches.record_batch import BatchError, build_batch, read_header, validation_cost
from groupcoord.protocol.batches.records import Record
from groupcoord.protocol.errors import ErrorCode
from tests.broker.data_plane import NOW_MS, THEN_MS, DataPlane, batch, patched, produce_request

COUNT = 1_200


class Later:
    """A ``WorkRunner`` that does nothing until it is told to."""

    def __init__(self, plane: DataPlane) -> None:
        self.plane = plane
        self.waiting: list[Callable[[], None]] = []
        plane.broker.run_work = self

    def __call__(
        self,
        _: HandlerContext,
        call: Call | None,
        work: BackgroundWork[Any],
        then: Callable[[HandlerContext, Any], None],
        /,
    ) -> None:
        def go_on() -> None:
            result = run_to_end(work)
            ctx = HandlerContext(self.plane.now_ms, call or AdminAction("a test"))
            then(ctx, result)
            self.plane.later += ctx.effects

        self.waiting.append(go_on)

    def go_on(self) -> None:
        while self.waiting:
            self.waiting.pop(0)()


@pytest.fixture
def plane() -> DataPlane:
    made = DataPlane()
    made.topic("orders", 3)
    return made


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thousand records take long."""
    monkeypatch.setattr(log_segment, "INLINE_BYTES", 1_000_000)
    monkeypatch.setattr("groupcoord.broker.produce.INLINE_BYTES", 1_000_000)


def large(codec: Compression = Compression.ZSTD, **fields: Any) -> bytes:
    return batch(*[b""] * COUNT, attributes=int(codec), step_ms=1, **fields)


def searching(timestamp_ms: int, *partitions: int) -> ListOffsetsRequest:
    parts = tuple(ListOffsetsPartition(partition_index=index, timestamp=timestamp_ms) for index in partitions)
    return ListOffsetsRequest(replica_id=-1, topics=(ListOffsetsTopic(name="orders", partitions=parts),))


@pytest.mark.parametrize("codec", list(Compression))
def test_a_produce_waits_for_its_checks(plane: DataPlane, codec: Compression) -> None:
    later = Later(plane)
    wrong = patched(large(codec), record_count=COUNT - 1, last_offset_delta=COUNT - 2)
    call = plane.send(produce_request(plane, "orders", {0: large(codec), 1: wrong}, 12, 1), 12)
    assert (plane.answer_to(call), plane.log("orders").log_end_offset) == (None, 0)
    later.go_on()
    (topic,) = plane.answer_to(call).responses
    assert topic.partition_responses == (
        PartitionProduceResponse(index=0, base_offset=0, log_start_offset=0),
        PartitionProduceResponse(index=1, error_code=ErrorCode.INVALID_RECORD, base_offset=-1, log_start_offset=0),
    )
    assert plane.log("orders").log_end_offset == COUNT


def test_what_is_small_does_not_wait(plane: DataPlane) -> None:
    later = Later(plane)
    for codec in Compression:
        assert plane.produced("orders", batch(b"x", attributes=int(codec))).error_code == 0
    assert plane.produced("orders", batch(bytes(20_000))).error_code == 0
    assert plane.produced("orders", patched(batch(b"x"), attributes=5)).error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert plane.produced("orders", large(), acks=7).error_code == ErrorCode.INVALID_REQUIRED_ACKS
    assert later.waiting == []


def test_a_topic_may_go_meanwhile(plane: DataPlane) -> None:
    later = Later(plane)
    call = plane.send(produce_request(plane, "orders", {0: large()}, 12, 1), 12)
    plane.broker.topics.delete("orders")
    later.go_on()
    (topic,) = plane.answer_to(call).responses
    assert topic.partition_responses[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_the_time_of_the_append_is_when_it_is_appended(plane: DataPlane) -> None:
    plane.topic("timed", message_timestamp_type="LogAppendTime", compression_type="gzip")
    later = Later(plane)
    call = plane.send(produce_request(plane, "timed", {0: large()}, 12, 1), 12)
    plane.now_ms += 5_000
    later.go_on()
    (topic,) = plane.answer_to(call).responses
    assert topic.partition_responses[0].log_append_time_ms == NOW_MS + 5_000
    header = read_header(bytes(plane.fetched("timed", 0).records or b""))
    assert (header.max_timestamp_ms, header.compression) == (NOW_MS + 5_000, Compression.GZIP)


@pytest.mark.parametrize("timestamp_ms", [THEN_MS + 7, -3])
def test_a_search_waits_for_what_it_has_to_unpack(plane: DataPlane, timestamp_ms: int) -> None:
    plane.produce("orders", large(), batch(b"x"), large(Compression.GZIP))
    expected = plane.ask(searching(timestamp_ms, 0, 1, 2), 7)
    assert {part.timestamp for topic in expected.topics for part in topic.partitions} >= {
        THEN_MS + 7 if timestamp_ms > 0 else THEN_MS + COUNT - 1
    }
    later = Later(plane)
    call = plane.send(searching(timestamp_ms, 0, 1, 2), 7)
    assert plane.answer_to(call) is None
    later.go_on()
    assert plane.answer_to(call) == expected


def test_a_search_holds_only_so_much_at_a_time(plane: DataPlane, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_segment, "_HELD_BYTES", 1)
    plane.produce("orders", large(), large(at_ms=THEN_MS + 1))
    later = Later(plane)
    call = plane.send(searching(THEN_MS + 7, 0, 1), 7)
    later.waiting.pop(0)()
    assert plane.answer_to(call) is None, "the second batch has its own turn"
    later.go_on()
    (topic,) = plane.answer_to(call).topics
    assert [part.offset for part in topic.partitions] == [7, 6]


def test_what_cannot_be_searched_is_told_afterwards() -> None:
    whole = large()
    broken = patched(whole, record_count=COUNT + 1)
    searches = log_segment.TimestampSearch()
    with pytest.raises(log_segment.SearchDeferredError):
        searches(broken, read_header(broken), THEN_MS * 2, 0)
    run_to_end(searches.work())
    with pytest.raises(Exception, match="beyond the batch") as raised:
        searches(broken, read_header(broken), THEN_MS * 2, 0)
    assert raised.value.__context__ is None


def test_what_cannot_be_unpacked_counts_for_as_much_as_it_could_be() -> None:
    junk = patched(large()[:61] + b"junk", length=53)
    assert validation_cost(junk, read_header(junk)) > 100_000_000


def test_a_producer_is_told_of_so_many_records_and_not_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Deviation (unpacked-size-limit): a few bytes can hold millions of them."""
    monkeypatch.setattr(log_validator, "RECORD_ERRORS", 5)
    plane = DataPlane()
    plane.topic("compacted", cleanup_policy="compact")
    data = build_batch([Record(index, THEN_MS, None, b"x") for index in range(9)])
    answer = plane.produced("compacted", data)
    assert (answer.error_code, len(answer.record_errors)) == (ErrorCode.INVALID_RECORD, 5)


def test_an_error_that_is_kept_holds_nothing_that_was_unpacked(plane: DataPlane) -> None:
    wrong = patched(large(), record_count=COUNT - 1, last_offset_delta=COUNT - 2)
    kept: list[Any] = []
    later = Later(plane)
    plane.broker.run_work = lambda _, __, work, ___: kept.append(run_to_end(work))
    plane.send(produce_request(plane, "orders", {0: wrong}, 12, 1), 12)
    ((problem,),) = [list(each.values()) for each in kept]
    assert isinstance(problem, BatchError)
    assert (problem.__traceback__, problem.__cause__, problem.__context__) == (None, None, None)
    assert later.waiting == []

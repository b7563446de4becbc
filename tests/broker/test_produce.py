import pytest

from groupcoord.core.effects import CloseConnection, NoReply
from groupcoord.protocol.apis.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    TopicProduceData,
)
from groupcoord.protocol.batches.compression import Compression
from groupcoord.protocol.batches.record_batch import records_in
from groupcoord.protocol.errors import ErrorCode
from tests.broker.data_plane import (
    NOW_MS,
    THEN_MS,
    DataPlane,
    batch,
    fetch_request,
    patched,
    produce_request,
    reading,
    wanting,
)

TRANSACTIONAL = batch(b"x", attributes=0x10, producer_id=5, producer_epoch=0, base_sequence=0)


@pytest.fixture
def plane() -> DataPlane:
    made = DataPlane()
    made.topic("orders", 3)
    return made


def failed(index: int, error: ErrorCode, start: int = -1) -> PartitionProduceResponse:
    return PartitionProduceResponse(index=index, error_code=error, base_offset=-1, log_start_offset=start)


@pytest.mark.parametrize("version", [3, 12])
def test_each_partition_gets_its_batch(plane: DataPlane, version: int) -> None:
    plane.produce("orders", batch(b"earlier"))
    (topic,) = plane.produce("orders", batch(b"a", b"b"), batch(b"c"), version=version).responses
    assert (topic.name, topic.topic_id) == ("orders", None)
    assert topic.partition_responses == (
        PartitionProduceResponse(index=0, base_offset=1, log_start_offset=0),
        PartitionProduceResponse(index=1, base_offset=0, log_start_offset=0),
    )
    assert [record.value for record in records_in(bytes(plane.fetched("orders", 1).records or b""))] == [b"a", b"b"]


def test_from_version_13_on_topics_have_ids(plane: DataPlane) -> None:
    (topic,) = plane.produce("orders", batch(b"a"), version=13).responses
    assert topic.topic_id == plane.broker.topics.topic_id("orders")
    assert topic.partition_responses[0].base_offset == 0


@pytest.mark.parametrize("acks", [1, -1])
def test_one_replica_is_all_replicas(plane: DataPlane, acks: int) -> None:
    assert plane.produced("orders", batch(b"a"), acks=acks).base_offset == 0


def test_append_time_is_told() -> None:
    plane = DataPlane()
    plane.topic("orders", message_timestamp_type="LogAppendTime")
    assert plane.produced("orders", batch(b"a")).log_append_time_ms == NOW_MS


def test_a_repeated_batch_gets_its_old_offset(plane: DataPlane) -> None:
    plane.produced("orders", batch(b"earlier"))
    data = batch(b"a", b"b", producer_id=5, producer_epoch=0, base_sequence=0)
    first, again = plane.produced("orders", data), plane.produced("orders", data)
    assert (first.base_offset, first.log_append_time_ms) == (1, -1)
    assert (again.base_offset, again.log_append_time_ms, again.error_code) == (1, THEN_MS, 0)
    assert plane.log("orders").log_end_offset == 3


class TestRefusing:
    """The partitions fare independently."""

    @pytest.mark.parametrize(
        ("data", "error", "start"),
        [
            (b"", ErrorCode.INVALID_RECORD, -1),
            (batch(b"a") + batch(b"b"), ErrorCode.INVALID_RECORD, -1),
            (batch(b"a") + b"\0" * 20, ErrorCode.CORRUPT_MESSAGE, -1),
            (patched(batch(b"a"), crc=1), ErrorCode.CORRUPT_MESSAGE, -1),
            (batch(bytes(2_000)), ErrorCode.MESSAGE_TOO_LARGE, -1),
            (patched(batch(b"a"), record_count=2), ErrorCode.INVALID_RECORD, 0),
            (patched(batch(b"a"), attributes=7), ErrorCode.UNKNOWN_SERVER_ERROR, 0),
            (patched(batch(b"a"), producer_id=4), ErrorCode.INVALID_RECORD, 0),
            (batch(b"a")[:8] + b"\0\0\0\x30" + b"\0\0\0\0\x02" + bytes(43), ErrorCode.CORRUPT_MESSAGE, -1),
        ],
    )
    def test_a_bad_batch_leaves_the_others_alone(self, data: bytes, error: ErrorCode, start: int) -> None:
        plane = DataPlane()
        plane.topic("orders", 2, max_message_bytes=1_500)
        (topic,) = plane.produce("orders", data, batch(b"ok")).responses
        outcomes = {outcome.index: outcome for outcome in topic.partition_responses}
        assert outcomes[0] == failed(0, error, start)
        assert outcomes[1] == PartitionProduceResponse(index=1, base_offset=0, log_start_offset=0)
        assert plane.log("orders").log_end_offset == 0

    def test_zstandard_before_version_7(self, plane: DataPlane) -> None:
        data = batch(b"a", attributes=Compression.ZSTD)
        assert plane.produced("orders", data, version=6) == failed(0, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
        assert plane.produced("orders", data, version=7).error_code == 0

    def test_a_batch_larger_than_a_segment(self) -> None:
        plane = DataPlane()
        plane.topic("orders", segment_bytes=1 << 20, max_message_bytes=1 << 22)
        assert plane.produced("orders", batch(bytes(1 << 20))) == failed(0, ErrorCode.RECORD_LIST_TOO_LARGE)

    def test_the_log_start_is_told_where_kafka_tells_it(self, plane: DataPlane) -> None:
        plane.produced("orders", batch(b"a", b"b"))
        plane.log("orders").delete_records(1)
        outcome = plane.produced("orders", patched(batch(b"a"), attributes=0x20))
        assert outcome == failed(0, ErrorCode.INVALID_RECORD, start=1)

    def test_records_that_are_refused_are_named(self) -> None:
        plane = DataPlane()
        plane.topic("state", cleanup_policy="compact")
        outcome = plane.produced("state", batch(b"a", b"b", key=None))
        assert (outcome.error_code, outcome.log_start_offset) == (ErrorCode.INVALID_RECORD, 0)
        assert (outcome.error_message or "").startswith("One or more records have been rejected due to 2 record errors")
        assert [error.batch_index for error in outcome.record_errors] == [0, 1]
        text = "Compacted topic cannot accept message without key in topic partition state-0"
        assert outcome.record_errors[0].batch_index_error_message == text

    def test_an_unknown_topic(self, plane: DataPlane) -> None:
        assert plane.produced("nothing", batch(b"a")) == failed(0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        assert plane.produced("nothing", batch(b"a"), version=13) == failed(0, ErrorCode.UNKNOWN_TOPIC_ID)

    @pytest.mark.parametrize("version", [12, 13])
    @pytest.mark.parametrize("partition", [3, -1])
    def test_an_unknown_partition(self, plane: DataPlane, version: int, partition: int) -> None:
        outcome = plane.produced("orders", batch(b"a"), partition, version=version)
        assert outcome == failed(partition, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)

    def test_what_was_tried_is_answered_first(self, plane: DataPlane) -> None:
        data = (
            PartitionProduceData(index=0, records=b""),
            PartitionProduceData(index=9, records=batch(b"a")),
            PartitionProduceData(index=1, records=batch(b"a")),
        )
        topic_data = (TopicProduceData(name="orders", partition_data=data),)
        response = plane.ask(ProduceRequest(acks=1, timeout_ms=0, topic_data=topic_data), 9)
        assert [outcome.index for outcome in response.responses[0].partition_responses] == [1, 9, 0]

    def test_a_partition_that_is_named_twice_gets_the_last_batch(self, plane: DataPlane) -> None:
        first = TopicProduceData(name="orders", partition_data=(PartitionProduceData(index=0, records=batch(b"a")),))
        second = TopicProduceData(name="orders", partition_data=(PartitionProduceData(index=0, records=batch(b"b")),))
        response = plane.ask(ProduceRequest(acks=1, timeout_ms=0, topic_data=(first, second)), 9)
        assert len(response.responses) == len(response.responses[0].partition_responses) == 1
        assert [record.value for record in records_in(bytes(plane.fetched("orders", 0).records or b""))] == [b"b"]

    @pytest.mark.parametrize("acks", [2, -2, 5])
    def test_any_other_number_of_acknowledgements(self, plane: DataPlane, acks: int) -> None:
        assert plane.produced("orders", batch(b"a"), acks=acks) == failed(0, ErrorCode.INVALID_REQUIRED_ACKS)
        assert plane.produced("nothing", batch(b"a"), acks=acks).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    def test_internal_topics_are_not_for_clients(self, plane: DataPlane) -> None:
        plane.topic("__consumer_offsets", cleanup_policy="compact")
        outcome = plane.produced("__consumer_offsets", patched(batch(b"a"), crc=1))
        assert outcome == failed(0, ErrorCode.INVALID_TOPIC_EXCEPTION)
        assert plane.produced("__consumer_offsets", batch(b"a"), client_id="__admin_client").base_offset == 0


class TestRefusingAll:
    """One thing that is wrong with the whole request."""

    def test_a_transaction_needs_an_id(self, plane: DataPlane) -> None:
        (topic,) = plane.produce("orders", batch(b"a"), TRANSACTIONAL).responses
        error = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        assert topic.partition_responses == (failed(0, error), failed(1, error))
        assert plane.log("orders").log_end_offset == 0

    def test_a_transactional_id_alone_does_no_harm(self, plane: DataPlane) -> None:
        data = (PartitionProduceData(index=0, records=batch(b"a")),)
        topic_data = (TopicProduceData(name="orders", partition_data=data),)
        request = ProduceRequest(transactional_id="t", acks=1, timeout_ms=0, topic_data=topic_data)
        assert plane.ask(request, 9).responses[0].partition_responses[0].error_code == 0

    def test_a_batch_that_is_none_spoils_everything(self, plane: DataPlane) -> None:
        (topic,) = plane.produce("orders", batch(b"a"), patched(batch(b"a"), magic=9)).responses
        assert [outcome.error_code for outcome in topic.partition_responses] == [ErrorCode.CORRUPT_MESSAGE] * 2
        assert {outcome.error_message for outcome in topic.partition_responses} == {"Invalid magic found in record: 9"}

    @pytest.mark.parametrize("acks", [-1, 0, 1])
    def test_over_no_records_for_a_topic_that_there_is_it_falls_silent(self, plane: DataPlane, acks: int) -> None:
        """Kafka fails over them, and then over its own error."""
        call = plane.send(produce_request(plane, "orders", {0: batch(b"a"), 1: None}, acks=acks), 12)
        assert plane.answer_to(call) is None
        assert plane.log("orders").log_end_offset == 0

    @pytest.mark.parametrize("refused", [TRANSACTIONAL, patched(batch(b"a"), magic=9), batch(b"a")[:40]])
    def test_so_it_does_over_no_records_at_all_when_the_request_is_refused(
        self, plane: DataPlane, refused: bytes
    ) -> None:
        if len(refused) == 40:
            refused = refused[:8] + (28).to_bytes(4, "big") + refused[12:]
        call = plane.send(produce_request(plane, "orders", {0: refused, 9: None}), 12)
        assert plane.answer_to(call) is None

    @pytest.mark.parametrize(("size", "error"), [(26, -1), (50, -1), (51, 2), (60, 2)])
    def test_the_shortest_batches_spoil_everything(self, plane: DataPlane, size: int, error: int) -> None:
        """Kafka reads beyond them; those that reach to the producer's id are only corrupt."""
        short = batch(b"x" * 100)[:size]
        short = short[:8] + (size - 12).to_bytes(4, "big") + short[12:]
        (topic,) = plane.produce("orders", batch(b"a"), short).responses
        assert [outcome.error_code for outcome in topic.partition_responses] == [-1 if error == -1 else 0, error]
        assert plane.log("orders").log_end_offset == (0 if error == -1 else 1)

    def test_a_short_batch_may_be_transactional(self, plane: DataPlane) -> None:
        short = TRANSACTIONAL[:40]
        outcome = plane.produced("orders", short[:8] + (28).to_bytes(4, "big") + short[12:])
        assert outcome.error_code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED

    @pytest.mark.parametrize(("version", "spoiled"), [(6, True), (7, False)])
    def test_a_compression_that_is_none_spoils_everything_in_old_versions(
        self, plane: DataPlane, version: int, spoiled: bool
    ) -> None:
        odd = patched(batch(b"b"), attributes=6)
        (topic,) = plane.produce("orders", batch(b"a"), odd, version=version).responses
        assert [outcome.error_code for outcome in topic.partition_responses] == [-1 if spoiled else 0, -1]

    def test_but_not_for_one_that_is_unknown(self, plane: DataPlane) -> None:
        ((outcome,),) = (answer.partition_responses for answer in plane.produce("nothing", None).responses)
        assert outcome.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


class TestWithoutAcknowledgement:
    """acks=0: the producer does not listen."""

    def test_there_is_no_answer(self, plane: DataPlane) -> None:
        assert isinstance(plane.produce("orders", batch(b"a"), acks=0), NoReply)
        assert plane.log("orders").log_end_offset == 1

    def test_a_failure_closes_the_connection(self, plane: DataPlane) -> None:
        effect = plane.produce("orders", batch(b"a"), patched(batch(b"b"), crc=1), acks=0)
        assert isinstance(effect, CloseConnection)
        assert effect.reason == "a produce with acks=0 failed: orders-1: CORRUPT_MESSAGE"
        assert plane.log("orders").log_end_offset == 1

    def test_so_does_the_refusal_of_the_whole_request(self, plane: DataPlane) -> None:
        assert isinstance(plane.produce("orders", TRANSACTIONAL, acks=0), CloseConnection)


class TestWaking:
    """Fetches that wait are answered after the producer."""

    def test_a_produce_wakes_a_fetch(self, plane: DataPlane) -> None:
        request = fetch_request(reading("orders", wanting(0), wanting(0, 1)), wait_ms=500)
        waiting = plane.send(request, 12, connection=2)
        assert plane.answer_to(waiting) is None
        plane.send(
            ProduceRequest(
                acks=1,
                timeout_ms=0,
                topic_data=(
                    TopicProduceData(
                        name="orders", partition_data=(PartitionProduceData(index=1, records=batch(b"a")),)
                    ),
                ),
            ),
            9,
        )
        assert [effect.call.connection_id for effect in plane.later] == [1, 2]  # type: ignore[union-attr]
        (topic,) = plane.answer_to(waiting).responses
        assert [len(data.records or b"") for data in topic.partitions] == [0, len(batch(b"a"))]

    def test_a_repetition_does_not(self, plane: DataPlane) -> None:
        data = batch(b"a", producer_id=5, producer_epoch=0, base_sequence=0)
        plane.produced("orders", data)
        waiting = plane.send(fetch_request(reading("orders", wanting(1)), wait_ms=500), 12, connection=2)
        plane.produced("orders", data)
        assert plane.answer_to(waiting) is None

import uuid
from typing import Any

import pytest

from groupcoord.broker.fetch import COPIED_BYTES
from groupcoord.broker.log_segment import RecordSlice
from groupcoord.core.effect_collector import HandlerContext
from groupcoord.core.events import AdminAction
from groupcoord.protocol.apis.fetch import (
    EpochEndOffset,
    FetchResponse,
    ForgottenTopic,
    LeaderIdAndEpoch,
    PartitionData,
    ReplicaState,
)
from groupcoord.protocol.batches.record_batch import records_in
from groupcoord.protocol.errors import ErrorCode
from tests.broker.data_plane import NOW_MS, DataPlane, batch, fetch_request, reading, wanting

SIZE = len(batch(bytes(100)))


@pytest.fixture
def plane() -> DataPlane:
    """A topic ``orders``: five batches in partition 0, two in partition 1, none in partition 2."""
    made = DataPlane()
    made.topic("orders", 3)
    for partition, count in ((0, 5), (1, 2)):
        for _ in range(count):
            made.produced("orders", batch(bytes(100)), partition)
    return made


def partitions(response: FetchResponse) -> list[PartitionData]:
    return [data for topic in response.responses for data in topic.partitions]


def errors(response: FetchResponse) -> list[tuple[int, int]]:
    return [(data.partition_index, data.error_code) for data in partitions(response)]


def offsets(data: PartitionData) -> list[int]:
    return [record.offset for record in records_in(bytes(data.records or b""))]


class TestReading:
    @pytest.mark.parametrize("version", [4, 12])
    def test_records_come_with_where_the_log_begins_and_ends(self, plane: DataPlane, version: int) -> None:
        plane.log("orders").delete_records(1)
        data = plane.fetched("orders", 3, version=version)
        assert offsets(data) == [3, 4]
        assert (data.high_watermark, data.last_stable_offset, data.log_start_offset) == (5, 5, 1)
        assert (data.error_code, data.preferred_read_replica, data.aborted_transactions) == (0, -1, None)

    def test_a_long_answer_says_where_its_records_lie(self, plane: DataPlane) -> None:
        for partition in (0, 1):
            plane.produced("orders", batch(bytes(COPIED_BYTES // 2 - 500)), partition)
        short = plane.fetch(reading("orders", wanting(5), wanting(2, 1)))
        long = plane.fetch(reading("orders", wanting(0), wanting(0, 1), wanting(0, 2)))
        assert [type(data.records) for data in partitions(short)] == [bytes, bytes]
        assert [type(data.records) for data in partitions(long)] == [RecordSlice, RecordSlice, bytes]
        assert [offsets(data) for data in partitions(long)] == [[0, 1, 2, 3, 4, 5], [0, 1, 2], []]

    def test_topics_may_be_named_by_id(self, plane: DataPlane) -> None:
        topic_id = plane.broker.topics.topic_id("orders")
        response = plane.fetch(reading(topic_id, wanting(4)), version=13)
        assert [topic.topic_id for topic in response.responses] == [topic_id]
        assert offsets(partitions(response)[0]) == [4]

    def test_topics_are_answered_in_the_order_asked(self, plane: DataPlane) -> None:
        plane.topic("other")
        response = plane.fetch(
            reading("orders", wanting(0), wanting(0, 2)), reading("other", wanting(0)), reading("orders", wanting(0, 1))
        )
        assert [(topic.topic, len(topic.partitions)) for topic in response.responses] == [
            ("orders", 2),
            ("other", 1),
            ("orders", 1),
        ]

    def test_at_the_end_there_is_nothing(self, plane: DataPlane) -> None:
        data = plane.fetched("orders", 5)
        assert (data.error_code, data.records, data.high_watermark) == (0, b"", 5)

    def test_read_committed_names_no_aborted_transactions(self, plane: DataPlane) -> None:
        assert plane.fetched("orders", 0, isolation_level=1).aborted_transactions == ()
        assert plane.fetched("orders", 5, isolation_level=1).aborted_transactions == ()

    @pytest.mark.parametrize(("replica", "aborted"), [(-2, ()), (-3, None), (-4, ())])
    def test_debuggers_are_consumers(self, plane: DataPlane, replica: int, aborted: tuple[()] | None) -> None:
        assert plane.fetched("orders", 0, isolation_level=1, replica_id=replica).aborted_transactions == aborted

    def test_a_partition_that_is_named_twice_is_read_once(self, plane: DataPlane) -> None:
        response = plane.fetch(reading("orders", wanting(0), wanting(0, 1), wanting(4)))
        assert [(data.partition_index, offsets(data)[0]) for data in partitions(response)] == [(0, 4), (1, 0)]

    def test_nothing_wanted_is_answered_with_nothing(self, plane: DataPlane) -> None:
        assert plane.fetch() == FetchResponse(responses=())


class TestLimits:
    def lengths(self, plane: DataPlane, *limits: int, **fields: int) -> list[int]:
        wanted = [wanting(0, index, limit) for index, limit in enumerate(limits)]
        return [len(data.records or b"") for data in partitions(plane.fetch(reading("orders", *wanted), **fields))]

    def test_the_limit_of_a_partition(self, plane: DataPlane) -> None:
        assert self.lengths(plane, 2 * SIZE, SIZE + 9) == [2 * SIZE, SIZE + 9]

    def test_the_limit_of_all(self, plane: DataPlane) -> None:
        assert self.lengths(plane, 3 * SIZE, 3 * SIZE, max_bytes=4 * SIZE) == [3 * SIZE, SIZE]

    def test_the_first_batch_comes_whole(self, plane: DataPlane) -> None:
        assert self.lengths(plane, 1, 1) == [SIZE, 0]
        assert self.lengths(plane, 1, 1, max_bytes=0) == [SIZE, 0]

    def test_of_the_first_partition_that_has_one(self, plane: DataPlane) -> None:
        response = plane.fetch(reading("orders", wanting(0, 2), wanting(0, 1, 1)))
        assert [len(data.records or b"") for data in partitions(response)] == [0, SIZE]

    def test_the_brokers_own_limit(self) -> None:
        plane = DataPlane(fetch_max_bytes=1024)
        plane.topic("orders")
        for _ in range(3):
            plane.produced("orders", batch(bytes(500)))
        assert len(plane.fetched("orders", 0).records or b"") == 1024

    def test_a_batch_that_is_cut_short_has_no_list_of_transactions(self, plane: DataPlane) -> None:
        response = plane.fetch(reading("orders", wanting(0, 0, 1), wanting(0, 1, 1)), isolation_level=1)
        assert [data.aborted_transactions for data in partitions(response)] == [(), None]

    def test_a_negative_limit_fails_where_there_is_something_to_read(self, plane: DataPlane) -> None:
        response = plane.fetch(reading("orders", wanting(0, 0, -1), wanting(0, 2, -1)))
        assert errors(response) == [(0, ErrorCode.UNKNOWN_SERVER_ERROR), (2, 0)]


class TestRefusing:
    @pytest.mark.parametrize("offset", [-1, 6])
    def test_an_offset_outside_the_log(self, plane: DataPlane, offset: int) -> None:
        data = plane.fetched("orders", offset)
        assert (data.error_code, data.high_watermark, data.last_stable_offset, data.log_start_offset) == (
            ErrorCode.OFFSET_OUT_OF_RANGE, -1, -1, -1,
        )  # fmt: skip
        assert (data.records, data.aborted_transactions) == (b"", None)

    def test_an_unknown_topic_or_partition_is_reported_last(self, plane: DataPlane) -> None:
        response = plane.fetch(
            reading("nothing", wanting(0)), reading("orders", wanting(0, 9), wanting(0), wanting(0, -1))
        )
        unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert errors(response) == [(0, 0), (0, unknown), (9, unknown), (-1, unknown)]
        assert partitions(response)[1].aborted_transactions == ()

    @pytest.mark.parametrize("topic_id", [uuid.UUID(int=999), None])
    def test_an_unknown_id(self, plane: DataPlane, topic_id: uuid.UUID | None) -> None:
        response = plane.fetch(reading(topic_id, wanting(0)), version=13)
        assert errors(response) == [(0, ErrorCode.UNKNOWN_TOPIC_ID)]
        assert response.responses[0].topic_id == topic_id

    @pytest.mark.parametrize(("epoch", "error"), [(-1, 0), (0, 0), (1, ErrorCode.UNKNOWN_LEADER_EPOCH), (-2, 0)])
    def test_a_leader_that_is_not_yet(self, plane: DataPlane, epoch: int, error: int) -> None:
        response = plane.fetch(reading("orders", wanting(0, current_leader_epoch=epoch)))
        assert errors(response) == [(0, error)]

    @pytest.mark.parametrize(
        ("offset", "epoch", "expected"),
        [
            (3, 0, 0),
            (5, 0, 0),
            (3, 1, ErrorCode.OFFSET_OUT_OF_RANGE),
            (-1, 0, ErrorCode.OFFSET_OUT_OF_RANGE),
            (3, -2, 0),
        ],
    )
    def test_the_epoch_of_what_was_read_before(self, plane: DataPlane, offset: int, epoch: int, expected: int) -> None:
        response = plane.fetch(reading("orders", wanting(offset, last_fetched_epoch=epoch)))
        assert errors(response) == [(0, expected)]

    def test_a_history_that_parts_from_the_logs(self, plane: DataPlane) -> None:
        (data,) = partitions(plane.fetch(reading("orders", wanting(9, last_fetched_epoch=0)), isolation_level=1))
        assert (data.error_code, data.diverging_epoch) == (0, EpochEndOffset(epoch=0, end_offset=5))
        assert (data.records, data.high_watermark, data.aborted_transactions) == (b"", 5, None)

    @pytest.mark.parametrize(
        "who", [{"replica_id": 4}, {"replica_state": ReplicaState(replica_id=4)}, {"replica_id": 1}]
    )
    def test_a_broker_that_is_no_replica(self, plane: DataPlane, who: dict[str, Any]) -> None:
        response = plane.fetch(reading("orders", wanting(0), wanting(0, 1, current_leader_epoch=0)), **who)
        assert errors(response) == [(0, ErrorCode.NOT_LEADER_OR_FOLLOWER), (1, ErrorCode.UNKNOWN_LEADER_EPOCH)]
        assert response.node_endpoints == ()

    def test_from_version_16_on_it_is_told_who_leads(self, plane: DataPlane) -> None:
        topic_id = plane.broker.topics.topic_id("orders")
        response = plane.fetch(reading(topic_id, wanting(0)), version=16, replica_state=ReplicaState(replica_id=4))
        (data,) = partitions(response)
        assert data.current_leader == LeaderIdAndEpoch(leader_id=1, leader_epoch=0)
        assert response.node_endpoints == ()

    @pytest.mark.parametrize(("version", "reported"), [(6, [(0, -1)]), (12, [(0, -1)]), (13, [])])
    def test_an_unknown_isolation_level(self, plane: DataPlane, version: int, reported: list[tuple[int, int]]) -> None:
        topic: Any = plane.broker.topics.topic_id("orders") if version >= 13 else "orders"
        response = plane.fetch(reading(topic, wanting(0)), version=version, isolation_level=2)
        assert (response.error_code, errors(response)) == (ErrorCode.UNKNOWN_SERVER_ERROR, reported)

    def test_which_nobody_notices_when_there_is_nothing_to_read(self, plane: DataPlane) -> None:
        response = plane.fetch(reading("nothing", wanting(0)), isolation_level=2)
        assert (response.error_code, errors(response)) == (0, [(0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)])


class TestWaiting:
    def test_a_fetch_waits_for_the_first_byte(self, plane: DataPlane) -> None:
        call = plane.send(fetch_request(reading("orders", wanting(5)), wait_ms=500), 12)
        plane.wait(499)
        assert plane.answer_to(call) is None
        plane.wait(1)
        assert errors(plane.answer_to(call)) == [(0, 0)]
        assert len(plane.broker.fetch_purgatory) == 0

    def test_a_fetch_waits_for_as_many_bytes_as_it_wants(self, plane: DataPlane) -> None:
        call = plane.send(
            fetch_request(reading("orders", wanting(4), wanting(0, 2)), wait_ms=500, min_bytes=3 * SIZE), 12
        )
        plane.produced("orders", batch(bytes(100)))
        assert plane.answer_to(call) is None
        plane.produced("orders", batch(bytes(100)), 2)
        assert [offsets(data) for data in partitions(plane.answer_to(call))] == [[4, 5], [0]]

    def test_a_fetch_that_waits_holds_no_records(self, plane: DataPlane) -> None:
        plane.send(fetch_request(reading("orders", wanting(0)), wait_ms=500, min_bytes=1 << 20), 12)
        (parked,) = plane.broker.fetch_purgatory._delayed.values()
        assert [(watched.start, watched.log) for watched in parked.watched] == [((0, 0, 0), plane.log("orders"))]

    def test_what_it_got_meanwhile_is_answered_when_the_time_is_up(self, plane: DataPlane) -> None:
        call = plane.send(fetch_request(reading("orders", wanting(4)), wait_ms=500, min_bytes=1 << 20), 12)
        plane.wait(500)
        assert offsets(partitions(plane.answer_to(call))[0]) == [4]

    @pytest.mark.parametrize(("wait_ms", "min_bytes"), [(0, 1), (-1, 1), (500, 0), (500, -1)])
    def test_some_do_not_want_to_wait(self, plane: DataPlane, wait_ms: int, min_bytes: int) -> None:
        request = fetch_request(reading("orders", wanting(5)), wait_ms=wait_ms, min_bytes=min_bytes)
        assert errors(plane.ask(request, 12)) == [(0, 0)]

    def test_nobody_waits_for_more_than_the_limit(self, plane: DataPlane) -> None:
        request = fetch_request(reading("orders", wanting(0)), wait_ms=500, min_bytes=1 << 20, max_bytes=SIZE)
        assert offsets(partitions(plane.ask(request, 12))[0]) == [0]

    def test_who_is_in_an_older_segment_does_not_wait(self) -> None:
        plane = DataPlane()
        plane.topic("orders", segment_bytes=1 << 20, max_message_bytes=1 << 20)
        for _ in range(3):
            plane.produced("orders", batch(bytes(600_000)))
        request = fetch_request(reading("orders", wanting(0, max_bytes=1 << 30)), wait_ms=500, min_bytes=1 << 25)
        assert offsets(partitions(plane.ask(request, 12))[0]) == [0]

    def test_errors_are_answered_at_once(self, plane: DataPlane) -> None:
        request = fetch_request(reading("orders", wanting(5), wanting(77, 1)), wait_ms=500)
        assert errors(plane.ask(request, 12)) == [(0, 0), (1, ErrorCode.OFFSET_OUT_OF_RANGE)]
        request = fetch_request(reading("orders", wanting(9, last_fetched_epoch=0), wanting(0, 2)), wait_ms=500)
        assert errors(plane.ask(request, 12)) == [(0, 0), (2, 0)]

    def test_but_not_topics_that_do_not_exist(self, plane: DataPlane) -> None:
        request = fetch_request(reading("orders", wanting(5)), reading("nothing", wanting(0)), wait_ms=500)
        call = plane.send(request, 12)
        plane.wait(499)
        assert plane.answer_to(call) is None
        plane.wait(1)
        assert errors(plane.answer_to(call)) == [(0, 0), (0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]

    def test_unless_there_is_no_other(self, plane: DataPlane) -> None:
        request = fetch_request(reading("nothing", wanting(0)), wait_ms=500)
        assert errors(plane.ask(request, 12)) == [(0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]

    @pytest.mark.parametrize("version", [12, 13])
    def test_a_topic_that_goes_is_told(self, plane: DataPlane, version: int) -> None:
        topic: Any = plane.broker.topics.topic_id("orders") if version >= 13 else "orders"
        request = fetch_request(reading(topic, wanting(5), wanting(0, 2)), wait_ms=500)
        call = plane.send(request, version)
        ctx = HandlerContext(NOW_MS, AdminAction("a test"))
        plane.broker.topics_deleted(ctx, [plane.broker.topics.delete("orders")])
        plane.later += ctx.effects
        unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert errors(plane.answer_to(call)) == [(0, unknown), (2, unknown)]

    def test_records_that_go_are_told_when_the_time_is_up(self, plane: DataPlane) -> None:
        call = plane.send(fetch_request(reading("orders", wanting(2)), wait_ms=500, min_bytes=1 << 20), 12)
        plane.log("orders").delete_records(3)
        plane.wait(500)
        assert errors(plane.answer_to(call)) == [(0, ErrorCode.OFFSET_OUT_OF_RANGE)]


class TestWhatIsUnknown:
    """In what order it is told, and where Kafka fails over it."""

    def test_a_consumer_is_told_of_unknown_ids_before_unknown_partitions(self, plane: DataPlane) -> None:
        known, unknown = plane.broker.topics.topic_id("orders"), uuid.UUID(int=999)
        asked = (reading(known, wanting(0, 7), wanting(0)), reading(unknown, wanting(0)))
        response = plane.fetch(*asked, version=13)
        assert [topic.topic_id for topic in response.responses] == [known, unknown, known]
        assert errors(response) == [
            (0, 0),
            (0, ErrorCode.UNKNOWN_TOPIC_ID),
            (7, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ]
        response = plane.fetch(*asked, version=13, replica_id=4)
        assert [index for index, _ in errors(response)] == [0, 7, 0]

    def test_nothing_may_follow_a_topic_without_an_id(self, plane: DataPlane) -> None:
        known = plane.broker.topics.topic_id("orders")
        for last in (reading(None, wanting(0, 1)), reading(uuid.UUID(int=999), wanting(0))):
            response = plane.fetch(reading(None, wanting(0)), last, version=13)
            assert response == FetchResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR, responses=())
        # What is there is told first, so that it does not follow.
        response = plane.fetch(reading(None, wanting(0)), reading(known, wanting(0)), version=13)
        assert errors(response) == [(0, 0), (0, ErrorCode.UNKNOWN_TOPIC_ID)]

    def test_a_fetch_that_waited_is_then_never_answered(self, plane: DataPlane) -> None:
        known = plane.broker.topics.topic_id("orders")
        nameless = (reading(None, wanting(0)), reading(None, wanting(0, 1)))
        call = plane.send(fetch_request(reading(known, wanting(0, 2)), *nameless, wait_ms=500), 13)
        plane.wait(500)
        assert plane.answer_to(call) is None

    @pytest.mark.parametrize(("version", "named"), [(12, 1), (13, 0)])
    def test_a_session_id_that_is_of_no_part_of_the_cache(self, plane: DataPlane, version: int, named: int) -> None:
        topic: Any = plane.broker.topics.topic_id("orders") if version >= 13 else "orders"
        response = plane.fetch(reading(topic, wanting(0)), version=version, session_id=2**31 - 1, session_epoch=1)
        assert (response.error_code, len(response.responses)) == (ErrorCode.UNKNOWN_SERVER_ERROR, named)


class TestSessions:
    def start(self, plane: DataPlane, *wanted: int, version: int = 12) -> int:
        topic: Any = plane.broker.topics.topic_id("orders") if version >= 13 else "orders"
        request = reading(topic, *(wanting(0, index) for index in wanted))
        return plane.fetch(request, version=version, session_epoch=0).session_id

    def test_a_session_says_only_what_is_new(self, plane: DataPlane) -> None:
        session = self.start(plane, 0, 1, 2)
        response = plane.fetch(reading("orders", wanting(5), wanting(2, 1)), session_id=session, session_epoch=1)
        assert response == FetchResponse(session_id=session, responses=())
        plane.produced("orders", batch(b"new"), 2)
        response = plane.fetch(session_id=session, session_epoch=2)
        assert [(data.partition_index, offsets(data)) for data in partitions(response)] == [(2, [0])]

    def test_an_older_version_has_no_place_for_where_histories_part(self, plane: DataPlane) -> None:
        request = reading("orders", wanting(9, last_fetched_epoch=0), wanting(0, 1))
        session = plane.fetch(request, version=12, session_epoch=0).session_id
        response = plane.fetch(reading("orders", wanting(0, 1)), version=11, session_id=session, session_epoch=1)
        assert (response.error_code, response.session_id) == (ErrorCode.UNSUPPORTED_VERSION, session)
        assert errors(response) == [(1, ErrorCode.UNSUPPORTED_VERSION)]

    def test_a_session_forgets_what_it_is_told_to(self, plane: DataPlane) -> None:
        for version in (12, 13):
            session = self.start(plane, 0, 1, version=version)
            topic_id = plane.broker.topics.topic_id("orders") if version >= 13 else None
            gone = ForgottenTopic(topic="" if topic_id else "orders", topic_id=topic_id, partitions=(0, 7))
            response = plane.fetch(version=version, session_id=session, session_epoch=1, forgotten_topics_data=(gone,))
            assert [data.partition_index for data in partitions(response)] == [1]

    def test_a_session_that_is_not_there(self, plane: DataPlane) -> None:
        response = plane.fetch(reading("orders", wanting(0)), session_id=5, session_epoch=1)
        assert response == FetchResponse(error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND, responses=())

    def test_a_session_waits_for_all_it_reads(self, plane: DataPlane) -> None:
        session = self.start(plane, 2)
        request = fetch_request(wait_ms=500, session_id=session, session_epoch=1)
        call = plane.send(request, 12, connection=2)
        assert plane.answer_to(call) is None
        plane.produced("orders", batch(b"new"), 2)
        response = plane.answer_to(call)
        assert (response.session_id, [offsets(data) for data in partitions(response)]) == (session, [[0]])

    def test_a_request_that_was_overtaken_while_it_waited(self, plane: DataPlane) -> None:
        session = self.start(plane, 2)
        slow = plane.send(fetch_request(wait_ms=500, session_id=session, session_epoch=1), 12, connection=2)
        plane.fetch(session_id=session, session_epoch=2)
        plane.wait(500)
        response = plane.answer_to(slow)
        assert (response.error_code, response.session_id) == (ErrorCode.INVALID_FETCH_SESSION_EPOCH, session)

    def test_a_topic_of_the_same_name_is_not_the_same_topic(self, plane: DataPlane) -> None:
        session = self.start(plane, 0, version=13)
        plane.broker.topics.delete("orders")
        response = plane.fetch(version=13, session_id=session, session_epoch=1)
        assert errors(response) == [(0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]
        plane.topic("orders")
        response = plane.fetch(version=13, session_id=session, session_epoch=2)
        assert errors(response) == [(0, ErrorCode.INCONSISTENT_TOPIC_ID)]

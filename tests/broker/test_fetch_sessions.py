import uuid

import pytest

from groupcoord.broker.fetch_sessions import (
    EVICTION_MS,
    Answers,
    FetchContext,
    FetchSessions,
    NoSuchShardError,
    SessionOwner,
    TopicIdPartition,
    Wanted,
    next_epoch,
)
from groupcoord.protocol.apis.fetch import EpochEndOffset, FetchRequest, PartitionData
from groupcoord.protocol.errors import ErrorCode
from tests.broker.data_plane import NOW_MS, wanting

ORDERS = uuid.UUID(int=7)


def sessions(slots: int = 1000, ids: tuple[int, ...] = tuple(range(101, 200)), shards: int = 1) -> FetchSessions:
    left = iter(ids)
    return FetchSessions(slots, lambda: next(left), shards)


def want(*partitions: int, offset: int = 0, topic: str = "orders") -> Wanted:
    return {TopicIdPartition(None, topic, index): wanting(offset, index) for index in partitions}


def answer(
    index: int, *, high_watermark: int = 0, error: int = 0, records: bytes = b"", start: int = 0
) -> PartitionData:
    return PartitionData(
        partition_index=index, error_code=error, high_watermark=high_watermark, log_start_offset=start,
        aborted_transactions=None, records=records,
    )  # fmt: skip


def answers(wanted: Wanted, **fields: int) -> Answers:
    return {fetched: answer(fetched.partition, **fields) for fetched in wanted}  # type: ignore[arg-type]


def opened(
    cache: FetchSessions,
    session_id: int,
    epoch: int,
    wanted: Wanted | None = None,
    forgotten: tuple[TopicIdPartition, ...] = (),
    now_ms: int = NOW_MS,
    *,
    by_id: bool = False,
    is_broker: bool = False,
) -> FetchContext:
    request = FetchRequest(max_wait_ms=0, min_bytes=0, topics=(), session_id=session_id, session_epoch=epoch)
    return cache.open(request, wanted or {}, forgotten, now_ms, SessionOwner(by_id, is_broker=is_broker))


def started(cache: FetchSessions, *partitions: int, now_ms: int = NOW_MS, is_broker: bool = False) -> int:
    """The id of a new session over these partitions of orders."""
    wanted = want(*partitions)
    context = opened(cache, 0, 0, wanted, now_ms=now_ms, is_broker=is_broker)
    error, session_id, sent = context.conclude(answers(wanted), now_ms)
    assert (error, sent) == (ErrorCode.NONE, answers(wanted))
    return session_id


def nameless(_topic_id: uuid.UUID) -> str | None:
    return None


class TestOpening:
    def test_a_request_without_session_gets_all_it_asked_for_and_no_session(self) -> None:
        cache = sessions()
        context = opened(cache, 0, -1, want(0, 1))
        assert context.wanted(nameless) == want(0, 1)
        assert context.conclude(answers(want(0, 1)), NOW_MS) == (ErrorCode.NONE, 0, answers(want(0, 1)))
        assert len(cache) == 0

    def test_a_full_request_begins_a_session(self) -> None:
        cache = sessions()
        assert started(cache, 0, 1) == 101
        assert repr(cache[101]) == "<FetchSession 101 epoch=1 partitions=2>"

    def test_a_session_may_be_empty(self) -> None:
        assert started(sessions()) == 101

    def test_ids_are_never_zero_nor_taken(self) -> None:
        cache = sessions(ids=(5, 5, 0, 6))
        assert [started(cache, 0), started(cache, 0)] == [5, 6]

    @pytest.mark.parametrize("epoch", [0, -1])
    def test_a_full_request_ends_the_session_it_names(self, epoch: int) -> None:
        cache = sessions()
        session_id = started(cache, 0)
        opened(cache, session_id, epoch, want(1))
        assert len(cache) == 0

    def test_an_unknown_session_is_told(self) -> None:
        context = opened(sessions(), 99, 1, want(0))
        assert context.wanted(nameless) == {}
        assert context.conclude({}, NOW_MS) == (ErrorCode.FETCH_SESSION_ID_NOT_FOUND, 0, {})

    @pytest.mark.parametrize("epoch", [2, 3, -2])
    def test_a_wrong_epoch_is_told_and_changes_nothing(self, epoch: int) -> None:
        cache = sessions()
        session_id = started(cache, 0)
        context = opened(cache, session_id, epoch, want(5))
        assert context.conclude({}, NOW_MS) == (ErrorCode.INVALID_FETCH_SESSION_EPOCH, 0, {})
        assert (cache[session_id].epoch, len(cache[session_id].partitions)) == (1, 1)

    def test_names_and_ids_do_not_mix(self) -> None:
        cache = sessions()
        context = opened(cache, started(cache, 0), 1, by_id=True)
        assert context.conclude({}, NOW_MS) == (ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR, 0, {})


class TestIncrements:
    def test_a_session_remembers_what_is_wanted(self) -> None:
        cache = sessions()
        session_id = started(cache, 0, 1)
        assert opened(cache, session_id, 1).wanted(nameless) == want(0, 1)

    def test_partitions_are_added_changed_and_forgotten(self) -> None:
        cache = sessions()
        session_id = started(cache, 0, 1, 2)
        changes = want(1, offset=7) | want(0, topic="other")
        gone = (TopicIdPartition(None, "orders", 0), TopicIdPartition(None, "orders", 77))
        context = opened(cache, session_id, 1, changes, gone)
        expected = want(1, offset=7) | want(2) | want(0, topic="other")
        assert context.wanted(nameless) == expected
        assert list(context.wanted(nameless)) == list(expected)

    def test_only_news_is_sent(self) -> None:
        cache = sessions()
        session_id = started(cache, 0, 1, 2)
        context = opened(cache, session_id, 1)
        found = answers(want(0, 1, 2))
        found[TopicIdPartition(None, "orders", 1)] = answer(1, high_watermark=3)
        error, said, sent = context.conclude(found, NOW_MS)
        assert (error, said, sent) == (
            ErrorCode.NONE,
            session_id,
            {TopicIdPartition(None, "orders", 1): answer(1, high_watermark=3)},
        )
        assert opened(cache, session_id, 2).conclude(found, NOW_MS)[2] == {}

    @pytest.mark.parametrize(
        "news",
        [
            answer(0, records=b"x"),
            answer(0, start=1),
            answer(0, error=3),
            PartitionData(
                partition_index=0, high_watermark=0, log_start_offset=0, aborted_transactions=None, records=b"",
                diverging_epoch=EpochEndOffset(epoch=0, end_offset=4),
            ),
        ],
    )  # fmt: skip
    def test_what_counts_as_news(self, news: PartitionData) -> None:
        cache = sessions()
        session_id = started(cache, 0)
        (fetched,) = want(0)
        assert opened(cache, session_id, 1).conclude({fetched: news}, NOW_MS)[2] == {fetched: news}

    def test_after_an_error_a_partition_is_sent_again(self) -> None:
        cache = sessions()
        session_id = started(cache, 0)
        (fetched,) = want(0)
        opened(cache, session_id, 1).conclude({fetched: answer(0, error=6)}, NOW_MS)
        assert opened(cache, session_id, 2).conclude({fetched: answer(0)}, NOW_MS)[2] == {fetched: answer(0)}

    def test_who_had_records_goes_to_the_end_of_the_line(self) -> None:
        cache = sessions()
        session_id = started(cache, 0, 1, 2)
        found = answers(want(0, 1, 2))
        found[TopicIdPartition(None, "orders", 0)] = answer(0, records=b"x")
        opened(cache, session_id, 1).conclude(found, NOW_MS)
        assert [fetched.partition for fetched in opened(cache, session_id, 2).wanted(nameless)] == [1, 2, 0]

    def test_a_session_without_partitions_is_over(self) -> None:
        cache = sessions()
        session_id = started(cache, 0)
        context = opened(
            cache, session_id, 1, want(5), (TopicIdPartition(None, "orders", 0), TopicIdPartition(None, "orders", 5))
        )
        assert len(cache) == 0
        assert context.conclude(answers(want(5)), NOW_MS) == (ErrorCode.NONE, 0, answers(want(5)))

    def test_a_partition_forgotten_meanwhile_is_not_sent(self) -> None:
        cache = sessions()
        session_id = started(cache, 0, 1)
        context = opened(cache, session_id, 1)
        del cache[session_id].partitions["orders", 0]
        assert context.conclude(answers(want(0), high_watermark=5), NOW_MS)[2] == {}

    def test_a_request_that_was_overtaken_is_told(self) -> None:
        cache = sessions()
        session_id = started(cache, 0)
        slow = opened(cache, session_id, 1)
        opened(cache, session_id, 2)
        assert slow.conclude({}, NOW_MS) == (ErrorCode.INVALID_FETCH_SESSION_EPOCH, session_id, {})

    def test_the_name_of_an_id_is_looked_up_until_there_is_one(self) -> None:
        cache = sessions()
        wanted = {TopicIdPartition(ORDERS, None, 0): wanting(0)}
        _, session_id, _ = opened(cache, 0, 0, wanted, by_id=True).conclude(answers(wanted), NOW_MS)
        assert opened(cache, session_id, 1, by_id=True).wanted(nameless) == wanted
        named = {TopicIdPartition(ORDERS, "orders", 0): wanting(0)}
        assert opened(cache, session_id, 2, by_id=True).wanted({ORDERS: "orders"}.get) == named
        assert opened(cache, session_id, 3, by_id=True).wanted(nameless) == named

    def test_an_id_is_one_partition_with_and_without_its_name(self) -> None:
        assert TopicIdPartition(ORDERS, None, 3).key == TopicIdPartition(ORDERS, "orders", 3).key
        assert TopicIdPartition(None, "orders", 3).key != TopicIdPartition(None, "other", 3).key

    def test_epochs_start_again_behind_the_largest(self) -> None:
        assert [next_epoch(1), next_epoch((1 << 31) - 1)] == [2, 1]


class TestEviction:
    """A small cache: who may stay."""

    def test_without_slots_there_are_no_sessions(self) -> None:
        assert started(sessions(slots=0), 0) == 0

    def test_a_new_session_is_safe_from_larger_ones(self) -> None:
        cache = sessions(slots=1)
        started(cache, 0)
        assert started(cache, 0, 1, 2, now_ms=NOW_MS + 1) == 0
        assert cache[101].size == 1

    def test_an_idle_session_goes_first(self) -> None:
        cache = sessions(slots=2)
        idle, busy = started(cache, 0, 1, 2), started(cache, 0)
        opened(cache, busy, 1, now_ms=NOW_MS + 10)
        assert started(cache, 0, now_ms=NOW_MS + EVICTION_MS) == 0
        assert started(cache, 0, now_ms=NOW_MS + EVICTION_MS + 1) == 103
        with pytest.raises(KeyError):
            cache[idle]
        assert cache[busy].epoch == 2

    def test_a_settled_session_yields_to_a_larger_one(self) -> None:
        cache = sessions(slots=2)
        small, large = started(cache, 0), started(cache, 0, 1, 2)
        late = NOW_MS + EVICTION_MS + 1
        opened(cache, small, 1, now_ms=late)
        opened(cache, large, 1, now_ms=late)
        assert started(cache, 0, now_ms=late) == 0
        assert started(cache, 0, 1, now_ms=late) == 103
        with pytest.raises(KeyError):
            cache[small]
        assert cache[large].size == 3

    def test_size_and_standing_are_as_of_the_last_request(self) -> None:
        cache = sessions(slots=1)
        session_id = started(cache, 0)
        opened(cache, session_id, 1, want(1, 2), now_ms=NOW_MS + EVICTION_MS)
        assert (cache[session_id].size, cache[session_id].settled) == (3, False)
        assert started(cache, *range(9), now_ms=NOW_MS + EVICTION_MS + 5) == 0
        opened(cache, session_id, 2, now_ms=NOW_MS + EVICTION_MS + 6)
        assert started(cache, *range(9), now_ms=NOW_MS + EVICTION_MS + 7) == 102

    def test_a_brokers_session_takes_the_place_of_a_consumers_at_once_but_not_the_other_way_round(self) -> None:
        cache = sessions(slots=1)
        started(cache, 0, 1, 2)
        of_a_broker = started(cache, 0, is_broker=True)
        assert of_a_broker == 102
        late = NOW_MS + EVICTION_MS + 1
        opened(cache, of_a_broker, 1, now_ms=late)
        assert started(cache, *range(9), now_ms=late) == 0
        assert started(cache, 0, now_ms=late, is_broker=True) == 0
        assert started(cache, 0, 1, now_ms=late, is_broker=True) == 103


class TestShards:
    """The cache is in eight parts, as a real broker's is."""

    RANGE = (2**31 - 1) // 8

    def test_new_sessions_go_to_the_parts_by_turns(self) -> None:
        cache = sessions(shards=8)
        assert [started(cache, 0) // self.RANGE for _ in range(10)] == [0, 1, 2, 3, 4, 5, 6, 7, 0, 1]

    def test_each_part_has_its_share_of_the_slots(self) -> None:
        cache = sessions(slots=17, shards=8)
        ids = [started(cache, 0) for _ in range(24)]
        assert all(ids[:16])
        assert ids[16:] == [0] * 8
        assert len(cache) == 16

    def test_with_fewer_slots_than_parts_there_are_no_sessions(self) -> None:
        assert started(sessions(slots=7, shards=8), 0) == 0

    def test_a_session_is_found_in_its_part(self) -> None:
        cache = sessions(shards=8)
        first, second = started(cache, 0), started(cache, 1)
        assert (first, second) == (101, self.RANGE + 102)
        assert opened(cache, second, 1).wanted(nameless) == want(1)
        opened(cache, second, -1)
        assert len(cache) == 1

    @pytest.mark.parametrize("session_id", [2**31 - 1, 8 * RANGE, -RANGE, -(2**31)])
    @pytest.mark.parametrize("epoch", [0, -1, 1])
    def test_some_ids_are_of_no_part(self, session_id: int, epoch: int) -> None:
        """Kafka fails over them, and over nothing else that is unknown."""
        with pytest.raises(NoSuchShardError):
            opened(sessions(shards=8), session_id, epoch)

    @pytest.mark.parametrize("session_id", [-1, 1 - RANGE, 8 * RANGE - 1])
    def test_other_ids_are_only_unknown(self, session_id: int) -> None:
        context = opened(sessions(shards=8), session_id, 1)
        assert context.conclude({}, NOW_MS)[0] == ErrorCode.FETCH_SESSION_ID_NOT_FOUND

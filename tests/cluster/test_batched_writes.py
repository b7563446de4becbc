"""What requests write at once is one batch of the log (``group.coordinator.append.linger.ms``)."""

import dataclasses

from groupcoord.cluster.coordinator_partition_writer import STORE, AppendDecision
from groupcoord.core.effects import Append
from groupcoord.protocol.apis import ApiKey
from groupcoord.protocol.apis.delete_topics import DeleteTopicState
from groupcoord.protocol.apis.offset_commit import OffsetCommitRequestPartition, OffsetCommitRequestTopic
from groupcoord.protocol.batches.record_batch import read_header
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages import (
    DeleteGroupsRequest,
    DeleteTopicsRequest,
    FindCoordinatorRequest,
    OffsetCommitRequest,
)
from groupcoord.testing import forced_actions_on_core
from tests.cluster.gated import Bench


def batches(bench: Bench) -> list[int]:
    """How many records each batch of the log has."""
    log = bench.node.broker.log("__consumer_offsets", 0)
    assert log is not None
    if not log.log_end_offset:
        return []
    data = log.read(0, 1_000_000, at_least_one=True).data()
    position, found = 0, []
    while position < len(data):
        header = read_header(data, position)
        found.append(header.record_count)
        position += header.size
    return found


def test_requests_of_a_round_share_a_batch_and_are_answered_in_their_order() -> None:
    bench = Bench()
    bench.node.batch_rounds(batches=True)
    numbers = [bench.commit(offset) for offset in (1, 2, 3)]
    fetched = bench.fetch(stable=True)
    assert bench.answers == {}
    bench.take(bench.node.flush(0))
    assert list(bench.answers) == [*numbers, fetched]
    assert (bench.offset(), bench.offset_in(fetched)) == (3, 3)
    assert batches(bench) == [3]
    assert bench.node.flush(0) == []


def test_what_follows_from_an_append_is_flushed_too() -> None:
    bench = Bench()
    bench.commit(1)
    bench.node.batch_rounds(batches=True)
    bench.commit(2)
    number = bench.ask(ApiKey.DELETE_GROUPS, DeleteGroupsRequest(groups_names=("g",)))
    bench.take(bench.node.flush(0))
    assert bench.deleted(number) is ErrorCode.NONE
    assert batches(bench) == [1, 1, 2]


def test_each_request_is_its_own_batch_where_nobody_batches_rounds() -> None:
    bench = Bench()
    bench.commit(1)
    bench.commit(2)
    assert batches(bench) == [1, 1]


def test_a_batch_that_fails_fails_for_all() -> None:
    bench = Bench()
    bench.commit(1)
    bench.node.batch_rounds(batches=True)
    bench.refuse(ErrorCode.NOT_ENOUGH_REPLICAS)
    numbers = [bench.commit(2), bench.commit(3)]
    bench.take(bench.node.flush(0))
    assert [bench.committed(number) for number in numbers] == [ErrorCode.COORDINATOR_NOT_AVAILABLE] * 2
    assert bench.offset() == 1


def test_what_is_too_large_for_a_batch_fails_alone() -> None:
    bench = Bench(message_max_bytes=300)
    bench.node.batch_rounds(batches=True)
    small, large, last = bench.commit(1), bench.commit(2, "g" * 400), bench.commit(3)
    bench.take(bench.node.flush(0))
    assert [bench.committed(number) for number in (small, large, last)] == [
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_SERVER_ERROR,
        ErrorCode.NONE,
    ]
    assert (batches(bench), bench.offset()) == ([2], 3)


def test_a_batch_may_wait_for_a_fixed_time() -> None:
    bench = Bench(group_coordinator_append_linger_ms=10)
    first = bench.commit(1)
    bench.advance(9)
    second = bench.commit(2)
    assert (bench.committed(first), bench.committed(second)) == (None, None)
    bench.advance(1)
    assert (bench.committed(first), bench.committed(second)) == (ErrorCode.NONE, ErrorCode.NONE)
    assert batches(bench) == [2]


def test_when_the_first_of_several_appends_fails_the_others_do_not_reach_the_log() -> None:
    bench = Bench(message_max_bytes=200, offsets_retention_minutes=1)
    groups = {f"g{number}" for number in range(10)}
    for group in groups:
        bench.commit(1, group)
    bench.refuse(ErrorCode.NOT_ENOUGH_REPLICAS)
    before = batches(bench)
    bench.advance(700_000)  # expired offsets and groups take several batches
    assert (batches(bench), bench.listed()) == (before, groups)
    bench.store()
    bench.advance(600_000)
    assert (len(batches(bench)) > len(before) + 1, bench.listed()) == (True, set())


def test_an_append_that_the_log_refuses_fails() -> None:
    bench = Bench()
    bench.hold()
    number = bench.commit(1)
    log = bench.node.broker.log("__consumer_offsets", 0)
    assert log is not None
    log.settings = dataclasses.replace(log.settings, max_message_bytes=10)
    bench.release()
    assert bench.committed(number) is ErrorCode.UNKNOWN_SERVER_ERROR


def delete_topic(bench: Bench, name: str = "t") -> None:
    bench.ask(ApiKey.DELETE_TOPICS, DeleteTopicsRequest(topics=(DeleteTopicState(name=name),), timeout_ms=1_000))


def test_the_offsets_of_a_deleted_topic_go_even_if_they_fill_several_batches() -> None:
    bench = Bench(message_max_bytes=300)
    groups = [f"g{number}" for number in range(20)]
    for group in groups:
        bench.commit(1, group)
    delete_topic(bench)
    assert {bench.offset(group) for group in groups} == {-1}
    assert len(batches(bench)) > len(groups) + 1


def test_appends_keep_their_order_if_one_that_is_stored_lets_another_follow() -> None:
    bench = Bench(message_max_bytes=300)
    bench.node.create_topic("u", 4, 0)
    for number in range(4):
        offset = OffsetCommitRequestPartition(partition_index=number, committed_offset=1, committed_metadata=None)
        topics = (OffsetCommitRequestTopic(name="u", partitions=(offset,)),)
        bench.ask(ApiKey.OFFSET_COMMIT, OffsetCommitRequest(group_id="doomed", member_id="", topics=topics), 9)
    for number in range(17):
        bench.commit(1, f"g{number}")
    appends: list[int] = []

    def note(append: Append) -> AppendDecision:
        appends.append(append.append_id)
        return STORE

    bench.decision = note
    bench.node.batch_rounds(batches=True)
    bench.commit(2)
    number = bench.delete_group("doomed")
    delete_topic(bench)
    bench.take(bench.node.flush(0))
    assert bench.deleted(number) is ErrorCode.NONE
    assert len(appends) > 3
    assert appends == sorted(appends)


def test_what_an_administrator_does_is_stored_without_waiting_for_a_round() -> None:
    bench = Bench()
    number = bench.join(instance="i")
    bench.advance(0)
    joined = bench.answer(number)
    bench.sync(joined.member_id, joined.generation_id)
    bench.node.batch_rounds(batches=True)
    forced_actions_on_core.fence(bench.node, "g", "i", 0)
    assert batches(bench) == [1, 1, 1]


def test_what_follows_from_an_append_that_is_let_go_is_stored_without_waiting_for_a_round() -> None:
    bench = Bench()
    bench.hold()
    bench.commit(1)
    number = bench.delete_group()
    bench.store()
    bench.node.batch_rounds(batches=True)
    bench.release()
    assert bench.deleted(number) is ErrorCode.NONE


def test_a_group_that_a_refused_commit_created_goes_with_the_batch_that_fails() -> None:
    bench = Bench(offset_metadata_max_bytes=1)
    bench.node.batch_rounds(batches=True)
    bench.commit(1)
    offset = OffsetCommitRequestPartition(partition_index=0, committed_offset=1, committed_metadata="too long")
    topics = (OffsetCommitRequestTopic(name="t", partitions=(offset,)),)
    bench.ask(ApiKey.OFFSET_COMMIT, OffsetCommitRequest(group_id="other", member_id="", topics=topics), 9)
    bench.refuse(ErrorCode.NOT_ENOUGH_REPLICAS)
    bench.take(bench.node.flush(0))
    assert bench.listed() == set()


def test_if_the_offsets_topic_is_deleted_while_a_batch_is_open_the_commits_fail_and_the_next_search_makes_it_anew() -> (
    None
):
    bench = Bench()
    bench.node.batch_rounds(batches=True)
    number = bench.commit(1)
    delete_topic(bench, "__consumer_offsets")
    assert bench.committed(number) is ErrorCode.NOT_COORDINATOR
    bench.ask(ApiKey.FIND_COORDINATOR, FindCoordinatorRequest(coordinator_keys=("g",)))
    assert bench.node.broker.log("__consumer_offsets", 0) is not None
    again = bench.commit(2)
    bench.take(bench.node.flush(0))
    assert (bench.committed(again), bench.offset()) == (ErrorCode.NONE, 2)

"""Offsets in open transactions: who sees them, what becomes of them, and that the log says the same when it is read back."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groupcoord.coordinator.events import OffsetsRemoved, TransactionalOffsetsEnded
from groupcoord.core.effects import Append
from groupcoord.protocol.apis import ApiKey
from groupcoord.protocol.apis.offset_delete import OffsetDeleteRequestPartition, OffsetDeleteRequestTopic
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages import OffsetDeleteRequest
from tests.coordinator.consumer.consumers import ConsumerWorld
from tests.coordinator.test_loading import Kafka
from tests.coordinator.transactions import UNSTABLE, end_transaction, fetch_stable, txn_commit
from tests.coordinator.world import GROUP, World

HOUR = 3_600_000


def deletion(*partitions: int, topic: str = "t") -> OffsetDeleteRequest:
    found = tuple(OffsetDeleteRequestPartition(partition_index=index) for index in partitions)
    return OffsetDeleteRequest(group_id=GROUP, topics=(OffsetDeleteRequestTopic(name=topic, partitions=found),))


# --- who sees them


@pytest.mark.parametrize("is_committed", [True, False])
def test_they_count_when_the_transaction_is_committed(is_committed: bool) -> None:
    world = World()
    world.commit({("t", 0): 1})
    txn_commit(world, {("t", 0): 5, ("t", 1): 6})
    assert world.fetch() == {("t", 0): 1}
    assert end_transaction(world, committed=is_committed) == ["stored"]
    assert world.fetch() == ({("t", 0): 5, ("t", 1): 6} if is_committed else {("t", 0): 1})


@pytest.mark.parametrize("version", [7, 9, 10])
def test_who_wants_stable_offsets_is_refused_those_that_may_change(version: int) -> None:
    world = World()
    world.commit({("t", 0): 1, ("t", 2): 2})
    txn_commit(world, {("t", 0): 5, ("t", 1): 6})
    asked = {"t": [0, 1, 2], "u": [0]}
    found = [UNSTABLE, UNSTABLE, 2, -1]
    assert list(fetch_stable(world, asked, version=version).values()) == found
    answer = world.ask_offsets({"t": [0]}, require_stable=True).answer.groups[0]
    (refused,) = answer.topics[0].partitions
    assert (answer.error_code, refused.committed_offset, refused.committed_leader_epoch, refused.metadata) == (
        0,
        -1,
        -1,
        "",
    )
    end_transaction(world)
    assert list(fetch_stable(world, asked, version=version).values()) == [5, 6, 2, -1]


@pytest.mark.parametrize("version", [9, 10])
def test_of_all_topics_only_those_with_a_committed_offset_are_listed(version: int) -> None:
    world = World()
    world.commit({("t", 0): 1, ("t", 2): 2})
    txn_commit(world, {("t", 0): 5, ("t", 1): 6, ("u", 0): 7})
    found = world.ask_offsets(version=version, require_stable=True).answer.groups[0].topics
    partitions = {each.partition_index: each.error_code or each.committed_offset for each in found[0].partitions}
    assert (len(found), partitions) == (1, {0: UNSTABLE, 2: 2})


def test_until_the_marker_is_stored_a_reader_of_stable_offsets_waits() -> None:
    world = World()
    txn_commit(world)
    world.hold_appends()
    outcome = end_transaction(world)
    asked = world.ask_offsets({"t": [0]}, require_stable=True)
    assert (asked.parked, outcome, world.fetch({"t": [0]})) == (True, [], {("t", 0): -1})
    world.confirm()
    assert outcome == ["stored"]
    assert asked.answer.groups[0].topics[0].partitions[0].committed_offset == 5


def test_a_marker_that_cannot_be_stored_leaves_them_pending() -> None:
    world = World()
    world.commit({("t", 0): 1})
    txn_commit(world, {("t", 0): 5, ("u", 0): 6})
    txn_commit(world, {("t", 0): 4}, producer_id=8)
    for committed in (True, False):
        world.fail_appends(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        assert end_transaction(world, committed=committed) == ["NOT_LEADER_OR_FOLLOWER"]
        world.fail_appends(None)
        assert world.fetch() == {("t", 0): 1}
        assert fetch_stable(world, {"t": [0], "u": [0]}) == {("t", 0): UNSTABLE, ("u", 0): UNSTABLE}
    end_transaction(world)
    assert fetch_stable(world, {"t": [0], "u": [0]}) == {("t", 0): UNSTABLE, ("u", 0): 6}
    end_transaction(world, 8)
    assert world.fetch() == {("t", 0): 4, ("u", 0): 6}


# --- which of several counts


def test_a_plain_commit_after_them_stays() -> None:
    world = World()
    txn_commit(world, {("t", 0): 5, ("u", 0): 6})
    world.commit({("t", 0): 1})
    end_transaction(world)
    assert world.fetch() == {("t", 0): 1, ("u", 0): 6}
    (event,) = world.seen(TransactionalOffsetsEnded)
    assert (event.group, event.producer_id, event.overtaken) == (GROUP, 7, (("t", 0),))
    assert event.text() == ("the transaction of producer 7 is committed: u-0 at 6, t-0 at 5; later commits of t-0 stay")


def test_a_plain_commit_that_could_not_be_stored_does_not() -> None:
    world = World()
    txn_commit(world)
    world.fail_appends(ErrorCode.NOT_ENOUGH_REPLICAS)
    world.commit({("t", 0): 1})
    world.fail_appends(None)
    end_transaction(world)
    assert world.fetch() == {("t", 0): 5}


@pytest.mark.parametrize("first", [7, 8])
def test_of_two_transactions_the_later_commit_counts(first: int) -> None:
    world = World()
    txn_commit(world, {("t", 0): 5}, producer_id=7)
    txn_commit(world, {("t", 0): 6}, producer_id=8)
    for producer_id in (first, 15 - first):
        end_transaction(world, producer_id)
    assert world.fetch() == {("t", 0): 6}


def test_a_transaction_that_is_aborted_overtakes_nothing() -> None:
    world = World()
    txn_commit(world, {("t", 0): 5}, producer_id=7)
    txn_commit(world, {("t", 0): 6}, producer_id=8)
    end_transaction(world, 8, committed=False)
    end_transaction(world, 7)
    assert world.fetch() == {("t", 0): 5}
    texts = [event.text() for event in world.seen(TransactionalOffsetsEnded)]
    assert texts == [
        "the transaction of producer 8 is aborted: t-0 at 6 forgotten",
        "the transaction of producer 7 is committed: t-0 at 5",
    ]


def test_the_end_of_a_transaction_says_so_of_each_group() -> None:
    world = World(offsets_topic_num_partitions=1)
    for group in ("g", "h"):
        txn_commit(world, group=group)
    end_transaction(world)
    end_transaction(world)
    assert [event.group for event in world.seen(TransactionalOffsetsEnded)] == ["g", "h"]


# --- what removes them


def test_offsets_that_are_deleted_are_gone_from_open_transactions_too() -> None:
    world = World()
    world.commit({("t", 0): 1})
    txn_commit(world, {("t", 0): 5, ("t", 1): 6, ("t", 2): 7})
    txn_commit(world, {("t", 1): 6}, producer_id=8)
    assert not any(world.ask(ApiKey.OFFSET_DELETE, deletion(0, 1)).partition_errors.values())
    assert fetch_stable(world, {"t": [0, 1, 2]}) == {("t", 0): -1, ("t", 1): -1, ("t", 2): UNSTABLE}
    assert world.offset_values[-2:] == [None, None]
    end_transaction(world, 8)
    end_transaction(world)
    assert world.fetch() == {("t", 2): 7}


def test_if_the_deletion_cannot_be_stored_they_are_still_pending() -> None:
    world = World()
    txn_commit(world, {("t", 0): 5})
    world.commit({("t", 0): 1})
    world.hold_appends()
    world.ask(ApiKey.OFFSET_DELETE, deletion(0))
    world.fail(ErrorCode.NOT_ENOUGH_REPLICAS)
    assert fetch_stable(world, {"t": [0]}) == {("t", 0): UNSTABLE}
    outcome = end_transaction(world)
    world.confirm()
    assert (outcome, world.fetch()) == (["stored"], {("t", 0): 1})


def test_a_group_that_is_deleted_takes_them_along() -> None:
    world = World()
    world.commit({("t", 0): 1})
    txn_commit(world, {("t", 0): 5, ("u", 1): 6})
    assert world.delete_groups().answer.results[0].error_code == 0
    (event,) = world.seen(OffsetsRemoved)
    assert event.partitions == (("t", 0), ("u", 1))
    assert [record.value for record in world.batches[-1]] == [None, None, None]
    end_transaction(world)
    assert (world.exists, world.fetch()) == (False, {})


def test_a_topic_that_is_deleted_takes_them_along() -> None:
    world = World(offsets_topic_num_partitions=1)
    world.commit({("t", 0): 1})
    world.commit({("t", 0): 1}, group="h")
    for producer_id in (7, 8):
        txn_commit(world, {("t", 0): 5, ("u", 1): 6}, producer_id=producer_id)
    world.delete_topic("t")
    told = [(record.key.group, record.key.topic, record.value) for record in world.batches[-1]]
    assert told == [("g", "t", None), ("h", "t", None), ("g", "t", None), ("g", "t", None)]
    assert [(event.group, event.partitions) for event in world.seen(OffsetsRemoved)] == [
        ("g", (("t", 0),)),
        ("h", (("t", 0),)),
    ]
    end_transaction(world)
    assert world.fetch() == {("u", 1): 6}


# --- retention


def test_what_is_pending_keeps_the_group_and_the_offset_that_it_would_replace() -> None:
    world = World(offsets_retention_minutes=60)
    world.commit({("t", 0): 1, ("t", 1): 1})
    txn_commit(world, {("t", 0): 5})
    world.advance(2 * HOUR)
    assert world.fetch() == {("t", 0): 1}
    end_transaction(world, committed=False)
    world.advance(HOUR)
    assert not world.exists


def test_a_group_that_only_has_pending_offsets_stays() -> None:
    world = World(offsets_retention_minutes=60)
    txn_commit(world)
    world.advance(2 * HOUR)
    assert world.exists
    end_transaction(world, committed=False)
    world.advance(HOUR)
    assert not world.exists


def test_a_group_whose_other_offsets_have_expired_stays() -> None:
    world = World(offsets_retention_minutes=60)
    world.commit({("t", 1): 1})
    txn_commit(world)
    world.advance(2 * HOUR)
    assert (world.exists, world.fetch()) == (True, {})


def test_an_offset_that_a_transaction_brought_lasts_from_its_commit() -> None:
    world = World(offsets_retention_minutes=60)
    txn_commit(world)
    world.advance(2 * HOUR)
    end_transaction(world)
    world.advance(HOUR)
    assert not world.exists


# --- from the log


def test_a_transaction_that_was_open_when_the_log_was_read_goes_on() -> None:
    world = World(offsets_topic_num_partitions=1)
    world.commit({("t", 0): 1})
    txn_commit(world, {("t", 0): 5, ("t", 1): 6, ("u", 0): 6})
    world.commit({("t", 1): 2})
    world.reload()
    asked = {"t": [0, 1], "u": [0]}
    assert set(fetch_stable(world, asked).values()) == {UNSTABLE}
    world.commit({("u", 0): 3})
    end_transaction(world)
    assert fetch_stable(world, asked) == {("t", 0): 5, ("t", 1): 2, ("u", 0): 3}
    (event,) = world.seen(TransactionalOffsetsEnded)
    assert event.offsets == (("u", 0, 6), ("t", 0, 5), ("t", 1, 6))


def test_a_group_that_only_has_pending_offsets_is_read_back() -> None:
    world = World(offsets_topic_num_partitions=1)
    txn_commit(world)
    world.reload()
    assert world.group.is_simple
    assert fetch_stable(world, {"t": [0]}) == {("t", 0): UNSTABLE}


def test_a_group_with_pending_offsets_may_become_a_consumer_group() -> None:
    world = ConsumerWorld()
    txn_commit(world)
    world.joined_consumers("a")
    end_transaction(world)
    assert world.fetch() == {("t", 0): 5}


partition = st.tuples(st.sampled_from("tu"), st.integers(0, 1))
step = st.one_of(
    st.tuples(st.just("commit"), partition, st.integers(0, 99)),
    st.tuples(st.just("txn"), st.integers(7, 9), partition, st.integers(0, 99)),
    st.tuples(st.just("txn"), st.integers(7, 9), partition, st.integers(0, 99)),
    st.tuples(st.just("end"), st.integers(7, 9), st.booleans()),
    st.tuples(st.just("delete"), partition),
    st.tuples(st.sampled_from(["confirm", "confirm", "fail"])),
)


@pytest.mark.untraced
@pytest.mark.slow
@given(st.lists(step, max_size=40))
def test_whatever_is_stored_or_fails_the_state_is_what_kafka_makes_of_the_log(steps: list[Any]) -> None:
    world = World(offsets_topic_num_partitions=1)
    world.commit({("t", 2): 0})
    world.hold_appends()
    for verb, *words in steps:
        perform(world, verb, words)
    while world.held:
        world.confirm()
    kafka = what_kafka_makes_of(world.stored)
    assert world.fetch() == committed_in(kafka)
    unstable = {key for key, found in fetch_stable(world, {"t": [0, 1, 2], "u": [0, 1]}).items() if found is UNSTABLE}
    pending = [found for offsets in kafka.pending.values() for found in offsets.of_group(GROUP)]
    assert unstable == {(topic, each) for topic, found in pending for each, _ in found}
    for producer_id in (7, 8, 9):
        kafka.end(producer_id, committed=True)
        end_transaction(world, producer_id)
        world.confirm()
    assert world.fetch() == committed_in(kafka)


def perform(world: World, verb: str, words: list[Any]) -> None:
    match verb, words:
        case "commit", [key, offset]:
            world.commit({key: offset})
        case "txn", [producer_id, key, offset]:
            txn_commit(world, {key: offset}, producer_id=producer_id)
        case "end", [producer_id, committed]:
            end_transaction(world, producer_id, committed=committed)
        case "delete", [(topic, index)]:
            world.ask(ApiKey.OFFSET_DELETE, deletion(index, topic=topic))
        case "confirm", _ if world.held:
            world.confirm()
        case "fail", _ if world.held:
            world.fail(ErrorCode.NOT_ENOUGH_REPLICAS)


def what_kafka_makes_of(log: list[Append]) -> Kafka:
    kafka, position = Kafka(), 0
    for append in log:
        if append.marker is not None:
            kafka.end(append.marker.producer_id, committed=append.marker.committed)
        for index, record in enumerate(append.records):
            value = None if record.value is None else record.value.offset
            kafka.replay(position + index, record.key.topic, record.key.partition, value, append.producer_id)
        position += len(append.records) or 1
    return kafka


def committed_in(kafka: Kafka) -> dict[tuple[str, int], int]:
    return {(topic, each): value for topic, found in kafka.offsets.of_group(GROUP) for each, (_, value) in found}

"""A shard is read back from its log: what is told while it is, what it is afterwards, and what keeps it from coming back."""

import struct
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groupcoord.coordinator.events import RebalanceStarted, ShardLoaded, ShardNotLoaded
from groupcoord.coordinator.group_coordinator_shard import GroupCoordinatorShard
from groupcoord.coordinator.offsets.committed_offsets import CommittedOffset, OffsetMap
from groupcoord.coordinator.runtime.shard_loader import ShardLoader
from groupcoord.core.effects import NO_PRODUCER
from groupcoord.protocol.apis import ApiKey
from groupcoord.protocol.apis.offset_delete import OffsetDeleteRequestPartition, OffsetDeleteRequestTopic
from groupcoord.protocol.batches.record_batch import build_batch
from groupcoord.protocol.batches.records import Record
from groupcoord.protocol.coordinator_records.group_records import (
    GROUP_METADATA_VALUE_VERSION,
    OFFSET_COMMIT_VALUE_VERSION,
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
    write_key,
    write_value,
)
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages import DeleteGroupsRequest, OffsetDeleteRequest
from tests.coordinator.test_any_order import comes_back_as_it_was
from tests.coordinator.world import GROUP, Member, World, subscription
from tests.protocol.kafkas_records import recorded

LOADING = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
PRODUCER = 9
OFFSET_KEY = write_key(OffsetCommitKey(group=GROUP, topic="t", partition=0))
GROUP_KEY = write_key(GroupMetadataKey(group=GROUP))


def offset(value: int, *, expires_ms: int | None = None) -> bytes:
    committed = OffsetCommitValue(
        offset=value, metadata="", commit_timestamp_ms=1, expire_timestamp_ms=-1 if expires_ms is None else expires_ms
    )
    return write_value(committed, OFFSET_COMMIT_VALUE_VERSION if expires_ms is None else 1)


def group(*members: MemberMetadata, **fields: Any) -> bytes:
    said: dict[str, Any] = {"protocol_type": "consumer", "generation": 3, "protocol": "range", "leader": None}
    return write_value(GroupMetadataValue(**said | fields, members=members), GROUP_METADATA_VALUE_VERSION)


def member(member_id: str, **fields: Any) -> MemberMetadata:
    said: dict[str, Any] = {"client_id": "c", "client_host": "/h", "session_timeout_ms": 10_000, "assignment": b"mine"}
    return MemberMetadata(member_id=member_id, subscription=subscription("t"), **said | fields)


def empty_world() -> World:
    return World(offsets_topic_num_partitions=1)


def key_of(topic: str, partition: int) -> bytes:
    return write_key(OffsetCommitKey(group=GROUP, topic=topic, partition=partition))


def deletion(*partitions: int) -> OffsetDeleteRequest:
    said = tuple(OffsetDeleteRequestPartition(partition_index=index) for index in partitions)
    return OffsetDeleteRequest(group_id=GROUP, topics=(OffsetDeleteRequestTopic(name="t", partitions=said),))


def begun(world: World) -> ShardLoader[GroupCoordinatorShard]:
    world.resign(0)
    return world.begin_load(0)


def loaded(*records: tuple[bytes | None, bytes | None]) -> World:
    """A world that has just read these keys and values."""
    world = empty_world()
    loading = begun(world)
    batch = build_batch([Record(number, 0, key, value) for number, (key, value) in enumerate(records)])
    loading.apply_run(batch, 0)
    world.end_load(loading)
    return world


def committed(world: World) -> dict[tuple[str, int], int]:
    return {
        (topic.name, partition.partition_index): partition.committed_offset
        for topic in world.ask_offsets().answer.groups[0].topics
        for partition in topic.partitions
    }


def stable(world: World) -> tuple[Member, Member]:
    a, b = world.stable("a", "b")
    a.commit({("t", 0): 5})
    return a, b


def test_while_it_is_read_nobody_learns_anything() -> None:
    world = empty_world()
    a, _ = stable(world)
    begun(world)
    assert a.join().error is LOADING
    assert a.sync().error is LOADING
    assert a.leave().error is LOADING
    assert set(a.commit({("t", 0): 6}).partition_errors.values()) == {LOADING}
    assert world.ask_offsets().answer.groups[0].error_code == LOADING
    assert world.describe().answer.groups[0].error_code == LOADING
    (deleted,) = world.ask(ApiKey.DELETE_GROUPS, DeleteGroupsRequest(groups_names=(GROUP,))).answer.results
    assert deleted.error_code == LOADING
    assert world.list_groups().error is LOADING


def test_a_heartbeat_is_fine_while_it_is_read() -> None:
    world = empty_world()
    a, _ = stable(world)
    begun(world)
    assert a.heartbeat().error is ErrorCode.NONE


def test_a_stable_group_goes_on_without_a_rebalance() -> None:
    world = empty_world()
    a, b = stable(world)
    before = b.sync().answer
    comes_back_as_it_was(world)
    assert a.heartbeat().error is b.heartbeat().error is ErrorCode.NONE
    assert b.sync().answer == before
    assert a.commit({("t", 0): 7}).partition_errors == {("t", 0): ErrorCode.NONE}
    assert world.seen(ShardLoaded)[-1].groups == 1


def test_sessions_begin_when_it_is_read() -> None:
    world = empty_world()
    a, _ = stable(world)
    world.advance(9_000)
    world.reload()
    world.advance(a.session_ms - 1)
    assert len(world.group.members) == 2
    world.advance(1)
    assert not len(world.group.members)


def test_who_offers_more_than_was_chosen_has_news_when_it_joins_again() -> None:
    """The record has the chosen protocol alone."""
    offers = [("range", subscription("t")), ("sticky", subscription("t"))]
    for protocols, rebalances in ((offers[:1], 0), (offers, 1)):
        world = empty_world()
        members = [world.member(name, protocols=protocols) for name in "ab"]
        world.joined(*members)
        for each in sorted(members, key=lambda one: one.leads, reverse=True):
            each.sync()
        world.reload()
        before = len(world.seen(RebalanceStarted))
        follower = next(each for each in members if not each.leads)
        follower.join()
        assert len(world.seen(RebalanceStarted)) - before == rebalances


def test_a_group_that_is_too_large_by_now_rebalances() -> None:
    world = World(offsets_topic_num_partitions=1, group_max_size=2)
    loading = begun(world)
    members = tuple(member(name) for name in "abc")
    loading.apply([(0, GROUP_KEY, group(*members, leader="a"))])
    world.end_load(loading)
    assert world.group.state == "PreparingRebalance"
    assert world.seen(RebalanceStarted)[0].reason == "the group has 3 members, and group.max.size is 2 now"


def test_what_old_records_do_not_say() -> None:
    world = loaded((GROUP_KEY, group(member("a"), leader="a")))
    (one,) = world.group.members.values()
    assert (one.rebalance_timeout_ms, one.session_timeout_ms) == (10_000, 10_000)
    assert world.group.state_since_ms is None


def test_offsets_without_a_group_are_a_simple_groups() -> None:
    world = loaded((OFFSET_KEY, offset(5, expires_ms=70)), (OFFSET_KEY, offset(6)))
    assert world.group.is_simple
    assert committed(world) == {("t", 0): 6}


def test_a_group_that_was_taken_away_comes_back_as_a_simple_one() -> None:
    world = loaded((OFFSET_KEY, offset(5)), (GROUP_KEY, group()), (GROUP_KEY, None), (OFFSET_KEY, offset(6)))
    assert world.group.is_simple
    assert committed(world) == {("t", 0): 6}


def test_tombstones_take_away_what_was_there() -> None:
    world = loaded(
        (GROUP_KEY, group()), (OFFSET_KEY, offset(5)), (OFFSET_KEY, None), (OFFSET_KEY, None), (GROUP_KEY, None)
    )
    assert not world.exists
    assert committed(world) == {}


def test_records_of_other_kinds_are_passed_over() -> None:
    world = loaded((struct.pack(">h", 10) + b"whatever", b"x"), (OFFSET_KEY, offset(5)))
    assert committed(world) == {("t", 0): 5}
    (event,) = world.seen(ShardLoaded)
    assert (event.records, event.passed_over) == (2, 1)
    assert event.text().endswith(": 1 group; 1 record of other kinds was passed over")


def test_a_log_of_a_broker_that_has_all_kinds_of_groups() -> None:
    records = [(record.key, record.value) for record in recorded() if record.origin == "broker"]
    others = [key for key, _ in records if key[:2] > b"\0\x08" and key[:2] != b"\0\x10"]
    (event,) = loaded(*records).seen(ShardLoaded)
    assert (event.records, event.passed_over) == (len(records), len(others))
    assert len(others) > 10


@pytest.mark.parametrize(("is_committed", "expected"), [(True, 8), (False, 5)])
def test_offsets_of_a_transaction_count_when_it_is_committed(is_committed: bool, expected: int) -> None:
    world = empty_world()
    loading = begun(world)
    loading.apply([(0, OFFSET_KEY, offset(5))])
    loading.apply([(1, OFFSET_KEY, offset(8))], PRODUCER)
    loading.end_transaction(PRODUCER, committed=is_committed)
    loading.end_transaction(PRODUCER + 1, committed=True)
    world.end_load(loading)
    assert committed(world) == {("t", 0): expected}


def test_a_transaction_may_bring_the_first_offset() -> None:
    world = empty_world()
    loading = begun(world)
    loading.apply([(1, OFFSET_KEY, offset(8))], PRODUCER)
    loading.end_transaction(PRODUCER, committed=True)
    world.end_load(loading)
    assert world.group.is_simple
    assert committed(world) == {("t", 0): 8}


def test_a_later_commit_outlives_the_end_of_a_transaction() -> None:
    world = empty_world()
    loading = begun(world)
    loading.apply([(1, OFFSET_KEY, offset(8))], PRODUCER)
    loading.apply([(2, OFFSET_KEY, offset(9))])
    loading.end_transaction(PRODUCER, committed=True)
    world.end_load(loading)
    assert committed(world) == {("t", 0): 9}


def test_of_two_transactions_the_later_record_counts() -> None:
    """Whichever of them ends first, and for the partitions that both of them, or a plain commit, have."""
    for first, second in ((PRODUCER, PRODUCER + 1), (PRODUCER + 1, PRODUCER)):
        world = empty_world()
        loading = begun(world)
        loading.apply([(1, OFFSET_KEY, offset(8)), (2, key_of("u", 0), offset(8))], PRODUCER)
        loading.apply([(3, OFFSET_KEY, offset(9)), (4, key_of("u", 0), offset(9))], PRODUCER + 1)
        loading.apply([(5, key_of("u", 0), offset(7))])
        loading.end_transaction(first, committed=True)
        loading.end_transaction(second, committed=True)
        world.end_load(loading)
        assert committed(world) == {("t", 0): 9, ("u", 0): 7}


def test_a_tombstone_makes_room_for_a_transaction_that_comes_later() -> None:
    world = empty_world()
    loading = begun(world)
    loading.apply([(1, OFFSET_KEY, offset(8))], PRODUCER)
    loading.apply([(2, OFFSET_KEY, offset(7)), (3, OFFSET_KEY, None)])
    loading.apply([(4, OFFSET_KEY, offset(9))], PRODUCER)
    loading.end_transaction(PRODUCER, committed=True)
    world.end_load(loading)
    assert committed(world) == {("t", 0): 9}


def test_a_tombstone_reaches_into_open_transactions() -> None:
    world = empty_world()
    loading = begun(world)
    loading.apply([(1, OFFSET_KEY, offset(8))], PRODUCER)
    loading.apply([(2, OFFSET_KEY, None)])
    loading.end_transaction(PRODUCER, committed=True)
    world.end_load(loading)
    assert committed(world) == {}


@pytest.mark.parametrize(
    ("key", "value", "why"),
    [
        (b"\x00", b"", "the record at offset 1 cannot be read"),
        (None, b"", "the record at offset 1 cannot be read"),
        (GROUP_KEY, b"\x00\x09", "versions 0 to 4 are known"),
        (OFFSET_KEY, b"\x00\x01", "OffsetCommitValue"),
    ],
)
def test_a_log_that_cannot_be_read_is_nobodys(key: bytes | None, value: bytes, why: str) -> None:
    world = loaded((OFFSET_KEY, offset(5)), (key, value))
    (event,) = world.seen(ShardNotLoaded)
    assert why in event.why
    assert f"__consumer_offsets-0 is not served: {event.why}" == event.text()
    assert world.member("a").join().error is ErrorCode.NOT_COORDINATOR


@pytest.mark.parametrize("old", [b"\x00\x00", b"\x00\x01"])
def test_keys_in_other_bytes_are_the_same_keys(old: bytes) -> None:
    """Of type 0, and with something behind them, which Kafka passes over."""
    key, old_key = OFFSET_KEY, old + OFFSET_KEY[2:] + b"more"
    world = loaded(
        (key, offset(5)), (old_key, offset(6)), (GROUP_KEY + b"more", group(generation=9)), (GROUP_KEY[:-1], b"")
    )
    assert world.seen(ShardNotLoaded)
    world = loaded((key, offset(5)), (old_key, offset(6)), (GROUP_KEY + b"more", group(generation=9)))
    assert committed(world) == {("t", 0): 6}
    assert world.group.generation_id == 9
    assert committed(loaded((key, offset(5)), (old_key, offset(6)), (key, offset(7)))) == {("t", 0): 7}
    assert committed(loaded((key, offset(5)), (old_key, None), (key, offset(7)))) == {("t", 0): 7}
    assert committed(loaded((old_key, offset(5)), (key, None))) == {}


@pytest.mark.parametrize("partitions", [5, 6, 10, 11, 12])
@pytest.mark.parametrize("repeats", [(), (0,), (3, 3)])
@pytest.mark.parametrize("gone", [(), (0, 4), (0, 1, 2, 3, 4)])
def test_offsets_are_listed_as_before(partitions: int, repeats: tuple[int, ...], gone: tuple[int, ...]) -> None:
    """In the order of Kafka's hash table, which depends on what it ever made room for."""
    world = World(topics={"t": 20, "u": 20}, offsets_topic_num_partitions=1)
    for partition in (*range(partitions), *repeats):
        world.commit({("t", partition): 5})
    world.ask(ApiKey.OFFSET_DELETE, deletion(*gone))
    world.commit({("u", 0): 1, ("t", 0): 5})
    before = list(committed(world))
    world.reload()
    assert list(committed(world)) == before


class Kafka:
    """``OffsetMetadataManager.replay`` and ``replayEndTransactionMarker`` to the letter, one record at a time."""

    def __init__(self) -> None:
        self.offsets: OffsetMap[tuple[int, int]] = OffsetMap()
        self.pending: dict[int, OffsetMap[tuple[int, int]]] = {}

    def replay(self, at: int, topic: str, partition: int, value: int | None, producer: int) -> None:
        if value is None:
            self.offsets.remove(GROUP, topic, partition)
            for pending in self.pending.values():
                pending.remove(GROUP, topic, partition)
        elif producer == NO_PRODUCER:
            self.offsets.put(GROUP, topic, partition, (at, value))
        else:
            self.pending.setdefault(producer, OffsetMap()).put(GROUP, topic, partition, (at, value))

    def end(self, producer: int, *, committed: bool) -> None:
        pending = self.pending.pop(producer, OffsetMap())
        for topic, partitions in pending.of_group(GROUP) if committed else ():
            for partition, (at, value) in partitions:
                existing = self.offsets.get(GROUP, topic, partition)
                if existing is None or at > existing[0]:
                    self.offsets.put(GROUP, topic, partition, (at, value))


producers = st.sampled_from([NO_PRODUCER, NO_PRODUCER, PRODUCER, PRODUCER + 1])
one_record = st.tuples(
    producers, st.sampled_from("tu"), st.integers(0, 7), st.one_of(st.integers(0, 99), st.integers(0, 99), st.none())
)
one_end = st.tuples(producers, st.booleans())


@pytest.mark.slow
@given(st.lists(st.one_of(one_record, one_record, one_record, one_end), max_size=60))
def test_it_is_what_kafka_makes_of_the_same_records(log: list[Any]) -> None:
    kafka, world = Kafka(), World(topics={"t": 8, "u": 8}, offsets_topic_num_partitions=1)
    loading = begun(world)
    for at, step in enumerate(log):
        if len(step) == 2:
            producer, is_committed = step
            kafka.end(producer, committed=is_committed)
            loading.end_transaction(producer, committed=is_committed)
        else:
            producer, topic, partition, value = step
            kafka.replay(at, topic, partition, value, producer)
            loading.apply([(at, key_of(topic, partition), None if value is None else offset(value))], producer)
    world.end_load(loading)
    assert [(topic, [(index, one.offset) for index, one in found]) for topic, found in stored_offsets(world)] == [
        (topic, [(index, value) for index, (_, value) in found]) for topic, found in kafka.offsets.of_group(GROUP)
    ]


def stored_offsets(world: World) -> Sequence[tuple[str, Sequence[tuple[int, CommittedOffset]]]]:
    return world.coordinator.shards[0].machine.offsets.of_group(GROUP)


COMMITS = [key_of(topic, partition) for topic in "tu" for partition in range(3)]
a_commit = st.tuples(
    st.one_of(*[st.sampled_from(COMMITS)] * 6, st.sampled_from([b"\0\0" + OFFSET_KEY[2:], OFFSET_KEY + b"more"])),
    st.one_of(
        *[st.builds(offset, st.integers(0, 99))] * 6,
        *[st.none()] * 2,
        st.builds(offset, st.integers(0, 99), expires_ms=st.just(7)),
    ),
)
a_group = st.tuples(st.just(GROUP_KEY), st.one_of(st.none(), st.builds(group)))
no_commit = st.one_of(
    st.just((b"\0\x07other", b"")),
    *[st.just((key, b"\0\1")) for key in (OFFSET_KEY, b"\0\1")],
)
any_records = st.lists(
    st.tuples(st.one_of(*[a_commit] * 20, *[a_group] * 3, no_commit), st.booleans()), min_size=1, max_size=60
)


@pytest.mark.slow
@given(any_records, st.integers(0, 60))
def test_read_by_the_million_it_is_what_it_is_one_by_one(log: list[Any], opened: int) -> None:
    """Whatever the records are, those that cannot be read included, and with a transaction that is open for a while."""
    batches: list[list[Record]] = []
    for number, ((key, value), is_first) in enumerate(log):
        if is_first or not batches or number == opened:
            batches.append([])
        batches[-1].append(Record(number, 0, key, value))
    slow, fast = (World(topics={"t": 3, "u": 3}, offsets_topic_num_partitions=1) for _ in range(2))
    one_by_one, by_the_million = begun(slow), begun(fast)
    for records in batches:
        keyed = [record[:1] + record[2:4] for record in records]
        if records[0].offset == opened:
            one_by_one.apply(keyed, PRODUCER)
            by_the_million.apply(keyed, PRODUCER)
        else:
            one_by_one.apply(keyed)
            by_the_million.apply_run(build_batch(records), 0)
        if one_by_one.failure is None and records[0].offset > opened + 5:
            one_by_one.end_transaction(PRODUCER, committed=True)
            by_the_million.end_transaction(PRODUCER, committed=True)
        if one_by_one.failure is not None:
            break
    for world, loading in ((slow, one_by_one), (fast, by_the_million)):
        world.end_load(loading)
    assert by_the_million.failure == one_by_one.failure
    assert by_the_million.records == one_by_one.records
    assert [event for event in fast.events if isinstance(event, ShardLoaded | ShardNotLoaded)] == [
        event for event in slow.events if isinstance(event, ShardLoaded | ShardNotLoaded)
    ]
    assert stored_offsets(fast) == stored_offsets(slow)
    if one_by_one.failure is None:
        assert fast.describe().answer == slow.describe().answer
        # From here on, too: the order shows what the tables ever made room for.
        for world in (slow, fast):
            world.commit({(topic, partition): 7 for topic in "tu" for partition in range(3)})
        assert list(committed(fast)) == list(committed(slow))


def test_after_a_failure_nothing_more_is_read() -> None:
    world = empty_world()
    loading = begun(world)
    loading.fail("the disk is gone")
    loading.fail("so is the other one")
    loading.apply([(0, OFFSET_KEY, offset(5))])
    assert (loading.failure, loading.records) == ("the disk is gone", 0)


def test_a_shard_that_is_lost_while_it_is_read_stays_lost() -> None:
    world = empty_world()
    loading = begun(world)
    world.resign(0)
    world.end_load(loading)
    assert world.member("a").join().error is ErrorCode.NOT_COORDINATOR
    assert world.seen(ShardLoaded) == []


def test_the_event_says_how_much_was_read() -> None:
    world = loaded((OFFSET_KEY, offset(5)), (OFFSET_KEY, offset(6)))
    assert world.seen(ShardLoaded)[0].text() == "read 2 records of __consumer_offsets-0 in 0 ms: 1 group"

"""A consumer group that is read back from its log is the same, and goes on where it was."""

import dataclasses
import uuid
from typing import Any

import pytest

from groupcoord.coordinator.consumer.consumer_group import ConsumerGroup
from groupcoord.coordinator.consumer.member import MemberState
from groupcoord.coordinator.events import ShardNotLoaded
from groupcoord.coordinator.records import typed_record
from groupcoord.protocol.batches.record_batch import build_batch
from groupcoord.protocol.batches.records import Record
from groupcoord.protocol.coordinator_records import consumer_group_records as stored
from groupcoord.protocol.coordinator_records.consumer_group_records import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupPartitionMetadataValue,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
    CurrentPartitions,
    SubscribedTopic,
    TargetPartitions,
)
from groupcoord.protocol.coordinator_records.group_records import (
    GROUP_METADATA_VALUE_VERSION,
    OFFSET_COMMIT_VALUE_VERSION,
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
)
from groupcoord.protocol.errors import ErrorCode
from tests.coordinator.consumer.consumers import ConsumerWorld, settle

T = uuid.UUID(int=1)


def without_order(described: Any) -> Any:
    """Members in the order of their ids: a table that has grown and shrunk has another order than a new one."""
    return dataclasses.replace(described, members=tuple(sorted(described.members, key=lambda each: each.member_id)))


@pytest.mark.parametrize("compacted", [False, True])
def test_a_group_in_the_middle_of_everything(compacted: bool) -> None:
    w = ConsumerWorld(topics={"t": 6, "u": 2})
    a, b, c = w.consumer("a"), w.consumer("b", instance="i"), w.consumer("c", "u", regex="u|t", rack="r")
    a.join()
    b.join()
    a.heartbeat()
    c.join()
    w.advance(0)
    a.owns()
    b.away()
    m = w.classic("m", member_id="m")
    m.join()
    d = w.consumer("d")
    d.join()
    d.leave()
    a.commit()
    before, offsets, group = w.described(), w.fetch(), w.consumers
    w.reload(compacted=compacted)
    again = w.consumers
    assert without_order(w.described()) == without_order(before)
    assert w.fetch() == offsets
    assert again is not group
    assert again.epochs == group.epochs
    assert dict(again.members.in_order()) == dict(group.members.in_order())
    assert dict(again.targets.in_order()) == dict(group.targets.in_order())
    assert dict(again.regexes.in_order()) == dict(group.regexes.in_order())


def test_reconciling_goes_on_after_a_reload() -> None:
    """Sessions begin anew with the timeout of the group; who has something to give back has its rebalance timeout again."""
    w = ConsumerWorld(topics={"t": 4})
    a, b = w.consumer("a", rebalance_ms=20_000), w.consumer("b")
    m = w.classic("m", member_id="m", session_ms=10_000)
    a.join()
    b.join()
    m.join()
    a.heartbeat()
    w.advance(9_000)
    m.heartbeat()
    w.reload()
    assert [w.deadline("session", name) for name in "abm"] == [45_000] * 3
    assert [w.deadline("rebalance", name) for name in "abm"] == [20_000, None, None]
    assert [w.deadline(kind, "m") for kind in ("member-join", "member-sync")] == [None, None]
    settle([a, b])
    assert w.deadline("rebalance", "a") is None
    assert m.heartbeat().error is ErrorCode.REBALANCE_IN_PROGRESS
    assert w.deadline("session", "m") == 10_000
    m.join()
    m.sync()
    assert w.state == "Stable"


def test_who_does_not_give_back_after_a_reload_is_removed() -> None:
    w = ConsumerWorld(topics={"t": 4})
    a, b = w.consumer("a", rebalance_ms=20_000), w.consumer("b")
    a.join()
    b.join()
    a.heartbeat()
    w.reload()
    w.advance(20_000)
    settle([b])
    assert b.assigned == {"t": [0, 1, 2, 3]}


# --- logs that others wrote


VERSIONS = {GroupMetadataKey: GROUP_METADATA_VALUE_VERSION, OffsetCommitKey: OFFSET_COMMIT_VALUE_VERSION}


def load(w: ConsumerWorld, *records: tuple[Any, Any]) -> bool:
    """Read a log with these keys and values; does the shard serve then?"""
    shard = w.coordinator.shard_of("g")
    w.resign(shard.partition)
    loading = w.begin_load(shard.partition)
    encoded = [typed_record(key, value, value, VERSIONS.get(type(key), 0)).encoded for key, value in records]
    batches = [build_batch([Record(offset, 0, each.key, each.value)]) for offset, each in enumerate(encoded)]
    loading.apply_run(b"".join(batches), 0)
    w.end_load(loading)
    return not w.seen(ShardNotLoaded)


GROUP_3 = (ConsumerGroupMetadataKey(group_id="g"), ConsumerGroupMetadataValue(epoch=2))
GROUP_3_GONE = (GROUP_3[0], None)
TOPICS_4 = (
    ConsumerGroupPartitionMetadataKey(group_id="g"),
    ConsumerGroupPartitionMetadataValue(topics=(SubscribedTopic(topic_id=T, topic_name="t", num_partitions=3),)),
)
MEMBER_5 = (
    ConsumerGroupMemberMetadataKey(group_id="g", member_id="a"),
    ConsumerGroupMemberMetadataValue(
        instance_id=None,
        rack_id=None,
        server_assignor=None,
        client_id="a",
        client_host="/127.0.0.1",
        subscribed_topic_names=("t",),
        subscribed_topic_regex="",
        rebalance_timeout_ms=60_000,
        classic_member_metadata=None,
    ),
)
ASSIGNED_6 = (
    ConsumerGroupTargetAssignmentMetadataKey(group_id="g"),
    ConsumerGroupTargetAssignmentMetadataValue(assignment_epoch=2),
)
TARGET_7 = (
    ConsumerGroupTargetAssignmentMemberKey(group_id="g", member_id="a"),
    ConsumerGroupTargetAssignmentMemberValue(topic_partitions=(TargetPartitions(topic_id=T, partitions=(0, 1, 2)),)),
)
CURRENT_8 = (
    ConsumerGroupCurrentMemberAssignmentKey(group_id="g", member_id="a"),
    ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=2,
        previous_member_epoch=0,
        state=0,
        assigned_partitions=(CurrentPartitions(topic_id=T, partitions=(0, 1, 2)),),
    ),
)
REGEX_16_GONE = (ConsumerGroupRegularExpressionKey(group_id="g", regular_expression="x"), None)
OF_KAFKA_40 = (MEMBER_5, TOPICS_4, GROUP_3, TARGET_7, ASSIGNED_6, CURRENT_8)


def test_a_log_of_kafka_4_0() -> None:
    """Partitions have the epoch of their member; the record of the topics goes with the next heartbeat."""
    w = ConsumerWorld()
    assert load(w, *OF_KAFKA_40)
    assert w.state == "Stable"
    assert w.consumers.members["a"].assigned == {T: {0: 2, 1: 2, 2: 2}}
    a = w.consumer()
    a.epoch = 2
    a.heartbeat()
    assert w.last() == "group -topics assigned current:a"
    assert not w.consumers.epochs.has_topics_record
    before = len(w.batches)
    settle([a])
    assert all("topics" not in line for line in w.written(before))


def test_a_member_whose_expression_is_null() -> None:
    """As a record may have it; an empty one is another, and no subscription either."""
    w = ConsumerWorld()
    without = dataclasses.replace(MEMBER_5[1], subscribed_topic_regex=None)
    assert load(w, (MEMBER_5[0], without), GROUP_3, TARGET_7, ASSIGNED_6, CURRENT_8)
    a = w.consumer()
    a.epoch = 2
    a.heartbeat(subscribed_topic_regex="")
    assert w.last().startswith("member:a group")
    assert a.stored.topic_regex == ""


def test_a_state_of_a_newer_kafka() -> None:
    w = ConsumerWorld()
    unknown = (CURRENT_8[0], dataclasses.replace(CURRENT_8[1], state=7))
    assert load(w, MEMBER_5, GROUP_3, TARGET_7, ASSIGNED_6, unknown)
    a = w.consumer()
    a.epoch = 2
    assert a.stored.state is MemberState.UNKNOWN
    a.heartbeat(subscribed_topic_names=("t",))
    w.topics.grow("t", 4)
    assert a.heartbeat().error is ErrorCode.FENCED_MEMBER_EPOCH
    a.join()
    assert a.assigned == {"t": [0, 1, 2, 3]}


@pytest.mark.parametrize(
    ("gone", "why"),
    [
        ([GROUP_3_GONE], "there are 1 members"),
        ([(CURRENT_8[0], None), (MEMBER_5[0], None)], "there is a target assignment of it"),
        ([(TARGET_7[0], None), (MEMBER_5[0], None)], "there is a current assignment of it"),
        ([(ASSIGNED_6[0], None)], "1 members have one"),
        (
            [(CURRENT_8[0], None), (TARGET_7[0], None), (MEMBER_5[0], None), GROUP_3_GONE],
            "there is a target assignment",
        ),
    ],
)
def test_tombstones_out_of_order(gone: list[tuple[Any, Any]], why: str) -> None:
    """Kafka fails to load such a log."""
    w = ConsumerWorld()
    assert not load(w, *OF_KAFKA_40, *gone)
    assert why in w.seen(ShardNotLoaded)[0].why
    assert w.described().error_code == ErrorCode.NOT_COORDINATOR


def test_a_target_of_a_member_that_is_gone_keeps_the_group() -> None:
    w = ConsumerWorld()
    assert not load(w, GROUP_3, TARGET_7, GROUP_3_GONE)
    assert "1 members have targets" in w.seen(ShardNotLoaded)[0].why


def test_tombstones_in_order_leave_nothing() -> None:
    w = ConsumerWorld()
    gone = [(key, None) for key in (CURRENT_8[0], TARGET_7[0], ASSIGNED_6[0], MEMBER_5[0], TOPICS_4[0], GROUP_3[0])]
    assert load(w, *OF_KAFKA_40, REGEX_16_GONE, *gone)
    assert not w.exists


def test_tombstones_of_what_is_not_there() -> None:
    """As compaction leaves them."""
    w = ConsumerWorld()
    gone = [(key, None) for key in (CURRENT_8[0], TARGET_7[0], MEMBER_5[0], TOPICS_4[0], ASSIGNED_6[0], GROUP_3[0])]
    assert load(w, *gone, REGEX_16_GONE)
    assert not w.exists
    assert load(w, GROUP_3, CURRENT_8_GONE, (MEMBER_5[0], None), *OF_KAFKA_40)
    assert w.state == "Stable"


CURRENT_8_GONE = (CURRENT_8[0], None)


def test_a_classic_group_in_between() -> None:
    """A record of a consumer group for a classic group is a fault; for one that only has offsets it is none."""
    w = ConsumerWorld()
    empty = GroupMetadataValue(protocol_type="consumer", generation=1, protocol=None, leader=None, members=())
    assert not load(w, (GroupMetadataKey(group="g"), empty), GROUP_3)
    assert "and g is a classic group" in w.seen(ShardNotLoaded)[0].why


def test_a_group_of_offsets_becomes_a_consumer_group() -> None:
    w = ConsumerWorld()
    w.commit()
    (offset,) = w.records
    assert load(w, (offset.key, offset.value), *OF_KAFKA_40)
    assert isinstance(w.consumers, ConsumerGroup)
    assert w.fetch() == {("t", 0): 5}


def test_topics_without_an_id() -> None:
    """The zero id, which clients and old logs may have, is an id like others."""
    w = ConsumerWorld()
    none = uuid.UUID(int=0)
    target = stored.ConsumerGroupTargetAssignmentMemberValue(
        topic_partitions=(TargetPartitions(topic_id=None, partitions=(1,)),)
    )
    current = dataclasses.replace(
        CURRENT_8[1], assigned_partitions=(CurrentPartitions(topic_id=None, partitions=(1,), assignment_epochs=(2,)),)
    )
    assert load(w, MEMBER_5, GROUP_3, (TARGET_7[0], target), ASSIGNED_6, (CURRENT_8[0], current))
    assert w.consumers.members["a"].assigned == {none: {1: 2}}
    assert w.consumers.targets["a"] == {none: (1,)}
    a = w.consumer()
    a.epoch = 2
    a.owns({"gone": [1]})
    assert a.assigned == {"t": [0, 1, 2]}

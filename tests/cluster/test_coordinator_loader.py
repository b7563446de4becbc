"""A node takes its groups back from ``__consumer_offsets``, a piece at a time."""

from typing import Any

import pytest

from groupcoord.broker.log_segment import LogSegment
from groupcoord.cluster import coordinator_loader
from groupcoord.cluster.cluster_core import ClusterCore
from groupcoord.cluster.coordinator_partition_writer import HOLD
from groupcoord.coordinator.events import ShardLoaded, ShardNotLoaded
from groupcoord.core.effects import Effect, EmitEvent, LogRecord
from groupcoord.core.events import Event
from groupcoord.protocol.apis import ApiKey
from groupcoord.protocol.apis.offset_fetch import OffsetFetchRequestGroup
from groupcoord.protocol.batches.record_batch import build_batch, records_in
from groupcoord.protocol.batches.records import Record
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages import ListGroupsRequest, OffsetFetchRequest
from tests.cluster.test_cluster_core import GROUP, PARTITION, Counting, answer, ask, commit, new_node, stored


def events(effects: list[Effect], kind: type[Event]) -> list[Any]:
    return [effect.event for effect in effects if isinstance(effect, EmitEvent) and isinstance(effect.event, kind)]


def committed(node: ClusterCore) -> tuple[int, list[int]]:
    """(error, committed offsets) of the group."""
    request = OffsetFetchRequest(groups=(OffsetFetchRequestGroup(group_id=GROUP, topics=None),))
    (group,) = answer(ask(node, ApiKey.OFFSET_FETCH, request, version=9)).groups
    return group.error_code, [partition.committed_offset for topic in group.topics for partition in topic.partitions]


def node_with_commits(*offsets: int) -> ClusterCore:
    node = new_node()
    node.create_topic("orders", 1, 0)
    for offset in offsets:
        ask(node, ApiKey.OFFSET_COMMIT, commit(offset), version=9)
    return node


def moved_away_and_back(node: ClusterCore) -> None:
    node.resign(PARTITION, 0)
    assert committed(node) == (ErrorCode.NOT_COORDINATOR, [])
    node.load(PARTITION, 0)


def test_it_serves_again_when_its_log_is_read() -> None:
    node = node_with_commits(5, 6)
    moved_away_and_back(node)
    assert committed(node) == (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, [])
    assert answer(ask(node, ApiKey.LIST_GROUPS, ListGroupsRequest())).error_code == 14
    assert node.next_deadline() == node.deadline_lower_bound() == 0
    (event,) = events(node.expire(7), ShardLoaded)
    assert (event.partition, event.records, event.took_ms) == (PARTITION, 2, 7)
    assert committed(node) == (0, [6])
    assert node.next_deadline() != 0


def test_a_long_log_is_read_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    node = node_with_commits(*range(10))
    log = node.broker.log("__consumer_offsets", PARTITION)
    assert log is not None
    monkeypatch.setattr(coordinator_loader, "PIECE_BYTES", log.size // 5)
    moved_away_and_back(node)
    pieces = 0
    while node.next_deadline() == 0:
        assert committed(node)[0] == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        node.expire(0)
        pieces += 1
    assert pieces == 5
    assert committed(node) == (0, [9])


def test_a_node_that_starts_with_a_log_reads_it() -> None:
    before = node_with_commits(5)
    records = stored(before)
    log = before.broker.log("__consumer_offsets", PARTITION)
    assert log is not None
    data = log.read(0, 1_000_000, at_least_one=True).data()

    class Restored(ClusterCore):
        def _create_coordinators_topic(self, topic: str | None, now_ms: int) -> None:
            super()._create_coordinators_topic(topic, now_ms)
            fresh = self.broker.log("__consumer_offsets", PARTITION)
            assert fresh is not None
            fresh.append(data, now_ms)

    node = Restored(before.config, random=Counting(), now_ms=0)
    node.expire(0)
    assert committed(node) == (0, [5])
    assert stored(node) == records


@pytest.mark.parametrize(("marker", "expected"), [(b"\x01", 8), (b"\x00", 5)])
def test_transactions_that_a_cluster_left_are_understood(marker: bytes, expected: int) -> None:
    node = node_with_commits(5)
    log = node.broker.log("__consumer_offsets", PARTITION)
    assert log is not None
    batch = log.read(0, 1_000, at_least_one=True).data()
    (record,) = records_in(batch)
    newer = (record.value or b"")[:9] + b"\x08" + (record.value or b"")[10:]
    for records, attributes in (
        ([Record(1, 1, record.key, newer)], 0x10),
        ([Record(2, 1, b"\x00\x00\x00" + marker, b"\x00" * 6)], 0x30),
    ):
        more = build_batch(records, attributes=attributes, producer_id=7, producer_epoch=0)
        log.append_as_follower(more, 0)
    moved_away_and_back(node)
    (event,) = events(node.expire(0), ShardLoaded)
    assert event.records == 3
    assert committed(node) == (0, [expected])


def test_a_broken_batch_keeps_the_partition_from_coming_back() -> None:
    node = node_with_commits(5)
    node.broker.append_to("__consumer_offsets", PARTITION, [LogRecord(key=b"k", value=b"v")], 0)
    log = node.broker.log("__consumer_offsets", PARTITION)
    assert log is not None
    segment = log.segments[0]
    assert isinstance(segment, LogSegment)
    segment.data[61] = 0xFF
    moved_away_and_back(node)
    (event,) = events(node.expire(0), ShardNotLoaded)
    assert event.why.startswith("the batch at offset 0 or one after it is broken: ")
    assert committed(node)[0] == ErrorCode.NOT_COORDINATOR


def test_only_a_partition_that_is_there_can_be_loaded() -> None:
    with pytest.raises(KeyError, match="there is no partition 99"):
        new_node().load(99, 0)


def test_who_has_groups_resigns_before_it_loads_them_again() -> None:
    node = node_with_commits(5)
    with pytest.raises(
        ValueError, match=r"partition \d+ of __consumer_offsets is coordinated here: it has to resign first"
    ):
        node.load(PARTITION, 0)
    assert committed(node) == (0, [5])
    moved_away_and_back(node)
    node.load(PARTITION, 0)  # it is being read already, and is read once more
    node.expire(0)
    node.expire(0)
    assert committed(node) == (0, [5])


def test_who_waits_for_an_append_is_answered_before_the_log_is_read_again() -> None:
    node = node_with_commits()
    node.appends.gate = lambda append, now_ms: HOLD
    ask(node, ApiKey.OFFSET_COMMIT, commit(5), version=9)
    (held,) = node.appends.held()
    with pytest.raises(ValueError, match="it has to resign first"):
        node.load(PARTITION, 0)
    assert answer(node.appends.release(held, 0)).topics[0].partitions[0].error_code == ErrorCode.NONE
    assert committed(node) == (0, [5])

"""``__consumer_offsets`` is compacted on request, and nobody who uses it meanwhile is told anything wrong."""

import pytest

from groupcoord.broker.events import LogCleaned
from groupcoord.cluster import coordinator_loader
from groupcoord.coordinator.events import ShardLoaded
from groupcoord.protocol.apis import ApiKey
from groupcoord.protocol.errors import ErrorCode
from tests.cluster.test_cluster_core import PARTITION, ask, commit, stored
from tests.cluster.test_coordinator_loader import committed, events, moved_away_and_back, node_with_commits


def test_of_each_key_the_last_record_is_left() -> None:
    node = node_with_commits(*range(20))
    (event,) = events(node.compact(PARTITION, 0), LogCleaned)
    assert (event.records_read, event.records_kept, event.end_offset) == (20, 1, 20)
    assert event.bytes_kept < event.bytes_read
    assert len(stored(node)) == 1
    assert committed(node) == (0, [19])
    ask(node, ApiKey.OFFSET_COMMIT, commit(20), version=9)
    assert committed(node) == (0, [20])
    assert node.compact(PARTITION + 1, 0) == [], "nothing is there"
    with pytest.raises(KeyError):
        node.compact(99, 0)


@pytest.mark.parametrize("pieces_before", range(6))
def test_a_partition_that_is_being_read_may_be_compacted(pieces_before: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coordinator_loader, "PIECE_BYTES", 300)
    node = node_with_commits(*range(12))
    moved_away_and_back(node)
    for _ in range(pieces_before):
        node.expire(0)
    assert committed(node)[0] == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert events(node.compact(PARTITION, 0), LogCleaned)
    loaded: list[ShardLoaded] = []
    while not loaded:
        loaded = events(node.expire(0), ShardLoaded)
    assert committed(node) == (0, [11])


def test_what_comes_back_after_a_compaction_is_what_went() -> None:
    node = node_with_commits(3, 5, 8)
    node.compact(PARTITION, 0)
    moved_away_and_back(node)
    (event,) = events(node.expire(0), ShardLoaded)
    assert event.records == 1
    assert committed(node) == (0, [8])

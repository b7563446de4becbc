"""Which leader wrote what, and where its part of the log ends."""

import pytest

from groupcoord.broker.leader_epoch_cache import EpochEntry, LeaderEpochCache
from groupcoord.broker.partition_log import EARLIEST, LATEST, FoundOffset
from groupcoord.protocol.apis.metadata import MetadataRequest
from groupcoord.protocol.batches.record_batch import read_header
from groupcoord.protocol.errors import ErrorCode
from tests.broker.data_plane import THEN_MS, DataPlane, batch, reading, wanting

HISTORY = [EpochEntry(1, 10), EpochEntry(3, 25), EpochEntry(7, 40)]


def test_a_log_made_here_knows_epoch_0() -> None:
    for epochs in (LeaderEpochCache(), LeaderEpochCache([])):
        assert (epochs.latest, epochs.of_offset(5)) == (0, 0)
        assert epochs.end_of(0, 3, 9) == (0, 9)
        assert epochs.end_of(1, 3, 9) == epochs.end_of(-1, 3, 9) == (-1, -1)
        assert epochs.end_of(-7, 3, 9) == (-7, 3)


@pytest.mark.parametrize(
    ("epoch", "found"),
    [(0, (0, 10)), (1, (1, 25)), (2, (1, 25)), (3, (3, 40)), (6, (3, 40)), (7, (7, 60)), (8, (-1, -1))],
)
def test_where_an_epoch_ends(epoch: int, found: tuple[int, int]) -> None:
    assert LeaderEpochCache(HISTORY).end_of(epoch, 10, 60) == found


def test_epochs_before_the_start_of_the_log_are_forgotten() -> None:
    epochs = LeaderEpochCache(HISTORY)
    assert epochs.since(5) == HISTORY
    assert epochs.since(30) == [EpochEntry(3, 30), EpochEntry(7, 40)]
    assert epochs.since(50) == [EpochEntry(7, 50)]
    assert epochs.end_of(1, 30, 60) == (1, 30)
    assert epochs.end_of(1, 50, 60) == (1, 50)


def test_which_epoch_wrote_an_offset() -> None:
    epochs = LeaderEpochCache(HISTORY)
    assert [epochs.of_offset(offset) for offset in (0, 10, 24, 25, 99)] == [1, 1, 1, 3, 7]


def test_epochs_come_and_go() -> None:
    epochs = LeaderEpochCache(HISTORY)
    epochs.assign(7, 50)
    epochs.assign(8, 55)
    assert epochs.entries == [*HISTORY, EpochEntry(8, 55)]
    epochs.truncate_from(40)
    assert epochs.entries == HISTORY[:2]
    epochs.truncate_from(0)
    assert epochs.entries == HISTORY[:1]


def test_who_has_an_older_leader_in_mind_is_fenced() -> None:
    plane = DataPlane()
    plane.topic("orders")
    plane.produced("orders", batch(b"a"))
    log = plane.log("orders")
    topic = plane.broker.topics["orders"]
    led = topic.metadata.partitions[0]
    for leader in (-1, 1, -1, 1, -1, 1):
        topic.set_state(0, led._replace(leader=leader))
    assert log.epochs.entries == [EpochEntry(0, 0), EpochEntry(6, 1)]
    plane.produced("orders", batch(b"b"))
    assert read_header(log.read(1, 100, at_least_one=True).data()).leader_epoch == 6
    for epoch, error in ((-1, 0), (6, 0), (5, ErrorCode.FENCED_LEADER_EPOCH), (7, ErrorCode.UNKNOWN_LEADER_EPOCH)):
        response = plane.fetch(reading("orders", wanting(0, current_leader_epoch=epoch)))
        assert response.responses[0].partitions[0].error_code == error
    assert [log.offset_for_timestamp(at_ms) for at_ms in (EARLIEST, LATEST, THEN_MS)] == [
        FoundOffset(-1, 0, 0),
        FoundOffset(-1, 2, 6),
        FoundOffset(THEN_MS, 0, 0),
    ]
    [described] = plane.ask(MetadataRequest(topics=None), 9).topics
    assert described.partitions[0].leader_epoch == 6


def test_each_leader_begins_an_epoch_and_one_that_wrote_nothing_leaves_none() -> None:
    """As ``LeaderEpochFileCache`` keeps its entries apart: by epoch and by offset."""
    epochs = LeaderEpochCache()
    epochs.begin(1, 0)
    assert epochs.entries == [EpochEntry(1, 0)]
    epochs.begin(2, 5)
    epochs.begin(3, 5)
    assert epochs.entries == [EpochEntry(1, 0), EpochEntry(3, 5)]
    assert epochs.latest == 3
    assert [epochs.end_of(epoch, 0, 7) for epoch in (0, 1, 2, 3, 4)] == [(0, 0), (1, 5), (1, 5), (3, 7), (-1, -1)]

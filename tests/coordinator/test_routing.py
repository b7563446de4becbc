from itertools import count

import pytest

from groupcoord.coordinator.config import CoordinatorConfig
from groupcoord.coordinator.routing import Address, CoordinatorRouting
from groupcoord.coordinator.shard import Shard
from groupcoord.core.api_error import ApiError
from groupcoord.core.timers import Timers
from groupcoord.protocol.errors import ErrorCode


class Brokers:
    """Brokers 7 and 8, and who leads which partition."""

    def __init__(self, *leaders: int) -> None:
        self.leaders = leaders

    def ids(self) -> range:
        return range(7, 9)

    def offsets_leaders(self) -> tuple[int, ...]:
        return self.leaders

    def address(self, broker_id: int) -> Address:
        return Address(broker_id, "kafka", 9085 + broker_id)


def shard(partition: int) -> Shard:
    return Shard(
        partition,
        CoordinatorConfig(),
        Timers(),
        lambda: "",
        count(1).__next__,
        session_over=lambda *_: None,
        pending_over=lambda *_: None,
    )


def seen(places: CoordinatorRouting, shards: list[Shard], broker: int) -> list[bool]:
    """Of each shard: does the broker see the one that has the groups?"""
    return [one is own for one, own in zip(places.seen_by(broker), shards, strict=True)]


def test_each_broker_sees_the_shards_it_leads_and_others_that_refuse() -> None:
    shards = [shard(0), shard(1), shard(2)]
    places = CoordinatorRouting(shards, Brokers(7, 8, 7), shard)
    assert seen(places, shards, 0) == [True, False, True]
    assert seen(places, shards, 1) == [False, True, False]
    with pytest.raises(ApiError, match="another broker has partition 1 of __consumer_offsets") as refused:
        places.seen_by(0)[1].groups.get("g")
    assert refused.value.code is ErrorCode.NOT_COORDINATOR


def test_a_leader_that_moves_takes_its_shard_along() -> None:
    shards = [shard(0), shard(1)]
    brokers = Brokers(7, 8)
    places = CoordinatorRouting(shards, brokers, shard)
    assert places.seen_by(0) is places.seen_by(0)
    brokers.leaders = (8, 8)
    assert seen(places, shards, 0) == [False, False]
    assert seen(places, shards, 1) == [True, True]
    assert places.coordinator_of(0) == Address(8, "kafka", 9093)


def test_a_partition_that_is_nowhere_is_nobodys() -> None:
    shards = [shard(0), shard(1)]
    places = CoordinatorRouting(shards, Brokers(8), shard)
    assert (seen(places, shards, 0), seen(places, shards, 1)) == ([False, True], [True, True])
    assert places.coordinator_of(1) is None

"""Which broker has which shards."""

import pytest

from groupcoord.coordinator.runtime.coordinator_placement import Address, CoordinatorRouting
from groupcoord.core.api_error import ApiError
from groupcoord.protocol.errors import ErrorCode
from tests.coordinator.runtime.counters import TOPIC, Bench


class Brokers:
    """Brokers 7 and 8, and who leads which partition."""

    def __init__(self, *leaders: int) -> None:
        self.by_partition = leaders

    def ids(self) -> range:
        return range(7, 9)

    def leaders(self, topic: str) -> tuple[int, ...]:
        assert topic == TOPIC
        return self.by_partition

    def address(self, broker_id: int, listener: int = 0) -> Address:
        return Address(broker_id, "kafka", 9085 + broker_id + 100 * listener)


def test_each_broker_sees_the_shards_it_leads_and_others_that_refuse() -> None:
    runtime = Bench().runtime
    routing = CoordinatorRouting(runtime, Brokers(7, 8))
    for broker in (0, 1):
        seen = [one is own for one, own in zip(routing.seen_by(broker), runtime.shards, strict=True)]
        assert seen == [broker == 0, broker == 1]
    with pytest.raises(ApiError, match="another broker has partition 1 of __counters") as refused:
        routing.seen_by(0)[1].require_active()
    assert refused.value.code is ErrorCode.NOT_COORDINATOR


def test_a_leader_that_moves_takes_its_shard_along() -> None:
    runtime = Bench().runtime
    brokers = Brokers(7, 8)
    routing = CoordinatorRouting(runtime, brokers)
    assert routing.seen_by(0) is routing.seen_by(0)
    brokers.by_partition = (8, 8)
    assert routing.seen_by(1) == runtime.shards
    assert routing.coordinator_of(0) == Address(8, "kafka", 9093)
    assert routing.coordinator_of(0, 1) == Address(8, "kafka", 9193)


def test_a_partition_that_does_not_exist_has_no_coordinator() -> None:
    runtime = Bench().runtime
    routing = CoordinatorRouting(runtime, Brokers(8))
    assert routing.seen_by(0)[1] is routing.seen_by(1)[1] is runtime.shards[1]
    assert routing.coordinator_of(1) is None

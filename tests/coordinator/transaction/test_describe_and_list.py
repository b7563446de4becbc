"""What administrators see of transactions, and what a partition does that cannot be read."""

from typing import Any

import pytest

from groupcoord.coordinator.runtime.coordinator_placement import Address
from groupcoord.coordinator.transaction.events import TransactionsLoaded, TransactionsNotLoaded
from groupcoord.core.effect_collector import HandlerContext
from groupcoord.core.events import AdminAction
from groupcoord.protocol.coordinator_records import transaction_log
from groupcoord.protocol.errors import ErrorCode as E
from groupcoord.protocol.errors import WireError
from groupcoord.protocol.messages import DescribeTransactionsRequest, ListTransactionsRequest
from tests.coordinator.transaction.world import P0, P1, World


@pytest.fixture
def world() -> World:
    made = World()
    made.init()
    made.add(P0, P1)
    made.init(transactional_id="other")
    return made


def described(world: World, transactional_id: str) -> Any:
    """What DescribeTransactions says of one."""
    return world.ask(DescribeTransactionsRequest(transactional_ids=(transactional_id,)), 0).transaction_states[0]


def listed(world: World, version: int = 2, **filters: Any) -> set[str]:
    """The transactional ids that ListTransactions names."""
    answer = world.ask(ListTransactionsRequest(**filters), version)
    assert answer.error_code == 0
    return {each.transactional_id for each in answer.transaction_states}


def test_a_transaction_is_described(world: World) -> None:
    found = described(world, "x")
    assert (found.transaction_state, found.transaction_timeout_ms, found.transaction_start_time_ms) == (
        "Ongoing",
        60_000,
        1_000,
    )
    assert (found.producer_id, found.producer_epoch) == (1, 0)
    assert [(topic.topic, set(topic.partitions)) for topic in found.topics] == [("t", {0, 1})]
    assert world.shard().committed is world.shard().machine  # what is being stored is not seen
    assert described(world, "").error_code == E.INVALID_REQUEST
    unknown = described(world, "unknown")
    assert (unknown.error_code, unknown.producer_id) == (E.TRANSACTIONAL_ID_NOT_FOUND, 0)


def test_transactions_are_listed(world: World) -> None:
    assert listed(world) == listed(world, 0) == {"x", "other"}
    assert listed(world, state_filters=("Ongoing", "Nonsense")) == {"x"}
    assert listed(world, producer_id_filters=(2,)) == {"other"}
    world.wait(5_000)
    assert listed(world, duration_filter=4_999) == {"x", "other"}  # as in Kafka: what is not open has begun long ago
    assert listed(world, duration_filter=5_000) == {"other"}
    assert listed(world, transactional_id_pattern="o.*") == {"other"}
    assert listed(world, transactional_id_pattern="o") == set()
    nonsense = world.ask(ListTransactionsRequest(state_filters=("Nonsense",)), 2)
    assert (nonsense.unknown_state_filters, nonsense.transaction_states) == (("Nonsense",), ())
    assert (
        world.ask(ListTransactionsRequest(transactional_id_pattern="("), 2).error_code == E.INVALID_REGULAR_EXPRESSION
    )


def test_while_a_log_is_being_read(world: World) -> None:
    ctx = HandlerContext(0, AdminAction("a test"))
    world.coordinator.runtime.resign(world.shard().partition, ctx)
    assert described(world, "x").error_code == E.NOT_COORDINATOR
    assert world.coordinator.coordinator_of("x", Address(1, "h", 1)) is None
    world.coordinator.runtime.load(world.shard().partition, ctx)
    assert described(world, "x").error_code == E.COORDINATOR_LOAD_IN_PROGRESS
    assert world.init().error_code == E.COORDINATOR_LOAD_IN_PROGRESS
    assert world.add(P0, producer_id=1, producer_epoch=0, verify=True) == [E.COORDINATOR_LOAD_IN_PROGRESS]
    assert world.ask(ListTransactionsRequest(), 2).error_code == E.COORDINATOR_LOAD_IN_PROGRESS
    assert world.coordinator.coordinator_of("x", Address(1, "h", 1)) == Address(1, "h", 1)


def test_records_that_are_not_understood(world: World) -> None:
    ctx = HandlerContext(0, AdminAction("a test"))
    partition = world.shard().partition
    world.coordinator.runtime.resign(partition, ctx)
    loader = world.coordinator.runtime.load(partition, ctx)
    loader.end_transaction(1, committed=True)
    key = transaction_log.write_key("z")
    loader.apply([(0, b"\x00\x09", b""), (1, key, b"\x00\x09"), (2, key, None)])
    assert (loader.unknown, loader.failure) == (2, None)
    value = b"\x00\x00" + b"\x00" * 14 + b"\x63" + b"\xff" * 4 + b"\x00" * 16
    loader.apply([(3, key, value)])
    loader.finish(ctx, 4)
    world.carry_out(ctx.effects)
    (event,) = world.told(TransactionsNotLoaded)
    assert "no transaction state 99" in event.why
    assert described(world, "x").error_code == E.NOT_COORDINATOR
    with pytest.raises(WireError, match="cannot have 1 bytes"):
        transaction_log.read_key(b"\x00")
    assert transaction_log.read_value(b"\x00\x07") is None


def test_the_topic_goes_and_comes_back(world: World) -> None:
    ctx = HandlerContext(0, AdminAction("a test"))
    del world.topics["__transaction_state"]
    world.coordinator.runtime.topic_deleted(ctx)
    assert world.init().error_code == E.NOT_COORDINATOR
    world.topics["__transaction_state"] = 4
    assert world.init().error_code == E.NONE
    assert world.told(TransactionsLoaded) == []


class Brokers:
    """Two brokers that lead partitions in turn."""

    def ids(self) -> list[int]:
        return [1, 2]

    def leaders(self, topic: str) -> tuple[int, ...]:
        return (1, 2, 1, 2)

    def address(self, broker_id: int, listener: int = 0) -> Address:
        return Address(broker_id, "h", broker_id)


def test_each_broker_has_its_own() -> None:
    world = World(brokers=Brokers())
    here = world.shard().partition % 2
    request = DescribeTransactionsRequest(transactional_ids=("x",))
    elsewhere, found = (world.ask(request, 0, broker).transaction_states[0].error_code for broker in (1 - here, here))
    assert (elsewhere, found) == (E.NOT_COORDINATOR, E.TRANSACTIONAL_ID_NOT_FOUND)
    assert world.coordinator.coordinator_of("x", Address(0, "h", 0)) == Address(here + 1, "h", here + 1)

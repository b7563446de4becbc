"""What is in a transaction: added by its producer, or by the leaders of partitions, and verified by these."""

from typing import Any

import pytest

from groupcoord.coordinator.transaction.events import TransactionRefused
from groupcoord.coordinator.transaction.metadata import TransactionState
from groupcoord.core.effect_collector import HandlerContext
from groupcoord.core.transaction_verification_types import TopicPartition, TransactionalWrite
from groupcoord.protocol.apis import API_BY_REQUEST
from groupcoord.protocol.errors import ErrorCode as E
from groupcoord.protocol.messages import AddOffsetsToTxnRequest, AddPartitionsToTxnRequest, AddPartitionsToTxnResponse
from tests.coordinator.transaction.world import P0, P1, World, add_request

OFFSETS = ("__consumer_offsets", 5)


@pytest.fixture
def world() -> World:
    made = World()
    made.init()
    return made


@pytest.mark.parametrize("version", range(6))
def test_the_first_partition_begins_the_transaction(world: World, version: int) -> None:
    assert world.add(P0, version=version) == [E.NONE]
    data = world.data()
    assert (data.state, data.partitions, data.start_ms) == (TransactionState.ONGOING, (P0,), 1_000)
    assert data.client_version == (2 if version >= 4 else 0)
    world.wait(50)
    assert world.add(P0, P1, version=version) == [E.NONE, E.NONE]
    assert (set(world.data().partitions), world.data().start_ms) == ({P0, P1}, 1_000)
    written = len(world.log)
    assert world.add(P1, version=version) == [E.NONE]
    assert len(world.log) == written


@pytest.mark.parametrize(
    ("said", "old", "new"),
    [
        ({"producer_id": 9}, E.INVALID_PRODUCER_ID_MAPPING, E.INVALID_PRODUCER_ID_MAPPING),
        ({"producer_epoch": 9}, E.INVALID_PRODUCER_EPOCH, E.PRODUCER_FENCED),
        ({"transactional_id": ""}, E.INVALID_REQUEST, E.INVALID_REQUEST),
        ({"transactional_id": "unknown"}, E.INVALID_PRODUCER_ID_MAPPING, E.INVALID_PRODUCER_ID_MAPPING),
    ],
)
def test_who_may_not_add(world: World, said: dict[str, Any], old: E, new: E) -> None:
    assert world.add(P0, version=1, **said) == [old]
    assert world.add(P0, version=2, **said) == [new]
    assert world.add(P0, version=5, verify=True, **said) == [new]
    assert world.told(TransactionRefused)[0].error in {old.name, new.name}


def test_partitions_that_are_not_there(world: World) -> None:
    assert sorted(world.add(P0, ("t", 3), ("nowhere", 0))) == [
        E.UNKNOWN_TOPIC_OR_PARTITION,
        E.UNKNOWN_TOPIC_OR_PARTITION,
        E.OPERATION_NOT_ATTEMPTED,
    ]
    assert world.data().state is TransactionState.EMPTY


def test_only_brokers_add_internal_topics(world: World) -> None:
    own = ("__transaction_state", 0)
    assert sorted(world.add(P0, own, version=3)) == [E.TOPIC_AUTHORIZATION_FAILED, E.OPERATION_NOT_ATTEMPTED]
    assert world.add(own, version=4) == [E.NONE]


def test_several_transactions_in_one_request(world: World) -> None:
    world.init(transactional_id="y")
    request = add_request(4, world.transaction(P0), world.transaction(P1, verify=True, transactional_id="y"))
    first, second = world.ask(request, 4).results_by_transaction
    assert (first.transactional_id, second.transactional_id) == ("x", "y")
    assert second.topic_results[0].results_by_partition[0].partition_error_code == E.TRANSACTION_ABORTABLE


def test_an_error_for_all() -> None:
    world = World()
    assert world.ask(AddPartitionsToTxnRequest(), 4) is None  # as Kafka: it is never answered
    one = add_request(3, world.transaction(P0))
    failed = _error_response(one, 3)
    assert failed.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code == E.NOT_COORDINATOR
    assert _error_response(AddPartitionsToTxnRequest(), 4).error_code == E.NOT_COORDINATOR


def _error_response(request: AddPartitionsToTxnRequest, version: int) -> AddPartitionsToTxnResponse:
    api = API_BY_REQUEST[AddPartitionsToTxnRequest]
    assert api.upgrade is not None
    assert api.downgrade is not None
    failed = api.error_response(api.upgrade(request, version), version, E.NOT_COORDINATOR)
    found: AddPartitionsToTxnResponse = api.downgrade(failed, version)
    return found


def test_what_leaders_verify(world: World) -> None:
    assert world.add(P0, verify=True) == [E.TRANSACTION_ABORTABLE]
    world.add(P0)
    assert world.add(P0, verify=True) == [E.NONE]
    world.marker_errors[P0] = E.NOT_LEADER_OR_FOLLOWER
    world.end(4)
    assert world.add(P0, verify=True) == [E.CONCURRENT_TRANSACTIONS]
    assert world.add(P0) == [E.CONCURRENT_TRANSACTIONS]


def test_the_offsets_of_a_group(world: World) -> None:
    request = AddOffsetsToTxnRequest(transactional_id="x", producer_id=1, producer_epoch=0, group_id="g")
    assert [world.ask(request, version).error_code for version in range(5)] == [0] * 5
    assert world.data().partitions == (OFFSETS,)
    stale = AddOffsetsToTxnRequest(transactional_id="x", producer_id=1, producer_epoch=5, group_id="g")
    assert [world.ask(stale, version).error_code for version in (1, 2)] == [
        E.INVALID_PRODUCER_EPOCH,
        E.PRODUCER_FENCED,
    ]


@pytest.mark.parametrize(
    ("adds", "abortable", "epoch", "expected"),
    [
        (True, True, 0, {}),
        (True, True, 9, {P0: E.INVALID_PRODUCER_EPOCH}),
        (False, True, 0, {P0: E.TRANSACTION_ABORTABLE}),
        (False, False, 0, {P0: E.INVALID_TXN_STATE}),
    ],
)
def test_what_a_leader_is_told(
    world: World, adds: bool, abortable: bool, epoch: int, expected: dict[TopicPartition, E]
) -> None:
    told: list[object] = []
    ctx = HandlerContext(world.now_ms, world.last_call)
    producer = TransactionalWrite("x", 1, epoch, adds=adds, gives_abortable=abortable)
    world.coordinator.verify(ctx, world.last_call, producer, [P0], lambda _, errors: told.append(errors))
    world.carry_out(ctx.effects)
    assert told == [expected]
    assert world.data().partitions == ((P0,) if adds and not epoch else ())

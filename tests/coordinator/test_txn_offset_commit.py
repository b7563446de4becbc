"""TxnOffsetCommit: who may commit in a transaction, what is asked before, and what the answer and the log say."""

from collections.abc import Sequence
from typing import Any

import pytest

from groupcoord.coordinator.events import GroupCreated, RequestRefused, TransactionalOffsetsPending
from groupcoord.core.effect_collector import HandlerContext
from groupcoord.core.effects import Call
from groupcoord.core.transaction_verification_types import TopicPartition, TransactionalWrite, Verified
from groupcoord.protocol.apis import ApiKey
from groupcoord.protocol.apis.txn_offset_commit import TxnOffsetCommitRequestPartition, TxnOffsetCommitRequestTopic
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages import TxnOffsetCommitRequest
from tests.coordinator.consumer.consumers import ConsumerWorld
from tests.coordinator.consumer.test_epochs import at_epoch_3
from tests.coordinator.transactions import EPOCH, end_transaction, txn_commit, txn_commit_of
from tests.coordinator.world import GROUP, Asked, World

OK, MISSING = ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
UNKNOWN, ILLEGAL = ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION
FENCED = ErrorCode.FENCED_INSTANCE_ID


class Verifier:
    """Stands for the coordinator of transactions: ``answer`` gives what it is asked the same error every time."""

    def __init__(self, world: World) -> None:
        self.asked: list[tuple[TransactionalWrite, Sequence[TopicPartition]]] = []
        self._waiting: list[tuple[Call, Sequence[TopicPartition], Verified]] = []
        self._world = world
        world.coordinator.verify_transaction = self

    def __call__(
        self,
        ctx: HandlerContext,
        call: Call,
        write: TransactionalWrite,
        partitions: Sequence[TopicPartition],
        verified: Verified,
    ) -> None:
        self.asked.append((write, partitions))
        self._waiting.append((call, partitions, verified))
        self._world.unverified.add(call)

    def answer(self, error: ErrorCode = OK) -> None:
        call, partitions, verified = self._waiting.pop(0)
        self._world.unverified.remove(call)
        ctx = HandlerContext(self._world.now_ms, call)
        verified(ctx, dict.fromkeys(partitions, error) if error else {})
        self._world.carry_out(ctx.effects)


def error_of(asked: Asked) -> ErrorCode:
    (error,) = set(asked.partition_errors.values())
    return error


# --- what exists


def test_partitions_that_do_not_exist_are_answered_before_the_others() -> None:
    world = World()
    asked = txn_commit(world, {("t", 0): 1, ("nope", 0): 1, ("t", 77): 1, ("u", 1): 1})
    assert list(asked.partition_errors.items()) == [
        (("t", 77), MISSING),
        (("t", 0), OK),
        (("nope", 0), MISSING),
        (("u", 1), OK),
    ]


def test_if_nothing_of_it_exists_nothing_else_is_looked_at() -> None:
    world = World()
    verifier = Verifier(world)
    assert txn_commit(world, {("nope", 0): 1}, group="").partition_errors == {("nope", 0): MISSING}
    assert txn_commit(world, {}).answer.topics == ()
    topics = tuple(TxnOffsetCommitRequestTopic(name=name) for name in ("t", "nope"))
    request = TxnOffsetCommitRequest(
        transactional_id="x", group_id=GROUP, producer_id=7, producer_epoch=EPOCH, topics=topics
    )
    answer = world.ask(ApiKey.TXN_OFFSET_COMMIT, request).answer
    assert [(topic.name, topic.partitions) for topic in answer.topics] == [("nope", ())]
    assert (verifier.asked, world.exists) == ([], False)


def test_an_empty_group_id_is_invalid() -> None:
    world = World()
    verifier = Verifier(world)
    asked = txn_commit(world, {("t", 0): 1, ("nope", 0): 1}, group="")
    assert asked.partition_errors == {("nope", 0): MISSING, ("t", 0): ErrorCode.INVALID_GROUP_ID}
    assert verifier.asked == []
    assert (
        world.seen(RequestRefused)[-1].text() == "TxnOffsetCommit is refused with INVALID_GROUP_ID: group_id is empty"
    )


# --- the transaction


@pytest.mark.parametrize(("version", "gives_abortable", "adds"), [(0, False, False), (4, True, False), (5, True, True)])
def test_the_partition_of_the_group_must_be_in_the_transaction(version: int, gives_abortable: bool, adds: bool) -> None:
    world = World()
    verifier = Verifier(world)
    asked = txn_commit(world, version=version)
    assert asked.parked
    write = TransactionalWrite("tx-7", 7, EPOCH, adds=adds, gives_abortable=gives_abortable)
    assert verifier.asked == [(write, [("__consumer_offsets", 3)])]
    assert not world.exists
    verifier.answer()
    assert error_of(asked) is OK
    assert world.exists


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (ErrorCode.INVALID_TXN_STATE, ErrorCode.INVALID_TXN_STATE),
        (ErrorCode.TRANSACTION_ABORTABLE, ErrorCode.TRANSACTION_ABORTABLE),
        (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.INVALID_PRODUCER_EPOCH),
        (ErrorCode.NETWORK_EXCEPTION, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_COORDINATOR),
    ],
)
def test_a_write_that_is_not_in_the_transaction_is_refused(error: ErrorCode, told: ErrorCode) -> None:
    world = World()
    verifier = Verifier(world)
    asked = txn_commit(world, {("t", 0): 1, ("u", 0): 1})
    verifier.answer(error)
    assert asked.partition_errors == dict.fromkeys([("t", 0), ("u", 0)], told)
    assert (world.exists, world.stored) == (False, [])
    why = f"__consumer_offsets-3 is not in the transaction of 'tx-7': {error.name}"
    assert world.seen(RequestRefused)[-1].why == why


def test_a_coordinator_that_is_not_there_does_not_ask() -> None:
    world = World()
    verifier = Verifier(world)
    world.resign(3)
    assert error_of(txn_commit(world)) is ErrorCode.NOT_COORDINATOR
    assert verifier.asked == []


@pytest.mark.parametrize(
    ("version", "error"),
    [(1, ErrorCode.COORDINATOR_NOT_AVAILABLE), (2, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)],
)
def test_old_producers_do_not_know_that_a_coordinator_loads(version: int, error: ErrorCode) -> None:
    """It is verified all the same, and in v5 the partition added."""
    world = World()
    verifier = Verifier(world)
    world.begin_load(3)
    asked = txn_commit(world, version=version)
    verifier.answer()
    assert error_of(asked) is error


# --- the group


def test_a_commit_from_outside_creates_a_simple_group() -> None:
    world = World()
    assert error_of(txn_commit(world)) is OK
    assert world.group.is_simple
    assert [event.simple for event in world.seen(GroupCreated)] == [True]
    (described,) = world.describe().answer.groups
    assert (described.group_state, described.protocol_type) == ("Empty", "")
    assert [(listed.group_id, listed.group_state) for listed in world.list_groups().answer.groups] == [("g", "Empty")]


def test_a_generation_of_a_group_that_does_not_exist_is_illegal() -> None:
    world = World()
    assert error_of(txn_commit(world, generation=0, member_id="m")) is ILLEGAL
    assert not world.exists


@pytest.mark.parametrize("is_synced", [True, False])
@pytest.mark.parametrize(
    ("terms", "error"),
    [
        ({}, OK),
        ({"generation": -1, "member_id": ""}, OK),
        ({"generation": 0}, ILLEGAL),
        ({"generation": -1}, ILLEGAL),
        ({"member_id": ""}, UNKNOWN),
        ({"member_id": "stranger"}, UNKNOWN),
        ({"generation": -1, "member_id": "", "instance": "i"}, UNKNOWN),
    ],
)
def test_who_says_that_it_is_a_member_must_be_one(terms: dict[str, Any], error: ErrorCode, is_synced: bool) -> None:
    """Also while members do not know their assignment yet, unlike OffsetCommit."""
    world = World()
    member = world.member("a")
    world.joined(member)
    if is_synced:
        member.sync()
    assert error_of(txn_commit_of(member, **terms)) is error


def test_a_member_that_another_took_the_place_of_is_fenced() -> None:
    world = World()
    (old,) = world.stable(world.member("a", instance="i"))
    new = world.member("b", instance="i")
    new.join()
    assert error_of(txn_commit_of(old)) is FENCED
    assert error_of(txn_commit_of(new, generation=world.group.generation_id)) is OK


def test_in_a_group_without_members_a_member_id_alone_does_not_matter() -> None:
    world = World()
    world.commit()
    assert error_of(txn_commit(world, member_id="whoever")) is OK
    assert error_of(txn_commit(world, member_id="whoever", generation=0)) is UNKNOWN


def test_a_commit_in_a_transaction_does_not_keep_the_session() -> None:
    world = World()
    (member,) = world.stable("a")
    before = world.deadline("session", member.member_id)
    world.advance(5_000)
    assert error_of(txn_commit_of(member)) is OK
    assert before is not None
    assert world.deadline("session", member.member_id) == before - 5_000


# --- consumer groups


T0, T1, T2 = ("t", 0), ("t", 1), ("t", 2)


@pytest.mark.parametrize(
    ("terms", "errors"),
    [
        ({}, {T0: OK, T2: OK}),
        ({"generation": -1, "member_id": ""}, {T0: OK}),
        ({"generation": -1, "member_id": "", "instance": "i"}, {T0: UNKNOWN}),
        ({"generation": -2, "member_id": ""}, {T0: UNKNOWN}),
        ({"member_id": "z"}, {T0: UNKNOWN}),
        ({"generation": 4}, {T0: ILLEGAL}),
        ({"generation": 2}, {T0: OK, T1: OK}),  # it has had them since
        ({"generation": 2}, {T0: ILLEGAL, T2: ILLEGAL}),  # t-2 it has not: none is taken
        ({"generation": 1}, {T0: ILLEGAL}),
        ({"generation": -1}, {T0: ILLEGAL}),
        ({"version": 3}, {T0: OK}),
    ],
)
def test_a_member_of_a_consumer_group_commits_at_its_epoch(
    terms: dict[str, Any], errors: dict[tuple[str, int], ErrorCode]
) -> None:
    """Producers are never told STALE_MEMBER_EPOCH."""
    world, a = at_epoch_3()
    as_told: dict[str, Any] = {"member_id": a.member_id, "generation": 3}
    asked = txn_commit(world, dict.fromkeys(errors, 5), **(as_told | terms))
    assert asked.partition_errors == errors


def test_what_a_member_has_of_a_topic_that_is_gone_meanwhile_is_not_known() -> None:
    world, a = at_epoch_3()
    verifier = Verifier(world)
    now, before = (txn_commit(world, member_id=a.member_id, generation=epoch) for epoch in (3, 2))
    world.topics.delete("t")
    verifier.answer()
    verifier.answer()
    assert (error_of(now), error_of(before)) == (OK, ILLEGAL)
    assert world.seen(RequestRefused)[-1].why == "topic t is gone"


def test_an_empty_consumer_group_takes_commits_from_outside() -> None:
    world = ConsumerWorld()
    world.joined_consumers("a")[0].leave()
    assert error_of(txn_commit(world, member_id="whoever", generation=-1)) is OK
    assert error_of(txn_commit(world, member_id="whoever", generation=0)) is UNKNOWN


# --- what is stored


def test_the_record_has_all_of_the_commit_but_no_topic_id() -> None:
    world = World(now_ms=50)
    txn_commit(world, {("t", 1): 9}, metadata="m", leader_epoch=4)
    (append,) = world.stored
    assert (append.producer_id, append.producer_epoch) == (7, EPOCH)
    (value,) = world.offset_values
    assert (value.offset, value.leader_epoch, value.metadata) == (9, 4, "m")
    assert (value.commit_timestamp_ms, value.topic_id) == (50, None)
    assert world.records[0].key == world.stored[0].records[0].key


def test_one_request_is_one_batch() -> None:
    world = World()
    txn_commit(world, {("t", 0): 1, ("u", 0): 2})
    txn_commit(world, {("t", 0): 3})
    assert [[value.value.offset for value in batch] for batch in world.batches] == [[1, 2], [3]]


def test_too_much_metadata_keeps_no_other_partition() -> None:
    world = World(offset_metadata_max_bytes=2)
    partitions = tuple(
        TxnOffsetCommitRequestPartition(partition_index=index, committed_offset=index, committed_metadata=metadata)
        for index, metadata in enumerate(("long", None, "ok"))
    )
    request = TxnOffsetCommitRequest(
        transactional_id="x",
        group_id=GROUP,
        producer_id=7,
        producer_epoch=EPOCH,
        topics=(TxnOffsetCommitRequestTopic(name="t", partitions=partitions),),
    )
    asked = world.ask(ApiKey.TXN_OFFSET_COMMIT, request)
    too_large = ErrorCode.OFFSET_METADATA_TOO_LARGE
    assert asked.partition_errors == {("t", 0): too_large, ("t", 1): OK, ("t", 2): OK}
    assert [value.metadata for value in world.offset_values] == ["", "ok"]
    assert error_of(txn_commit(world, metadata="long")) is too_large
    assert len(world.stored) == 1


def test_the_answer_waits_until_the_offsets_are_stored() -> None:
    world = World()
    world.hold_appends()
    asked = txn_commit(world)
    assert asked.parked
    world.confirm()
    assert error_of(asked) is OK
    (event,) = world.seen(TransactionalOffsetsPending)
    assert event.text() == "a client outside of the group commits t-0 at 5 in the transaction of tx-7 (producer 7)"


def test_if_they_cannot_be_stored_every_partition_says_so_and_no_group_is_left_over() -> None:
    world = World()
    world.fail_appends(ErrorCode.NOT_ENOUGH_REPLICAS)
    asked = txn_commit(world, {("t", 0): 1, ("nope", 0): 1})
    assert asked.partition_errors == {("nope", 0): MISSING, ("t", 0): ErrorCode.COORDINATOR_NOT_AVAILABLE}
    assert not world.exists
    world.fail_appends(None)
    assert end_transaction(world) == ["stored"]
    assert world.fetch() == {}

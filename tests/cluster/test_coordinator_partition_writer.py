"""Appends that are held up or fail, from a request to the log and back.

What is expected here is what a Kafka 4.3.1 broker did: for failures, with a ``max.message.bytes`` of ``__consumer_offsets``
that the records did not fit; for appends that take their time, with a second replica that did not fetch them.
"""

from typing import Any

import pytest

from groupcoord.cluster.coordinator_partition_writer import HOLD, STORE, AppendDecision
from groupcoord.core.effects import Append
from groupcoord.protocol.apis import ApiKey
from groupcoord.protocol.apis.offset_fetch import OffsetFetchRequestGroup
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages import OffsetFetchRequest
from tests.cluster.gated import Bench

TIMEOUT_MS = 5_000
LOST = ErrorCode.COORDINATOR_NOT_AVAILABLE


# --- what a gate is asked


def test_a_gate_is_asked_for_each_append_and_sees_whose_it_is() -> None:
    bench = Bench()
    seen: list[tuple[int, str, Any]] = []

    def look(append: Append) -> AppendDecision:
        seen.extend((append.partition, type(record.key).__name__, record.key.group) for record in append.records)
        return STORE

    bench.decision = look
    bench.commit(1)
    bench.join(group="h")
    assert seen == [(0, "OffsetCommitKey", "g"), (0, "GroupMetadataKey", "h")]


def test_without_a_gate_appends_are_stored_behind_what_is_held_still() -> None:
    bench = Bench()
    bench.hold()
    first = bench.commit(1)
    bench.node.appends.gate = None
    second = bench.commit(2)
    assert (bench.committed(first), bench.committed(second)) == (None, None)
    bench.release()
    assert (bench.committed(first), bench.committed(second)) == (ErrorCode.NONE, ErrorCode.NONE)
    assert bench.offset() == 2
    assert bench.committed(bench.commit(3)) is ErrorCode.NONE


def test_what_is_not_held_cannot_be_released() -> None:
    bench = Bench()
    bench.hold()
    bench.commit(1)
    (append,) = bench.held
    bench.release()
    with pytest.raises(KeyError, match="append 1 is not held"):
        bench.node.appends.release(append, 0)
    with pytest.raises(KeyError, match="append 1 is not held"):
        bench.node.appends.fail(append, ErrorCode.KAFKA_STORAGE_ERROR, 0)


# --- failures


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (ErrorCode.NOT_ENOUGH_REPLICAS, LOST),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, LOST),
        (ErrorCode.REQUEST_TIMED_OUT, LOST),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.UNKNOWN_SERVER_ERROR),
        (ErrorCode.RECORD_LIST_TOO_LARGE, ErrorCode.UNKNOWN_SERVER_ERROR),
        (ErrorCode.INVALID_FETCH_SIZE, ErrorCode.UNKNOWN_SERVER_ERROR),
        (ErrorCode.NETWORK_EXCEPTION, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
        (ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND),
    ],
)
def test_a_commit_that_fails_leaves_what_was_there(error: ErrorCode, told: ErrorCode) -> None:
    bench = Bench()
    bench.commit(1)
    bench.refuse(error)
    assert bench.committed(bench.commit(2)) is told
    assert bench.offset() == 1
    bench.store()
    assert bench.committed(bench.commit(3)) is ErrorCode.NONE
    assert bench.offset() == 3


def test_the_first_commit_of_a_group_that_fails_leaves_no_group() -> None:
    bench = Bench()
    bench.refuse(ErrorCode.MESSAGE_TOO_LARGE)
    bench.commit(1)
    assert (bench.offset(), bench.state(), bench.listed()) == (-1, "Dead", set())


def test_a_static_member_of_a_new_group_that_cannot_be_stored_is_told_and_there_is_no_group() -> None:
    bench = Bench()
    bench.refuse(ErrorCode.MESSAGE_TOO_LARGE)
    answer = bench.answer(bench.join(instance="i"))
    assert (answer.error_code, answer.member_id) == (ErrorCode.UNKNOWN_SERVER_ERROR, "")
    assert bench.state() == "Dead"


def test_a_deletion_of_offsets_that_fails_deletes_nothing() -> None:
    bench = Bench()
    bench.commit(1)
    bench.refuse(ErrorCode.MESSAGE_TOO_LARGE)
    assert bench.error(bench.delete_offset()) is ErrorCode.UNKNOWN_SERVER_ERROR
    assert bench.offset() == 1


def test_a_deletion_of_a_group_that_fails_deletes_nothing() -> None:
    bench = Bench()
    bench.commit(1)
    bench.refuse(ErrorCode.MESSAGE_TOO_LARGE)
    assert bench.deleted(bench.delete_group()) is ErrorCode.UNKNOWN_SERVER_ERROR
    assert (bench.offset(), bench.state()) == (1, "Empty")
    bench.store()
    assert bench.deleted(bench.delete_group()) is ErrorCode.NONE


def test_an_assignment_that_cannot_be_stored_starts_a_rebalance() -> None:
    bench = Bench()
    member, generation = bench.joined()
    bench.refuse(ErrorCode.MESSAGE_TOO_LARGE)
    assert bench.error(bench.sync(member, generation)) is ErrorCode.UNKNOWN_SERVER_ERROR
    assert bench.state() == "PreparingRebalance"
    assert bench.error(bench.heartbeat(member, generation)) is ErrorCode.REBALANCE_IN_PROGRESS


def test_the_last_to_leave_is_told_but_gone() -> None:
    bench = Bench()
    member, generation = bench.joined()
    bench.sync(member, generation)
    bench.refuse(ErrorCode.MESSAGE_TOO_LARGE)
    assert bench.error(bench.leave(member)) is ErrorCode.UNKNOWN_SERVER_ERROR
    assert bench.state() == "Empty"


def test_what_is_too_large_for_the_log_fails_at_once_and_alone() -> None:
    bench = Bench(message_max_bytes=300)
    bench.hold()
    before, large, behind = bench.commit(1, "h"), bench.commit(1, "g" * 400), bench.commit(2, "h")
    assert bench.committed(large) is ErrorCode.UNKNOWN_SERVER_ERROR
    bench.release()
    bench.release()
    assert bench.committed(before) is bench.committed(behind) is ErrorCode.NONE
    assert bench.listed() == {"h"}


def test_with_the_first_of_what_happens_at_once_fails_the_rest() -> None:
    bench = Bench()
    for group in ("g", "h"):
        member, generation = bench.joined(group)
        bench.sync(member, generation, group)
    asked: list[Append] = []

    def refuse(append: Append) -> AppendDecision:
        asked.append(append)
        return ErrorCode.KAFKA_STORAGE_ERROR

    bench.decision = refuse
    bench.advance(30_000)  # both sessions end
    assert (bench.state("g"), bench.state("h")) == ("Empty", "Empty")
    assert len(asked) == 1


# --- an append that takes its time


def test_a_commit_that_takes_too_long_is_refused_and_may_be_stored_later() -> None:
    bench = Bench()
    bench.commit(1)
    bench.hold()
    number = bench.commit(2)
    bench.advance(TIMEOUT_MS - 1)
    assert bench.committed(number) is None
    bench.advance(1)
    assert bench.committed(number) is LOST
    assert bench.offset() == 1
    bench.release()
    assert bench.offset() == 2


def test_nobody_reads_what_is_not_stored_but_who_asks_for_what_is_stable_waits_for_it() -> None:
    bench = Bench()
    bench.commit(1)
    bench.hold()
    bench.commit(2)
    assert bench.offset() == 1
    stable = bench.fetch(stable=True)
    assert bench.answer(stable) is None
    bench.release()
    assert bench.offset_in(stable) == 2


def test_who_waits_too_long_for_stable_offsets_is_sent_to_look_for_the_coordinator() -> None:
    bench = Bench()
    bench.hold()
    bench.commit(2)
    bench.advance(100)
    stable = bench.fetch(stable=True)
    bench.advance(TIMEOUT_MS - 1)
    assert bench.answer(stable) is None
    bench.advance(1)
    assert bench.answer(stable).groups[0].error_code == ErrorCode.NOT_COORDINATOR


def test_all_offsets_of_a_group_without_those_that_are_not_stored() -> None:
    bench = Bench()
    bench.commit(1)
    bench.commit(5, partition=1)
    bench.hold()
    bench.delete_offset()
    bench.commit(6, partition=1)
    request = OffsetFetchRequest(groups=(OffsetFetchRequestGroup(group_id="g", topics=None),))
    (group,) = bench.answers[bench.ask(ApiKey.OFFSET_FETCH, request, 9)].groups
    found = {part.partition_index: part.committed_offset for topic in group.topics for part in topic.partitions}
    assert found == {0: 1, 1: 5}


def test_a_new_group_is_seen_when_it_is_stored() -> None:
    bench = Bench()
    bench.hold()
    number = bench.commit(1)
    assert (bench.state(), bench.listed()) == ("Dead", set())
    bench.release()
    assert (bench.committed(number), bench.state(), bench.listed()) == (ErrorCode.NONE, "Empty", {"g"})


def test_a_group_is_there_until_its_tombstone_is_stored() -> None:
    bench = Bench()
    bench.commit(1)
    bench.hold()
    number = bench.delete_group()
    assert (bench.state(), bench.listed(), bench.offset()) == ("Empty", {"g"}, 1)
    bench.release()
    assert (bench.deleted(number), bench.state(), bench.listed()) == (ErrorCode.NONE, "Dead", set())


def test_whoever_writes_finds_what_is_not_stored_yet() -> None:
    bench = Bench()
    bench.hold()
    bench.commit(1)
    deletion = bench.delete_offset()
    assert len(bench.held) == 2
    bench.release()
    assert bench.offset() == 1
    bench.release()
    assert bench.error(deletion) is ErrorCode.NONE
    assert bench.offset() == -1


def test_who_joins_a_group_whose_tombstone_is_on_its_way_begins_a_new_one() -> None:
    bench = Bench()
    member, generation = bench.joined()
    bench.sync(member, generation)
    bench.leave(member)
    bench.hold()
    bench.delete_group()
    newcomer = bench.join()
    assert bench.error(newcomer) is ErrorCode.MEMBER_ID_REQUIRED
    bench.fail(ErrorCode.KAFKA_STORAGE_ERROR)
    assert bench.state() == "Empty"
    bench.store()
    assert bench.joined()[1] == generation + 2  # the old one is back, which was left in the generation after its last


def test_a_deletion_of_groups_begins_when_nothing_is_on_its_way() -> None:
    bench = Bench()
    bench.commit(1)
    bench.hold()
    bench.commit(2)
    patient = bench.delete_group()
    assert len(bench.held) == 1
    bench.advance(TIMEOUT_MS)
    assert bench.deleted(patient) is LOST
    patient = bench.delete_group()
    bench.release()
    assert bench.deleted(patient) is None
    bench.release()
    assert bench.deleted(patient) is ErrorCode.NONE


def test_answers_of_other_groups_of_the_partition_wait_but_what_they_ask_is_done() -> None:
    bench = Bench()
    member, generation = bench.joined("h")
    bench.sync(member, generation, "h")
    bench.hold()
    bench.commit(1)
    beat, left = bench.heartbeat(member, generation, "h"), bench.leave(member, "h")
    assert bench.state("h") == "Empty"
    assert bench.answer(beat) is bench.answer(left) is None
    bench.release()
    assert bench.error(beat) is ErrorCode.NONE
    bench.release()
    assert bench.error(left) is ErrorCode.NONE


def test_refusals_do_not_wait() -> None:
    bench = Bench()
    bench.hold()
    bench.commit(1)
    assert bench.error(bench.heartbeat("nobody", 1, "h")) is ErrorCode.UNKNOWN_MEMBER_ID
    assert bench.answer(bench.leave("nobody", "h")).members[0].error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert bench.deleted(bench.delete_group("h")) is None


def test_groups_of_other_partitions_do_not_wait() -> None:
    bench = Bench(partitions=2)
    bench.decision = lambda append: HOLD if append.partition else STORE
    numbers = {group: bench.commit(1, group) for group in ("g", "h", "i", "j")}
    answered = {group for group, number in numbers.items() if bench.committed(number) is ErrorCode.NONE}
    assert len(answered) == 2
    assert {append.partition for append in bench.held} == {1}


def test_a_heartbeat_behind_what_takes_too_long_is_refused() -> None:
    bench = Bench()
    member, generation = bench.joined("h")
    bench.sync(member, generation, "h")
    bench.hold()
    bench.commit(1)
    beat = bench.heartbeat(member, generation, "h")
    bench.advance(TIMEOUT_MS)
    assert bench.error(beat) is LOST


def test_a_join_that_still_waits_behind_what_takes_too_long_is_refused() -> None:
    bench = Bench()
    bench.joined("h")  # and never sends SyncGroup
    bench.hold()
    bench.commit(1)
    second = bench.join("", "h")
    second = bench.join(bench.answer(second).member_id, "h")
    assert bench.answer(second) is None
    bench.advance(TIMEOUT_MS)
    assert (bench.error(second), bench.answer(second).member_id) == (LOST, "")
    bench.release()
    bench.advance(60_000)
    assert bench.error(second) is LOST


def test_a_sync_that_waits_for_the_leader_behind_what_takes_too_long_is_refused() -> None:
    bench = Bench()
    first = bench.join("", "h")
    ids = [bench.answer(first).member_id, bench.answer(bench.join("", "h")).member_id]
    numbers = [bench.join(member_id, "h") for member_id in ids]
    bench.advance(0)
    told = [bench.answer(number) for number in numbers]
    follower = next(one for one in told if one.leader != one.member_id)
    bench.hold()
    bench.commit(1)
    number = bench.sync(follower.member_id, follower.generation_id, "h")
    bench.advance(TIMEOUT_MS)
    assert bench.error(number) is LOST


def test_an_assignment_that_takes_too_long_is_refused_and_the_group_rebalances() -> None:
    bench = Bench()
    member, generation = bench.joined()
    bench.hold()
    number = bench.sync(member, generation)
    bench.advance(TIMEOUT_MS)
    assert bench.error(number) is LOST
    assert bench.state() == "PreparingRebalance"
    bench.release()
    assert bench.state() == "PreparingRebalance"


# --- what is behind what


def test_appends_of_a_partition_are_stored_in_their_order() -> None:
    bench = Bench()
    bench.hold()
    numbers = [bench.commit(offset) for offset in (1, 2, 3)]
    bench.release(1)
    assert [bench.committed(number) for number in numbers] == [None, None, None]
    bench.release(0)
    assert [bench.committed(number) for number in numbers] == [ErrorCode.NONE, ErrorCode.NONE, None]
    assert bench.offset() == 2


def test_what_is_behind_an_append_that_fails_fails_too() -> None:
    bench = Bench()
    bench.hold()
    numbers = [bench.commit(offset) for offset in (1, 2, 3)]
    bench.fail(ErrorCode.KAFKA_STORAGE_ERROR, 1)
    lost = ErrorCode.NOT_COORDINATOR
    assert [bench.committed(number) for number in numbers] == [None, lost, lost]
    bench.release()
    assert bench.held == []
    assert bench.offset() == 1


def test_an_append_that_fails_at_once_takes_nothing_with_it() -> None:
    bench = Bench()
    bench.hold()
    first = bench.commit(1)
    bench.refuse(ErrorCode.MESSAGE_TOO_LARGE)
    assert bench.committed(bench.commit(2)) is ErrorCode.UNKNOWN_SERVER_ERROR
    bench.release()
    assert bench.committed(first) is ErrorCode.NONE
    assert bench.offset() == 1


def test_who_waits_when_the_coordinator_moves_is_told_and_nothing_is_stored() -> None:
    bench = Bench()
    bench.commit(1)
    bench.hold()
    number = bench.commit(2)
    bench.take(bench.node.resign(0, 0))
    assert bench.committed(number) is ErrorCode.NOT_COORDINATOR
    assert bench.held == []
    bench.node.load(0, 0)
    bench.advance(0)
    assert bench.offset() == 1

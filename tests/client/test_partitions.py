"""What a consumer knows of its partitions."""

import pytest

from groupcoord.client.decoding import Decoded, Record
from groupcoord.client.partitions import Partitions, PartitionState, Start

A, B = ("t", 0), ("t", 1)


def records(*offsets: int, partition: tuple[str, int] = A, epoch: int = 4) -> list[Record]:
    return [Record(*partition, offset, 0, None, b"%d" % offset, (), epoch) for offset in offsets]


def stocked(*partitions: tuple[str, int], each: int = 3) -> Partitions:
    """Each with as many records, from offset 0."""
    table = Partitions()
    table.own(partitions)
    for state in table:
        state.move_to(0)
        state.put(Decoded(records(*range(each), partition=state.partition), each))
    return table


def test_a_new_partition_begins_where_the_group_left_off() -> None:
    table = Partitions()
    table.own([A])
    assert (table[A].start, table[A].deliverable, table[A].in_flight) == (Start.COMMITTED, True, False)
    assert A in table
    assert table.consumed() == {}


def test_what_stays_goes_on_undisturbed() -> None:
    table = stocked(A, B)
    kept, gone = table[A], table[B]
    table.own([A, ("t", 2)])
    assert table[A] is kept
    assert (gone.version, B in table, table.get(B)) == (2, False, None)
    with pytest.raises(KeyError, match="t-1 is not assigned"):
        table[B]


def test_positions_follow_what_is_handed_out_and_settle_at_the_next_poll() -> None:
    table = stocked(A)
    assert [record.offset for record in table.take(2)[A]] == [0, 1]
    assert (table.consumed(), table.consumed(settled=True)) == ({A: (2, 4)}, {A: (0, -1)})
    table.settle()
    assert table.consumed(settled=True) == {A: (2, 4)}
    table.take(9)
    assert (table[A].position, table.take(9)) == (3, {})


def test_the_last_record_leads_past_what_is_behind_it() -> None:
    """Markers and gaps are nothing to wait for."""
    table = Partitions()
    table.own([A])
    table[A].move_to(0)
    table[A].put(Decoded(records(0, 3), 7))
    table.take(1)
    assert table[A].position == 1
    table.take(1)
    assert table[A].position == 7
    table[A].put(Decoded([], 9))
    assert table[A].position == 7, "what was handed out is not settled yet"
    table.settle()
    table[A].put(Decoded([], 10))
    assert (table[A].position, table[A].settled) == (10, 10)


def test_turns_are_taken() -> None:
    table = stocked(A, B)
    assert list(table.take(4)) == [A, B]
    assert list(table.take(1)) == [B]
    assert table.take(1) == {B: records(2, partition=B)}


def test_one_by_one_they_come_in_runs() -> None:
    table = stocked(A, B, each=2)
    order = []
    while (record := table.take_one()) is not None:
        order.append((record.partition, record.offset))
        table.settle()
    assert sorted(order) == [(0, 0), (0, 1), (1, 0), (1, 1)]
    table = stocked(A, B, each=2)
    run = [table.take_one() for _ in range(4)]
    assert [record.partition for record in run if record] == [0, 0, 1, 1]


def test_nothing_comes_of_what_is_paused_or_held() -> None:
    table = stocked(A, B)
    table[A].paused = True
    table.hold([B, ("gone", 0)])
    assert table.take(9) == {}
    assert table.take_one() is None
    table[A].paused = False
    assert list(table.take(9)) == [A]


def test_a_seek_forgets_what_was_fetched() -> None:
    state = PartitionState(A)
    state.asked_version = state.version
    state.read_replica = 7
    in_flight = [state.in_flight]
    state.move_to(5, 2)
    in_flight.append(state.in_flight)
    assert in_flight == [True, False]
    assert [state.position, state.settled, state.fetched_to, state.leader_epoch] == [5, 5, 5, 2]
    assert [state.read_replica] == [None]
    state.put(Decoded(records(5), 6))
    state.find(Start.LATEST)
    assert [state.start, len(state.store)] == [Start.LATEST, 0]


def test_what_is_gone_is_not_settled() -> None:
    table = stocked(A)
    table.take(1)
    table.own([])
    table.settle()
    assert table.consumed() == {}

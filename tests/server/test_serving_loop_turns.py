"""Whoever asks now and then does not wait for those who have sent ahead; what is due waits for what came before it."""

from typing import Any

import pytest

from groupcoord.core.effects import Call, Effect, Reply
from groupcoord.protocol.apis import ApiKey
from groupcoord.server.connection import FRESH_BYTES, READ_AHEAD_BYTES
from groupcoord.server.serving_loop import FRESH_SECONDS, LATE_SECONDS, ROUND_SECONDS
from tests.server.support import ALIVE, HEARTBEAT, JOIN_GROUP, JOINED, Peer, Shell, frame, heartbeat, join

COST_SECONDS = ROUND_SECONDS / 7.5
"""What each request takes, on the clock of the loop: the eighth one ends a round."""

BEAT = frame(HEARTBEAT, heartbeat())


@pytest.fixture
def shell() -> Shell:
    shell = Shell()

    def slow(call: Call, _: Any) -> list[Effect]:
        shell.loop.now += COST_SECONDS
        return [Reply(call, ALIVE)]

    shell.cluster.on[ApiKey.HEARTBEAT] = slow
    return shell


def greedy(shell: Shell, count: int, requests: int = 2_000) -> list[Peer]:
    """Peers that have sent so many requests, none of which is served yet."""
    peers = [shell.peer() for _ in range(count)]
    for peer in peers:
        peer.connection.data_received(BEAT * requests)
    return peers


def served(shell: Shell) -> list[int]:
    """The numbers of the connections whose requests were served since the last look, in that order."""
    numbers = [call.connection_id for call in shell.cluster.calls]
    shell.cluster.calls.clear()
    return numbers


class TestTurns:
    def test_a_round_ends_in_time_and_another_one_follows(self, shell: Shell) -> None:
        greedy(shell, 1, requests=20)
        shell.loop.ctx()
        assert len(served(shell)) == 8
        shell.loop.ctx()
        assert len(served(shell)) == 8
        shell.loop.ctx()
        assert len(served(shell)) == 4
        shell.loop.ctx()
        assert shell.loop.is_idle

    def test_those_who_sent_ahead_have_one_request_served_each_in_turn(self, shell: Shell) -> None:
        greedy(shell, 3, requests=300)
        for _ in range(3):
            shell.loop.ctx()
        assert served(shell) == [1, 2, 3] * 8

    @pytest.mark.parametrize("others", [1, 20, 300])
    def test_who_asks_now_and_then_is_served_first_however_many_others_have_sent_ahead(
        self, shell: Shell, others: int
    ) -> None:
        greedy(shell, others)
        quiet = shell.peer()
        for correlation_id in range(10):
            shell.loop.ctx()
            assert len(served(shell)) == 8
            quiet.connection.data_received(frame(HEARTBEAT, heartbeat(), correlation_id=correlation_id))
            shell.loop.ctx()
            assert served(shell)[0] == quiet.connection.number
            assert quiet.correlation_ids() == [correlation_id]

    def test_a_short_request_is_served_before_many_that_came_at_once_before_it(self, shell: Shell) -> None:
        greedy(shell, 300, requests=FRESH_BYTES // len(BEAT) + 1)
        quiet = shell.peer()
        quiet.connection.data_received(BEAT)
        shell.loop.ctx()
        assert served(shell)[0] == quiet.connection.number

    def test_those_who_sent_ahead_get_a_turn_in_every_round_however_many_ask_something_new(self, shell: Shell) -> None:
        (ahead,) = greedy(shell, 1)
        others = [shell.peer() for _ in range(100)]
        for other in others:
            other.connection.data_received(BEAT)
        turns = 0
        while shell.round.fresh:
            shell.loop.ctx()
            numbers = served(shell)
            at = numbers.index(ahead.connection.number)
            assert at <= FRESH_SECONDS / COST_SECONDS + 1
            assert set(numbers[at:]) == {ahead.connection.number}
            turns += 1
        assert turns > 10
        assert [len(other.frames()) for other in others] == [1] * 100

    def test_a_single_request_that_takes_long_leaves_a_turn_to_those_who_sent_ahead(self, shell: Shell) -> None:
        greedy(shell, 1)
        slow = shell.peer()
        shell.cluster.on[ApiKey.JOIN_GROUP] = shell.cluster.on[ApiKey.HEARTBEAT]
        answer = shell.cluster.on[ApiKey.HEARTBEAT]

        def slower(call: Call, request: Any) -> list[Effect]:
            shell.loop.now += ROUND_SECONDS if call.connection_id == slow.connection.number else 0
            return answer(call, request)

        shell.cluster.on[ApiKey.HEARTBEAT] = slower
        slow.connection.data_received(BEAT)
        shell.loop.ctx()
        assert served(shell) == [slow.connection.number, 1]

    def test_nobody_stands_in_line_twice(self, shell: Shell) -> None:
        first, second = shell.peer(), shell.peer()
        for _ in range(3):
            first.connection.data_received(BEAT)
        second.connection.data_received(BEAT)
        shell.loop.ctx()
        assert served(shell) == [1, 2, 1, 1]

    def test_the_end_of_a_peer_is_no_second_place_in_line(self, shell: Shell) -> None:
        first, _ = greedy(shell, 2, requests=20)
        assert first.connection.eof_received()
        shell.loop.ctx()
        assert served(shell) == [1, 2] * 4

    def test_nor_is_it_while_a_call_is_in_flight(self, shell: Shell) -> None:
        waiting, other = shell.peer(), shell.peer()
        waiting.send(frame(JOIN_GROUP, join()) + BEAT * 20)
        assert waiting.connection.eof_received()
        other.connection.data_received(BEAT * 20)
        shell.serving_loop.execute_effects([Reply(shell.cluster.parked(), JOINED)])
        served(shell)
        shell.loop.ctx()
        assert sorted(served(shell)) == [1] * 4 + [2] * 4

    def test_the_answers_of_one_round_are_written_together(self, shell: Shell) -> None:
        peers = greedy(shell, 2, requests=8)
        shell.loop.ctx()
        assert [len(peer.transport.writes) for peer in peers] == [1, 1]
        assert [len(peer.frames()) for peer in peers] == [4, 4]

    def test_who_stands_in_line_is_not_read_from_for_ever(self, shell: Shell) -> None:
        """Requests wait longer now than until the end of a round: what comes in meanwhile must not fill the memory."""
        peer = shell.peer()
        sent = 0
        while peer.transport.is_reading():
            peer.connection.data_received(BEAT)
            sent += 1
        assert READ_AHEAD_BYTES < sent * len(BEAT) <= READ_AHEAD_BYTES + len(BEAT)
        shell.loop.ctx()
        assert peer.transport.is_reading()
        shell.loop.settle()
        assert len(peer.frames()) == sent

    def test_the_end_of_a_peer_that_has_sent_ahead_comes_after_its_answers(self, shell: Shell) -> None:
        (peer,) = greedy(shell, 1, requests=20)
        shell.loop.ctx()
        assert peer.connection.eof_received()
        shell.loop.ctx()
        assert not peer.transport.is_closing()
        shell.loop.settle()
        assert len(peer.frames()) == 20
        assert peer.transport.is_closing()


class TestDue:
    """A member whose heartbeat has come is not expired, even if nobody has had the time to look at it."""

    @pytest.fixture
    def due(self, shell: Shell) -> list[list[int]]:
        """For each time that something was due: the connections that had been served by then."""
        due: list[list[int]] = []
        shell.cluster.on_expiry = lambda _: due.append([call.connection_id for call in shell.cluster.calls]) or []  # type: ignore[func-returns-value]
        return due

    def in_seconds(self, shell: Shell, seconds: float) -> None:
        """Something is due then."""
        shell.cluster.deadline_ms = shell.loop.now_ms() + round(seconds * 1_000)
        shell.serving_loop.wake()
        shell.loop.ctx()

    def late(self, shell: Shell, seconds: float = LATE_SECONDS) -> None:
        """The process stands still for so long after something was due, and its timer fires. Nothing else happens yet."""
        self.in_seconds(shell, 1)
        shell.loop.now += 1 + seconds
        shell.loop.fire()

    def test_with_nobody_in_line_it_is_done_when_the_timer_fires(self, shell: Shell, due: list[list[int]]) -> None:
        self.late(shell, seconds=LATE_SECONDS / 2)
        assert due == [[]]

    def test_who_stands_in_line_is_served_before(self, shell: Shell, due: list[list[int]]) -> None:
        self.in_seconds(shell, 1)
        shell.peer().connection.data_received(BEAT)
        shell.loop.now += 1
        shell.loop.fire()
        assert due == []
        shell.loop.ctx()
        assert due == [[1]]

    def test_after_a_pause_the_loop_looks_at_the_sockets_before(self, shell: Shell, due: list[list[int]]) -> None:
        peers = [shell.peer() for _ in range(50)]
        self.late(shell)
        shell.loop.ctx()  # in which the loop finds this:
        for peer in peers:
            peer.connection.data_received(BEAT)
        while not due:
            shell.loop.ctx()
        assert due == [[peer.connection.number for peer in peers]]

    def test_after_a_pause_in_which_nothing_came_it_is_done(self, shell: Shell, due: list[list[int]]) -> None:
        self.late(shell)
        shell.loop.settle()
        assert due == [[]]
        assert shell.cluster.deadline_ms is None

    def test_a_heartbeat_behind_another_request_counts(self, shell: Shell, due: list[list[int]]) -> None:
        greedy(shell, 20, requests=500)
        peer = shell.peer()
        self.late(shell)
        shell.loop.ctx()
        peer.connection.data_received(BEAT * 2)
        while not due:
            shell.loop.ctx()
        assert due[0].count(peer.connection.number) == 2

    def test_it_is_done_though_the_lines_never_end(self, shell: Shell, due: list[list[int]]) -> None:
        """One request of each connection in each line, and those of the round in which the timer fires."""
        peers = greedy(shell, 300)
        shell.loop.ctx()
        self.late(shell)
        shell.cluster.calls.clear()
        others = [shell.peer() for _ in range(10)]
        while not due:
            for other in others:
                other.connection.data_received(BEAT)
            shell.loop.ctx()
        assert len(due[0]) <= 5 * (len(peers) + len(others))
        assert shell.round.backlog

    def test_it_is_done_once(self, shell: Shell, due: list[list[int]]) -> None:
        """While it waits no other timer is set for it."""
        greedy(shell, 20, requests=500)
        self.late(shell)
        timers = shell.loop.timers_set
        while not due:
            shell.loop.ctx()
            shell.loop.fire()
        assert shell.loop.timers_set == timers
        shell.loop.settle()
        assert len(due) == 1

    def test_the_next_timer_is_set_afterwards(self, shell: Shell, due: list[list[int]]) -> None:
        self.late(shell)
        shell.loop.settle()
        self.in_seconds(shell, 5)
        shell.loop.advance(5)
        assert len(due) == 2

    def test_whoever_moves_the_clock_by_hand_need_not_wait_for_it(self, shell: Shell, due: list[list[int]]) -> None:
        shell.peer().connection.data_received(BEAT)
        shell.cluster.deadline_ms = shell.loop.now_ms()
        shell.serving_loop.wake()
        assert due == [[]]

    def test_what_was_due_when_its_timer_was_set_is_never_late(self, shell: Shell, due: list[list[int]]) -> None:
        """As a clock moved by hand has it: no time of it passes while the process stands still."""
        shell.serving_loop._seconds_until = lambda _: 0.0
        shell.cluster.deadline_ms = shell.loop.now_ms() + 1_000
        shell.round.schedule()
        shell.loop.ctx()
        shell.cluster.deadline_ms = shell.loop.now_ms()
        shell.loop.now += 2 * LATE_SECONDS
        shell.loop.fire()
        assert due == [[]]

    def test_nothing_of_it_is_done_after_the_stop(self, shell: Shell, due: list[list[int]]) -> None:
        self.late(shell)
        shell.serving_loop.stop()
        shell.loop.settle()
        assert due == []

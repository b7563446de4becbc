"""Who may connect, and when a connection has been idle for too long."""

import logging

import pytest

from groupcoord.config.broker_config import BrokerConfig
from groupcoord.core.effects import Reply
from groupcoord.protocol.apis import ApiKey
from groupcoord.protocol.messages import JoinGroupResponse
from groupcoord.server.connection import ServerConnection
from groupcoord.server.connection_registry import UNREAD_GRACE_SECONDS, UnreadAnswers
from tests.server.support import HEARTBEAT, JOIN_GROUP, JOINED, Shell, frame, heartbeat, join


def full(shell: Shell) -> bool:
    return shell.connections.full


def test_connections_are_counted_by_address() -> None:
    shell = Shell(max_connections_per_ip=2, max_connections_per_ip_overrides="10.0.0.1:1")
    assert shell.connections.limit_reached("127.0.0.1") is None
    first = shell.peer()
    assert shell.connections.limit_reached("127.0.0.1") is None
    shell.peer()
    assert shell.connections.limit_reached("127.0.0.1") == 2
    assert shell.connections.limit_reached("127.0.0.2") is None
    shell.peer("10.0.0.1")
    assert shell.connections.limit_reached("10.0.0.1") == 1
    first.vanish()
    assert shell.connections.limit_reached("127.0.0.1") is None


def test_nobody_is_let_in_when_all_places_are_taken() -> None:
    shell = Shell(max_connections=2)
    shell.peer()
    assert not full(shell)
    second = shell.peer()
    assert full(shell)
    second.vanish()
    assert not full(shell)


def test_limits_can_change_while_it_runs() -> None:
    shell = Shell(max_connections=1)
    shell.peer()
    assert full(shell)
    shell.cluster.config = BrokerConfig.of({"max.connections": 2})
    assert not full(shell)


def test_an_idle_connection_is_closed_when_its_time_has_come(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    shell = Shell()
    idle, busy = shell.peer(), shell.peer()
    shell.loop.advance(599)
    busy.ask(HEARTBEAT, heartbeat())
    shell.loop.advance(1)
    assert idle.transport.aborted
    assert not busy.transport.is_closing()
    assert "closing 127.0.0.1:50001: idle for 600 s" in caplog.text
    idle.vanish()
    shell.loop.advance(598)
    assert not busy.transport.is_closing()
    shell.loop.advance(1)
    assert busy.transport.aborted


def test_an_answer_is_activity_and_waiting_for_one_is_not() -> None:
    """Kafka's idle expiry does not care that a request is in flight."""
    shell = Shell()
    answered, forgotten = shell.peer(), shell.peer()
    answered.ask(JOIN_GROUP, join())
    parked = shell.cluster.parked()
    forgotten.ask(JOIN_GROUP, join())
    shell.loop.advance(599)
    shell.execute_effects(Reply(parked, JOINED))
    shell.loop.advance(1)
    assert forgotten.transport.aborted
    assert not answered.transport.is_closing()


def test_part_of_a_request_is_activity() -> None:
    shell = Shell()
    peer = shell.peer()
    for byte in frame(HEARTBEAT, heartbeat())[:8]:
        shell.loop.advance(300)
        peer.send(bytes([byte]))
    assert not peer.transport.is_closing()


def test_what_is_sent_ahead_is_activity() -> None:
    shell = Shell()
    peer = shell.peer()
    peer.ask(JOIN_GROUP, join())
    for _ in range(4):
        shell.loop.advance(300)
        peer.ask(HEARTBEAT, heartbeat())
    assert not peer.transport.is_closing()


def test_a_peer_that_reads_slowly_is_active() -> None:
    shell = Shell()
    peer = shell.peer()
    peer.transport.full = True
    peer.ask(HEARTBEAT, heartbeat())
    shell.loop.advance(599)
    peer.read()
    shell.loop.advance(599)
    assert not peer.transport.is_closing()
    shell.loop.advance(1)
    assert peer.transport.aborted


def test_one_timer_is_enough() -> None:
    shell = Shell()
    for peer in [shell.peer() for _ in range(50)]:
        peer.ask(HEARTBEAT, heartbeat())
    assert shell.loop.timers_set == 1
    assert shell.loop.pending == [600]


def test_idle_connections_can_be_left_alone() -> None:
    shell = Shell(connections_max_idle_ms=-1)
    peer = shell.peer()
    shell.loop.advance(1e6)
    assert not peer.transport.is_closing()


def test_no_timer_without_connections_or_after_the_stop() -> None:
    shell = Shell()
    shell.peer().vanish()
    shell.loop.advance(600)
    assert shell.loop.pending == []
    peer = shell.peer()
    shell.connections.stop()
    shell.connections.stop()
    shell.loop.advance(600)
    assert not peer.transport.is_closing()


LONG = JoinGroupResponse(protocol_name="range", leader="m" * 30_000, member_id="m", members=())


@pytest.fixture
def shell() -> Shell:
    made = Shell()
    made.connections.unread._most_bytes = 100_000
    made.cluster.on[ApiKey.JOIN_GROUP] = lambda call, _: [Reply(call, LONG)]
    return made


def waiting(shell: Shell) -> UnreadAnswers[ServerConnection]:
    return shell.connections.unread


def test_who_has_not_read_for_the_longest_time_is_cut_off(shell: Shell, caplog: pytest.LogCaptureFixture) -> None:
    """Deviation (bounded-memory)."""
    peers = [shell.slow_peer(JOIN_GROUP, join()) for _ in range(4)]
    shell.loop.advance(UNREAD_GRACE_SECONDS)
    assert [peer.transport.aborted for peer in peers] == [True, False, False, False]
    assert waiting(shell).bytes == sum(peer.transport.unread for peer in peers[1:]) <= 100_000
    assert "closing 127.0.0.1:50001, which does not read: 120" in caplog.text


def test_who_reads_on_is_not_the_one(shell: Shell) -> None:
    peers = [shell.slow_peer(JOIN_GROUP, join()) for _ in range(3)]
    peers[0].read_on()
    peers[0].ask(JOIN_GROUP, join())
    shell.slow_peer(JOIN_GROUP, join())
    shell.loop.advance(UNREAD_GRACE_SECONDS)
    assert [peer.transport.aborted for peer in peers] == [False, True, False]


def test_who_reads_in_time_is_left_alone(shell: Shell) -> None:
    """A busy server gives many answers before anybody can read one."""
    peers = [shell.slow_peer(JOIN_GROUP, join()) for _ in range(5)]
    for peer in peers[3:]:
        peer.read()
    shell.loop.advance(UNREAD_GRACE_SECONDS)
    assert not any(peer.transport.aborted for peer in peers)


def test_nobody_is_cut_off_after_the_stop(shell: Shell) -> None:
    peers = [shell.slow_peer(JOIN_GROUP, join()) for _ in range(4)]
    shell.connections.stop()
    assert shell.loop.pending == []
    shell.loop.advance(UNREAD_GRACE_SECONDS)
    assert not any(peer.transport.aborted for peer in peers)


def test_what_is_read_or_lost_does_not_count(shell: Shell) -> None:
    peers = [shell.slow_peer(JOIN_GROUP, join()) for _ in range(3)]
    peers[0].read()
    peers[1].connection.abort()
    peers[2].vanish()
    assert waiting(shell).bytes == 0
    assert peers[0].transport.unread == 0
    peers[0].ask(HEARTBEAT, heartbeat())
    assert len(peers[0].frames()) == 2

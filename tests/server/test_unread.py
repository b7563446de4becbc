"""What waits for peers that do not read is bounded for all of them together."""

import pytest

from groupcoord.core.effects import Reply
from groupcoord.protocol.apis import ApiKey
from groupcoord.protocol.messages import JoinGroupResponse
from groupcoord.server.unread import GRACE_SECONDS, Unread
from tests.server.support import HEARTBEAT, JOIN_GROUP, Shell, heartbeat, join

LONG = JoinGroupResponse(protocol_name="range", leader="m" * 30_000, member_id="m", members=())


@pytest.fixture
def shell() -> Shell:
    made = Shell()
    made.connections.unread._most_bytes = 100_000
    made.node.on[ApiKey.JOIN_GROUP] = lambda call, _: [Reply(call, LONG)]
    return made


def waiting(shell: Shell) -> Unread:
    return shell.connections.unread


def test_who_has_not_read_for_the_longest_time_is_cut_off(shell: Shell, caplog: pytest.LogCaptureFixture) -> None:
    """Deviation (bounded-memory)."""
    peers = [shell.slow_peer(JOIN_GROUP, join()) for _ in range(4)]
    shell.loop.advance(GRACE_SECONDS)
    assert [peer.transport.aborted for peer in peers] == [True, False, False, False]
    assert waiting(shell).bytes == sum(peer.transport.unread for peer in peers[1:]) <= 100_000
    assert "closing 127.0.0.1:50001, which does not read: 120" in caplog.text


def test_who_reads_on_is_not_the_one(shell: Shell) -> None:
    peers = [shell.slow_peer(JOIN_GROUP, join()) for _ in range(3)]
    peers[0].read_on()
    peers[0].ask(JOIN_GROUP, join())
    shell.slow_peer(JOIN_GROUP, join())
    shell.loop.advance(GRACE_SECONDS)
    assert [peer.transport.aborted for peer in peers] == [False, True, False]


def test_who_reads_in_time_is_left_alone(shell: Shell) -> None:
    """A busy server gives many answers before anybody can read one."""
    peers = [shell.slow_peer(JOIN_GROUP, join()) for _ in range(5)]
    for peer in peers[3:]:
        peer.read()
    shell.loop.advance(GRACE_SECONDS)
    assert not any(peer.transport.aborted for peer in peers)


def test_nobody_is_cut_off_after_the_stop(shell: Shell) -> None:
    peers = [shell.slow_peer(JOIN_GROUP, join()) for _ in range(4)]
    shell.connections.stop()
    assert shell.loop.pending == []
    shell.loop.advance(GRACE_SECONDS)
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

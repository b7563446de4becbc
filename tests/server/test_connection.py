"""One request in flight per connection, answers in order, bounded memory on both sides."""

from typing import Any

import pytest

from groupcoord.core.effects import Call, Effect, Reply
from groupcoord.protocol.apis import ApiKey
from groupcoord.protocol.messages import HeartbeatResponse, JoinGroupResponse
from groupcoord.server.connection import ANSWERS_BYTES, READ_AHEAD_BYTES, Software
from tests.server.support import (
    ALIVE,
    HEARTBEAT,
    JOIN_GROUP,
    JOINED,
    PRODUCE,
    Shell,
    frame,
    heartbeat,
    join,
    produce,
)


@pytest.fixture
def shell() -> Shell:
    return Shell()


def test_a_request_is_answered(shell: Shell) -> None:
    peer = shell.peer()
    peer.ask(HEARTBEAT, heartbeat(), correlation_id=7)
    assert peer.answer(HEARTBEAT) == ALIVE
    (call,) = shell.cluster.calls
    assert (call.connection_id, call.correlation_id, call.api) == (1, 7, HEARTBEAT)
    assert (call.client_id, call.client_host) == ("client-1", "/127.0.0.1")
    assert shell.cluster.requests == [heartbeat()]


def test_a_request_waits_until_the_one_before_is_answered(shell: Shell) -> None:
    """Kafka mutes the channel. The idempotent producer, with five requests on the way, counts on being served in order;
    aiokafka and kafka-python raise CorrelationIdError for answers out of order."""
    peer = shell.peer()
    peer.ask(JOIN_GROUP, join(), correlation_id=1)
    peer.ask(HEARTBEAT, heartbeat(), correlation_id=2)
    assert [call.correlation_id for call in shell.cluster.calls] == [1]
    assert peer.frames() == []
    shell.execute_effects(Reply(shell.cluster.parked(), JOINED))
    assert [call.correlation_id for call in shell.cluster.calls] == [1, 2]
    assert peer.correlation_ids() == [1, 2]


def test_other_connections_do_not_wait(shell: Shell) -> None:
    waiting, other = shell.peer(), shell.peer()
    waiting.ask(JOIN_GROUP, join())
    other.ask(HEARTBEAT, heartbeat())
    assert other.answer(HEARTBEAT) == ALIVE
    assert waiting.frames() == []


def test_an_answer_may_come_from_somebody_elses_request(shell: Shell) -> None:
    first, second = shell.peer(), shell.peer()
    first.ask(JOIN_GROUP, join())
    parked = shell.cluster.parked()
    shell.cluster.on[ApiKey.JOIN_GROUP] = lambda call, _: [Reply(call, JOINED), Reply(parked, JOINED)]
    first.ask(HEARTBEAT, heartbeat(), correlation_id=2)
    second.ask(JOIN_GROUP, join())
    assert second.answer(JOIN_GROUP) == JOINED
    assert first.correlation_ids() == [1, 2]


def test_every_request_of_one_read_is_served_and_answered_with_one_write(shell: Shell) -> None:
    peer = shell.peer()
    peer.send(b"".join(frame(HEARTBEAT, heartbeat(), correlation_id=number) for number in range(1, 6)))
    assert len(peer.transport.writes) == 1
    assert peer.correlation_ids() == [1, 2, 3, 4, 5]


def test_a_request_without_an_answer_lets_the_next_one_in(shell: Shell) -> None:
    peer = shell.peer()
    peer.send(frame(PRODUCE, produce(acks=0), correlation_id=1) + frame(HEARTBEAT, heartbeat(), correlation_id=2))
    assert peer.correlation_ids() == [2]


def test_a_frame_may_come_in_any_pieces(shell: Shell) -> None:
    whole = frame(HEARTBEAT, heartbeat(), correlation_id=1) + frame(HEARTBEAT, heartbeat("n"), correlation_id=2)
    for cut in range(len(whole) + 1):
        peer = shell.peer()
        for piece in (whole[:cut], whole[cut:]):
            peer.send(piece)
        assert peer.correlation_ids() == [1, 2]
    peer = shell.peer()
    for index in range(len(whole)):
        peer.send(whole[index : index + 1])
    assert peer.correlation_ids() == [1, 2]
    assert shell.cluster.requests[-2:] == [heartbeat(), heartbeat("n")]


def test_who_sends_ahead_of_the_answers_is_not_read_from(shell: Shell) -> None:
    peer = shell.peer()
    peer.ask(JOIN_GROUP, join(), correlation_id=0)
    ahead = frame(HEARTBEAT, heartbeat(), correlation_id=1)
    sent = 0
    while peer.transport.is_reading():
        peer.send(ahead)
        sent += 1
    assert READ_AHEAD_BYTES < sent * len(ahead) <= READ_AHEAD_BYTES + len(ahead)
    shell.execute_effects(Reply(shell.cluster.parked(), JOINED))
    assert peer.transport.is_reading()
    assert len(peer.correlation_ids()) == 1 + sent


def test_a_request_longer_than_the_read_ahead_still_comes_in(shell: Shell) -> None:
    peer = shell.peer()
    long = frame(HEARTBEAT, heartbeat("m" * 30_000)) + frame(HEARTBEAT, heartbeat("n" * 30_000)) * 3
    peer.ask(JOIN_GROUP, join())
    peer.send(long[:100_000])
    assert not peer.transport.is_reading()
    shell.execute_effects(Reply(shell.cluster.parked(), JOINED))
    assert peer.transport.is_reading()
    peer.send(long[100_000:])
    assert len(peer.frames()) == 5


def test_reading_stays_paused_while_the_next_request_is_in_flight_too(shell: Shell) -> None:
    peer = shell.peer()
    peer.ask(JOIN_GROUP, join(), correlation_id=1)
    peer.send(frame(JOIN_GROUP, join(), correlation_id=2) + b"".join([frame(HEARTBEAT, heartbeat())] * 2_000))
    assert not peer.transport.is_reading()
    shell.execute_effects(Reply(shell.cluster.parked(), JOINED))
    assert not peer.transport.is_reading()
    shell.execute_effects(Reply(shell.cluster.parked(), JOINED))
    assert peer.transport.is_reading()
    assert len(peer.frames()) == 2_002


def test_who_does_not_read_the_answers_gets_no_more_of_them(shell: Shell) -> None:
    peer = shell.peer()
    peer.transport.full = True
    peer.ask(HEARTBEAT, heartbeat(), correlation_id=1)
    peer.ask(HEARTBEAT, heartbeat(), correlation_id=2)
    assert len(shell.cluster.calls) == 1
    while peer.transport.is_reading():
        peer.ask(HEARTBEAT, heartbeat(), correlation_id=3)
    peer.read()
    assert peer.transport.is_reading()
    assert peer.correlation_ids()[:3] == [1, 2, 3]
    assert len(shell.cluster.calls) > READ_AHEAD_BYTES // 100


def test_answers_that_wait_for_each_other_are_bounded(shell: Shell) -> None:
    long = JoinGroupResponse(protocol_name="range", leader="m" * 30_000, member_id="m", members=())
    shell.cluster.on[ApiKey.JOIN_GROUP] = lambda call, _: [Reply(call, long)]
    peer = shell.peer()
    peer.transport.full = True
    peer.send(frame(JOIN_GROUP, join()) * 10)
    assert sum(map(len, peer.transport.writes)) <= ANSWERS_BYTES + 31_000
    assert len(shell.cluster.calls) < 10


def test_what_was_asked_before_the_end_is_answered(shell: Shell) -> None:
    peer = shell.peer()
    peer.send(frame(JOIN_GROUP, join(), correlation_id=1) + frame(HEARTBEAT, heartbeat(), correlation_id=2))
    peer.end()
    assert not peer.transport.is_closing()
    shell.execute_effects(Reply(shell.cluster.parked(), JOINED))
    assert peer.correlation_ids() == [1, 2]
    assert peer.transport.is_closing()


def test_the_end_of_an_idle_peer_ends_the_connection(shell: Shell) -> None:
    peer = shell.peer()
    peer.ask(HEARTBEAT, heartbeat())
    peer.send(b"\0\0")
    peer.end()
    assert peer.transport.is_closing()


def test_the_end_waits_for_a_slow_reader(shell: Shell) -> None:
    peer = shell.peer()
    peer.transport.full = True
    peer.ask(HEARTBEAT, heartbeat())
    peer.end()
    assert not peer.transport.is_closing()
    peer.read()
    assert peer.transport.is_closing()


def test_an_answer_to_somebody_who_has_gone_is_dropped(shell: Shell) -> None:
    peer = shell.peer()
    peer.ask(JOIN_GROUP, join())
    peer.vanish()
    shell.execute_effects(Reply(shell.cluster.parked(), JOINED))
    assert peer.frames() == []
    assert shell.serving_loop.unexpected_errors == []


def test_an_answer_while_the_connection_closes_is_dropped(shell: Shell) -> None:
    peer = shell.peer()
    peer.ask(JOIN_GROUP, join())
    peer.connection.close()
    peer.connection.close()
    shell.execute_effects(Reply(shell.cluster.parked(), JOINED))
    assert peer.frames() == []
    assert shell.serving_loop.unexpected_errors == []


def test_closing_writes_what_was_answered(shell: Shell) -> None:
    peer = shell.peer()
    peer.send(frame(HEARTBEAT, heartbeat(), correlation_id=1) + b"\xff\xff\xff\xff")
    assert peer.correlation_ids() == [1]
    assert peer.transport.is_closing()
    assert not peer.transport.aborted


def test_nothing_is_served_on_a_closed_connection(shell: Shell) -> None:
    peer = shell.peer()
    peer.connection.abort()
    peer.send(frame(HEARTBEAT, heartbeat()))
    assert shell.cluster.calls == []


def test_what_was_asked_right_before_the_end_is_done(shell: Shell) -> None:
    """A consumer says that it leaves, and goes."""
    peer = shell.peer()
    peer.connection.data_received(frame(HEARTBEAT, heartbeat()))
    assert peer.connection.eof_received()
    shell.loop.settle()
    assert len(shell.cluster.calls) == 1
    assert len(peer.frames()) == 1
    assert peer.transport.is_closing()


def test_a_round_serves_everybody_and_then_answers_everybody(shell: Shell) -> None:
    peers = [shell.peer() for _ in range(3)]
    for peer in peers:
        peer.connection.data_received(frame(HEARTBEAT, heartbeat()))
    assert shell.cluster.calls == []
    writes_seen: list[int] = []
    answer = shell.cluster.on[ApiKey.HEARTBEAT]

    def watching(call: Call, request: Any) -> list[Effect]:
        writes_seen.append(sum(len(peer.transport.writes) for peer in peers))
        return answer(call, request)

    shell.cluster.on[ApiKey.HEARTBEAT] = watching
    shell.loop.settle()
    assert writes_seen == [0, 0, 0]
    assert [len(peer.frames()) for peer in peers] == [1, 1, 1]


def test_an_answer_that_waits_when_its_connection_is_aborted_is_not_written(shell: Shell) -> None:
    peer = shell.peer()
    peer.ask(JOIN_GROUP, join())
    shell.serving_loop.execute_effects([Reply(shell.cluster.parked(), JOINED)])
    peer.connection.abort()
    shell.loop.settle()
    assert peer.frames() == []


def test_the_same_answer_again_has_its_own_correlation_id_and_version(shell: Shell) -> None:
    """Short messages are remembered, which must not show."""
    peer = shell.peer()
    for correlation_id, version in enumerate([4, 4, 0, 0, 4, 1, 3, 3]):
        peer.ask(HEARTBEAT, heartbeat(), version=version, correlation_id=correlation_id)
        (answer,) = peer.frames()
        assert answer == {0: b"%b\0\0"}.get(version, b"%b\0\0\0\0\0\0" if version < 4 else b"%b\0\0\0\0\0\0\0\0") % (
            correlation_id.to_bytes(4)
        )
    shell.cluster.on[ApiKey.HEARTBEAT] = lambda call, _: [Reply(call, HeartbeatResponse(error_code=25))]
    peer.ask(HEARTBEAT, heartbeat())
    assert peer.answer(HEARTBEAT).error_code == 25


def test_repr_says_who_and_what(shell: Shell) -> None:
    peer = shell.peer("::1")
    assert repr(peer.connection) == "<Connection 1 [::1]:50001>"
    peer.ask(JOIN_GROUP, join())
    assert repr(peer.connection) == "<Connection 1 [::1]:50001 in flight: JoinGroup>"


def test_software_prints_as_name_and_version() -> None:
    assert str(Software("apache-kafka-java", "4.3.1")) == "apache-kafka-java 4.3.1"
    assert str(Software()) == "unknown unknown"

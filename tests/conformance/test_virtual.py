"""The virtual server is a server: it answers, parks, hangs up and lets sessions end, and only its clock is another."""

import pytest

from groupcoord.protocol.apis.join_group import JoinGroupRequestProtocol
from groupcoord.protocol.messages import ApiVersionsRequest, JoinGroupRequest
from tests.conformance.codec import api_of, read_answer, request_frame
from tests.conformance.virtual import START_MS, VirtualTarget, VirtualTimeLoop
from tests.conformance.wire import Hungup

PROPERTIES = {"group.initial.rebalance.delay.ms": "3000", "connections.max.idle.ms": "600000"}
JOIN = JoinGroupRequest(
    group_id="g",
    session_timeout_ms=10_000,
    rebalance_timeout_ms=60_000,
    member_id="",
    protocol_type="consumer",
    protocols=(JoinGroupRequestProtocol(name="range", metadata=b""),),
)


def test_an_answer_takes_no_time() -> None:
    target = VirtualTarget(PROPERTIES)
    wire = target.connect()
    wire.send(request_frame(ApiVersionsRequest(), 0, 1, "c"))
    assert wire.receive(1_000) is not None
    assert target.now_ms() == START_MS
    assert wire.receive(1_000) is None
    assert target.now_ms() == START_MS + 1_000


def test_a_parked_join_is_answered_at_its_moment() -> None:
    target = VirtualTarget(PROPERTIES)
    wire = target.connect()
    wire.send(request_frame(JOIN, 3, 1, "c"))
    assert wire.receive(2_999) is None
    frame = wire.receive(60_000)
    assert target.now_ms() == START_MS + 3_000
    assert frame is not None
    assert read_answer(api_of(JOIN), 3, frame, 1).message.generation_id == 1
    target.wait(10_000)
    (group,) = [group for shard in target.node.coordinator.shards for group in shard.machine.groups.values()]
    assert group.is_empty, "the session should have ended"
    assert not target.unexpected_errors


def test_ids_are_the_same_in_every_run() -> None:
    def member_id(seed: str) -> str:
        wire = VirtualTarget(PROPERTIES, seed).connect()
        wire.send(request_frame(JOIN, 3, 1, "c"))
        return str(read_answer(api_of(JOIN), 3, wire.receive(60_000) or b"", 1).message.member_id)

    assert member_id("a") == member_id("a") != member_id("b")


def test_a_frame_that_is_none_ends_the_connection() -> None:
    wire = VirtualTarget(PROPERTIES).connect()
    wire.send(b"\xff\xff\xff\xff")
    with pytest.raises(Hungup):
        wire.receive(1_000)
    with pytest.raises(Hungup):
        wire.send(b"more")


def test_who_is_idle_for_long_is_disconnected() -> None:
    target = VirtualTarget(PROPERTIES)
    wire = target.connect()
    with pytest.raises(Hungup):
        wire.receive(700_000)
    assert target.now_ms() == START_MS + 600_000
    wire.close()
    assert not target.connections.open


def test_a_client_that_leaves_is_gone() -> None:
    target = VirtualTarget(PROPERTIES)
    wire = target.connect()
    wire.send(request_frame(JOIN, 3, 1, "c"))
    wire.close()
    target.wait(3_000)
    assert not target.connections.open


def test_a_timer_fires_once_and_not_early() -> None:
    loop, fired = VirtualTimeLoop(), list[int]()
    loop.call_at(loop.time() + 0.0015, lambda: fired.append(loop.now_ms))
    loop.call_at(loop.time() + 0.5, lambda: fired.append(-1)).cancel()
    loop.advance(START_MS + 1_000)
    assert fired == [START_MS + 2]

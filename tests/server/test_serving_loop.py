"""Effects are carried out in order; whatever goes wrong is answered, logged and kept; there is one timer."""

import logging
from dataclasses import replace
from typing import Any

import pytest

from groupcoord.core.effects import Append, Call, CloseConnection, Effect, EmitEvent, NoReply, RawReply, Reply
from groupcoord.core.events import AdminAction, Event, event_class
from groupcoord.protocol.apis import APIS, ApiKey
from groupcoord.protocol.apis.describe_groups import DescribedGroup
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    HeartbeatResponse,
)
from groupcoord.server import connection
from groupcoord.server.background_worker import WorkOutcome
from groupcoord.server.serving_loop import ERRORS_KEPT, RETRY_AFTER_ERROR_SECONDS
from tests.server.support import (
    ALIVE,
    API_VERSIONS,
    HEARTBEAT,
    JOIN_GROUP,
    JOINED,
    PRODUCE,
    FakeCluster,
    Shell,
    frame,
    heartbeat,
    join,
    produce,
)


@event_class
class Happened(Event):
    what: str

    def text(self) -> str:
        return self.what


def happened(what: str) -> Happened:
    return Happened(at_ms=0, cause=AdminAction("a test"), what=what)


@pytest.fixture
def shell() -> Shell:
    return Shell()


def fail(*_: Any) -> list[Effect]:
    raise ZeroDivisionError("a bug")


def test_notes_go_to_whoever_listens_in_order(shell: Shell) -> None:
    shell.cluster.on[ApiKey.HEARTBEAT] = lambda call, _: [
        EmitEvent.of(happened("a")),
        Reply(call, ALIVE),
        EmitEvent.of(happened("b")),
    ]
    shell.peer().ask(HEARTBEAT, heartbeat())
    assert [event.text() for event in shell.events] == ["a", "b"]


def test_the_node_is_told_the_time(shell: Shell) -> None:
    peer = shell.peer()
    peer.ask(HEARTBEAT, heartbeat())
    shell.loop.advance(1.5)
    peer.ask(HEARTBEAT, heartbeat())
    assert shell.cluster.times == [1_000_000, 1_001_500]


def test_an_unexpected_error_is_answered_in_the_shape_of_the_api(
    shell: Shell, caplog: pytest.LogCaptureFixture
) -> None:
    shell.cluster.on[ApiKey.HEARTBEAT] = fail
    peer = shell.peer()
    peer.ask(HEARTBEAT, heartbeat("the-member"))
    assert peer.answer(HEARTBEAT).error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    (unexpected,) = shell.serving_loop.unexpected_errors
    assert isinstance(unexpected.error, ZeroDivisionError)
    assert (unexpected.call, unexpected.request) == (shell.cluster.calls[0], heartbeat("the-member"))
    (record,) = caplog.records
    assert record.levelno == logging.ERROR
    assert "Heartbeat v4 of client-1 at /127.0.0.1" in record.getMessage()
    assert "the-member" in record.getMessage()
    assert record.exc_info is not None
    assert not peer.transport.is_closing()


def test_after_an_unexpected_error_the_connection_goes_on(shell: Shell) -> None:
    healthy = shell.cluster.on[ApiKey.HEARTBEAT]
    shell.cluster.on[ApiKey.HEARTBEAT] = fail
    peer = shell.peer()
    peer.ask(HEARTBEAT, heartbeat(), correlation_id=1)
    shell.cluster.on[ApiKey.HEARTBEAT] = healthy
    peer.ask(HEARTBEAT, heartbeat(), correlation_id=2)
    assert peer.correlation_ids() == [1, 2]


def test_an_error_that_nobody_waits_for_ends_the_connection(shell: Shell) -> None:
    """As Kafka closes it when a Produce with acks=0 fails."""
    shell.cluster.on[ApiKey.PRODUCE] = fail
    peer = shell.peer()
    peer.ask(PRODUCE, produce(acks=0))
    assert peer.frames() == []
    assert peer.transport.is_closing()
    assert len(shell.serving_loop.unexpected_errors) == 1


def test_a_response_that_cannot_be_written_is_an_unexpected_error(shell: Shell) -> None:
    bad = HeartbeatResponse(error_code=1 << 20)
    shell.cluster.on[ApiKey.HEARTBEAT] = lambda call, _: [Reply(call, bad)]
    peer = shell.peer()
    peer.ask(HEARTBEAT, heartbeat())
    assert peer.answer(HEARTBEAT).error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert shell.serving_loop.unexpected_errors[0].request == heartbeat()


def test_so_is_one_that_answers_a_parked_call(shell: Shell) -> None:
    peer = shell.peer()
    peer.ask(JOIN_GROUP, join())
    shell.execute_effects(Reply(shell.cluster.parked(), "no response at all"))
    assert peer.answer(JOIN_GROUP).error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert len(shell.serving_loop.unexpected_errors) == 1


def test_not_even_the_error_can_be_written(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "encode_response", fail)
    peer = shell.peer()
    peer.ask(HEARTBEAT, heartbeat())
    assert peer.transport.is_closing()
    assert len(shell.serving_loop.unexpected_errors) == 2


def test_a_fault_of_the_parser_ends_that_connection_alone(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    peer, other = shell.peer(), shell.peer()
    with monkeypatch.context() as patched:
        patched.setattr(connection, "parse_request", fail)
        peer.ask(HEARTBEAT, heartbeat())
    other.ask(HEARTBEAT, heartbeat())
    assert peer.transport.is_closing()
    assert other.answer(HEARTBEAT) == ALIVE
    assert len(shell.serving_loop.unexpected_errors) == 1


def test_errors_are_kept_but_not_for_ever(shell: Shell) -> None:
    shell.cluster.on[ApiKey.HEARTBEAT] = fail
    peer = shell.peer()
    for _ in range(ERRORS_KEPT + 5):
        peer.ask(HEARTBEAT, heartbeat())
    assert len(shell.serving_loop.unexpected_errors) == ERRORS_KEPT


def test_a_listener_that_fails_disturbs_nobody(shell: Shell) -> None:
    def failing(_: EmitEvent) -> None:
        raise ZeroDivisionError("a bug")

    shell.serving_loop._listeners = (failing, *shell.serving_loop._listeners)
    shell.cluster.on[ApiKey.HEARTBEAT] = lambda call, _: [EmitEvent.of(happened("a")), Reply(call, ALIVE)]
    peer = shell.peer()
    peer.ask(HEARTBEAT, heartbeat())
    assert peer.answer(HEARTBEAT) == ALIVE
    assert len(shell.events) == 1
    assert len(shell.serving_loop.unexpected_errors) == 1


def test_a_listener_may_have_something_done(shell: Shell) -> None:
    waiting, peer = shell.peer(), shell.peer()
    waiting.ask(JOIN_GROUP, join())
    parked = shell.cluster.parked()
    shell.serving_loop._listeners = (lambda _: shell.execute_effects(Reply(parked, JOINED)),)
    shell.cluster.on[ApiKey.HEARTBEAT] = lambda call, _: [EmitEvent.of(happened("a")), Reply(call, ALIVE)]
    peer.ask(HEARTBEAT, heartbeat())
    assert waiting.answer(JOIN_GROUP) == JOINED
    assert peer.answer(HEARTBEAT) == ALIVE
    assert shell.serving_loop.unexpected_errors == []


def test_a_second_answer_is_an_unexpected_error(shell: Shell) -> None:
    shell.cluster.on[ApiKey.HEARTBEAT] = lambda call, _: [Reply(call, ALIVE), Reply(call, ALIVE)]
    peer = shell.peer()
    peer.ask(HEARTBEAT, heartbeat(), correlation_id=1)
    assert peer.correlation_ids() == [1]
    (unexpected,) = shell.serving_loop.unexpected_errors
    assert "no request waits for this answer" in str(unexpected.error)


def test_an_append_is_not_for_the_server(shell: Shell) -> None:
    shell.execute_effects(Append(1, "t", 0, ()))
    (unexpected,) = shell.serving_loop.unexpected_errors
    assert "an effect that is not the server's" in str(unexpected.error)


def test_a_hangup_closes_the_connection(shell: Shell, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    shell.cluster.on[ApiKey.PRODUCE] = lambda call, _: [CloseConnection(call, "a produce without acks failed")]
    peer = shell.peer()
    peer.send(frame(PRODUCE, produce(acks=0)) + frame(HEARTBEAT, heartbeat()))
    assert peer.transport.is_closing()
    assert len(shell.cluster.calls) == 1
    assert "127.0.0.1:50001: a produce without acks failed" in caplog.text


def test_bytes_are_written_as_they_are_and_the_next_request_has_its_turn(shell: Shell) -> None:
    shell.cluster.on[ApiKey.PRODUCE] = lambda call, _: [RawReply(call, b"\0\0\0\4what")]
    peer = shell.peer()
    peer.send(frame(HEARTBEAT, heartbeat()) + frame(PRODUCE, produce(acks=1)) + frame(HEARTBEAT, heartbeat()))
    assert [len(data) for data in peer.frames()] == [12, 4, 12]
    assert b"\0\0\0\4what" in b"".join(peer.transport.writes)
    assert not peer.transport.is_closing()


def test_the_connection_may_end_with_them(shell: Shell) -> None:
    shell.cluster.on[ApiKey.PRODUCE] = lambda call, _: [RawReply(call, b"\0\0\0\4wh", hangs_up=True)]
    peer = shell.peer()
    peer.send(frame(PRODUCE, produce(acks=1)) + frame(HEARTBEAT, heartbeat()))
    assert peer.transport.writes == [b"\0\0\0\4wh"]
    assert peer.transport.is_closing()
    assert len(shell.cluster.calls) == 1


def test_no_bytes_are_written_to_a_connection_that_is_being_closed(shell: Shell) -> None:
    peer = shell.peer()
    peer.ask(JOIN_GROUP, join())
    peer.connection.close()
    shell.execute_effects(RawReply(shell.cluster.parked(), b"\0\0\0\4what"))
    assert peer.transport.writes == []


@pytest.mark.parametrize(
    "effect", [NoReply, lambda call: CloseConnection(call, "why"), lambda call: RawReply(call, b"what")]
)
def test_the_end_of_a_call_that_is_no_longer_in_flight_does_nothing(shell: Shell, effect: Any) -> None:
    peer = shell.peer()
    peer.ask(HEARTBEAT, heartbeat())
    peer.ask(JOIN_GROUP, join())
    shell.execute_effects(effect(shell.cluster.calls[0]))
    assert peer.connection.in_flight is shell.cluster.parked()
    peer.vanish()
    shell.execute_effects(effect(shell.cluster.parked()))
    assert not peer.transport.is_closing()


class TestMalformed:
    """A malformed request closes its connection at once, with one line that says where and what."""

    def line(self, shell: Shell, caplog: pytest.LogCaptureFixture, data: bytes) -> str:
        other, peer = shell.peer(), shell.peer()
        peer.send(data)
        assert peer.transport.is_closing()
        other.ask(HEARTBEAT, heartbeat())
        assert other.answer(HEARTBEAT) == ALIVE
        (record,) = caplog.records
        assert record.levelno == logging.WARNING
        return record.getMessage()

    def test_body(self, shell: Shell, caplog: pytest.LogCaptureFixture) -> None:
        cut = frame(HEARTBEAT, heartbeat("member"), version=3)[4:-6]
        line = self.line(shell, caplog, len(cut).to_bytes(4) + cut)
        assert line.startswith("closing 127.0.0.1:50002: Heartbeat v3, field member_id, offset ")
        assert caplog.records[0].place["field"] == "member_id"  # type: ignore[attr-defined]

    def test_length(self, shell: Shell, caplog: pytest.LogCaptureFixture) -> None:
        line = self.line(shell, caplog, b"\x7f\xff\xff\xff")
        assert "a frame of 2147483647 bytes; socket.request.max.bytes is 104857600" in line

    @pytest.mark.parametrize("data", [b"\xff\xff\xff\xff", b"\0\0\0\0", b"\0\0\0\1\0", b"\x80\0\0\0"])
    def test_no_header(self, shell: Shell, caplog: pytest.LogCaptureFixture, data: bytes) -> None:
        assert "closing 127.0.0.1:50002: " in self.line(shell, caplog, data)

    def test_unknown_api(self, shell: Shell, caplog: pytest.LogCaptureFixture) -> None:
        assert "API key 999 is not served" in self.line(shell, caplog, b"\0\0\0\x0a\x03\xe7\0\0\0\0\0\1\xff\xff")

    def test_unserved_version(self, shell: Shell, caplog: pytest.LogCaptureFixture) -> None:
        line = self.line(shell, caplog, b"\0\0\0\x0a\0\x0c\0\x63\0\0\0\1\xff\xff")
        assert "Heartbeat v99, field request_api_version, offset 2: " in line

    def test_the_limit_is_the_configured_one(self, caplog: pytest.LogCaptureFixture) -> None:
        shell = Shell(socket_request_max_bytes=100)
        shell.peer().send((100).to_bytes(4))
        assert not caplog.records
        assert "socket.request.max.bytes is 100" in self.line(shell, caplog, (101).to_bytes(4))


class TestApiVersions:
    """Software is learnt from it; an unknown version gets an answer it can read (KIP-511)."""

    def test_the_software_is_kept(self, shell: Shell) -> None:
        peer = shell.peer()
        assert str(peer.connection.software) == "unknown unknown"
        kcat = ApiVersionsRequest(client_software_name="librdkafka", client_software_version="2.0.2")
        peer.ask(API_VERSIONS, kcat, version=3)
        assert str(peer.connection.software) == "librdkafka 2.0.2"

    @pytest.mark.parametrize("name", ["", "two words", "-dash", "line\nbreak"])
    def test_software_that_kafka_refuses_is_not(self, shell: Shell, name: str) -> None:
        peer = shell.peer()
        request = ApiVersionsRequest(client_software_name=name, client_software_version="1")
        peer.ask(API_VERSIONS, request, version=4)
        assert peer.connection.software.name == "unknown"

    def test_old_versions_do_not_say(self, shell: Shell) -> None:
        peer = shell.peer()
        peer.ask(API_VERSIONS, ApiVersionsRequest(), version=2)
        assert peer.connection.software.name == "unknown"

    def test_an_unknown_version_is_answered_in_version_0(self, shell: Shell) -> None:
        unsupported = ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=())
        shell.cluster.on[ApiKey.API_VERSIONS] = lambda call, _: [Reply(call._replace(version=0), unsupported)]
        peer = shell.peer()
        peer.send(b"\0\0\0\x0b\0\x12\0\x63\0\0\0\1\xff\xff\0")
        assert shell.cluster.requests == [None]
        assert peer.answer(API_VERSIONS, version=0) == unsupported
        assert shell.serving_loop.unexpected_errors == []

    def test_a_fault_then_ends_the_connection(self, shell: Shell) -> None:
        shell.cluster.on[ApiKey.API_VERSIONS] = fail
        peer = shell.peer()
        peer.send(b"\0\0\0\x0b\0\x12\0\x63\0\0\0\1\xff\xff\0")
        assert peer.transport.is_closing()


class TestTimer:
    """One timer, set for the earliest deadline, moved only when something earlier comes."""

    def waiting(self, shell: Shell, in_ms: int) -> None:
        """A request that leaves a deadline behind."""

        def park(call: Call, _: Any) -> list[Effect]:
            shell.cluster.deadline_ms = shell.loop.now_ms() + in_ms
            return [Reply(call, ALIVE)]

        shell.cluster.on[ApiKey.HEARTBEAT] = park

    def test_what_is_due_is_done_on_time(self, shell: Shell) -> None:
        due: list[int] = []
        shell.cluster.on_expiry = lambda now_ms: due.append(now_ms) or []  # type: ignore[func-returns-value]
        self.waiting(shell, 3_000)
        shell.peer().ask(HEARTBEAT, heartbeat())
        shell.loop.advance(2.999)
        assert due == []
        shell.loop.advance(0.001)
        assert due == [1_003_000]
        shell.loop.advance(1_000)
        assert len(due) == 1

    def test_its_effects_are_carried_out(self, shell: Shell) -> None:
        waiting = shell.peer()
        waiting.ask(JOIN_GROUP, join(), correlation_id=1)
        waiting.ask(HEARTBEAT, heartbeat(), correlation_id=2)
        parked = shell.cluster.parked()
        shell.cluster.on_expiry = lambda _: [Reply(parked, JOINED)]
        shell.cluster.deadline_ms = shell.loop.now_ms() + 10
        shell.serving_loop.wake()
        shell.loop.advance(0.010)
        assert waiting.correlation_ids() == [1, 2]

    def test_a_deadline_that_moves_later_costs_no_timer(self, shell: Shell) -> None:
        self.waiting(shell, 45_000)
        peer = shell.peer()
        idle_timer = shell.loop.timers_set
        for _ in range(20):
            peer.ask(HEARTBEAT, heartbeat())
            shell.loop.advance(1)
        assert shell.loop.timers_set == idle_timer + 1
        shell.loop.advance(30)  # the timer finds that it is too early, and is set again
        assert shell.loop.timers_set == idle_timer + 2
        assert shell.cluster.deadline_ms is not None
        shell.loop.advance(14)
        assert shell.cluster.deadline_ms is None

    def test_an_earlier_deadline_moves_it(self, shell: Shell) -> None:
        peer = shell.peer()
        for in_ms in (45_000, 10):
            self.waiting(shell, in_ms)
            peer.ask(HEARTBEAT, heartbeat())
            shell.loop.settle()
        shell.loop.advance(0.010)
        assert shell.cluster.deadline_ms is None

    def test_it_is_looked_at_once_for_all_requests_of_a_round(self, shell: Shell) -> None:
        looks: list[None] = []
        shell.cluster.next_deadline = lambda: looks.append(None)  # type: ignore[method-assign]
        for peer in [shell.peer() for _ in range(10)]:
            peer.connection.data_received(frame(HEARTBEAT, heartbeat()))
        shell.loop.settle()
        assert len(looks) == 1

    def test_a_clock_moved_by_hand_needs_a_wake(self) -> None:
        shell = Shell()
        hand = [0]
        shell.serving_loop._now_ms = lambda: hand[0]
        shell.cluster.deadline_ms = 60_000
        shell.serving_loop.wake()
        assert shell.cluster.deadline_ms == 60_000
        hand[0] = 60_000
        shell.serving_loop.wake()
        assert shell.cluster.deadline_ms is None

    def test_a_timer_that_fails_is_reported_and_does_not_spin(self, shell: Shell) -> None:
        class Stuck(FakeCluster):
            def expire(self, now_ms: int) -> list[Effect]:
                raise ZeroDivisionError("a bug")

        shell.cluster.__class__ = Stuck
        shell.cluster.deadline_ms = shell.loop.now_ms()
        shell.serving_loop.wake()
        shell.loop.advance(10 * RETRY_AFTER_ERROR_SECONDS + 0.01)
        assert 10 <= len(shell.serving_loop.unexpected_errors) <= 12

    def test_nothing_fires_after_the_stop(self, shell: Shell) -> None:
        shell.cluster.deadline_ms = shell.loop.now_ms() + 10
        shell.serving_loop.wake()
        shell.loop.settle()
        shell.serving_loop.wake()
        shell.serving_loop.stop()
        shell.serving_loop.stop()
        shell.loop.advance(1)
        assert shell.cluster.deadline_ms is not None


def test_requests_and_answers_are_logged_when_asked_for(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "groupcoord.server")
    shell = Shell()
    peer = shell.peer()
    peer.ask(API_VERSIONS, ApiVersionsRequest(client_software_name="kcat", client_software_version="1"))
    peer.ask(HEARTBEAT, heartbeat("m" * 5_000), version=3)
    peer.vanish()
    connected, _, software, _, asked, answered, gone = [record.getMessage() for record in caplog.records]
    assert connected == "127.0.0.1:50001 connected"
    assert software == "127.0.0.1:50001 is kcat 1"
    assert asked.startswith("127.0.0.1:50001 asks v3 HeartbeatRequest(group_id='g'")
    assert len(asked) < 2_100
    assert answered == "127.0.0.1:50001 is answered HeartbeatResponse()"
    assert gone == "127.0.0.1:50001 disconnected"


def test_every_api_is_known(shell: Shell) -> None:
    """The fake node of these tests answers four; the serving loop treats them all alike but ApiVersions."""
    assert set(shell.cluster.on) < set(APIS)


class TestWorkAside:
    """A request for which something is done elsewhere, while its connection waits."""

    def test_what_follows_is_carried_out_and_the_next_request_has_its_turn(self) -> None:
        shell = Shell()
        peer = shell.peer()
        peer.send(frame(JOIN_GROUP, join()) + frame(HEARTBEAT, heartbeat(), correlation_id=2))
        assert peer.frames() == []
        call = shell.cluster.parked()
        shell.serving_loop.work_done(WorkOutcome(call, lambda result, _: [Reply(call, result)], JOINED, None))
        shell.loop.settle()
        assert len(peer.frames()) == 2

    def test_an_exception_is_answered_as_if_it_had_happened_at_once(self) -> None:
        shell = Shell()
        peer = shell.peer()
        peer.send(frame(JOIN_GROUP, join()))
        problem = RuntimeError("no")
        shell.serving_loop.work_done(WorkOutcome(shell.cluster.parked(), lambda _, __: [], None, problem))
        shell.loop.settle()
        assert peer.answer(JOIN_GROUP).error_code == ErrorCode.UNKNOWN_SERVER_ERROR
        (unexpected,) = shell.serving_loop.unexpected_errors
        assert unexpected.error is problem

    def test_who_has_gone_misses_nothing(self) -> None:
        shell = Shell()
        peer = shell.peer()
        peer.send(frame(JOIN_GROUP, join()))
        peer.vanish()
        call = shell.cluster.parked()
        shell.serving_loop.work_done(
            WorkOutcome(call, lambda _, __: [Reply(call, JOINED), EmitEvent.of(happened("it"))], None, None)
        )
        shell.serving_loop.work_done(WorkOutcome(call, lambda _, __: [], None, RuntimeError("no")))
        shell.loop.settle()
        assert shell.events == [happened("it")]
        assert len(shell.serving_loop.unexpected_errors) == 1


class TestNamesThatAreTooLong:
    """Of bytes that are no UTF-8 each becomes three in an answer; seen on a real 4.3.1, where the exception is logged."""

    DESCRIBE = APIS[ApiKey.DESCRIBE_GROUPS]
    NAME = "\ufffd" * 20_000

    def test_an_answer_that_can_do_without_the_name_is_an_error(self, caplog: pytest.LogCaptureFixture) -> None:
        shell = Shell()
        peer = shell.peer()
        shell.cluster.on[ApiKey.JOIN_GROUP] = lambda call, _: [Reply(call, replace(JOINED, member_id=self.NAME))]
        for version in (0, 9):
            peer.send(frame(JOIN_GROUP, join(), version=version))
            assert peer.answer(JOIN_GROUP, version=version).error_code == ErrorCode.UNKNOWN_SERVER_ERROR
        assert shell.serving_loop.unexpected_errors == []
        assert [record.getMessage().partition(": ")[2] for record in caplog.records] == [
            "'member_id' field is too long to be serialized"
        ] * 2

    @pytest.mark.parametrize("version", [0, 5])
    def test_without_an_error_that_can_be_said_there_is_no_answer_and_the_connection_stays_open(
        self, version: int, caplog: pytest.LogCaptureFixture
    ) -> None:
        shell = Shell()
        peer = shell.peer()
        group = DescribedGroup(
            error_code=0, group_id=self.NAME, group_state="", protocol_type="", protocol_data="", members=()
        )
        shell.cluster.on[ApiKey.DESCRIBE_GROUPS] = lambda call, _: [
            Reply(call, DescribeGroupsResponse(groups=(group,)))
        ]
        asked = frame(self.DESCRIBE, DescribeGroupsRequest(groups=("~" * 20_000,)), version=version)
        peer.send(asked.replace(b"~", b"\xff") + frame(HEARTBEAT, heartbeat()))
        assert peer.frames() == []
        assert not peer.transport.is_closing()
        assert [record.getMessage() for record in caplog.records] == [
            "no answer to DescribeGroups of 127.0.0.1:50001: 'group_id' field is too long to be serialized"
        ]
        assert shell.serving_loop.unexpected_errors == []


class TestFlush:
    """What a cluster puts off is completed once in each round, before the answers are written."""

    def test_answers_of_the_flush_are_written_with_the_others(self, shell: Shell) -> None:
        peers = [shell.peer(), shell.peer()]
        put_off: list[Call] = []

        def put_it_off(call: Call, _: Any) -> list[Effect]:
            put_off.append(call)
            return []

        def complete(_: int) -> list[Effect]:
            calls, put_off[:] = put_off[:], []
            return [Reply(call, JOINED) for call in calls]

        shell.cluster.on[ApiKey.JOIN_GROUP] = put_it_off
        shell.cluster.on_flush = complete
        for peer in peers:
            peer.connection.data_received(frame(JOIN_GROUP, join()))
        shell.loop.settle()
        assert [peer.answer(JOIN_GROUP).generation_id for peer in peers] == [1, 1]

    def test_a_flush_that_fails_keeps_no_answer_back(self, shell: Shell) -> None:
        def fails(_: int) -> list[Effect]:
            raise RuntimeError("no")

        shell.cluster.on_flush = fails
        peer = shell.peer()
        peer.ask(HEARTBEAT, heartbeat())
        assert len(peer.frames()) == 1
        assert [str(unexpected.error) for unexpected in shell.serving_loop.unexpected_errors] == ["no"]

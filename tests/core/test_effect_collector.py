import pytest

from groupcoord.core.effect_collector import HandlerContext
from groupcoord.core.effects import Append, Call, CloseConnection, EmitEvent, LogRecord, NoReply, Reply, TypedRecord
from groupcoord.core.events import AdminAction, BrokerTask, Event, Requested, TimerFired
from groupcoord.protocol.apis import APIS, ApiKey

CALL = Call(7, 3, APIS[ApiKey.HEARTBEAT], 4, "me", "/10.0.0.1")


def test_effects_come_in_the_order_they_were_made() -> None:
    ctx = HandlerContext(5, CALL)
    record = TypedRecord("k", None, LogRecord(key=b"k", value=None))
    ctx.reply(CALL, "yes")
    ctx.no_reply(CALL)
    ctx.close_connection(CALL, "why")
    ctx.append(1, "t", 2, (record,))
    assert ctx.effects == [
        Reply(CALL, "yes", CALL),
        NoReply(CALL, CALL),
        CloseConnection(CALL, "why", CALL),
        Append(1, "t", 2, (record,)),
    ]


def test_a_note_of_a_request_names_the_request() -> None:
    ctx = HandlerContext(5, CALL)
    ctx.emit(Event)
    assert ctx.effects == [EmitEvent.of(Event(at_ms=5, cause=Requested("Heartbeat", 4, "me", "/10.0.0.1", 7, 3)))]


def test_a_cause_that_is_no_request_is_passed_on() -> None:
    cause = AdminAction("a test wishes it")
    ctx = HandlerContext(5, cause)
    ctx.emit(Event)
    (effect,) = ctx.effects
    assert isinstance(effect, EmitEvent)
    assert effect.event.cause is cause


@pytest.mark.parametrize(
    ("cause", "words"),
    [
        (Requested("JoinGroup", 9, "app", "/127.0.0.1", 1, 1), "JoinGroup v9 from app"),
        (Requested("JoinGroup", 9, None, "/127.0.0.1", 1, 1), "JoinGroup v9 from a client without id"),
        (TimerFired("session", "g", "a-1", 5), "session timer of a-1"),
        (TimerFired("join", "g", "", 5), "join timer of g"),
        (AdminAction("a test wishes it"), "a test wishes it"),
        (BrokerTask("the coordinator appends to orders-0"), "the coordinator appends to orders-0"),
    ],
)
def test_a_cause_reads_as_words(cause: Requested | TimerFired | AdminAction | BrokerTask, words: str) -> None:
    assert str(cause) == words


def test_an_event_without_words_of_its_own_is_a_mistake() -> None:
    with pytest.raises(NotImplementedError):
        Event(at_ms=0, cause=AdminAction("")).text()

import pytest

from groupcoord.core.effects import Append, Call, Hangup, LogRecord, Note, Reply, Silence
from groupcoord.core.events import Event, Operator, Requested, TimerFired
from groupcoord.core.turn import Turn
from groupcoord.protocol.apis import APIS, ApiKey

CALL = Call(7, 3, APIS[ApiKey.HEARTBEAT], 4, "me", "/10.0.0.1")


def test_effects_come_in_the_order_they_were_made() -> None:
    turn = Turn(5, CALL)
    record = LogRecord(key=b"k", value=None)
    turn.reply(CALL, "yes")
    turn.silence(CALL)
    turn.hang_up(CALL, "why")
    turn.append(1, 2, (record,))
    assert turn.effects == [Reply(CALL, "yes"), Silence(CALL), Hangup(CALL, "why"), Append(1, 2, (record,))]


def test_a_note_of_a_request_names_the_request() -> None:
    turn = Turn(5, CALL)
    turn.note(Event)
    assert turn.effects == [Note(Event(at_ms=5, cause=Requested("Heartbeat", 4, "me", "/10.0.0.1", 7, 3)))]


def test_a_cause_that_is_no_request_is_passed_on() -> None:
    cause = Operator("a test wishes it")
    assert Turn(5, cause).cause is cause


@pytest.mark.parametrize(
    ("cause", "words"),
    [
        (Requested("JoinGroup", 9, "app", "/127.0.0.1", 1, 1), "JoinGroup v9 from app"),
        (Requested("JoinGroup", 9, None, "/127.0.0.1", 1, 1), "JoinGroup v9 from a client without id"),
        (TimerFired("session", "g", "a-1", 5), "session timer of a-1"),
        (TimerFired("join", "g", "", 5), "join timer of g"),
        (Operator("a test wishes it"), "a test wishes it"),
    ],
)
def test_a_cause_reads_as_words(cause: Requested | TimerFired | Operator, words: str) -> None:
    assert str(cause) == words


def test_an_event_without_words_of_its_own_is_a_mistake() -> None:
    with pytest.raises(NotImplementedError):
        Event(at_ms=0, cause=Operator("")).text()

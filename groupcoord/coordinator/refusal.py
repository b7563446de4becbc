"""How a handler says no: raise, and the API's entry makes its own kind of error response of it."""

from groupcoord.coordinator.events import RequestRefused
from groupcoord.core.effects import Call
from groupcoord.core.turn import Turn
from groupcoord.protocol.errors import ErrorCode


class Refused(Exception):
    """The request is refused with ``code``; ``why`` says in words what was wrong with which field."""

    def __init__(self, code: ErrorCode, why: str) -> None:
        self.code, self.why = code, why
        super().__init__(f"{code.name}: {why}")


class Stumbled(Refused):
    """Kafka fails here with an exception that nobody expected (``IllegalArgumentException`` and the like).

    What was done by then stays done and what was to follow does not happen. Whoever asked is told UNKNOWN_SERVER_ERROR; when a
    timer is the cause, nobody is told anything.
    """

    def __init__(self, why: str) -> None:
        super().__init__(ErrorCode.UNKNOWN_SERVER_ERROR, why)


def note_refusal(turn: Turn, call: Call, group_id: str, member_id: str, refusal: Refused) -> None:
    """Say that ``call``, which speaks for ``member_id`` (``""``: nobody yet), is refused; answering it is the caller's."""
    error, why = refusal.code.name, refusal.why
    turn.note(RequestRefused, group=group_id, api=call.api.name, member=member_id, error=error, why=why)

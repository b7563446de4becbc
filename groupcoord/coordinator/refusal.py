"""Errors of the group coordinator's APIs, and the event that tells of one."""

from groupcoord.coordinator.events import RequestRefused
from groupcoord.core.api_error import ApiError
from groupcoord.core.effects import Call
from groupcoord.core.handler_context import HandlerContext
from groupcoord.protocol.errors import ErrorCode


class UnexpectedBrokerError(ApiError):
    """Kafka fails here with an exception that nobody expected (``IllegalArgumentException`` and the like).

    What was done by then stays done and what was to follow does not happen. Whoever asked is told UNKNOWN_SERVER_ERROR; when a
    timer is the cause, nobody is told anything.
    """

    def __init__(self, why: str) -> None:
        super().__init__(ErrorCode.UNKNOWN_SERVER_ERROR, why)


def emit_refusal(ctx: HandlerContext, call: Call, group_id: str, member_id: str, refusal: ApiError) -> None:
    """Say that ``call``, which speaks for ``member_id`` (``""``: nobody yet), is refused; answering it is the caller's."""
    error, why = refusal.code.name, refusal.message or refusal.code.text
    ctx.emit(RequestRefused, group=group_id, api=call.api.name, member=member_id, error=error, why=why)

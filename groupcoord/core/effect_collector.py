"""HandlerContext, which collects the effects (replies, appends, events) of handling one request or timer."""

from collections.abc import Callable, Mapping
from typing import Any

from groupcoord.core.effects import (
    NO_PRODUCER,
    Append,
    Call,
    CloseConnection,
    Effect,
    EmitEvent,
    NoReply,
    Origin,
    Reply,
    TransactionMarker,
    TypedRecord,
)
from groupcoord.core.events import Event

_new = tuple.__new__  # bypasses the constructor of the NamedTuple, which is written in Python, for every response


class HandlerContext:
    """Collects the effects of one call or timer. ``now_ms`` is the only clock."""

    __slots__ = ("effects", "now_ms", "origin")

    def __init__(self, now_ms: int, origin: Origin) -> None:
        self.now_ms = now_ms
        self.origin = origin
        self.effects: list[Effect] = []

    def reply(self, call: Call, response: Any) -> None:
        """Respond to ``call``."""
        self.effects.append(_new(Reply, (call, response, self.origin)))

    def no_reply(self, call: Call) -> None:
        """End ``call`` without a response."""
        self.effects.append(NoReply(call, self.origin))

    def close_connection(self, call: Call, reason: str) -> None:
        """Close the connection of ``call``."""
        self.effects.append(CloseConnection(call, reason, self.origin))

    def append(
        self,
        append_id: int,
        topic: str,
        partition: int,
        records: tuple[TypedRecord, ...],
        producer_id: int = NO_PRODUCER,
        producer_epoch: int = -1,
        marker: TransactionMarker | None = None,
    ) -> None:
        """Append ``records`` to ``partition`` of ``topic``, in a producer's transaction; or ``marker``: see Append."""
        self.effects.append(Append(append_id, topic, partition, records, producer_id, producer_epoch, marker))

    def emit(self, event: type[Event], **fields: Any) -> None:
        """Emit an event with this context's time and cause; it is created when a listener asks for it."""
        self.effects.append(EmitEvent(event, self.now_ms, self.origin, fields))

    def emit_with(self, event: type[Event], late: Callable[[], Mapping[str, Any]], **fields: Any) -> None:
        """As ``emit``, for an event with expensive fields: ``late`` returns them when a listener asks."""
        self.effects.append(EmitEvent(event, self.now_ms, self.origin, fields, late))

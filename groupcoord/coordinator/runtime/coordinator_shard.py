"""What a coordinator brings to the runtime: the state of one partition of its topic, and operations that change it.

Source: ``CoordinatorShard``, ``CoordinatorPlayback``, ``CoordinatorResult``, ``CoordinatorRuntime.CoordinatorWriteOperation``.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from groupcoord.coordinator.runtime.append_queue import Failed, Stored
from groupcoord.coordinator.runtime.undo import UndoLog
from groupcoord.core.api_error import ApiError
from groupcoord.core.effects import NO_PRODUCER, Call, TypedRecord
from groupcoord.core.handler_context import HandlerContext
from groupcoord.protocol.coordinator_records.commit_fast_path import RecordSink, ScanResult
from groupcoord.protocol.errors import ErrorCode


class LoadSummary(NamedTuple):
    """What was read of a partition: how many ``records``, and how many of them have an ``unknown`` type."""

    partition: int
    records: int
    unknown: int
    took_ms: int


class CoordinatorShard(Protocol):
    """The state of one partition of a coordinator's topic: a state machine, which only ``apply`` and operations change.

    A Shard of the runtime has one, its ``machine``: it appends what that wants written, and loads it anew.
    """

    @property
    def is_empty(self) -> bool:
        """Is there no state at all?"""

    def decode(self, key: bytes, value: bytes | None) -> TypedRecord | None:
        """The record with these bytes; None for a type that is not known here. Raises WireError."""

    def apply(self, record: TypedRecord, offset: int, producer_id: int) -> None:
        """Change the state as ``record`` says, whether it was written just now or is read back. Raises WireError.

        A record of a transaction of ``producer_id`` counts when that is committed.
        """

    def apply_run(self, data: bytes, position: int, other: RecordSink) -> ScanResult:
        """Apply many plain records of the batches from ``position`` of ``data`` on; ``other`` takes those that need a look.

        Only for loading, to be fast. To apply nothing, return ``ScanResult(position, -1, 0)``.
        """

    def end_transaction(self, producer_id: int, *, committed: bool) -> Stored | None:
        """The transaction of ``producer_id`` is committed or aborted, whether that was written just now or is read back.

        What is returned is called when the marker that says so is stored; a marker that is read back is.
        """

    def on_loaded(self, ctx: HandlerContext, summary: LoadSummary) -> None:
        """The log is read: start timers. Raises WireError or ApiError, before any effect, if the state cannot be served."""

    def on_load_failed(self, ctx: HandlerContext, summary: LoadSummary, why: str) -> None:
        """The log could not be read."""

    def on_unloaded(self, ctx: HandlerContext, why: str) -> None:
        """The partition is coordinated elsewhere from now on: answer requests that wait, cancel timers."""

    def view(self, pending: Iterable[UndoLog]) -> Any:
        """The state without the writes that are ``pending``, oldest first."""


M = TypeVar("M", bound=CoordinatorShard)


@dataclass(slots=True)
class CoordinatorResult:
    """What an operation decides: records to write, and a response, which is sent when they are stored.

    ``stored`` is called before the response is sent. If the append fails, the operation's ``failed`` answers instead; a result
    without a response has a ``failed`` of its own. Records of a state that the operation has changed itself are not applied
    again: ``replay_records``. Records that are not ``is_atomic`` may be spread over batches. Without records the response waits
    for the earlier writes of its partition. Records with a producer are a part of its transaction, and atomic.
    """

    response: Any = None
    records: Sequence[TypedRecord] = ()
    stored: Stored | None = None
    failed: Failed | None = None
    replay_records: bool = True
    is_atomic: bool = True
    producer_id: int = NO_PRODUCER
    producer_epoch: int = -1


EMPTY_RESULT = CoordinatorResult()

TimerOperation = Callable[[HandlerContext], CoordinatorResult]
"""What a timer of a state machine does."""


class Operation(NamedTuple, Generic[M]):
    """A request that may write. ``run`` may raise ApiError, before it changes anything; ``refused`` answers that, and a shard
    that is not active. ``failed`` answers instead of the response of a result when an append failed, with the log's error."""

    run: Callable[[M, HandlerContext, Call, Any], CoordinatorResult]
    refused: Callable[[HandlerContext, Call, Any, ApiError], None]
    failed: Callable[[HandlerContext, Call, Any, ErrorCode], None] = lambda *_: None

"""CoordinatorShard, the interface that a coordinator implements for the runtime: the state of one partition, and operations.

Source: ``CoordinatorShard``, ``CoordinatorPlayback``, ``CoordinatorResult``, ``CoordinatorRuntime.CoordinatorWriteOperation``.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from groupcoord.coordinator.runtime.append_queue import Failed, Stored
from groupcoord.coordinator.runtime.undo import UndoLog
from groupcoord.core.api_error import ApiError
from groupcoord.core.effect_collector import HandlerContext
from groupcoord.core.effects import NO_PRODUCER, Call, TypedRecord
from groupcoord.protocol.coordinator_records.commit_fast_path import RecordSink, ScanResult
from groupcoord.protocol.errors import ErrorCode


class LoadSummary(NamedTuple):
    """The result of loading a partition: the number of ``records``, and of those of ``unknown`` type."""

    partition: int
    records: int
    unknown: int
    took_ms: int


class CoordinatorShard(Protocol):
    """The state machine of one partition of a coordinator's topic; only ``apply`` and operations change it.

    It is the ``machine`` of a Shard of the runtime, which appends its records, and loads it.
    """

    @property
    def is_empty(self) -> bool:
        """Is the state empty?"""

    def decode(self, key: bytes, value: bytes | None) -> TypedRecord | None:
        """Decode a record; None for an unknown type. Raises WireError."""

    def apply(self, record: TypedRecord, offset: int, producer_id: int) -> None:
        """Apply ``record`` to the state, whether it was just written or is being loaded. Raises WireError.

        A record in a transaction of ``producer_id`` takes effect when that is committed.
        """

    def apply_run(self, data: bytes, position: int, other: RecordSink) -> ScanResult:
        """Apply plain records of the batches from ``position`` of ``data`` on; call ``other`` for all other records.

        The fast path of loading. An implementation without one returns ``ScanResult(position, -1, 0)``.
        """

    def end_transaction(self, producer_id: int, *, committed: bool) -> Stored | None:
        """Commit or abort the transaction of ``producer_id``, whether its marker was just written or is being loaded.

        The returned function is called when the marker is stored, as a loaded one is.
        """

    def on_loaded(self, ctx: HandlerContext, summary: LoadSummary) -> None:
        """The log is loaded: start timers. Raises WireError or ApiError, before any effect, if the state is unusable."""

    def on_load_failed(self, ctx: HandlerContext, summary: LoadSummary, why: str) -> None:
        """The log could not be loaded."""

    def on_unloaded(self, ctx: HandlerContext, why: str) -> None:
        """Another broker coordinates the partition from now on: answer waiting requests, cancel timers."""

    def view(self, pending: Iterable[UndoLog]) -> Any:
        """A view of the state without the ``pending`` writes, which are given oldest first."""


M = TypeVar("M", bound=CoordinatorShard)


@dataclass(slots=True)
class CoordinatorResult:
    """The result of an operation: records to append, and a response, which is sent when they are stored.

    ``stored`` is called before the response is sent. If the append fails, the operation's ``failed`` answers instead; a result
    without a response has its own ``failed``. ``replay_records`` false: the operation has already changed the state itself.
    ``is_atomic`` false: the records may be spread over batches. Without records the response waits for the earlier writes of
    its partition. Records with a producer id are part of its transaction, and atomic.
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
"""The operation of a timer of a state machine."""


class Operation(NamedTuple, Generic[M]):
    """The handler of a request that may write. ``run`` may raise ApiError, before any change; then, and if the shard is not
    active, ``refused`` answers. If the append fails, ``failed`` answers, with the error of the log."""

    run: Callable[[M, HandlerContext, Call, Any], CoordinatorResult]
    refused: Callable[[HandlerContext, Call, Any, ApiError], None]
    failed: Callable[[HandlerContext, Call, Any, ErrorCode], None] = lambda *_: None

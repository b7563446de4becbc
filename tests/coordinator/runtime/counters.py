"""A minimal coordinator on the coordinator runtime, with a topic of its own: named counters.

It shows what a coordinator of transactions or share groups has to bring, and that the runtime knows no groups.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from groupcoord.coordinator.runtime.append_queue import ADAPTIVE_LINGER, AppendSettings, Stored
from groupcoord.coordinator.runtime.coordinator_runtime import CoordinatorRuntime
from groupcoord.coordinator.runtime.coordinator_shard import CoordinatorResult, LoadSummary, Operation
from groupcoord.coordinator.runtime.shard import ShardState, ShardTimers
from groupcoord.coordinator.runtime.undo import UndoableMap, UndoLog, UndoRecorder, values_before
from groupcoord.core.api_error import ApiError
from groupcoord.core.effect_collector import HandlerContext
from groupcoord.core.effects import (
    NO_PRODUCER,
    Append,
    Call,
    Effect,
    LogRecord,
    Reply,
    TransactionMarker,
    TypedRecord,
)
from groupcoord.core.events import AdminAction
from groupcoord.core.timers import TimerKey, Timers
from groupcoord.protocol.api_descriptor import Api
from groupcoord.protocol.apis import APIS, ApiKey
from groupcoord.protocol.coordinator_records.commit_fast_path import RecordSink, ScanResult
from groupcoord.protocol.errors import ErrorCode, WireError

TOPIC = "__counters"
API: Api = APIS[ApiKey.HEARTBEAT]


class Key(NamedTuple):
    name: str


def record(name: str, value: int | None) -> TypedRecord:
    return TypedRecord(Key(name), value, LogRecord(key=name.encode(), value=None if value is None else b"%d" % value))


class Add(NamedTuple):
    """The request: add to a counter, in a transaction of that producer if there is one; 0 only reads it."""

    name: str
    by: int = 1
    producer_id: int = NO_PRODUCER


class Counters:
    """The state machine."""

    def __init__(self, partition: int, timers: ShardTimers, undo: UndoRecorder) -> None:
        self.partition, self.timers = partition, timers
        self.values: UndoableMap[str, int] = UndoableMap(undo)
        self.heard: list[str] = []
        self.offsets: list[int] = []
        self.in_transactions: UndoableMap[int, tuple[tuple[str, int], ...]] = UndoableMap(undo)

    @property
    def is_empty(self) -> bool:
        return not self.values

    def decode(self, key: bytes, value: bytes | None) -> TypedRecord | None:
        if key.startswith(b"?"):
            return None
        if value == b"broken":
            raise WireError("it is broken")
        return record(key.decode(), None if value is None else int(value))

    def apply(self, found: TypedRecord, offset: int, producer_id: int) -> None:
        self.offsets.append(offset)
        if producer_id != NO_PRODUCER:
            pending = self.in_transactions.get(producer_id) or ()
            self.in_transactions[producer_id] = (*pending, (found.key.name, found.value))
        elif found.value is not None:
            self.values[found.key.name] = found.value
        elif found.key.name in self.values:
            del self.values[found.key.name]

    def apply_run(self, _data: bytes, position: int, _other: RecordSink) -> ScanResult:
        return ScanResult(position, -1, 0)

    def end_transaction(self, producer_id: int, *, committed: bool) -> Stored | None:
        if producer_id not in self.in_transactions:
            return None
        pending = self.in_transactions[producer_id]
        del self.in_transactions[producer_id]
        if committed:
            for name, value in pending:
                self.values[name] = value
        return lambda ctx: ctx.reply(call(0), f"transaction of {producer_id} {'committed' if committed else 'aborted'}")

    def on_loaded(self, ctx: HandlerContext, summary: LoadSummary) -> None:
        if "refused" in self.values:
            raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, "refused is not a counter")
        self.heard.append(f"loaded {summary.records} records, {summary.unknown} unknown, in {summary.took_ms} ms")
        if "soon" in self.values:
            self.timers.schedule(TimerKey("soon", TOPIC), ctx.now_ms + 5, lambda _: self.add("soon", 10))

    def on_load_failed(self, ctx: HandlerContext, _summary: LoadSummary, why: str) -> None:
        ctx.reply(call(0), f"not loaded: {why}")

    def on_unloaded(self, ctx: HandlerContext, why: str) -> None:
        ctx.reply(call(0), f"unloaded: {why}")

    def view(self, pending: Iterable[UndoLog]) -> Mapping[str, int]:
        before = values_before(self.values, pending)
        now: dict[str, int | None] = {**dict(self.values.items()), **before}
        return {name: value for name, value in now.items() if value is not None}

    def add(self, name: str, by: int) -> CoordinatorResult:
        value = (self.values.get(name) or 0) + by
        return CoordinatorResult(response=value, records=(record(name, value),) if by else ())


def _run(machine: Counters, _ctx: HandlerContext, _call: Call, request: Add) -> CoordinatorResult:
    if request.by < 0:
        raise ApiError(ErrorCode.INVALID_REQUEST, "counters only grow")
    result = machine.add(request.name, request.by)
    result.producer_id, result.producer_epoch = request.producer_id, 3
    return result


ADD: Operation[Counters] = Operation(
    _run,
    lambda ctx, call, _, refusal: ctx.reply(call, refusal.code.name),
    lambda ctx, call, _, error: ctx.reply(call, f"failed: {error.name}"),
)


def call(number: int) -> Call:
    return Call(1, number, API, 4, "c", "/h")


class Bench:
    """Counters in two partitions, an empty log, and a clock."""

    def __init__(self, linger_ms: int = ADAPTIVE_LINGER, max_batch_bytes: int = 1_000) -> None:
        self.now_ms = 0
        self.timers = Timers()
        self.log: list[tuple[int, list[LogRecord]]] = []
        self.appends: list[Append] = []
        self.replies: list[Any] = []
        settings = AppendSettings(write_timeout_ms=50, linger_ms=linger_ms, max_batch_bytes=lambda _: max_batch_bytes)
        self.runtime: CoordinatorRuntime[Counters] = CoordinatorRuntime(TOPIC, 2, self.timers, Counters, settings)
        self.shard = self.runtime.shards[0]
        self._calls = 0

    def context(self) -> HandlerContext:
        return HandlerContext(self.now_ms, AdminAction("the test"))

    def take(self, effects: Iterable[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Append):
                assert effect.topic == TOPIC
                self.appends.append(effect)
            else:
                assert isinstance(effect, Reply)
                self.replies.append(effect.response)

    def add(self, name: str, by: int = 1, shard: int = 0, producer_id: int = NO_PRODUCER) -> None:
        self._calls += 1
        asked = call(self._calls)
        ctx = HandlerContext(self.now_ms, asked)
        self.runtime.shards[shard].write(ctx, asked, Add(name, by, producer_id), ADD)
        self.take(ctx.effects)

    def end_transaction(self, producer_id: int, *, committed: bool) -> TransactionMarker:
        marker = TransactionMarker(producer_id, producer_epoch=3, coordinator_epoch=1, committed=committed)
        ctx = self.context()
        self.shard.complete_transaction(
            ctx,
            marker,
            lambda later: later.reply(call(0), "marker stored"),
            lambda later, error: later.reply(call(0), f"no marker: {error.name}"),
        )
        self.take(ctx.effects)
        return marker

    def flush(self) -> None:
        ctx = self.context()
        self.runtime.flush(ctx)
        self.take(ctx.effects)

    def store(self) -> None:
        """The oldest append is stored."""
        append = self.appends.pop(0)
        self.log.append((append.partition, [each.encoded for each in append.records]))
        self.take(self.runtime.appended(append, self.now_ms))

    def fail(self, error: ErrorCode = ErrorCode.KAFKA_STORAGE_ERROR) -> None:
        """The oldest append fails."""
        self.take(self.runtime.append_failed(self.appends.pop(0), error, self.now_ms))

    def advance(self, ms: int) -> None:
        self.now_ms += ms
        self.take(self.timers.fire_due(self.now_ms))

    def waits_for_flush(self) -> bool:
        return bool(self.runtime.open_shards)

    def is_deleted(self) -> bool:
        return bool(self.runtime.deleted)

    def state(self) -> ShardState:
        return self.shard.state

    def said(self) -> list[Any]:
        """The replies since this was asked last."""
        said, self.replies = self.replies, []
        return said

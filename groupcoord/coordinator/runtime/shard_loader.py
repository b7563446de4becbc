"""ShardLoader: loads the state of a shard by replaying the records of its log (``CoordinatorLoaderImpl``)."""

from collections.abc import Iterable
from typing import Generic

from groupcoord.coordinator.runtime.coordinator_shard import LoadSummary, M
from groupcoord.coordinator.runtime.shard import Shard, ShardState
from groupcoord.core.api_error import ApiError
from groupcoord.core.effect_collector import HandlerContext
from groupcoord.core.effects import NO_PRODUCER
from groupcoord.protocol.batches.key_value_reader import OffsetKeyValue
from groupcoord.protocol.coordinator_records.commit_fast_path import ScanResult
from groupcoord.protocol.errors import WireError


class ShardLoader(Generic[M]):
    """Loads ``shard``, which refuses every request with COORDINATOR_LOAD_IN_PROGRESS until ``finish``.

    State that is not in records, such as waiting requests, is lost, as in Kafka.
    """

    def __init__(self, shard: Shard[M], ctx: HandlerContext) -> None:
        self.shard = shard
        self.records = 0
        """How many records were applied so far."""
        self.unknown = 0
        """How many of them are of unknown types, and were skipped."""
        self.failure: str | None = None
        """What keeps the log from being applied; None while nothing does."""
        self._started_ms = ctx.now_ms
        shard.begin_loading()
        self._placeholder = shard.machine
        self._machine = shard.new_machine()

    def apply_run(self, data: bytes, position: int) -> ScanResult:
        """The fast path: apply the plain batches from ``position`` of ``data`` on; see commit_fast_path.py.

        Raises InvalidRecordsError. For the rest see ``apply``.
        """
        run = self._machine.apply_run(data, position, self._apply_one)
        self.records += run.records
        return run

    def apply(self, records: Iterable[OffsetKeyValue], producer_id: int = NO_PRODUCER) -> None:
        """Apply the next ``records`` of the log; those of a transaction of ``producer_id`` take effect when it is committed.

        A record of an unknown type is skipped. A record that cannot be decoded is the ``failure``; the rest is ignored.
        """
        for offset, key, value in records:
            if self.failure is not None:
                return
            self.records += 1
            self._apply_one(offset, key, value, producer_id)

    def end_transaction(self, producer_id: int, *, committed: bool) -> None:
        """Commit or abort the transaction of ``producer_id``."""
        self.records += 1
        self._machine.end_transaction(producer_id, committed=committed)

    def fail(self, why: str) -> None:
        """The rest of the log cannot be read."""
        self.failure = self.failure or why

    def _apply_one(self, offset: int, key: bytes | None, value: bytes | None, producer_id: int = NO_PRODUCER) -> bool:
        """Apply a record of any type. Returns False if it is the failure."""
        try:
            record = self._machine.decode(key or b"", value)
            if record is None:
                self.unknown += 1
            else:
                self._machine.apply(record, offset, producer_id)
        except WireError as problem:
            self.fail(f"the record at offset {offset} cannot be read: {problem}")
            return False
        return True

    def finish(self, ctx: HandlerContext, next_offset: int = 0) -> None:
        """The log ends before ``next_offset``: activate the shard or, after a failure, mark it as failed.

        Does nothing if the shard was unloaded or loaded again meanwhile.
        """
        shard = self.shard
        if shard.machine is not self._placeholder:
            return
        summary = LoadSummary(shard.partition, self.records, self.unknown, ctx.now_ms - self._started_ms)
        try:
            if self.failure is not None:
                raise WireError(self.failure)
            shard.activate(self._machine, next_offset)
            self._machine.on_loaded(ctx, summary)
        except (WireError, ApiError) as problem:
            why = f"partition {shard.partition} of {shard.topic} could not be read ({problem})"
            shard.deactivate(ShardState.FAILED, why)
            self._machine.on_load_failed(ctx, summary, str(problem))

"""How far followers have copied the logs of a cluster, and who waits for them: the high watermark, and acks=all.

A follower that runs copies what is appended at the same moment. One that does not run, or is told not to copy, stays behind:
as long as it counts as in sync, the high watermark stays where the follower's copy ends. A copy is a beginning of the leader's
log, so only its end is kept; where another broker leads that has less, the log is truncated to that. Source: ``Partition``,
``DelayedProduce``.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from groupcoord.broker.leader_election import Replicas
from groupcoord.broker.partition_log import PartitionLog
from groupcoord.core.handler_context import HandlerContext
from groupcoord.protocol.errors import ErrorCode

OnReplicated = Callable[[HandlerContext, ErrorCode], None]
"""Called when all replicas in sync have a record, with NONE, or with the reason why that is not waited for any more."""


class _Waiting(NamedTuple):
    """Somebody waits until the high watermark is at ``offset``."""

    offset: int
    then: OnReplicated


class Followers:
    """The followers that are behind, by the logs of which they have a part."""

    def __init__(self) -> None:
        self._ends: dict[PartitionLog, dict[int, int]] = {}
        self._waiting: dict[PartitionLog, list[_Waiting]] = {}

    def end_of(self, log: PartitionLog, broker_id: int) -> int:
        """The offset at which the copy of that broker ends."""
        return self._ends.get(log, {}).get(broker_id, log.log_end_offset)

    def is_behind(self, log: PartitionLog, broker_id: int) -> bool:
        """Has that broker less than all of ``log``?"""
        return self.end_of(log, broker_id) < log.log_end_offset

    def stop_copying(self, log: PartitionLog, broker_id: int, isr: Replicas) -> None:
        """That broker copies nothing of ``log`` from now on."""
        self._ends.setdefault(log, {}).setdefault(broker_id, log.log_end_offset)
        self._hold_back(log, isr)

    def begin(self, log: PartitionLog, broker_id: int) -> None:
        """That broker is a new follower: it has nothing of ``log`` yet."""
        self._ends.setdefault(log, {})[broker_id] = log.log_start_offset

    def copy(self, log: PartitionLog, broker_id: int) -> None:
        """That broker has all of ``log``, and copies what comes; ``isr_changed`` is to be called next."""
        ends = self._ends.get(log, {})
        ends.pop(broker_id, None)
        if not ends:
            self._ends.pop(log, None)

    def isr_changed(self, ctx: HandlerContext, log: PartitionLog, isr: Replicas, min_isr: int) -> None:
        """``isr`` are in sync now: tell whoever has waited for others, or whose records are on too few replicas.

        Source: ``Partition.checkEnoughReplicasReachOffset``.
        """
        self._hold_back(log, isr)
        enough = ErrorCode.NONE if len(isr) >= min_isr else ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
        self._tell(ctx, log, enough)

    def leader_changed(self, ctx: HandlerContext, log: PartitionLog, error: ErrorCode) -> None:
        """Another broker leads ``log``, or none, or it is deleted: whoever waits is told ``error``."""
        for waiting in self._waiting.pop(log, ()):
            waiting.then(ctx, error)

    def truncated(self, log: PartitionLog) -> None:
        """The log was truncated: no copy ends behind it."""
        for broker_id, end in self._ends.get(log, {}).items():
            self._ends[log][broker_id] = min(end, log.log_end_offset)

    def forget(self, logs: Iterable[PartitionLog]) -> None:
        """``logs`` are deleted."""
        for log in logs:
            self._ends.pop(log, None)

    def wait(self, log: PartitionLog, offset: int, then: OnReplicated) -> Callable[[], None]:
        """Call ``then`` when the high watermark is at ``offset``, which it is not yet. Returns what ends the waiting."""
        waiting = _Waiting(offset, then)
        self._waiting.setdefault(log, []).append(waiting)

        return lambda: self._waiting[log].remove(waiting)

    def _hold_back(self, log: PartitionLog, isr: Replicas) -> None:
        ends = self._ends.get(log, {})
        log.held_back_to = min((ends[one] for one in isr if one in ends), default=None)

    def _tell(self, ctx: HandlerContext, log: PartitionLog, outcome: ErrorCode) -> None:
        all_waiting = self._waiting.pop(log, [])
        reached = [each for each in all_waiting if each.offset <= log.high_watermark]
        left = [each for each in all_waiting if each.offset > log.high_watermark]
        if left:
            self._waiting[log] = left
        for waiting in reached:
            waiting.then(ctx, outcome)

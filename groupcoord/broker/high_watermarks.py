"""The high watermarks of leaders' logs: the progress of followers, and requests that wait for it, such as acks=all.

Each fetch of a follower tells its log end offset. The high watermark is the smallest of these offsets in the ISR; while the
leader has not heard from one of the ISR, it does not advance. Source: ``Partition``, ``DelayedProduce``.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from groupcoord.broker.leader_election_and_isr import Replicas
from groupcoord.broker.partition_log import PartitionLog
from groupcoord.core.effect_collector import HandlerContext
from groupcoord.protocol.errors import ErrorCode

OnReplicated = Callable[[HandlerContext, ErrorCode], None]
"""Called with NONE when all in-sync replicas have a record, or with the error that ends the wait."""


class _Waiting(NamedTuple):
    """A request that waits until the high watermark reaches ``offset``."""

    offset: int
    then: OnReplicated


class HighWatermarks:
    """The followers' log end offsets per leader's log, and what waits for the high watermark."""

    def __init__(self) -> None:
        self._ends: dict[PartitionLog, dict[int, int]] = {}
        self._waiting: dict[PartitionLog, list[_Waiting]] = {}

    def lead(self, log: PartitionLog) -> None:
        """A broker starts to lead with ``log``; no follower has fetched yet. Call ``isr_changed`` next."""
        self._ends[log] = {}
        log.held_back_to = log.high_watermark

    def follow(self, log: PartitionLog) -> None:
        """The broker of ``log`` becomes a follower."""
        self._ends.pop(log, None)
        log.held_back_to = log.high_watermark

    def known_end(self, log: PartitionLog, follower: int) -> int | None:
        """A follower's log end offset, as its last fetch told; None if it has not fetched."""
        return self._ends.get(log, {}).get(follower)

    def fetched(self, log: PartitionLog, follower: int, offset: int) -> None:
        """A follower fetches from ``offset``, its log end offset. Call ``isr_changed`` next."""
        self._ends.setdefault(log, {})[follower] = offset

    def isr_changed(self, ctx: HandlerContext, log: PartitionLog, leader: int, isr: Replicas, min_isr: int) -> bool:
        """Recompute the high watermark for ``isr`` and complete what waits for it. Returns whether it has advanced.

        With an ISR smaller than ``min_isr`` it stays. Source: ``Partition.maybeIncrementLeaderHW``.
        """
        before = log.high_watermark
        if len(isr) < min_isr:
            log.held_back_to = before
            return False
        if isr == (leader,):
            log.held_back_to = None
        else:
            ends = self._ends.get(log, {})
            reached = min((ends.get(one, before) for one in isr if one != leader), default=before)
            log.held_back_to = max(before, min(reached, log.log_end_offset))
        self._tell(ctx, log)
        return log.high_watermark > before

    def stop_waiting(self, ctx: HandlerContext, log: PartitionLog, error: ErrorCode) -> None:
        """``log`` was deleted, or its broker no longer leads: end all waits for it with ``error``."""
        for waiting in self._waiting.pop(log, ()):
            waiting.then(ctx, error)

    def forget(self, logs: Iterable[PartitionLog]) -> None:
        """Forget the followers of deleted ``logs``."""
        for log in logs:
            self._ends.pop(log, None)

    def wait(self, log: PartitionLog, offset: int, then: OnReplicated) -> Callable[[], None]:
        """Call ``then`` when the high watermark, which is lower now, reaches ``offset``. Returns a function that cancels the
        wait."""
        waiting = _Waiting(offset, then)
        self._waiting.setdefault(log, []).append(waiting)

        return lambda: self._waiting[log].remove(waiting)

    def _tell(self, ctx: HandlerContext, log: PartitionLog) -> None:
        all_waiting = self._waiting.pop(log, [])
        reached = [each for each in all_waiting if each.offset <= log.high_watermark]
        left = [each for each in all_waiting if each.offset > log.high_watermark]
        if left:
            self._waiting[log] = left
        for waiting in reached:
            waiting.then(ctx, ErrorCode.NONE)

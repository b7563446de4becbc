"""What leaders know of their followers, and who waits for these: the high watermark, and acks=all.

A follower says with each fetch how far its copy reaches. The high watermark is the offset that all replicas in sync have; one
of which the leader has not heard yet holds it where it is. Source: ``Partition``, ``DelayedProduce``.
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


class Replication:
    """Of the logs that leaders have: how far their followers' copies reach, and who waits for that."""

    def __init__(self) -> None:
        self._ends: dict[PartitionLog, dict[int, int]] = {}
        self._waiting: dict[PartitionLog, list[_Waiting]] = {}

    def lead(self, log: PartitionLog) -> None:
        """A broker leads with ``log`` from now on: it has heard of no follower yet. ``isr_changed`` is to be called next."""
        self._ends[log] = {}
        log.held_back_to = log.high_watermark

    def follow(self, log: PartitionLog) -> None:
        """``log`` is a follower's from now on."""
        self._ends.pop(log, None)
        log.held_back_to = log.high_watermark

    def known_end(self, log: PartitionLog, follower: int) -> int | None:
        """The offset up to which a follower has said that its copy reaches; None: it has said nothing."""
        return self._ends.get(log, {}).get(follower)

    def fetched(self, log: PartitionLog, follower: int, offset: int) -> None:
        """A follower fetches from ``offset`` on: so far its copy reaches. ``isr_changed`` is to be called next."""
        self._ends.setdefault(log, {})[follower] = offset

    def isr_changed(self, ctx: HandlerContext, log: PartitionLog, leader: int, isr: Replicas, min_isr: int) -> bool:
        """``isr`` are in sync now, or have more than before: tell whoever has waited for that. Has the high watermark moved?

        With fewer than ``min_isr`` it stays where it is, and nobody reads on. Source: ``Partition.maybeIncrementLeaderHW``.
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
        """``log`` is no leader's any more, or deleted: whoever waits is told ``error``."""
        for waiting in self._waiting.pop(log, ()):
            waiting.then(ctx, error)

    def forget(self, logs: Iterable[PartitionLog]) -> None:
        """``logs`` are deleted."""
        for log in logs:
            self._ends.pop(log, None)

    def wait(self, log: PartitionLog, offset: int, then: OnReplicated) -> Callable[[], None]:
        """Call ``then`` when the high watermark is at ``offset``, which it is not yet. Returns what ends the waiting."""
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

"""What is committed when: by the user, by itself from time to time, before a rebalance, and at the end.

All commits go out one after the other, so that no old one overtakes a newer one by being tried again. Source:
``ConsumerCoordinator.maybeAutoCommitOffsetsAsync`` and ``commitOffsetsSync``.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping

from groupcoord.assignors import TopicPartition
from groupcoord.client.errors import ClientError
from groupcoord.client.offsets import Offset, Offsets
from groupcoord.client.partitions import Partitions

logger = logging.getLogger(__name__)

Wanted = Mapping[TopicPartition, int | Offset] | None
"""What a user wants to commit; None is the positions of all that is assigned."""


class Committer:
    """Commits for one consumer, by itself every ``interval_ms`` unless that is None."""

    def __init__(
        self,
        offsets: Offsets,
        partitions: Partitions,
        *,
        interval_ms: int | None,
        timeout_ms: int,
        now_ms: Callable[[], int],
    ) -> None:
        self._offsets = offsets
        self._partitions = partitions
        self._interval_ms = interval_ms
        self._timeout_ms = timeout_ms
        self._now_ms = now_ms
        self._due_ms = 0
        self._under_way: set[asyncio.Task[None]] = set()
        self._turn = asyncio.Lock()

    def start(self) -> None:
        """From here on the interval counts."""
        self._due_ms = self._now_ms() + (self._interval_ms or 0)

    async def commit(self, wanted: Wanted, timeout_ms: int) -> None:
        """Commit ``wanted`` after what is under way. Raises what ``Offsets.commit`` raises."""
        await self._in_turn(self._resolved(wanted), timeout_ms)

    def commit_async(self, wanted: Wanted) -> "asyncio.Task[None]":
        """The same without waiting; a failure that nobody waits for is only logged."""
        task = asyncio.get_running_loop().create_task(self._in_turn(self._resolved(wanted), self._timeout_ms))
        self._under_way.add(task)
        task.add_done_callback(self._done)
        return task

    def tick(self) -> None:
        """The user polls, so it is done with all it was handed out before: commit that, if it is time."""
        now_ms = self._now_ms()
        if self._interval_ms is not None and now_ms >= self._due_ms and not self._turn.locked():
            self._due_ms = now_ms + self._interval_ms
            task = asyncio.get_running_loop().create_task(self.commit_settled(self._timeout_ms))
            self._under_way.add(task)
            task.add_done_callback(self._under_way.discard)

    async def commit_settled(self, timeout_ms: int) -> None:
        """Commit what the user is surely done with; a failure is only logged."""
        await self._try(self._consumed(settled=True), timeout_ms)

    async def finish(self, *, failed: bool, timeout_ms: int) -> None:
        """Wait for commits that are under way, and commit what is consumed if that is wanted, for ``timeout_ms`` at most."""
        last = set(self._under_way)
        if self._interval_ms is not None:
            # Deviation: Kafka's consumer commits all it has handed out. If the block ends by an error, the user may not be
            # done with what it was handed last, and somebody else must get that again.
            last.add(asyncio.create_task(self._try(self._consumed(settled=failed), timeout_ms)))
        if last:
            _, late = await asyncio.wait(last, timeout=timeout_ms / 1000)
            for commit in late:
                commit.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    def _consumed(self, *, settled: bool) -> dict[TopicPartition, Offset]:
        consumed = self._partitions.consumed(settled=settled)
        return {partition: Offset(offset, leader_epoch) for partition, (offset, leader_epoch) in consumed.items()}

    def _resolved(self, wanted: Wanted) -> dict[TopicPartition, Offset]:
        if wanted is None:
            return self._consumed(settled=False)
        return {
            partition: offset if isinstance(offset, Offset) else Offset(offset) for partition, offset in wanted.items()
        }

    async def _in_turn(self, offsets: Mapping[TopicPartition, Offset], timeout_ms: int) -> None:
        async with self._turn:
            await self._offsets.commit(offsets, timeout_ms)

    async def _try(self, offsets: Mapping[TopicPartition, Offset], timeout_ms: int) -> None:
        try:
            await self._in_turn(offsets, timeout_ms)
        except (ClientError, TimeoutError) as problem:
            logger.warning("automatic commit of %d offsets failed: %s", len(offsets), problem)

    def _done(self, task: "asyncio.Task[None]") -> None:
        self._under_way.discard(task)
        if not task.cancelled() and task.exception() is not None:
            logger.warning("commit failed: %s", task.exception())

"""Replication: followers copy their leader's log with Fetch requests that carry their broker id and leader epoch.

Kafka's followers long-poll the leader continuously. Here a follower fetches only when the leader has new records: until it has
caught up and the leader knows its end offset, then once more if the high watermark has advanced. If the logs have diverged, the
leader answers with the diverging epoch and its end offset, and the follower truncates its log there. Source:
``AbstractFetcherThread``, ``ReplicaFetcherThread``.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import NamedTuple

from groupcoord.broker.broker import Broker
from groupcoord.broker.events import LogTruncated, ReplicaFetched
from groupcoord.broker.fetch import handle_fetch
from groupcoord.broker.leader_epoch_cache import UNDEFINED_EPOCH
from groupcoord.broker.partition_log import PartitionLog
from groupcoord.broker.topic_store import Topic
from groupcoord.core.effect_collector import HandlerContext
from groupcoord.core.effects import Call, Reply
from groupcoord.protocol.apis import APIS, ApiKey
from groupcoord.protocol.apis.fetch import (
    EpochEndOffset,
    FetchPartition,
    FetchRequest,
    FetchTopic,
    PartitionData,
    ReplicaState,
)
from groupcoord.protocol.batches.record_batch import BatchError
from groupcoord.protocol.errors import ErrorCode

_VERSION = 17
_FETCH = APIS[ApiKey.FETCH]
_BETWEEN_BROKERS = -2
"""The connection id of a follower's fetch, which no client has."""


class _SlowCopy(NamedTuple):
    """A batch that a follower has fetched and is writing to a slow disk."""

    began_ms: int
    caught_up_ms: int
    """When it had last caught up with the leader."""
    leader_end: int
    """The leader's log end offset when the write began."""


class ReplicaFetcher:
    """Replicates partitions. ``can_copy`` tells for a follower and a leader whether they can reach each other."""

    def __init__(self, broker: Broker, can_copy: Callable[[int, int], bool]) -> None:
        self._broker, self._can_copy = broker, can_copy
        self._fetches = 0
        self.on_copied = self.replicate
        """Called when a follower has written to its slow disk: continues the replication of that partition."""
        self._under_way: dict[PartitionLog, _SlowCopy] = {}
        """The writes to slow disks in progress, by the follower's log."""
        self._just_written: dict[PartitionLog, _SlowCopy] = {}
        """The writes that have ended in this turn, about which the leader does not know yet."""

    def caught_up_ms(self, copy: PartitionLog) -> int | None:
        """When a follower that is writing to its slow disk had last caught up; None if it is not writing.

        Source: ``Replica.updateFetchStateOrThrow``.
        """
        found = self._under_way.get(copy)
        return None if found is None else found.caught_up_ms

    def replicate(self, ctx: HandlerContext, topic: Topic, partition: int) -> None:
        """Let all reachable followers of a partition catch up with the leader."""
        if not self._broker.is_led(topic, partition):
            return
        for follower in self._followers(topic, partition):
            self._catch_up(ctx, topic, partition, follower)
        # The first followers have not seen the advance of the high watermark that the last ones caused.
        for follower in self._followers(topic, partition):
            copy = topic.copies[partition][follower]
            if copy.high_watermark < min(topic.partitions[partition].high_watermark, copy.log_end_offset):
                self._fetch(ctx, topic, partition, follower)

    def _followers(self, topic: Topic, partition: int) -> Iterator[int]:
        """The followers that reach the leader, and know it or can learn of it now."""
        state = topic.metadata.partitions[partition]
        for one in state.replicas:
            if one == state.leader or not self._can_copy(one, state.leader):
                continue
            if topic.copies[partition][one] in self._under_way:
                continue
            known = topic.copies[partition][one].leader_epoch
            if known == state.leader_epoch or (known < state.leader_epoch and not self._broker.is_cut_off(one)):
                yield one

    def _catch_up(self, ctx: HandlerContext, topic: Topic, partition: int, follower: int) -> None:
        log, copy = topic.partitions[partition], topic.copies[partition][follower]
        while (copy.leader_epoch, copy.log_end_offset, self._broker.high_watermarks.known_end(log, follower)) != (
            log.leader_epoch,
            log.log_end_offset,
            log.log_end_offset,
        ):
            if not self._fetch(ctx, topic, partition, follower):
                return

    def _fetch(self, ctx: HandlerContext, topic: Topic, partition: int, follower: int) -> bool:
        """Fetch once; returns whether to fetch again."""
        state, copy = topic.metadata.partitions[partition], topic.copies[partition][follower]
        if copy.leader_epoch != state.leader_epoch:
            copy.leader_epoch = state.leader_epoch
            self._broker.becomes_follower(ctx, copy)
        try:
            return self._fetch_from(ctx, topic, partition, follower, state.leader)
        except BatchError:  # the storage has failed, and has reported it
            return False

    def _fetch_from(self, ctx: HandlerContext, topic: Topic, partition: int, follower: int, leader: int) -> bool:
        copy = topic.copies[partition][follower]
        data = self._ask(ctx, topic, partition, follower, copy)
        if data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            self._start_over(ctx, topic, partition, follower)
            return True
        if data.error_code:
            return False
        if data.diverging_epoch.epoch != UNDEFINED_EPOCH:
            self._truncate(ctx, topic, partition, follower, data.diverging_epoch)
            return True
        if data.records and self._broker.disks.takes_time(follower):
            self._write_slowly(ctx, topic, partition, follower, data)
            return False
        self._append(ctx, topic, partition, follower, leader, data)
        return True

    def _write_slowly(
        self, ctx: HandlerContext, topic: Topic, partition: int, follower: int, data: PartitionData
    ) -> None:
        """Append the fetched batches after the delay of the disk; the follower does not fetch until then."""
        copy, log = topic.copies[partition][follower], topic.partitions[partition]
        leader, epoch, offset = topic.metadata.leaders[partition], copy.leader_epoch, copy.log_end_offset
        before, caught_up_ms = self._just_written.pop(copy, None), ctx.now_ms
        if before is not None:
            caught_up_ms = before.began_ms if offset >= before.leader_end else before.caught_up_ms
        self._under_way[copy] = _SlowCopy(ctx.now_ms, caught_up_ms, log.log_end_offset)

        def written(later: HandlerContext) -> None:
            self._just_written[copy] = self._under_way.pop(copy)
            is_there = self._broker.topics.get(topic.name) is topic and topic.copies[partition].get(follower) is copy
            if is_there and follower not in self._broker.cluster.not_running:
                with suppress(BatchError):  # the storage has failed, and has reported it
                    if (copy.leader_epoch, copy.log_end_offset) == (epoch, offset):
                        self._append(later, topic, partition, follower, leader, data)
                    self.on_copied(later, topic, partition)
            self._just_written.pop(copy, None)

        def lost(_: HandlerContext) -> None:
            del self._under_way[copy]

        self._broker.disks.write(ctx.now_ms, follower, f"a copy of {copy.name}", written, lost)

    def _append(
        self, ctx: HandlerContext, topic: Topic, partition: int, follower: int, leader: int, data: PartitionData
    ) -> None:
        copy = topic.copies[partition][follower]
        offset = copy.log_end_offset
        batches = copy.append_as_follower(bytes(data.records or b""), ctx.now_ms)
        copy.increment_log_start_offset(data.log_start_offset)
        high_watermark = max(copy.high_watermark, min(data.high_watermark, copy.log_end_offset))
        moved = high_watermark != copy.high_watermark
        copy.held_back_to = high_watermark
        if batches or moved:
            ctx.emit(
                ReplicaFetched,
                topic=topic.name,
                partition=partition,
                follower=follower,
                leader=leader,
                epoch=copy.leader_epoch,
                offset=offset,
                end_offset=copy.log_end_offset,
                high_watermark=high_watermark,
            )
            self._broker.follower_appended(ctx, copy)

    def _ask(
        self, ctx: HandlerContext, topic: Topic, partition: int, follower: int, copy: PartitionLog
    ) -> PartitionData:
        state = topic.metadata.partitions[partition]
        self._fetches += 1
        number = self._broker.cluster.ids.index(state.leader)
        call = Call(
            _BETWEEN_BROKERS, self._fetches, _FETCH, _VERSION, f"broker-{follower}-fetcher-0", "/127.0.0.1", number
        )
        has_records = copy.log_end_offset > copy.log_start_offset
        wanted = FetchPartition(
            partition=partition,
            current_leader_epoch=copy.leader_epoch,
            fetch_offset=copy.log_end_offset,
            last_fetched_epoch=copy.epochs.of_offset(copy.log_end_offset - 1) if has_records else UNDEFINED_EPOCH,
            log_start_offset=copy.log_start_offset,
            partition_max_bytes=int(str(self._broker.config["replica.fetch.max.bytes"])),
        )
        request = FetchRequest(
            max_wait_ms=0,
            min_bytes=1,
            topics=(FetchTopic(topic_id=topic.topic_id, partitions=(wanted,)),),
            replica_state=ReplicaState(replica_id=follower),
        )
        turn = HandlerContext(ctx.now_ms, call)
        handle_fetch(self._broker, turn, call, request)
        (answer,) = (each for each in turn.effects if isinstance(each, Reply) and each.call is call)
        ctx.effects += [each for each in turn.effects if each is not answer]
        data: PartitionData = answer.response.responses[0].partitions[0]
        return data

    def _start_over(self, ctx: HandlerContext, topic: Topic, partition: int, follower: int) -> None:
        """The leader does not have the next offset, because its log starts later or is new: continue at its start.

        Source: ``AbstractFetcherThread.fetchOffsetAndTruncate``.
        """
        log, copy = topic.partitions[partition], topic.copies[partition][follower]
        self._told(ctx, topic, partition, follower, log.log_start_offset)
        copy.truncate_fully_and_start_at(log.log_start_offset, ctx.now_ms)

    def _truncate(
        self, ctx: HandlerContext, topic: Topic, partition: int, follower: int, diverging: EpochEndOffset
    ) -> None:
        """Source: ``AbstractFetcherThread.getOffsetTruncationState``."""
        copy = topic.copies[partition][follower]
        epoch, end = copy.end_of_epoch(diverging.epoch)
        if epoch == diverging.epoch:  # with an older epoch the next fetch continues the search
            end = min(end, diverging.end_offset)
        self._told(ctx, topic, partition, follower, end)
        copy.truncate_to(end, ctx.now_ms)

    def _told(self, ctx: HandlerContext, topic: Topic, partition: int, follower: int, offset: int) -> None:
        """Emit LogTruncated if a follower is about to lose offsets, from ``offset`` on."""
        lost = topic.copies[partition][follower].log_end_offset - offset
        if lost > 0:
            ctx.emit(
                LogTruncated,
                topic=topic.name,
                partition=partition,
                broker=follower,
                leader=topic.metadata.leaders[partition],
                offset=offset,
                lost=lost,
            )

"""Followers, which copy what leaders have: with Fetch, as any reader, but with their broker's id and their leader epoch.

A follower fetches as soon as there is something to fetch, until it has all and has said so, and once more where the high
watermark has moved since; a follower of Kafka's asks all the time, and its requests wait at the leader. Where its log and the
leader's part, which the leader says by an epoch and where that ends, it truncates its own. Source: ``AbstractFetcherThread``,
``ReplicaFetcherThread``.
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
from groupcoord.core.effects import Call, Reply
from groupcoord.core.handler_context import HandlerContext
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
"""The connection of a follower's fetch, which is none that a client could have."""


class _SlowCopy(NamedTuple):
    """What a follower has fetched and is writing."""

    began_ms: int
    caught_up_ms: int
    """When it had all that the leader had."""
    leader_end: int
    """Where the leader's log ended when it began."""


class ReplicaFetcher:
    """Copies partitions from their leaders to those brokers that ``can_copy`` from them, a follower and a leader."""

    def __init__(self, broker: Broker, can_copy: Callable[[int, int], bool]) -> None:
        self._broker, self._can_copy = broker, can_copy
        self._fetches = 0
        self.on_copied = self.replicate
        """Told when a follower has written to a disk that is slow: lets the followers of that partition copy on."""
        self._under_way: dict[PartitionLog, _SlowCopy] = {}
        """What followers write to disks that are slow, by their copies."""
        self._just_written: dict[PartitionLog, _SlowCopy] = {}
        """What has come to its copy in this moment, of which the leader has not heard."""

    def caught_up_ms(self, copy: PartitionLog) -> int | None:
        """When a follower that is writing to its slow disk had all that its leader had; None if it is not writing.

        Source: ``Replica.updateFetchStateOrThrow``.
        """
        found = self._under_way.get(copy)
        return None if found is None else found.caught_up_ms

    def replicate(self, ctx: HandlerContext, topic: Topic, partition: int) -> None:
        """Let all followers of a partition that can have what its leader has."""
        if not self._broker.is_led(topic, partition):
            return
        for follower in self._followers(topic, partition):
            self._catch_up(ctx, topic, partition, follower)
        # Those that came first do not know what came of the last ones.
        for follower in self._followers(topic, partition):
            copy = topic.copies[partition][follower]
            if copy.high_watermark < min(topic.partitions[partition].high_watermark, copy.log_end_offset):
                self._fetch(ctx, topic, partition, follower)

    def _followers(self, topic: Topic, partition: int) -> Iterator[int]:
        """The followers that can copy from the leader, and take it for the leader or hear now that it is."""
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
        """Fetch once; can it go on?"""
        state, copy = topic.metadata.partitions[partition], topic.copies[partition][follower]
        if copy.leader_epoch != state.leader_epoch:
            copy.leader_epoch = state.leader_epoch
            self._broker.becomes_follower(ctx, copy)
        try:
            return self._fetch_from(ctx, topic, partition, follower, state.leader)
        except BatchError:  # the storage cannot keep it, and has said so itself
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
        """Append what was fetched when the time that this takes is over. Until then the follower asks for no more."""
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
                with suppress(BatchError):  # the storage cannot keep it, and has said so itself
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
        batches = copy.append_copied(bytes(data.records or b""), ctx.now_ms)
        copy.start_follows(data.log_start_offset)
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
            self._broker.copied(ctx, copy)

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
        """The leader has nothing of what comes next: its log begins later, or is a new one.

        Source: ``AbstractFetcherThread.fetchOffsetAndTruncate``.
        """
        log, copy = topic.partitions[partition], topic.copies[partition][follower]
        self._told(ctx, topic, partition, follower, log.log_start_offset)
        copy.start_over_at(log.log_start_offset, ctx.now_ms)

    def _truncate(
        self, ctx: HandlerContext, topic: Topic, partition: int, follower: int, diverging: EpochEndOffset
    ) -> None:
        """Source: ``AbstractFetcherThread.getOffsetTruncationState``."""
        copy = topic.copies[partition][follower]
        epoch, end = copy.end_of_epoch(diverging.epoch)
        if epoch == diverging.epoch:  # with an older one the next fetch goes on from there
            end = min(end, diverging.end_offset)
        self._told(ctx, topic, partition, follower, end)
        copy.truncate_to(end, ctx.now_ms)

    def _told(self, ctx: HandlerContext, topic: Topic, partition: int, follower: int, offset: int) -> None:
        """Say what a follower gives up that is about to have nothing from ``offset`` on."""
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

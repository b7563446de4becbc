"""Offsets and groups that nobody needs any more go (KIP-211).

Sources: ``OffsetMetadataManager.cleanupExpiredOffsets``, ``ClassicGroup.offsetExpirationCondition``.
"""

from collections.abc import Callable

from groupcoord.coordinator import records
from groupcoord.coordinator.classic.group import CONSUMER_PROTOCOL_TYPE, ClassicGroup
from groupcoord.coordinator.classic.states import GroupState
from groupcoord.coordinator.events import OffsetsRemoved
from groupcoord.coordinator.offset_store import CommittedOffset
from groupcoord.coordinator.shard import Shard
from groupcoord.core.handler_context import HandlerContext
from groupcoord.core.timers import TimerKey


def schedule(shard: Shard, now_ms: int) -> None:
    """Clean ``shard`` after ``offsets.retention.check.interval.ms``, and again and again."""
    interval = shard.config.offsets_retention_check_interval_ms

    def due(ctx: HandlerContext) -> None:
        clean(shard, ctx)
        schedule(shard, ctx.now_ms)

    shard.timers.schedule(TimerKey("retention", f"__consumer_offsets-{shard.partition}"), now_ms + interval, due)


def clean(shard: Shard, ctx: HandlerContext) -> None:
    """Bury expired offsets, and groups that are empty in every sense."""
    tombstones = []
    expired: list[tuple[str, tuple[tuple[str, int], ...]]] = []
    empty: list[ClassicGroup] = []
    for group in list(shard.groups.values()):
        pairs, nothing_left = _expired(shard, ctx, group)
        if pairs:
            expired.append((group.group_id, pairs))
            tombstones += [records.offset_tombstone(group.group_id, topic, index) for topic, index in pairs]
        # A group that only ever handed out a member id is gone with the next cleaning, not after days.
        if nothing_left and group.state is GroupState.EMPTY:
            empty.append(group)
            tombstones.append(records.group_tombstone(group.group_id))
    if not tombstones:
        return

    def stored(later: HandlerContext) -> None:
        for group_id, pairs in expired:
            later.emit(OffsetsRemoved, group=group_id, partitions=pairs, reason="their retention is over")
        for group in empty:
            shard.end_group(later, group, "it has neither members nor offsets")

    gone = {(group_id, topic, index): None for group_id, pairs in expired for topic, index in pairs}
    shard.store(ctx, tuple(tombstones), stored, lambda _, __: None, offsets=gone, removed=empty)


def _expired(shard: Shard, ctx: HandlerContext, group: ClassicGroup) -> tuple[tuple[tuple[str, int], ...], bool]:
    """(the expired (topic, partition) pairs of ``group``, is nothing left then?)"""
    offsets = shard.offsets.of_group(group.group_id)
    if not offsets:
        return (), True
    base = _base_timestamp(group)
    if base is None:
        return (), False
    retention = shard.config.offsets_retention_ms
    pairs = []
    total = 0
    for topic, partitions in offsets:
        total += len(partitions)
        if group.is_subscribed_to(topic):
            continue
        for index, committed in partitions:
            explicit = committed.expire_timestamp_ms
            over = ctx.now_ms - base(committed) >= retention if explicit is None else ctx.now_ms >= explicit
            if over:
                pairs.append((topic, index))
    return tuple(pairs), len(pairs) == total


def _base_timestamp(group: ClassicGroup) -> Callable[[CommittedOffset], int] | None:
    """From when the retention of an offset counts; None if offsets of this group do not expire now."""
    if group.protocol_type is None:
        return lambda committed: committed.commit_timestamp_ms
    if group.state is GroupState.EMPTY:
        since_ms = group.state_since_ms
        return lambda committed: committed.commit_timestamp_ms if since_ms is None else since_ms
    consumers = group.protocol_type == CONSUMER_PROTOCOL_TYPE
    if consumers and group.state is GroupState.STABLE and group.subscribed_topics is not None:
        return lambda committed: committed.commit_timestamp_ms
    return None

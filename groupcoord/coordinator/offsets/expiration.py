"""Expired offsets, and groups with neither members nor offsets, are removed (KIP-211).

Sources: ``GroupCoordinatorShard.cleanupGroupMetadata``, ``OffsetMetadataManager.cleanupExpiredOffsets``.
"""

from groupcoord.coordinator import records
from groupcoord.coordinator.events import OffsetsRemoved
from groupcoord.coordinator.group import Group
from groupcoord.coordinator.group_shard import GroupCoordinatorShard, GroupShard
from groupcoord.coordinator.runtime.state_machine import CoordinatorResult
from groupcoord.core.effects import TypedRecord
from groupcoord.core.handler_context import HandlerContext
from groupcoord.core.timers import TimerKey, Timers


def schedule(shard: GroupShard, timers: Timers, interval_ms: int, now_ms: int) -> None:
    """Clean ``shard`` after ``offsets.retention.check.interval.ms``, and again and again."""

    def due(ctx: HandlerContext) -> None:
        shard.run(ctx, lambda machine: clean(machine, ctx))
        schedule(shard, timers, interval_ms, ctx.now_ms)

    timers.schedule(TimerKey("retention", f"{shard.topic}-{shard.partition}"), now_ms + interval_ms, due)


def clean(shard: GroupCoordinatorShard, ctx: HandlerContext) -> CoordinatorResult:
    """Remove expired offsets, and groups with neither members nor offsets."""
    tombstones: list[TypedRecord] = []
    expired: list[tuple[str, tuple[tuple[str, int], ...]]] = []
    unused: list[Group] = []
    for group in shard.groups.values():
        pairs, nothing_left = _expired(shard, ctx, group)
        if pairs:
            expired.append((group.group_id, pairs))
            tombstones += [records.offset_tombstone(group.group_id, topic, index) for topic, index in pairs]
        # A group that only ever handed out a member id is removed by the next cleaning, not after days.
        if nothing_left and group.is_empty:
            unused.append(group)
            tombstones += group.tombstones()

    def stored(later: HandlerContext) -> None:
        for group_id, pairs in expired:
            later.emit(OffsetsRemoved, group=group_id, partitions=pairs, reason="their retention is over")
        for group in unused:
            group.on_removed(later, "it has neither members nor offsets")

    return CoordinatorResult(records=tombstones, stored=stored, is_atomic=False)


def _expired(
    shard: GroupCoordinatorShard, ctx: HandlerContext, group: Group
) -> tuple[tuple[tuple[str, int], ...], bool]:
    """(the expired (topic, partition) pairs of ``group``, is nothing left then?)"""
    offsets = shard.offsets.of_group(group.group_id)
    if not offsets:
        return (), True
    base = group.expiration_base()
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

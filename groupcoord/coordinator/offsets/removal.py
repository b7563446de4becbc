"""Removal of offsets: the OffsetDelete handler, the deletion of topics, and expiration by retention (KIP-211).

Sources: ``OffsetMetadataManager.deleteOffsets``, ``cleanupExpiredOffsets``, ``GroupCoordinatorShard.cleanupGroupMetadata``.
"""

from collections.abc import Mapping, Sequence
from uuid import UUID

from groupcoord.coordinator import records
from groupcoord.coordinator.error_mapping import emit_refusal, response_error
from groupcoord.coordinator.events import OffsetsRemoved
from groupcoord.coordinator.group import Group
from groupcoord.coordinator.group_coordinator_shard import GroupCoordinatorShard, GroupOperation, RuntimeShard
from groupcoord.coordinator.offsets.committed_offsets import OffsetKey
from groupcoord.coordinator.runtime.coordinator_shard import CoordinatorResult
from groupcoord.coordinator.topics_view import TopicsView
from groupcoord.core.api_error import ApiError
from groupcoord.core.effect_collector import HandlerContext
from groupcoord.core.effects import Call, TypedRecord
from groupcoord.core.timers import TimerKey, Timers
from groupcoord.protocol.apis.offset_delete import OffsetDeleteResponsePartition, OffsetDeleteResponseTopic
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages import OffsetDeleteRequest, OffsetDeleteResponse


def offset_delete(
    shard: RuntimeShard, ctx: HandlerContext, call: Call, request: OffsetDeleteRequest, topics: TopicsView
) -> None:
    """Answer ``call`` when the tombstones are stored. Unlike in OffsetCommit, an unknown group is an error
    even if none of the partitions exists."""

    def run(
        machine: GroupCoordinatorShard, _ctx: HandlerContext, _call: Call, asked: OffsetDeleteRequest
    ) -> CoordinatorResult:
        return _run(machine, asked, topics)

    if request.group_id:
        shard.write(ctx, call, request, GroupOperation(run, _refused, _failed))
    else:
        _refused(ctx, call, request, ApiError(ErrorCode.INVALID_GROUP_ID, "group_id is empty"))


def _run(machine: GroupCoordinatorShard, request: OffsetDeleteRequest, topics: TopicsView) -> CoordinatorResult:
    """Delete the offsets. Raises ApiError: GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP."""
    group = machine.groups.get(request.group_id)
    if group is None:
        raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"there is no group {request.group_id!r}")
    group.validate_offset_delete()
    missing: dict[str, list[OffsetDeleteResponsePartition]] = {}
    answers: list[OffsetDeleteResponseTopic] = []
    doomed: list[OffsetKey] = []
    for topic in request.topics:
        count = topics.partition_count(topic.name)
        if count is None:
            missing.setdefault(topic.name, [])
        existing: list[OffsetDeleteResponsePartition] = []
        code = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if group.is_subscribed_to(topic.name) else ErrorCode.NONE
        for partition in topic.partitions:
            index = partition.partition_index
            if count is None or not 0 <= index < count:
                unknown = OffsetDeleteResponsePartition(
                    partition_index=index, error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                )
                missing.setdefault(topic.name, []).append(unknown)
                continue
            existing.append(OffsetDeleteResponsePartition(partition_index=index, error_code=code))
            key = request.group_id, topic.name, index
            if not code and (machine.offsets.get(*key) is not None or machine.pending_offsets.has(*key)):
                doomed.append(key)
        if existing:
            answers.append(OffsetDeleteResponseTopic(name=topic.name, partitions=tuple(existing)))
    result = tombstones(doomed, "a client asked for it")
    result.response = OffsetDeleteResponse(topics=_merged(missing, answers) if missing else tuple(answers))
    return result


def _refused(ctx: HandlerContext, call: Call, request: OffsetDeleteRequest, refusal: ApiError) -> None:
    emit_refusal(ctx, call, request.group_id, "", refusal)
    ctx.reply(call, OffsetDeleteResponse(error_code=refusal.code, topics=()))


def _failed(ctx: HandlerContext, call: Call, _request: OffsetDeleteRequest, error: ErrorCode) -> None:
    ctx.reply(call, OffsetDeleteResponse(error_code=response_error(error), topics=()))


def topics_deleted(machine: GroupCoordinatorShard, deleted: Mapping[str, UUID]) -> CoordinatorResult:
    """Remove the offsets of deleted topics, given with their ids, from every group, and from open transactions.

    An offset that was committed for an earlier topic of that name stays (``OffsetMetadataManager.onTopicsDeleted``).
    """
    doomed: list[OffsetKey] = []
    for group in machine.offsets.groups():
        for topic, partitions in machine.offsets.of_group(group):
            if topic in deleted:
                ids = None, deleted[topic]
                doomed += ((group, topic, index) for index, committed in partitions if committed.topic_id in ids)
    for pending in machine.pending_offsets.by_producer():
        doomed += (key for key in pending if key[1] in deleted)  # they never have ids
    result = tombstones(doomed, "their topic was deleted")
    result.is_atomic = False
    return result


def tombstones(doomed: Sequence[OffsetKey], reason: str) -> CoordinatorResult:
    """Tombstones of these offsets, committed or pending; one that is both may be listed twice."""

    def stored(later: HandlerContext) -> None:
        by_group: dict[str, dict[tuple[str, int], None]] = {}
        for group, topic, index in doomed:
            by_group.setdefault(group, {})[topic, index] = None
        for group, pairs in by_group.items():
            later.emit(OffsetsRemoved, group=group, partitions=tuple(pairs), reason=reason)

    return CoordinatorResult(records=[records.offset_tombstone(*key) for key in doomed], stored=stored)


def _merged(
    missing: dict[str, list[OffsetDeleteResponsePartition]], answers: Sequence[OffsetDeleteResponseTopic]
) -> tuple[OffsetDeleteResponseTopic, ...]:
    """Each topic once, with its partitions that do not exist before the others.

    Without such partitions Kafka does not merge: then a topic that is named twice is in the response twice.
    """
    merged = {name: list(partitions) for name, partitions in missing.items()}
    for topic in answers:
        merged.setdefault(topic.name, []).extend(topic.partitions)
    return tuple(OffsetDeleteResponseTopic(name=name, partitions=tuple(found)) for name, found in merged.items())


# --- retention


def schedule_expiration(shard: RuntimeShard, timers: Timers, interval_ms: int, now_ms: int) -> None:
    """Expire the offsets of ``shard`` every ``interval_ms`` (``offsets.retention.check.interval.ms``)."""

    def due(ctx: HandlerContext) -> None:
        shard.run(ctx, lambda machine: clean(machine, ctx))
        schedule_expiration(shard, timers, interval_ms, ctx.now_ms)

    timers.schedule(TimerKey("retention", f"{shard.topic}-{shard.partition}"), now_ms + interval_ms, due)


def clean(machine: GroupCoordinatorShard, ctx: HandlerContext) -> CoordinatorResult:
    """Remove expired offsets, and groups without members and offsets (``cleanupGroupMetadata``)."""
    tombstones: list[TypedRecord] = []
    expired: list[tuple[str, tuple[tuple[str, int], ...]]] = []
    unused: list[Group] = []
    for group in machine.groups.values():
        pairs, nothing_left = _expired(machine, ctx, group)
        if pairs:
            expired.append((group.group_id, pairs))
            tombstones += [records.offset_tombstone(group.group_id, topic, index) for topic, index in pairs]
        # A group that only gave out a member id is removed by the next check, not after days.
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
    machine: GroupCoordinatorShard, ctx: HandlerContext, group: Group
) -> tuple[tuple[tuple[str, int], ...], bool]:
    """The expired (topic, partition) pairs of ``group``, and whether no offset is left. Pending offsets prevent expiration."""
    offsets = machine.offsets.of_group(group.group_id)
    is_pending = machine.pending_offsets.has
    has_pending = any(machine.pending_offsets.of_group(group.group_id))
    if not offsets:
        return (), not has_pending
    base = group.expiration_base()
    if base is None:
        return (), False
    retention = machine.config.offsets_retention_minutes * 60_000
    pairs = []
    total = 0
    for topic, partitions in offsets:
        total += len(partitions)
        if group.is_subscribed_to(topic):
            continue
        for index, committed in partitions:
            explicit = committed.expire_timestamp_ms
            over = ctx.now_ms - base(committed) >= retention if explicit is None else ctx.now_ms >= explicit
            if over and not is_pending(group.group_id, topic, index):
                pairs.append((topic, index))
    return tuple(pairs), len(pairs) == total and not has_pending

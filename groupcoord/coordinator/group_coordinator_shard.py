"""GroupCoordinatorShard: the groups and offsets of one partition of ``__consumer_offsets``, and the replay of its records."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import get_args

from groupcoord.coordinator.classic.classic_group import ClassicGroup
from groupcoord.coordinator.consumer.consumer_group import ConsumerGroup
from groupcoord.coordinator.events import GroupCreated, ShardLoaded, ShardNotLoaded, TransactionalOffsetsEnded
from groupcoord.coordinator.group import Group, GroupContext, GroupTable
from groupcoord.coordinator.offsets.committed_offsets import (
    CommittedOffset,
    OffsetKey,
    OffsetManager,
    OffsetStore,
    PendingOffsets,
)
from groupcoord.coordinator.runtime.append_queue import Stored
from groupcoord.coordinator.runtime.coordinator_shard import LoadSummary, Operation
from groupcoord.coordinator.runtime.shard import Shard
from groupcoord.coordinator.runtime.undo import UndoLog, values_before
from groupcoord.core.effect_collector import HandlerContext
from groupcoord.core.effects import TypedRecord
from groupcoord.core.grouping import grouped
from groupcoord.protocol.coordinator_records.commit_fast_path import RecordSink, ScanResult, group_of
from groupcoord.protocol.coordinator_records.consumer_group_records import ConsumerGroupKey
from groupcoord.protocol.coordinator_records.group_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    read_key,
    read_value,
)
from groupcoord.protocol.errors import WireError


class GroupCoordinatorShard:
    """The state of one partition of ``__consumer_offsets``; implements CoordinatorShard."""

    def __init__(self, partition: int, context: GroupContext) -> None:
        self.partition = partition
        self.context = context
        self.config, self.timers, self.new_uuid = context.config, context.timers, context.new_uuid
        self.groups = context.groups
        self._offsets = OffsetManager(context.undo)
        self.offsets: OffsetStore = self._offsets.store
        self.pending_offsets: PendingOffsets = self._offsets.pending
        # While loading: the last value of each classic group, which is decoded at the end, because most values are
        # overwritten by later ones; None for a group that only has offsets.
        self._loaded: dict[str, bytes | None] = {}

    @property
    def is_empty(self) -> bool:
        """See CoordinatorShard."""
        return not self.groups

    # --- groups

    def create_group(self, ctx: HandlerContext, group_id: str, *, simple: bool = False) -> ClassicGroup:
        """Create an empty classic group; a ``simple`` group only has offsets."""
        group = self.groups[group_id] = ClassicGroup(group_id, ctx.now_ms, self.context)
        ctx.emit(GroupCreated, group=group_id, simple=simple)
        return group

    def classic_group(self, group_id: str) -> ClassicGroup | None:
        """The classic group with that id, or None."""
        group = self.groups.get(group_id)
        return group if isinstance(group, ClassicGroup) else None

    # --- records

    def decode(self, key: bytes, value: bytes | None) -> TypedRecord | None:
        """See CoordinatorShard. Values that are decoded lazily stay bytes."""
        group_id = group_of(key)
        if group_id is not None:
            return TypedRecord(GroupMetadataKey(group=group_id), value)
        said = self._offsets.read_key(key) or read_key(key)
        if isinstance(said, ConsumerGroupKey):
            return TypedRecord(said, read_value(said, value))
        return TypedRecord(said, value) if type(said) in _APPLY else None

    def apply(self, record: TypedRecord, offset: int, producer_id: int) -> None:
        """See CoordinatorShard."""
        _APPLY[type(record.key)](self, record, offset, producer_id)

    def apply_run(self, data: bytes, position: int, other: RecordSink) -> ScanResult:
        """See CoordinatorShard. The most frequent records (group metadata, plain commits) are applied as bytes."""

        def apply_other(offset: int, key: bytes | None, value: bytes | None) -> bool:
            if key is None or value is None:
                return other(offset, key, value)
            group_id = group_of(key)
            if group_id is not None:
                self._loaded[group_id] = value
                return True
            group_id = self._offsets.apply_first(key, value)
            if group_id is None:
                return other(offset, key, value)
            self._loaded.setdefault(group_id)
            return True

        return self._offsets.apply_run(data, position, apply_other)

    def end_transaction(self, producer_id: int, *, committed: bool) -> Stored | None:
        """See CoordinatorShard."""
        ended = self._offsets.end_transaction(producer_id, committed=committed)

        def stored(ctx: HandlerContext) -> None:
            for group in dict.fromkeys(each.key[0] for each in ended):
                offsets = [each for each in ended if each.key[0] == group]
                ctx.emit(
                    TransactionalOffsetsEnded,
                    group=group,
                    producer_id=producer_id,
                    committed=committed,
                    offsets=tuple((*each.key[1:], self._offsets.offset_of(each.value)) for each in offsets),
                    overtaken=tuple(each.key[1:] for each in offsets if committed and not each.counts),
                )

        return stored if ended else None

    def _apply_offset_commit(self, record: TypedRecord, offset: int, producer_id: int) -> None:
        key, value, _ = record
        group = key.group
        self._offsets.apply(group, key.topic, key.partition, value, offset, producer_id)
        if value is not None and group not in self.groups:
            self._loaded.setdefault(group)

    def _apply_group_metadata(self, record: TypedRecord, _offset: int, _producer_id: int) -> None:
        group_id, value = record.key.group, record.value
        if value is None:
            self._loaded.pop(group_id, None)
            if group_id in self.groups:
                del self.groups[group_id]
            self._offsets.forget_puts(group_id)  # its next offset creates the group again
        else:
            self._loaded[group_id] = value

    def _apply_consumer_group(self, record: TypedRecord, _offset: int, _producer_id: int) -> None:
        """Apply a record of a consumer group, which may replace a simple group. Raises WireError for another classic group."""
        group_id = record.key.group_id
        group = self.groups.get(group_id)
        if not isinstance(group, ConsumerGroup):
            is_loaded = group_id in self._loaded
            if record.value is None and group is None and not is_loaded:
                return
            classic = self._decoded(0, group_id, self._loaded.pop(group_id)) if is_loaded else group
            if isinstance(classic, ClassicGroup) and not classic.is_simple:
                raise WireError(f"it is a record of a consumer group, and {group_id} is a classic group")
            group = self.groups[group_id] = ConsumerGroup(group_id, self.context)
        if group.apply(record):
            del self.groups[group_id]
            self._offsets.forget_puts(group_id)  # its next offset creates the group again

    # --- loading and unloading

    def on_loaded(self, ctx: HandlerContext, summary: LoadSummary) -> None:
        """See CoordinatorShard. The session of every member starts now; a group larger than ``group.max.size`` rebalances."""
        groups = {
            group_id: self._decoded(ctx.now_ms, group_id, value)
            for group_id, value in self._loaded.items()
            if value is not None or group_id not in self.groups
        }
        self._loaded.clear()
        for group_id, group in groups.items():
            self.groups[group_id] = group
        self._offsets.end_loading()
        ctx.emit(
            ShardLoaded,
            partition=summary.partition,
            records=summary.records,
            groups=len(self.groups),
            passed_over=summary.unknown,
            took_ms=summary.took_ms,
        )
        for loaded in self.groups.values():
            loaded.on_loaded(ctx)

    def on_load_failed(self, ctx: HandlerContext, summary: LoadSummary, why: str) -> None:
        """See CoordinatorShard."""
        ctx.emit(ShardNotLoaded, partition=summary.partition, records=summary.records, why=why)

    def on_unloaded(self, ctx: HandlerContext, why: str) -> None:
        """See CoordinatorShard. Source: ``GroupMetadataManager.onUnloaded``."""
        for group in list(self.groups.values()):
            group.on_unloaded(ctx)
            del self.groups[group.group_id]
            group.cancel_timers()
            group.on_removed(ctx, why)

    def _decoded(self, now_ms: int, group_id: str, data: bytes | None) -> ClassicGroup:
        """Decode the value of a loaded group. Raises WireError, or ApiError where Kafka fails on its members."""
        group = ClassicGroup(group_id, now_ms, self.context)
        if data is not None:
            value = read_value(GroupMetadataKey(group=group_id), data)
            if not isinstance(value, GroupMetadataValue):
                raise AssertionError(f"{value!r} describes no group")
            group.set_from(value)
        return group

    # --- reading

    def view(self, pending: Iterable[UndoLog]) -> "CommittedView":
        """See CoordinatorShard."""
        return CommittedView(self.groups, self.offsets, self.pending_offsets, list(pending))


_Apply = Callable[[GroupCoordinatorShard, TypedRecord, int, int], None]
_APPLY: Mapping[type, _Apply] = {
    OffsetCommitKey: GroupCoordinatorShard._apply_offset_commit,  # noqa: SLF001 - its own registry
    GroupMetadataKey: GroupCoordinatorShard._apply_group_metadata,  # noqa: SLF001 - its own registry
    **dict.fromkeys(get_args(ConsumerGroupKey), GroupCoordinatorShard._apply_consumer_group),  # noqa: SLF001
}
"""The method that applies the records of each type of key."""

RuntimeShard = Shard[GroupCoordinatorShard]
"""The runtime shard that runs operations on a GroupCoordinatorShard and appends their records."""

GroupOperation = Operation[GroupCoordinatorShard]


class CommittedView:
    """The groups and offsets as of the last committed record: ``pending``, the writes since then, oldest first, are left
    out."""

    __slots__ = ("_changed_groups", "_changed_offsets", "_groups", "_offsets", "is_unstable", "pending")

    def __init__(
        self, groups: GroupTable, offsets: OffsetStore, in_transactions: PendingOffsets, pending: Sequence[UndoLog]
    ) -> None:
        self._groups, self._offsets = groups, offsets
        self.is_unstable = in_transactions.has
        self.pending = pending
        self._changed_groups: Mapping[str, Group | None] = values_before(groups, pending)
        self._changed_offsets: Mapping[OffsetKey, CommittedOffset | None] = values_before(offsets, pending)

    def group(self, group_id: str) -> Group | None:
        """The group, or None."""
        live = self._groups.get(group_id)
        return self._changed_groups.get(group_id, live)

    def groups(self) -> Iterator[Group]:
        """All groups."""
        for group_id, group in self._groups.items():
            if group_id not in self._changed_groups:
                yield group
        for before in self._changed_groups.values():
            if before is not None:
                yield before

    def offset(self, group: str, topic: str, partition: int) -> CommittedOffset | None:
        """The committed offset, or None."""
        key = (group, topic, partition)
        return self._changed_offsets[key] if key in self._changed_offsets else self._offsets.get(*key)

    def offsets_of(self, group: str) -> Sequence[tuple[str, Sequence[tuple[int, CommittedOffset]]]]:
        """(topic, [(partition, offset)]) of ``group``, in Kafka's order unless some are pending."""
        live = self._offsets.of_group(group)
        changed = {key[1:]: before for key, before in self._changed_offsets.items() if key[0] == group}
        if not changed:
            return live
        found = {(topic, partition): offset for topic, partitions in live for partition, offset in partitions}
        all_offsets = (found | changed).items()
        topics = grouped((topic, (number, offset)) for (topic, number), offset in all_offsets if offset is not None)
        return list(topics.items())

"""The groups and offsets of one partition of ``__consumer_offsets``. Source: ``GroupCoordinatorShard``."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from groupcoord.coordinator.classic.group import ClassicGroup
from groupcoord.coordinator.events import GroupCreated, ShardLoaded, ShardNotLoaded
from groupcoord.coordinator.group import Group, GroupContext
from groupcoord.coordinator.offsets.manager import OffsetManager
from groupcoord.coordinator.offsets.store import CommittedOffset, OffsetKey, OffsetStore
from groupcoord.coordinator.runtime.shard import Shard
from groupcoord.coordinator.runtime.state_machine import LoadSummary, Operation
from groupcoord.coordinator.runtime.undo import UndoableMap, UndoLog, UndoRecorder, values_before
from groupcoord.core.effects import TypedRecord
from groupcoord.core.handler_context import HandlerContext
from groupcoord.protocol.coordinator_records.commit_fast_path import RecordSink, ScanResult, group_of
from groupcoord.protocol.coordinator_records.typed import (
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    UnknownKey,
    read_key,
    read_value,
)
from groupcoord.protocol.errors import ErrorCode


class GroupTable(UndoableMap[str, Group]):
    """The groups by id. A group whose first record could not be stored is removed again."""

    def restore(self, ctx: HandlerContext, key: str, before: Group | None, error: ErrorCode, /) -> None:
        """See UndoTable."""
        group = self.get(key)
        super().restore(ctx, key, before, error)
        if before is None and group is not None:
            group.cancel_timers()
            group.on_removed(ctx, f"its first record could not be stored: {error.name}")


class GroupCoordinatorShard:
    """The state machine of ``__consumer_offsets``."""

    def __init__(self, partition: int, context: GroupContext, undo: UndoRecorder) -> None:
        self.partition = partition
        self.context = context
        self.config, self.timers, self.new_uuid = context
        self.groups = GroupTable(undo)
        self._offsets = OffsetManager(undo)
        self.offsets: OffsetStore = self._offsets.store
        # What was loaded of classic groups: the last value of each, which is decoded when all is loaded, because most are
        # followed by another one; None for a group that only has offsets.
        self._loaded: dict[str, bytes | None] = {}

    @property
    def is_empty(self) -> bool:
        """See StateMachine."""
        return not self.groups

    # --- groups

    def create_group(self, ctx: HandlerContext, group_id: str, *, simple: bool = False) -> ClassicGroup:
        """A new empty classic group; a ``simple`` one only holds offsets."""
        group = self.groups[group_id] = ClassicGroup(group_id, ctx.now_ms, self.context)
        ctx.emit(GroupCreated, group=group_id, simple=simple)
        return group

    def classic_group(self, group_id: str) -> ClassicGroup | None:
        """The classic group of that id, or None."""
        group = self.groups.get(group_id)
        return group if isinstance(group, ClassicGroup) else None

    # --- records

    def decode(self, key: bytes, value: bytes | None) -> TypedRecord | None:
        """See StateMachine. Values that are decoded later, if at all, stay bytes."""
        group_id = group_of(key)
        if group_id is not None:
            return TypedRecord(GroupMetadataKey(group=group_id), value)
        said = self._offsets.read_key(key) or read_key(key)
        if isinstance(said, UnknownKey):
            return None
        return TypedRecord(said, value)

    def apply(self, record: TypedRecord, offset: int, producer_id: int) -> None:
        """See StateMachine."""
        _APPLY[type(record.key)](self, record, offset, producer_id)

    def apply_run(self, data: bytes, position: int, other: RecordSink) -> ScanResult:
        """See StateMachine."""
        return self._offsets.apply_run(data, position, other)

    def end_transaction(self, producer_id: int, *, committed: bool) -> None:
        """See StateMachine."""
        self._offsets.end_transaction(producer_id, committed=committed)

    def _apply_offset_commit(self, record: TypedRecord, offset: int, producer_id: int) -> None:
        key = record.key
        self._offsets.apply(key.group, key.topic, key.partition, record.value, offset, producer_id)
        if record.value is not None and key.group not in self.groups:
            self._loaded.setdefault(key.group)

    def _apply_group_metadata(self, record: TypedRecord, _offset: int, _producer_id: int) -> None:
        group_id, value = record.key.group, record.value
        if value is None:
            self._loaded.pop(group_id, None)
            if group_id in self.groups:
                del self.groups[group_id]
            self._offsets.forget_puts(group_id)  # its next offset creates it anew
        else:
            self._loaded[group_id] = value

    # --- loading and unloading

    def on_loaded(self, ctx: HandlerContext, summary: LoadSummary) -> None:
        """See StateMachine. The session of every member starts now; a group that is too large by now rebalances."""
        groups = {group_id: self._decoded(ctx, group_id, value) for group_id, value in self._loaded.items()}
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
        """See StateMachine."""
        ctx.emit(ShardNotLoaded, partition=summary.partition, records=summary.records, why=why)

    def on_unloaded(self, ctx: HandlerContext, why: str) -> None:
        """See StateMachine. Source: ``GroupMetadataManager.onUnloaded``."""
        for group in list(self.groups.values()):
            group.on_unloaded(ctx)
            del self.groups[group.group_id]
            group.cancel_timers()
            group.on_removed(ctx, why)

    def _decoded(self, ctx: HandlerContext, group_id: str, data: bytes | None) -> ClassicGroup:
        """The group that a loaded value describes. Raises WireError, or ApiError where Kafka fails over its members."""
        group = ClassicGroup(group_id, ctx.now_ms, self.context)
        if data is not None:
            value = read_value(GroupMetadataKey(group=group_id), data)
            if not isinstance(value, GroupMetadataValue):
                raise AssertionError(f"{value!r} describes no group")
            group.set_from(value)
        return group

    # --- reading

    def view(self, pending: Iterable[UndoLog]) -> "CommittedView":
        """See StateMachine."""
        return CommittedView(self.groups, self.offsets, list(pending))


_Apply = Callable[[GroupCoordinatorShard, TypedRecord, int, int], None]
_APPLY: Mapping[type, _Apply] = {
    OffsetCommitKey: GroupCoordinatorShard._apply_offset_commit,  # noqa: SLF001 - its own registry
    GroupMetadataKey: GroupCoordinatorShard._apply_group_metadata,  # noqa: SLF001 - its own registry
}
"""What applies the records of each type of key; another kind of group adds those of its own."""

GroupShard = Shard[GroupCoordinatorShard]
"""A shard of the runtime whose state are groups and offsets."""

GroupOperation = Operation[GroupCoordinatorShard]


class CommittedView:
    """Groups and offsets without the writes that are pending, oldest first."""

    __slots__ = ("_changed_groups", "_changed_offsets", "_groups", "_offsets")

    def __init__(self, groups: GroupTable, offsets: OffsetStore, pending: Sequence[UndoLog]) -> None:
        self._groups, self._offsets = groups, offsets
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
        """(topic, [(partition, offset)]) of ``group``, in Kafka's order unless some of them are pending."""
        live = self._offsets.of_group(group)
        changed = {key[1:]: before for key, before in self._changed_offsets.items() if key[0] == group}
        if not changed:
            return live
        found = {(topic, partition): offset for topic, partitions in live for partition, offset in partitions}
        topics: dict[str, list[tuple[int, CommittedOffset]]] = {}
        for (topic, partition), offset in (found | changed).items():
            if offset is not None:
                topics.setdefault(topic, []).append((partition, offset))
        return list(topics.items())

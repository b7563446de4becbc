"""What an append on its way changes: in force already, for whoever writes; not there yet, for whoever reads.

Kafka's coordinator keeps its state in timeline structures: it applies a record at once, reads as of the last offset that is
stored everywhere, and goes back to a snapshot when an append fails (``SnapshottableCoordinator``, ``TimelineHashMap``). Here
each append remembers what was there before it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from groupcoord.coordinator.classic.group import ClassicGroup
from groupcoord.coordinator.offset_store import CommittedOffset, OffsetStore

Place = tuple[str, str, int]
"""(group, topic, partition) of an offset."""


class Uncommitted:
    """What was there before one append, of all that it changed; None: nothing."""

    __slots__ = ("groups", "offsets")

    def __init__(self) -> None:
        self.offsets: dict[Place, CommittedOffset | None] = {}
        self.groups: dict[str, ClassicGroup | None] = {}

    def put_offsets(self, store: OffsetStore, offsets: Mapping[Place, CommittedOffset | None]) -> None:
        """Put ``offsets`` into ``store``, or, where there is None, out of it."""
        for place, committed in offsets.items():
            self.offsets[place] = store.get(*place)
            _put(store, place, committed)

    def revert_offsets(self, store: OffsetStore) -> None:
        """Let ``store`` be what it was before; whatever was done later must have been reverted."""
        for place, before in self.offsets.items():
            _put(store, place, before)


class CommittedView:
    """Groups and offsets as they are without the appends that are on their way, oldest first."""

    __slots__ = ("_changed_groups", "_changed_offsets", "_groups", "_offsets")

    def __init__(self, groups: Mapping[str, ClassicGroup], offsets: OffsetStore, ahead: Iterable[Uncommitted]) -> None:
        self._groups, self._offsets = groups, offsets
        self._changed_groups: dict[str, ClassicGroup | None] = {}
        self._changed_offsets: dict[Place, CommittedOffset | None] = {}
        for append in ahead:
            self._changed_groups = append.groups | self._changed_groups
            self._changed_offsets = append.offsets | self._changed_offsets

    def group(self, group_id: str) -> ClassicGroup | None:
        """The group, or None. Raises Refused for a shard that cannot be asked."""
        live: ClassicGroup | None = self._groups.get(group_id)
        return self._changed_groups.get(group_id, live)

    def groups(self) -> Iterator[ClassicGroup]:
        """All groups."""
        for group_id, group in self._groups.items():
            if group_id not in self._changed_groups:
                yield group
        for before in self._changed_groups.values():
            if before is not None:
                yield before

    def offset(self, group: str, topic: str, partition: int) -> CommittedOffset | None:
        """The committed offset, or None."""
        place = (group, topic, partition)
        return self._changed_offsets[place] if place in self._changed_offsets else self._offsets.get(*place)

    def offsets_of(self, group: str) -> Sequence[tuple[str, Sequence[tuple[int, CommittedOffset]]]]:
        """(topic, [(partition, offset)]) of ``group``, in Kafka's order as far as nothing of it is on its way."""
        live = self._offsets.of_group(group)
        changed = {place[1:]: before for place, before in self._changed_offsets.items() if place[0] == group}
        if not changed:
            return live
        found = {(topic, partition): offset for topic, partitions in live for partition, offset in partitions}
        topics: dict[str, list[tuple[int, CommittedOffset]]] = {}
        for (topic, partition), offset in (found | changed).items():
            if offset is not None:
                topics.setdefault(topic, []).append((partition, offset))
        return list(topics.items())


def _put(store: OffsetStore, place: Place, committed: CommittedOffset | None) -> None:
    if committed is None:
        store.remove(*place)
    else:
        store.put(*place, committed)

"""Undo logs of state changes: to roll back a write whose append fails, and to read the state without pending writes.

Kafka uses timeline structures with snapshots for that (``SnapshotRegistry``, ``TimelineHashMap``). Here every table saves the
old value of a change in the undo log of the current write.
"""

from collections.abc import Callable, ItemsView, Iterable, Iterator, Mapping, ValuesView
from typing import Any, Generic, Protocol, TypeVar

from groupcoord.core.effect_collector import HandlerContext
from groupcoord.core.java_hash_order import TimelineMap
from groupcoord.protocol.errors import ErrorCode

K = TypeVar("K")
V = TypeVar("V")


class UndoTable(Protocol):
    """A table whose values can be restored."""

    def restore(self, ctx: HandlerContext, key: Any, before: Any, error: ErrorCode, /) -> None:
        """Restore ``key`` to ``before`` (None: remove it), because the append failed with ``error``."""


class UndoLog:
    """The old values of one write, by table and key; None: there was none."""

    __slots__ = ("_changes",)

    def __init__(self) -> None:
        self._changes: dict[UndoTable, dict[Any, Any]] = {}

    def save(self, table: UndoTable, key: Any, before: Any) -> None:
        """Save the value of ``key`` in ``table`` before a change; only the first save of a key counts."""
        changes = self._changes.get(table)
        if changes is None:
            changes = self._changes[table] = {}
        changes.setdefault(key, before)

    def add_to(self, earlier: "UndoLog") -> None:
        """Make ``earlier`` undo this write, too."""
        for table, changes in self._changes.items():
            for key, before in changes.items():
                earlier.save(table, key, before)

    def of(self, table: UndoTable) -> Mapping[Any, Any]:
        """The old values in ``table``, by key."""
        return self._changes.get(table, _NOTHING)

    def revert(self, ctx: HandlerContext, error: ErrorCode) -> None:
        """Restore all values. Later writes must be reverted first."""
        for table, changes in self._changes.items():
            for key, before in changes.items():
                table.restore(ctx, key, before, error)


_NOTHING: Mapping[Any, Any] = {}


class UndoRecorder:
    """Saves old values of the tables of one shard in the undo log of the current write; outside of a write, nowhere."""

    __slots__ = ("is_open", "log")

    def __init__(self) -> None:
        self.is_open = False
        """Does a write run?"""
        self.log: UndoLog | None = None
        """What it changed so far; None: nothing."""

    def save(self, table: UndoTable, key: Any, before: Any) -> None:
        """Save the value of ``key`` in ``table`` before a change."""
        if self.is_open:
            log = self.log
            if log is None:
                log = self.log = UndoLog()
            log.save(table, key, before)


def values_before(table: UndoTable, logs: Iterable[UndoLog]) -> Mapping[Any, Any]:
    """The values in ``table`` before all ``logs`` (oldest first), for the keys that they changed."""
    before: dict[Any, Any] = {}
    for log in logs:
        for key, value in log.of(table).items():
            before.setdefault(key, value)
    return before


class UndoableMap(Generic[K, V]):
    """A dict with undoable changes."""

    def __init__(self, undo: UndoRecorder) -> None:
        self._undo = undo
        self._items: dict[K, V] = {}
        self.get = self._items.get

    def __len__(self) -> int:
        return len(self._items)

    def __contains__(self, key: object) -> bool:
        return key in self._items

    def __getitem__(self, key: K) -> V:
        return self._items[key]

    def __setitem__(self, key: K, value: V) -> None:
        self._undo.save(self, key, self._items.get(key))
        self._items[key] = value

    def __delitem__(self, key: K) -> None:
        self._undo.save(self, key, self._items[key])
        del self._items[key]

    def __iter__(self) -> Iterator[K]:
        return iter(self._items)

    def values(self) -> ValuesView[V]:
        """The values."""
        return self._items.values()

    def items(self) -> ItemsView[K, V]:
        """Keys and values."""
        return self._items.items()

    def restore(self, _: HandlerContext, key: K, before: V | None, __: ErrorCode, /) -> None:
        """See UndoTable."""
        if before is None:
            self._items.pop(key, None)
        else:
            self._items[key] = before


class UndoableValue(Generic[V]):
    """A single value with undoable changes."""

    def __init__(self, undo: UndoRecorder, value: V) -> None:
        self._undo = undo
        self._value = value

    @property
    def value(self) -> V:
        """The value."""
        return self._value

    def set(self, value: V) -> None:
        """Set the value."""
        self._undo.save(self, "", self._value)
        self._value = value

    def before(self, pending: Iterable[UndoLog]) -> V:
        """The value before the ``pending`` writes, which are given oldest first."""
        before: V = values_before(self, pending).get("", self._value)
        return before

    def restore(self, _: HandlerContext, __: str, before: V, ___: ErrorCode, /) -> None:
        """See UndoTable."""
        self._value = before


class UndoableTimelineMap(Generic[V]):
    """A map with string keys in Kafka's iteration order, with undoable changes.

    ``changed`` is called with the values before and after each change; ``restored`` after an undo.
    """

    def __init__(
        self, undo: UndoRecorder, changed: Callable[[V | None, V | None], None], restored: Callable[[], None]
    ) -> None:
        self._undo = undo
        self._items: TimelineMap[str, V] = TimelineMap()
        self._changed, self._restored = changed, restored
        self.get = self._items.get

    def __len__(self) -> int:
        return len(self._items)

    def __contains__(self, key: object) -> bool:
        return key in self._items

    def __getitem__(self, key: str) -> V:
        return self._items[key]

    def put(self, key: str, value: V) -> None:
        """Set ``key`` to ``value``."""
        before = self._items.get(key)
        self._undo.save(self, key, before)
        self._items.put(key, value)
        self._changed(before, value)

    def pop(self, key: str) -> None:
        """Remove ``key``, if it is there."""
        before = self._items.get(key)
        if before is not None:
            self._undo.save(self, key, before)
            del self._items[key]
            self._changed(before, None)

    def values(self) -> ValuesView[V]:
        """The values in order of insertion, which is cheaper than Kafka's order."""
        return self._items.values()

    def in_order(self) -> list[tuple[str, V]]:
        """The items in Kafka's iteration order."""
        return self._items.in_order()

    def in_order_before(self, pending: Iterable[UndoLog]) -> list[tuple[str, V]]:
        """The items before the ``pending`` writes, which are given oldest first."""
        before = values_before(self, pending)
        if not before:
            return self.in_order()
        merged: TimelineMap[str, V] = TimelineMap()
        for key, value in {**self._items, **before}.items():
            if value is not None:
                merged.put(key, value)
        return merged.in_order()

    def restore(self, _: HandlerContext, key: str, before: V | None, __: ErrorCode, /) -> None:
        """See UndoTable."""
        if before is None:
            self._items.pop(key, None)
        else:
            self._items.put(key, before)
        self._restored()

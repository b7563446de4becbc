import uuid

from groupcoord.coordinator import records
from groupcoord.coordinator.offsets.committed_offsets import CommittedOffset, OffsetStore
from groupcoord.coordinator.runtime.undo import UndoRecorder

ONE, TWO = CommittedOffset(1, -1, "", 0), CommittedOffset(2, -1, "", 0)


def test_the_last_offset_counts() -> None:
    store = OffsetStore(UndoRecorder())
    store.put("app", "orders", 0, ONE)
    store.put("app", "orders", 0, TWO)
    assert store.get("app", "orders", 0) is TWO


def test_what_is_not_there_is_none() -> None:
    store = OffsetStore(UndoRecorder())
    store.put("app", "orders", 0, ONE)
    assert store.get("other", "orders", 0) is None
    assert store.get("app", "other", 0) is None
    assert store.get("app", "orders", 1) is None
    assert store.of_group("other") == []


def test_a_group_without_offsets_leaves_nothing_behind() -> None:
    store = OffsetStore(UndoRecorder())
    store.put("app", "orders", 0, ONE)
    store.put("app", "orders", 1, TWO)
    store.remove("app", "orders", 0)
    assert store.of_group("app") == [("orders", [(1, TWO)])]
    store.remove("app", "orders", 1)
    assert list(store.groups()) == []


def test_removing_what_is_not_there_changes_nothing() -> None:
    store = OffsetStore(UndoRecorder())
    store.put("app", "orders", 0, ONE)
    store.remove("other", "orders", 0)
    store.remove("app", "other", 0)
    store.remove("app", "orders", 1)
    assert store.get("app", "orders", 0) is ONE


def as_bytes(committed: CommittedOffset) -> bytes:
    """The value of its record, as it is loaded."""
    return records.offset_commits("app", "orders")(0, committed).value or b""


def test_what_was_loaded_is_read_when_somebody_asks() -> None:
    store, read = OffsetStore(UndoRecorder()), OffsetStore(UndoRecorder())
    for partition in (5, 1, 3, 2, 4, 5):
        committed = CommittedOffset(partition, 7, "", 50, topic_id=uuid.UUID(int=9))
        store.put("app", "orders", partition, as_bytes(committed))
        read.put("app", "orders", partition, committed)
    store.put("app", "clicks", 0, TWO)
    read.put("app", "clicks", 0, TWO)
    assert store.get("app", "orders", 3) == read.get("app", "orders", 3)
    assert store.get("app", "orders", 3) is store.get("app", "orders", 3)
    assert store.of_group("app") == read.of_group("app")
    assert dict(store.of_group("app")[1][1])[5] is store.get("app", "orders", 5)
    assert store.of_group("app") == read.of_group("app")


def test_whoever_puts_at_once_finds_the_place() -> None:
    store = OffsetStore(UndoRecorder())
    store.partitions_of("app", "orders").put(0, ONE)
    store.partitions_of("app", "orders").put(1, TWO)
    assert dict(store.of_group("app")) == {"orders": [(0, ONE), (1, TWO)]}

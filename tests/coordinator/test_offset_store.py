from groupcoord.coordinator.offset_store import CommittedOffset, OffsetStore

ONE, TWO = CommittedOffset(1, -1, "", 0), CommittedOffset(2, -1, "", 0)


def test_the_last_offset_counts() -> None:
    store = OffsetStore()
    store.put("app", "orders", 0, ONE)
    store.put("app", "orders", 0, TWO)
    assert store.get("app", "orders", 0) is TWO


def test_what_is_not_there_is_none() -> None:
    store = OffsetStore()
    store.put("app", "orders", 0, ONE)
    assert store.get("other", "orders", 0) is None
    assert store.get("app", "other", 0) is None
    assert store.get("app", "orders", 1) is None
    assert store.of_group("other") == []


def test_a_group_without_offsets_leaves_nothing_behind() -> None:
    store = OffsetStore()
    store.put("app", "orders", 0, ONE)
    store.put("app", "orders", 1, TWO)
    store.remove("app", "orders", 0)
    assert store.of_group("app") == [("orders", [(1, TWO)])]
    store.remove("app", "orders", 1)
    assert list(store.groups()) == []


def test_removing_what_is_not_there_changes_nothing() -> None:
    store = OffsetStore()
    store.put("app", "orders", 0, ONE)
    store.remove("other", "orders", 0)
    store.remove("app", "other", 0)
    store.remove("app", "orders", 1)
    assert store.get("app", "orders", 0) is ONE

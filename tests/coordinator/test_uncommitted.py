"""What is in force and not stored yet, and the view without it."""

from groupcoord.coordinator.classic.group import ClassicGroup
from groupcoord.coordinator.offset_store import CommittedOffset, OffsetStore
from groupcoord.coordinator.uncommitted import CommittedView, Uncommitted

G_T_0, G_T_1, G_U_0 = ("g", "t", 0), ("g", "t", 1), ("g", "u", 0)


def at(offset: int) -> CommittedOffset:
    return CommittedOffset(offset=offset, leader_epoch=-1, metadata="", commit_timestamp_ms=0)


def store_of(offsets: dict[tuple[str, str, int], int]) -> OffsetStore:
    store = OffsetStore()
    for place, offset in offsets.items():
        store.put(*place, at(offset))
    return store


def test_offsets_are_there_at_once_and_can_be_taken_back() -> None:
    store = store_of({G_T_0: 1, G_U_0: 2})
    first, second = Uncommitted(), Uncommitted()
    first.put_offsets(store, {G_T_0: at(5), G_T_1: at(6), G_U_0: None})
    second.put_offsets(store, {G_T_0: at(7), G_U_0: at(8)})
    assert [store.get(*place) for place in (G_T_0, G_T_1, G_U_0)] == [at(7), at(6), at(8)]
    second.revert_offsets(store)
    assert [store.get(*place) for place in (G_T_0, G_T_1, G_U_0)] == [at(5), at(6), None]
    first.revert_offsets(store)
    assert [store.get(*place) for place in (G_T_0, G_T_1, G_U_0)] == [at(1), None, at(2)]


def test_a_view_is_as_of_before_the_oldest() -> None:
    store = store_of({G_T_0: 1, G_U_0: 2})
    first, second = Uncommitted(), Uncommitted()
    first.put_offsets(store, {G_T_0: at(5), G_T_1: at(6), G_U_0: None})
    second.put_offsets(store, {G_T_0: at(7)})
    everything = CommittedView({}, store, (first, second))
    assert [everything.offset(*place) for place in (G_T_0, G_T_1, G_U_0)] == [at(1), None, at(2)]
    assert dict(everything.offsets_of("g")) == {"t": [(0, at(1))], "u": [(0, at(2))]}
    half = CommittedView({}, store, (second,))
    assert half.offset(*G_T_0) == at(5)
    assert half.offsets_of("h") == []
    assert CommittedView({}, store, ()).offsets_of("g") == store.of_group("g")


def test_groups_that_come_and_go() -> None:
    old, new, other = ClassicGroup("g", 0), ClassicGroup("g", 1), ClassicGroup("h", 0)
    gone, created = Uncommitted(), Uncommitted()
    gone.groups["g"] = old
    created.groups["g"] = None
    live = {"h": other, "g": new}
    view = CommittedView(live, OffsetStore(), (gone, created))
    assert (view.group("g"), view.group("h"), view.group("i")) == (old, other, None)
    assert list(view.groups()) == [other, old]
    view = CommittedView(live, OffsetStore(), (created,))
    assert view.group("g") is None
    assert list(view.groups()) == [other]

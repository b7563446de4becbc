import pytest
from hypothesis import given
from hypothesis import strategies as st

from groupcoord.broker.cleaner import is_tombstone, survivors
from groupcoord.protocol.batches.records import Record

pytestmark = pytest.mark.slow


def log(*entries: tuple[bytes | None, bytes | None]) -> list[Record]:
    return [Record(offset, 1_000 + offset, key, value) for offset, (key, value) in enumerate(entries)]


def test_the_last_record_of_each_key_is_kept_at_its_offset() -> None:
    before = log((b"a", b"1"), (b"b", b"1"), (b"a", b"2"), (b"c", b"1"), (b"a", b"3"))
    assert [(r.offset, r.key, r.value) for r in survivors(before)] == [
        (1, b"b", b"1"),
        (3, b"c", b"1"),
        (4, b"a", b"3"),
    ]


def test_a_tombstone_is_kept_and_known_as_one() -> None:
    (kept,) = survivors(log((b"a", b"1"), (b"a", None)))
    assert (kept.offset, is_tombstone(kept)) == (1, True)


def test_a_value_after_a_tombstone_brings_the_key_back() -> None:
    (kept,) = survivors(log((b"a", None), (b"a", b"")))
    assert (kept.offset, is_tombstone(kept)) == (1, False)


def test_a_record_without_a_key_goes_and_is_no_tombstone() -> None:
    (without,) = log((None, None))
    assert not survivors([without])
    assert not is_tombstone(without)


def test_nothing_comes_of_nothing() -> None:
    assert survivors([]) == []


@given(st.lists(st.tuples(st.sampled_from([b"a", b"b", b"c"]), st.none() | st.binary(max_size=1))))
def test_reading_the_survivors_gives_the_same_table_as_reading_everything(
    entries: list[tuple[bytes | None, bytes | None]],
) -> None:
    before = log(*entries)
    after = survivors(before)
    assert {r.key: r.value for r in after} == {r.key: r.value for r in before}
    assert len({r.key for r in after}) == len(after)
    assert [r.offset for r in after] == sorted(r.offset for r in after)
    assert survivors(after) == after

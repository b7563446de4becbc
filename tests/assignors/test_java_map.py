"""What Java 17 printed for the same sets and maps."""

from groupcoord.core.java_map import IntSet, JavaMap, copied_set, size_for, table_size

APART = [16 * number for number in range(9)]
"""They share one bucket of a table of 16."""


def integers(size: int = 16) -> JavaMap[int, None]:
    return JavaMap(int.__index__, size)


def test_the_ninth_key_of_a_bucket_makes_a_small_table_grow() -> None:
    assert copied_set(APART[:8]).listed() == APART[:8]
    assert copied_set(APART).listed() == [0, 32, 64, 96, 128, 16, 48, 80, 112]
    put = integers()
    for number in APART:
        put.put(number, None)
    assert put.listed() == [0, 32, 64, 96, 128, 16, 48, 80, 112]


def test_a_computed_key_comes_first_and_the_eighth_makes_it_grow() -> None:
    computed = integers()
    for number in APART[:7]:
        computed.computed(number, lambda: None)
    assert computed.listed() == [96, 80, 64, 48, 32, 16, 0]
    computed.computed(APART[7], lambda: None)
    assert computed.listed() == [96, 64, 32, 0, 112, 80, 48, 16]


def test_what_comes_back_comes_last() -> None:
    numbers = copied_set(APART[:8])
    numbers.remove(32)
    for number in (5, 32, 21, 21):
        numbers.add(number)
    assert numbers.listed() == [0, 16, 48, 64, 80, 96, 112, 32, 5, 21]


def test_a_table_starts_as_large_as_asked_for() -> None:
    assert [table_size(room) for room in (0, 1, 2, 3, 16, 17)] == [1, 1, 2, 4, 16, 32]
    assert [size_for(entries) for entries in (0, 1, 12, 24)] == [1, 2, 32, 64]
    tiny = IntSet(1)
    for number in (3, 2, 1):
        tiny.add(number)
    assert tiny.listed() == [1, 2, 3]

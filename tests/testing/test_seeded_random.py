"""Everything random of a cluster."""

from groupcoord.testing.engine import SeededRandomSource


def test_a_seed_says_everything() -> None:
    one, other = SeededRandomSource(5), SeededRandomSource(5)
    for _ in range(100):
        assert (drawn := one.uuid()) == other.uuid()
        assert drawn.version == 4
        assert drawn.bytes[0] >> 2 != 0b111110
        assert 0 < one.session_id() == other.session_id() < 1 << 31
        assert 0 <= one.next_int(7) == other.next_int(7) < 7
        assert 0 <= one.fraction() == other.fraction() < 1

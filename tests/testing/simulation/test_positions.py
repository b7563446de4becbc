from groupcoord.testing.simulation.positions import Positions

ONE, TWO = ("orders", 0), ("orders", 1)


def test_reading_goes_on_at_a_steady_pace() -> None:
    positions = Positions()
    positions.begin(ONE, 100, 1_000, reading=True)
    positions.begin(TWO, 7, 1_000, reading=False)
    assert positions.all(1_400) == {ONE: 110, TWO: 7}
    positions.go_on(1_400)
    positions.stop(1_790)
    assert positions.all(5_000) == {ONE: 119, TWO: 17}


def test_only_what_is_owned_has_a_position() -> None:
    positions = Positions()
    positions.begin(ONE, 0, 0, reading=True)
    positions.begin(TWO, 0, 0, reading=True)
    positions.keep_only(frozenset({TWO}))
    assert ONE not in positions
    assert TWO in positions

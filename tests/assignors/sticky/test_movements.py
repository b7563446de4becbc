from groupcoord.assignors.sticky.movements import Movements


def test_what_came_goes_back_rather_than_something_else() -> None:
    movements = Movements("orders")
    assert movements.instead_of(3, owner=1, receiver=2) == 3
    movements.record(3, owner=1, receiver=2)
    assert movements.instead_of(5, owner=2, receiver=1) == 3
    movements.record(3, owner=2, receiver=1)  # home again: as if nothing had been
    assert movements.instead_of(5, owner=2, receiver=1) == 5


def test_where_a_partition_was_at_first_is_what_counts() -> None:
    movements = Movements("orders")
    movements.record(3, owner=1, receiver=2)
    movements.record(3, owner=2, receiver=4)
    assert movements.instead_of(5, owner=4, receiver=1) == 3
    movements.record(7, owner=1, receiver=4)
    movements.record(7, owner=4, receiver=5)
    assert movements.instead_of(5, owner=4, receiver=1) == 3  # the other that went this way is still there
    assert movements.instead_of(3, owner=4, receiver=9) == 3

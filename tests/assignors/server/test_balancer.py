from groupcoord.assignors.server.balancer import Balancer


def test_those_with_least_are_served_in_waves() -> None:
    loads = [2, 0, 1]
    balancer = Balancer(range(3), loads)
    served = []
    for _ in range(7):
        member = balancer.next_least()
        loads[member] += 1
        served.append(member)
    assert served == [1, 1, 2, 1, 2, 0, 1]


def test_those_with_most_give_in_waves() -> None:
    balancer = Balancer(range(3), [2, 0, 3])
    assert [balancer.next_most() for _ in range(3)] == [2, 2, 0]
    assert balancer.imbalance == 3


def test_who_has_nothing_to_give_leaves_the_range() -> None:
    balancer = Balancer(range(3), [3, 3, 1])
    assert balancer.next_most() == 1
    balancer.exclude_most()
    assert balancer.next_most() == 0
    balancer.exclude_most()
    assert balancer.next_most() == 2
    balancer.exclude_most()
    assert balancer.next_most() is None


def test_it_is_balanced_when_the_ranges_meet() -> None:
    balancer = Balancer(range(2), [0, 2])
    assert not balancer.is_balanced
    balancer.next_most()
    balancer.next_least()
    assert not balancer.is_balanced
    balancer.next_most()
    assert balancer.is_balanced

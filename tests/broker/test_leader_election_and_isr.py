"""Who leads, and who is in sync or eligible, when brokers come and go (KIP-966)."""

from groupcoord.broker.leader_election_and_isr import NO_LEADER, Election, PartitionState, after_change

ALL = (1, 2, 3)
WHOLE = PartitionState(replicas=ALL, isr=ALL, leader=1)


def change(
    state: PartitionState, *isr: int, there: tuple[int, ...] = ALL, min_isr: int = 1, unclean: bool = False
) -> PartitionState:
    return after_change(
        state, isr, there.__contains__, min_isr=min_isr, election=Election.UNCLEAN if unclean else Election.ONLINE
    )


def test_a_leader_that_stays_leads_on_and_only_the_isr_gets_smaller() -> None:
    assert change(WHOLE, 1, 2, there=(1, 2)) == PartitionState(ALL, (1, 2), 1)


def test_the_first_replica_in_sync_leads_next() -> None:
    assert change(WHOLE, 2, 3, there=(2, 3)) == PartitionState(ALL, (2, 3), 2)
    assert change(WHOLE._replace(isr=(1, 3)), 3, there=(2, 3)).leader == 3, "2 is there, and behind"


def test_whoever_leaves_an_isr_that_is_too_small_is_eligible() -> None:
    small = change(WHOLE._replace(isr=(1, 2)), 1, there=(1,), min_isr=2)
    assert small == PartitionState(ALL, (1,), 1, elr=(2,))
    assert change(small, 1, 2, min_isr=2) == PartitionState(ALL, (1, 2), 1), "and no longer when there are enough"


def test_without_anybody_in_sync_the_last_leader_is_remembered() -> None:
    nobody = change(PartitionState(ALL, (1,), 1), there=())
    assert nobody == PartitionState(ALL, (), NO_LEADER, elr=(1,), last_leader=1)
    assert nobody.last_known_elr == (1,)
    assert change(nobody, there=()) == nobody


def test_an_eligible_replica_leads_if_none_is_in_sync() -> None:
    nobody = change(change(PartitionState(ALL, (1, 2), 1), 1, there=(1,), min_isr=2), there=(), min_isr=2)
    assert nobody.elr == (1, 2)
    assert change(nobody, there=(2, 3), min_isr=2) == PartitionState(ALL, (2,), 2, elr=(1,))


def test_the_last_leader_leads_again_if_nobody_is_eligible() -> None:
    nobody = PartitionState(ALL, (), NO_LEADER, last_leader=3)
    assert change(nobody, there=(1, 2)).leader == NO_LEADER
    assert change(nobody, there=(3,)) == PartitionState(ALL, (3,), 3)


def test_an_unclean_election_takes_any_replica_that_is_there() -> None:
    nobody = change(PartitionState(ALL, (1,), 1), there=(), unclean=True)
    assert nobody.leader == NO_LEADER
    assert change(nobody, there=(2, 3)).leader == NO_LEADER
    assert change(nobody, there=(2, 3), unclean=True) == PartitionState(ALL, (2,), 2)


def test_more_replicas_in_sync_than_there_are_are_never_asked_for() -> None:
    assert change(PartitionState((3,), (3,), 3), 3, min_isr=2) == PartitionState((3,), (3,), 3)

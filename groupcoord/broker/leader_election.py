"""Who leads a partition, and which of its replicas are in sync, when brokers come, go, or fall behind.

Pure: what a partition is and which brokers may lead come in, what it is from then on goes out. Partitions keep eligible leader
replicas (ELR, KIP-966), as in a new cluster of 4.3. Source: ``PartitionChangeBuilder`` and ``ReplicationControlManager``.
"""

import enum
from collections.abc import Callable, Collection
from typing import NamedTuple

Replicas = tuple[int, ...]
"""The ids of the brokers that have a partition, the preferred leader first."""

NO_LEADER = -1


class PartitionState(NamedTuple):
    """A partition as the controller knows it.

    ``isr`` are the replicas in sync, ``elr`` those that were in sync when the ISR got smaller than ``min.insync.replicas``, and
    have all that was acknowledged. ``last_leader`` is whom to wait for when nobody can lead (-1: nobody). While a reassignment
    goes on, ``replicas`` are those that there will be, then those that are ``removing``; ``adding`` are the new ones.
    ``leader_epoch`` counts the changes of leaders.
    """

    replicas: Replicas
    isr: Replicas
    leader: int
    elr: Replicas = ()
    last_leader: int = NO_LEADER
    adding: Replicas = ()
    removing: Replicas = ()
    leader_epoch: int = 0

    @property
    def assignment(self) -> tuple[Replicas, Replicas, Replicas]:
        """What a reassignment changes."""
        return self.replicas, self.adding, self.removing

    @property
    def is_reassigning(self) -> bool:
        """Does a reassignment go on?"""
        return bool(self.adding or self.removing)

    @property
    def last_known_elr(self) -> Replicas:
        """What DescribeTopicPartitions says of ``last_leader``."""
        return () if self.last_leader == NO_LEADER else (self.last_leader,)


class Election(enum.Enum):
    """What an election looks for (``PartitionChangeBuilder.Election``)."""

    ONLINE = "online"
    """The present leader if it may lead, then the first replica in sync, then an eligible one."""
    PREFERRED = "preferred"
    """The first replica, if it is in sync and may lead; else as before."""
    UNCLEAN = "unclean"
    """As ``ONLINE``, and if none is left any replica that may lead."""


def after_change(
    state: PartitionState,
    isr: Collection[int],
    may_lead: Callable[[int], bool],
    *,
    min_isr: int,
    election: Election = Election.ONLINE,
) -> PartitionState:
    """``state`` when ``isr`` is what is left or has come of the replicas in sync: with its leader, or another one.

    ``may_lead`` says of a broker whether it is there and stays. The first replica that is in sync leads, an eligible one if
    none is in sync. ``min_isr`` is the ``min.insync.replicas`` of the topic. A reassignment is complete when all new replicas
    are in sync, and any that stays.
    """
    state, target = _completed(state, tuple(isr))
    elr = _elr_after(state, target, min_isr)
    leader = _elect(state, target, elr, may_lead, election)
    if leader == NO_LEADER:
        last_leader = state.last_leader if state.leader == NO_LEADER else state.leader
        return state._replace(isr=target, elr=elr, leader=leader, last_leader=last_leader)
    if leader not in target:  # it was eligible, or nobody better was there: the others have to catch up with it
        target = (leader,)
        elr = tuple(one for one in elr if one != leader) if leader in elr else ()
    if len(target) >= min(min_isr, len(state.replicas)):
        elr = ()
    return state._replace(isr=target, elr=elr, leader=leader, last_leader=NO_LEADER)


def reassigned(state: PartitionState, target: Replicas) -> PartitionState:
    """``state`` when it is to have the replicas ``target``. Source: ``ReplicationControlManager.changePartitionReassignment``.

    Where nothing new is added or removed, what an earlier reassignment adds or removes stays as it is, as in Kafka.
    """
    removing = tuple(sorted(set(state.replicas) - set(target)))
    adding = tuple(sorted(set(target) - set(state.replicas)))
    return state._replace(
        replicas=target + removing, adding=adding or state.adding, removing=removing or state.removing
    )


def reverted(state: PartitionState) -> tuple[PartitionState, Replicas]:
    """``state`` without the reassignment that goes on, and who is in sync then; nobody if all that were are new ones.

    Source: ``PartitionReassignmentRevert``.
    """
    replicas = _without(state.replicas, state.adding)
    return state._replace(replicas=replicas, adding=(), removing=()), _without(state.isr, state.adding)


def without_lost(state: PartitionState, there: Collection[int]) -> PartitionState:
    """``state`` when only the replicas ``there`` have what they had: the others are not in sync any more, nor eligible.

    If nobody who was in sync is left, the last leader is whoever led, as after its unclean shutdown (KIP-966): it leads again,
    with an empty log, where nobody eligible is left either.
    """
    lost = set(state.replicas) - set(there)
    if not lost:
        return state
    isr, elr = _without(state.isr, lost), _without(state.elr, lost)
    leader = NO_LEADER if state.leader in lost else state.leader
    last_leader = state.leader if state.leader in lost and not isr else state.last_leader
    return state._replace(isr=isr, elr=elr, leader=leader, last_leader=last_leader)


def _without(replicas: Replicas, gone: Collection[int]) -> Replicas:
    return tuple(one for one in replicas if one not in gone)


def _completed(state: PartitionState, isr: Replicas) -> tuple[PartitionState, Replicas]:
    """Source: ``PartitionReassignmentReplicas.maybeCompleteReassignment``."""
    left = _without(isr, state.removing)
    if not state.is_reassigning or not left or not set(state.adding) <= set(left):
        return state, isr
    return state._replace(replicas=_without(state.replicas, state.removing), adding=(), removing=()), left


def _elr_after(state: PartitionState, isr: Replicas, min_isr: int) -> Replicas:
    """Who is eligible: whoever was in sync or eligible, and is not in sync now, as long as too few are."""
    if len(isr) >= min(min_isr, len(state.replicas)):
        return ()
    return tuple(sorted({*state.elr, *state.isr} - set(isr)))


def _elect(
    state: PartitionState, isr: Replicas, elr: Replicas, may_lead: Callable[[int], bool], election: Election
) -> int:
    def is_valid(replica: int) -> bool:
        return (replica in isr or (not isr and replica in elr)) and may_lead(replica)

    if election is Election.PREFERRED and is_valid(state.replicas[0]):
        return state.replicas[0]
    if is_valid(state.leader):
        return state.leader
    for replica in state.replicas:
        if is_valid(replica):
            return replica
    if not isr and not elr and state.last_leader != NO_LEADER and may_lead(state.last_leader):
        return state.last_leader
    if election is Election.UNCLEAN:
        return next(filter(may_lead, state.replicas), NO_LEADER)
    return NO_LEADER

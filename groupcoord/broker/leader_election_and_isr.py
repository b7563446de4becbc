"""PartitionState (Kafka's PartitionRegistration): how a partition's leader, ISR and ELR change when brokers start, stop or fall
behind, and when its replicas are reassigned.

Pure functions from a partition's state to its next one. Eligible leader replicas (ELR, KIP-966) are enabled, as in a new 4.3
cluster. Source: ``PartitionChangeBuilder`` and ``ReplicationControlManager``.
"""

import enum
from collections.abc import Callable, Collection
from typing import NamedTuple

Replicas = tuple[int, ...]
"""The broker ids of a partition's replicas, the preferred leader first."""

NO_LEADER = -1


class PartitionState(NamedTuple):
    """The controller's state of a partition (``PartitionRegistration``).

    ``isr`` are the in-sync replicas; ``elr`` are those that left the ISR when it became smaller than ``min.insync.replicas``,
    and have all acknowledged records. ``last_leader`` is the replica to wait for when none can lead (-1: none). During a
    reassignment ``replicas`` are the target replicas, then those that are ``removing``; ``adding`` are the new ones.
    ``leader_epoch`` is incremented with every change of the leader.
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
        """The fields that a reassignment changes."""
        return self.replicas, self.adding, self.removing

    @property
    def is_reassigning(self) -> bool:
        """Is a reassignment in progress?"""
        return bool(self.adding or self.removing)

    @property
    def last_known_elr(self) -> Replicas:
        """``last_leader`` as DescribeTopicPartitions returns it."""
        return () if self.last_leader == NO_LEADER else (self.last_leader,)


class Election(enum.Enum):
    """The kinds of elections (``PartitionChangeBuilder.Election``)."""

    ONLINE = "online"
    """The current leader if it may lead, else the first in-sync replica that may, else an eligible one."""
    PREFERRED = "preferred"
    """The preferred replica, if it is in sync and may lead; else as ``ONLINE``."""
    UNCLEAN = "unclean"
    """As ``ONLINE``; if none of these may lead, any replica that may."""


def after_change(
    state: PartitionState,
    isr: Collection[int],
    may_lead: Callable[[int], bool],
    *,
    min_isr: int,
    election: Election = Election.ONLINE,
) -> PartitionState:
    """The next state when the ISR is to be ``isr``: elects a leader if the current one cannot stay.

    ``may_lead`` tells whether a broker is running and stays so. The first in-sync replica becomes leader, or an eligible one if
    none is in sync. ``min_isr`` is the ``min.insync.replicas`` of the topic. A reassignment completes when all added replicas,
    and at least one of the target replicas, are in sync.
    """
    state, target = _completed(state, tuple(isr))
    elr = _elr_after(state, target, min_isr)
    leader = _elect(state, target, elr, may_lead, election)
    if leader == NO_LEADER:
        last_leader = state.last_leader if state.leader == NO_LEADER else state.leader
        return state._replace(isr=target, elr=elr, leader=leader, last_leader=last_leader)
    if leader not in target:  # an eligible replica, or an unclean leader: the others have to catch up with it
        target = (leader,)
        elr = tuple(one for one in elr if one != leader) if leader in elr else ()
    if len(target) >= min(min_isr, len(state.replicas)):
        elr = ()
    return state._replace(isr=target, elr=elr, leader=leader, last_leader=NO_LEADER)


def reassigned(state: PartitionState, target: Replicas) -> PartitionState:
    """``state`` with a reassignment to ``target``. Source: ``ReplicationControlManager.changePartitionReassignment``.

    If nothing new is added or removed, the adding and removing replicas of an earlier reassignment stay, as in Kafka.
    """
    removing = tuple(sorted(set(state.replicas) - set(target)))
    adding = tuple(sorted(set(target) - set(state.replicas)))
    return state._replace(
        replicas=target + removing, adding=adding or state.adding, removing=removing or state.removing
    )


def reverted(state: PartitionState) -> tuple[PartitionState, Replicas]:
    """(``state`` without its reassignment, its ISR); the ISR is empty if only added replicas were in sync.

    Source: ``PartitionReassignmentRevert``.
    """
    replicas = _without(state.replicas, state.adding)
    return state._replace(replicas=replicas, adding=(), removing=()), _without(state.isr, state.adding)


def without_lost(state: PartitionState, there: Collection[int]) -> PartitionState:
    """``state`` when the replicas that are not ``there`` have lost their logs: they leave the ISR and the ELR.

    If that leaves no in-sync replica, a leader among them becomes the last leader, as after its unclean shutdown (KIP-966): if
    nobody is eligible either, it leads again, with an empty log.
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
    """The next ELR: the replicas that were in sync or eligible and are not in the ISR now, while that is too small."""
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

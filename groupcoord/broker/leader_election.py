"""Who leads a partition, and which of its replicas are in sync, when brokers come, go, or fall behind.

Pure: what a partition is and which brokers may lead come in, what it is from then on goes out. Partitions keep eligible leader
replicas (ELR, KIP-966), as in a new cluster of 4.3. Source: ``PartitionChangeBuilder`` and ``ReplicationControlManager``.
"""

from collections.abc import Callable, Collection
from typing import NamedTuple

Replicas = tuple[int, ...]
"""The ids of the brokers that have a partition, the preferred leader first."""

NO_LEADER = -1


class PartitionState(NamedTuple):
    """A partition as the controller knows it; its leader epoch is in its log.

    ``isr`` are the replicas in sync, ``elr`` those that were in sync when the ISR got smaller than ``min.insync.replicas``, and
    have all that was acknowledged. ``last_leader`` is whom to wait for when nobody can lead (-1: nobody).
    """

    replicas: Replicas
    isr: Replicas
    leader: int
    elr: Replicas = ()
    last_leader: int = NO_LEADER

    @property
    def last_known_elr(self) -> Replicas:
        """What DescribeTopicPartitions says of ``last_leader``."""
        return () if self.last_leader == NO_LEADER else (self.last_leader,)


def after_change(
    state: PartitionState,
    isr: Collection[int],
    may_lead: Callable[[int], bool],
    *,
    min_isr: int,
    unclean: bool = False,
) -> PartitionState:
    """``state`` when ``isr`` is what is left or has come of the replicas in sync: with its leader, or another one.

    ``may_lead`` says of a broker whether it is there and stays. The first replica that is in sync leads, an eligible one if
    none is in sync, and with ``unclean`` any. ``min_isr`` is the ``min.insync.replicas`` of the topic.
    """
    target = tuple(isr)
    elr = _elr_after(state, target, min_isr)
    leader = _elect(state, target, elr, may_lead, unclean=unclean)
    if leader == NO_LEADER:
        last_leader = state.last_leader if state.leader == NO_LEADER else state.leader
        return state._replace(isr=target, elr=elr, leader=leader, last_leader=last_leader)
    if leader not in target:  # it was eligible, or nobody better was there: the others have to catch up with it
        target = (leader,)
        elr = tuple(one for one in elr if one != leader) if leader in elr else ()
    if len(target) >= min(min_isr, len(state.replicas)):
        elr = ()
    return state._replace(isr=target, elr=elr, leader=leader, last_leader=NO_LEADER)


def _elr_after(state: PartitionState, isr: Replicas, min_isr: int) -> Replicas:
    """Who is eligible: whoever was in sync or eligible, and is not in sync now, as long as too few are."""
    if len(isr) >= min(min_isr, len(state.replicas)):
        return ()
    return tuple(sorted({*state.elr, *state.isr} - set(isr)))


def _elect(
    state: PartitionState, isr: Replicas, elr: Replicas, may_lead: Callable[[int], bool], *, unclean: bool
) -> int:
    def is_valid(replica: int) -> bool:
        return (replica in isr or (not isr and replica in elr)) and may_lead(replica)

    if is_valid(state.leader):
        return state.leader
    for replica in state.replicas:
        if is_valid(replica):
            return replica
    if not isr and not elr and state.last_leader != NO_LEADER and may_lead(state.last_leader):
        return state.last_leader
    if unclean:
        return next(filter(may_lead, state.replicas), NO_LEADER)
    return NO_LEADER

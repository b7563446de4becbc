"""Adjusts an assignment for cooperative rebalancing: no member gets a partition that another has yet to revoke (KIP-429)."""

from collections.abc import Iterable, Mapping

from groupcoord.assignors.interface import Assignment, Subscription, TopicPartition


def changing_hands(members: Mapping[str, Subscription], assignment: Assignment) -> dict[TopicPartition, str]:
    """The partitions that move from the member that owns them to another one → the other.

    Based on ``owned_partitions`` in the subscriptions, so it is empty under the eager protocol. Source:
    ``CooperativeStickyAssignor.computePartitionsTransferringOwnership``.
    """
    added: dict[TopicPartition, str] = {}
    revoked: set[TopicPartition] = set()
    for member_id, partitions in assignment.items():
        owned = frozenset(members[member_id].owned_partitions)
        added.update({partition: member_id for partition in partitions if partition not in owned})
        if owned:
            revoked |= owned.difference(partitions)
    return {partition: member_id for partition, member_id in added.items() if partition in revoked}


def withhold(assignment: Assignment, transferring: Mapping[TopicPartition, str]) -> Assignment:
    """The assignment without the ``transferring`` partitions, which stay unassigned for one rebalance.

    Their owners revoke them and join again; the next rebalance assigns them.
    """
    withheld: dict[str, set[TopicPartition]] = {}
    for partition, member_id in transferring.items():
        withheld.setdefault(member_id, set()).add(partition)
    rest = dict(assignment)
    for member_id, partitions in withheld.items():
        rest[member_id] = _without(rest[member_id], partitions)
    return rest


def in_two_steps(members: Mapping[str, Subscription], assignment: Assignment) -> Assignment:
    """The first step towards ``assignment`` for an assignor that supports the cooperative protocol."""
    return withhold(assignment, changing_hands(members, assignment))


def _without(partitions: Iterable[TopicPartition], unwanted: set[TopicPartition]) -> list[TopicPartition]:
    """``partitions`` without the first occurrence of each that is ``unwanted``."""
    rest = []
    for partition in partitions:
        if partition in unwanted:
            unwanted.remove(partition)
        else:
            rest.append(partition)
    return rest

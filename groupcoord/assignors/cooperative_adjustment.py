"""The cooperative protocol: no member gets a partition that another member has yet to revoke (KIP-429)."""

from collections.abc import Iterable, Mapping

from groupcoord.assignors.interface import Assignment, Subscription, TopicPartition


def changing_hands(members: Mapping[str, Subscription], assignment: Assignment) -> dict[TopicPartition, str]:
    """What one member owns, is not given again, and another gets → the other.

    By ``owned_partitions`` as they came over the wire, so under the eager protocol this is nothing. Source:
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
    """The assignment without what is ``transferring``: those partitions stay unassigned for one rebalance.

    Those who lose something see it missing, give it up and join again; in the rebalance that follows it is free.
    """
    withheld: dict[str, set[TopicPartition]] = {}
    for partition, member_id in transferring.items():
        withheld.setdefault(member_id, set()).add(partition)
    rest = dict(assignment)
    for member_id, partitions in withheld.items():
        rest[member_id] = _without(rest[member_id], partitions)
    return rest


def in_two_steps(members: Mapping[str, Subscription], assignment: Assignment) -> Assignment:
    """What an assignor answers that supports the cooperative protocol and in the end wants ``assignment``."""
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

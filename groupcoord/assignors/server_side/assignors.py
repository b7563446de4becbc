"""Uniform, range and simple. Sources: ``UniformAssignor``, ``RangeAssignor`` and ``SimpleAssignor`` of the coordinator."""

from collections.abc import Callable
from uuid import UUID

from groupcoord.assignors.server_side.spec import GroupSpec, SubscriptionType, TargetAssignment
from groupcoord.assignors.server_side.uniform import assign_heterogeneous, assign_homogeneous
from groupcoord.core.java import compare_key


def assign_uniform(spec: GroupSpec, kind: SubscriptionType) -> TargetAssignment:
    """As even as it gets, with as few changes as that allows. Raises PartitionAssignorError."""
    if not spec.members:
        return {}
    return assign_homogeneous(spec) if kind is SubscriptionType.HOMOGENEOUS else assign_heterogeneous(spec)


def assign_range(spec: GroupSpec, kind: SubscriptionType) -> TargetAssignment:
    """Of each topic a run of partitions to every subscriber, static members first. Raises PartitionAssignorError.

    Previous assignments do not matter. A homogeneous group is taken to subscribe to the topics of its first member.
    """

    def key(member_id: str) -> tuple[bool, bytes]:
        instance_id = spec.members[member_id].instance_id
        return instance_id is None, compare_key(member_id if instance_id is None else instance_id)

    member_ids = sorted(spec.member_ids(), key=key)
    target: dict[str, dict[UUID, range]] = {member_id: {} for member_id in member_ids}
    subscribers: dict[UUID, list[str]] = {}
    for member_id in member_ids:
        wanting = member_ids[0] if kind is SubscriptionType.HOMOGENEOUS else member_id
        for topic_id in dict.fromkeys(spec.members[wanting].topic_ids):
            subscribers.setdefault(topic_id, []).append(member_id)
    for topic_id, of_topic in subscribers.items():
        least, more = divmod(spec.partition_count(topic_id), len(of_topic))
        start = 0
        for number, member_id in enumerate(of_topic):
            end = start + least + (number < more)
            if end > start:
                target[member_id][topic_id] = range(start, end)
            start = end
    return target


def assign_simple(spec: GroupSpec, kind: SubscriptionType) -> TargetAssignment:  # noqa: ARG001 - all server-side assignors are called alike
    """All partitions of a topic to each of its subscribers, as share groups have it. Raises PartitionAssignorError."""
    return {
        member_id: {topic_id: range(spec.partition_count(topic_id)) for topic_id in spec.members[member_id].topic_ids}
        for member_id in spec.member_ids()
    }


SERVER_ASSIGNORS: dict[str, Callable[[GroupSpec, SubscriptionType], TargetAssignment]] = {
    "uniform": assign_uniform,
    "range": assign_range,
    "simple": assign_simple,
}
"""The names that ``group.consumer.assignors`` takes, and simple."""

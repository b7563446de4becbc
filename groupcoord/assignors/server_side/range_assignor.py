"""The server-side range assignor (KIP-848). Source: ``RangeAssignor``."""

from collections.abc import Iterator, Sequence
from uuid import UUID

from groupcoord.assignors.server_side.group_spec import (
    GroupSpec,
    PartitionAssignorError,
    SubscriptionType,
    TargetAssignment,
)
from groupcoord.core.java_hash_order import compare_key, uuid_hash
from groupcoord.core.java_map import JavaMap, size_for


def assign_range(spec: GroupSpec) -> TargetAssignment:
    """Assign a contiguous range of each topic to each subscriber, static members first. Raises PartitionAssignorError.

    The current assignment is ignored. All members of a homogeneous group are taken to subscribe to the topics of the first one.
    """

    def key(member_id: str) -> tuple[bool, bytes]:
        instance_id = spec.members[member_id].instance_id
        return instance_id is None, compare_key(member_id if instance_id is None else instance_id)

    member_ids = sorted(spec.member_ids(), key=key)
    wanted: dict[str, list[UUID]] = {}
    if member_ids and spec.subscription_type is SubscriptionType.HOMOGENEOUS:
        wanted = dict.fromkeys(member_ids, _walked(spec.members[member_ids[0]].topic_ids))
    else:
        known: dict[tuple[int, tuple[UUID, ...]], list[UUID]] = {}
        for member_id in member_ids:
            member = spec.members[member_id]
            asked = member.unknown_topics, tuple(member.topic_ids)
            if asked not in known:
                known[asked] = _walked(member.topic_ids, member.unknown_topics)
            wanted[member_id] = known[asked]
    subscribers: dict[UUID, int] = {}
    for topic_ids in wanted.values():
        for topic_id in topic_ids:
            subscribers[topic_id] = subscribers.get(topic_id, 0) + 1
    if not subscribers.keys() <= spec.partitions.keys():
        raise PartitionAssignorError("Member is subscribed to a non-existent topic")
    runs = {topic_id: _runs(spec.partitions[topic_id], count) for topic_id, count in subscribers.items()}
    return {
        member_id: {topic_id: run for topic_id in topic_ids if (run := next(runs[topic_id]))}
        for member_id, topic_ids in wanted.items()
    }


def _walked(topic_ids: Sequence[UUID], unknown_topics: int = 0) -> list[UUID]:
    """The topics in the order of Kafka's map of a member's assignment."""
    topics: JavaMap[UUID, None] = JavaMap(uuid_hash, size_for(len(topic_ids) + unknown_topics))
    for topic_id in topic_ids:
        topics.put(topic_id, None)
    return topics.listed()


def _runs(partitions: int, members: int) -> Iterator[range]:
    """``partitions`` split into a range per member, the longer ones first; then endless empty ranges."""
    least, more = divmod(partitions, members)
    start = end = 0
    while True:
        start, end = end, min(partitions, end + least + (more > 0))
        more -= 1
        yield range(start, end)

"""Which partitions nobody keeps. Source: ``AbstractStickyAssignor``, ``getUnassignedPartitions``."""

from collections.abc import Sequence

from groupcoord.assignors.model import TopicPartition


def still_free(everything: Sequence[TopicPartition], assigned: Sequence[TopicPartition]) -> list[TopicPartition]:
    """What of ``everything`` is not ``assigned``, in the order of ``everything``: topic by topic, partitions ascending."""
    taken = set(assigned)
    free = [partition for partition in everything if partition not in taken]
    if len(free) + len(taken) == len(everything):
        return free
    # Somebody claims a partition that does not exist: the topic was made anew with fewer. Kafka walks through both lists,
    # sorted alike, side by side, and such a claim stops the walk: all that follows counts as free, even if it is assigned.
    places = {topic: place for place, topic in enumerate(dict.fromkeys(topic for topic, _ in everything))}
    walk = iter(sorted(taken, key=lambda partition: (places[partition[0]], partition[1])))
    following = next(walk)
    free = []
    for partition in everything:
        if partition == following:
            following = next(walk, ("", -1))
        else:
            free.append(partition)
    return free

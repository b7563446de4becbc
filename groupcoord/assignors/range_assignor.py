"""The range assignor: per topic, a contiguous range of partitions for each member; rack-aware (KIP-881). Source:
``RangeAssignor``."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, islice, pairwise

from groupcoord.assignors.interface import Assignment, Assignor, GroupSubscription
from groupcoord.assignors.java_order import members_in_hash_order, subscribers_of, topic_table
from groupcoord.assignors.racks import Racks, rack_of, racks_count, racks_of_topic
from groupcoord.core.java_hash_order import compare_key

NAME = "range"


def assign(group: GroupSubscription) -> Assignment:
    """Assign to each subscriber of a topic a contiguous range of q partitions, and to the first r of them one more.

    q and r are quotient and remainder of partitions and subscribers. Members on the rack of a replica are preferred, but
    balance and co-partitioning come first.
    """
    members = members_in_hash_order(group)
    table = topic_table(members, group.partitions)
    subscribers = subscribers_of(table, members)
    assignment: Assignment = {member_id: [] for member_id in members}
    racks = {member_id: rack for member_id in members if (rack := rack_of(members[member_id])) is not None}
    if racks and _assign_with_racks(group, subscribers, racks, assignment):
        return assignment
    # Topics with the same partition count and subscribers get the same ranges.
    for (count, of_topics), alike in groupby(table, key=lambda topic: (table[topic], subscribers[topic])):
        topics = list(alike)
        for member_id, run in zip(of_topics, _runs(count, len(of_topics)), strict=True):
            assignment[member_id] += [(topic, partition) for topic in topics for partition in run]
    return assignment


def _runs(partitions: int, subscribers: int) -> list[range]:
    """The range of each of ``subscribers`` members in ``partitions`` partitions."""
    least, more = divmod(partitions, subscribers)
    starts = [least * number + min(number, more) for number in range(subscribers + 1)]
    return [range(start, end) for start, end in pairwise(starts)]


@dataclass(slots=True)
class _Topic:
    """The state of one topic during the rack-aware assignment (``RangeAssignor.TopicAssignmentState``)."""

    name: str
    subscribers: Mapping[str, str | None]
    """Member id → its rack, in member order."""
    racks: Sequence[Racks]
    """The racks of each partition; empty if no subscriber has a rack."""
    needs_racks: bool
    remaining: dict[int, None]
    """The unassigned partitions, ascending."""
    least: int
    """The minimum per subscriber."""
    more: int
    """How many subscribers may still get one more than the minimum."""
    counts: dict[str, int]
    """The number of partitions that each has."""

    def matches(self, member_id: str, partition: int) -> bool:
        """Is a replica on the member's rack? True for a member without a rack."""
        rack = self.subscribers[member_id]
        return rack is None or (partition < len(self.racks) and rack in self.racks[partition])

    def room(self, member_id: str) -> int:
        """How many more partitions the member may get."""
        return max(0, self.least + (self.more > 0) - self.counts[member_id])

    def give(self, member_id: str, partitions: Sequence[int], assignment: Assignment) -> None:
        """Give ``partitions`` to the member."""
        assignment[member_id] += [(self.name, partition) for partition in partitions]
        self.counts[member_id] += len(partitions)
        if self.counts[member_id] > self.least:
            self.more -= 1
        for partition in partitions:
            del self.remaining[partition]

    def give_runs(self, may: Callable[[str, int], bool], assignment: Assignment) -> None:
        """Give each member in turn the first partitions for which it has room and that ``may`` allows."""
        for member_id in self.subscribers:
            if not self.remaining:
                break
            fitting = (partition for partition in self.remaining if may(member_id, partition))
            run = list(islice(fitting, self.room(member_id)))
            if run:
                self.give(member_id, run, assignment)


def _assign_with_racks(
    group: GroupSubscription, subscribers: Mapping[str, Sequence[str]], racks: Mapping[str, str], assignment: Assignment
) -> bool:
    """Fill ``assignment`` if racks matter for any topic; returns whether they do."""
    topics = [_topic(group, name, of_topic, racks) for name, of_topic in subscribers.items()]
    if not any(topic.needs_racks for topic in topics):
        return False
    together: dict[tuple[object, ...], list[_Topic]] = {}
    for topic in topics:
        together.setdefault((*topic.subscribers.items(), len(topic.racks)), []).append(topic)
    for co_partitioned in together.values():
        if len(co_partitioned) > 1:
            _give_together(co_partitioned, assignment)
        elif co_partitioned[0].needs_racks:
            co_partitioned[0].give_runs(co_partitioned[0].matches, assignment)
    for topic in topics:
        topic.give_runs(lambda _member_id, _partition: True, assignment)
    for partitions in assignment.values():
        partitions.sort(key=lambda partition: (compare_key(partition[0]), partition[1]))
    return True


def _topic(group: GroupSubscription, name: str, of_topic: Sequence[str], racks: Mapping[str, str]) -> _Topic:
    count = group.partitions[name]
    least, more = divmod(count, len(of_topic))
    member_racks = {racks[member_id] for member_id in of_topic if member_id in racks}
    of_partitions = racks_of_topic(group, name) if member_racks else []
    return _Topic(
        name=name,
        subscribers={member_id: racks.get(member_id) for member_id in of_topic},
        racks=of_partitions,
        needs_racks=racks_count(member_racks, of_partitions, group.prefer_rack_aware),
        remaining=dict.fromkeys(range(count)),
        least=least,
        more=more,
        counts=dict.fromkeys(of_topic, 0),
    )


def _give_together(topics: Sequence[_Topic], assignment: Assignment) -> None:
    """Give partition p of all ``topics`` to one member on a rack of each (co-partitioning, for joins).

    The topics have the same subscribers and partitions and are assigned in parallel: a member with room in one has room in all.
    """
    first = topics[0]
    still_open = list(first.subscribers)
    for partition in range(len(first.racks)):
        everywhere = frozenset.intersection(*[topic.racks[partition] for topic in topics])
        for member_id in still_open:
            rack = first.subscribers[member_id]
            if (rack is None or rack in everywhere) and first.room(member_id):
                break
        else:
            continue
        for topic in topics:
            topic.give(member_id, [partition], assignment)
        if not first.room(member_id):
            still_open.remove(member_id)


class RangeAssignor(Assignor):
    """``RangeAssignor``."""

    name = NAME

    def assign(self, group: GroupSubscription) -> Assignment:
        """See :func:`assign`."""
        return assign(group)

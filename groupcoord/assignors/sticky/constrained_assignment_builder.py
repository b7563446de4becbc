"""The sticky algorithm for equal subscriptions. Source: ``AbstractStickyAssignor.ConstrainedAssignmentBuilder``.

Each member gets ``least`` partitions and ``over_limit`` members one more: first from their previous ones, then from free ones.
"""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence

from groupcoord.assignors.interface import Assignment, JavaFailure, TopicPartition
from groupcoord.assignors.java_order import java_sorted, partitions_of
from groupcoord.assignors.racks import RackInfo
from groupcoord.assignors.sticky.previous_assignment import Ownership, unassigned_partitions
from groupcoord.core.java_hash_order import compare_key


class ConstrainedAssignmentBuilder:
    """One run of the algorithm; ``assignment`` and ``transferring`` hold the result after ``run``."""

    def __init__(self, table: Mapping[str, int], ownership: Ownership, racks: RackInfo) -> None:
        total, size = sum(table.values()), len(ownership.kept)
        if not size:
            raise JavaFailure("ArithmeticException", "partitions cannot be divided by no members")
        self._table = table
        self._ownership = ownership
        self._racks = racks
        self._least, self._over_limit = divmod(total, size)
        self._most = self._least + (self._over_limit > 0)
        self._over = 0
        """How many members have more than ``least``."""
        self._revoked: dict[TopicPartition, str] = {}
        """Partitions that their previous owner does not keep → that owner."""
        self._below: list[str] = []
        """Members with fewer than ``least``."""
        self._level: deque[str] = deque()
        """Members with exactly ``least`` that may get one more."""
        self.assignment: Assignment = {member_id: [] for member_id in ownership.kept}
        self.transferring: dict[TopicPartition, str] = {}
        """Partitions that move from a member that owns them → the new owner; it must revoke them first under the cooperative
        protocol."""

    def run(self) -> None:
        """Assign. Raises JavaFailure if the claims break Kafka's arithmetic."""
        self._keep_owned()
        kept = {member_id: len(partitions) for member_id, partitions in self.assignment.items()}
        free = self._racks.sort_by_crowd(self._free())
        self._below.sort(key=compare_key)
        self._level = deque(sorted(self._level, key=compare_key))
        if self._racks.matter:
            free = self._fill_by_rack(free)
        given = self._fill_below(free)
        self._fill_level(free[given:])
        self._note_transfers(kept)

    def _keep_owned(self) -> None:
        rank = {topic: number for number, topic in enumerate(java_sorted(self._table))}
        for member_id, claims in self._ownership.kept.items():
            owned = claims
            if self._racks.matter:
                owned = [partition for partition in claims if not self._racks.mismatch(member_id, partition)]
                self._revoke(member_id, set(claims).difference(owned))
            if self._ownership.double_claimed:
                owned = [partition for partition in owned if partition not in self._ownership.double_claimed]
            # Ordered by partition first, so that a member over its limit loses the highest numbers of all topics alike.
            owned = sorted(owned, key=lambda partition: (partition[1], rank[partition[0]]))
            quota = self._least
            if len(owned) < self._least:
                self._below.append(member_id)
            elif len(owned) >= self._most and self._over < self._over_limit:
                quota = self._most
                self._count_over()
            elif self._over < self._over_limit:
                self._level.append(member_id)
            self.assignment[member_id] += owned[:quota]
            self._revoke(member_id, owned[quota:])

    def _revoke(self, member_id: str, partitions: Iterable[TopicPartition]) -> None:
        self._revoked.update(dict.fromkeys(partitions, member_id))

    def _count_over(self) -> None:
        """Count a member with more than ``least``; when there are enough, members with exactly ``least`` get no more."""
        self._over += 1
        if self._over == self._over_limit:
            self._level.clear()

    def _free(self) -> list[TopicPartition]:
        """The partitions without an owner, by topic and number."""
        everything = [
            partition for topic in java_sorted(self._table) for partition in partitions_of(topic, self._table[topic])
        ]
        return unassigned_partitions(everything, [partition for kept in self.assignment.values() for partition in kept])

    def _fill_by_rack(self, free: Sequence[TopicPartition]) -> list[TopicPartition]:
        """Assign partitions to members on the rack of a replica; returns the rest.

        In turn to members below ``least``, then to the first that may get one more.
        """
        rest: list[TopicPartition] = []
        following = 0
        for partition in free:
            at = self._next_on_rack(partition, self._below, following)
            if at is not None:
                member_id = self._below[at]
                count = len(self.assignment[member_id]) + 1
                if count >= self._least:
                    del self._below[at]
                    if count < self._most and self._over < self._over_limit:
                        self._level.append(member_id)
                else:
                    at += 1
                following = at % len(self._below) if self._below else 0
            else:
                at = self._next_on_rack(partition, self._level, 0)
                if at is None:
                    rest.append(partition)
                    continue
                member_id = self._level[at]
                del self._level[at]
                self._count_over()
            self.assignment[member_id].append(partition)
        return rest

    def _next_on_rack(self, partition: TopicPartition, members: Sequence[str], start: int) -> int | None:
        """The index of the next of ``members``, cyclically from ``start``, on a rack of ``partition``."""
        racks, member_racks = self._racks.racks(partition), self._racks.member_racks
        if not racks:
            return None
        for step in range(len(members)):
            at = (start + step) % len(members)
            if member_racks.get(members[at]) in racks:
                return at
        return None

    def _fill_below(self, free: Sequence[TopicPartition]) -> int:
        """Deal ``free`` to the members below ``least``, one each in turn, until none is below; returns how many were dealt.

        Full rounds, until the next member is full, are dealt at once: the n-th member takes every n-th partition.
        """
        at = 0
        while self._below and at < len(free):
            ring = self._below
            lacking = [self._least - len(self.assignment[member_id]) for member_id in ring]
            rounds = max(1, min(*lacking, (len(free) - at) // len(ring)))
            end = min(len(free), at + rounds * len(ring))
            for place, member_id in enumerate(ring):
                self.assignment[member_id] += free[at + place : end : len(ring)]
            at = end
            self._below = [member_id for member_id in ring if len(self.assignment[member_id]) < self._least]
            self._level.extend(member_id for member_id in ring if len(self.assignment[member_id]) >= self._least)
        return at

    def _fill_level(self, free: Sequence[TopicPartition]) -> None:
        """Assign ``free``, one each, to members that may get one more."""
        if len(free) > len(self._level):
            raise JavaFailure("IllegalStateException", "no member is left to give a partition to")
        for partition in free:
            self.assignment[self._level.popleft()].append(partition)

    def _note_transfers(self, kept: Mapping[str, int]) -> None:
        contested = self._ownership.double_claimed
        if not contested and not self._revoked:
            return
        for member_id, partitions in self.assignment.items():
            for partition in partitions[kept[member_id] :]:
                if partition in contested or self._revoked.get(partition, member_id) != member_id:
                    self.transferring[partition] = member_id

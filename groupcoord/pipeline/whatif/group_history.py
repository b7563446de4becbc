"""What is played: the generations of one group, one after the other, and how many partitions topics had."""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from groupcoord.assignors import Assignment, TopicPartition

MOST_PARTITIONS = 1_000_000
"""More than any cluster has. A commit may name any partition; no assignor is asked to assign two thousand million."""
LATER = (1 << 63) - 1


class WhatIfError(Exception):
    """A generation cannot be played; the text says why."""


class MemberSnapshot(NamedTuple):
    """A member of one generation. ``who`` stays when a static member comes back under another member id."""

    member_id: str
    who: str
    instance_id: str | None
    topics: tuple[str, ...] | None
    rack: str | None
    owned: Sequence[TopicPartition]
    assigned: list[TopicPartition] | None


@dataclass(frozen=True, slots=True)
class GroupRecord:
    """One record of the log that describes the group.

    ``begins``: a new generation, and not a further record of the one before. ``follows``: the second step of a cooperative
    rebalance; the same members with the same subscriptions join again because one had to give something up. ``goes_on``:
    the next generation is such a second step as well, but of other members.
    """

    log_partition: int
    log_offset: int
    at: int | None
    generation: int | None
    leader: str | None
    protocol: str | None
    begins: bool
    follows: bool
    goes_on: bool
    modern: bool
    assign_and_sync_ms: int | None
    problem: str | None
    people: tuple[MemberSnapshot, ...]

    @property
    def assignment(self) -> Assignment:
        """The assignment of all members. Raises WhatIfError if it is unknown."""
        for person in self.people:
            if person.assigned is None:
                raise WhatIfError(self.problem or f"what {person.member_id} was given is not known")
        return {person.member_id: person.assigned or [] for person in self.people}

    @property
    def wanted(self) -> dict[str, None]:
        """The topics that any member wants. Raises WhatIfError if that is unknown."""
        for person in self.people:
            if person.topics is None:
                raise WhatIfError(self.problem or f"what {person.member_id} wants is not known")
        return dict.fromkeys(topic for person in self.people for topic in person.topics or ())


def moment_of(row: Mapping[str, Any]) -> GroupRecord:
    """The moment in a row of ``tables.moments``."""
    return GroupRecord(
        log_partition=row["log_partition"],
        log_offset=row["log_offset"],
        at=row["at"],
        generation=row["generation"],
        leader=row["leader"],
        protocol=row["protocol"],
        begins=row["begins"],
        follows=row["follows"],
        goes_on=row["goes_on"],
        modern=row["modern"],
        assign_and_sync_ms=row["assign_and_sync_ms"],
        problem=row["problem"],
        people=tuple([_person(member) for member in row["members"] or ()]),
    )


def _person(member: Mapping[str, Any]) -> MemberSnapshot:
    instance_id, topics, assigned = member["instance_id"], member["topics"], member["assigned"]
    return MemberSnapshot(
        member["member_id"],
        f"m:{member['member_id']}" if instance_id is None else f"i:{instance_id}",
        instance_id,
        None if topics is None else tuple(topics),
        member["rack"],
        _flat(member["owned"] or ()),
        None if assigned is None else _flat(assigned),
    )


def _flat(grouped: Iterable[Mapping[str, Any]]) -> list[TopicPartition]:
    return [(one["topic"], partition) for one in grouped for partition in one["partitions"]]


class PartitionCounts:
    """How many partitions each topic had, and since when."""

    def __init__(self) -> None:
        self._since: dict[str, list[int]] = {}
        self._counts: dict[str, list[int]] = {}

    def add(self, topic: str, since: int, count: int) -> None:
        """From ``since`` on ``topic`` has ``count`` partitions. Later moments come later."""
        self._since.setdefault(topic, []).append(since)
        self._counts.setdefault(topic, []).append(count)

    def at(self, moment: int | None, wanted: Iterable[str]) -> dict[str, int]:
        """Those of ``wanted`` that there were, with their partitions; without a time as they are last.

        Raises WhatIfError where these are more than a cluster can have.
        """
        when = LATER if moment is None else moment
        found = {}
        for topic in wanted:
            if number := bisect_right(self._since.get(topic, ()), when):
                found[topic] = self._counts[topic][number - 1]
        if sum(found.values()) > MOST_PARTITIONS:
            topic = max(found, key=lambda topic: (found[topic], topic))
            raise WhatIfError(f"{topic} would have {found[topic]:,} partitions, which cannot be")
        return found

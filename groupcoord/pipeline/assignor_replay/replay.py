"""Replays the history of one group with one assignor.

Input are the rows of ``what_if_tables.moments``, one for each recorded generation or change of a topic's partition count;
output are rows of the table ``what_if``, one for each rebalance.

Its memory does not grow with the length of the history: it keeps the members, and the current and last owner of each partition.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, NamedTuple

from groupcoord.assignors import Assignment, FaultyAssignorError, TopicPartition
from groupcoord.pipeline.assignor_replay import recorded_and_simulated_assignments as sources
from groupcoord.pipeline.assignor_replay.assignor_choice import RECORDED_HISTORY, AssignorChoice

Owners = dict[TopicPartition, str]
"""The owner of each partition: an identity that a static member keeps when its member id changes."""


class RebalanceCosts(NamedTuple):
    """The figures of one rebalance, as in the columns of ``what_if``."""

    partitions_total: int
    moved: int
    kept: int
    moved_needlessly: int
    imbalance: int
    pauses: int


def partition_owners(assignment: Mapping[str, Iterable[TopicPartition]], whos: Mapping[str, str]) -> Owners:
    """The owner of each partition of ``assignment``; ``whos`` maps member ids to identities."""
    return {partition: whos[member_id] for member_id, had in assignment.items() for partition in had}


def costs(
    rounds: list[Assignment],
    whos: Mapping[str, str],
    *,
    claimed: Owners,
    reading: Owners,
    last: Owners,
    partitions: Mapping[str, int],
) -> RebalanceCosts:
    """The costs of a rebalance whose steps are ``rounds``.

    ``claimed`` are the owners when members joined, ``reading`` the owners just before, ``last`` the last owner of each
    partition. ``partitions`` has the topics that members subscribe to now, and their numbers of partitions.
    """
    each = [partition_owners(assignment, whos) for assignment in rounds]
    now = each[-1]
    sizes = {member_id: len(had) for member_id, had in rounds[-1].items()}
    before = {partition: last[partition] for partition in now if partition in last}
    kept = sum(now[partition] == who for partition, who in before.items())
    steady = {
        partition
        for partition, who in claimed.items()
        if reading.get(partition) == who and all(then.get(partition) == who for then in each)
    }
    had, has = Counter(before.values()), Counter(now.values())
    return RebalanceCosts(
        partitions_total=sum(sizes.values()),
        moved=len(before) - kept,
        kept=kept,
        moved_needlessly=max(0, _kept_at_most(has.values(), [had[who] for who in set(whos.values())]) - kept),
        imbalance=max(sizes.values(), default=0) - min(sizes.values(), default=0),
        pauses=sum(number < partitions.get(topic, 0) for topic, number in reading if (topic, number) not in steady),
    )


def _kept_at_most(now: Iterable[int], before: Iterable[int]) -> int:
    """The most partitions that could keep their owners if the new numbers of partitions were distributed over the members in
    the best way; the same measure as in ``rebalances``."""
    pairs = zip(sorted(now, reverse=True), sorted(before, reverse=True), strict=False)
    return sum(min(share, had) for share, had in pairs)


Row = dict[str, Any]
LONGEST_PROBLEM = 1000
"""The most characters that are kept of an assignor's error."""


@dataclass
class _Event:
    """A rebalance in progress: it is over when the next one begins, because until then a second step may follow."""

    moment: sources.GroupRecord
    last_moment: sources.GroupRecord
    whos: dict[str, str]
    partitions: dict[str, int] = field(default_factory=dict)
    played: sources.PlayedRebalance | None = None
    problem: str | None = None


class GroupReplay:
    """Replays one group with one assignor; if ``choice`` is None, with the recorded assignments. Records must come in the
    order of the log, after the rows about topics."""

    def __init__(self, group: str, choice: AssignorChoice | None) -> None:
        self.topics = sources.PartitionCounts()
        self._group = group
        self._choice = choice
        self._player = sources.RecordedHistory() if choice is None else sources.SimulatedMembers(choice)
        self._event: _Event | None = None
        self._reading: Owners = {}
        self._last: Owners = {}

    def play(self, moment: sources.GroupRecord) -> Iterator[Row]:
        """Replay one record; yields the row of the previous rebalance if that is over."""
        if not moment.people:
            yield from self.end()
            self._player.everybody_left()
            self._reading = {}
        elif not moment.begins:
            self._player.update_members(moment)
        elif moment.follows and self._event is not None:
            self._follow(self._event, moment)
        else:
            yield from self.end()
            self._event = self._begin(moment)

    def end(self) -> Iterator[Row]:
        """Yield the row of the last rebalance, if it is still in progress."""
        if self._event is not None:
            yield self._row(self._event)
            self._event = None

    def _begin(self, moment: sources.GroupRecord) -> _Event:
        event = _Event(moment, moment, {person.member_id: person.who for person in moment.people})
        try:
            event.partitions = self.topics.at(moment.at, moment.wanted)
            event.played = self._player.play(moment, event.partitions)
        except Exception as problem:  # an assignor may raise anything; the replay of others continues
            event.problem = self._words(problem)
        return event

    def _follow(self, event: _Event, moment: sources.GroupRecord) -> None:
        event.last_moment = moment
        event.whos |= {person.member_id: person.who for person in moment.people}
        try:
            rounds = self._player.follow(moment)
        except Exception as problem:
            event.problem = event.problem or self._words(problem)
        else:
            if event.played is not None:
                event.played.rounds.extend(rounds)

    def _words(self, problem: Exception) -> str:
        if isinstance(problem, sources.WhatIfError | FaultyAssignorError):
            text = str(problem)
        else:
            name = RECORDED_HISTORY if self._choice is None else f"assignor {self._choice.name}"
            text = f"{name}: raised {type(problem).__name__}: {problem}"
        return text[:LONGEST_PROBLEM]

    def _row(self, event: _Event) -> Row:
        moment = event.moment
        row = {
            "log_partition": moment.log_partition,
            "log_offset": moment.log_offset,
            "group": self._group,
            "generation": moment.generation,
            "at": moment.at,
            "assignor": RECORDED_HISTORY if self._choice is None else self._choice.spec,
            "members": len(moment.people),
            "problem": event.problem,
        }
        if event.problem is not None or event.played is None:
            self._reading = partition_owners(self._player.claims(event.last_moment), event.whos)
            return row
        claims, rounds = event.played
        cost = costs(
            rounds,
            event.whos,
            claimed=partition_owners(claims, event.whos),
            reading=self._reading,
            last=self._last,
            partitions=event.partitions,
        )
        self._reading = partition_owners(rounds[-1], event.whos)
        self._last |= self._reading
        took = moment.assign_and_sync_ms
        return {
            **row,
            **cost._asdict(),
            "rebalances": len(rounds),
            "paused_partition_seconds": None if took is None else cost.pauses * max(0, took) / 1000,
            "agrees": self._agrees(event.last_moment, rounds[-1], event.whos),
        }

    def _agrees(self, moment: sources.GroupRecord, answer: Assignment, whos: dict[str, str]) -> bool | None:
        """Is ``answer`` the group's real assignment? None if the group did not use this assignor then."""
        if self._choice is None or moment.protocol != self._choice.name:
            return None
        try:
            return partition_owners(answer, whos) == partition_owners(moment.assignment, whos)
        except sources.WhatIfError:
            return None


def rows(moments: Iterator[Mapping[str, Any]], chosen: Mapping[str, AssignorChoice]) -> Iterator[Row]:
    """Rows of ``what_if`` from rows of ``what_if_tables.moments``, in order. ``chosen``: spec → choice."""
    for (group, assignor), mine in groupby(moments, key=lambda row: (row["group"], row["assignor"])):
        replay = GroupReplay(group, chosen.get(assignor))
        for row in mine:
            if row["topic"] is not None:
                replay.topics.add(row["topic"], row["at"], row["partitions"])
            else:
                yield from replay.play(sources.group_record(row))
        yield from replay.end()

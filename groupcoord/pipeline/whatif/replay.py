"""The history of one group, played with one assignor: from moments to rows of ``what_if``.

What it keeps does not grow with the history: the members, and whose each partition is and was last.
"""

from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import Any

from groupcoord.assignors import Assignment, FaultyAssignorError
from groupcoord.pipeline.whatif.choice import AS_IT_WAS, Choice
from groupcoord.pipeline.whatif.history import Moment, Topics, WhatIfError, moment_of
from groupcoord.pipeline.whatif.measures import Owners, costs, owners
from groupcoord.pipeline.whatif.players import AsItWas, Clients, Played, Player

Row = dict[str, Any]
LONGEST_PROBLEM = 1000
"""So many characters are kept of what an assignor complains of."""


class _Event:
    """A rebalance that is not done before the next one begins, because a second step may follow."""

    def __init__(self, moment: Moment, partitions: dict[str, int], whos: dict[str, str]) -> None:
        self.moment = moment
        self.last_moment = moment
        self.partitions = partitions
        self.whos = whos
        self.played: Played | None = None
        self.problem: str | None = None


class Replay:
    """One group and one assignor; ``choice`` None: as it was. Moments come in the order of the log, topics before them."""

    def __init__(self, group: str, choice: Choice | None) -> None:
        self.topics = Topics()
        self._group = group
        self._choice = choice
        self._player: Player = AsItWas() if choice is None else Clients(choice)
        self._event: _Event | None = None
        self._reading: Owners = {}
        self._last: Owners = {}

    def moment(self, moment: Moment) -> Iterator[Row]:
        """Play one; gives the row of the rebalance before, when that is over."""
        if not moment.people:
            yield from self.end()
            self._player.everybody_left()
            self._reading = {}
        elif not moment.begins:
            self._player.refresh(moment)
        elif moment.follows and self._event is not None:
            self._follow(self._event, moment)
        else:
            yield from self.end()
            self._event = self._begin(moment)

    def end(self) -> Iterator[Row]:
        """The row of the last rebalance, if there is one that is not over."""
        if self._event is not None:
            yield self._row(self._event)
            self._event = None

    def _begin(self, moment: Moment) -> _Event:
        event = _Event(moment, {}, {person.member_id: person.who for person in moment.people})
        try:
            event.partitions = self.topics.at(moment.at, moment.wanted)
            event.played = self._player.play(moment, event.partitions)
        except Exception as problem:  # an assignor may raise anything, and the others go on
            event.problem = self._words(problem)
        return event

    def _follow(self, event: _Event, moment: Moment) -> None:
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
        if isinstance(problem, WhatIfError | FaultyAssignorError):
            said = str(problem)
        else:
            name = AS_IT_WAS if self._choice is None else f"assignor {self._choice.name}"
            said = f"{name}: raised {type(problem).__name__}: {problem}"
        return said[:LONGEST_PROBLEM]

    def _row(self, event: _Event) -> Row:
        moment = event.moment
        row = {
            "log_partition": moment.log_partition,
            "log_offset": moment.log_offset,
            "group": self._group,
            "generation": moment.generation,
            "at": moment.at,
            "assignor": AS_IT_WAS if self._choice is None else self._choice.said,
            "members": len(moment.people),
            "problem": event.problem,
        }
        if event.problem is not None or event.played is None:
            self._reading = owners(self._player.claims(event.last_moment), event.whos)
            return row
        claims, rounds = event.played
        cost = costs(
            rounds,
            event.whos,
            claimed=owners(claims, event.whos),
            reading=self._reading,
            last=self._last,
            partitions=event.partitions,
        )
        self._reading = owners(rounds[-1], event.whos)
        self._last |= self._reading
        took = moment.assign_and_sync_ms
        return (
            row
            | cost._asdict()
            | {
                "rebalances": len(rounds),
                "paused_partition_seconds": None if took is None else cost.pauses * max(0, took) / 1000,
                "agrees": self._agrees(event.last_moment, rounds[-1], event.whos),
            }
        )

    def _agrees(self, moment: Moment, answer: Assignment, whos: dict[str, str]) -> bool | None:
        """Is ``answer`` what the group really came to by this assignor?"""
        if self._choice is None or moment.protocol != self._choice.name:
            return None
        try:
            return owners(answer, whos) == owners(moment.assignment, whos)
        except WhatIfError:
            return None


def rows(said: Iterator[Mapping[str, Any]], chosen: Mapping[str, Choice]) -> Iterator[Row]:
    """Rows of ``what_if`` from rows of ``tables.moments``, in order. ``chosen``: by what was said."""
    for (group, assignor), mine in groupby(said, key=lambda row: (row["group"], row["assignor"])):
        replay = Replay(group, chosen.get(assignor))
        for row in mine:
            if row["topic"] is not None:
                replay.topics.add(row["topic"], row["at"], row["partitions"])
            else:
                yield from replay.moment(moment_of(row))
        yield from replay.end()

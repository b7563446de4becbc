"""Who was given which partitions of a group, and what took them away, as far as its assignments are in the trace.

An assignment is what the leader of a generation made, or the target assignment of an epoch of a consumer group (KIP-848).
"""

from collections.abc import Iterator
from dataclasses import dataclass

from groupcoord.assignors import TopicPartition
from groupcoord.coordinator.events import (
    AssignmentReceived,
    MemberRemoved,
    Owners,
    StaticMemberReplaced,
    TargetAssignmentComputed,
)
from groupcoord.testing.trace.events import TraceEntry
from groupcoord.testing.trace.generation_history import Beginning, GenerationHistory
from groupcoord.testing.trace.text_formatting import moment


@dataclass(frozen=True, slots=True)
class Move:
    """A partition went from ``loser`` to ``winner`` (member ids; ``""`` is nobody).

    ``entry`` is that of the assignment that says so, or that of the removal of ``loser``. ``since`` is the assignment before.
    """

    entry: TraceEntry
    loser: str
    winner: str
    since: TraceEntry | None


class OwnershipHistory:
    """The assignments of ``history``."""

    def __init__(self, history: GenerationHistory) -> None:
        self._history = history

    @property
    def partitions(self) -> tuple[TopicPartition, ...]:
        """All that were given to anybody."""
        found = {pair for entry in self._history.entries for pairs in owners_of(entry).values() for pair in pairs}
        return tuple(sorted(found))

    def moves(self, partition: TopicPartition) -> Iterator[Move]:
        """How ``partition`` went from one to another. Who comes back as a static member has what it had."""
        owner, assignment = "", None
        for entry in self._history.entries:
            winner = owner
            match entry.event:
                case StaticMemberReplaced(old_member=old_member, new_member=new_member) if owner == old_member:
                    owner = winner = new_member
                case MemberRemoved(member=member) if owner == member:
                    winner = ""
                case _ if is_assignment(entry):
                    winner = next((member for member, pairs in owners_of(entry).items() if partition in pairs), "")
            if winner != owner:
                yield Move(entry, owner, winner, assignment)
            owner = winner
            if is_assignment(entry):
                assignment = entry

    def beginnings(self, move: Move) -> list[Beginning]:
        """The generations, or epochs, from the assignment before to that of ``move``, which are behind it."""
        since = 0 if move.since is None else move.since.seq
        return [
            begun
            for begun in self._history.beginnings()
            if since < begun.entry.seq < move.entry.seq
            and begun.is_epoch is isinstance(move.entry.event, TargetAssignmentComputed)
        ]


def is_assignment(entry: TraceEntry) -> bool:
    """Does ``entry`` say who is to have what?"""
    event = entry.event
    return isinstance(event, TargetAssignmentComputed) or (
        isinstance(event, AssignmentReceived) and event.owners is not None
    )


def owners_of(entry: TraceEntry) -> Owners:
    """What ``entry`` gives to whom; nothing if it is no assignment."""
    match entry.event:
        case TargetAssignmentComputed(owners=owners) | AssignmentReceived(owners=owners) if owners is not None:
            return owners
        case _:
            return {}


def assignment_text(entry: TraceEntry) -> str:
    """``the assignment of generation 2 at 60.0 s``."""
    at = moment(entry.since_start_ms)
    match entry.event:
        case TargetAssignmentComputed(epoch=epoch):
            return f"the target assignment of epoch {epoch} at {at}"
        case AssignmentReceived(generation=generation):
            return f"the assignment of generation {generation} at {at}"
        case _:
            raise AssertionError(entry)

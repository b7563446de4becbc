"""Explains how a member of a group last joined, left or changed, and why a partition moved from one member to another.

An assignment is that of the leader of a generation, or the target assignment of an epoch of a consumer group (KIP-848).
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from groupcoord.assignors import TopicPartition
from groupcoord.coordinator.events import (
    AssignmentReceived,
    ConsumerMemberJoined,
    GenerationStarted,
    MemberIdAssigned,
    MemberJoined,
    MemberRejoined,
    MemberRemoved,
    Owners,
    StaticMemberAway,
    StaticMemberReplaced,
    SubscriptionChanged,
    TargetAssignmentComputed,
)
from groupcoord.core.events import Requested
from groupcoord.testing.trace.events import TraceEntry
from groupcoord.testing.trace.generation_history import Beginning, GenerationHistory
from groupcoord.testing.trace.short_member_names import ShortMemberNames
from groupcoord.testing.trace.times_and_lists_in_words import listed, moment
from groupcoord.testing.trace.why_epoch import explain_arrival, explain_epoch
from groupcoord.testing.trace.why_generation import (
    NEW_ASSIGNORS,
    NEW_SUBSCRIPTION,
    DepartureReasons,
    arrival,
    explain_generation,
    news_of,
)


@dataclass(frozen=True, slots=True)
class Move:
    """A partition moved from ``loser`` to ``winner`` (member ids; ``""``: nobody).

    ``entry`` is the entry of the assignment that moved it, or of the removal of ``loser``; ``since`` that of the assignment
    before.
    """

    entry: TraceEntry
    loser: str
    winner: str
    since: TraceEntry | None


class OwnershipHistory:
    """The owners of partitions according to the assignments in ``history``."""

    def __init__(self, history: GenerationHistory) -> None:
        self._history = history

    @property
    def partitions(self) -> tuple[TopicPartition, ...]:
        """All partitions in any assignment."""
        found = {pair for entry in self._history.entries for pairs in owners_of(entry).values() for pair in pairs}
        return tuple(sorted(found))

    def moves(self, partition: TopicPartition) -> Iterator[Move]:
        """The moves of ``partition``. A static member that comes back with a new member id keeps its partitions."""
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
        """The generations or epochs that began between the assignment before ``move`` and that of ``move``."""
        since = 0 if move.since is None else move.since.seq
        return [
            begun
            for begun in self._history.beginnings()
            if since < begun.entry.seq < move.entry.seq
            and begun.is_epoch is isinstance(move.entry.event, TargetAssignmentComputed)
        ]


def is_assignment(entry: TraceEntry) -> bool:
    """Is ``entry`` an assignment with owners?"""
    event = entry.event
    return isinstance(event, TargetAssignmentComputed) or (
        isinstance(event, AssignmentReceived) and event.owners is not None
    )


def owners_of(entry: TraceEntry) -> Owners:
    """The partitions of each member in the assignment ``entry``; empty if it is not an assignment."""
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


class MemberExplanation:
    """Explains events of the members of ``group`` in ``entries``, in words.

    All methods raise LookupError, which says what is known, if the trace does not have the answer.
    """

    def __init__(self, entries: Sequence[TraceEntry], group: str) -> None:
        self._history = GenerationHistory(entries, group)
        self._names = ShortMemberNames(entries)
        self._ownership = OwnershipHistory(self._history)
        self._departures = DepartureReasons(self._history, self._names)

    # Changes of a member.

    def member(self, name: str) -> str:
        """How the member ``name`` last joined, left or changed its subscription."""
        ids = self._members_called(name)
        for entry in reversed(self._history.entries):
            told = self._change(entry, ids)
            if told:
                begun = self._history.led_to(entry)
                led = f"it led to {listed([each.text() for each in begun])}" if begun else "it led to no generation"
                return self._shortened(f"{told}; {led}", begun)
        raise self._unknown(f"the trace does not say how member {name!r} of group {self._history.group!r} came or left")

    def _change(self, entry: TraceEntry, ids: Sequence[str]) -> str:
        """``entry`` in words if a member of ``ids`` joined, left or changed by it; otherwise ``""``."""
        history, names = self._history, self._names
        match entry.event:
            case MemberRemoved(member=member) if member in ids:
                return self._departures.explain([entry])
            case MemberJoined(member=member) | StaticMemberReplaced(new_member=member) if member in ids:
                return arrival(history, names, entry)
            case MemberRejoined(member=member, changed=True) if member in ids:
                is_news = news_of(history, entry, member).startswith((NEW_SUBSCRIPTION, NEW_ASSIGNORS))
                return arrival(history, names, entry) if is_news else ""
            case ConsumerMemberJoined(member=member) | SubscriptionChanged(member=member) if member in ids:
                return explain_arrival(entry, names)
            case StaticMemberAway(member=member, instance_id=instance_id) if member in ids:
                return (
                    f"static member {instance_id} left for now at {moment(entry.since_start_ms)}, and keeps what it has"
                )
            case _:
                return ""

    # Moves of a partition.

    def lost(self, partition: TopicPartition, name: str | None = None) -> str:
        """Why the member ``name``, or any member, last lost ``partition``."""
        ids = None if name is None else self._members_called(name)
        moves = list(self._ownership.moves(partition))
        for place in range(len(moves) - 1, -1, -1):
            move = moves[place]
            if move.loser and (ids is None or move.loser in ids):
                return self._lost(partition, move, moves[place + 1 :])
        raise self._never(partition, name, "lost", moves)

    def _lost(self, partition: TopicPartition, move: Move, later: Sequence[Move]) -> str:
        who, what = self._names.of(move.loser), _named(partition)
        following = next((each for each in later if each.winner), None)
        after = (
            "nobody has had it since"
            if following is None
            else f"{self._names.of(following.winner)} got it with {assignment_text(following.entry)}"
        )
        if isinstance(move.entry.event, MemberRemoved):
            at = moment(move.entry.since_start_ms)
            return self._shortened(f"{who} lost {what} at {at}: {self._departures.explain([move.entry])}; {after}", ())
        given = (
            f", which gave it to {self._names.of(move.winner)}"
            if move.winner
            else f", which gave it to nobody; {after}"
        )
        return self._shortened(
            f"{who} lost {what} with {assignment_text(move.entry)}{given}", self._ownership.beginnings(move)
        )

    def got(self, partition: TopicPartition, name: str | None = None) -> str:
        """Why the member ``name``, or any member, last got ``partition``."""
        ids = None if name is None else self._members_called(name)
        moves = list(self._ownership.moves(partition))
        for place in range(len(moves) - 1, -1, -1):
            move = moves[place]
            if move.winner and (ids is None or move.winner in ids):
                before = move.loser or next((each.loser for each in reversed(moves[:place]) if each.loser), "")
                had = f"{self._names.of(before)} had it before" if before else "nobody had it before"
                who, with_it = self._names.of(move.winner), assignment_text(move.entry)
                told = f"{who} got {_named(partition)} with {with_it}; {had}"
                return self._shortened(told, self._ownership.beginnings(move))
        raise self._never(partition, name, "got", moves)

    # Consequences.

    def caused_by(self, made_by: TraceEntry) -> str:
        """Why each generation or epoch to which ``made_by`` led began, one in a line."""
        begun = self._history.led_to(made_by)
        if begun:
            return self._shortened("", begun)
        what = self._names.shortened(made_by.text())
        raise self._unknown(f"no generation or epoch of group {self._history.group!r} began because of {what!r}")

    def beginnings(self) -> Iterator[tuple[Beginning, str]]:
        """Each generation and epoch whose beginning the trace has, in order, with the explanation."""
        for begun in self._history.beginnings():
            yield begun, self._shortened("", [begun])

    # Internals.

    def _shortened(self, told: str, begun: Iterable[Beginning]) -> str:
        """``told``, then why each of ``begun`` began, one in a line, with short member names."""
        return self._names.shortened("\n".join(filter(None, [told, *map(self._line, begun)])))

    def _line(self, begun: Beginning) -> str:
        if begun.is_epoch:
            return explain_epoch(self._history, self._names, begun.entry)
        origin = self._history.generation_start(begun.number, until=begun.entry)
        assert origin is not None
        return explain_generation(self._history, self._names, origin)

    def _members_called(self, name: str) -> Sequence[str]:
        """The member ids of all members with that member id, instance id, client id or short name."""
        known: dict[str, set[str]] = {}
        for entry in self._history.entries:
            for member, called in _named_by(entry):
                known.setdefault(member, {member, self._names.of(member)}).update(called)
        ids = [member for member, called in known.items() if name in called]
        if not ids:
            others = listed([self._names.of(member) for member in known])
            text = f"the trace knows no member {name!r} of group {self._history.group!r}"
            raise LookupError(f"{text}, but {others}" if others else f"{text}, nor any other")
        return ids

    def _never(self, partition: TopicPartition, name: str | None, verb: str, moves: Sequence[Move]) -> LookupError:
        what = f"the trace does not say how {name or 'anybody'} {verb} {_named(partition)} of group {self._history.group!r}"
        owners = [
            f"{self._names.of(move.winner)} got it with {assignment_text(move.entry)}" for move in moves if move.winner
        ]
        if owners:
            return LookupError(f"{what}; {listed(owners)}")
        given = [_named(pair) for pair in self._ownership.partitions]
        return LookupError(f"{what}; the assignments that it has are of {listed(given) or 'nothing'}")

    def _unknown(self, what: str) -> LookupError:
        begun = [each.text() for each in self._history.beginnings()]
        return LookupError(f"{what}; the trace has the beginning of {listed(begun) or 'none'}")


def _named(partition: TopicPartition) -> str:
    topic, number = partition
    return f"{topic}-{number}"


def _named_by(entry: TraceEntry) -> Iterator[tuple[str, set[str]]]:
    """(member id, other names) of each member in ``entry``."""
    match entry.event:
        case (
            MemberJoined(member=member, instance_id=instance_id, client_id=client_id)
            | ConsumerMemberJoined(member=member, instance_id=instance_id, client_id=client_id)
        ):
            yield member, {client_id, instance_id or client_id}
        case StaticMemberReplaced(old_member=old_member, new_member=new_member, instance_id=instance_id):
            yield old_member, {instance_id}
            yield new_member, {instance_id}
        case MemberIdAssigned(member=member, cause=Requested(client_id=str(client_id))):
            yield member, {client_id}
        case MemberRemoved(member=member):
            yield member, set()
        case GenerationStarted(members=members):
            yield from ((member, set()) for member in members)
        case _:
            yield from ((member, set()) for member in owners_of(entry))

"""Explains why a consumer group is at an epoch (KIP-848): what caused it, which partitions move, which members had to revoke
some, and which had to wait for them."""

from collections.abc import Iterator, Mapping, Sequence

from groupcoord.coordinator.events import (
    ConsumerMemberJoined,
    GroupEpochBumped,
    GroupMigrated,
    MemberReconciled,
    MemberRemoved,
    Owners,
    RegexResolved,
    StaticMemberAway,
    StaticMemberReplaced,
    SubscriptionChanged,
    TargetAssignmentComputed,
)
from groupcoord.core.grouping import grouped
from groupcoord.testing.trace.events import TraceEntry
from groupcoord.testing.trace.generation_history import GenerationHistory
from groupcoord.testing.trace.short_member_names import ShortMemberNames
from groupcoord.testing.trace.times_and_lists_in_words import listed, moment
from groupcoord.testing.trace.why_generation import DepartureReasons

SHOWN = 6
"""How many partitions or members are named together; of the others only the number."""

_WAITS = "UNRELEASED_PARTITIONS"
_Event = MemberReconciled | MemberRemoved | StaticMemberAway
"""The events of a member on the way to the target assignment."""
_Step = tuple[TraceEntry, _Event]


def why_epoch(entries: Sequence[TraceEntry], group: str, epoch: int) -> str:
    """Why ``group`` is at ``epoch``. Raises LookupError if its beginning is not in the trace."""
    history = GenerationHistory(entries, group)
    own = history.entries
    known = {entry.event.epoch: place for place, entry in enumerate(own) if isinstance(entry.event, GroupEpochBumped)}
    if epoch not in known:
        text = f"the trace does not have the beginning of epoch {epoch} of group {group!r}"
        text += f", but that of {listed([str(number) for number in known])}" if known else history.unknown_text()
        raise LookupError(text)
    names = ShortMemberNames(entries)
    return names.shortened(explain_epoch(history, names, own[known[epoch]]))


def explain_epoch(history: GenerationHistory, names: ShortMemberNames, bump: TraceEntry) -> str:
    """Why the group is at the epoch of ``bump``, an entry of GroupEpochBumped, in one line that starts with the epoch."""
    assert isinstance(bump.event, GroupEpochBumped)
    clauses = _EpochExplanation(history, history.entries.index(bump), bump.event.epoch, names).clauses()
    return f"epoch {bump.event.epoch}: {'; '.join(clauses)}"


class _EpochExplanation:
    """Builds the clauses for the epoch that began at index ``place`` of the group's entries."""

    def __init__(self, history: GenerationHistory, place: int, epoch: int, names: ShortMemberNames) -> None:
        self._history = history
        self._own = history.entries
        self._bump = self._own[place]
        self._epoch = epoch
        self._names = names
        first = place
        while first and self._belongs(self._own[first - 1]):
            first -= 1
        self._trigger = self._own[first:place]
        self._later = self._own[place:]
        self._earlier = self._own[:place]

    def _belongs(self, earlier: TraceEntry) -> bool:
        """Does ``earlier`` have the same cause as the epoch?"""
        return earlier.shares_cause(self._bump) and not isinstance(earlier.event, GroupEpochBumped)

    def clauses(self) -> Iterator[str]:
        yield self._led_to_it()
        target = self._target()
        if target is None:
            yield "no target assignment was computed for it yet"
            return
        entry, computed = target
        at = moment(entry.since_start_ms)
        if computed.epoch > self._epoch:
            yield f"no target assignment was computed for it: the next was that of epoch {computed.epoch}, at {at}"
            return
        yield f"{computed.assignor} computed the target assignment at {at}: {self._moves(computed.owners)}"
        yield from self._on_the_way(entry, computed)

    # What led to it.

    def _led_to_it(self) -> str:
        at = moment(self._bump.since_start_ms)
        told = [explain_arrival(entry, self._names) for entry in self._trigger]
        departed = [entry for entry in self._trigger if isinstance(entry.event, MemberRemoved)]
        if departed:
            told.append(DepartureReasons(self._history, self._names).explain(departed))
        if any(told):
            return ", and ".join(filter(None, told))
        bump = self._bump.event
        assert isinstance(bump, GroupEpochBumped)
        return f"{bump.reason}, noticed at {at}"

    # The target assignment.

    def _target(self) -> tuple[TraceEntry, TargetAssignmentComputed] | None:
        return next(
            ((entry, event) for entry in self._later if isinstance(event := entry.event, TargetAssignmentComputed)),
            None,
        )

    def _moves(self, owners: Owners) -> str:
        earlier = (entry.event for entry in reversed(self._earlier))
        before = next((event.owners for event in earlier if isinstance(event, TargetAssignmentComputed)), {})
        had, has = _owner_of(before), _owner_of(owners)
        ways = grouped(
            ((had.get(partition, ""), has.get(partition, "")), partition)
            for partition in sorted(had.keys() | has.keys())
        )
        moves = ", ".join(self._way(*way, pairs) for way, pairs in ways.items() if way[0] != way[1])
        return moves or "nothing moves"

    def _way(self, origin: str, target: str, pairs: Sequence[tuple[str, int]]) -> str:
        verb = "goes" if len(pairs) == 1 else "go"
        if not target:
            return f"{_named(pairs)} of {self._names.of(origin)} {verb} to nobody"
        source = f" from {self._names.of(origin)}" if origin else ""
        return f"{_named(pairs)} {verb}{source} to {self._names.of(target)}"

    # On the way to it.

    def _on_the_way(self, target: TraceEntry, computed: TargetAssignmentComputed) -> Iterator[str]:
        """Which members had to revoke which partitions, which waited for them, and which reached the target assignment."""
        steps, following = self._steps(target), self._following(target)
        for member, own in steps.items():
            name = self._names.of(member)
            for place, (entry, step) in enumerate(own):
                if following is not None and entry.seq > following.seq:
                    break
                before = own[place - 1][1] if place else None
                since = moment(entry.since_start_ms)
                match step:
                    case StaticMemberAway():
                        yield f"static member {name} was away from {since} on, and kept what it had"
                    case MemberReconciled(revoking=revoking) if revoking and _revoking(before) != revoking:
                        until = self._until(own, place, revoking)
                        back = "it" if len(revoking) == 1 else "them"
                        yield f"{name} still had {_named(revoking)}{until}, and was told at {since} to give {back} back"
                    case MemberReconciled(state=state) if state == _WAITS and _state(before) != _WAITS:
                        missing = sorted(set(computed.owners.get(member, ())) - set(step.assigned))
                        until = self._until(own, place, _WAITS)
                        yield f"{name} waited for {_named(missing)} from {since}{until}"
        yield self._end(computed, steps, following)

    def _end(
        self, computed: TargetAssignmentComputed, steps: Mapping[str, Sequence[_Step]], following: TraceEntry | None
    ) -> str:
        there: dict[str, TraceEntry] = {}
        missing: list[str] = []
        for member in computed.owners:
            own = [
                (entry, step) for entry, step in steps.get(member, ()) if following is None or entry.seq < following.seq
            ]
            arrived = [entry for entry, step in own if _state(step) == "STABLE" and _epoch(step) >= self._epoch]
            if arrived:
                there[member] = arrived[0]
            elif not any(isinstance(step, MemberRemoved) for _, step in own):
                missing.append(self._names.of(member))
        if missing and following is not None:
            at = moment(following.since_start_ms)
            return f"the next target assignment came at {at}, before {listed(missing)} got there"
        if missing:
            return f"{listed(missing)} {'has' if len(missing) == 1 else 'have'} not got there yet"
        if not there:
            return "nobody is left who could get there"
        at = moment(max(entry.since_start_ms for entry in there.values()))
        who = f"all {len(there)} members" if len(there) > SHOWN else listed([self._names.of(each) for each in there])
        return f"{who} {'was' if len(there) == 1 else 'were'} at epoch {self._epoch} at {at}"

    def _until(self, own: Sequence[_Step], place: int, what: object) -> str:
        """Until when the member is in the state ``what``, or has to revoke the partitions ``what``, from index ``place`` on."""
        for entry, step in own[place + 1 :]:
            if what not in (_state(step), _revoking(step)):
                removed = ", when it was removed" if isinstance(step, MemberRemoved) else ""
                return f" until {moment(entry.since_start_ms)}{removed}"
        return " to the end of the trace"

    def _steps(self, target: TraceEntry) -> Mapping[str, Sequence[_Step]]:
        """The events of each member since the target assignment was computed."""
        return grouped(
            (entry.event.member, (entry, entry.event))
            for entry in self._later
            if entry.seq > target.seq and isinstance(entry.event, _Event)
        )

    def _following(self, target: TraceEntry) -> TraceEntry | None:
        """The next target assignment, if there is one."""
        targets = (entry for entry in self._later if isinstance(entry.event, TargetAssignmentComputed))
        return next((entry for entry in targets if entry.seq > target.seq), None)


def explain_arrival(entry: TraceEntry, names: ShortMemberNames) -> str:
    """An entry that can cause an epoch, in words: a join, a new subscription, a migration; ``""`` for other entries."""
    at = moment(entry.since_start_ms)
    match entry.event:
        case GroupMigrated(to=to, reason=reason):
            return f"the group became a {to} group at {at}, because {reason}"
        case ConsumerMemberJoined(member=member, instance_id=instance_id, protocol=protocol):
            kind = "static member" if instance_id is not None else "member"
            how = " by the classic protocol" if protocol == "classic" else ""
            return f"{kind} {names.of(member)} came at {at}{how}"
        case StaticMemberReplaced(instance_id=instance_id, new_member=member):
            who = f"static member {instance_id} came back as a new member ({names.of(member)}) at {at}"
            return f"{who}, subscribed to something else"
        case SubscriptionChanged(member=member, topics=topics, regex=regex):
            wanted = [*topics, *([f"what {regex} matches"] if regex else [])]
            return f"member {names.of(member)} subscribed to {listed(wanted) or 'nothing'} at {at}"
        case RegexResolved(regex=regex, topics=topics):
            return f"{regex} was found to match {listed(topics) or 'no topic'} at {at}"
        case _:
            return ""


def _owner_of(owners: Owners) -> Mapping[tuple[str, int], str]:
    return {partition: member for member, partitions in owners.items() for partition in partitions}


def _named(pairs: Sequence[tuple[str, int]]) -> str:
    shown = [f"{topic}-{number}" for topic, number in pairs[:SHOWN]]
    return listed(shown + ([f"{len(pairs) - SHOWN} more"] if len(pairs) > SHOWN else []))


def _revoking(step: _Event | None) -> object:
    return step.revoking if isinstance(step, MemberReconciled) else ()


def _state(step: _Event | None) -> str:
    return step.state if isinstance(step, MemberReconciled) else ""


def _epoch(step: _Event) -> int:
    return step.epoch if isinstance(step, MemberReconciled) else -1

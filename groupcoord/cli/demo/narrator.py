"""Narrator, which prints and explains the events of a classic group, for readers who do not know the protocol."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from groupcoord.cli.demo.observed_group import MemberNames
from groupcoord.cli.demo.output import MOVED, DemoOutput, OwnersHistory, rows
from groupcoord.coordinator import events
from groupcoord.core.events import Event, TimerFired, counted
from groupcoord.testing.trace.times_and_lists_in_words import listed, times


class Narrator:
    """Prints the events of ``group`` on ``output``; commits are counted and printed together."""

    def __init__(self, output: DemoOutput, group: str, topic: str, partitions: int) -> None:
        self.output = output
        self.group = group
        self.history = OwnersHistory(topic, partitions)
        self._topic = topic
        self._names = MemberNames()
        self._offers: dict[str, tuple[str, ...]] = {}
        self._asking: set[str] = set()
        self._protocol = ""
        self._state = "Empty"
        self._commits: Counter[str] = Counter()
        self._committed: dict[str, dict[int, int]] = {}
        self._has_seen_a_commit = False
        self._told: dict[type[Event], Callable[[Any], None]] = {
            events.GroupCreated: self._group_created,
            events.MemberIdAssigned: self._member_id_assigned,
            events.MemberJoined: self._member_joined,
            events.MemberRejoined: self._member_rejoined,
            events.MemberRemoved: self._member_removed,
            events.LeaderElected: self._leader_elected,
            events.StateChanged: self._state_changed,
            events.RebalanceStarted: self._rebalance_started,
            events.GenerationStarted: self._generation_started,
            events.AssignmentReceived: self._assignment_received,
            events.OffsetsCommitted: self._offsets_committed,
            events.RequestRefused: self._request_refused,
        }

    def tell(self, event: Event) -> bool:
        """Print ``event``, if it is of this group; returns whether anything was printed."""
        if not isinstance(event, events.GroupEvent) or event.group != self.group:
            return False
        tell = self._told.get(type(event))
        if tell is None:
            self.output.line(event.at_ms, "coordinator", self._names.friendly(event.text()))
            return True
        silent = isinstance(event, events.OffsetsCommitted) and self._has_seen_a_commit
        silent = silent or (isinstance(event, events.StateChanged) and event.target not in {"Stable", "Empty"})
        tell(event)
        return not silent

    def tell_work(self, at_ms: int, reads: Mapping[str, int]) -> None:
        """Print what each member has read since the last call (``reads``: name → records), and its commits since then."""
        newest = self.history.generations[-1].owners if self.history.generations else {}
        for name, count in reads.items():
            if not count and not self._commits[name]:
                continue
            offsets = self._committed.get(name, {})
            owned = [f"{self._topic}-{n}@{offset}" for n, offset in sorted(offsets.items()) if newest.get(n) == name]
            commits = times(self._commits[name]) if self._commits[name] else "nothing yet"
            work = f"has read {counted(count, 'record')}, committed {commits}"
            self.output.line(at_ms, name, f"{work}: {', '.join(owned)}" if owned else work)
        self._commits.clear()
        self._committed.clear()

    # --- joining

    def _group_created(self, event: events.GroupCreated) -> None:
        self._asks(event)
        self.output.line(
            event.at_ms, "coordinator", "makes the group, because nobody asked for it before", "coordinator"
        )

    def _member_id_assigned(self, event: events.MemberIdAssigned) -> None:
        self._names.learn(event.member, self._names.asking(event))
        self._asks(event)
        self.output.line(event.at_ms, "coordinator", f"wants it to ask again as {event.member}", "member id")

    def _member_joined(self, event: events.MemberJoined) -> None:
        self._names.learn(event.member, event.client_id)
        self._offers[event.member] = event.protocols
        self._asks(event)
        self._asking.discard(self._names.asking(event))
        wanted = ", ".join(event.protocols)
        self.output.line(
            event.at_ms, self._names.of(event.member), f"joins; it knows the protocols {wanted}", "protocol"
        )

    def _asks(self, event: events.GroupEvent) -> None:
        """Print once that a new member asks to join, at the first event that shows it."""
        name = self._names.asking(event)
        if name not in self._asking:
            self._asking.add(name)
            self.output.line(event.at_ms, name, f"asks to be a member of the group {self.group}", "group", "JoinGroup")

    def _member_rejoined(self, event: events.MemberRejoined) -> None:
        heard = (
            "hears of it with its next heartbeat and joins again"
            if self._state == _PREPARING
            else "joins again of its own accord"
        )
        because = f": {self._names.friendly(event.reason)}" if event.reason else ""
        self.output.line(event.at_ms, self._names.of(event.member), heard + because, "heartbeat")

    # --- going

    def _member_removed(self, event: events.MemberRemoved) -> None:
        name = self._names.of(event.member)
        self._offers.pop(event.member, None)
        if isinstance(event.cause, TimerFired):
            self.output.line(event.at_ms, "coordinator", f"takes {name} out of the group: {event.reason}", "session")
        else:
            self.output.line(event.at_ms, name, "leaves the group", "LeaveGroup")

    def _leader_elected(self, event: events.LeaderElected) -> None:
        reason = self._names.friendly(event.reason)
        self.output.line(event.at_ms, "coordinator", f"makes {self._names.of(event.leader)} the leader: {reason}")

    # --- a rebalance

    def _rebalance_started(self, event: events.RebalanceStarted) -> None:
        self._state = _PREPARING
        if event.initial:
            what = f"begins the first rebalance, and waits {event.waits_ms} ms in case others come"
        else:
            because, _, _ = self._names.friendly(event.reason).partition(": ")  # the rest is in the line before
            what = f"begins a rebalance, because {because}"
        self.output.line(event.at_ms, "coordinator", what, "rebalance")

    def _generation_started(self, event: events.GenerationStarted) -> None:
        self._protocol = event.protocol
        size = counted(len(event.members), "member")
        what = f"has everybody together: generation {event.generation}, {size}. The vote on the protocol:"
        self.output.line(event.at_ms, "coordinator", what, "generation", "vote")
        offers = {self._names.of(member): self._offers.get(member, ()) for member in event.members}
        if all(offers.values()):
            cast = member_votes(offers)
            self.output.under(
                rows((ballot.member, f"wants {', '.join(ballot.offers)}", f"votes {ballot.vote}") for ballot in cast),
                " ".join(explain_vote(cast, event.protocol)),
            )
        leader = self._names.of(event.leader)
        self.output.line(
            event.at_ms, "coordinator", f"announces protocol {event.protocol} and leader {leader}", "leader"
        )

    def _assignment_received(self, event: events.AssignmentReceived) -> None:
        leader = self._names.of(event.leader)
        if event.owners is None:
            self.output.line(event.at_ms, leader, "brings an assignment that only its members can read", "SyncGroup")
            return
        owned = {
            self._names.of(member): sorted(number for topic, number in pairs if topic == self._topic)
            for member, pairs in event.owners.items()
        }
        shares = "; ".join(f"{', '.join(map(str, numbers)) or 'none'} to {name}" for name, numbers in owned.items())
        owners = {number: name for name, numbers in owned.items() for number in numbers}
        self.history.add(event.generation, self._protocol, owners)
        self.output.line(event.at_ms, leader, f"assigns partitions {shares}", "SyncGroup")

    def _state_changed(self, event: events.StateChanged) -> None:
        self._state = event.target
        if event.target == "Empty":
            self.output.line(event.at_ms, "coordinator", "has nobody left: the group is Empty. Its commits stay")
        if event.target != "Stable":
            return
        words = ("Stable", MOVED) if any(generation.moved for generation in self.history.generations) else ("Stable",)
        what = "stores the assignment and tells everybody. The group is Stable"
        self.output.line(event.at_ms, "coordinator", what, *words)
        self.output.show(self.history.table(self.output.console.width))

    # --- work

    def _offsets_committed(self, event: events.OffsetsCommitted) -> None:
        name = self._names.of(event.member)
        self._commits[name] += 1
        offsets = {number: offset for topic, number, offset in event.offsets if topic == self._topic}
        self._committed.setdefault(name, {}).update(offsets)
        if not self._has_seen_a_commit:
            self._has_seen_a_commit = True
            number, offset = next(iter(offsets.items()))
            place = f"{self._topic}-{number}@{offset}"
            what = f"commits for the first time. {place} means: the next record to read there is {offset}"
            self.output.line(event.at_ms, name, what, "commit")

    def _request_refused(self, event: events.RequestRefused) -> None:
        name = self._names.of(event.member) or self._names.asking(event)
        why = self._names.friendly(event.why)
        self.output.line(event.at_ms, "coordinator", f"refuses {event.api} of {name}: {event.error}, {why}")


_PREPARING = "PreparingRebalance"


class MemberVote(NamedTuple):
    """A member's protocols, the preferred one first, and its vote: the first of them that all members support."""

    member: str
    offers: tuple[str, ...]
    vote: str


def member_votes(offers: Mapping[str, Sequence[str]]) -> list[MemberVote]:
    """The votes of members with these protocols. Raises ValueError if no protocol is supported by all."""
    known_to_all = set.intersection(*(set(offered) for offered in offers.values())) if offers else set()
    if not known_to_all:
        raise ValueError("there is no protocol that all members know")
    return [
        MemberVote(member, tuple(offered), next(name for name in offered if name in known_to_all))
        for member, offered in offers.items()
    ]


def explain_vote(cast: Sequence[MemberVote], winner: str) -> list[str]:
    """Sentences that explain why ``winner`` was elected."""
    if len(cast) == 1:
        return [f"Nobody else is there, so {cast[0].member} gets what it wants most."]
    sentences = [
        f"{name} is out of the question: {listed(strangers)} {'does' if len(strangers) == 1 else 'do'} not know it."
        for name, strangers in _unknown(cast).items()
    ]
    votes: dict[str, int] = {}
    for ballot in cast:
        votes[ballot.vote] = votes.get(ballot.vote, 0) + 1
    most = max(votes.values())
    result = ", ".join(f"{name} {count}" for name, count in sorted(votes.items(), key=lambda pair: (-pair[1], pair[0])))
    if len(votes) == 1:
        known = set.intersection(*(set(ballot.offers) for ballot in cast))
        only = ", the only one that everybody knows" if len(known) == 1 else ""
        sentences.append(f"All {len(cast)} vote for {winner}{only}.")
    elif list(votes.values()).count(most) > 1:
        sentences.append(f"A tie ({result}): Kafka takes the one that its hash table has first, {winner}.")
    else:
        sentences.append(f"{winner} wins ({result}).")
    return sentences


def _unknown(cast: Sequence[MemberVote]) -> dict[str, list[str]]:
    """Protocol → the members that do not support it, for all protocols that a member prefers to its vote."""
    preferred = {name for ballot in cast for name in ballot.offers[: ballot.offers.index(ballot.vote)]}
    return {name: [ballot.member for ballot in cast if name not in ballot.offers] for name in sorted(preferred)}

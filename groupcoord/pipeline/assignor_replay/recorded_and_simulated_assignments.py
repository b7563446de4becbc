"""The two sources of a replayed group's assignments: simulated members with an assignor, or the recorded assignments of the
log.

Simulated members behave like Kafka's clients. From one generation to the next they carry over what their protocol allows
(KIP-429): with eager rebalancing the user data of the assignor, with cooperative rebalancing the owned partitions. A
member with a new member id remembers nothing, static or not. A cooperative member that has to revoke partitions rejoins at
once. Source: ``ConsumerCoordinator``.
"""

from bisect import bisect_right
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

from groupcoord.assignors import (
    Assignment,
    Assignor,
    GroupSubscription,
    RebalanceProtocol,
    Subscription,
    TopicPartition,
    as_leader,
    run_assignor,
)
from groupcoord.assignors.group_simulator import MOST_REBALANCES
from groupcoord.core.java_hash_order import compare_key
from groupcoord.pipeline.assignor_replay.assignor_choice import AssignorChoice

MOST_PARTITIONS = 1_000_000
"""A limit above what any cluster has. A commit may name any partition number, and an assignor must not get two billion."""
LATER = (1 << 63) - 1


class WhatIfError(Exception):
    """A generation cannot be replayed; the text says why."""


class MemberSnapshot(NamedTuple):
    """A member of one generation. ``who`` is its identity, which a static member keeps when its member id changes."""

    member_id: str
    who: str
    instance_id: str | None
    topics: tuple[str, ...] | None
    rack: str | None
    owned: Sequence[TopicPartition]
    assigned: list[TopicPartition] | None


@dataclass(frozen=True, slots=True)
class GroupRecord:
    """A record of the log with the members of the group.

    ``begins``: it is a new generation, not a further record of the one before. ``follows``: it is the second step of a
    cooperative rebalance, in which the same members with the same subscriptions rejoin because one had to revoke partitions.
    ``goes_on``: the next generation is such a second step, too, but members have changed.
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
        """The topics that any member subscribes to. Raises WhatIfError if that is unknown."""
        for person in self.people:
            if person.topics is None:
                raise WhatIfError(self.problem or f"what {person.member_id} wants is not known")
        return dict.fromkeys(topic for person in self.people for topic in person.topics or ())


RECORD_FIELDS = [field.name for field in fields(GroupRecord) if field.name != "people"]
"""The fields of GroupRecord that are columns of the same name in rows of ``what_if_tables.moments``."""


def group_record(row: Mapping[str, Any]) -> GroupRecord:
    """Make a GroupRecord from a row of ``what_if_tables.moments``."""
    return GroupRecord(
        **{name: row[name] for name in RECORD_FIELDS}, people=tuple([_person(one) for one in row["members"] or ()])
    )


def _person(member: Mapping[str, Any]) -> MemberSnapshot:
    topics, assigned = member["topics"], member["assigned"]
    return MemberSnapshot(
        member["member_id"],
        member["who"],
        member["instance_id"],
        None if topics is None else tuple(topics),
        member["rack"],
        _flat(member["owned"] or ()),
        None if assigned is None else _flat(assigned),
    )


def _flat(grouped: Iterable[Mapping[str, Any]]) -> list[TopicPartition]:
    return [(one["topic"], partition) for one in grouped for partition in one["partitions"]]


class PartitionCounts:
    """The number of partitions of each topic over time."""

    def __init__(self) -> None:
        self._since: dict[str, list[int]] = {}
        self._counts: dict[str, list[int]] = {}

    def add(self, topic: str, since: int, count: int) -> None:
        """Record that ``topic`` has ``count`` partitions from ``since`` on. Must be called in the order of time."""
        self._since.setdefault(topic, []).append(since)
        self._counts.setdefault(topic, []).append(count)

    def at(self, moment: int | None, wanted: Iterable[str]) -> dict[str, int]:
        """The topics of ``wanted`` that existed at ``moment``, and their numbers of partitions; if it is None, the latest
        numbers.

        Raises WhatIfError if there are more than MOST_PARTITIONS.
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


Claims = dict[str, Collection[TopicPartition]]
"""The partitions that each member, by member id, claims to own when it joins."""


class PlayedRebalance(NamedTuple):
    """A replayed rebalance: the partitions that members claimed to own, and the assignment of each of its steps."""

    claims: Claims
    rounds: list[Assignment]


class RecordedHistory:
    """The assignments of one group as recorded in the log. Methods must be called in the order of the log."""

    def __init__(self) -> None:
        self._had: Mapping[str, Sequence[TopicPartition]] = {}

    def claims(self, moment: GroupRecord) -> Claims:
        """The partitions that members claim to own when this rebalance begins, by their subscriptions in the log. Members of
        KIP-848 do not say so: they keep what they are not told to revoke."""
        if moment.modern:
            return {person.member_id: self._had.get(person.member_id, ()) for person in moment.people}
        return {person.member_id: person.owned for person in moment.people}

    def play(self, moment: GroupRecord, partitions: Mapping[str, int]) -> PlayedRebalance:  # noqa: ARG002 - the log knows
        """The rebalance that begins, as recorded. Raises WhatIfError if the log does not have its assignment."""
        return PlayedRebalance(self.claims(moment), self.follow(moment))

    def follow(self, moment: GroupRecord) -> list[Assignment]:
        """The recorded assignment of the second step."""
        self._had = moment.assignment
        return [moment.assignment]

    def update_members(self, moment: GroupRecord) -> None:
        """A further record of the same generation; nothing changes."""

    def everybody_left(self) -> None:
        """The group has no members any more; forget what they owned."""
        self._had = {}


@dataclass(slots=True)
class _Client:
    who: str
    assignor: Assignor
    owned: Sequence[TopicPartition] = ()
    generation: int | None = None


class SimulatedMembers:
    """The same group with simulated members that all use the assignor of ``choice``, with the highest rebalance protocol
    that it supports, as Kafka's clients do."""

    def __init__(self, choice: AssignorChoice) -> None:
        self._make = choice.make
        self._protocol = max(choice.make().protocols)
        self._clients: dict[str, _Client] = {}
        self._generation = 0

    def claims(self, moment: GroupRecord) -> Claims:
        """The partitions that members claim to own: cooperative ones what they own and still subscribe to, sorted as on the
        wire; eager ones nothing, because they revoke everything before they join."""
        self._clients = {person.member_id: self._client(person) for person in moment.people}
        if self._protocol is RebalanceProtocol.EAGER:
            return {person.member_id: () for person in moment.people}
        return {person.member_id: _still_owned(self._clients[person.member_id], person) for person in moment.people}

    def play(self, moment: GroupRecord, partitions: Mapping[str, int]) -> PlayedRebalance:
        """All members join and the leader assigns; this is repeated until no member has to revoke anything.

        If members of the real group changed before its second step, so they do here. Raises what the assignor raises.
        """
        claims = joined_with = self.claims(moment)
        rounds = [self._round(moment, joined_with, partitions)]
        while not moment.goes_on and _gave_up(joined_with, rounds[-1]) and len(rounds) < MOST_REBALANCES:
            joined_with = self.claims(moment)
            rounds.append(self._round(moment, joined_with, partitions))
        return PlayedRebalance(claims, rounds)

    def follow(self, moment: GroupRecord) -> list[Assignment]:
        """Nothing: ``play`` has already done all steps that this assignor needs."""
        self.update_members(moment)
        return []

    def update_members(self, moment: GroupRecord) -> None:
        """A static member that rejoined gets the assignment that it had, and its assignor is told so."""
        had = {client.who: client for client in self._clients.values()}
        for person in moment.people:
            if person.member_id not in self._clients and person.who in had:
                client = self._client(person)
                client.owned, client.generation = had[person.who].owned, had[person.who].generation
                client.assignor.on_assignment(client.owned, self._generation)
                self._clients[person.member_id] = client
        self._clients = {person.member_id: self._client(person) for person in moment.people}

    def everybody_left(self) -> None:
        """The group has no members any more; forget the state of their assignors."""
        self._clients = {}

    def _client(self, person: MemberSnapshot) -> _Client:
        return self._clients.get(person.member_id) or _Client(person.who, self._make())

    def _round(self, moment: GroupRecord, claims: Claims, partitions: Mapping[str, int]) -> Assignment:
        subscriptions = {
            person.member_id: self._subscription(person, claims[person.member_id]) for person in moment.people
        }
        group = as_leader(GroupSubscription(subscriptions=subscriptions, partitions=partitions))
        leader = self._clients.get(moment.leader or "") or next(iter(self._clients.values()))
        answer = run_assignor(leader.assignor, group, self._protocol)
        self._generation += 1
        for member_id, client in self._clients.items():
            client.owned, client.generation = answer[member_id], self._generation
            client.assignor.on_assignment(answer[member_id], self._generation)
        return answer

    def _subscription(self, person: MemberSnapshot, owned: Collection[TopicPartition]) -> Subscription:
        client, topics = self._clients[person.member_id], person.topics or ()
        return Subscription(
            topics=topics,
            user_data=client.assignor.subscription_user_data(topics),
            owned_partitions=tuple(owned),
            generation_id=client.generation,
            rack_id=person.rack,
            instance_id=person.instance_id,
        )


def _gave_up(claims: Claims, answer: Assignment) -> bool:
    return any(not frozenset(owned).issubset(answer[member_id]) for member_id, owned in claims.items() if owned)


def _still_owned(client: _Client, person: MemberSnapshot) -> list[TopicPartition]:
    """What the member still owns of the topics that it subscribes to; it revokes the others before it joins."""
    wanted = frozenset(person.topics or ())
    return sorted(
        (partition for partition in client.owned if partition[0] in wanted),
        key=lambda partition: (compare_key(partition[0]), partition[1]),
    )

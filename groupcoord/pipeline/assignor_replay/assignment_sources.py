"""How a replayed group gets its assignments: from an assignor with members like real clients, or from the log.

A client carries over from generation to generation what its protocol lets it (KIP-429): an eager one what its assignor puts
into user data, a cooperative one what it owns. A member with a new member id remembers nothing, static or not. A cooperative
client that has to give something up joins again at once. Source: ``ConsumerCoordinator``.
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


RECORD_FIELDS = [field.name for field in fields(GroupRecord) if field.name != "people"]
"""The fields that are columns of the same name in the rows that ``what_if_tables`` makes."""


def group_record(row: Mapping[str, Any]) -> GroupRecord:
    """The record in a row that ``what_if_tables`` makes: the fields as columns of the same names, and ``members``."""
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


Claims = dict[str, Collection[TopicPartition]]
"""Member id → what the member said it still owned when it joined."""


class PlayedRebalance(NamedTuple):
    """One rebalance: what members said that they still owned, and the assignment of each of its steps."""

    claims: Claims
    rounds: list[Assignment]


class RecordedHistory:
    """One group as it really was; moments come in the order of the log."""

    def __init__(self) -> None:
        self._had: Mapping[str, Sequence[TopicPartition]] = {}

    def claims(self, moment: GroupRecord) -> Claims:
        """What members say that they still own as this rebalance begins, by their subscriptions in the log. Members of KIP-848
        need not say so: they keep what they are not told to give up."""
        if moment.modern:
            return {person.member_id: self._had.get(person.member_id, ()) for person in moment.people}
        return {person.member_id: person.owned for person in moment.people}

    def play(self, moment: GroupRecord, partitions: Mapping[str, int]) -> PlayedRebalance:  # noqa: ARG002 - the log knows
        """All of a rebalance that begins, as the log says. Raises WhatIfError if it does not."""
        return PlayedRebalance(self.claims(moment), self.follow(moment))

    def follow(self, moment: GroupRecord) -> list[Assignment]:
        """The assignments of a second step that the log has."""
        self._had = moment.assignment
        return [moment.assignment]

    def refresh(self, moment: GroupRecord) -> None:
        """A further record of the same generation says nothing new."""

    def everybody_left(self) -> None:
        """The group has no members any more: what they owned is gone, too."""
        self._had = {}


@dataclass(slots=True)
class _Client:
    who: str
    assignor: Assignor
    owned: Sequence[TopicPartition] = ()
    generation: int | None = None


class SimulatedMembers:
    """The same group, if all members had the assignor of ``choice``, under the highest protocol that it supports, as Kafka's
    clients do."""

    def __init__(self, choice: AssignorChoice) -> None:
        self._make = choice.make
        self._protocol = max(choice.make().protocols)
        self._clients: dict[str, _Client] = {}
        self._generation = 0

    def claims(self, moment: GroupRecord) -> Claims:
        """Cooperative members say what they own and still want, sorted as on the wire; eager ones have given it up."""
        self._clients = {person.member_id: self._client(person) for person in moment.people}
        if self._protocol is RebalanceProtocol.EAGER:
            return {person.member_id: () for person in moment.people}
        return {person.member_id: _still_owned(self._clients[person.member_id], person) for person in moment.people}

    def play(self, moment: GroupRecord, partitions: Mapping[str, int]) -> PlayedRebalance:
        """All join, the leader assigns, and so on until no member has to give anything up.

        If the real group went on to such a second step with other members, so does this one. Raises what the assignor raises.
        """
        claims = joined_with = self.claims(moment)
        rounds = [self._round(moment, joined_with, partitions)]
        while not moment.goes_on and _gave_up(joined_with, rounds[-1]) and len(rounds) < MOST_REBALANCES:
            joined_with = self.claims(moment)
            rounds.append(self._round(moment, joined_with, partitions))
        return PlayedRebalance(claims, rounds)

    def follow(self, moment: GroupRecord) -> list[Assignment]:
        """Nothing: what this assignor needs a second step for has been done in the first's row."""
        self.refresh(moment)
        return []

    def refresh(self, moment: GroupRecord) -> None:
        """A static member that comes back gets what it had, and its assignor is told so."""
        had = {client.who: client for client in self._clients.values()}
        for person in moment.people:
            if person.member_id not in self._clients and person.who in had:
                client = self._client(person)
                client.owned, client.generation = had[person.who].owned, had[person.who].generation
                client.assignor.on_assignment(client.owned, self._generation)
                self._clients[person.member_id] = client
        self._clients = {person.member_id: self._client(person) for person in moment.people}

    def everybody_left(self) -> None:
        """What their assignors remember is gone, too."""
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
    """Who does not want a topic any more gives it up before it joins."""
    wanted = frozenset(person.topics or ())
    return sorted(
        (partition for partition in client.owned if partition[0] in wanted),
        key=lambda partition: (compare_key(partition[0]), partition[1]),
    )

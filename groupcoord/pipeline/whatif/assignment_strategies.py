"""How a replayed group gets its assignments: from an assignor with members like real clients, or from the log.

A client carries over from generation to generation what its protocol lets it (KIP-429): an eager one what its assignor puts
into user data, a cooperative one what it owns. A member with a new member id remembers nothing, static or not. A cooperative
client that has to give something up joins again at once. Source: ``ConsumerCoordinator``.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple, Protocol

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
from groupcoord.core.java import compare_key
from groupcoord.pipeline.whatif.assignor_choice import AssignorChoice
from groupcoord.pipeline.whatif.group_history import GroupRecord, MemberSnapshot

Claims = dict[str, Collection[TopicPartition]]
"""Member id → what the member said it still owned when it joined."""


class PlayedRebalance(NamedTuple):
    """One rebalance: what members said that they still owned, and the assignment of each of its steps."""

    claims: Claims
    rounds: list[Assignment]


class AssignmentStrategy(Protocol):
    """One group under one regime; moments come in the order of the log."""

    def claims(self, moment: GroupRecord) -> Claims:
        """What members say that they still own as this rebalance begins."""
        ...

    def play(self, moment: GroupRecord, partitions: Mapping[str, int]) -> PlayedRebalance:
        """All of a rebalance that begins. Raises whatever goes wrong."""
        ...

    def follow(self, moment: GroupRecord) -> list[Assignment]:
        """The assignments of a second step that the log has: what follows from the first need not follow here."""
        ...

    def refresh(self, moment: GroupRecord) -> None:
        """A further record of the same generation: a static member has come back under another member id."""
        ...

    def everybody_left(self) -> None:
        """The group has no members any more: all that they remembered is gone."""
        ...


class RecordedHistory:
    """The real history."""

    def __init__(self) -> None:
        self._had: Mapping[str, Sequence[TopicPartition]] = {}

    def claims(self, moment: GroupRecord) -> Claims:
        """As subscriptions in the log say. Members of KIP-848 need not say so: they keep what they are not told to give up."""
        if moment.modern:
            return {person.member_id: self._had.get(person.member_id, ()) for person in moment.people}
        return {person.member_id: person.owned for person in moment.people}

    def play(self, moment: GroupRecord, partitions: Mapping[str, int]) -> PlayedRebalance:  # noqa: ARG002 - the log knows
        """As the log says."""
        return PlayedRebalance(self.claims(moment), self.follow(moment))

    def follow(self, moment: GroupRecord) -> list[Assignment]:
        """As the log says, too."""
        self._had = moment.assignment
        return [moment.assignment]

    def refresh(self, moment: GroupRecord) -> None:
        """Nothing that the log does not say."""

    def everybody_left(self) -> None:
        """What they owned is gone, too."""
        self._had = {}


class _Client:
    __slots__ = ("assignor", "generation", "owned", "who")

    def __init__(self, who: str, assignor: Assignor) -> None:
        self.who = who
        self.assignor = assignor
        self.owned: Sequence[TopicPartition] = ()
        self.generation: int | None = None


class SimulatedMembers:
    """Members that all have the assignor of ``choice``, under the highest protocol that it supports, as Kafka's clients do."""

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

        If the real group went on to such a second step with other members, so does this one.
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

"""Members and a real coordinator without I/O: the clock advances only when nothing else can happen.

The next action is random. Whatever happens, no partition may have two owners, and when the faults are over every partition must
have one.
"""

import random
import uuid
from collections import Counter, deque
from typing import Any, NamedTuple

from groupcoord.assignors import ASSIGNORS, TopicPartition, run_assignor
from groupcoord.client.client_errors import DisconnectedError
from groupcoord.client.member import actions as a
from groupcoord.client.member.classic_membership import Membership
from groupcoord.client.member.context import MemberState
from groupcoord.client.member.member_events import MemberEvent, PolledTooLate
from groupcoord.client.member.member_settings import MemberSettings
from groupcoord.client.member.metadata_and_commit_requests import MetadataSnapshot
from groupcoord.cluster.cluster_core import ClusterCore
from groupcoord.config.broker_config import load
from groupcoord.core.effects import Call, Effect, EmitEvent, Reply
from groupcoord.protocol.apis import APIS

BOTH_ASSIGNORS = ("cooperative-sticky", "range")
COOPERATIVE = ("cooperative-sticky",)
_APIS = {api.request: api for api in APIS.values()}


class Chance:
    """Ids that only count."""

    def __init__(self) -> None:
        self._drawn = 0

    def uuid(self) -> uuid.UUID:
        self._drawn += 1
        return uuid.UUID(int=self._drawn << 64 | 1)

    def session_id(self) -> int:
        self._drawn += 1
        return self._drawn

    def next_int(self, bound: int) -> int:
        self._drawn += 1
        return self._drawn % bound


class Wire(NamedTuple):
    """A connection; the broker serves its requests one by one."""

    number: int
    waiting: "deque[a.SendRequest]"
    served: "list[a.SendRequest]"


class Somebody:
    """A member with its user and its two connections."""

    def __init__(self, world: "World", name: str, assignors: tuple[str, ...], **settings: Any) -> None:
        self.world = world
        self.name = name
        made = [ASSIGNORS.create(assignor) for assignor in assignors]
        shape = {"group_id": "g", "session_timeout_ms": 6_000, "heartbeat_interval_ms": 1_000, **settings}
        self.membership = Membership(MemberSettings(**shape), made, chance=lambda: 0.5)
        self.wires = {parks: world.new_wire() for parks in (False, True)}
        self.chores: list[Any] = []
        """What it has asked for besides requests: a commit, a look at the topics, an assignor, a callback."""
        self.present = False
        self.gone = False
        self.too_late = False
        self.failures: list[Exception] = []
        self.events: list[MemberEvent] = []
        self.rebalances_told = 0

    @property
    def owned(self) -> frozenset[TopicPartition]:
        """What it believes to own; a user that was away for too long knows that it does not."""
        return frozenset() if self.gone or self.too_late else self.membership.owned

    def hears(self, actions: list[a.Action]) -> None:
        for action in actions:
            match action:
                case a.SendRequest():
                    self.wires[action.parks].waiting.append(action)
                case a.CommitOffsets() | a.FetchMetadata() | a.RunAssignor() | a.InvokeCallback():
                    self.chores.append(action)
                case a.CancelAction():
                    self.chores = [chore for chore in self.chores if chore.ticket != action.ticket]
                    for parks, wire in self.wires.items():
                        if action.ticket in [send.ticket for send in (*wire.waiting, *wire.served)]:
                            self.loses_wire(parks)
                case a.Disconnect():
                    self.loses_wire(False)
                    self.loses_wire(True)
                case a.RaiseError():
                    self.failures.append(action.error)
                case a.MembershipEnded():
                    self.gone = True
                case EmitEvent(event=PolledTooLate()):
                    self.too_late = True
                case EmitEvent():
                    assert isinstance(action.event, MemberEvent)
                    self.events.append(action.event)

    def loses_wire(self, parks: bool) -> None:
        """A connection breaks: whatever was on it is not answered."""
        wire, self.wires[parks] = self.wires[parks], self.world.new_wire()
        for send in (*wire.served, *wire.waiting):
            self.hears(self.membership.fail(send.ticket, DisconnectedError("broken"), self.world.now_ms))

    def polls(self) -> None:
        self.present, self.too_late = True, False
        self.hears(self.membership.polled(self.world.now_ms))

    def goes_away(self) -> None:
        if not any(
            isinstance(chore, a.InvokeCallback) for chore in self.chores
        ):  # a poll returns only when no callback runs
            self.present = False
            self.hears(self.membership.poll_ended(self.world.now_ms))

    def does(self, chore: Any) -> None:
        """One of its chores is done."""
        self.chores.remove(chore)
        result: Any = None
        if isinstance(chore, a.FetchMetadata):
            result = self.world.topics().of(chore.topics)
        elif isinstance(chore, a.RunAssignor):
            result = run_assignor(chore.assignor, chore.group, chore.protocol)
        self.hears(self.membership.complete(chore.ticket, result, self.world.now_ms))


class World:
    """One broker, any number of members."""

    def __init__(self, chance: random.Random, partitions: int) -> None:
        self.chance = chance
        self.now_ms = 0
        self.node = ClusterCore(load([], dev=True), random=Chance(), now_ms=0)
        self.node.create_topic("t", partitions, 0)
        self.everything = frozenset(("t", number) for number in range(partitions))
        self.members: list[Somebody] = []
        self._wires = 0
        self._answers: list[tuple[int, Any]] = []
        self.largest_rebalance = 0

    def new_wire(self) -> Wire:
        self._wires += 1
        return Wire(self._wires, deque(), [])

    def topics(self) -> MetadataSnapshot:
        return MetadataSnapshot(
            partitions={topic.name: len(topic.partitions) for topic in self.node.broker.topics.all()}
        )

    def joins(self, assignors: tuple[str, ...], **settings: Any) -> Somebody:
        somebody = Somebody(self, f"member-{len(self.members)}", assignors, **settings)
        self.members.append(somebody)
        somebody.polls()
        somebody.hears(somebody.membership.subscribe(["t"], self.now_ms))
        return somebody

    @property
    def living(self) -> list[Somebody]:
        return [member for member in self.members if not member.gone]

    # What can happen.

    def step(self) -> bool:
        """One of the things that can happen now happens; was there any?"""
        possible: list[tuple[Any, ...]] = []
        for member in self.living:
            possible += [(member.does, chore) for chore in member.chores]
            possible += [
                (self._serve, member, parks) for parks, wire in member.wires.items() if wire.waiting and not wire.served
            ]
        possible += [(self._deliver, answer) for answer in self._answers]
        if not possible:
            return False
        what, *arguments = self.chance.choice(possible)
        what(*arguments)
        self.check()
        return True

    def passes(self, ms: int) -> None:
        """Time passes, and everything that can happen meanwhile happens."""
        end_ms = self.now_ms + ms
        while True:
            while self.step():
                pass
            deadlines = [member.membership.next_deadline() for member in self.living]
            due = [at_ms for at_ms in (*deadlines, self.node.next_deadline()) if at_ms is not None and at_ms <= end_ms]
            if not due:
                self.now_ms = end_ms
                return
            self.now_ms = max(self.now_ms, *due[:1], min(due)) if min(due) > self.now_ms else self.now_ms
            self._carry_out(self.node.expire(self.now_ms))
            for member in self.living:
                at_ms = member.membership.next_deadline()
                if at_ms is not None and at_ms <= self.now_ms:
                    member.hears(member.membership.expire(self.now_ms))
            self.check()

    def _serve(self, member: Somebody, parks: bool) -> None:
        wire = member.wires[parks]
        send = wire.waiting.popleft()
        wire.served.append(send)
        api = _APIS[type(send.request)]
        call = Call(wire.number, send.ticket, api, api.max_version, member.name, "/127.0.0.1")
        self._carry_out(self.node.handle(call, send.request, self.now_ms))

    def _carry_out(self, effects: list[Effect]) -> None:
        self._answers += [
            (effect.call.connection_id, effect.response) for effect in effects if isinstance(effect, Reply)
        ]

    def _deliver(self, answer: tuple[int, Any]) -> None:
        self._answers.remove(answer)
        number, response = answer
        for member in self.living:
            for wire in member.wires.values():
                if wire.number == number:
                    send = wire.served.pop()
                    member.hears(member.membership.complete(send.ticket, response, self.now_ms))
                    return

    # What must be true.

    def check(self) -> None:
        """No partition belongs to two."""
        owners = Counter(partition for member in self.living for partition in member.owned)
        assert not [partition for partition, count in owners.items() if count > 1], self.members

    def settles(self) -> None:
        """Everybody polls and nothing else happens: then everything belongs to somebody, and all know the same generation."""
        for member in self.living:
            member.polls()
        self.passes(60_000)
        assert not [member.failures for member in self.members if member.failures]
        if self.living:
            assert frozenset().union(*(member.owned for member in self.living)) == self.everything
            assert {member.membership.state for member in self.living} == {MemberState.STABLE}
            assert len({member.membership.generation.generation_id for member in self.living}) == 1
            shares = [len(member.owned) for member in self.living]
            assert max(shares) - min(shares) <= 1

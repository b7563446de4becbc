"""Generates the documentation's example of a group's log: a small story, played on the coordinator."""

import itertools
import re
import uuid
from collections.abc import Iterator
from typing import Any

from groupcoord.cluster.cluster_core import ClusterCore
from groupcoord.cluster.layer import ServedCluster
from groupcoord.config.broker_config import load
from groupcoord.core.effects import Call, Effect, EmitEvent, Reply
from groupcoord.core.events import Event
from groupcoord.protocol.apis import APIS, ApiKey
from groupcoord.protocol.apis.join_group import JoinGroupRequestProtocol
from groupcoord.protocol.apis.leave_group import MemberIdentity
from groupcoord.protocol.apis.sync_group import SyncGroupRequestAssignment
from groupcoord.protocol.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
    write_assignment,
    write_subscription,
)
from groupcoord.protocol.messages import HeartbeatRequest, JoinGroupRequest, LeaveGroupRequest, SyncGroupRequest


class _Counting:
    """Ids that are easy to read."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)

    def uuid(self) -> uuid.UUID:
        return uuid.UUID(int=next(self._numbers))

    def session_id(self) -> int:
        return next(self._numbers)

    def next_int(self, bound: int) -> int:
        return next(self._numbers) % bound


class Teller:
    """Sends requests at chosen moments and keeps what the log says of what happens."""

    def __init__(self) -> None:
        self.now_ms = 0
        node = ClusterCore(load(dev=True), random=_Counting(), now_ms=0)
        node.create_topic("orders", 6, 0)
        self.node: ServedCluster = node
        self.lines: list[str] = []

    def ask(self, client: str, key: ApiKey, request: Any) -> list[Any]:
        """Let ``client`` send ``request``; returns the answers that it brings about."""
        call = Call(1, 1, APIS[key], APIS[key].max_version, client, "/127.0.0.1")
        return self.tell(self.node.handle(call, request, self.now_ms))

    def wait(self, ms: int) -> list[Any]:
        """Let time pass, timer by timer."""
        until = self.now_ms + ms
        answers: list[Any] = []
        while (due := self.node.next_deadline()) is not None and due <= until:
            self.now_ms = max(self.now_ms, due)
            answers += self.tell(self.node.expire(self.now_ms))
        self.now_ms = until
        return answers

    def tell(self, effects: list[Effect]) -> list[Any]:
        """Keep what happened; returns the answers."""
        self.lines += [_line(effect.event) for effect in effects if isinstance(effect, EmitEvent)]
        return [effect.response for effect in effects if isinstance(effect, Reply)]


def _line(event: Event) -> str:
    """As ``groupcoord serve`` logs it, with seconds since the start for the time of day and short ids."""
    text = re.sub(r"-00000000-0000-0000-0000-0+([1-9a-f][0-9a-f]*)", r"-\1", event.text())
    return f"{event.at_ms / 1000:.3f}  {text}  ({event.cause})"


def tell() -> Iterator[str]:
    """The log of: alice joins and works, bob joins too, alice leaves."""
    teller = Teller()
    alice = enter(teller, "alice")
    (first,) = teller.wait(1)
    sync(teller, "alice", first, {alice: range(6)})
    teller.wait(3000)
    bob = enter(teller, "bob")
    teller.ask("alice", ApiKey.HEARTBEAT, HeartbeatRequest(group_id="baristas", generation_id=1, member_id=alice))
    joined = teller.ask("alice", ApiKey.JOIN_GROUP, join(alice, "the group is rebalancing"))
    for answer in joined:
        client = "alice" if answer.member_id == alice else "bob"
        sync(teller, client, answer, {alice: range(3), bob: range(3, 6)} if answer.leader == answer.member_id else {})
    teller.wait(2000)
    leaving = LeaveGroupRequest(group_id="baristas", members=(MemberIdentity(member_id=alice, reason="closing time"),))
    teller.ask("alice", ApiKey.LEAVE_GROUP, leaving)
    yield from teller.lines


def enter(teller: Teller, client: str) -> str:
    """The two-step join of a newcomer; returns its member id."""
    (answer,) = teller.ask(client, ApiKey.JOIN_GROUP, join("", "a new consumer"))
    member_id: str = answer.member_id
    teller.ask(client, ApiKey.JOIN_GROUP, join(member_id, "a new consumer"))
    return member_id


def join(member_id: str, reason: str) -> JoinGroupRequest:
    """A request to be in the group."""
    offer = JoinGroupRequestProtocol(
        name="range", metadata=write_subscription(ConsumerProtocolSubscription(topics=("orders",)))
    )
    return JoinGroupRequest(
        group_id="baristas",
        session_timeout_ms=45_000,
        rebalance_timeout_ms=300_000,
        member_id=member_id,
        protocol_type="consumer",
        protocols=(offer,),
        reason=reason,
    )


def sync(teller: Teller, client: str, joined: Any, shares: dict[str, range]) -> None:
    """What ``client`` does after it ``joined``; the leader says the ``shares`` of all."""
    assignments = tuple(
        SyncGroupRequestAssignment(
            member_id=member_id,
            assignment=write_assignment(
                ConsumerProtocolAssignment(
                    assigned_partitions=(TopicPartition(topic="orders", partitions=tuple(share)),)
                )
            ),
        )
        for member_id, share in shares.items()
    )
    request = SyncGroupRequest(
        group_id="baristas",
        generation_id=joined.generation_id,
        member_id=joined.member_id,
        protocol_type="consumer",
        protocol_name="range",
        assignments=assignments,
    )
    teller.ask(client, ApiKey.SYNC_GROUP, request)

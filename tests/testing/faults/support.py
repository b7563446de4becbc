"""A broker with a fault layer, on a manual clock and without sockets. The effects of a request are kept in its ``Asking``."""

import itertools
import uuid
from functools import cache
from typing import Any, TypeVar

from groupcoord.cluster.cluster_core import ClusterCore
from groupcoord.config.broker_config import load
from groupcoord.core.effects import Call, CloseConnection, Effect, EmitEvent, NoReply, RawReply, Reply
from groupcoord.core.events import Event
from groupcoord.protocol import messages as m
from groupcoord.protocol.apis import APIS, Api, ApiKey
from groupcoord.protocol.apis.join_group import JoinGroupRequestProtocol
from groupcoord.protocol.apis.leave_group import MemberIdentity
from groupcoord.protocol.apis.offset_commit import OffsetCommitRequestPartition, OffsetCommitRequestTopic
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.framing import parse_request
from groupcoord.testing.faults import FaultLayer, Faults, TopicResolver
from tests.protocol.error_samples import samples

E = TypeVar("E", bound=Event)

ApiVersions = APIS[ApiKey.API_VERSIONS]
Fetch = APIS[ApiKey.FETCH]
FindCoordinator = APIS[ApiKey.FIND_COORDINATOR]
Heartbeat = APIS[ApiKey.HEARTBEAT]
JoinGroup = APIS[ApiKey.JOIN_GROUP]
LeaveGroup = APIS[ApiKey.LEAVE_GROUP]
ListGroups = APIS[ApiKey.LIST_GROUPS]
Metadata = APIS[ApiKey.METADATA]
OffsetCommit = APIS[ApiKey.OFFSET_COMMIT]
OffsetFetch = APIS[ApiKey.OFFSET_FETCH]
Produce = APIS[ApiKey.PRODUCE]
SyncGroup = APIS[ApiKey.SYNC_GROUP]


class Counting:
    """Ids by counting."""

    def __init__(self) -> None:
        self._next = itertools.count(100)

    def uuid(self) -> uuid.UUID:
        return uuid.UUID(int=next(self._next))

    def session_id(self) -> int:
        return next(self._next)

    def next_int(self, bound: int) -> int:
        return 0


class Asking:
    """One request and what it came to."""

    def __init__(self, call: Call) -> None:
        self.call = call
        self.ends: list[Effect] = []

    @property
    def is_open(self) -> bool:
        return not self.ends

    @property
    def answer(self) -> Any:
        """The one answer."""
        (reply,) = self.ends
        assert isinstance(reply, Reply)
        return reply.response

    @property
    def error(self) -> ErrorCode:
        return ErrorCode(self.answer.error_code)


class World:
    """A node with the topic ``orders`` (3 partitions), its faults, and a clock that only moves when told."""

    def __init__(self, **config: object) -> None:
        self.now = 1_000
        items = [f"{name.replace('_', '.')}={value}" for name, value in config.items()]
        self.node = ClusterCore(load(items, dev=True), random=Counting(), now_ms=self.now)
        self.node.create_topic("orders", 3, self.now)
        self.faults = Faults(now_ms=lambda: self.now)
        self.when = self.faults.when
        self.faulty: FaultLayer = self.faults.layer(self.node, topics=TopicResolver.of(self.node))
        self.faulty.execute_effects = self.execute_effects
        self.events: list[Event] = []
        self._asked: dict[tuple[int, int], Asking] = {}
        self._connections = itertools.count(1)

    def ask(
        self, api: Api, request: Any, *, client_id: str | None = "c", version: int | None = None, connection: int = 0
    ) -> Asking:
        """Send ``request``, on a connection of its own unless told."""
        number = connection or next(self._connections)
        call = Call(
            number, len(self._asked), api, api.max_version if version is None else version, client_id, "/127.0.0.1"
        )
        asking = self._asked[call.connection_id, call.correlation_id] = Asking(call)
        self.execute_effects(self.faulty.handle(call, request, self.now))
        return asking

    def execute_effects(self, effects: list[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, EmitEvent):
                self.events.append(effect.event)
            elif isinstance(effect, Reply | RawReply | NoReply | CloseConnection):
                asking = self._asked.get((effect.call.connection_id, effect.call.correlation_id))
                if asking is not None:
                    asking.ends.append(effect)

    def advance(self, ms: int) -> None:
        """Let ``ms`` pass; what is due on the way happens at its moment."""
        end = self.now + ms
        while (due := self.faulty.next_deadline()) is not None and due <= end:
            self.now = max(self.now, due)
            self.execute_effects(self.faulty.expire(self.now))
        self.now = end

    def told(self, kind: type[E]) -> list[E]:
        """The events of that kind so far."""
        return [event for event in self.events if isinstance(event, kind)]

    # A group, in as few words as possible.

    def join(self, member: str = "", **fields: Any) -> Asking:
        return self.ask(JoinGroup, join(member, **fields))

    def stable(self, group: str = "app") -> str:
        """A group of one member that is stable; returns its member id."""
        member = str(self.join(group=group).answer.member_id)
        joined = self.join(member, group=group)
        self.advance(1)
        assert joined.error == ErrorCode.NONE
        synced = self.ask(SyncGroup, sync(member, joined.answer.generation_id, group))
        assert synced.error == ErrorCode.NONE
        return member

    def heartbeat(self, member: str = "m-1", group: str = "app", generation: int = 1, **options: Any) -> Asking:
        return self.ask(Heartbeat, heartbeat(member, group, generation), **options)

    def commit(self, offset: int = 5, topic: str = "orders", group: str = "app", **options: Any) -> Asking:
        return self.ask(OffsetCommit, commit(offset, topic, group), version=9, **options)


def heartbeat(member: str = "m-1", group: str = "app", generation: int = 1) -> m.HeartbeatRequest:
    return m.HeartbeatRequest(group_id=group, generation_id=generation, member_id=member)


def join(member: str = "", *, group: str = "app", instance: str | None = None) -> m.JoinGroupRequest:
    return m.JoinGroupRequest(
        group_id=group,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=20_000,
        member_id=member,
        group_instance_id=instance,
        protocol_type="consumer",
        protocols=(JoinGroupRequestProtocol(name="range", metadata=b""),),
    )


def sync(member: str, generation: int, group: str = "app") -> m.SyncGroupRequest:
    return m.SyncGroupRequest(
        group_id=group, generation_id=generation, member_id=member, protocol_type="consumer", protocol_name="range"
    )


def leave(*members: str, instance: str | None = None) -> m.LeaveGroupRequest:
    identities = tuple(MemberIdentity(member_id=member, group_instance_id=instance) for member in members)
    return m.LeaveGroupRequest(group_id="app", members=identities)


def commit(offset: int = 5, topic: str = "orders", group: str = "app") -> m.OffsetCommitRequest:
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset, committed_metadata=None)
    topics = (OffsetCommitRequestTopic(name=topic, partitions=(partition,)),)
    return m.OffsetCommitRequest(group_id=group, member_id="", topics=topics)


def produce(acks: int) -> m.ProduceRequest:
    return m.ProduceRequest(acks=acks, timeout_ms=1_000, topic_data=())


@cache
def requests_of_every_version() -> tuple[tuple[Api, int, Any], ...]:
    """Every API at every version it is served at, with a request or several."""
    return tuple(map(_request_of, samples()))


def _request_of(line: str) -> tuple[Api, int, Any]:
    key, version, _, body = line.split()
    api = APIS[int(key)]
    header = int(key).to_bytes(2) + int(version).to_bytes(2) + b"\0\0\0\7\xff\xff"
    tags = b"\0" * api.request_codec(int(version)).flexible
    return api, int(version), parse_request(header + tags + bytes.fromhex(body.removeprefix("-"))).message

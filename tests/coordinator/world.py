"""World, a group coordinator for unit tests, driven by protocol messages: no sockets, no sleeping, no randomness.

A ``World`` owns a coordinator, a clock that only moves when told, some topics, and a log that stores appends at once unless
it is told to hold them. Members are objects with verbs. Requests and answers go through the bytes of their version, so
``answer`` is what a client of that version reads. After every step the invariants of invariants.py are checked.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, TypeVar
from uuid import UUID

from groupcoord.coordinator.classic.classic_group import ClassicGroup
from groupcoord.coordinator.group import ConsumerGroupConfig
from groupcoord.coordinator.group_coordinator import GroupCoordinator
from groupcoord.coordinator.group_coordinator_shard import GroupCoordinatorShard
from groupcoord.coordinator.runtime.shard_loader import ShardLoader
from groupcoord.core.effect_collector import HandlerContext
from groupcoord.core.effects import NO_CONNECTION, Append, Call, Effect, EmitEvent, Reply
from groupcoord.core.events import AdminAction, Event
from groupcoord.core.timers import TimerKey
from groupcoord.protocol import consumer_protocol
from groupcoord.protocol import messages as m
from groupcoord.protocol.apis import APIS, ApiKey
from groupcoord.protocol.apis.join_group import JoinGroupRequestProtocol
from groupcoord.protocol.apis.leave_group import MemberIdentity
from groupcoord.protocol.apis.offset_commit import OffsetCommitRequestPartition, OffsetCommitRequestTopic
from groupcoord.protocol.apis.offset_fetch import (
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from groupcoord.protocol.apis.sync_group import SyncGroupRequestAssignment
from groupcoord.protocol.batches.key_value_reader import OffsetKeyValue
from groupcoord.protocol.coordinator_records.group_records import (
    GroupMetadataKey,
    OffsetCommitKey,
    UnknownKey,
    read_key,
    read_value,
)
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.framing import encode_request, encode_response, parse_request, parse_response
from tests.coordinator.invariants import Watch
from tests.coordinator.stored_log import log_of, read_into
from tests.coordinator.topics import Topics, broker_config, kafkas_defaults

E = TypeVar("E", bound=Event)

GROUP = "g"
INITIAL_DELAY_MS = 3_000
NEW_MEMBER_MS = 300_000


def subscription(*topics: str) -> bytes:
    """What a consumer sends as the metadata of an assignor."""
    return consumer_protocol.write_subscription(consumer_protocol.ConsumerProtocolSubscription(topics=topics))


def assignment(topic: str, *partitions: int) -> bytes:
    """What a leader gives a consumer."""
    assigned = (consumer_protocol.TopicPartition(topic=topic, partitions=partitions),)
    return consumer_protocol.write_assignment(
        consumer_protocol.ConsumerProtocolAssignment(assigned_partitions=assigned)
    )


@dataclass(eq=False)
class Asked:
    """One request and what became of it."""

    call: Call
    request: Any
    asker: "Member | None" = None
    replies: list[Any] = field(default_factory=list)

    @property
    def parked(self) -> bool:
        """Is there no answer yet?"""
        return not self.replies

    @property
    def raw(self) -> Any:
        """The answer as the coordinator gave it."""
        assert self.replies, f"{self.call.api.name} is not answered"
        return self.replies[0]

    @property
    def answer(self) -> Any:
        """The answer as a client of the version of the request reads it."""
        api, version = self.call.api, self.call.version
        frame = encode_response(api, version, self.call.correlation_id, self.raw)
        correlation_id, message = parse_response(api, version, frame[4:])
        assert correlation_id == self.call.correlation_id
        return message

    @property
    def error(self) -> ErrorCode:
        """The error at the top of the answer."""
        return ErrorCode(self.answer.error_code)

    @property
    def partition_errors(self) -> dict[tuple[str, int], ErrorCode]:
        """(topic, partition) → error of a commit or a deletion of offsets."""
        return {
            (topic.name, partition.partition_index): ErrorCode(partition.error_code)
            for topic in self.answer.topics
            for partition in topic.partitions
        }


@dataclass(frozen=True)
class Stored:
    """One record of ``__consumer_offsets``, decoded."""

    partition: int
    key: Any
    value: Any


class World:
    """See the module. ``config`` overrides Kafka's defaults; ``topics`` exist from the start; ids are 1, 2 … unless told."""

    def __init__(
        self,
        *,
        topics: Mapping[str, int] | None = None,
        now_ms: int = 0,
        new_uuid: Callable[[], str] | None = None,
        config_of: Callable[[str], ConsumerGroupConfig] | None = None,
        **config: Any,
    ) -> None:
        self.now_ms = now_ms
        self.topics = Topics({"t": 3, "u": 3} if topics is None else topics)
        self.config = broker_config(**config)
        ids = count(1)
        self.coordinator = GroupCoordinator(
            self.config,
            new_uuid=new_uuid or (lambda: str(next(ids))),
            topics=self.topics,
            now_ms=now_ms,
            config_of=config_of or kafkas_defaults,
            group_version=lambda: 1,
        )
        self.coordinator.verify_transaction = lambda ctx, _, __, ___, verified: verified(ctx, {})
        self.coordinator.transaction_coordinator_of = lambda _, __: None
        self.asked: list[Asked] = []
        self.effects: list[Effect] = []
        self.events: list[Event] = []
        self.batches: list[tuple[Stored, ...]] = []
        self.held: list[Append] = []
        self.stored: list[Append] = []
        self.unverified: set[Call] = set()
        self._by_call: dict[Call, Asked] = {}
        self._holds = False
        self._failure: ErrorCode | None = None
        self._watch = Watch()

    # --- time

    def at(self, ms: int) -> None:
        """Let the time be ``ms``; timers fire on the way, each at its own moment."""
        assert ms >= self.now_ms
        while (due := self.coordinator.next_deadline()) is not None and due <= ms:
            self.now_ms = max(self.now_ms, due)
            self.carry_out(self.coordinator.expire(self.now_ms))
        self.now_ms = ms

    def advance(self, ms: int) -> None:
        """Let ``ms`` pass."""
        self.at(self.now_ms + ms)

    # --- the log

    def hold_appends(self) -> None:
        """From now on appends are neither stored nor failed until ``confirm`` or ``fail`` says so."""
        self._holds = True

    def fail_appends(self, error: ErrorCode | None) -> None:
        """From now on every append fails at once, or, with None, no longer does."""
        self._failure = error

    def confirm(self) -> None:
        """The oldest held append is stored."""
        append = self.held.pop(0)
        self._store(append)
        self.carry_out(self.coordinator.runtime.appended(append, self.now_ms))

    def fail(self, error: ErrorCode) -> None:
        """The oldest held append fails, and those of its partition that are held behind it fail with it."""
        failed = self.held.pop(0)
        self.held = [append for append in self.held if append.partition != failed.partition]
        self.carry_out(self.coordinator.runtime.append_failed(failed, error, self.now_ms))

    def resign(self, partition: int) -> None:
        """Another broker has the groups of a shard from now on."""
        ctx = HandlerContext(self.now_ms, AdminAction("the test"))
        self.coordinator.runtime.resign(partition, ctx)
        self.carry_out(ctx.effects)

    def begin_load(self, partition: int) -> ShardLoader[GroupCoordinatorShard]:
        """A shard is to be read back."""
        ctx = HandlerContext(self.now_ms, AdminAction("the test"))
        loading = self.coordinator.runtime.load(partition, ctx)
        self.carry_out(ctx.effects)
        return loading

    def end_load(self, loading: ShardLoader[GroupCoordinatorShard], next_offset: int = 0) -> None:
        """A shard is read."""
        ctx = HandlerContext(self.now_ms, AdminAction("the test"))
        loading.finish(ctx, next_offset)
        self.carry_out(ctx.effects)

    def logged(self, partition: int, *, compacted: bool = False) -> list[OffsetKeyValue]:
        """The records of a shard's log; ``compacted``: of each key the last one alone."""
        return [each for _, found in log_of(self.stored, partition, compacted=compacted) for each in found]

    def reload(self, *, compacted: bool = False) -> None:
        """All shards are read back from what was stored."""
        for shard in self.coordinator.shards:
            self.resign(shard.partition)
            loading = self.begin_load(shard.partition)
            self.end_load(loading, read_into(loading, log_of(self.stored, shard.partition, compacted=compacted)))

    @property
    def records(self) -> list[Stored]:
        """Every stored record."""
        return [record for batch in self.batches for record in batch]

    @property
    def group_values(self) -> list[Any]:
        """The values of all stored group records; None is a tombstone."""
        return [record.value for record in self.records if isinstance(record.key, GroupMetadataKey)]

    @property
    def offset_values(self) -> list[Any]:
        """The values of all stored offset records; None is a tombstone."""
        return [record.value for record in self.records if isinstance(record.key, OffsetCommitKey)]

    # --- asking

    def ask(
        self,
        key: ApiKey,
        request: Any,
        *,
        version: int | None = None,
        client_id: str | None = "someone",
        host: str = "/127.0.0.1",
        asker: "Member | None" = None,
    ) -> Asked:
        """Send ``request``, in its newest version unless another is given."""
        api = APIS[key]
        version = api.max_version if version is None else version
        number = len(self.asked) + 1
        call = Call(1, number, api, version, client_id, host)
        frame = encode_request(api, version, number, client_id, request)
        asked = Asked(call, parse_request(frame[4:]).message, asker)
        self.asked.append(asked)
        self._by_call[call] = asked
        self.carry_out(self.coordinator.handle(call, asked.request, self.now_ms))
        return asked

    def describe(self, *groups: str, version: int | None = None, operations: bool = False) -> Asked:
        request = m.DescribeGroupsRequest(groups=groups or (GROUP,), include_authorized_operations=operations)
        return self.ask(ApiKey.DESCRIBE_GROUPS, request, version=version)

    def list_groups(
        self, states: Sequence[str] = (), types: Sequence[str] = (), *, version: int | None = None
    ) -> Asked:
        request = m.ListGroupsRequest(states_filter=tuple(states), types_filter=tuple(types))
        return self.ask(ApiKey.LIST_GROUPS, request, version=version)

    def delete_groups(self, *groups: str) -> Asked:
        return self.ask(ApiKey.DELETE_GROUPS, m.DeleteGroupsRequest(groups_names=groups or (GROUP,)))

    def commit(
        self,
        offsets: Mapping[tuple[str, int], int] | None = None,
        *,
        group: str = GROUP,
        generation: int = -1,
        member_id: str = "",
        instance: str | None = None,
        metadata: str | None = "",
        leader_epoch: int = -1,
        retention_ms: int = -1,
        version: int = 9,
        asker: "Member | None" = None,
    ) -> Asked:
        """Commit (topic, partition) → offset; from outside of the group unless told otherwise."""
        topics: dict[str, list[OffsetCommitRequestPartition]] = {}
        for (topic, partition), offset in ({("t", 0): 5} if offsets is None else offsets).items():
            topics.setdefault(topic, []).append(
                OffsetCommitRequestPartition(
                    partition_index=partition,
                    committed_offset=offset,
                    committed_leader_epoch=leader_epoch,
                    committed_metadata=metadata,
                )
            )
        request = m.OffsetCommitRequest(
            group_id=group,
            generation_id_or_member_epoch=generation,
            member_id=member_id,
            group_instance_id=instance,
            retention_time_ms=retention_ms,
            topics=tuple(
                OffsetCommitRequestTopic(name=name, partitions=tuple(partitions), topic_id=self.topics.topic_id(name))
                for name, partitions in topics.items()
            ),
        )
        return self.ask(ApiKey.OFFSET_COMMIT, request, version=version, asker=asker)

    def fetch(
        self, topics: Mapping[str, Sequence[int]] | None = None, *, group: str = GROUP, version: int = 9
    ) -> dict[tuple[str, int], int]:
        """(topic, partition) → committed offset, of all topics or of those named."""
        (answer,) = self.ask_offsets(topics, group=group, version=version).answer.groups
        assert answer.error_code == 0
        return {
            (topic.name, partition.partition_index): partition.committed_offset
            for topic in answer.topics
            for partition in topic.partitions
        }

    def ask_offsets(
        self,
        topics: Mapping[str, Sequence[int]] | None = None,
        *,
        group: str = GROUP,
        version: int = 9,
        require_stable: bool = False,
    ) -> Asked:
        """OffsetFetch of one group; ``topics`` None means all."""
        if version < 8:
            old = (
                None
                if topics is None
                else tuple(OffsetFetchRequestTopics(name=n, partition_indexes=tuple(p)) for n, p in topics.items())
            )
            request = m.OffsetFetchRequest(group_id=group, topics=old, require_stable=require_stable)
            return self.ask(ApiKey.OFFSET_FETCH, request, version=version)
        new = (
            None
            if topics is None
            else tuple(
                OffsetFetchRequestTopics(name=n, topic_id=self.topics.topic_id(n), partition_indexes=tuple(p))
                for n, p in topics.items()
            )
        )
        request = m.OffsetFetchRequest(
            groups=(OffsetFetchRequestGroup(group_id=group, topics=new),), require_stable=require_stable
        )
        return self.ask(ApiKey.OFFSET_FETCH, request, version=version)

    def delete_topic(self, name: str) -> None:
        """The data plane deletes a topic."""
        deleted = {name: self.topics.ids[name]}
        self.topics.delete(name)
        ctx = HandlerContext(self.now_ms, AdminAction(f"topic {name} is deleted"))
        self.coordinator.topics_deleted(ctx, deleted)
        self.carry_out(ctx.effects)

    def unload(self) -> None:
        """The topic of groups and offsets is deleted; ``topics.create("__consumer_offsets", 50)`` brings it back."""
        ctx = HandlerContext(self.now_ms, AdminAction("__consumer_offsets is deleted"))
        self.coordinator.topics_deleted(ctx, {"__consumer_offsets": UUID(int=50)})
        self.carry_out(ctx.effects)

    # --- looking

    @property
    def group(self) -> ClassicGroup:
        """The group that members join unless told otherwise."""
        found = self.coordinator.shard_of(GROUP).machine.classic_group(GROUP)
        assert found is not None
        return found

    @property
    def exists(self) -> bool:
        """Is there that group?"""
        return GROUP in self.coordinator.shard_of(GROUP).machine.groups

    def deadline(self, kind: str, subject: str = "", *, group: str = GROUP) -> int | None:
        """When a timer is due, in milliseconds from now; None if it is not set."""
        key = TimerKey(kind, group, subject)
        pending = {timer.key: timer.at_ms for timer in self.coordinator.timers.pending()}
        return None if key not in pending else pending[key] - self.now_ms

    def seen(self, kind: type[E]) -> list[E]:
        """The events of one kind so far."""
        return [event for event in self.events if isinstance(event, kind)]

    # --- members

    def member(self, name: str = "a", **terms: Any) -> "Member":
        """Somebody who is not in the group yet; see Member for the terms."""
        return Member(self, name, **terms)

    def stable(self, *members: "Member | str", leads: "Member | None" = None) -> list["Member"]:
        """Bring ``members`` (or new ones of these names) into one stable generation; ``leads`` checks who leads it."""
        all_members = [self.member(member) if isinstance(member, str) else member for member in members]
        self.joined(*all_members)
        for member in all_members:
            member.sync()
        assert self.group.state == "Stable"
        assert leads is None or leads.leads
        return all_members

    def joined(self, *members: "Member") -> None:
        """Bring ``members`` into one generation that waits for its assignment."""
        waiting = [member.enter() for member in members]
        self.advance(INITIAL_DELAY_MS)
        while any(asked.parked for asked in waiting):
            due = self.coordinator.next_deadline()
            assert due is not None
            self.at(due)

    def carry_out(self, effects: Iterable[Effect]) -> None:
        for effect in effects:
            self.effects.append(effect)
            if isinstance(effect, Append):
                if self._holds:
                    self.held.append(effect)
                    self.coordinator.shards[effect.partition].append_held(effect.append_id)
                elif self._failure is not None:
                    self.carry_out(self.coordinator.runtime.append_failed(effect, self._failure, self.now_ms))
                else:
                    self._store(effect)
                    self.carry_out(self.coordinator.runtime.appended(effect, self.now_ms))
            elif isinstance(effect, Reply):
                if effect.call.connection_id != NO_CONNECTION:
                    self._answer(effect)
            else:
                assert isinstance(effect, EmitEvent)
                event = effect.event
                assert event.at_ms == self.now_ms
                assert event.text()
                assert str(event.cause)
                self.events.append(event)
        if self.coordinator.runtime.open_shards:
            ctx = HandlerContext(self.now_ms, AdminAction("the test"))
            self.coordinator.runtime.flush(ctx)
            self.carry_out(ctx.effects)
        else:
            self._watch.look(self)

    def _store(self, append: Append) -> None:
        decoded = []
        assert append.topic == "__consumer_offsets"
        for record in append.records:
            key = read_key(record.encoded.key)
            assert not isinstance(key, UnknownKey)
            assert key == record.key
            group = key.group if isinstance(key, OffsetCommitKey | GroupMetadataKey) else key.group_id
            assert self.coordinator.shard_of(group).partition == append.partition
            decoded.append(Stored(append.partition, key, read_value(key, record.encoded.value)))
        self.batches.append(tuple(decoded))
        self.stored.append(append)

    def _answer(self, reply: Reply) -> None:
        asked = self._by_call[reply.call]
        assert not asked.replies, f"{reply.call} is answered twice"
        asked.replies.append(reply.response)
        if asked.asker is not None:
            asked.asker.hear(reply.response)


class Member:
    """One client. ``protocols`` are its assignors with their metadata; what it is told of itself it remembers."""

    def __init__(
        self,
        world: World,
        name: str,
        *,
        group: str = GROUP,
        instance: str | None = None,
        session_ms: int = 10_000,
        rebalance_ms: int = 60_000,
        protocol_type: str = "consumer",
        protocols: Mapping[str, bytes] | Sequence[tuple[str, bytes]] | None = None,
        version: int = 9,
        host: str = "/127.0.0.1",
        member_id: str = "",
    ) -> None:
        self.world = world
        self.name = name
        self.group = group
        self.instance = instance
        self.session_ms = session_ms
        self.rebalance_ms = rebalance_ms
        self.protocol_type = protocol_type
        self.protocols = protocols if protocols is not None else {"range": subscription("t")}
        self.version = version
        self.host = host
        self.member_id = member_id
        self.generation = -1
        self.leader = ""
        self.told: Any = None
        self.assigned: bytes | None = None

    @property
    def leads(self) -> bool:
        """Was it told that it leads?"""
        return bool(self.member_id) and self.leader == self.member_id

    def hear(self, response: Any) -> None:
        """Remember what the coordinator said."""
        if isinstance(response, m.JoinGroupResponse):
            self.told = response
            if response.error_code in (ErrorCode.NONE, ErrorCode.MEMBER_ID_REQUIRED):
                self.member_id = response.member_id
            if not response.error_code:
                self.generation, self.leader = response.generation_id, response.leader
        elif isinstance(response, m.SyncGroupResponse) and not response.error_code:
            self.assigned = response.assignment

    def join(self, **changes: Any) -> Asked:
        """Send one JoinGroup. ``changes`` of member_id, instance, protocols … are for this request alone."""
        offered = changes.get("protocols", self.protocols)
        pairs = offered.items() if isinstance(offered, Mapping) else offered
        request = m.JoinGroupRequest(
            group_id=changes.get("group", self.group),
            session_timeout_ms=changes.get("session_ms", self.session_ms),
            rebalance_timeout_ms=changes.get("rebalance_ms", self.rebalance_ms),
            member_id=changes.get("member_id", self.member_id),
            group_instance_id=changes.get("instance", self.instance),
            protocol_type=changes.get("protocol_type", self.protocol_type),
            protocols=tuple(JoinGroupRequestProtocol(name=name, metadata=metadata) for name, metadata in pairs),
            reason=changes.get("reason"),
        )
        return self._ask(ApiKey.JOIN_GROUP, request, changes.get("version", self.version))

    def enter(self, **changes: Any) -> Asked:
        """Join, and come back with the id if one is handed out."""
        asked = self.join(**changes)
        if not asked.parked and asked.error is ErrorCode.MEMBER_ID_REQUIRED:
            asked = self.join(**changes)
        return asked

    def sync(self, gives: "Mapping[Member | str, bytes] | None" = None, **changes: Any) -> Asked:
        """Send SyncGroup. Unless told what to give, a leader gives everybody a piece named after them."""
        if gives is None:
            others = self.told.members if self.leads else ()
            shares = [(other.member_id, f"for {other.member_id}".encode()) for other in others]
        else:
            shares = [(who if isinstance(who, str) else who.member_id, data) for who, data in gives.items()]
        request = m.SyncGroupRequest(
            group_id=changes.get("group", self.group),
            generation_id=changes.get("generation", self.generation),
            member_id=changes.get("member_id", self.member_id),
            group_instance_id=changes.get("instance", self.instance),
            protocol_type=changes.get("protocol_type", self.protocol_type),
            protocol_name=changes.get("protocol_name", (self.told and self.told.protocol_name) or "range"),
            assignments=tuple(
                SyncGroupRequestAssignment(member_id=member_id, assignment=data) for member_id, data in shares
            ),
        )
        return self._ask(ApiKey.SYNC_GROUP, request, changes.get("version", 5))

    def heartbeat(self, **changes: Any) -> Asked:
        request = m.HeartbeatRequest(
            group_id=changes.get("group", self.group),
            generation_id=changes.get("generation", self.generation),
            member_id=changes.get("member_id", self.member_id),
            group_instance_id=changes.get("instance", self.instance),
        )
        return self._ask(ApiKey.HEARTBEAT, request, changes.get("version", 4))

    def leave(self, **changes: Any) -> Asked:
        """Leave; from version 3 on as one of a batch, with the instance id if there is one."""
        version = changes.get("version", 5)
        member_id = changes.get("member_id", self.member_id)
        group = changes.get("group", self.group)
        if version < 3:
            return self._ask(ApiKey.LEAVE_GROUP, m.LeaveGroupRequest(group_id=group, member_id=member_id), version)
        identity = MemberIdentity(
            member_id=member_id,
            group_instance_id=changes.get("instance", self.instance),
            reason=changes.get("reason"),
        )
        return self._ask(ApiKey.LEAVE_GROUP, m.LeaveGroupRequest(group_id=group, members=(identity,)), version)

    def commit(self, offsets: Mapping[tuple[str, int], int] | None = None, **changes: Any) -> Asked:
        """Commit as a member of the present generation."""
        terms: dict[str, Any] = {
            "group": self.group,
            "generation": self.generation,
            "member_id": self.member_id,
            "instance": self.instance,
        }
        return self.world.commit(offsets, **(terms | changes), asker=self)

    def _ask(self, key: ApiKey, request: Any, version: int) -> Asked:
        return self.world.ask(key, request, version=version, client_id=self.name, host=self.host, asker=self)

"""A node whose appends pass an AppendGate."""

from collections.abc import Callable
from typing import Any

from groupcoord.cluster.coordinator_partition_writer import HOLD, STORE, AppendDecision
from groupcoord.core.effects import Append, Call, Effect, Reply
from groupcoord.protocol.apis import APIS, ApiKey
from groupcoord.protocol.apis.join_group import JoinGroupRequestProtocol
from groupcoord.protocol.apis.leave_group import MemberIdentity
from groupcoord.protocol.apis.offset_commit import OffsetCommitRequestPartition, OffsetCommitRequestTopic
from groupcoord.protocol.apis.offset_delete import OffsetDeleteRequestPartition, OffsetDeleteRequestTopic
from groupcoord.protocol.apis.offset_fetch import OffsetFetchRequestGroup, OffsetFetchRequestTopics
from groupcoord.protocol.apis.sync_group import SyncGroupRequestAssignment
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages import (
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    ListGroupsRequest,
    OffsetCommitRequest,
    OffsetDeleteRequest,
    OffsetFetchRequest,
    SyncGroupRequest,
)
from tests.cluster.test_cluster_core import new_node


class Bench:
    """A node whose appends go through a gate that a test operates, a clock, and the answers that came, by request."""

    def __init__(self, partitions: int = 1, **config: int) -> None:
        self.node = new_node(offsets_topic_num_partitions=partitions, group_initial_rebalance_delay_ms=0, **config)
        self.node.create_topic("t", 2, 0)
        self.now_ms = 0
        self.answers: dict[int, Any] = {}
        self.asked = 0
        self.decision: Callable[[Append], AppendDecision] = lambda _: STORE
        self.node.appends.gate = lambda append, now_ms: self.decision(append)

    # --- the gate

    def hold(self) -> None:
        """From now on appends are held."""
        self.decision = lambda _: HOLD

    def store(self) -> None:
        """From now on appends are stored, behind those that are held."""
        self.decision = lambda _: STORE

    def refuse(self, error: ErrorCode) -> None:
        """From now on appends fail."""
        self.decision = lambda _: error

    @property
    def held(self) -> list[Append]:
        return list(self.node.appends.held())

    def release(self, place: int = 0) -> None:
        self.take(self.node.appends.release(self.held[place], self.now_ms))

    def fail(self, error: ErrorCode, place: int = 0) -> None:
        self.take(self.node.appends.fail(self.held[place], error, self.now_ms))

    # --- time and answers

    def advance(self, ms: int) -> None:
        """Let ``ms`` pass; timers fire at their moments."""
        until = self.now_ms + ms
        while (due := self.node.next_deadline()) is not None and due <= until:
            self.now_ms = max(self.now_ms, due)
            self.take(self.node.expire(self.now_ms))
        self.now_ms = until

    def take(self, effects: list[Effect]) -> None:
        for effect in effects:
            assert not isinstance(effect, Append)
            if isinstance(effect, Reply) and effect.call.connection_id > 0:
                assert effect.call.correlation_id not in self.answers, "answered twice"
                self.answers[effect.call.correlation_id] = effect.response

    def ask(self, key: ApiKey, request: Any, version: int | None = None) -> int:
        """The number of the request, by which to look for its answer."""
        self.asked += 1
        api = APIS[key]
        call = Call(1, self.asked, api, api.max_version if version is None else version, "c", "/127.0.0.1")
        self.take(self.node.handle(call, request, self.now_ms))
        return self.asked

    def answer(self, number: int) -> Any:
        return self.answers.get(number)

    # --- requests

    def commit(self, offset: int, group: str = "g", partition: int = 0) -> int:
        wanted = OffsetCommitRequestPartition(
            partition_index=partition, committed_offset=offset, committed_metadata=None
        )
        topics = (OffsetCommitRequestTopic(name="t", partitions=(wanted,)),)
        return self.ask(ApiKey.OFFSET_COMMIT, OffsetCommitRequest(group_id=group, member_id="", topics=topics), 9)

    def committed(self, number: int) -> ErrorCode | None:
        """What the commit of that number was told; None: nothing yet."""
        said = self.answers.get(number)
        return None if said is None else ErrorCode(said.topics[0].partitions[0].error_code)

    def fetch(self, group: str = "g", *, stable: bool = False) -> int:
        topics = (OffsetFetchRequestTopics(name="t", partition_indexes=(0,)),)
        asked = (OffsetFetchRequestGroup(group_id=group, topics=topics),)
        return self.ask(ApiKey.OFFSET_FETCH, OffsetFetchRequest(groups=asked, require_stable=stable), 9)

    def offset(self, group: str = "g") -> int:
        """The committed offset, as a reader sees it."""
        return self.offset_in(self.fetch(group))

    def offset_in(self, number: int) -> int:
        (group,) = self.answers[number].groups
        offset: int = group.topics[0].partitions[0].committed_offset
        return offset

    def delete_offset(self, group: str = "g") -> int:
        topics = (OffsetDeleteRequestTopic(name="t", partitions=(OffsetDeleteRequestPartition(partition_index=0),)),)
        return self.ask(ApiKey.OFFSET_DELETE, OffsetDeleteRequest(group_id=group, topics=topics))

    def delete_group(self, group: str = "g") -> int:
        return self.ask(ApiKey.DELETE_GROUPS, DeleteGroupsRequest(groups_names=(group,)))

    def deleted(self, number: int) -> ErrorCode | None:
        said = self.answers.get(number)
        return None if said is None else ErrorCode(said.results[0].error_code)

    def join(self, member_id: str = "", group: str = "g", instance: str | None = None) -> int:
        request = JoinGroupRequest(
            group_id=group,
            session_timeout_ms=30_000,
            rebalance_timeout_ms=30_000,
            member_id=member_id,
            group_instance_id=instance,
            protocol_type="consumer",
            protocols=(JoinGroupRequestProtocol(name="range", metadata=b""),),
        )
        return self.ask(ApiKey.JOIN_GROUP, request, 9)

    def joined(self, group: str = "g", instance: str | None = None) -> tuple[str, int]:
        """(member id, generation) of a new member of a group that waits for its assignment."""
        said = self.answers[self.join("", group, instance)]
        if said.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            number = self.join(said.member_id, group, instance)
            self.advance(0)
            said = self.answers[number]
        return said.member_id, said.generation_id

    def sync(self, member_id: str, generation: int, group: str = "g", given: bytes = b"a") -> int:
        request = SyncGroupRequest(
            group_id=group,
            generation_id=generation,
            member_id=member_id,
            protocol_type="consumer",
            protocol_name="range",
            assignments=(SyncGroupRequestAssignment(member_id=member_id, assignment=given),),
        )
        return self.ask(ApiKey.SYNC_GROUP, request)

    def heartbeat(self, member_id: str, generation: int, group: str = "g") -> int:
        request = HeartbeatRequest(group_id=group, generation_id=generation, member_id=member_id)
        return self.ask(ApiKey.HEARTBEAT, request)

    def leave(self, member_id: str, group: str = "g") -> int:
        request = LeaveGroupRequest(group_id=group, members=(MemberIdentity(member_id=member_id),))
        return self.ask(ApiKey.LEAVE_GROUP, request)

    def state(self, group: str = "g") -> str:
        """What DescribeGroups says of it."""
        request = DescribeGroupsRequest(groups=(group,), include_authorized_operations=False)
        state: str = self.answers[self.ask(ApiKey.DESCRIBE_GROUPS, request)].groups[0].group_state
        return state

    def listed(self) -> set[str]:
        request = ListGroupsRequest(states_filter=(), types_filter=())
        return {group.group_id for group in self.answers[self.ask(ApiKey.LIST_GROUPS, request)].groups}

    def error(self, number: int) -> ErrorCode | None:
        """The error at the top of an answer; None: there is no answer yet."""
        said = self.answers.get(number)
        return None if said is None else ErrorCode(said.error_code)

"""Groups over three brokers in one node. What is expected was asked of a cluster of three Kafka 4.3.1."""

import itertools
from typing import Any

import pytest

from groupcoord.cluster.cluster_core import ClusterCore
from groupcoord.config.broker_config import load
from groupcoord.core.effects import Call, Effect, Reply
from groupcoord.core.java_hash_order import partition_for
from groupcoord.protocol.apis import APIS
from groupcoord.protocol.apis.delete_topics import DeleteTopicState
from groupcoord.protocol.apis.join_group import JoinGroupRequestProtocol
from groupcoord.protocol.apis.leave_group import MemberIdentity
from groupcoord.protocol.apis.offset_commit import OffsetCommitRequestPartition, OffsetCommitRequestTopic
from groupcoord.protocol.apis.offset_delete import OffsetDeleteRequestPartition, OffsetDeleteRequestTopic
from groupcoord.protocol.apis.offset_fetch import OffsetFetchRequestGroup
from groupcoord.protocol.apis.sync_group import SyncGroupRequestAssignment
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.framing import encode_response, parse_response
from groupcoord.protocol.messages import (
    DeleteGroupsRequest,
    DeleteTopicsRequest,
    DescribeGroupsRequest,
    FindCoordinatorRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    ListGroupsRequest,
    MetadataRequest,
    OffsetCommitRequest,
    OffsetDeleteRequest,
    OffsetFetchRequest,
    SyncGroupRequest,
    SyncGroupResponse,
)
from tests.cluster.test_cluster_core import Counting

OFFSETS = "__consumer_offsets"
GROUP = "app"
WRONG = ErrorCode.NOT_COORDINATOR
_API_OF = {api.request: api for api in APIS.values()}


class Trio:
    """Three brokers with the ids 1, 2 and 3, and somebody who asks each of them on a connection for every request."""

    def __init__(self, **config: object) -> None:
        items = [
            "offsets.topic.num.partitions=6",
            *(f"{name.replace('_', '.')}={value}" for name, value in config.items()),
        ]
        self.node = ClusterCore(load(items, dev=True, brokers=3), random=Counting(), now_ms=0, brokers=3)
        self.now_ms = 0
        self.later: list[Effect] = []
        self._numbers = itertools.count(1)
        self.node.create_topic("t", 1, 0)

    def send(self, to: int, request: Any, version: int | None = None) -> Call:
        """Send ``request`` to broker ``to``."""
        api, number = _API_OF[type(request)], next(self._numbers)
        call = Call(number, 1, api, api.max_version if version is None else version, "me", "/127.0.0.1", to - 1)
        self.later += self.node.handle(call, request, self.now_ms)
        return call

    def answer(self, call: Call) -> Any:
        """The answer to ``call`` as its version can say it, or None while there is none."""
        for effect in self.later:
            if isinstance(effect, Reply) and effect.call == call:
                frame = encode_response(call.api, call.version, 1, effect.response)
                return parse_response(call.api, call.version, frame[4:])[1]
        return None

    def ask(self, to: int, request: Any, version: int | None = None) -> Any:
        """The answer of broker ``to``, which must come at once."""
        answer = self.answer(self.send(to, request, version))
        assert answer is not None
        return answer

    def move(self, topic: str, partition: int, broker_id: int) -> None:
        self.later += self.node.move_leader(topic, partition, broker_id, self.now_ms)

    def go_on(self) -> None:
        """Let what is due be done, and what is being read be read to its end."""
        self.later += self.node.expire(self.now_ms)

    @property
    def leaders(self) -> tuple[int, ...]:
        topic = self.node.broker.topics.get(OFFSETS)
        assert topic is not None
        return topic.metadata.leaders

    def coordinator_of(self, group: str) -> int:
        return self.leaders[partition_for(group, 6)]

    def elsewhere(self, *, group: str = GROUP) -> int:
        """A broker that does not coordinate ``group``."""
        return self.coordinator_of(group) % 3 + 1

    def found(self, to: int, group: str = GROUP) -> tuple[int, int]:
        """(error, id) of the coordinator of ``group``, as ``to`` says."""
        (one,) = self.ask(to, FindCoordinatorRequest(coordinator_keys=(group,))).coordinators
        return one.error_code, one.node_id


def join(member_id: str = "", group: str = GROUP) -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id=group,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=60_000,
        member_id=member_id,
        protocol_type="consumer",
        protocols=(JoinGroupRequestProtocol(name="range", metadata=b""),),
    )


def sync(member_id: str, generation: int, **assignments: bytes) -> SyncGroupRequest:
    return SyncGroupRequest(
        group_id=GROUP,
        generation_id=generation,
        member_id=member_id,
        protocol_type="consumer",
        protocol_name="range",
        assignments=tuple(
            SyncGroupRequestAssignment(member_id=one, assignment=data) for one, data in assignments.items()
        ),
    )


def heartbeat(member_id: str, generation: int = 1) -> HeartbeatRequest:
    return HeartbeatRequest(group_id=GROUP, generation_id=generation, member_id=member_id)


def commit(offset: int, group: str = GROUP, member_id: str = "", generation: int = -1) -> OffsetCommitRequest:
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset, committed_metadata=None)
    topics = (OffsetCommitRequestTopic(name="t", partitions=(partition,)),)
    return OffsetCommitRequest(
        group_id=group, member_id=member_id, generation_id_or_member_epoch=generation, topics=topics
    )


def enter(trio: Trio, to: int) -> str:
    """A member id for whoever joins."""
    member_id: str = trio.ask(to, join()).member_id
    return member_id


def stable(trio: Trio) -> str:
    """A member that has committed 7 in a stable group of generation 1."""
    to = trio.coordinator_of(GROUP)
    a = enter(trio, to)
    joining = trio.send(to, join(a))
    trio.go_on()  # the initial delay of no time is over
    joined = trio.answer(joining)
    assert (joined.error_code, joined.generation_id) == (0, 1)
    assert trio.ask(to, sync(a, 1, **{a: b"A"})).assignment == b"A"
    answer = trio.ask(to, commit(7, member_id=a, generation=1), 8)
    assert answer.topics[0].partitions[0].error_code == 0
    return a


def test_the_offsets_topic_is_spread_over_all_with_kafkas_replicas() -> None:
    trio = Trio()
    topic = trio.node.broker.topics.get(OFFSETS)
    assert topic is not None
    assert all(sorted(ids) == [1, 2, 3] for ids in topic.metadata.replicas)
    assert set(trio.leaders) == {1, 2, 3}


@pytest.mark.parametrize("version", range(7))
def test_every_broker_names_the_leader_of_the_partition(version: int) -> None:
    trio = Trio()
    for to in (1, 2, 3):
        request = FindCoordinatorRequest(key=GROUP, coordinator_keys=(GROUP,))
        answer = trio.ask(to, request, version)
        found = answer.coordinators[0] if version >= 4 else answer
        assert (found.error_code, found.node_id) == (0, trio.coordinator_of(GROUP))
        assert (found.host, found.port) == ("127.0.0.1", 9091 + found.node_id)


def test_transactions_have_one_coordinator_for_all() -> None:
    trio = Trio()
    request = FindCoordinatorRequest(key_type=1, coordinator_keys=("tx",))
    assert (
        trio.ask(1, request).coordinators[0].error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    )  # its topic is made now
    (node,) = {trio.ask(to, request).coordinators[0].node_id for to in (1, 2, 3)}
    assert node in {1, 2, 3}


def test_another_broker_refuses_every_request_of_the_group() -> None:
    trio = Trio()
    stable(trio)
    to = trio.elsewhere()
    for version in (0, 4, 9):
        joined = trio.ask(to, join(), version)
        assert (joined.error_code, joined.member_id, joined.generation_id) == (WRONG, "", -1)
        assert joined.protocol_name == (None if version >= 7 else "")
    assert trio.ask(to, sync("x", 1)).error_code == WRONG
    assert trio.ask(to, heartbeat("x")).error_code == WRONG
    left = LeaveGroupRequest(group_id=GROUP, members=(MemberIdentity(member_id="x"),))
    gone = trio.ask(to, left)
    assert (gone.error_code, gone.members) == (WRONG, ())
    assert trio.ask(to, commit(1), 9).topics[0].partitions[0].error_code == WRONG
    fetched = trio.ask(to, OffsetFetchRequest(groups=(OffsetFetchRequestGroup(group_id=GROUP, topics=None),)), 8)
    assert (fetched.groups[0].error_code, fetched.groups[0].topics) == (WRONG, ())
    deleting = OffsetDeleteRequestTopic(name="t", partitions=(OffsetDeleteRequestPartition(partition_index=0),))
    assert trio.ask(to, OffsetDeleteRequest(group_id=GROUP, topics=(deleting,))).error_code == WRONG


def test_what_a_request_lacks_is_seen_before() -> None:
    trio = Trio()
    to = trio.elsewhere()
    assert trio.ask(to, join(group="")).error_code == ErrorCode.INVALID_GROUP_ID
    hasty = JoinGroupRequest(group_id=GROUP, session_timeout_ms=1, member_id="", protocol_type="consumer")
    assert trio.ask(to, hasty).error_code == ErrorCode.INVALID_SESSION_TIMEOUT


def test_each_broker_tells_of_its_own_groups() -> None:
    trio = Trio()
    own = {to: next(f"g{n}" for n in range(99) if trio.coordinator_of(f"g{n}") == to) for to in (1, 2, 3)}
    for to, group in own.items():
        assert trio.ask(to, commit(1, group), 8).topics[0].partitions[0].error_code == 0
    for to, group in own.items():
        assert [one.group_id for one in trio.ask(to, ListGroupsRequest()).groups] == [group]
        described = trio.ask(to, DescribeGroupsRequest(groups=tuple(own.values()))).groups
        expected = {one: ("Empty", 0) if one == group else ("", WRONG) for one in own.values()}
        assert {one.group_id: (one.group_state, one.error_code) for one in described} == expected
    results = trio.ask(1, DeleteGroupsRequest(groups_names=tuple(own.values()))).results
    assert {one.group_id: one.error_code for one in results} == {own[1]: 0, own[2]: WRONG, own[3]: WRONG}


def test_a_group_moves_with_its_partition() -> None:
    """Who is parked in a join is told; members that had synced stay, and whoever was only joining is forgotten."""
    trio = Trio()
    old, new = trio.coordinator_of(GROUP), trio.elsewhere()
    a = stable(trio)
    b = enter(trio, old)
    parked = trio.send(old, join(b))
    assert trio.answer(parked) is None

    trio.move(OFFSETS, partition_for(GROUP, 6), new)
    told: JoinGroupResponse = trio.answer(parked)
    assert (told.error_code, told.member_id) == (WRONG, b)
    # Until the log is read a heartbeat is fine at the new coordinator, as Kafka has it, and nothing else is.
    assert trio.ask(old, heartbeat(a)).error_code == WRONG
    assert trio.ask(new, heartbeat(a)).error_code == 0
    assert trio.ask(new, sync(a, 1)).error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert [trio.found(to) for to in (1, 2, 3)] == [(0, new)] * 3
    assert trio.ask(new, ListGroupsRequest()).error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert trio.ask(old, ListGroupsRequest()).error_code == 0

    assert trio.node.next_deadline() == 0
    trio.go_on()
    assert [trio.ask(new, heartbeat(one)).error_code for one in (a, b)] == [0, ErrorCode.UNKNOWN_MEMBER_ID]
    assert trio.ask(old, heartbeat(a)).error_code == WRONG
    (group,) = trio.ask(new, DescribeGroupsRequest(groups=(GROUP,))).groups
    assert (group.group_state, [one.member_assignment for one in group.members]) == ("Stable", [b"A"])
    fetched = trio.ask(new, OffsetFetchRequest(groups=(OffsetFetchRequestGroup(group_id=GROUP, topics=None),)), 8)
    assert fetched.groups[0].topics[0].partitions[0].committed_offset == 7
    assert [len(trio.ask(to, ListGroupsRequest()).groups) for to in (old, new)] == [0, 1]


def test_who_is_parked_in_a_sync_is_told_and_the_generation_before_counts() -> None:
    trio = Trio()
    old, new = trio.coordinator_of(GROUP), trio.elsewhere()
    a = stable(trio)
    b = enter(trio, old)
    joining = trio.send(old, join(b))
    assert trio.ask(old, join(a)).generation_id == 2
    assert trio.answer(joining).generation_id == 2
    parked = trio.send(old, sync(b, 2))
    trio.move(OFFSETS, partition_for(GROUP, 6), new)
    told: SyncGroupResponse = trio.answer(parked)
    assert (told.error_code, told.assignment) == (WRONG, b"")
    trio.go_on()
    (group,) = trio.ask(new, DescribeGroupsRequest(groups=(GROUP,))).groups
    assert (group.group_state, [one.member_assignment for one in group.members]) == ("Stable", [b"A"])
    errors = [trio.ask(new, heartbeat(one, 2)).error_code for one in (a, b)]
    assert errors == [ErrorCode.ILLEGAL_GENERATION, ErrorCode.UNKNOWN_MEMBER_ID]


def test_a_commit_that_is_not_stored_when_the_coordinator_moves_is_lost_and_its_client_told() -> None:
    trio = Trio()
    old, new = trio.coordinator_of(GROUP), trio.elsewhere()
    a = stable(trio)
    trio.node.appends.gate = lambda _append, _now_ms: "hold"
    waiting = trio.send(old, commit(8, member_id=a, generation=1), 8)
    assert trio.answer(waiting) is None
    trio.move(OFFSETS, partition_for(GROUP, 6), new)
    assert trio.answer(waiting).topics[0].partitions[0].error_code == WRONG
    trio.go_on()
    fetched = trio.ask(new, OffsetFetchRequest(groups=(OffsetFetchRequestGroup(group_id=GROUP, topics=None),)), 8)
    assert fetched.groups[0].topics[0].partitions[0].committed_offset == 7


def test_a_move_is_a_new_epoch_and_there_and_back_are_two() -> None:
    trio = Trio()
    partition, old, new = partition_for(GROUP, 6), trio.coordinator_of(GROUP), trio.elsewhere()
    a = stable(trio)
    trio.move(OFFSETS, partition, new)
    trio.go_on()
    trio.move(OFFSETS, partition, old)
    trio.go_on()
    assert trio.ask(old, heartbeat(a)).error_code == 0
    (topic,) = [one for one in trio.ask(1, MetadataRequest(topics=None)).topics if one.is_internal]
    assert topic.partitions[partition].leader_id == old
    assert [one.leader_epoch for one in topic.partitions] == [2 if index == partition else 0 for index in range(6)]


def test_moving_a_partition_of_another_topic_moves_no_group() -> None:
    trio = Trio()
    a = stable(trio)
    at = trio.node.broker.topics.get("t")
    assert at is not None
    trio.move("t", 0, at.metadata.leaders[0] % 3 + 1)
    assert trio.ask(trio.coordinator_of(GROUP), heartbeat(a)).error_code == 0
    assert trio.node.broker.log("t", 0) is at.partitions[0]
    assert at.partitions[0].leader_epoch == 1


def test_a_partition_of_the_offsets_topic_that_no_group_is_in_can_move() -> None:
    trio = Trio()
    topic = trio.node.broker.topics.get(OFFSETS)
    assert topic is not None
    topic.add_partitions(1, [(1, 2)])
    trio.move(OFFSETS, 6, 2)
    assert topic.metadata.leaders[6] == 2
    assert trio.node.next_deadline() != 0


def test_moves_that_cannot_be() -> None:
    trio = Trio()
    leader = trio.leaders[0]
    assert trio.node.move_leader(OFFSETS, 0, leader, 0) == []
    assert trio.node.next_deadline() != 0
    for topic, partition in (("nope", 0), ("t", 1), ("t", -1)):
        with pytest.raises(KeyError, match=f"no partition {partition} of {topic}"):
            trio.node.move_leader(topic, partition, 1, 0)
    with pytest.raises(ValueError, match="no broker 4"):
        trio.node.move_leader("t", 0, 4, 0)


def test_without_the_offsets_topic_no_broker_coordinates_until_it_is_there_again() -> None:
    trio = Trio()
    stable(trio)
    trio.ask(1, DeleteTopicsRequest(topics=(DeleteTopicState(name=OFFSETS),), timeout_ms=1))
    assert [trio.ask(to, heartbeat("x")).error_code for to in (1, 2, 3)] == [WRONG] * 3
    assert trio.found(2) == (ErrorCode.COORDINATOR_NOT_AVAILABLE, -1)
    error, coordinator = trio.found(3)
    assert (error, coordinator) == (0, trio.coordinator_of(GROUP))
    assert trio.ask(coordinator, heartbeat("x")).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert trio.ask(trio.elsewhere(), heartbeat("x")).error_code == WRONG


def test_fewer_brokers_than_kafkas_replicas_have_as_many_as_can_be() -> None:
    node = ClusterCore(load(dev=True, brokers=2), random=Counting(), now_ms=0, brokers=2)
    topic = node.broker.topics.get(OFFSETS)
    assert topic is not None
    assert {len(ids) for ids in topic.metadata.replicas} == {2}

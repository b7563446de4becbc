"""One broker: what the coordinator wants stored is in ``__consumer_offsets``, and both halves share one clock."""

import itertools
import uuid
from typing import Any

import pytest

from groupcoord.cluster.cluster_core import ClusterCore
from groupcoord.config.broker_config import load
from groupcoord.core.effects import Append, Call, Effect, Reply
from groupcoord.core.java_hash_order import partition_for
from groupcoord.protocol.apis import APIS, ApiKey
from groupcoord.protocol.apis.delete_topics import DeleteTopicState
from groupcoord.protocol.apis.fetch import FetchPartition, FetchTopic
from groupcoord.protocol.apis.join_group import JoinGroupRequestProtocol
from groupcoord.protocol.apis.offset_commit import OffsetCommitRequestPartition, OffsetCommitRequestTopic
from groupcoord.protocol.batches.record_batch import records_in
from groupcoord.protocol.coordinator_records.group_records import GroupMetadataKey, OffsetCommitKey, read_key
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages import (
    ApiVersionsRequest,
    DeleteTopicsRequest,
    FetchRequest,
    FindCoordinatorRequest,
    JoinGroupRequest,
    MetadataRequest,
    OffsetCommitRequest,
)

GROUP = "app"
PARTITION = partition_for(GROUP, 50)


class Counting:
    """Ids by counting."""

    def __init__(self) -> None:
        self._next = itertools.count(100)

    def uuid(self) -> uuid.UUID:
        return uuid.UUID(int=next(self._next))

    def session_id(self) -> int:
        return next(self._next)

    def next_int(self, bound: int) -> int:
        return next(self._next) % bound


def new_node(**config: object) -> ClusterCore:
    items = [f"{name.replace('_', '.')}={value}" for name, value in config.items()]
    return ClusterCore(load(items, dev=True), random=Counting(), now_ms=0)


def ask(node: ClusterCore, key: ApiKey, request: Any, *, now_ms: int = 0, version: int | None = None) -> list[Effect]:
    api = APIS[key]
    call = Call(1, 1, api, api.max_version if version is None else version, "test", "/127.0.0.1")
    return node.handle(call, request, now_ms)


def answer(effects: list[Effect]) -> Any:
    (reply,) = [effect for effect in effects if isinstance(effect, Reply)]
    return reply.response


def commit(offset: int, topic: str = "orders") -> OffsetCommitRequest:
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset, committed_metadata=None)
    return OffsetCommitRequest(
        group_id=GROUP, member_id="", topics=(OffsetCommitRequestTopic(name=topic, partitions=(partition,)),)
    )


def stored(node: ClusterCore) -> list[tuple[object, bytes | None]]:
    """(key, value) of every record in the group's partition of ``__consumer_offsets``."""
    log = node.broker.log("__consumer_offsets", PARTITION)
    assert log is not None
    data = log.read(0, 1_000_000, at_least_one=True).data()
    return [(read_key(record.key or b""), record.value) for record in records_in(data)]


def test_the_offsets_topic_is_there_from_the_start() -> None:
    (topic,) = [
        topic
        for topic in answer(ask(new_node(), ApiKey.METADATA, MetadataRequest(topics=None))).topics
        if topic.is_internal
    ]
    assert (topic.name, len(topic.partitions)) == ("__consumer_offsets", 50)


def test_its_size_is_configured() -> None:
    node = new_node(offsets_topic_num_partitions=3)
    assert len(node.coordinator.shards) == 3
    assert node.broker.topics.partition_count("__consumer_offsets") == 3


def test_a_commit_is_answered_and_stored_in_the_partition_of_its_group() -> None:
    node = new_node()
    node.create_topic("orders", 1, 0)
    effects = ask(node, ApiKey.OFFSET_COMMIT, commit(5), version=9)
    assert not [effect for effect in effects if isinstance(effect, Append)]
    assert answer(effects).topics[0].partitions[0].error_code == ErrorCode.NONE
    assert [key for key, _ in stored(node)] == [OffsetCommitKey(group=GROUP, topic="orders", partition=0)]


def test_a_new_group_is_stored() -> None:
    node = new_node()
    offer = JoinGroupRequestProtocol(name="range", metadata=b"")
    join = JoinGroupRequest(
        group_id=GROUP,
        session_timeout_ms=6000,
        rebalance_timeout_ms=6000,
        member_id="",
        protocol_type="consumer",
        protocols=(offer,),
    )
    ask(node, ApiKey.JOIN_GROUP, join)
    assert [key for key, _ in stored(node)] == [GroupMetadataKey(group=GROUP)]


def test_a_commit_wakes_whoever_reads_the_offsets_topic() -> None:
    node = new_node()
    node.create_topic("orders", 1, 0)
    partition = FetchPartition(partition=PARTITION, fetch_offset=0, partition_max_bytes=100_000)
    fetch = FetchRequest(
        max_wait_ms=500, min_bytes=1, topics=(FetchTopic(topic="__consumer_offsets", partitions=(partition,)),)
    )
    assert ask(node, ApiKey.FETCH, fetch, version=12) == []
    replies = [effect for effect in ask(node, ApiKey.OFFSET_COMMIT, commit(5), version=9) if isinstance(effect, Reply)]
    assert [reply.call.api.name for reply in replies] == ["Fetch", "OffsetCommit"]


def test_a_record_that_is_too_large_for_the_log_fails_its_request() -> None:
    node = new_node(message_max_bytes=100, offset_metadata_max_bytes=1000)
    node.create_topic("orders", 1, 0)
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=1, committed_metadata="x" * 500)
    request = OffsetCommitRequest(
        group_id=GROUP, member_id="", topics=(OffsetCommitRequestTopic(name="orders", partitions=(partition,)),)
    )
    told = answer(ask(node, ApiKey.OFFSET_COMMIT, request, version=9))
    assert told.topics[0].partitions[0].error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert stored(node) == []


def test_the_offsets_of_a_deleted_topic_go() -> None:
    node = new_node()
    node.create_topic("orders", 1, 0)
    ask(node, ApiKey.OFFSET_COMMIT, commit(5), version=9)
    delete = DeleteTopicsRequest(timeout_ms=1000, topics=(DeleteTopicState(name="orders"),))
    ask(node, ApiKey.DELETE_TOPICS, delete)
    key = OffsetCommitKey(group=GROUP, topic="orders", partition=0)
    assert [(found, value is None) for found, value in stored(node)] == [(key, False), (key, True)]
    assert node.coordinator.shards[PARTITION].machine.offsets.get(GROUP, "orders", 0) is None


def find(node: ClusterCore, key_type: int = 0) -> ErrorCode:
    request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=(GROUP,))
    (found,) = answer(ask(node, ApiKey.FIND_COORDINATOR, request)).coordinators
    return ErrorCode(found.error_code)


def test_without_the_offsets_topic_there_are_no_groups_until_somebody_looks_for_the_coordinator_twice() -> None:
    """As a real 4.3.1 does: groups and offsets are gone, and who looks first makes the topic anew."""
    node = new_node()
    node.create_topic("orders", 1, 0)
    ask(node, ApiKey.OFFSET_COMMIT, commit(5), version=9)
    names = ("orders", "__consumer_offsets")
    delete = DeleteTopicsRequest(timeout_ms=1000, topics=tuple(DeleteTopicState(name=name) for name in names))
    ask(node, ApiKey.DELETE_TOPICS, delete)
    node.create_topic("orders", 1, 0)

    def committed() -> ErrorCode:
        told = answer(ask(node, ApiKey.OFFSET_COMMIT, commit(5), version=9))
        return ErrorCode(told.topics[0].partitions[0].error_code)

    assert committed() is ErrorCode.NOT_COORDINATOR
    assert find(node, key_type=1) is ErrorCode.COORDINATOR_NOT_AVAILABLE  # that of transactions is made now, too
    assert find(node, key_type=1) is ErrorCode.NONE
    assert committed() is ErrorCode.NOT_COORDINATOR
    assert find(node) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert find(node) is ErrorCode.NONE
    assert committed() is ErrorCode.NONE
    assert len(stored(node)) == 1


def test_a_lone_broker_that_is_to_replicate_the_offsets_topic_never_coordinates() -> None:
    node = new_node(offsets_topic_replication_factor=3)
    assert "__consumer_offsets" not in node.broker.topics
    assert [find(node), find(node)] == [ErrorCode.COORDINATOR_NOT_AVAILABLE] * 2
    node.create_topic("__consumer_offsets", 50, 0)
    assert find(node) is ErrorCode.NONE


def test_an_impossible_topic_is_refused() -> None:
    node = new_node()
    with pytest.raises(ValueError, match="contains one or more characters"):
        node.create_topic("not a name", 1, 0)
    node.create_topic("orders", 1, 0)
    with pytest.raises(ValueError, match="already exists"):
        node.create_topic("orders", 1, 0)


def test_clients_are_told_where_the_server_listens() -> None:
    node = new_node()
    node.listening_at("127.0.0.1", 4711)
    found = answer(ask(node, ApiKey.FIND_COORDINATOR, FindCoordinatorRequest(coordinator_keys=(GROUP,))))
    brokers = answer(ask(node, ApiKey.METADATA, MetadataRequest(topics=()))).brokers
    assert [(one.host, one.port) for one in (*found.coordinators, *brokers)] == [("127.0.0.1", 4711)] * 2


def test_what_is_advertised_wins_over_where_the_server_listens() -> None:
    node = new_node(advertised_listeners="PLAINTEXT://kafka.example:9092")
    node.listening_at("127.0.0.1", 4711)
    (found,) = answer(
        ask(node, ApiKey.FIND_COORDINATOR, FindCoordinatorRequest(coordinator_keys=(GROUP,)))
    ).coordinators
    assert (found.host, found.port) == ("kafka.example", 9092)


def test_api_versions_is_the_nodes_own_answer() -> None:
    request = ApiVersionsRequest(client_software_name="test", client_software_version="1")
    assert {api.api_key for api in answer(ask(new_node(), ApiKey.API_VERSIONS, request)).api_keys} == set(APIS)


def test_the_next_deadline_is_that_of_either_half() -> None:
    node = new_node()
    node.create_topic("orders", 1, 0)
    retention = node.coordinator.next_deadline()
    assert node.next_deadline() == min(filter(None, (retention, node.broker.next_deadline())))
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)
    fetch = FetchRequest(max_wait_ms=50, min_bytes=1, topics=(FetchTopic(topic="orders", partitions=(partition,)),))
    ask(node, ApiKey.FETCH, fetch, version=12)
    assert node.next_deadline() == node.deadline_lower_bound() == 50
    assert node.deadlines()[0].key.kind == "fetch"
    assert answer(node.expire(50)).error_code == ErrorCode.NONE
    assert node.next_deadline() != 50

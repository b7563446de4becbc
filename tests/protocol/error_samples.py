"""Requests of every API and version, for Kafka's own classes to say what an unexpected error makes of them.

To make ``error_responses.txt`` anew, with the jars of a Kafka 4.3 in ``$KAFKA``::

    python -m tests.protocol.error_samples |
        java -cp "$KAFKA/*" tests/protocol/ErrorResponses.java > tests/protocol/error_responses.txt
"""

import sys
import uuid
from collections.abc import Iterator
from typing import Any

from groupcoord.protocol import messages as m
from groupcoord.protocol.apis import APIS, Api, ApiKey
from groupcoord.protocol.apis import add_partitions_to_txn as ap
from groupcoord.protocol.apis import alter_configs as ac
from groupcoord.protocol.apis import alter_partition_reassignments as ar
from groupcoord.protocol.apis import consumer_group_heartbeat as ch
from groupcoord.protocol.apis import create_partitions as cp
from groupcoord.protocol.apis import create_topics as ct
from groupcoord.protocol.apis import delete_records as dr
from groupcoord.protocol.apis import delete_topics as dt
from groupcoord.protocol.apis import describe_configs as dc
from groupcoord.protocol.apis import describe_log_dirs as dl
from groupcoord.protocol.apis import describe_producers as ep
from groupcoord.protocol.apis import describe_quorum as dq
from groupcoord.protocol.apis import describe_topic_partitions as dp
from groupcoord.protocol.apis import elect_leaders as el
from groupcoord.protocol.apis import fetch as fe
from groupcoord.protocol.apis import incremental_alter_configs as ia
from groupcoord.protocol.apis import join_group as jg
from groupcoord.protocol.apis import leave_group as lg
from groupcoord.protocol.apis import list_offsets as lo
from groupcoord.protocol.apis import list_partition_reassignments as lr
from groupcoord.protocol.apis import metadata as md
from groupcoord.protocol.apis import offset_commit as oc
from groupcoord.protocol.apis import offset_delete as od
from groupcoord.protocol.apis import offset_fetch as of
from groupcoord.protocol.apis import offset_for_leader_epoch as ol
from groupcoord.protocol.apis import produce as pr
from groupcoord.protocol.apis import sync_group as sg
from groupcoord.protocol.apis import txn_offset_commit as to
from groupcoord.protocol.apis import update_features as uf
from groupcoord.protocol.apis import write_txn_markers as wm
from groupcoord.protocol.errors import ErrorCode

ORDERS = uuid.UUID("8a7e1f7c-54a5-4f0e-8a2e-4d9f6a1b2c3d")
OTHER = uuid.UUID("11111111-2222-4333-8444-555555555555")


def samples() -> Iterator[str]:
    """Lines of API key, version, error code, and the request's body in hex (``-`` if it is empty)."""
    for api in APIS.values():
        errors = [ErrorCode.UNKNOWN_SERVER_ERROR]
        if api.key is ApiKey.API_VERSIONS:
            errors.append(ErrorCode.INVALID_REQUEST)
        for version in range(api.min_version, api.max_version + 1):
            for request in _requests(api, version):
                body = api.request_codec(version).encode(request).hex() or "-"
                yield from (f"{api.key:d} {version} {error:d} {body}" for error in errors)


def _requests(api: Api, version: int) -> list[Any]:
    return globals()[f"_{api.key.name.lower()}"](version)  # type: ignore[no-any-return]


def _produce(version: int) -> list[Any]:
    # One partition: Kafka answers several in the order of a hash table, and clients do not mind the order.
    name = {"topic_id": ORDERS} if version >= 13 else {"name": "orders"}
    topic = pr.TopicProduceData(**name, partition_data=(pr.PartitionProduceData(index=3, records=b"xx"),))
    asked = [m.ProduceRequest(acks=acks, timeout_ms=1_000, topic_data=(topic,)) for acks in (-1, 1, 0)]
    return [*asked, m.ProduceRequest(acks=-1, timeout_ms=1_000, topic_data=())]


def _fetch(version: int) -> list[Any]:
    def topic(name: str, topic_id: uuid.UUID, *partitions: int) -> fe.FetchTopic:
        asked = [fe.FetchPartition(partition=at, fetch_offset=5, partition_max_bytes=1_000) for at in partitions]
        named = {"topic_id": topic_id} if version >= 13 else {"topic": name}
        return fe.FetchTopic(**named, partitions=tuple(asked))

    session: dict[str, Any] = {"session_id": 77, "session_epoch": 3} if version >= 7 else {}
    topics = (topic("orders", ORDERS, 0, 3), topic("other", OTHER, 1))
    return [
        m.FetchRequest(max_wait_ms=1, min_bytes=1, topics=topics, **session),
        m.FetchRequest(max_wait_ms=1, min_bytes=1, topics=()),
    ]


def _list_offsets(_: int) -> list[Any]:
    asked = (
        lo.ListOffsetsPartition(partition_index=0, timestamp=-1),
        lo.ListOffsetsPartition(partition_index=3, timestamp=-2),
    )
    topics = (lo.ListOffsetsTopic(name="orders", partitions=asked), lo.ListOffsetsTopic(name="other", partitions=()))
    return [m.ListOffsetsRequest(replica_id=-1, topics=topics)]


def _metadata(version: int) -> list[Any]:
    named = tuple(md.MetadataRequestTopic(name=name) for name in ("orders", "other"))
    asked: list[Any] = [m.MetadataRequest(topics=()), m.MetadataRequest(topics=named)]
    if version >= 1:
        asked.append(m.MetadataRequest(topics=None))
    if version >= 12:
        asked.append(m.MetadataRequest(topics=(md.MetadataRequestTopic(name=None, topic_id=ORDERS),)))
    return asked


def _offset_commit(version: int) -> list[Any]:
    def topic(name: str, topic_id: uuid.UUID, *partitions: int) -> oc.OffsetCommitRequestTopic:
        committed = [
            oc.OffsetCommitRequestPartition(partition_index=at, committed_offset=5, committed_metadata="")
            for at in partitions
        ]
        named = {"topic_id": topic_id} if version >= 10 else {"name": name}
        return oc.OffsetCommitRequestTopic(**named, partitions=tuple(committed))

    topics = (topic("orders", ORDERS, 0, 3), topic("other", OTHER, 1))
    return [m.OffsetCommitRequest(group_id="g", member_id="", topics=some) for some in (topics, ())]


def _offset_fetch(version: int) -> list[Any]:
    if version < 8:
        topics = (
            of.OffsetFetchRequestTopics(name="orders", partition_indexes=(0, 3)),
            of.OffsetFetchRequestTopics(name="other", partition_indexes=()),
        )
        asked: list[Any] = [m.OffsetFetchRequest(group_id="g", topics=some) for some in (topics, ())]
        return asked if version < 2 else [*asked, m.OffsetFetchRequest(group_id="g", topics=None)]
    named = {"topic_id": ORDERS} if version >= 10 else {"name": "orders"}
    some_topics = (of.OffsetFetchRequestTopics(**named, partition_indexes=(0, 3)),)
    groups = [
        of.OffsetFetchRequestGroup(group_id=group, topics=topics) for group, topics in (("g", some_topics), ("h", None))
    ]
    return [m.OffsetFetchRequest(groups=tuple(groups))]


def _find_coordinator(version: int) -> list[Any]:
    return [m.FindCoordinatorRequest(key="g") if version < 4 else m.FindCoordinatorRequest(coordinator_keys=("g", "h"))]


def _join_group(version: int) -> list[Any]:
    protocols = (jg.JoinGroupRequestProtocol(name="range", metadata=b""),)
    return [
        m.JoinGroupRequest(
            group_id="g",
            session_timeout_ms=10_000,
            rebalance_timeout_ms=10_000 if version else -1,
            member_id=member,
            protocol_type="consumer",
            protocols=protocols,
        )
        for member in ("", "m-1")
    ]


def _heartbeat(_: int) -> list[Any]:
    return [m.HeartbeatRequest(group_id="g", generation_id=1, member_id="m-1")]


def _leave_group(version: int) -> list[Any]:
    if version < 3:
        return [m.LeaveGroupRequest(group_id="g", member_id="m-1")]
    members = (lg.MemberIdentity(member_id="m-1", group_instance_id="i"), lg.MemberIdentity(member_id="m-2"))
    return [m.LeaveGroupRequest(group_id="g", members=members)]


def _sync_group(version: int) -> list[Any]:
    protocol = {"protocol_type": "consumer", "protocol_name": "range"} if version >= 5 else {}
    assigned = (sg.SyncGroupRequestAssignment(member_id="m-1", assignment=b"x"),)
    return [m.SyncGroupRequest(group_id="g", generation_id=1, member_id="m-1", assignments=assigned, **protocol)]


def _describe_groups(_: int) -> list[Any]:
    return [m.DescribeGroupsRequest(groups=("g", "h"))]


def _list_groups(_: int) -> list[Any]:
    return [m.ListGroupsRequest()]


def _api_versions(version: int) -> list[Any]:
    software = {"client_software_name": "a", "client_software_version": "b"} if version >= 3 else {}
    return [m.ApiVersionsRequest(**software)]


def _create_topics(_: int) -> list[Any]:
    topics = [
        ct.CreatableTopic(name=name, num_partitions=1, replication_factor=1, assignments=(), configs=())
        for name in ("orders", "other")
    ]
    return [m.CreateTopicsRequest(topics=tuple(topics))]


def _delete_topics(version: int) -> list[Any]:
    if version < 6:
        return [m.DeleteTopicsRequest(topic_names=("orders", "other"), timeout_ms=1)]
    topics = (dt.DeleteTopicState(name="orders"), dt.DeleteTopicState(topic_id=ORDERS))
    return [m.DeleteTopicsRequest(topics=topics, timeout_ms=1)]


def _delete_records(_: int) -> list[Any]:
    asked = tuple(dr.DeleteRecordsPartition(partition_index=at, offset=3) for at in (0, 3))
    return [m.DeleteRecordsRequest(timeout_ms=1, topics=(dr.DeleteRecordsTopic(name="orders", partitions=asked),))]


def _init_producer_id(version: int) -> list[Any]:
    known = {"producer_id": 5, "producer_epoch": 6} if version >= 3 else {}
    return [
        m.InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1),
        m.InitProducerIdRequest(transactional_id="t", transaction_timeout_ms=1, **known),
    ]


def _add_partitions_to_txn(version: int) -> list[Any]:
    topics = (ap.AddPartitionsToTxnTopic(name="orders", partitions=(0, 3)),)
    if version < ap.BY_TRANSACTION_FROM:
        old = m.AddPartitionsToTxnRequest(
            v3_and_below_transactional_id="t",
            v3_and_below_producer_id=5,
            v3_and_below_producer_epoch=6,
            v3_and_below_topics=topics,
        )
        return [old]
    transaction = ap.AddPartitionsToTxnTransaction(transactional_id="t", producer_id=5, producer_epoch=6, topics=topics)
    return [m.AddPartitionsToTxnRequest(transactions=(transaction,))]


def _add_offsets_to_txn(_: int) -> list[Any]:
    return [m.AddOffsetsToTxnRequest(transactional_id="t", producer_id=5, producer_epoch=6, group_id="g")]


def _end_txn(_: int) -> list[Any]:
    return [m.EndTxnRequest(transactional_id="t", producer_id=5, producer_epoch=6, committed=True)]


def _write_txn_markers(_: int) -> list[Any]:
    # One topic and partition: Kafka answers several in the order of a hash table.
    topics = (wm.WritableTxnMarkerTopic(name="orders", partition_indexes=(3,)),)
    marker = wm.WritableTxnMarker(
        producer_id=5, producer_epoch=6, transaction_result=True, topics=topics, coordinator_epoch=7
    )
    return [m.WriteTxnMarkersRequest(markers=(marker,))]


def _txn_offset_commit(version: int) -> list[Any]:
    member: dict[str, Any] = {}
    if version >= 3:
        member = {"generation_id": 2, "member_id": "a", "group_instance_id": "i"}
    partition = to.TxnOffsetCommitRequestPartition(partition_index=3, committed_offset=9, committed_metadata="x")
    topics = (to.TxnOffsetCommitRequestTopic(name="orders", partitions=(partition,)),)
    request = m.TxnOffsetCommitRequest(
        transactional_id="t", group_id="g", producer_id=5, producer_epoch=6, topics=topics, **member
    )
    return [request]


def _describe_producers(_: int) -> list[Any]:
    return [m.DescribeProducersRequest(topics=(ep.TopicRequest(name="orders", partition_indexes=(0, 3)),))]


def _describe_transactions(_: int) -> list[Any]:
    return [m.DescribeTransactionsRequest(transactional_ids=("t", "u"))]


def _list_transactions(_: int) -> list[Any]:
    return [m.ListTransactionsRequest(state_filters=("Ongoing",), producer_id_filters=(5,))]


def _offset_for_leader_epoch(_: int) -> list[Any]:
    asked = tuple(ol.OffsetForLeaderPartition(partition=at, leader_epoch=1) for at in (0, 3))
    return [m.OffsetForLeaderEpochRequest(topics=(ol.OffsetForLeaderTopic(topic="orders", partitions=asked),))]


def _describe_configs(_: int) -> list[Any]:
    resources = (
        dc.DescribeConfigsResource(resource_type=2, resource_name="orders", configuration_keys=None),
        dc.DescribeConfigsResource(resource_type=4, resource_name="1", configuration_keys=("a",)),
    )
    return [m.DescribeConfigsRequest(resources=resources)]


def _create_partitions(_: int) -> list[Any]:
    topics = [cp.CreatePartitionsTopic(name=name, count=3, assignments=None) for name in ("orders", "other")]
    return [m.CreatePartitionsRequest(topics=tuple(topics), timeout_ms=1, validate_only=False)]


def _delete_groups(_: int) -> list[Any]:
    return [m.DeleteGroupsRequest(groups_names=("g", "h"))]


def _incremental_alter_configs(_: int) -> list[Any]:
    configs = (ia.AlterableConfig(name="a", config_operation=0, value="1"),)
    resources = (
        ia.AlterConfigsResource(resource_type=2, resource_name="orders", configs=configs),
        ia.AlterConfigsResource(resource_type=4, resource_name="1", configs=()),
    )
    return [m.IncrementalAlterConfigsRequest(resources=resources, validate_only=False)]


def _alter_configs(_: int) -> list[Any]:
    configs = (ac.AlterableConfig(name="a", value="1"),)
    resources = (
        ac.AlterConfigsResource(resource_type=2, resource_name="orders", configs=configs),
        ac.AlterConfigsResource(resource_type=4, resource_name="1", configs=()),
    )
    return [m.AlterConfigsRequest(resources=resources, validate_only=False)]


def _list_config_resources(version: int) -> list[Any]:
    return [m.ListConfigResourcesRequest(resource_types=(2, 32) if version else ())]


def _describe_topic_partitions(_: int) -> list[Any]:
    topics = (dp.TopicRequest(name="orders"), dp.TopicRequest(name="other"))
    cursor = dp.Cursor(topic_name="orders", partition_index=1)
    return [m.DescribeTopicPartitionsRequest(topics=topics, cursor=cursor), m.DescribeTopicPartitionsRequest()]


def _offset_delete(_: int) -> list[Any]:
    asked = (od.OffsetDeleteRequestPartition(partition_index=0),)
    return [m.OffsetDeleteRequest(group_id="g", topics=(od.OffsetDeleteRequestTopic(name="orders", partitions=asked),))]


def _describe_cluster(_: int) -> list[Any]:
    return [m.DescribeClusterRequest(include_cluster_authorized_operations=False)]


def _consumer_group_heartbeat(_: int) -> list[Any]:
    owned = (ch.TopicPartitions(topic_id=ORDERS, partitions=(0, 3)),)
    joins = m.ConsumerGroupHeartbeatRequest(
        group_id="g",
        member_id="m-1",
        member_epoch=0,
        rebalance_timeout_ms=1_000,
        subscribed_topic_names=("orders", "other"),
        topic_partitions=(),
    )
    return [
        joins,
        m.ConsumerGroupHeartbeatRequest(group_id="g", member_id="m-1", member_epoch=5, topic_partitions=owned),
    ]


def _consumer_group_describe(_: int) -> list[Any]:
    return [m.ConsumerGroupDescribeRequest(group_ids=("g", "h"), include_authorized_operations=True)]


def _update_features(version: int) -> list[Any]:
    change: dict[str, Any] = {"upgrade_type": 2} if version else {"allow_downgrade": True}
    update = uf.FeatureUpdateKey(feature="transaction.version", max_version_level=1, **change)
    return [m.UpdateFeaturesRequest(timeout_ms=1_000, feature_updates=(update,))]


def _elect_leaders(_: int) -> list[Any]:
    topics = (el.TopicPartitions(topic="orders", partitions=(0, 3)), el.TopicPartitions(topic="other", partitions=()))
    return [m.ElectLeadersRequest(topic_partitions=asked, timeout_ms=1_000) for asked in (topics, None)]


def _alter_partition_reassignments(_: int) -> list[Any]:
    moves = (
        ar.ReassignablePartition(partition_index=0, replicas=(1, 2)),
        ar.ReassignablePartition(partition_index=3, replicas=None),
    )
    topics = (ar.ReassignableTopic(name="orders", partitions=moves), ar.ReassignableTopic(name="other", partitions=()))
    return [m.AlterPartitionReassignmentsRequest(timeout_ms=1_000, topics=topics)]


def _list_partition_reassignments(_: int) -> list[Any]:
    topics = (lr.ListPartitionReassignmentsTopics(name="orders", partition_indexes=(0, 3)),)
    return [m.ListPartitionReassignmentsRequest(timeout_ms=1_000, topics=asked) for asked in (topics, None)]


def _describe_quorum(_: int) -> list[Any]:
    partition = dq.DescribeQuorumRequestPartitionData(partition_index=0)
    topics = (dq.DescribeQuorumRequestTopicData(topic_name="__cluster_metadata", partitions=(partition,)),)
    return [m.DescribeQuorumRequest(topics=topics)]


def _describe_log_dirs(_: int) -> list[Any]:
    topics = (dl.DescribableLogDirTopic(topic="orders", partitions=(0, 3)),)
    return [m.DescribeLogDirsRequest(topics=asked) for asked in (topics, None)]


def _unregister_broker(_: int) -> list[Any]:
    return [m.UnregisterBrokerRequest(broker_id=3)]


if __name__ == "__main__":
    for line in samples():
        sys.stdout.write(f"{line}\n")

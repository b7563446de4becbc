"""What is worth seeing of requests and answers."""

import uuid
from typing import Any

import pytest

from groupcoord.protocol import messages as m
from groupcoord.protocol.apis.consumer_group_heartbeat import Assignment, TopicPartitions
from groupcoord.protocol.apis.delete_groups import DeletableGroupResult
from groupcoord.protocol.apis.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchTopic,
    PartitionData,
)
from groupcoord.protocol.apis.find_coordinator import Coordinator
from groupcoord.protocol.apis.join_group import JoinGroupRequestProtocol, JoinGroupResponseMember
from groupcoord.protocol.apis.leave_group import MemberIdentity, MemberResponse
from groupcoord.protocol.apis.list_offsets import ListOffsetsPartitionResponse, ListOffsetsTopicResponse
from groupcoord.protocol.apis.metadata import MetadataRequestTopic
from groupcoord.protocol.apis.offset_commit import (
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from groupcoord.protocol.apis.offset_fetch import (
    OffsetFetchRequestGroup,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from groupcoord.protocol.apis.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from groupcoord.protocol.apis.sync_group import SyncGroupRequestAssignment
from groupcoord.protocol.consumer_protocol import ConsumerProtocolAssignment, TopicPartition, write_assignment
from groupcoord.testing.trace.request_summary import error_of, request_details, response_details, subject_of
from tests.coordinator.world import subscription

ORDERS = uuid.UUID(int=1)
UNKNOWN = uuid.UUID(int=2)


def topic_name(topic_id: uuid.UUID) -> str | None:
    return "orders" if topic_id == ORDERS else None


def join(**fields: Any) -> m.JoinGroupRequest:
    protocols = (
        JoinGroupRequestProtocol(name="range", metadata=subscription("t", "u")),
        JoinGroupRequestProtocol(name="sticky", metadata=b""),
    )
    terms: dict[str, Any] = {
        "group_id": "g",
        "session_timeout_ms": 6_000,
        "rebalance_timeout_ms": 9_000,
        "member_id": "a-1",
        "protocol_type": "consumer",
        "protocols": protocols,
    }
    return m.JoinGroupRequest(**{**terms, **fields})


@pytest.mark.parametrize(
    ("message", "subject"),
    [
        (join(group_instance_id="i"), ("g", "a-1", "i", -1)),
        (m.HeartbeatRequest(group_id="g", generation_id=3, member_id="a-1"), ("g", "a-1", None, 3)),
        (
            m.OffsetCommitRequest(group_id="g", generation_id_or_member_epoch=4, member_id="a-1"),
            ("g", "a-1", None, 4),
        ),
        (
            m.LeaveGroupRequest(group_id="g", members=(MemberIdentity(member_id="a-1", group_instance_id="i"),)),
            ("g", "a-1", "i", -1),
        ),
        (m.LeaveGroupRequest(group_id="g", members=(MemberIdentity(), MemberIdentity())), ("g", "", None, -1)),
        (m.OffsetFetchRequest(groups=(OffsetFetchRequestGroup(group_id="g"),)), ("g", "", None, -1)),
        (m.OffsetFetchRequest(groups=()), ("", "", None, -1)),
        (m.DescribeGroupsRequest(groups=("g",)), ("g", "", None, -1)),
        (m.DescribeGroupsRequest(groups=("g", "h")), ("", "", None, -1)),
        (m.DeleteGroupsRequest(groups_names=("g",)), ("g", "", None, -1)),
        (m.FindCoordinatorRequest(key_type=0, coordinator_keys=("g",)), ("g", "", None, -1)),
        (m.FindCoordinatorRequest(key_type=1, coordinator_keys=("t",)), ("", "", None, -1)),
        (m.MetadataRequest(), ("", "", None, -1)),
        (m.JoinGroupResponse(generation_id=2, member_id="a-1"), ("", "a-1", None, 2)),
        (
            m.ConsumerGroupHeartbeatRequest(group_id="g", member_id="a-1", member_epoch=7, instance_id="i"),
            ("g", "a-1", "i", 7),
        ),
        (m.ConsumerGroupHeartbeatResponse(member_id="a-1", member_epoch=7), ("", "a-1", None, 7)),
        (m.ConsumerGroupHeartbeatResponse(error_code=110), ("", "", None, -1)),
        (m.ConsumerGroupDescribeRequest(group_ids=("g",)), ("g", "", None, -1)),
        (None, ("", "", None, -1)),
    ],
)
def test_whom_a_message_speaks_of(message: Any, subject: tuple[str, str, str | None, int]) -> None:
    assert tuple(subject_of(message)) == subject


def committed(*codes: int) -> m.OffsetCommitResponse:
    parts = tuple(OffsetCommitResponsePartition(partition_index=n, error_code=code) for n, code in enumerate(codes))
    return m.OffsetCommitResponse(topics=(OffsetCommitResponseTopic(name="t", partitions=parts),))


@pytest.mark.parametrize(
    ("response", "error"),
    [
        (m.HeartbeatResponse(), "NONE"),
        (m.HeartbeatResponse(error_code=27), "REBALANCE_IN_PROGRESS"),
        (m.HeartbeatResponse(error_code=9_999), "UNKNOWN_9999"),
        (committed(0, 22, 25), "ILLEGAL_GENERATION"),
        (committed(0, 0), "NONE"),
        (m.DeleteGroupsResponse(results=(DeletableGroupResult(group_id="g", error_code=68),)), "NON_EMPTY_GROUP"),
        (None, "NONE"),
    ],
)
def test_the_first_error_wherever_it_stands(response: Any, error: str) -> None:
    assert error_of(response) == error


def assigned(data: bytes) -> m.SyncGroupResponse:
    return m.SyncGroupResponse(assignment=data)


NUMBERS = (TopicPartition(topic="t", partitions=tuple(range(22))),)
FETCHED = FetchTopic(
    topic="t", partitions=(FetchPartition(partition=1, fetch_offset=42, partition_max_bytes=9),), topic_id=None
)
COMMITTED = OffsetCommitRequestPartition(partition_index=1, committed_offset=42, committed_metadata="")
JOIN = {"session_timeout_ms": 6_000, "rebalance_timeout_ms": 9_000}

REQUESTS: list[tuple[Any, dict[str, Any]]] = [
    (m.ConsumerGroupHeartbeatRequest(group_id="g", member_id="a", member_epoch=3), {}),
    (
        m.ConsumerGroupHeartbeatRequest(
            group_id="g",
            member_id="a",
            member_epoch=0,
            rack_id="r",
            rebalance_timeout_ms=9_000,
            subscribed_topic_names=("t",),
            subscribed_topic_regex="t.*",
            server_assignor="range",
            topic_partitions=(TopicPartitions(topic_id=ORDERS, partitions=(1, 2)),),
        ),
        {
            "topics": ("t",),
            "subscribed_topic_regex": "t.*",
            "server_assignor": "range",
            "rack_id": "r",
            "rebalance_timeout_ms": 9_000,
            "owned": ("orders-1", "orders-2"),
        },
    ),
    (m.ConsumerGroupDescribeRequest(group_ids=("g", "h")), {"groups": ("g", "h")}),
    (join(), {"protocols": ("range", "sticky"), "topics": ("t", "u"), **JOIN}),
    (join(reason="so"), {"protocols": ("range", "sticky"), "topics": ("t", "u"), **JOIN, "reason": "so"}),
    (join(protocol_type="connect"), {"protocols": ("range", "sticky"), **JOIN}),
    (join(protocols=()), {"protocols": (), **JOIN}),
    (
        join(protocols=(JoinGroupRequestProtocol(name="range", metadata=b"\xff\xff"),)),
        {"protocols": ("range",), **JOIN},
    ),
    (
        m.SyncGroupRequest(
            group_id="g", generation_id=1, member_id="a", assignments=(SyncGroupRequestAssignment(member_id="a"),)
        ),
        {"assignments": 1},
    ),
    (m.SyncGroupRequest(group_id="g", generation_id=1, member_id="a"), {}),
    (m.LeaveGroupRequest(group_id="g", members=(MemberIdentity(member_id="a", reason="so"),)), {"reason": "so"}),
    (
        m.LeaveGroupRequest(
            group_id="g",
            members=(
                MemberIdentity(member_id="a", reason="so"),
                MemberIdentity(group_instance_id="i", reason="and so"),
                MemberIdentity(reason="so"),
            ),
        ),
        {"members": ("a", "i", ""), "reason": "so, and so"},
    ),
    (m.LeaveGroupRequest(group_id="g", members=(MemberIdentity(member_id="a"),)), {}),
    (
        m.OffsetCommitRequest(
            group_id="g",
            member_id="a",
            topics=(
                OffsetCommitRequestTopic(name="t", partitions=(COMMITTED,)),
                OffsetCommitRequestTopic(topic_id=ORDERS, partitions=(COMMITTED,)),
                OffsetCommitRequestTopic(topic_id=UNKNOWN, partitions=(COMMITTED,)),
                OffsetCommitRequestTopic(partitions=(COMMITTED,)),
            ),
        ),
        {"offsets": ("t-1@42", "orders-1@42", f"{UNKNOWN}-1@42", "-1@42")},
    ),
    (m.OffsetFetchRequest(groups=(OffsetFetchRequestGroup(group_id="g"),)), {}),
    (
        m.OffsetFetchRequest(groups=(OffsetFetchRequestGroup(group_id="g"), OffsetFetchRequestGroup(group_id="h"))),
        {"groups": ("g", "h")},
    ),
    (m.FindCoordinatorRequest(coordinator_keys=("g",)), {}),
    (m.FindCoordinatorRequest(coordinator_keys=("g", "h")), {"coordinator_keys": ("g", "h")}),
    (m.FindCoordinatorRequest(key_type=1, coordinator_keys=("t",)), {"key_type": 1, "coordinator_keys": ("t",)}),
    (m.DescribeGroupsRequest(groups=("g",)), {}),
    (m.DescribeGroupsRequest(groups=("g", "h")), {"groups": ("g", "h")}),
    (m.DeleteGroupsRequest(groups_names=("g",)), {}),
    (m.DeleteGroupsRequest(groups_names=("g", "h")), {"groups": ("g", "h")}),
    (m.ApiVersionsRequest(client_software_name="x", client_software_version="1"), {"software": "x 1"}),
    (m.ApiVersionsRequest(), {}),
    (
        m.FetchRequest(max_wait_ms=5, min_bytes=1, topics=(FETCHED,)),
        {"partitions": ("t-1@42",), "max_wait_ms": 5},
    ),
    (
        m.ProduceRequest(
            acks=1,
            timeout_ms=1,
            topic_data=(TopicProduceData(name="t", partition_data=(PartitionProduceData(index=2, records=b""),)),),
        ),
        {"partitions": ("t-2",), "acks": 1},
    ),
    (m.MetadataRequest(topics=None), {"topics": "all"}),
    (m.MetadataRequest(topics=(MetadataRequestTopic(name="t"),)), {"topics": ("t",)}),
    (m.MetadataRequest(topics=()), {}),
    (m.ListGroupsRequest(), {}),
    (None, {}),
]


@pytest.mark.parametrize(("request_", "details"), REQUESTS)
def test_a_request(request_: Any, details: dict[str, Any]) -> None:
    assert request_details(request_, topic_name) == details


FETCHED_OFFSET = OffsetFetchResponsePartitions(partition_index=0, committed_offset=7)
RESPONSES: list[tuple[Any, dict[str, Any]]] = [
    (
        m.JoinGroupResponse(
            protocol_name="range",
            leader="a",
            skip_assignment=True,
            member_id="a",
            members=(JoinGroupResponseMember(member_id="a", metadata=b""),),
        ),
        {"protocol_name": "range", "leader": "a", "members": ("a",), "skip_assignment": True},
    ),
    (m.JoinGroupResponse(protocol_name="range", leader="a", member_id="b"), {"protocol_name": "range", "leader": "a"}),
    (m.JoinGroupResponse(error_code=79, member_id="b"), {}),
    (assigned(b""), {"assignment": ()}),
    (assigned(b"\xff\xff"), {}),
    (m.SyncGroupResponse(error_code=27), {}),
    (
        assigned(write_assignment(ConsumerProtocolAssignment(assigned_partitions=NUMBERS))),
        {"assignment": (*(f"t-{number}" for number in range(20)), "and 2 more")},
    ),
    (m.LeaveGroupResponse(members=(MemberResponse(member_id="a"),)), {}),
    (
        m.LeaveGroupResponse(
            members=(
                MemberResponse(member_id="a", error_code=25),
                MemberResponse(group_instance_id="i", error_code=25),
                MemberResponse(error_code=25),
            )
        ),
        {"refused": ("a", "i", "")},
    ),
    (
        m.FindCoordinatorResponse(
            coordinators=(
                Coordinator(key="g", host="h", port=1),
                Coordinator(key="k", host="h", port=1),
                Coordinator(key="x", error_code=15),
            )
        ),
        {"coordinator": "h:1"},
    ),
    (m.FindCoordinatorResponse(coordinators=(Coordinator(error_code=15),)), {}),
    (
        m.OffsetFetchResponse(
            groups=(
                OffsetFetchResponseGroup(
                    group_id="g", topics=(OffsetFetchResponseTopics(name="t", partitions=(FETCHED_OFFSET,)),)
                ),
            )
        ),
        {"offsets": ("t-0@7",)},
    ),
    (m.OffsetFetchResponse(), {}),
    (
        m.ListOffsetsResponse(
            topics=(
                ListOffsetsTopicResponse(
                    name="t", partitions=(ListOffsetsPartitionResponse(partition_index=0, offset=9),)
                ),
            )
        ),
        {"offsets": ("t-0@9",)},
    ),
    (
        m.ProduceResponse(
            responses=(
                TopicProduceResponse(name="t", partition_responses=(PartitionProduceResponse(index=0, base_offset=3),)),
            )
        ),
        {"offsets": ("t-0@3",)},
    ),
    (
        m.FetchResponse(
            responses=(
                FetchableTopicResponse(
                    topic="t",
                    partitions=(
                        PartitionData(partition_index=0, high_watermark=0, records=b"12345"),
                        PartitionData(partition_index=1, high_watermark=0, records=None),
                    ),
                ),
            )
        ),
        {"bytes": 5},
    ),
    (m.ConsumerGroupHeartbeatResponse(), {}),
    (
        m.ConsumerGroupHeartbeatResponse(
            assignment=Assignment(topic_partitions=(TopicPartitions(topic_id=ORDERS, partitions=(0, 2)),))
        ),
        {"assignment": ("orders-0", "orders-2")},
    ),
    (m.HeartbeatResponse(), {}),
]


@pytest.mark.parametrize(("response", "details"), RESPONSES)
def test_an_answer(response: Any, details: dict[str, Any]) -> None:
    assert response_details(response, topic_name) == details

"""Old shapes of requests and responses."""

from typing import Any

import pytest

from groupcoord.protocol.apis import APIS, Api, ApiKey
from groupcoord.protocol.apis.delete_topics import DeleteTopicState
from groupcoord.protocol.apis.find_coordinator import Coordinator
from groupcoord.protocol.apis.leave_group import MemberIdentity, MemberResponse
from groupcoord.protocol.apis.metadata import MetadataRequestTopic
from groupcoord.protocol.apis.offset_fetch import (
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.framing import encode_request, encode_response, parse_request, parse_response
from groupcoord.protocol.messages import (
    DeleteTopicsRequest,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    JoinGroupRequest,
    LeaveGroupRequest,
    LeaveGroupResponse,
    MetadataRequest,
    OffsetFetchRequest,
    OffsetFetchResponse,
)


def versions(key: ApiKey, *, above: int = 99, below: int = -1) -> list[int]:
    api = APIS[key]
    return [version for version in range(api.min_version, api.max_version + 1) if version <= above and version >= below]


def received(api: Api, version: int, request: object) -> Any:
    """What is behind the protocol sees of ``request``, sent at ``version``."""
    return parse_request(encode_request(api, version, 1, "c", request)[4:]).message


def answered(api: Api, version: int, response: object) -> Any:
    """What a client sees of ``response``, answered at ``version``."""
    return parse_response(api, version, encode_response(api, version, 1, response)[4:])[1]


def test_join_group_0_rebalances_within_the_session_timeout() -> None:
    request = JoinGroupRequest(
        group_id="g", session_timeout_ms=10_000, rebalance_timeout_ms=60_000, member_id="", protocol_type="consumer"
    )
    timeouts = [received(APIS[ApiKey.JOIN_GROUP], version, request).rebalance_timeout_ms for version in range(10)]
    assert timeouts == [10_000] + [60_000] * 9


@pytest.mark.parametrize("version", versions(ApiKey.LEAVE_GROUP, above=2))
def test_leave_group_of_one_member(version: int) -> None:
    api = APIS[ApiKey.LEAVE_GROUP]
    assert received(api, version, LeaveGroupRequest(group_id="g", member_id="m")).members == (
        MemberIdentity(member_id="m"),
    )
    failed = LeaveGroupResponse(members=(MemberResponse(member_id="m", error_code=25),))
    assert answered(api, version, failed) == LeaveGroupResponse(error_code=25)
    assert answered(api, version, LeaveGroupResponse(error_code=15)) == LeaveGroupResponse(error_code=15)
    assert answered(api, version, LeaveGroupResponse()) == LeaveGroupResponse()


@pytest.mark.parametrize("version", versions(ApiKey.LEAVE_GROUP, below=3))
def test_leave_group_of_many_members(version: int) -> None:
    api = APIS[ApiKey.LEAVE_GROUP]
    request = LeaveGroupRequest(
        group_id="g", members=(MemberIdentity(member_id="m"), MemberIdentity(group_instance_id="i"))
    )
    response = LeaveGroupResponse(members=(MemberResponse(member_id="m", error_code=25), MemberResponse()))
    assert received(api, version, request) == request
    assert answered(api, version, response) == response


@pytest.mark.parametrize("version", versions(ApiKey.FIND_COORDINATOR, above=3))
def test_find_coordinator_of_one_key(version: int) -> None:
    api = APIS[ApiKey.FIND_COORDINATOR]
    assert received(api, version, FindCoordinatorRequest(key="g")).coordinator_keys == ("g",)
    found = Coordinator(key="g", node_id=1, host="h", port=9092)
    missing = Coordinator(key="g", node_id=-1, port=-1, error_code=15)
    refused = Coordinator(key="g", node_id=-1, port=-1, error_code=42, error_message="no such key")
    texts = ["NONE", ErrorCode.COORDINATOR_NOT_AVAILABLE.text, "no such key"] if version else [""] * 3
    for coordinator, text in zip((found, missing, refused), texts, strict=True):
        answer = answered(api, version, FindCoordinatorResponse(coordinators=(coordinator,)))
        assert (answer.node_id, answer.host, answer.port) == (coordinator.node_id, coordinator.host, coordinator.port)
        assert (answer.error_code, answer.error_message, answer.coordinators) == (coordinator.error_code, text, ())
    assert answered(api, version, FindCoordinatorResponse(error_code=15)) == FindCoordinatorResponse(error_code=15)


@pytest.mark.parametrize("version", versions(ApiKey.FIND_COORDINATOR, below=4))
def test_find_coordinator_of_many_keys(version: int) -> None:
    api = APIS[ApiKey.FIND_COORDINATOR]
    request = FindCoordinatorRequest(coordinator_keys=("a", "b"))
    response = FindCoordinatorResponse(
        coordinators=(Coordinator(key="a", node_id=1), Coordinator(key="b", error_code=15))
    )
    assert received(api, version, request) == request
    assert answered(api, version, response) == response


@pytest.mark.parametrize("version", versions(ApiKey.OFFSET_FETCH, above=7))
def test_offset_fetch_of_one_group(version: int) -> None:
    api = APIS[ApiKey.OFFSET_FETCH]
    request = OffsetFetchRequest(group_id="g", topics=(OffsetFetchRequestTopics(name="t", partition_indexes=(0, 1)),))
    topics = (OffsetFetchRequestTopics(name="t", partition_indexes=(0, 1)),)
    assert received(api, version, request).groups == (OffsetFetchRequestGroup(group_id="g", topics=topics),)
    partition = OffsetFetchResponsePartitions(
        partition_index=1, committed_offset=5, committed_leader_epoch=2, metadata="m", error_code=0
    )
    found = OffsetFetchResponseGroup(
        group_id="g", topics=(OffsetFetchResponseTopics(name="t", partitions=(partition,)),), error_code=16
    )
    answer = answered(api, version, OffsetFetchResponse(groups=(found,)))
    epoch = 2 if version >= 5 else -1
    expected = OffsetFetchResponsePartitions(
        partition_index=1, committed_offset=5, committed_leader_epoch=epoch, metadata="m", error_code=0
    )
    assert answer.topics == (OffsetFetchResponseTopics(name="t", partitions=(expected,)),)
    assert answer.error_code == (16 if version >= 2 else 0)
    assert answer.groups == ()


@pytest.mark.parametrize("version", versions(ApiKey.OFFSET_FETCH, above=7, below=2))
def test_offset_fetch_of_all_topics(version: int) -> None:
    request = OffsetFetchRequest(group_id="g", topics=None)
    groups = received(APIS[ApiKey.OFFSET_FETCH], version, request).groups
    assert groups == (OffsetFetchRequestGroup(group_id="g", topics=None),)


@pytest.mark.parametrize("version", versions(ApiKey.OFFSET_FETCH, above=9, below=8))
def test_offset_fetch_of_many_groups(version: int) -> None:
    api = APIS[ApiKey.OFFSET_FETCH]
    request = OffsetFetchRequest(groups=(OffsetFetchRequestGroup(group_id="a", topics=None), OffsetFetchRequestGroup()))
    response = OffsetFetchResponse(
        groups=(OffsetFetchResponseGroup(group_id="a", error_code=16), OffsetFetchResponseGroup())
    )
    assert received(api, version, request) == request
    assert answered(api, version, response) == response


@pytest.mark.parametrize("version", versions(ApiKey.DELETE_TOPICS))
def test_topics_to_delete_have_names_or_states(version: int) -> None:
    states = (DeleteTopicState(name="a"), DeleteTopicState(name="b"))
    request = DeleteTopicsRequest(topic_names=("a", "b"), timeout_ms=1, topics=states)
    assert received(APIS[ApiKey.DELETE_TOPICS], version, request).topics == states


@pytest.mark.parametrize("version", versions(ApiKey.METADATA))
def test_metadata_of_all_topics(version: int) -> None:
    api = APIS[ApiKey.METADATA]
    one = MetadataRequest(topics=(MetadataRequestTopic(name="t"),))
    assert received(api, version, MetadataRequest(topics=None)).topics is None
    assert received(api, version, MetadataRequest(topics=())).topics == (() if version else None)
    assert received(api, version, one) == one

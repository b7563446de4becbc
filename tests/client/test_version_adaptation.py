"""Requests and responses of old versions have the shape of the newest for whoever asks."""

import pytest

from groupcoord.client.version_adaptation import downgrade_request, unsupported_by_version, upgrade_response
from groupcoord.protocol.apis.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from groupcoord.protocol.apis.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from groupcoord.protocol.apis.heartbeat import HeartbeatRequest, HeartbeatResponse
from groupcoord.protocol.apis.leave_group import LeaveGroupRequest, MemberIdentity
from groupcoord.protocol.apis.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)


def test_a_list_of_one_coordinator_becomes_one() -> None:
    request = FindCoordinatorRequest(coordinator_keys=("g",))
    assert downgrade_request(request, 3).key == "g"
    assert downgrade_request(request, 4) is request
    old = FindCoordinatorRequest(key="g")
    assert downgrade_request(old, 3) is old


def test_a_list_of_one_member_becomes_one() -> None:
    request = LeaveGroupRequest(group_id="g", members=(MemberIdentity(member_id="m"),))
    assert downgrade_request(request, 2).member_id == "m"
    assert downgrade_request(request, 3) is request
    old = LeaveGroupRequest(group_id="g", member_id="m")
    assert downgrade_request(old, 2) is old


@pytest.mark.parametrize("numbers", [(1, 2), None])
def test_a_list_of_one_group_becomes_one(numbers: tuple[int, ...] | None) -> None:
    topics = None if numbers is None else (OffsetFetchRequestTopics(name="t", partition_indexes=numbers),)
    request = OffsetFetchRequest(groups=(OffsetFetchRequestGroup(group_id="g", topics=topics),))
    old = downgrade_request(request, 7)
    expected = None if numbers is None else (OffsetFetchRequestTopics(name="t", partition_indexes=numbers),)
    assert (old.group_id, old.topics) == ("g", expected)
    assert downgrade_request(request, 8) is request
    assert downgrade_request(OffsetFetchRequest(group_id="g"), 7) == OffsetFetchRequest(group_id="g")


def test_other_requests_are_as_they_are() -> None:
    request = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
    assert downgrade_request(request, 0) is request


def test_what_an_old_version_has_no_words_for() -> None:
    request = ConsumerGroupHeartbeatRequest(group_id="g", member_id="m", member_epoch=0, subscribed_topic_regex="t")
    assert (
        unsupported_by_version(request, 0)
        == "subscriptions by regular expression came with version 1 of ConsumerGroupHeartbeat"
    )
    assert unsupported_by_version(request, 1) == ""


def test_one_coordinator_becomes_a_list_of_one() -> None:
    request = FindCoordinatorRequest(key="g")
    old = FindCoordinatorResponse(node_id=3, host="h", port=1, error_code=15, error_message="no")
    (found,) = upgrade_response(request, old, 3).coordinators
    assert (found.key, found.node_id, found.host, found.port, found.error_code) == ("g", 3, "h", 1, 15)
    assert upgrade_response(request, old, 4) is old


def test_the_offsets_of_one_group_become_those_of_a_list_of_one() -> None:
    partition = OffsetFetchResponsePartitions(partition_index=2, committed_offset=9, metadata="m", error_code=3)
    old = OffsetFetchResponse(topics=(OffsetFetchResponseTopics(name="t", partitions=(partition,)),), error_code=14)
    request = OffsetFetchRequest(group_id="g")
    (group,) = upgrade_response(request, old, 7).groups
    ((same,),) = [topic.partitions for topic in group.topics]
    assert (group.group_id, group.error_code, group.topics[0].name) == ("g", 14, "t")
    assert (same.partition_index, same.committed_offset, same.metadata, same.error_code) == (2, 9, "m", 3)
    assert upgrade_response(request, old, 8) is old


def test_other_answers_are_as_they_are() -> None:
    answer = HeartbeatResponse()
    assert upgrade_response(HeartbeatRequest(group_id="g", generation_id=1, member_id="m"), answer, 0) is answer

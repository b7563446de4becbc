from groupcoord.client.shapes import response_from
from groupcoord.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from groupcoord.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from groupcoord.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchResponsePartition,
    OffsetFetchResponseTopic,
)


def test_one_coordinator_becomes_a_list_of_one() -> None:
    request = FindCoordinatorRequest(key="g")
    old = FindCoordinatorResponse(node_id=3, host="h", port=1, error_code=15, error_message="no")
    (found,) = response_from(request, old, 3).coordinators
    assert (found.key, found.node_id, found.host, found.port, found.error_code) == ("g", 3, "h", 1, 15)
    assert response_from(request, old, 4) is old


def test_the_offsets_of_one_group_become_those_of_a_list_of_one() -> None:
    partition = OffsetFetchResponsePartition(partition_index=2, committed_offset=9, metadata="m", error_code=3)
    old = OffsetFetchResponse(topics=(OffsetFetchResponseTopic(name="t", partitions=(partition,)),), error_code=14)
    request = OffsetFetchRequest(group_id="g")
    (group,) = response_from(request, old, 7).groups
    ((same,),) = [topic.partitions for topic in group.topics]
    assert (group.group_id, group.error_code, group.topics[0].name) == ("g", 14, "t")
    assert (same.partition_index, same.committed_offset, same.metadata, same.error_code) == (2, 9, "m", 3)
    assert response_from(request, old, 8) is old


def test_other_answers_are_as_they_are() -> None:
    answer = HeartbeatResponse()
    assert response_from(HeartbeatRequest(group_id="g", generation_id=1, member_id="m"), answer, 0) is answer

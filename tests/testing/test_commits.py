"""OffsetCommit of members in this process."""

from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages import OffsetCommitResponse
from groupcoord.protocol.messages.offset_commit import OffsetCommitResponsePartition, OffsetCommitResponseTopic
from groupcoord.testing.commits import codes_of, commit_request


def test_offsets_are_grouped_by_topic() -> None:
    request = commit_request("app", 3, "m", "one", {("b", 1): 5, ("a", 0): 6, ("b", 0): 7})
    assert (request.group_id, request.generation_id_or_member_epoch, request.member_id) == ("app", 3, "m")
    assert request.group_instance_id == "one"
    assert [
        (topic.name, [(each.partition_index, each.committed_offset) for each in topic.partitions])
        for topic in request.topics
    ] == [("b", [(1, 5), (0, 7)]), ("a", [(0, 6)])]


def test_each_partition_has_its_code() -> None:
    partitions = (
        OffsetCommitResponsePartition(partition_index=0),
        OffsetCommitResponsePartition(partition_index=1, error_code=ErrorCode.REBALANCE_IN_PROGRESS),
    )
    response = OffsetCommitResponse(topics=(OffsetCommitResponseTopic(name="a", partitions=partitions),))
    assert codes_of(response) == {("a", 0): ErrorCode.NONE, ("a", 1): ErrorCode.REBALANCE_IN_PROGRESS}

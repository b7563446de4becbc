"""OffsetCommit as members in this process send it."""

from collections.abc import Mapping

from groupcoord.assignors import TopicPartition
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages import OffsetCommitRequest, OffsetCommitResponse
from groupcoord.protocol.messages.offset_commit import OffsetCommitRequestPartition, OffsetCommitRequestTopic

BY_NAME = 9
"""The last version of OffsetCommit that names topics; the later ones have ids."""


def commit_request(
    group: str, generation: int, member_id: str, instance_id: str | None, offsets: Mapping[TopicPartition, int]
) -> OffsetCommitRequest:
    """Commit ``offsets`` as that member of that generation; to be sent in version ``BY_NAME``."""
    by_topic: dict[str, list[OffsetCommitRequestPartition]] = {}
    for (topic, number), offset in offsets.items():
        by_topic.setdefault(topic, []).append(
            OffsetCommitRequestPartition(partition_index=number, committed_offset=offset, committed_metadata="")
        )
    return OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=generation,
        member_id=member_id,
        group_instance_id=instance_id,
        topics=tuple(OffsetCommitRequestTopic(name=name, partitions=tuple(each)) for name, each in by_topic.items()),
    )


def codes_of(response: OffsetCommitResponse) -> dict[TopicPartition, ErrorCode]:
    """What came of each partition."""
    return {
        (topic.name, each.partition_index): ErrorCode(each.error_code)
        for topic in response.topics
        for each in topic.partitions
    }

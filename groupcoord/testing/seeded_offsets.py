"""What an administrator asks of a group's offsets: to set them, and to delete them."""

from collections.abc import Iterable, Mapping
from itertools import groupby

from groupcoord.assignors import TopicPartition
from groupcoord.client.member.actions import offset_commit_request
from groupcoord.protocol.apis.offset_delete import OffsetDeleteRequestPartition, OffsetDeleteRequestTopic
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages import OffsetCommitRequest, OffsetDeleteRequest, OffsetDeleteResponse


def offset_commit(group: str, offsets: object) -> OffsetCommitRequest:
    """Commit ``offsets`` for ``group`` without being a member. Raises TypeError and ValueError for what are no offsets."""
    if not isinstance(offsets, Mapping):
        raise TypeError(f'offsets={offsets!r}: offsets by their partitions, such as {{("orders", 0): 5}}')
    if not offsets:
        raise ValueError('there are no offsets to commit: {("orders", 0): 5} commits 5 for orders-0')
    _check_partitions(offsets)
    for (topic, number), offset in offsets.items():
        if not isinstance(offset, int) or isinstance(offset, bool):
            raise TypeError(f"the offset of {topic}-{number} is a number, such as 5, not {offset!r}")
        if offset < 0:
            raise ValueError(
                f"the offset of {topic}-{number} is 0 or more, not {offset}; delete_offsets takes one away"
            )
    return offset_commit_request(group, -1, "", None, offsets)


def offset_deletion(group: str, partitions: Iterable[TopicPartition]) -> OffsetDeleteRequest:
    """Delete what ``group`` has committed for ``partitions``. Raises TypeError and ValueError for what are no partitions."""
    found = list(partitions)
    if not found:
        raise ValueError('there are no offsets to delete: ("orders", 0) is a partition to delete that of')
    _check_partitions(found)
    topics = tuple(
        OffsetDeleteRequestTopic(
            name=topic, partitions=tuple(OffsetDeleteRequestPartition(partition_index=number) for _, number in each)
        )
        for topic, each in groupby(sorted(set(found)), key=lambda partition: partition[0])
    )
    return OffsetDeleteRequest(group_id=group, topics=topics)


def deletion_errors(response: OffsetDeleteResponse) -> dict[TopicPartition, ErrorCode]:
    """The error code of each partition."""
    return {
        (topic.name, each.partition_index): ErrorCode(each.error_code)
        for topic in response.topics
        for each in topic.partitions
    }


def _check_partitions(partitions: Iterable[object]) -> None:
    for each in partitions:
        match each:
            case (str(), int()):
                pass
            case _:
                raise TypeError(f'a partition is a topic and a number, such as ("orders", 0), not {each!r}')

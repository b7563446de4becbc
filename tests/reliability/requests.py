"""Requests about one partition, topic or group, and what is in their answers."""

from typing import Any, NamedTuple

from groupcoord.protocol.apis.create_topics import CreatableTopic, CreatableTopicConfig
from groupcoord.protocol.apis.delete_topics import DeleteTopicState
from groupcoord.protocol.apis.fetch import FetchPartition, FetchTopic
from groupcoord.protocol.apis.join_group import JoinGroupRequestProtocol
from groupcoord.protocol.apis.leave_group import MemberIdentity
from groupcoord.protocol.apis.metadata import MetadataRequestTopic
from groupcoord.protocol.apis.offset_commit import OffsetCommitRequestPartition, OffsetCommitRequestTopic
from groupcoord.protocol.apis.produce import PartitionProduceData, TopicProduceData
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages import (
    CreateTopicsRequest,
    DeleteTopicsRequest,
    FetchRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    MetadataRequest,
    OffsetCommitRequest,
    ProduceRequest,
    SyncGroupRequest,
)
from tests.reliability.talk import Talk

NEWEST_JOIN = 9
"""The version in which a member is given its id first, and joins with that."""


def produce(topic: str, batches: dict[int, bytes], acks: int = -1) -> ProduceRequest:
    """One batch for each of some partitions."""
    parts = tuple(PartitionProduceData(index=index, records=records) for index, records in batches.items())
    topic_data = (TopicProduceData(name=topic, partition_data=parts),)
    return ProduceRequest(acks=acks, timeout_ms=1_000, topic_data=topic_data)


def stored(answer: Any) -> Any:
    """What became of the first batch."""
    return answer.responses[0].partition_responses[0]


def fetch(
    topic: str, *partitions: int, offset: int = 0, max_bytes: int = 1 << 20, session: tuple[int, int] = (0, -1)
) -> FetchRequest:
    """What is there at once, in a ``session`` (id, epoch) or in none."""
    wanted = tuple(
        FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=max_bytes) for index in partitions
    )
    topics = (FetchTopic(topic=topic, partitions=wanted),)
    return FetchRequest(max_wait_ms=0, min_bytes=0, session_id=session[0], session_epoch=session[1], topics=topics)


def fetched(answer: Any) -> Any:
    """What came of the first partition."""
    return answer.responses[0].partitions[0]


def commit(group: str, topic: str, offsets: dict[int, int]) -> OffsetCommitRequest:
    """Offsets of partitions without a member, each with its metadata."""
    parts = tuple(
        OffsetCommitRequestPartition(
            partition_index=index, committed_offset=offset, committed_metadata=metadata_of(offset)
        )
        for index, offset in offsets.items()
    )
    topics = (OffsetCommitRequestTopic(name=topic, partitions=parts),) if parts else ()
    return OffsetCommitRequest(group_id=group, member_id="", topics=topics)


def metadata_of(offset: int) -> str:
    """What is committed with it."""
    return f"at {offset}"


def commit_errors(answer: Any) -> set[int]:
    """The errors of all partitions; {0} if there is none."""
    return {part.error_code for topic in answer.topics for part in topic.partitions}


def create(topic: str, partitions: int, configs: dict[str, str] | None = None) -> CreateTopicsRequest:
    """A topic."""
    overrides = tuple(CreatableTopicConfig(name=name, value=value) for name, value in (configs or {}).items())
    wanted = CreatableTopic(name=topic, num_partitions=partitions, replication_factor=1, configs=overrides)
    return CreateTopicsRequest(topics=(wanted,))


def delete(topic: str) -> DeleteTopicsRequest:
    """Delete a topic."""
    return DeleteTopicsRequest(timeout_ms=1_000, topics=(DeleteTopicState(name=topic),))


def describe(topic: str) -> MetadataRequest:
    """Of one topic, which is not created by that."""
    return MetadataRequest(topics=(MetadataRequestTopic(name=topic),), allow_auto_topic_creation=False)


def join(group: str, session_ms: int, member_id: str = "", rebalance_ms: int = 60_000) -> JoinGroupRequest:
    """A classic consumer."""
    return JoinGroupRequest(
        group_id=group,
        session_timeout_ms=session_ms,
        rebalance_timeout_ms=rebalance_ms,
        member_id=member_id,
        protocol_type="consumer",
        protocols=(JoinGroupRequestProtocol(name="range", metadata=b"\0\1\0\0\0\0\xff\xff\xff\xff"),),
    )


class Membership(NamedTuple):
    """Who is a member of what."""

    group: str
    generation: int
    member_id: str

    def heartbeat(self) -> HeartbeatRequest:
        """That it lives."""
        return HeartbeatRequest(group_id=self.group, generation_id=self.generation, member_id=self.member_id)

    def leave(self) -> LeaveGroupRequest:
        """That it does not."""
        return LeaveGroupRequest(group_id=self.group, members=(MemberIdentity(member_id=self.member_id),))


def joined(talk: Talk, group: str, session_ms: int, rebalance_ms: int = 60_000) -> Membership:
    """The one member of ``group``, in a stable generation."""
    answer = talk.ask(join(group, session_ms, rebalance_ms=rebalance_ms), NEWEST_JOIN)
    assert answer.error_code == ErrorCode.MEMBER_ID_REQUIRED, answer
    answer = talk.ask(join(group, session_ms, answer.member_id, rebalance_ms), NEWEST_JOIN)
    member = Membership(group, answer.generation_id, answer.member_id)
    sync = SyncGroupRequest(
        group_id=group,
        generation_id=member.generation,
        member_id=member.member_id,
        protocol_type="consumer",
        protocol_name="range",
    )
    talk.ask(sync)
    return member


def refused(talk: Talk, group: str, member: str = "nobody") -> int:
    """A heartbeat of a member that there is none of; the error."""
    error: int = talk.ask(Membership(group, 1, member).heartbeat()).error_code
    return error

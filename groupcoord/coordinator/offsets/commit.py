"""OffsetCommit. Sources: ``KafkaApis.handleOffsetCommitRequest`` and ``OffsetMetadataManager.commitOffset``."""

import uuid
from collections.abc import Iterable
from typing import NamedTuple

from groupcoord.coordinator import records
from groupcoord.coordinator.errors import emit_refusal, response_error
from groupcoord.coordinator.events import OffsetsCommitted
from groupcoord.coordinator.group import Group
from groupcoord.coordinator.group_shard import GroupCoordinatorShard, GroupOperation, GroupShard
from groupcoord.coordinator.offsets.store import CommittedOffset
from groupcoord.coordinator.runtime.state_machine import CoordinatorResult
from groupcoord.coordinator.topics_view import TopicsView
from groupcoord.core.api_error import ApiError
from groupcoord.core.effects import Call, TypedRecord
from groupcoord.core.handler_context import HandlerContext
from groupcoord.protocol.apis.offset_commit import (
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages import OffsetCommitRequest, OffsetCommitResponse

TOPIC_IDS_FROM = 10
GROUP_ID_NOT_FOUND_FROM = 9


class _Topic(NamedTuple):
    """The partitions of one topic of a request that the topic really has."""

    name: str
    topic_id: uuid.UUID | None
    partitions: list[OffsetCommitRequestPartition]


class _TopicAnswer(NamedTuple):
    """The answer for one topic."""

    name: str
    topic_id: uuid.UUID | None
    partitions: list[OffsetCommitResponsePartition]


class _Answer:
    """The response while it is put together: what the request layer refuses stands before what the coordinator says."""

    def __init__(self, by_id: bool) -> None:
        self._by_id = by_id
        self._refused: dict[object, _TopicAnswer] = {}
        self._answered: list[_TopicAnswer] = []

    def refused(self, name: str, topic_id: uuid.UUID | None) -> list[OffsetCommitResponsePartition]:
        """What is refused of the topic so far; from now on it is named, even if nothing is."""
        return self._refused.setdefault(topic_id if self._by_id else name, _TopicAnswer(name, topic_id, [])).partitions

    def add(self, topic: _Topic, codes: Iterable[ErrorCode]) -> None:
        """What the coordinator says of each partition of ``topic``.

        A topic that a request names twice is answered twice, unless something was refused: then answers are merged by topic.
        """
        partitions = [
            OffsetCommitResponsePartition(partition_index=asked.partition_index, error_code=code)
            for asked, code in zip(topic.partitions, codes, strict=True)
        ]
        if self._refused:
            self.refused(topic.name, topic.topic_id).extend(partitions)
        else:
            self._answered.append(_TopicAnswer(topic.name, topic.topic_id, partitions))

    def response(self) -> OffsetCommitResponse:
        return OffsetCommitResponse(
            topics=tuple(
                OffsetCommitResponseTopic(name=name, topic_id=topic_id, partitions=tuple(partitions))
                for name, topic_id, partitions in (*self._refused.values(), *self._answered)
            )
        )


class _Commit(NamedTuple):
    """A request, the partitions of it that exist, and its answer so far."""

    request: OffsetCommitRequest
    topics: list[_Topic]
    answer: _Answer

    def respond(self, code: ErrorCode) -> OffsetCommitResponse:
        """The answer that says ``code`` of every partition that exists."""
        for topic in self.topics:
            self.answer.add(topic, [code] * len(topic.partitions))
        return self.answer.response()


def offset_commit(
    shard: GroupShard, ctx: HandlerContext, call: Call, request: OffsetCommitRequest, topics: TopicsView
) -> None:
    """Answer ``call`` when the offsets are stored. If no partition of the request exists, the group is not even looked at."""
    by_id = call.version >= TOPIC_IDS_FROM
    answer = _Answer(by_id)
    known = [topic for asked in request.topics if (topic := _existing(asked, topics, answer, by_id)).partitions]
    if known:
        shard.write(ctx, call, _Commit(request, known, answer), _OPERATION)
    else:
        ctx.reply(call, answer.response())


def _existing(asked: OffsetCommitRequestTopic, topics: TopicsView, answer: _Answer, by_id: bool) -> _Topic:
    """The partitions of ``asked`` that exist; the others go into ``answer``."""
    name: str | None = asked.name
    topic_id = asked.topic_id
    missing = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if by_id:
        name = topics.topic_name(topic_id) if topic_id is not None else None
        missing = ErrorCode.UNKNOWN_TOPIC_ID if name is None else missing
    elif name:
        topic_id = topics.topic_id(name)
    count = topics.partition_count(name) if name else None
    if count is None:
        answer.refused(name or "", topic_id)
    good = []
    for partition in asked.partitions:
        if count is not None and 0 <= partition.partition_index < count:
            good.append(partition)
        else:
            said = OffsetCommitResponsePartition(partition_index=partition.partition_index, error_code=missing)
            answer.refused(name or "", topic_id).append(said)
    return _Topic(name or "", topic_id, good)


def _run(shard: GroupCoordinatorShard, ctx: HandlerContext, call: Call, commit: _Commit) -> CoordinatorResult:
    request = commit.request
    group = _group(shard, ctx, call, request)
    expires = None if request.retention_time_ms == -1 else _int64(ctx.now_ms + request.retention_time_ms)
    limit = shard.config.offset_metadata_max_bytes
    accepted: list[TypedRecord] = []
    results: list[tuple[_Topic, list[ErrorCode]]] = []
    for topic in commit.topics:
        codes: list[ErrorCode] = []
        results.append((topic, codes))
        for partition in topic.partitions:
            metadata = partition.committed_metadata or ""
            if _utf16_length(metadata) > limit:
                codes.append(ErrorCode.OFFSET_METADATA_TOO_LARGE)
                continue
            committed = CommittedOffset(
                offset=partition.committed_offset,
                leader_epoch=partition.committed_leader_epoch,
                metadata=metadata,
                commit_timestamp_ms=ctx.now_ms,
                expire_timestamp_ms=expires,
                topic_id=topic.topic_id,
            )
            accepted.append(records.offset_commit(group.group_id, topic.name, partition.partition_index, committed))
            codes.append(ErrorCode.NONE)

    def stored(later: HandlerContext) -> None:
        if accepted:
            later.emit(
                OffsetsCommitted,
                group=group.group_id,
                member=request.member_id,
                generation=request.generation_id_or_member_epoch,
                offsets=tuple((key.topic, key.partition, value.offset) for key, value, _ in accepted),
            )
        for topic, codes in results:
            commit.answer.add(topic, codes)
        later.reply(call, commit.answer.response())

    def failed(later: HandlerContext, error: ErrorCode) -> None:
        later.reply(call, commit.respond(response_error(error)))

    return CoordinatorResult(records=accepted, stored=stored, failed=failed)


def _group(shard: GroupCoordinatorShard, ctx: HandlerContext, call: Call, request: OffsetCommitRequest) -> Group:
    """The group that the offsets are for; its member is alive. Raises ApiError, in Kafka's order."""
    generation = request.generation_id_or_member_epoch
    group = shard.groups.get(request.group_id)
    if group is None:
        if generation < 0:
            return shard.create_group(ctx, request.group_id, simple=True)
        if call.version >= GROUP_ID_NOT_FOUND_FROM:
            raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"there is no group {request.group_id!r}")
        raise ApiError(ErrorCode.ILLEGAL_GENERATION, f"there is no group {request.group_id!r} with a generation")
    group.validate_offset_commit(ctx, call.version, request.member_id, request.group_instance_id, generation)
    return group


def _refused(ctx: HandlerContext, call: Call, commit: _Commit, refusal: ApiError) -> None:
    emit_refusal(ctx, call, commit.request.group_id, commit.request.member_id, refusal)
    ctx.reply(call, commit.respond(refusal.code))


_OPERATION = GroupOperation(_run, _refused)


def _int64(value: int) -> int:
    """``value`` as Java's ``long`` has it: a retention without end wraps, and the offset expires at once."""
    return (value + 2**63) % 2**64 - 2**63


def _utf16_length(text: str) -> int:
    """How long Java takes ``text`` to be: characters outside of the basic plane count twice."""
    return len(text) + sum(character > "\uffff" for character in text) if not text.isascii() else len(text)

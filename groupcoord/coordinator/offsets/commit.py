"""The OffsetCommit handler, and the code that it shares with TxnOffsetCommit.

Sources: ``KafkaApis.handleOffsetCommitRequest`` and ``OffsetMetadataManager.commitOffset``.
"""

import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Generic, NamedTuple, TypeVar

from groupcoord.coordinator import records
from groupcoord.coordinator.error_mapping import emit_refusal, response_error
from groupcoord.coordinator.events import OffsetsCommitted
from groupcoord.coordinator.group import AcceptPartition
from groupcoord.coordinator.group_coordinator_shard import GroupCoordinatorShard, GroupOperation, RuntimeShard
from groupcoord.coordinator.offsets.committed_offsets import CommittedOffset
from groupcoord.coordinator.runtime.coordinator_shard import CoordinatorResult
from groupcoord.coordinator.topics_view import TopicsView
from groupcoord.core.api_error import ApiError
from groupcoord.core.effect_collector import HandlerContext
from groupcoord.core.effects import Call, TypedRecord
from groupcoord.protocol.apis.offset_commit import (
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from groupcoord.protocol.apis.txn_offset_commit import TxnOffsetCommitRequestPartition, TxnOffsetCommitRequestTopic
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages import OffsetCommitRequest, OffsetCommitResponse, TxnOffsetCommitRequest

_new = tuple.__new__  # faster than the constructor of NamedTuple

_NONE, _TOO_LARGE = ErrorCode.NONE, ErrorCode.OFFSET_METADATA_TOO_LARGE  # enum lookups are slow in Python 3.11

TOPIC_IDS_FROM = 10
GROUP_ID_NOT_FOUND_FROM = 9


PartitionToCommit = OffsetCommitRequestPartition | TxnOffsetCommitRequestPartition


class TopicToCommit(NamedTuple):
    """The existing partitions of one topic in a request."""

    name: str
    topic_id: uuid.UUID | None
    partitions: Sequence[PartitionToCommit]


class TopicAnswer(NamedTuple):
    """The error of each requested partition of one topic."""

    name: str
    topic_id: uuid.UUID | None
    partitions: list[tuple[int, ErrorCode]]


class CommitAnswer:
    """Builds the response: partitions that the request layer refuses come before those that the coordinator handled."""

    def __init__(self, response: Callable[[Iterable[TopicAnswer]], Any], *, by_id: bool = False) -> None:
        self._by_id, self._response = by_id, response
        self._refused: dict[object, TopicAnswer] = {}
        self._answered: list[TopicAnswer] = []

    @property
    def has_refusals(self) -> bool:
        """Is any partition refused so far?"""
        return bool(self._refused)

    def refused(self, name: str, topic_id: uuid.UUID | None) -> list[tuple[int, ErrorCode]]:
        """The refused partitions of a topic, to append to; from now on the response has the topic, even without partitions."""
        return self._refused.setdefault(topic_id if self._by_id else name, TopicAnswer(name, topic_id, [])).partitions

    def add(self, topic: TopicToCommit, codes: Iterable[ErrorCode]) -> None:
        """Add the coordinator's error of each partition of ``topic``.

        A topic that is twice in the request is twice in the response, unless a partition was refused: then they are merged.
        """
        partitions = [(asked.partition_index, code) for asked, code in zip(topic.partitions, codes, strict=True)]
        if self._refused:
            self.refused(topic.name, topic.topic_id).extend(partitions)
        else:
            self._answered.append(TopicAnswer(topic.name, topic.topic_id, partitions))

    def response(self) -> Any:
        """Build the response."""
        return self._response((*self._refused.values(), *self._answered))


R = TypeVar("R", OffsetCommitRequest, TxnOffsetCommitRequest)


@dataclass(slots=True)
class Commit(Generic[R]):
    """A commit request, its existing partitions, and its response so far."""

    request: R
    topics: Sequence[TopicToCommit]
    answer: CommitAnswer

    def respond(self, code: ErrorCode) -> Any:
        """The response with ``code`` for every existing partition."""
        for topic in self.topics:
            self.answer.add(topic, [code] * len(topic.partitions))
        return self.answer.response()

    def refuse(self, ctx: HandlerContext, call: Call, refusal: ApiError) -> None:
        """Answer ``call`` with ``refusal``."""
        emit_refusal(ctx, call, self.request.group_id, self.request.member_id, refusal)
        ctx.reply(call, self.respond(refusal.code))


AllStored = Callable[[Sequence[TopicToCommit]], Any]
"""Returns the response in which every partition has no error."""

Said = Callable[[HandlerContext, tuple[tuple[str, int, int], ...]], None]
"""Emits the event of a commit with the stored (topic, partition, offset) triples."""


def commit_result(
    machine: GroupCoordinatorShard,
    ctx: HandlerContext,
    call: Call,
    commit: Commit[R],
    accept: AcceptPartition | None,
    said: Said,
    *,
    expires_ms: int | None = None,
    has_topic_ids: bool = False,
    all_stored: AllStored | None = None,
) -> CoordinatorResult:
    """The records of the accepted offsets, and the response when they are stored. Raises what ``accept`` raises.

    ``all_stored`` builds the response if no partition was refused.
    """
    group_id, limit, now_ms = commit.request.group_id, machine.config.offset_metadata_max_bytes, ctx.now_ms
    accepted: list[TypedRecord] = []
    results: list[tuple[TopicToCommit, list[ErrorCode]]] = []
    is_whole = not commit.answer.has_refusals
    for topic in commit.topics:
        name = topic.name
        topic_id = topic.topic_id if has_topic_ids else None
        record = records.offset_commits(group_id, name)
        codes: list[ErrorCode] = []
        results.append((topic, codes))
        for partition in topic.partitions:
            index, metadata = partition.partition_index, partition.committed_metadata or ""
            if metadata and _utf16_length(metadata) > limit:
                codes.append(_TOO_LARGE)
                is_whole = False
                continue
            if accept is not None:
                accept(name, topic.topic_id, index)
            offset, leader_epoch = partition.committed_offset, partition.committed_leader_epoch
            committed = _new(CommittedOffset, (offset, leader_epoch, metadata, now_ms, expires_ms, topic_id))
            accepted.append(record(index, committed))
            codes.append(_NONE)

    def stored(later: HandlerContext) -> None:
        if accepted:
            said(later, tuple([(key.topic, key.partition, value.offset) for key, value, _ in accepted]))
        if is_whole and all_stored is not None:
            later.reply(call, all_stored(commit.topics))
            return
        for topic, codes in results:
            commit.answer.add(topic, codes)
        later.reply(call, commit.answer.response())

    def failed(later: HandlerContext, error: ErrorCode) -> None:
        later.reply(call, commit.respond(response_error(error)))

    return CoordinatorResult(records=accepted, stored=stored, failed=failed)


def existing(
    asked: OffsetCommitRequestTopic | TxnOffsetCommitRequestTopic,
    topics: TopicsView,
    answer: CommitAnswer,
    topic_id: uuid.UUID | None = None,
    *,
    by_id: bool = False,
) -> TopicToCommit:
    """The existing partitions of ``asked``; the others are refused in ``answer``. ``by_id``: look the topic up by id."""
    name: str | None = asked.name
    missing = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if by_id:
        name = topics.topic_name(topic_id) if topic_id is not None else None
        missing = ErrorCode.UNKNOWN_TOPIC_ID if name is None else missing
    elif name:
        topic_id = topics.topic_id(name)
    count = topics.partition_count(name) if name else None
    if count is None:
        answer.refused(name or "", topic_id)
    good: list[PartitionToCommit] = []
    for partition in asked.partitions:
        if count is not None and 0 <= partition.partition_index < count:
            good.append(partition)
        else:
            answer.refused(name or "", topic_id).append((partition.partition_index, missing))
    return TopicToCommit(name or "", topic_id, good)


# --- OffsetCommit


def offset_commit(
    shard: RuntimeShard, ctx: HandlerContext, call: Call, request: OffsetCommitRequest, topics: TopicsView
) -> None:
    """Answer ``call`` when the offsets are stored. If no partition of the request exists, the group is not checked."""
    by_id = call.version >= TOPIC_IDS_FROM
    answer = CommitAnswer(_response, by_id=by_id)
    known = [
        topic
        for asked in request.topics
        if (topic := existing(asked, topics, answer, asked.topic_id, by_id=by_id)).partitions
    ]
    if known:
        shard.write(ctx, call, Commit(request, known, answer), _OPERATION)
    else:
        ctx.reply(call, answer.response())


def _response(topics: Iterable[TopicAnswer]) -> OffsetCommitResponse:
    return OffsetCommitResponse(
        topics=tuple(
            OffsetCommitResponseTopic(
                name=name,
                topic_id=topic_id,
                partitions=tuple(
                    OffsetCommitResponsePartition(partition_index=index, error_code=code) for index, code in partitions
                ),
            )
            for name, topic_id, partitions in topics
        )
    )


_CACHED_PARTITIONS = 32


def _all_stored(topics: Sequence[TopicToCommit]) -> OffsetCommitResponse:
    """The response without errors; cached if short, because consumers commit the same partitions again and again.

    Its encoding is cached, too: see ``server.connection.ResponseCache``.
    """
    asked = tuple(
        [(topic.name, topic.topic_id, tuple([one.partition_index for one in topic.partitions])) for topic in topics]
    )
    is_short = sum([len(partitions) for _, _, partitions in asked]) <= _CACHED_PARTITIONS
    return _cached_answer(asked) if is_short else _answer(asked)


def _answer(asked: tuple[tuple[str, uuid.UUID | None, tuple[int, ...]], ...]) -> OffsetCommitResponse:
    return _response(
        TopicAnswer(name, topic_id, [(index, _NONE) for index in partitions]) for name, topic_id, partitions in asked
    )


_cached_answer = lru_cache(maxsize=1024)(_answer)


def _run(
    machine: GroupCoordinatorShard, ctx: HandlerContext, call: Call, commit: Commit[OffsetCommitRequest]
) -> CoordinatorResult:
    request = commit.request
    accept = _validated(machine, ctx, call, request)
    expires = None if request.retention_time_ms == -1 else _int64(ctx.now_ms + request.retention_time_ms)

    def said(later: HandlerContext, offsets: tuple[tuple[str, int, int], ...]) -> None:
        later.emit(
            OffsetsCommitted,
            group=request.group_id,
            member=request.member_id,
            generation=request.generation_id_or_member_epoch,
            offsets=offsets,
        )

    return commit_result(
        machine, ctx, call, commit, accept, said, expires_ms=expires, has_topic_ids=True, all_stored=_all_stored
    )


def _validated(
    machine: GroupCoordinatorShard, ctx: HandlerContext, call: Call, request: OffsetCommitRequest
) -> AcceptPartition | None:
    """Validate the request in Kafka's order, and return the check of each partition. Raises ApiError."""
    generation = request.generation_id_or_member_epoch
    group = machine.groups.get(request.group_id)
    if group is None:
        if generation < 0:
            machine.create_group(ctx, request.group_id, simple=True)
            return None
        if call.version >= GROUP_ID_NOT_FOUND_FROM:
            raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"there is no group {request.group_id!r}")
        raise ApiError(ErrorCode.ILLEGAL_GENERATION, f"there is no group {request.group_id!r} with a generation")
    return group.validate_offset_commit(ctx, call.version, request.member_id, request.group_instance_id, generation)


_OPERATION = GroupOperation(_run, lambda ctx, call, commit, refusal: commit.refuse(ctx, call, refusal))


def _int64(value: int) -> int:
    """``value`` wrapped to Java's ``long``: a huge retention overflows, and the offset expires at once, as in Kafka."""
    return (value + 2**63) % 2**64 - 2**63


def _utf16_length(text: str) -> int:
    """The length of ``text`` in Java: characters outside of the basic plane count twice."""
    return len(text) + sum(character > "\uffff" for character in text) if not text.isascii() else len(text)

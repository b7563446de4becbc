"""The TxnOffsetCommit handler (KIP-98, KIP-447, KIP-890).

Sources: ``KafkaApis.handleTxnOffsetCommitRequest``, ``GroupCoordinatorService.commitTransactionalOffsets`` and
``OffsetMetadataManager.commitTransactionalOffset``.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import partial

from groupcoord.coordinator.error_mapping import response_error
from groupcoord.coordinator.events import TransactionalOffsetsPending
from groupcoord.coordinator.group import AcceptPartition
from groupcoord.coordinator.group_coordinator_shard import GroupCoordinatorShard, GroupOperation, RuntimeShard
from groupcoord.coordinator.offsets.commit import (
    Commit,
    CommitAnswer,
    TopicAnswer,
    commit_result,
    existing,
)
from groupcoord.coordinator.runtime.coordinator_shard import CoordinatorResult
from groupcoord.coordinator.runtime.shard import ShardState
from groupcoord.coordinator.topics_view import TopicsView
from groupcoord.core.api_error import ApiError
from groupcoord.core.effect_collector import HandlerContext
from groupcoord.core.effects import Call
from groupcoord.core.transaction_verification_types import TopicPartition, TransactionalWrite, VerifyTransaction
from groupcoord.protocol.apis.txn_offset_commit import TxnOffsetCommitResponsePartition, TxnOffsetCommitResponseTopic
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages import TxnOffsetCommitRequest, TxnOffsetCommitResponse

LOADING_KNOWN_FROM = 2
ABORTABLE_FROM = 4
ADDED_FROM = 5


def txn_offset_commit(
    shard: RuntimeShard,
    ctx: HandlerContext,
    call: Call,
    request: TxnOffsetCommitRequest,
    topics: TopicsView,
    verify: Callable[[], VerifyTransaction],
) -> None:
    """Answer ``call`` when the offsets are stored; they take effect when the transaction is committed.

    If no partition of the request exists, nothing else is checked. The partition of ``__consumer_offsets`` must be in the
    transaction, or is added to it, before the group is checked.
    """
    answer = CommitAnswer(partial(_response, call.version))
    known = [topic for asked in request.topics if (topic := existing(asked, topics, answer)).partitions]
    if not known:
        ctx.reply(call, answer.response())
        return
    commit = Commit(request, known, answer)
    if not request.group_id:
        commit.refuse(ctx, call, ApiError(ErrorCode.INVALID_GROUP_ID, "group_id is empty"))
        return
    operation: GroupOperation = GroupOperation(
        lambda machine, later, _, __: _run(machine, later, call, commit, topics),
        lambda later, _, __, refusal: commit.refuse(later, call, refusal),
    )
    here = shard.topic, shard.partition

    def verified(later: HandlerContext, errors: Mapping[TopicPartition, ErrorCode]) -> None:
        code = errors.get(here, ErrorCode.NONE)
        if code:
            why = f"{shard.topic}-{shard.partition} is not in the transaction of {request.transactional_id!r}: {code.name}"
            commit.refuse(later, call, ApiError(response_error(code), why))
        else:
            shard.write(later, call, commit, operation)

    if shard.state is ShardState.UNLOADED:
        verified(ctx, {})  # another broker leads the log; the write is refused below
        return
    write = TransactionalWrite(
        request.transactional_id,
        request.producer_id,
        request.producer_epoch,
        adds=call.version >= ADDED_FROM,
        gives_abortable=call.version >= ABORTABLE_FROM,
    )
    verify()(ctx, call, write, [here], verified)


def _response(version: int, topics: Iterable[TopicAnswer]) -> TxnOffsetCommitResponse:
    """The response; producers before v2 do not know COORDINATOR_LOAD_IN_PROGRESS."""

    def told(code: ErrorCode) -> ErrorCode:
        is_unknown = version < LOADING_KNOWN_FROM and code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        return ErrorCode.COORDINATOR_NOT_AVAILABLE if is_unknown else code

    return TxnOffsetCommitResponse(
        topics=tuple(
            TxnOffsetCommitResponseTopic(
                name=name,
                partitions=tuple(
                    TxnOffsetCommitResponsePartition(partition_index=index, error_code=told(code))
                    for index, code in partitions
                ),
            )
            for name, _, partitions in topics
        )
    )


def _run(
    machine: GroupCoordinatorShard,
    ctx: HandlerContext,
    call: Call,
    commit: Commit[TxnOffsetCommitRequest],
    topics: TopicsView,
) -> CoordinatorResult:
    request = commit.request
    accept = _validated(machine, ctx, request)
    for topic in commit.topics:
        # The partitions of a member are known by topic id.
        if accept is not None and topics.topic_id(topic.name) is None:
            raise ApiError(ErrorCode.ILLEGAL_GENERATION, f"topic {topic.name} is gone")

    def said(later: HandlerContext, offsets: tuple[tuple[str, int, int], ...]) -> None:
        later.emit(
            TransactionalOffsetsPending,
            group=request.group_id,
            member=request.member_id,
            generation=request.generation_id,
            transactional_id=request.transactional_id,
            producer_id=request.producer_id,
            producer_epoch=request.producer_epoch,
            offsets=offsets,
        )

    result = commit_result(machine, ctx, call, commit, accept, said)
    result.producer_id, result.producer_epoch = request.producer_id, request.producer_epoch
    return result


def _validated(
    machine: GroupCoordinatorShard, ctx: HandlerContext, request: TxnOffsetCommitRequest
) -> AcceptPartition | None:
    """Validate the request in Kafka's order, and return the check of each partition. Raises ApiError."""
    group = machine.groups.get(request.group_id)
    if group is None:
        if request.generation_id >= 0:
            raise ApiError(ErrorCode.ILLEGAL_GENERATION, f"there is no group {request.group_id!r} with a generation")
        group = machine.create_group(ctx, request.group_id, simple=True)
    return group.validate_transactional_offset_commit(
        request.member_id, request.group_instance_id, request.generation_id
    )

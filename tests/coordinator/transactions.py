"""Transactional producers in a World: they commit offsets and end transactions, and tests see what others read meanwhile."""

from collections.abc import Mapping, Sequence
from typing import Any

from groupcoord.core.effect_collector import HandlerContext
from groupcoord.core.effects import TransactionMarker
from groupcoord.core.events import AdminAction
from groupcoord.protocol.apis import ApiKey
from groupcoord.protocol.apis.txn_offset_commit import TxnOffsetCommitRequestPartition, TxnOffsetCommitRequestTopic
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages import TxnOffsetCommitRequest
from tests.coordinator.world import GROUP, Asked, Member, World

EPOCH = 3
"""The epoch of every producer."""

UNSTABLE = ErrorCode.UNSTABLE_OFFSET_COMMIT


def txn_commit(
    world: World,
    offsets: Mapping[tuple[str, int], int] | None = None,
    *,
    group: str = GROUP,
    producer_id: int = 7,
    generation: int = -1,
    member_id: str = "",
    instance: str | None = None,
    metadata: str | None = "",
    leader_epoch: int = -1,
    version: int = 5,
) -> Asked:
    """TxnOffsetCommit of (topic, partition) → offset; from outside of the group unless told otherwise."""
    topics: dict[str, list[TxnOffsetCommitRequestPartition]] = {}
    for (topic, partition), offset in ({("t", 0): 5} if offsets is None else offsets).items():
        topics.setdefault(topic, []).append(
            TxnOffsetCommitRequestPartition(
                partition_index=partition,
                committed_offset=offset,
                committed_metadata=metadata,
                committed_leader_epoch=leader_epoch,
            )
        )
    request = TxnOffsetCommitRequest(
        transactional_id=f"tx-{producer_id}",
        group_id=group,
        producer_id=producer_id,
        producer_epoch=EPOCH,
        topics=tuple(TxnOffsetCommitRequestTopic(name=name, partitions=tuple(found)) for name, found in topics.items()),
        generation_id=generation,
        member_id=member_id,
        group_instance_id=instance,
    )
    return world.ask(ApiKey.TXN_OFFSET_COMMIT, request, version=version)


def txn_commit_of(member: Member, offsets: Mapping[tuple[str, int], int] | None = None, **changes: Any) -> Asked:
    """The same as a member of the present generation."""
    terms: dict[str, Any] = {
        "generation": member.generation,
        "member_id": member.member_id,
        "instance": member.instance,
    }
    return txn_commit(member.world, offsets, **(terms | changes))


def end_transaction(world: World, producer_id: int = 7, *, committed: bool = True) -> list[str]:
    """The transaction ends in the shard of the group: the list has what became of the marker, as soon as it is known."""
    outcome: list[str] = []
    ctx = HandlerContext(world.now_ms, AdminAction("the transaction ends"))
    world.coordinator.shard_of(GROUP).complete_transaction(
        ctx,
        TransactionMarker(producer_id, EPOCH, coordinator_epoch=0, committed=committed),
        lambda _: outcome.append("stored"),
        lambda _, error: outcome.append(error.name),
    )
    world.carry_out(ctx.effects)
    return outcome


def fetch_stable(
    world: World, topics: Mapping[str, Sequence[int]] | None = None, *, version: int = 9
) -> dict[tuple[str, int], int | ErrorCode]:
    """(topic, partition) → committed offset or error, as one who must not see what a transaction may change."""
    names = {topic_id: name for name, topic_id in world.topics.ids.items()}
    answer = world.ask_offsets(topics, version=version, require_stable=True).answer
    return {
        (topic.name or names[topic.topic_id], partition.partition_index): ErrorCode(partition.error_code)
        or partition.committed_offset
        for topic in (answer.groups[0].topics if version >= 8 else answer.topics)
        for partition in topic.partitions
    }

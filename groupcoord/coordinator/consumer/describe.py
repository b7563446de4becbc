"""The ConsumerGroupDescribe handler.

Sources: ``GroupCoordinatorService.consumerGroupDescribe``, ``ConsumerGroup.asDescribedGroup``.
"""

import uuid
from collections.abc import Iterable, Mapping
from itertools import chain

from groupcoord.config.broker_config import BrokerConfig
from groupcoord.coordinator.consumer.consumer_group import require_consumer_group
from groupcoord.coordinator.consumer.member import NO_TARGET, ConsumerMember, Target
from groupcoord.coordinator.error_mapping import emit_refusal, error_message
from groupcoord.coordinator.group import serves_consumer_groups
from groupcoord.coordinator.group_admin import ALL_GROUP_OPERATIONS, NOT_ASKED_FOR, ShardOf, by_shard
from groupcoord.coordinator.group_coordinator_shard import CommittedView
from groupcoord.coordinator.topics_view import TopicsView
from groupcoord.core.api_error import ApiError
from groupcoord.core.effect_collector import HandlerContext
from groupcoord.core.effects import Call
from groupcoord.core.java_hash_order import TimelineMap, hash_set_order, string_hash, uuid_hash
from groupcoord.core.java_map import JavaMap
from groupcoord.protocol.apis.consumer_group_describe import Assignment, DescribedGroup, Member, TopicPartitions
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages import ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse

CLASSIC_MEMBER, CONSUMER_MEMBER = 0, 1  # KIP-1099


def consumer_group_describe(
    config: BrokerConfig,
    group_version: int,
    shard_of: ShardOf,
    ctx: HandlerContext,
    call: Call,
    request: ConsumerGroupDescribeRequest,
) -> None:
    """Answer ``call`` with the committed state of each group."""
    if not serves_consumer_groups(config, group_version):
        code = ErrorCode.UNSUPPORTED_VERSION
        refused = tuple(DescribedGroup(group_id=group_id, error_code=code) for group_id in request.group_ids)
        ctx.reply(call, ConsumerGroupDescribeResponse(groups=refused))
        return
    answers = [
        DescribedGroup(group_id="", error_code=ErrorCode.INVALID_GROUP_ID)
        for group_id in request.group_ids
        if not group_id
    ]
    for shard, group_ids in by_shard(shard_of, filter(None, request.group_ids)).items():
        for group_id in group_ids:
            try:
                described = _described(shard.committed, group_id, shard.machine.context.topics.view, call, request)
            except ApiError as refusal:
                emit_refusal(ctx, call, group_id, "", refusal)
                described = DescribedGroup(
                    group_id=group_id, error_code=refusal.code, error_message=error_message(refusal)
                )
            answers.append(described)
    ctx.reply(call, ConsumerGroupDescribeResponse(groups=tuple(answers)))


def _described(
    view: CommittedView, group_id: str, topics: TopicsView, call: Call, request: ConsumerGroupDescribeRequest
) -> DescribedGroup:
    group = require_consumer_group(view.group(group_id), group_id)
    found = group.snapshot(view.pending)
    counts: TimelineMap[str, int] = TimelineMap()
    for member in found.members:
        if member.server_assignor is not None:
            counts.put(member.server_assignor, counts.get(member.server_assignor, 0) + 1)
    asked_for = [name for name, _ in counts.in_order()]
    assignor = max(asked_for, key=counts.__getitem__, default=group.context.config.group_consumer_assignors[0])
    return DescribedGroup(
        group_id=group_id,
        group_state=found.state,
        group_epoch=found.epochs.group,
        assignment_epoch=found.epochs.assignment,
        assignor_name=assignor,
        members=tuple(
            _member(member, found.targets.get(member.member_id, NO_TARGET), topics, call.version)
            for member in found.members
        ),
        authorized_operations=ALL_GROUP_OPERATIONS if request.include_authorized_operations else NOT_ASKED_FOR,
    )


def _member(member: ConsumerMember, target: Target, topics: TopicsView, version: int) -> Member:
    has: JavaMap[uuid.UUID, list[int]] = JavaMap(uuid_hash)
    for topic_id, of_topic in chain(member.assigned.items(), member.revoking.items()):
        has.computed(topic_id, list).extend(of_topic)
    return Member(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.member_epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=tuple(hash_set_order(sorted(member.topics), string_hash)),
        subscribed_topic_regex=member.topic_regex,
        assignment=_assignment(dict(has.items()), topics),
        target_assignment=_assignment(target, topics),
        member_type=(CLASSIC_MEMBER if member.is_classic else CONSUMER_MEMBER) if version >= 1 else -1,
    )


def _assignment(partitions: Mapping[uuid.UUID, Iterable[int]], topics: TopicsView) -> Assignment:
    named = [(topic_id, topics.topic_name(topic_id), of_topic) for topic_id, of_topic in partitions.items()]
    return Assignment(
        topic_partitions=tuple(
            TopicPartitions(topic_id=topic_id, topic_name=name, partitions=tuple(of_topic))
            for topic_id, name, of_topic in named
            if name is not None
        )
    )

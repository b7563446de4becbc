"""ElectLeaders (versions 0–2), AlterPartitionReassignments (0–1) and ListPartitionReassignments (0).

They can be sent to any broker; the controller first plans the changes of all partitions of a request, then applies them.
Source: ``ControllerApis`` for a whole request, ``ReplicationControlManager`` for one partition.
"""

from groupcoord.broker.leader_election_and_isr import NO_LEADER, Election, PartitionState, reassigned, reverted
from groupcoord.broker.topic_store import Topic, TopicStore
from groupcoord.cluster.controller import ClusterController
from groupcoord.core.api_error import ApiError
from groupcoord.core.effect_collector import HandlerContext
from groupcoord.core.effects import Call
from groupcoord.core.java_hash_order import TimelineMap
from groupcoord.protocol.apis.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
    reassignments_refused,
)
from groupcoord.protocol.apis.elect_leaders import (
    PREFERRED,
    UNCLEAN,
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
    elections_refused,
)
from groupcoord.protocol.apis.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)
from groupcoord.protocol.errors import ErrorCode

_Plans = list[tuple[Topic, int, PartitionState]]
_ELECTIONS = {PREFERRED: Election.PREFERRED, UNCLEAN: Election.UNCLEAN}


def _apply(controller: ClusterController, ctx: HandlerContext, plans: _Plans) -> None:
    for topic, partition, after in plans:
        controller.apply(ctx, topic, partition, after)


# --- ElectLeaders


def handle_elect_leaders(
    controller: ClusterController, topics: TopicStore, ctx: HandlerContext, call: Call, request: ElectLeadersRequest
) -> None:
    """Elect the preferred leaders of partitions, or leaders for those that have none (unclean).

    A null list means all partitions; those that need no election are then left out of the response.
    """
    election = _ELECTIONS.get(request.election_type)
    if request.topic_partitions == ():
        ctx.reply(call, ElectLeadersResponse())
        return
    if request.timeout_ms <= 0:
        ctx.reply(call, elections_refused(request, ErrorCode.REQUEST_TIMED_OUT))
        return
    if election is None:
        text = f"Unknown election type {request.election_type}"
        ctx.reply(call, elections_refused(request, ErrorCode.INVALID_REQUEST, text))
        return
    plans: _Plans = []

    def result(name: str, partition: int) -> PartitionResult:
        try:
            plans.append(_elected(controller, topics, name, partition, election))
        except ApiError as refused:
            return PartitionResult(partition_id=partition, error_code=refused.code, error_message=refused.message)
        return PartitionResult(partition_id=partition)

    if request.topic_partitions is None:
        found = [
            (topic.name, [result(topic.name, partition) for partition in _partitions_in_order(topic)])
            for topic in topics.in_controllers_order()
        ]
        needed = [
            (name, [each for each in results if each.error_code != ErrorCode.ELECTION_NOT_NEEDED])
            for name, results in found
        ]
    else:
        needed = [
            (each.topic, [result(each.topic, one) for one in each.partitions]) for each in request.topic_partitions
        ]
    ctx.reply(
        call,
        ElectLeadersResponse(
            replica_election_results=tuple(
                ReplicaElectionResult(topic=name, partition_result=tuple(results)) for name, results in needed
            )
        ),
    )
    _apply(controller, ctx, plans)


def _partitions_in_order(topic: Topic) -> list[int]:
    """The partitions of ``topic`` in the order of Kafka's controller."""
    order: TimelineMap[int, None] = TimelineMap()
    for partition in range(len(topic.partitions)):
        order.put(partition, None)
    return [partition for partition, _ in order.in_order()]


def _elected(
    controller: ClusterController, topics: TopicStore, name: str, partition: int, election: Election
) -> tuple[Topic, int, PartitionState]:
    """The state of a partition after an election. Raises ApiError."""
    topic = topics.get(name)
    if topic is None:
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such topic as {name}")
    if not 0 <= partition < len(topic.partitions):
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such partition as {name}-{partition}")
    state = topic.metadata.partitions[partition]
    preferred = election is Election.PREFERRED
    if state.leader == state.replicas[0] if preferred else state.leader != NO_LEADER:
        raise ApiError(ErrorCode.ELECTION_NOT_NEEDED, ErrorCode.ELECTION_NOT_NEEDED.text)
    after = controller.planned(topic, state, state.isr, election)
    if after == state:
        error = ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE if preferred else ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
        raise ApiError(error, error.text)
    return topic, partition, after


# --- reassignments


def handle_alter_partition_reassignments(
    controller: ClusterController,
    topics: TopicStore,
    ctx: HandlerContext,
    call: Call,
    request: AlterPartitionReassignmentsRequest,
) -> None:
    """Start or cancel the reassignment of partitions.

    It completes when all new replicas have caught up with the leader.
    """
    if not request.topics:
        ctx.reply(call, AlterPartitionReassignmentsResponse(error_message=""))
        return
    if request.timeout_ms <= 0:
        ctx.reply(call, reassignments_refused(request, ErrorCode.REQUEST_TIMED_OUT))
        return
    plans: _Plans = []

    def result(name: str, asked: ReassignablePartition) -> ReassignablePartitionResponse:
        index = asked.partition_index
        try:
            plans.append(_reassigned(controller, topics, name, asked, request.allow_replication_factor_change))
        except ApiError as refused:
            return ReassignablePartitionResponse(
                partition_index=index, error_code=refused.code, error_message=refused.message
            )
        return ReassignablePartitionResponse(partition_index=index)

    ctx.reply(
        call,
        AlterPartitionReassignmentsResponse(
            allow_replication_factor_change=request.allow_replication_factor_change,
            responses=tuple(
                ReassignableTopicResponse(
                    name=topic.name, partitions=tuple(result(topic.name, each) for each in topic.partitions)
                )
                for topic in request.topics
            ),
        ),
    )
    _apply(controller, ctx, plans)


def _reassigned(
    controller: ClusterController, topics: TopicStore, name: str, asked: ReassignablePartition, may_change_factor: bool
) -> tuple[Topic, int, PartitionState]:
    """The state of a partition when the reassignment ``asked`` starts. Raises ApiError."""
    topic, partition = topics.get(name), asked.partition_index
    if topic is None:
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find a topic named {name}.")
    if not 0 <= partition < len(topic.partitions):
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find partition {name}:{partition}.")
    state = topic.metadata.partitions[partition]
    if asked.replicas is None:
        return topic, partition, _cancelled(controller, topic, partition, state)
    controller.check_replicas(asked.replicas)
    now, then = len(set(state.replicas) - set(state.removing)), len(asked.replicas)
    if not may_change_factor and now != then:
        text = f"The replication factor is changed from {now} to {then}"
        raise ApiError(ErrorCode.INVALID_REPLICATION_FACTOR, text)
    return (
        topic,
        partition,
        controller.planned(topic, reassigned(state, tuple(asked.replicas)), state.isr, Election.ONLINE),
    )


def _cancelled(controller: ClusterController, topic: Topic, partition: int, state: PartitionState) -> PartitionState:
    """The state of a partition when its reassignment is cancelled. Raises ApiError."""
    if not state.is_reassigning:
        raise ApiError(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS)
    before, isr = reverted(state)
    if not isr:
        if not topic.settings.unclean_leader_election_enable:
            text = (
                f"Unable to revert partition assignment for {topic.name}:{partition} because it would require an unclean "
                "leader election."
            )
            raise ApiError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, text)
        isr = before.replicas[:1]
    return controller.planned(topic, before, isr)


def handle_list_partition_reassignments(
    controller: ClusterController,
    _topics: TopicStore,
    ctx: HandlerContext,
    call: Call,
    request: ListPartitionReassignmentsRequest,
) -> None:
    """List the reassignments in progress, of the requested partitions, or of all for a null list."""
    ongoing = controller.reassigning()
    if request.topics is None:
        wanted = list(ongoing.items())
    else:
        named = {topic.name: topic for topic in ongoing}
        wanted = [
            (named[each.name], [one for one in each.partition_indexes if one in ongoing[named[each.name]]])
            for each in request.topics
            if each.name in named
        ]
    ctx.reply(
        call,
        ListPartitionReassignmentsResponse(
            topics=tuple(
                OngoingTopicReassignment(
                    name=topic.name, partitions=tuple(_ongoing(topic, each) for each in partitions)
                )
                for topic, partitions in wanted
                if partitions
            )
        ),
    )


def _ongoing(topic: Topic, partition: int) -> OngoingPartitionReassignment:
    replicas, adding, removing = topic.metadata.partitions[partition].assignment
    return OngoingPartitionReassignment(
        partition_index=partition, replicas=replicas, adding_replicas=adding, removing_replicas=removing
    )

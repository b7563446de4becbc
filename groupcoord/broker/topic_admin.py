"""CreateTopics (versions 2–7), DeleteTopics (1–6) and CreatePartitions (0–3).

The checks are those of Kafka's controller, in its order and with its messages. Source: ``ControllerApis`` for a whole request,
``ReplicationControlManager`` for one topic, ``DefaultAutoTopicCreationManager``.
"""

import uuid
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from groupcoord.broker import topic_config, topic_names
from groupcoord.broker.broker import Broker
from groupcoord.broker.broker_registry import BrokerRegistry
from groupcoord.broker.leader_election_and_isr import Replicas
from groupcoord.broker.topic_config import effective_texts
from groupcoord.broker.topic_store import Topic
from groupcoord.config.broker_config import BrokerConfig
from groupcoord.config.config_def import InvalidValueError
from groupcoord.core.api_error import ApiError
from groupcoord.core.effect_collector import HandlerContext
from groupcoord.core.effects import Call
from groupcoord.core.java_hash_order import hash_order
from groupcoord.partitioners.partitioners import signed
from groupcoord.protocol.apis.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)
from groupcoord.protocol.apis.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from groupcoord.protocol.apis.delete_topics import DeletableTopicResult, DeleteTopicsRequest, DeleteTopicsResponse
from groupcoord.protocol.errors import ErrorCode

UNSET = -1
NO_CONFIGS: Mapping[str, str] = {}

MOST_RECORDS_PER_REQUEST = 10_000
"""The maximum of records that a controller writes for one request: one per topic, partition and configuration."""

_MOST_PLACED = 1 << 28
"""A list of this many replicas does not fit into a heap of 1 GiB, Kafka's default: the controller runs out of memory."""


class _OutOfMemoryError(ApiError):
    """Kafka's controller runs out of memory while it places partitions. It fails the whole request, and changes nothing."""

    def __init__(self) -> None:
        super().__init__(ErrorCode.UNKNOWN_SERVER_ERROR)


class TopicPlan(NamedTuple):
    """A topic that passed all checks; ``replicas`` are those of each of its partitions."""

    name: str
    replicas: list[Replicas]
    configs: dict[str, str]


def plan_topic(broker: Broker, topic: CreatableTopic) -> TopicPlan:
    """Check ``topic`` and place its replicas. Raises Refused."""
    name = topic.name
    fault = topic_names.fault_text(name)
    if fault is not None:
        raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, fault)
    if name in broker.topics:
        raise ApiError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
    neighbour = broker.topics.colliding(name)
    if neighbour is not None:
        text = f"Topic '{name}' collides with existing topic: {neighbour}"
        raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, text)
    configs = _checked_configs(topic.configs, broker.config)
    return TopicPlan(name, _placed(broker, topic), configs)


def _checked_configs(given: Sequence[CreatableTopicConfig], config: BrokerConfig) -> dict[str, str]:
    """The checked configurations; the last of the same name wins. Raises Refused."""
    nulls = [one.name for one in given if one.value is None]
    if nulls:
        raise ApiError(ErrorCode.INVALID_CONFIG, f"Null value not supported for topic configs: {','.join(nulls)}")
    configs = {one.name: one.value for one in given if one.value is not None}
    try:
        topic_config.check(configs, config)
    except InvalidValueError as problem:
        raise ApiError(ErrorCode.INVALID_CONFIG, str(problem)) from problem
    return configs


def _placed(broker: Broker, topic: CreatableTopic) -> list[Replicas]:
    """The replicas of each partition. Raises Refused."""
    if topic.assignments:
        return _assigned(broker.cluster, topic)
    if topic.replication_factor < UNSET or topic.replication_factor == 0:
        text = "Replication factor must be larger than 0, or -1 to use the default value."
        raise ApiError(ErrorCode.INVALID_REPLICATION_FACTOR, text)
    if topic.num_partitions < UNSET or topic.num_partitions == 0:
        text = "Number of partitions was set to an invalid non-positive value."
        raise ApiError(ErrorCode.INVALID_PARTITIONS, text)
    config = broker.config
    partitions = config.num_partitions if topic.num_partitions == UNSET else topic.num_partitions
    replicas = config.default_replication_factor if topic.replication_factor == UNSET else topic.replication_factor
    return broker.cluster.place(config, partitions, replicas)


def _assigned(cluster: BrokerRegistry, topic: CreatableTopic) -> list[Replicas]:
    if topic.replication_factor != UNSET:
        text = "A manual partition assignment was specified, but replication factor was not set to -1."
        raise ApiError(ErrorCode.INVALID_REQUEST, text)
    if topic.num_partitions != UNSET:
        text = "A manual partition assignment was specified, but numPartitions was not set to -1."
        raise ApiError(ErrorCode.INVALID_REQUEST, text)
    placed: dict[int, Replicas] = {}
    replication_factor = None
    for assignment in topic.assignments:
        index = assignment.partition_index
        if index in placed:
            text = f"Found multiple manual partition assignments for partition {index}"
            raise ApiError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, text)
        cluster.check_new_partition(index, assignment.broker_ids, replication_factor)
        replication_factor = len(assignment.broker_ids)
        placed[index] = tuple(assignment.broker_ids)
    if placed.keys() != set(range(len(placed))):
        text = "partitions should be a consecutive 0-based integer sequence"
        raise ApiError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, text)
    return [placed[index] for index in range(len(placed))]


def create_automatically(broker: Broker, now_ms: int, names: Iterable[str]) -> None:
    """Auto-create the topics ``names``; one that cannot be created is skipped without an error.

    While the controller is away they are noted for later.
    """
    if not broker.cluster.has_controller:
        broker.uncreated.update(dict.fromkeys(names, now_ms))
        return
    for name in names:
        try:
            if name != topic_names.CLUSTER_METADATA:
                create_topic(broker, now_ms, name)
        except ApiError:
            continue


def create_topic(
    broker: Broker, now_ms: int, name: str, partitions: int = UNSET, configs: Mapping[str, str] = NO_CONFIGS
) -> Topic:
    """Create a topic with ``configs``; an internal topic gets Kafka's own settings. Raises Refused."""
    replicas, internal = UNSET, dict[str, str]()
    if partitions == UNSET and name in topic_names.INTERNAL:
        partitions, replicas, internal = topic_config.internal_topic(name, broker.config)
    given = tuple(CreatableTopicConfig(name=each, value=value) for each, value in configs.items())
    topic = CreatableTopic(
        name=name, num_partitions=partitions, replication_factor=replicas, assignments=(), configs=given
    )
    plan = plan_topic(broker, topic)
    return broker.topics.create(name, len(plan.replicas), plan.configs | internal, now_ms, plan.replicas)


_FIRST_VERSION_WITH_DELETION_DISABLED = 3
_DUPLICATE_NAME = "Duplicate topic name."
_TOO_LARGE = "Unable to perform excessively large batch operation."
_UNKNOWN_ID = "This server does not host this topic ID."


def handle_create_topics(broker: Broker, ctx: HandlerContext, call: Call, request: CreateTopicsRequest) -> None:
    """Create topics. Results come in the order of the request, then duplicates, then topics with a forbidden name."""
    try:
        results = _create_topics(broker, ctx, request)
    except ApiError as refused:
        results = [_not_created(topic.name, refused) for topic in request.topics]
    ctx.reply(call, CreateTopicsResponse(topics=tuple(results)))


def _check_time(timeout_ms: int, *, work: bool) -> None:
    """Raises REQUEST_TIMED_OUT for a timeout of zero or less, if there is any ``work`` for the controller."""
    if work and timeout_ms <= 0:
        raise ApiError(ErrorCode.REQUEST_TIMED_OUT)


def _create_topics(broker: Broker, ctx: HandlerContext, request: CreateTopicsRequest) -> list[CreatableTopicResult]:
    times = Counter(topic.name for topic in request.topics)
    wanted = [topic for topic in request.topics if times[topic.name] == 1]
    forbidden = [topic.name for topic in wanted if topic.name == topic_names.CLUSTER_METADATA]
    wanted = [topic for topic in wanted if topic.name != topic_names.CLUSTER_METADATA]
    _check_time(request.timeout_ms, work=bool(wanted))
    partitions = sum(_planned_partitions(topic, broker.config.num_partitions) for topic in wanted)
    if signed(partitions) > MOST_RECORDS_PER_REQUEST:  # Kafka's sum is an int, which overflows
        text = "Excessively large number of partitions per request."
        raise ApiError(ErrorCode.POLICY_VIOLATION, text)
    outcomes = [_planned(broker, topic) for topic in wanted]
    plans = [outcome for outcome in outcomes if isinstance(outcome, TopicPlan)]
    if sum(1 + len(plan.configs) + len(plan.replicas) for plan in plans) > MOST_RECORDS_PER_REQUEST:
        raise ApiError(ErrorCode.POLICY_VIOLATION, _TOO_LARGE)
    results = [
        _created(broker, outcome, None if request.validate_only else ctx.now_ms)
        if isinstance(outcome, TopicPlan)
        else outcome
        for outcome in outcomes
    ]
    duplicate = ApiError(ErrorCode.INVALID_REQUEST, _DUPLICATE_NAME)
    results += [_not_created(name, duplicate) for name in hash_order(name for name in times if times[name] > 1)]
    for name in forbidden:
        text = f"Creation of internal topic {name} is prohibited."
        results.append(_not_created(name, ApiError(ErrorCode.INVALID_REQUEST, text)))
    return results


def _planned_partitions(topic: CreatableTopic, default: int) -> int:
    """The number of partitions that a topic asks for, before it is checked."""
    if topic.assignments:
        return len(topic.assignments)
    return default if topic.num_partitions == UNSET else max(topic.num_partitions, 0)


def _planned(broker: Broker, topic: CreatableTopic) -> TopicPlan | CreatableTopicResult:
    try:
        if (
            not topic.assignments
            and _planned_partitions(topic, broker.config.num_partitions) > MOST_RECORDS_PER_REQUEST
        ):
            # Their sum has overflowed, so that there are more than 2^31 of them.
            plan_topic(broker, replace(topic, num_partitions=1))
            raise _OutOfMemoryError
        return plan_topic(broker, topic)
    except _OutOfMemoryError:
        raise
    except ApiError as refused:
        return _not_created(topic.name, refused)


def _not_created(name: str, refused: ApiError) -> CreatableTopicResult:
    return CreatableTopicResult(name=name, error_code=refused.code, error_message=refused.message)


def _created(broker: Broker, plan: TopicPlan, now_ms: int | None) -> CreatableTopicResult:
    """Create the topic at ``now_ms``; None: only validate, and return an id that is not stored."""
    if now_ms is None:
        topic_id = broker.topics.free_id()
    else:
        topic = broker.topics.create(plan.name, len(plan.replicas), plan.configs, now_ms, plan.replicas)
        topic_id = topic.topic_id
    return CreatableTopicResult(
        name=plan.name,
        topic_id=topic_id,
        num_partitions=len(plan.replicas),
        replication_factor=len(plan.replicas[0]),
        configs=tuple(
            CreatableTopicConfigs(name=config.name, value=config.text, config_source=config.source)
            for config in effective_texts(plan.configs, broker.config)
        ),
    )


def handle_delete_topics(broker: Broker, ctx: HandlerContext, call: Call, request: DeleteTopicsRequest) -> None:
    """Delete topics, by name or id.

    The order of the results is free: Kafka shuffles them, so that a client cannot tell missing topics from those it may not
    see. Here they come in the order of the checks.
    """
    try:
        if not broker.config.delete_topic_enable:
            old = call.version < _FIRST_VERSION_WITH_DELETION_DISABLED
            raise ApiError(ErrorCode.INVALID_REQUEST if old else ErrorCode.TOPIC_DELETION_DISABLED)
        results = _delete_topics(broker, ctx, request)
    except ApiError as refused:
        results = [_not_deleted(topic.name, topic.topic_id, refused) for topic in request.topics]
    ctx.reply(call, DeleteTopicsResponse(responses=tuple(results)))


def _delete_topics(broker: Broker, ctx: HandlerContext, request: DeleteTopicsRequest) -> list[DeletableTopicResult]:
    """The result for each topic. Raises Refused."""
    # 1. Topics with both name and id or neither, and duplicates.
    results, states = [], request.topics
    for state in states:
        if state.name is not None and state.topic_id is not None:
            text = "You may not specify both topic name and topic id."
            results.append(_not_deleted(state.name, state.topic_id, ApiError(ErrorCode.INVALID_REQUEST, text)))
        elif state.name is None and state.topic_id is None:
            text = "Neither topic name nor id were specified."
            results.append(_not_deleted(None, None, ApiError(ErrorCode.INVALID_REQUEST, text)))
    named = Counter(state.name for state in states if state.name is not None and state.topic_id is None)
    by_id = Counter(state.topic_id for state in states if state.topic_id is not None and state.name is None)
    duplicate_name = ApiError(ErrorCode.INVALID_REQUEST, _DUPLICATE_NAME)
    results += [_not_deleted(name, None, duplicate_name) for name, times in named.items() if times > 1]
    duplicate_id = ApiError(ErrorCode.INVALID_REQUEST, "Duplicate topic id.")
    results += [_not_deleted(None, topic_id, duplicate_id) for topic_id, times in by_id.items() if times > 1]
    # 2. Unknown ids and names, and a topic that is requested by both.
    single_ids = [topic_id for topic_id, times in by_id.items() if times == 1]
    single_names = [name for name, times in named.items() if times == 1]
    _check_time(request.timeout_ms, work=bool(single_ids or single_names))
    doomed: dict[uuid.UUID, Topic] = {}
    for topic_id in single_ids:
        topic = broker.topics.by_id(topic_id)
        if topic is None:
            results.append(_not_deleted(None, topic_id, ApiError(ErrorCode.UNKNOWN_TOPIC_ID, _UNKNOWN_ID)))
        else:
            doomed[topic_id] = topic
    for name in single_names:
        topic = broker.topics.get(name)
        if topic is None:
            error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            results.append(_not_deleted(name, None, ApiError(error, error.text)))
        elif topic.topic_id in by_id:
            doomed.pop(topic.topic_id, None)
            text = "The provided topic name maps to an ID that was already supplied."
            results.append(_not_deleted(name, topic.topic_id, ApiError(ErrorCode.INVALID_REQUEST, text)))
        else:
            doomed[topic.topic_id] = topic
    # 3. The others are deleted.
    for topic in doomed.values():
        broker.topics.delete(topic.name)
        results.append(DeletableTopicResult(name=topic.name, topic_id=topic.topic_id))
    if doomed:
        broker.topics_deleted(ctx, list(doomed.values()))
    return results


def _not_deleted(name: str | None, topic_id: uuid.UUID | None, refused: ApiError) -> DeletableTopicResult:
    return DeletableTopicResult(name=name, topic_id=topic_id, error_code=refused.code, error_message=refused.message)


def handle_create_partitions(broker: Broker, ctx: HandlerContext, call: Call, request: CreatePartitionsRequest) -> None:
    """Add partitions to topics. Duplicates come first, then the topics in the order of Java's hash codes."""
    try:
        results = _create_partitions(broker, request)
    except ApiError as refused:
        results = [_not_added(topic.name, refused) for topic in request.topics]
    ctx.reply(call, CreatePartitionsResponse(results=tuple(results)))


def _create_partitions(broker: Broker, request: CreatePartitionsRequest) -> list[CreatePartitionsTopicResult]:
    times = Counter(topic.name for topic in request.topics)
    duplicate = ApiError(ErrorCode.INVALID_REQUEST, _DUPLICATE_NAME)
    results = [_not_added(name, duplicate) for name in hash_order(name for name in times if times[name] > 1)]
    asked = {topic.name: topic for topic in request.topics}
    single = [name for name in hash_order(times) if times[name] == 1]
    _check_time(request.timeout_ms, work=bool(single))
    room = MOST_RECORDS_PER_REQUEST
    plans: list[tuple[Topic, Sequence[Replicas]]] = []
    for name in single:
        try:
            topic = broker.topics.get(name)
            if topic is None:
                raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            added = _additional_partitions(broker, topic, asked[name], room)
            # Kafka keeps the partitions that it created before it reached the limit.
            plans.append((topic, added[:room]))
            if len(added) > room:
                room = 0
                raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)
            room -= len(added)
        except _OutOfMemoryError:
            raise
        except ApiError as refused:
            results.append(_not_added(name, refused))
        else:
            results.append(CreatePartitionsTopicResult(name=name))
    if len(single) > MOST_RECORDS_PER_REQUEST:  # the list of results has the same limit as that of records
        raise ApiError(ErrorCode.POLICY_VIOLATION, _TOO_LARGE)
    if not request.validate_only:
        for topic, added in plans:
            topic.add_partitions(len(added), added)
    return results


def _additional_partitions(broker: Broker, topic: Topic, asked: CreatePartitionsTopic, most: int) -> Sequence[Replicas]:
    """The replicas of the added partitions, at most ``most`` + 1 of them. Raises Refused, _OutOfMemoryError."""
    present = len(topic.partitions)
    if asked.count == present:
        raise ApiError(ErrorCode.INVALID_PARTITIONS, f"Topic already has {present} partition(s).")
    if asked.count < present:
        text = f"The topic {asked.name} currently has {present} partition(s); {asked.count} would not be an increase."
        raise ApiError(ErrorCode.INVALID_PARTITIONS, text)
    added = asked.count - present
    replication_factor = len(topic.metadata.replicas[0])
    if asked.assignments is None:
        placed = broker.cluster.place(broker.config, min(added, most + 1), replication_factor)
        if added >= _MOST_PLACED:
            raise _OutOfMemoryError
        return placed
    if len(asked.assignments) != added:
        text = (
            f"Attempted to add {added} additional partition(s), but only {len(asked.assignments)} assignment(s) "
            "were specified."
        )
        raise ApiError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, text)
    for partition, assignment in enumerate(asked.assignments, present):
        broker.cluster.check_new_partition(partition, assignment.broker_ids, replication_factor)
    return [tuple(assignment.broker_ids) for assignment in asked.assignments]


def _not_added(name: str, refused: ApiError) -> CreatePartitionsTopicResult:
    return CreatePartitionsTopicResult(name=name, error_code=refused.code, error_message=refused.message)

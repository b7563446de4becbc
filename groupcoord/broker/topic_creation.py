"""Creating one topic: every check Kafka's controller makes, in its order and words, and then the topic itself.

Source: ``ReplicationControlManager.createTopic`` and ``DefaultAutoTopicCreationManager``.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from groupcoord.broker import topic_config, topic_names
from groupcoord.broker.broker import Broker
from groupcoord.broker.broker_registry import BrokerRegistry, Replicas
from groupcoord.broker.topics import Topic
from groupcoord.config.broker_config import BrokerConfig
from groupcoord.config.config_def import InvalidValueError
from groupcoord.core.api_error import ApiError
from groupcoord.protocol.apis.create_topics import CreatableTopic, CreatableTopicConfig
from groupcoord.protocol.errors import ErrorCode

UNSET = -1


class TopicPlan(NamedTuple):
    """A topic that may be created; ``replicas`` are those of each of its partitions."""

    name: str
    replicas: list[Replicas]
    configs: dict[str, str]


def plan_topic(broker: Broker, topic: CreatableTopic) -> TopicPlan:
    """What creating ``topic`` comes to. Raises Refused."""
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
    """The configurations, of which a later one of the same name has won. Raises Refused."""
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
    """Where each partition has its replicas. Raises Refused."""
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
        cluster.check_replicas(assignment.broker_ids, replication_factor)
        replication_factor = len(assignment.broker_ids)
        placed[index] = tuple(assignment.broker_ids)
    if placed.keys() != set(range(len(placed))):
        text = "partitions should be a consecutive 0-based integer sequence"
        raise ApiError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, text)
    return [placed[index] for index in range(len(placed))]


def create_automatically(broker: Broker, now_ms: int, names: Iterable[str]) -> None:
    """Create the topics ``names`` that a client asked about; one that cannot be created is skipped without an error."""
    for name in names:
        try:
            if name != topic_names.CLUSTER_METADATA:
                create_topic(broker, now_ms, name)
        except ApiError:
            continue


def create_topic(broker: Broker, now_ms: int, name: str, partitions: int = UNSET) -> Topic:
    """Create a topic with the broker's defaults, or, if it is one of Kafka's own, as Kafka creates that. Raises Refused."""
    replicas, configs = UNSET, dict[str, str]()
    if partitions == UNSET and name in topic_names.INTERNAL:
        partitions, replicas, configs = topic_config.internal_topic(name, broker.config)
    topic = CreatableTopic(
        name=name, num_partitions=partitions, replication_factor=replicas, assignments=(), configs=()
    )
    plan = plan_topic(broker, topic)
    return broker.topics.create(name, len(plan.replicas), configs, now_ms, plan.replicas)

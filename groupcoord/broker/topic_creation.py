"""Creating one topic: every check Kafka's controller makes, in its order and words, and then the topic itself.

Source: ``ReplicationControlManager.createTopic`` and ``DefaultAutoTopicCreationManager``.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from groupcoord.broker import topic_config, topic_names
from groupcoord.broker.refused import Refused
from groupcoord.broker.topics import Topic
from groupcoord.config.settings import BrokerConfig
from groupcoord.config.values import InvalidValueError
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig

if TYPE_CHECKING:
    from groupcoord.broker.broker import Broker

UNSET = -1


class Plan(NamedTuple):
    """A topic that may be created."""

    name: str
    partitions: int
    configs: dict[str, str]


def plan_topic(broker: "Broker", topic: CreatableTopic) -> Plan:
    """What creating ``topic`` comes to. Raises Refused."""
    name = topic.name
    fault = topic_names.fault_text(name)
    if fault is not None:
        raise Refused(ErrorCode.INVALID_TOPIC_EXCEPTION, fault)
    if name in broker.topics:
        raise Refused(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
    neighbour = broker.topics.colliding(name)
    if neighbour is not None:
        text = f"Topic '{name}' collides with existing topic: {neighbour}"
        raise Refused(ErrorCode.INVALID_TOPIC_EXCEPTION, text)
    configs = _checked_configs(topic.configs, broker.config)
    return Plan(name, _partition_count(topic, broker.config), configs)


def _checked_configs(given: Sequence[CreatableTopicConfig], config: BrokerConfig) -> dict[str, str]:
    """The configurations, of which a later one of the same name has won. Raises Refused."""
    nulls = [one.name for one in given if one.value is None]
    if nulls:
        raise Refused(ErrorCode.INVALID_CONFIG, f"Null value not supported for topic configs: {','.join(nulls)}")
    configs = {one.name: one.value for one in given if one.value is not None}
    try:
        topic_config.check(configs, config)
    except InvalidValueError as problem:
        raise Refused(ErrorCode.INVALID_CONFIG, str(problem)) from problem
    return configs


def _partition_count(topic: CreatableTopic, config: BrokerConfig) -> int:
    if topic.assignments:
        return _assigned_count(topic, config.node_id)
    if topic.replication_factor < UNSET or topic.replication_factor == 0:
        text = "Replication factor must be larger than 0, or -1 to use the default value."
        raise Refused(ErrorCode.INVALID_REPLICATION_FACTOR, text)
    if topic.num_partitions < UNSET or topic.num_partitions == 0:
        text = "Number of partitions was set to an invalid non-positive value."
        raise Refused(ErrorCode.INVALID_PARTITIONS, text)
    replicas = config.default_replication_factor if topic.replication_factor == UNSET else topic.replication_factor
    if replicas > 1:
        text = (
            f"Unable to replicate the partition {replicas} time(s): The target replication factor of {replicas} cannot be "
            "reached because only 1 broker(s) are registered or some brokers have all their log directories cordoned."
        )
        raise Refused(ErrorCode.INVALID_REPLICATION_FACTOR, text)
    return config.num_partitions if topic.num_partitions == UNSET else topic.num_partitions


def _assigned_count(topic: CreatableTopic, node_id: int) -> int:
    if topic.replication_factor != UNSET:
        text = "A manual partition assignment was specified, but replication factor was not set to -1."
        raise Refused(ErrorCode.INVALID_REQUEST, text)
    if topic.num_partitions != UNSET:
        text = "A manual partition assignment was specified, but numPartitions was not set to -1."
        raise Refused(ErrorCode.INVALID_REQUEST, text)
    seen: set[int] = set()
    for assignment in topic.assignments:
        index = assignment.partition_index
        if index in seen:
            text = f"Found multiple manual partition assignments for partition {index}"
            raise Refused(ErrorCode.INVALID_REPLICA_ASSIGNMENT, text)
        check_replicas(assignment.broker_ids, node_id)
        seen.add(index)
    if seen != set(range(len(seen))):
        text = "partitions should be a consecutive 0-based integer sequence"
        raise Refused(ErrorCode.INVALID_REPLICA_ASSIGNMENT, text)
    return len(seen)


def check_replicas(broker_ids: Sequence[int], node_id: int) -> None:
    """Can a partition have its replicas there? Raises Refused."""
    if not broker_ids:
        text = "The manual partition assignment includes an empty replica list."
        raise Refused(ErrorCode.INVALID_REPLICA_ASSIGNMENT, text)
    previous = None
    for broker_id in sorted(broker_ids):
        if broker_id != node_id:
            text = f"The manual partition assignment includes broker {broker_id}, but no such broker is registered."
            raise Refused(ErrorCode.INVALID_REPLICA_ASSIGNMENT, text)
        if broker_id == previous:
            text = f"The manual partition assignment includes the broker {broker_id} more than once."
            raise Refused(ErrorCode.INVALID_REPLICA_ASSIGNMENT, text)
        previous = broker_id


def create_automatically(broker: "Broker", now_ms: int, names: Iterable[str]) -> None:
    """Create topics that somebody asked about; one that cannot be created is not, and nobody hears of it."""
    for name in names:
        try:
            if name != topic_names.CLUSTER_METADATA:
                create_topic(broker, now_ms, name)
        except Refused:
            continue


def create_topic(broker: "Broker", now_ms: int, name: str, partitions: int = UNSET) -> Topic:
    """Create a topic with the broker's defaults, or, if it is one of Kafka's own, as Kafka creates that. Raises Refused.

    Deviation: Kafka's own topics have one replica, whatever their replication factor is configured to be; a lone broker
    of Kafka's waits for others until it can create them.
    """
    replicas, configs = UNSET, dict[str, str]()
    if partitions == UNSET and name in topic_names.INTERNAL:
        replicas = 1
        partitions, configs = _internal_topic(name, broker.config)
    topic = CreatableTopic(
        name=name, num_partitions=partitions, replication_factor=replicas, assignments=(), configs=()
    )
    plan = plan_topic(broker, topic)
    return broker.topics.create(name, plan.partitions, configs, now_ms)


def _internal_topic(name: str, config: BrokerConfig) -> tuple[int, dict[str, str]]:
    """How many partitions and which configurations one of Kafka's own topics has."""
    prefix = _PREFIXES[name]
    configs = {**_INTERNAL_CONFIGS[name], "segment.bytes": str(config[f"{prefix}.segment.bytes"])}
    if name != topic_names.CONSUMER_OFFSETS:
        configs["min.insync.replicas"] = str(config[f"{prefix}.min.isr"])
    return int(str(config[f"{prefix}.num.partitions"])), configs


_PREFIXES = {
    topic_names.CONSUMER_OFFSETS: "offsets.topic",
    topic_names.TRANSACTION_STATE: "transaction.state.log",
    topic_names.SHARE_GROUP_STATE: "share.coordinator.state.topic",
}
_INTERNAL_CONFIGS = {
    topic_names.CONSUMER_OFFSETS: {"cleanup.policy": "compact", "compression.type": "producer"},
    topic_names.TRANSACTION_STATE: {
        "cleanup.policy": "compact",
        "compression.type": "uncompressed",
        "unclean.leader.election.enable": "false",
    },
    topic_names.SHARE_GROUP_STATE: {"cleanup.policy": "delete", "compression.type": "producer", "retention.ms": "-1"},
}

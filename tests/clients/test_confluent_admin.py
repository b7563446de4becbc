"""librdkafka's administration: groups and their offsets, topics, partitions, configs."""

from collections.abc import Callable

import pytest
from confluent_kafka import (
    ConsumerGroupState,
    ConsumerGroupTopicPartitions,
    ConsumerGroupType,
    IsolationLevel,
    KafkaException,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import (
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

from tests.clients.cluster import Cluster
from tests.clients.conftest import MakeMember
from tests.clients.members import Flavour
from tests.clients.support import PATIENCE_S, eventually, unique

COOPERATIVE = Flavour("confluent", "cooperative-sticky")
RANGE = Flavour("confluent", "range")


def refused_as(name: str, ask: Callable[[], object]) -> bool:
    """Does ``ask`` fail with the error that librdkafka calls ``name``? Raises KafkaException for another one."""
    try:
        ask()
    except KafkaException as refusal:
        if refusal.args[0].name() != name:
            raise
        return True
    return False


def test_a_living_group_is_described(cluster: Cluster, group: str, member: MakeMember) -> None:
    topic = cluster.topic(partitions=2)
    one = member(RANGE, topic, client_id="one", instance_id="static one")
    two = member(RANGE, topic, client_id="two")
    eventually(lambda: len(one.owned) == len(two.owned) == 1, saying="both own one partition")

    described = cluster.group(group)

    assert described.group_id == group
    assert not described.is_simple_consumer_group
    assert described.state == ConsumerGroupState.STABLE
    assert described.type == ConsumerGroupType.CLASSIC
    assert described.partition_assignor == "range"
    assert described.coordinator.id in cluster.admin.list_topics().brokers
    assert f"{described.coordinator.host}:{described.coordinator.port}" == cluster.bootstrap
    members = {each.client_id: each for each in described.members}
    assert {name: each.group_instance_id for name, each in members.items()} == {"one": "static one", "two": None}
    assert members["one"].member_id.startswith("static one-")
    assert members["two"].member_id.startswith("two-")
    assert {each.host for each in members.values()} == {"/127.0.0.1"}
    assert assignment(members["one"]) == one.owned
    assert assignment(members["two"]) == two.owned


def assignment(described: object) -> frozenset[tuple[str, int]]:
    places = described.assignment.topic_partitions  # type: ignore[attr-defined]
    return frozenset((place.topic, place.partition) for place in places)


def test_a_group_nobody_knows_is_dead(cluster: Cluster) -> None:
    described = cluster.group(unique("nobody"))

    assert (described.state, described.members) == (ConsumerGroupState.DEAD, [])


def test_groups_are_listed_by_state(cluster: Cluster, group: str, member: MakeMember) -> None:
    topic = cluster.topic()
    alive = member(COOPERATIVE, topic)
    eventually(lambda: alive.owned, saying="it owns the partition")
    empty = unique("offsets-only")
    cluster.alter_offsets(empty, {(topic, 0): 0})

    def listed(*states: ConsumerGroupState) -> dict[str, ConsumerGroupState]:
        answer = cluster.admin.list_consumer_groups(states=set(states)).result(PATIENCE_S)
        assert answer.errors == []
        return {each.group_id: each.state for each in answer.valid if each.group_id in {group, empty}}

    stable_one, empty_one = {group: ConsumerGroupState.STABLE}, {empty: ConsumerGroupState.EMPTY}
    assert listed() == stable_one | empty_one
    assert listed(ConsumerGroupState.STABLE) == stable_one
    assert listed(ConsumerGroupState.EMPTY) == empty_one
    assert listed(ConsumerGroupState.DEAD, ConsumerGroupState.PREPARING_REBALANCING) == {}


def test_a_group_is_deleted_once_it_is_empty(cluster: Cluster, group: str, member: MakeMember) -> None:
    topic = cluster.topic()
    last = member(COOPERATIVE, topic)
    eventually(lambda: last.owned, saying="it owns the partition")

    def delete() -> None:
        cluster.admin.delete_consumer_groups([group])[group].result(PATIENCE_S)

    assert refused_as("NON_EMPTY_GROUP", delete)
    last.leave()
    eventually(lambda: cluster.group(group).state == ConsumerGroupState.EMPTY, saying="the group is empty")
    delete()
    assert cluster.group(group).state == ConsumerGroupState.DEAD
    assert refused_as("GROUP_ID_NOT_FOUND", delete)


def test_offsets_are_altered_and_a_member_starts_there(cluster: Cluster, group: str, member: MakeMember) -> None:
    topic = cluster.topic(partitions=2)
    sent = cluster.produce(topic, [f"value {number}" for number in range(20)], partitions=2)

    cluster.alter_offsets(group, {(topic, 0): 7, (topic, 1): 9})

    assert cluster.committed(group) == {(topic, 0): 7, (topic, 1): 9}
    late = member(COOPERATIVE, topic)
    eventually(lambda: len(late.received) >= 4, saying="it reads from there")
    assert late.received == [*sent[7:10], *sent[19:]]

    assert refused_as("UNKNOWN_MEMBER_ID", lambda: cluster.alter_offsets(group, {(topic, 0): 0}))


def test_offsets_are_listed_for_the_partitions_asked_for(cluster: Cluster, group: str) -> None:
    topic = cluster.topic(partitions=3)
    cluster.alter_offsets(group, {(topic, 0): 1, (topic, 1): 2})

    asked = ConsumerGroupTopicPartitions(group, [TopicPartition(topic, 1), TopicPartition(topic, 2)])
    listed = cluster.admin.list_consumer_group_offsets([asked])[group].result(PATIENCE_S)

    assert {place.partition: place.offset for place in listed.topic_partitions} == {1: 2, 2: -1001}


def test_a_log_tells_its_ends_and_its_times(cluster: Cluster) -> None:
    topic = cluster.topic()
    sent = cluster.produce(topic, ["a", "b", "c"])
    place = TopicPartition(topic, 0)

    def offset(spec: OffsetSpec) -> int:
        asked = cluster.admin.list_offsets({place: spec}, isolation_level=IsolationLevel.READ_COMMITTED)
        return int(asked[place].result(PATIENCE_S).offset)

    assert offset(OffsetSpec.earliest()) == 0
    assert offset(OffsetSpec.latest()) == 3
    assert offset(OffsetSpec.max_timestamp()) == min(r.offset for r in sent if r.timestamp_ms == sent[-1].timestamp_ms)
    assert offset(OffsetSpec.for_timestamp(sent[0].timestamp_ms)) == 0
    assert offset(OffsetSpec.for_timestamp(sent[-1].timestamp_ms + 1)) == -1


def test_a_topic_is_created_described_enlarged_and_deleted(cluster: Cluster) -> None:
    topic = cluster.topic(partitions=2)

    def create() -> None:
        cluster.admin.create_topics([NewTopic(topic, 2, 1)])[topic].result(PATIENCE_S)

    def enlarge(count: int) -> None:
        cluster.admin.create_partitions([NewPartitions(topic, count)])[topic].result(PATIENCE_S)

    def described() -> tuple[int, bool, set[int]]:
        answer = cluster.admin.describe_topics(TopicCollection([topic]))[topic].result(PATIENCE_S)
        return len(answer.partitions), answer.is_internal, {each.leader.id for each in answer.partitions}

    def delete() -> None:
        cluster.admin.delete_topics([topic])[topic].result(PATIENCE_S)

    [broker] = cluster.admin.list_topics().brokers
    assert described() == (2, False, {broker})
    assert refused_as("TOPIC_ALREADY_EXISTS", create)
    enlarge(5)
    eventually(lambda: described() == (5, False, {broker}), saying="it has five partitions")
    assert refused_as("INVALID_PARTITIONS", lambda: enlarge(3))
    delete()
    eventually(lambda: refused_as("UNKNOWN_TOPIC_OR_PART", described), saying="the topic is gone")
    assert refused_as("UNKNOWN_TOPIC_OR_PART", delete)


@pytest.mark.parametrize(
    ("name", "partitions", "copies", "config", "refusal"),
    [
        ("no spaces", 1, 1, {}, "TOPIC_EXCEPTION"),
        ("topic", 0, 1, {}, "INVALID_PARTITIONS"),
        ("topic", 1, 3, {}, "INVALID_REPLICATION_FACTOR"),
        ("topic", 1, 1, {"cleanup.policy": "burn"}, "INVALID_CONFIG"),
        ("topic", 1, 1, {"no.such.config": "1"}, "INVALID_CONFIG"),
    ],
)
def test_an_impossible_topic_is_refused(
    cluster: Cluster, name: str, partitions: int, copies: int, config: dict[str, str], refusal: str
) -> None:
    name = unique(name)

    def create() -> None:
        wanted = NewTopic(name, partitions, copies, config=config)
        cluster.admin.create_topics([wanted])[name].result(PATIENCE_S)

    assert refused_as(refusal, create)
    assert name not in cluster.admin.list_topics().topics


def test_a_deleted_topic_takes_its_committed_offsets_along(cluster: Cluster, group: str) -> None:
    doomed, other = cluster.topic(), cluster.topic()
    cluster.alter_offsets(group, {(doomed, 0): 0, (other, 0): 0})

    cluster.admin.delete_topics([doomed])[doomed].result(PATIENCE_S)

    eventually(lambda: cluster.committed(group) == {(other, 0): 0}, saying="only the other topic's offset is left")


def test_a_topic_config_is_set_shown_and_reset(cluster: Cluster) -> None:
    topic = cluster.topic(retention_ms="60000")

    def change(operation: AlterConfigOpType, name: str, value: str | None) -> None:
        entry = ConfigEntry(name, value, incremental_operation=operation)
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
        [answer] = cluster.admin.incremental_alter_configs([resource]).values()
        answer.result(PATIENCE_S)

    def shown(name: str) -> tuple[str, ConfigSource]:
        resource = ConfigResource(ResourceType.TOPIC, topic)
        entry = cluster.admin.describe_configs([resource])[resource].result(PATIENCE_S)[name]
        return entry.value, ConfigSource(entry.source)

    assert shown("retention.ms") == ("60000", ConfigSource.DYNAMIC_TOPIC_CONFIG)
    change(AlterConfigOpType.SET, "retention.ms", "120000")
    eventually(lambda: shown("retention.ms")[0] == "120000", saying="the new value is shown")
    change(AlterConfigOpType.DELETE, "retention.ms", None)
    default = ("604800000", ConfigSource.DEFAULT_CONFIG)
    eventually(lambda: shown("retention.ms") == default, saying="the default is back")
    change(AlterConfigOpType.APPEND, "cleanup.policy", "compact")
    eventually(lambda: shown("cleanup.policy")[0] == "delete,compact", saying="compact is appended")
    assert refused_as("INVALID_CONFIG", lambda: change(AlterConfigOpType.SET, "retention.ms", "soon"))
    replaced = ConfigResource(ResourceType.TOPIC, topic, set_config={"retention.ms": "180000"})
    with pytest.deprecated_call():
        [answer] = cluster.admin.alter_configs([replaced]).values()
    answer.result(PATIENCE_S)
    eventually(lambda: shown("retention.ms")[0] == "180000", saying="the configs are replaced")
    assert shown("cleanup.policy") == ("delete", ConfigSource.DEFAULT_CONFIG)


def test_the_cluster_is_described(cluster: Cluster) -> None:
    described = cluster.admin.describe_cluster().result(PATIENCE_S)

    [node] = described.nodes
    assert f"{node.host}:{node.port}" == cluster.bootstrap
    assert described.controller.id == node.id
    assert described.cluster_id

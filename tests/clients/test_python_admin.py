"""What aiokafka and kafka-python ask as administrators: other versions of the requests that librdkafka sends."""

from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio
from aiokafka import TopicPartition as AiokafkaPartition
from aiokafka.admin import AIOKafkaAdminClient, RecordsToDelete
from aiokafka.admin import NewPartitions as AiokafkaNewPartitions
from aiokafka.admin import NewTopic as AiokafkaNewTopic
from aiokafka.admin.config_resource import ConfigResource as AiokafkaResource
from aiokafka.admin.config_resource import ConfigResourceType as AiokafkaResourceType
from kafka import TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType, KafkaAdminClient, OffsetSpec
from kafka.errors import TopicAlreadyExistsError
from kafka.structs import OffsetAndMetadata

from tests.clients.cluster import Cluster
from tests.clients.conftest import MakeMember
from tests.clients.members import Flavour
from tests.clients.support import eventually, unique


@pytest.fixture
def admin(cluster: Cluster) -> Iterator[KafkaAdminClient]:
    admin = KafkaAdminClient(bootstrap_servers=cluster.bootstrap)
    yield admin
    admin.close()


@pytest.mark.slow
def test_kafka_python_looks_after_topics(cluster: Cluster, admin: KafkaAdminClient) -> None:
    topic = unique("topic")

    admin.create_topics({topic: {"num_partitions": 2, "replication_factor": 1, "configs": {"retention.ms": "60000"}}})
    admin.wait_for_topics([topic])
    assert topic in admin.list_topics()
    with pytest.raises(TopicAlreadyExistsError):
        admin.create_topics([topic])
    admin.create_partitions({topic: 3})
    eventually(lambda: len(admin.describe_topics([topic])[0]["partitions"]) == 3, saying="it has three partitions")

    resource = ConfigResource(ConfigResourceType.TOPIC, topic, {"retention.ms": "120000"})
    admin.alter_configs([resource])
    modified = {"retention.ms": "120000"}
    eventually(lambda: modified_configs(admin, topic) == modified, saying="the config is altered")
    replaced = {"max.message.bytes": "5000"}
    admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, topic, replaced)], incremental=False)
    modified |= replaced  # this client sends what is configured along with what is to change
    eventually(lambda: modified_configs(admin, topic) == modified, saying="the configs are replaced")

    cluster.produce(topic, ["a", "b", "c"])
    place = TopicPartition(topic, 0)
    admin.delete_records({place: 2})
    assert admin.list_partition_offsets({place: OffsetSpec.EARLIEST})[place].offset == 2
    assert admin.list_partition_offsets({place: OffsetSpec.LATEST})[place].offset == 3

    admin.delete_topics([topic])
    eventually(lambda: topic not in admin.list_topics(), saying="it is gone")


def modified_configs(admin: KafkaAdminClient, topic: str) -> dict[str, str]:
    described = admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, topic)])
    return {name: entry["value"] for name, entry in described["topic"][topic].items()}


@pytest.mark.slow
def test_kafka_python_looks_after_groups(
    cluster: Cluster, group: str, member: MakeMember, admin: KafkaAdminClient
) -> None:
    topic = cluster.topic(partitions=2)
    cluster.produce(topic, ["a", "b", "c", "d"], partitions=2)
    living = member(Flavour("kafka-python", "range"), topic)
    eventually(lambda: len(living.received) == 4, saying="it reads everything")
    living.commit()

    described = admin.describe_groups([group])[group]
    assert (described["group_state"], described["protocol_data"]) == ("Stable", "range")
    assert [each["client_id"] for each in described["members"]] == ["kafka-python-0"]
    assert group in {each["group_id"] for each in admin.list_groups(states_filter=["Stable"])}
    assert offsets(admin, group) == {(topic, 0): 2, (topic, 1): 2}
    assert admin.delete_groups([group]) == {group: "NonEmptyGroupError"}

    living.leave()
    eventually(lambda: admin.describe_groups([group])[group]["group_state"] == "Empty", saying="it is empty")
    admin.alter_group_offsets(group, {TopicPartition(topic, 0): OffsetAndMetadata(1, "by hand", -1)})
    admin.delete_group_offsets(group, [TopicPartition(topic, 1)])
    assert offsets(admin, group) == {(topic, 0): 1}
    admin.reset_group_offsets(group, {TopicPartition(topic, 0): OffsetSpec.LATEST})
    assert offsets(admin, group) == {(topic, 0): 2}
    assert admin.delete_groups([group]) == {group: "OK"}
    assert admin.delete_groups([group]) == {group: "GroupIdNotFoundError"}


def offsets(admin: KafkaAdminClient, group: str) -> dict[tuple[str, int], int]:
    listed = admin.list_group_offsets([group])[group]
    return {(place.topic, place.partition): found.offset for place, found in listed.items()}


@pytest_asyncio.fixture
async def aiokafka_admin(cluster: Cluster) -> AsyncIterator[AIOKafkaAdminClient]:
    admin = AIOKafkaAdminClient(bootstrap_servers=cluster.bootstrap)
    await admin.start()
    yield admin
    await admin.close()


@pytest.mark.asyncio
async def test_aiokafka_looks_after_topics(cluster: Cluster, aiokafka_admin: AIOKafkaAdminClient) -> None:
    admin, topic = aiokafka_admin, unique("topic")

    await admin.create_topics([AiokafkaNewTopic(topic, 2, 1)])
    await admin.create_partitions({topic: AiokafkaNewPartitions(3)})
    assert topic in await admin.list_topics()
    [described] = await admin.describe_topics([topic])
    assert [(each["partition"], each["error_code"]) for each in described["partitions"]] == [(0, 0), (1, 0), (2, 0)]
    [configs] = await admin.describe_configs([AiokafkaResource(AiokafkaResourceType.TOPIC, topic)])
    [(error, _, _, name, entries)] = configs.resources
    assert (error, name) == (0, topic)
    assert ("cleanup.policy", "delete") in {entry[:2] for entry in entries}
    resource = AiokafkaResource(AiokafkaResourceType.TOPIC, topic, {"cleanup.policy": "compact"})
    [altered] = await admin.alter_configs([resource])
    assert [(error, name) for error, _, _, name in altered.resources] == [(0, topic)]
    resource = AiokafkaResource(AiokafkaResourceType.TOPIC, topic, {"cleanup.policy": "delete"})
    await admin.alter_configs([resource])

    cluster.produce(topic, ["a", "b"])
    place = AiokafkaPartition(topic, 0)
    assert await admin.delete_records({place: RecordsToDelete(1)}) == {place: 1}
    deleted = await admin.delete_topics([topic])
    assert deleted.topic_error_codes == [(topic, 0)]


@pytest.mark.asyncio
async def test_aiokafka_looks_at_groups(cluster: Cluster, group: str, aiokafka_admin: AIOKafkaAdminClient) -> None:
    admin, topic = aiokafka_admin, cluster.topic()
    cluster.alter_offsets(group, {(topic, 0): 2})

    assert (group, "") in await admin.list_consumer_groups()
    [groups] = await admin.describe_consumer_groups([group])
    [(error, name, state, *_)] = groups.groups
    assert (error, name, state) == (0, group, "Empty")
    assert await admin.find_coordinator(group) == (await admin.describe_cluster())["controller_id"]
    assert (await admin.list_consumer_group_offsets(group))[AiokafkaPartition(topic, 0)].offset == 2

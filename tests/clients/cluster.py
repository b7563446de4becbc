"""The interface of the broker under test, groupcoord or Kafka, with the operations that tests need besides clients."""

from collections.abc import Mapping, Sequence
from typing import Any

import confluent_kafka
from confluent_kafka.admin import AdminClient, ConfigResource, NewPartitions, NewTopic, ResourceType

from groupcoord import SyncCluster
from tests.clients.support import PATIENCE_S, Record, eventually, unique


class Cluster:
    """A real broker at an address, or groupcoord's. Only stories about a known difference ask which it is."""

    def __init__(self, broker: str | SyncCluster) -> None:
        self._server = None if isinstance(broker, str) else broker
        self._errors_seen = 0
        self.bootstrap = broker if isinstance(broker, str) else broker.address
        self.admin = AdminClient({"bootstrap.servers": self.bootstrap})
        # One request at a time: a record that a new partition's leader does not take yet would come behind the next ones.
        in_order = {"linger.ms": 0, "max.in.flight.requests.per.connection": 1}
        self._producer = confluent_kafka.Producer({"bootstrap.servers": self.bootstrap, **in_order})
        self.shortest_session_ms = int(self.broker_config("group.min.session.timeout.ms"))

    def __repr__(self) -> str:
        return f"<{'groupcoord' if self.emulated else 'Kafka'} at {self.bootstrap}>"

    def close(self) -> None:
        """Close the clients that only serve the tests."""
        self._producer.close()
        del self.admin  # has no close; ends when nobody has it

    @property
    def emulated(self) -> bool:
        """Whether it is groupcoord."""
        return self._server is not None

    def new_errors(self) -> list[Exception]:
        """What went wrong inside groupcoord since it was asked last, as far as one can look into it."""
        if self._server is None:
            return []
        errors = self._server.server_errors[self._errors_seen :]
        self._errors_seen += len(errors)
        return errors

    def brokers(self) -> list[str]:
        """``host:port`` of each broker, as this client is told."""
        return [
            f"{broker.host}:{broker.port}" for broker in self.admin.list_topics(timeout=PATIENCE_S).brokers.values()
        ]

    def broker_config(self, name: str) -> str:
        """The value of a broker property."""
        node = next(iter(self.admin.list_topics(timeout=PATIENCE_S).brokers))
        broker = ConfigResource(ResourceType.BROKER, str(node))
        described = self.admin.describe_configs([broker])[broker].result(PATIENCE_S)
        return str(described[name].value)

    def topic(self, partitions: int = 1, **configs: str) -> str:
        """A new topic nobody else has, ready for use; the underscores of ``configs`` are dots."""
        name = unique("topic")
        named = {key.replace("_", "."): value for key, value in configs.items()}
        self.admin.create_topics([NewTopic(name, partitions, 1, config=named)])[name].result(PATIENCE_S)
        eventually(lambda: self._ready(name, partitions), saying=f"{name} has {partitions} partitions with a leader")
        return name

    def _ready(self, topic: str, partitions: int) -> bool:
        known = self.admin.list_topics(topic, timeout=PATIENCE_S).topics[topic].partitions
        return len(known) == partitions and all(partition.error is None for partition in known.values())

    def enlarge(self, topic: str, partitions: int) -> None:
        """Let a topic have so many partitions."""
        self.admin.create_partitions([NewPartitions(topic, partitions)])[topic].result(PATIENCE_S)
        eventually(lambda: self._ready(topic, partitions), saying=f"{topic} has {partitions} partitions with a leader")

    def produce(self, topic: str, values: Sequence[str], *, partitions: int = 1) -> list[Record]:
        """Produce ``values`` round about the partitions; answers them as acknowledged, in the order of partition and offset."""
        acknowledged: list[Record] = []

        def on_delivery(error: Any, message: Any) -> None:
            assert error is None, error
            _, timestamp_ms = message.timestamp()
            place = (message.topic(), message.partition(), message.offset())
            acknowledged.append(Record(*place, timestamp_ms, message.key(), message.value()))

        for number, value in enumerate(values):
            self._producer.produce(
                topic, value, key=f"key of {value}", partition=number % partitions, on_delivery=on_delivery
            )
        left = self._producer.flush(PATIENCE_S)
        assert (left, len(acknowledged)) == (0, len(values)), "not everything was acknowledged"
        return sorted(acknowledged, key=lambda record: record[:3])

    def group(self, group: str) -> Any:
        """What DescribeGroups says of it: ``.state``, ``.members``, ``.partition_assignor``."""
        return self.admin.describe_consumer_groups([group])[group].result(PATIENCE_S)

    def owners(self, group: str) -> dict[str, int]:
        """How many partitions each client has been assigned."""
        return {member.client_id: len(member.assignment.topic_partitions) for member in self.group(group).members}

    def committed(self, group: str) -> dict[tuple[str, int], int]:
        """Every committed offset of a group."""
        asked = confluent_kafka.ConsumerGroupTopicPartitions(group)
        answer = self.admin.list_consumer_group_offsets([asked])[group].result(PATIENCE_S)
        return {(at.topic, at.partition): at.offset for at in answer.topic_partitions}

    def alter_offsets(self, group: str, offsets: Mapping[tuple[str, int], int]) -> None:
        """Commit for a group without members, as an administrator does."""
        places = [confluent_kafka.TopicPartition(*partition, offset) for partition, offset in offsets.items()]
        wanted = confluent_kafka.ConsumerGroupTopicPartitions(group, places)
        answer = self.admin.alter_consumer_group_offsets([wanted])[group].result(PATIENCE_S)
        for place in answer.topic_partitions:
            if place.error:
                raise confluent_kafka.KafkaException(place.error)

    def delete_records(self, topic: str, partition: int, *, before: int) -> None:
        """Delete what is older than the record at offset ``before``."""
        place = confluent_kafka.TopicPartition(topic, partition, before)
        self.admin.delete_records([place])[place].result(PATIENCE_S)

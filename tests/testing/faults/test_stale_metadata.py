"""Answers of a broker whose metadata, or whose replicas, are behind."""

import uuid
from typing import Any

import pytest

from groupcoord.protocol import messages as m
from groupcoord.protocol.apis import APIS, ApiKey
from groupcoord.protocol.apis.describe_topic_partitions import TopicRequest
from groupcoord.protocol.apis.metadata import MetadataRequestTopic, MetadataResponsePartition, MetadataResponseTopic
from groupcoord.protocol.errors import ErrorCode
from groupcoord.testing.faults import FaultInjected
from groupcoord.testing.faults.actions import shrink_isr
from tests.testing.faults.support import Metadata, World

Describe = APIS[ApiKey.DESCRIBE_TOPIC_PARTITIONS]


@pytest.fixture
def world() -> World:
    world = World(auto_create_topics_enable="false")
    world.node.create_topic("bills", 1, world.now)
    return world


def by_name(*names: str) -> m.MetadataRequest:
    return m.MetadataRequest(topics=tuple(MetadataRequestTopic(name=name) for name in names))


def shown(answer: Any) -> list[tuple[str | None, int, int]]:
    """Name, error and number of partitions of each topic of a test, in the order of names."""
    topics = [(topic.name, topic.error_code, len(topic.partitions)) for topic in answer.topics if not topic.is_internal]
    return sorted(topics, key=lambda topic: topic[0] or "")


class TestHiddenTopic:
    def test_who_names_it_is_told_that_it_is_unknown(self, world: World) -> None:
        world.when(Metadata, topic="orders").hide_topic()
        hidden = world.ask(Metadata, by_name("orders", "bills")).answer
        assert shown(hidden) == [("bills", 0, 1), ("orders", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 0)]
        assert shown(world.ask(Metadata, by_name("orders")).answer) == [("orders", 0, 3)]
        (told,) = world.told(FaultInjected)
        assert told.text() == ("fault by rule 1: Metadata of c gets a response without the topic")

    def test_it_is_answered_as_a_topic_that_does_not_exist(self, world: World) -> None:
        missing = world.ask(Metadata, by_name("tea")).answer
        world.node.create_topic("tea", 1, world.now)
        world.when(Metadata, topic="tea").hide_topic()
        assert world.ask(Metadata, by_name("tea")).answer == missing

    def test_an_id_that_does_not_exist_is_answered_alike(self, world: World) -> None:
        topic_id = world.node.broker.topics.topic_id("orders")

        def asked(one: uuid.UUID | None) -> Any:
            request = m.MetadataRequest(topics=(MetadataRequestTopic(name=None, topic_id=one),))
            return world.ask(Metadata, request).answer.topics

        world.when(Metadata, topic="orders").hide_topic()
        (hidden,) = asked(topic_id)
        (missing,) = asked(uuid.UUID(int=77))
        assert (hidden.error_code, hidden.topic_id) == (ErrorCode.UNKNOWN_TOPIC_ID, topic_id)
        assert (hidden.error_code, hidden.name, hidden.partitions) == (
            missing.error_code,
            missing.name,
            missing.partitions,
        )

    def test_a_list_of_all_topics_is_without_it(self, world: World) -> None:
        world.when(Metadata, topic="orders").hide_topic()
        assert shown(world.ask(Metadata, m.MetadataRequest(topics=None)).answer) == [("bills", 0, 1)]

    def test_a_description_of_partitions_does_not_know_it_either(self, world: World) -> None:
        request = m.DescribeTopicPartitionsRequest(topics=(TopicRequest(name="orders"), TopicRequest(name="bills")))
        world.when(Describe, topic="orders").hide_topic()
        assert shown(world.ask(Describe, request).answer) == [
            ("bills", 0, 1),
            ("orders", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 0),
        ]
        world.when(Describe, topic="orders").hide_topic()
        assert shown(world.ask(Describe, m.DescribeTopicPartitionsRequest()).answer) == [("bills", 0, 1)]


class TestShrunkIsr:
    ISR = (1, 2, 3)

    def answer(self) -> m.MetadataResponse:
        def partitions() -> tuple[Any, ...]:
            return tuple(
                MetadataResponsePartition(
                    partition_index=index, leader_id=index + 1, replica_nodes=self.ISR, isr_nodes=self.ISR
                )
                for index in range(2)
            )

        topics = [MetadataResponseTopic(name=name, partitions=partitions()) for name in ("orders", "bills")]
        return m.MetadataResponse(topics=tuple(topics))

    def isrs(self, answer: Any) -> list[list[tuple[int, ...]]]:
        return [[partition.isr_nodes for partition in topic.partitions] for topic in answer.topics]

    def test_a_follower_is_in_none_and_a_leader_stays(self) -> None:
        shrunk = shrink_isr(self.answer(), "orders", 2)
        assert self.isrs(shrunk) == [[(1, 3), self.ISR], [self.ISR, self.ISR]]

    def test_without_a_topic_it_lags_everywhere(self) -> None:
        assert self.isrs(shrink_isr(self.answer(), None, 1)) == [[self.ISR, (2, 3)], [self.ISR, (2, 3)]]

    def test_as_a_rule(self, world: World) -> None:
        before = world.ask(Metadata, by_name("orders")).answer
        leader = before.topics[0].partitions[0].leader_id
        world.when(Metadata, topic="orders").shrink_isr(leader)
        assert world.ask(Metadata, by_name("orders")).answer == before  # a lone broker leads everything
        (told,) = world.told(FaultInjected)
        assert told.text() == f"fault by rule 1: Metadata of c gets an ISR without broker {leader}"

"""Metadata and DescribeCluster; orders and codes are those a real broker answered with."""

import uuid
from typing import Any

import pytest

from groupcoord.config.broker_config import BrokerConfig
from groupcoord.protocol.apis.describe_cluster import DescribeClusterBroker, DescribeClusterRequest
from groupcoord.protocol.apis.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
)
from groupcoord.protocol.errors import ErrorCode
from tests.broker.asking import Asking

UNSAID = -2147483648
NONE = ErrorCode.NONE
UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
INVALID = ErrorCode.INVALID_TOPIC_EXCEPTION


def named(*names: str | None, create: bool = False, **fields: Any) -> MetadataRequest:
    topics = tuple(MetadataRequestTopic(name=name) for name in names)
    return MetadataRequest(topics=topics, allow_auto_topic_creation=create, **fields)


def by_id(*ids: uuid.UUID | None, **fields: Any) -> MetadataRequest:
    topics = tuple(MetadataRequestTopic(name=None, topic_id=topic_id) for topic_id in ids)
    return MetadataRequest(topics=topics, allow_auto_topic_creation=False, **fields)


def seen(response: MetadataResponse) -> list[tuple[int, str | None]]:
    return [(topic.error_code, topic.name) for topic in response.topics]


class TestTheBroker:
    def test_it_says_where_it_is(self) -> None:
        config = BrokerConfig.of({"node.id": 7, "broker.rack": "r1", "advertised.listeners": "PLAINTEXT://kafka:19092"})
        response = Asking(config=config).ask(named())
        assert response.brokers == (MetadataResponseBroker(node_id=7, host="kafka", port=19092, rack="r1"),)
        assert (response.cluster_id, response.controller_id, response.error_code) == (config.cluster_id, 7, NONE)
        assert (response.throttle_time_ms, response.cluster_authorized_operations) == (0, UNSAID)

    @pytest.mark.parametrize("version", range(14))
    def test_every_version_is_answered(self, version: int) -> None:
        asking = Asking()
        asking.create("orders", partitions=2)
        response = asking.ask(MetadataRequest(topics=None), version)
        (topic,) = response.topics
        assert (topic.error_code, topic.name, topic.is_internal) == (NONE, "orders", False)
        assert (topic.topic_id is not None) is (version >= 10)
        assert topic.partitions == tuple(
            MetadataResponsePartition(
                partition_index=index,
                leader_id=1,
                leader_epoch=0 if version >= 7 else -1,
                replica_nodes=(1,),
                isr_nodes=(1,),
            )
            for index in range(2)
        )
        assert response.cluster_id == (None if version < 2 else asking.broker.config.cluster_id)
        assert response.controller_id == (-1 if version < 1 else 1)

    @pytest.mark.parametrize(("version", "operations"), [(8, 8096), (9, 8096), (10, 8096), (11, UNSAID)])
    def test_what_one_may_do_with_the_cluster(self, version: int, operations: int) -> None:
        asked = named(include_cluster_authorized_operations=version < 11)
        assert Asking().ask(asked, version).cluster_authorized_operations == operations


class TestTopics:
    def test_no_name_is_no_topic_and_no_list_is_every_topic(self) -> None:
        asking = Asking()
        asking.create("a", "b")
        assert asking.ask(named(), 1).topics == ()
        assert len(asking.ask(named(), 0).topics) == 2
        assert len(asking.ask(MetadataRequest(topics=None)).topics) == 2

    def test_all_topics_come_in_the_order_of_their_hash(self) -> None:
        asking = Asking()
        names = [f"k1795267883n{number}" for number in range(1, 13)]
        asking.create(*names)
        listed = [name for _, name in seen(asking.ask(MetadataRequest(topics=None)))]
        assert listed[:4] == [f"k1795267883n{number}" for number in (12, 11, 10, 2)]
        assert sorted(name or "" for name in listed) == sorted(names)

    def test_few_names_are_answered_in_their_order_and_once(self) -> None:
        asking = Asking()
        asking.create("b", "a")
        assert seen(asking.ask(named("b", "nope", "a", "b", "a b"))) == [
            (NONE, "b"),
            (NONE, "a"),
            (UNKNOWN, "nope"),
            (INVALID, "a b"),
        ]

    def test_many_names_are_answered_in_the_order_of_a_hash_set(self) -> None:
        asking = Asking()
        names = ["tp1795266087-v1", "__consumer_offsets", "unk268", "unk967", "unk847", "unk134", "unk859"]
        asking.create("tp1795266087-v1", "__consumer_offsets")
        assert seen(asking.ask(named(*names))) == [
            (NONE, "tp1795266087-v1"),
            (NONE, "__consumer_offsets"),
            (UNKNOWN, "unk268"),
            (UNKNOWN, "unk967"),
            (UNKNOWN, "unk847"),
            (UNKNOWN, "unk134"),
            (UNKNOWN, "unk859"),
        ]

    def test_what_one_may_do_with_a_topic(self) -> None:
        asking = Asking()
        asking.create("orders")
        asked = named("orders", "nope", include_topic_authorized_operations=True)
        assert [topic.topic_authorized_operations for topic in asking.ask(asked).topics] == [3576, 3576]
        assert [topic.topic_authorized_operations for topic in asking.ask(named("orders")).topics] == [UNSAID]

    def test_kafkas_own_topics_are_internal_even_if_there_is_none(self) -> None:
        internal = [topic.is_internal for topic in Asking().ask(named("__consumer_offsets", "x")).topics]
        assert internal == [True, False]


class TestIds:
    def test_a_topic_is_found_by_its_id(self) -> None:
        asking = Asking()
        asking.create("a", "b", "c")
        a, b = asking.broker.topics.topic_id("a"), asking.broker.topics.topic_id("b")
        none = uuid.UUID(int=5)
        response = asking.ask(by_id(b, none, a, b, include_topic_authorized_operations=True))
        assert [(topic.error_code, topic.name, topic.topic_id) for topic in response.topics] == [
            (ErrorCode.UNKNOWN_TOPIC_ID, None, none),
            (NONE, "b", b),
            (NONE, "a", a),
        ]
        assert [topic.topic_authorized_operations for topic in response.topics] == [UNSAID, 3576, 3576]

    def test_many_ids_are_answered_in_the_order_of_a_hash_set(self) -> None:
        asking = Asking()
        asking.create("a", "b", "c")
        known = [asking.broker.topics.topic_id(name) for name in "abc"]
        unknown = [uuid.UUID(int=number) for number in (5, 2**64 + 6, 2**100)]
        one_way, other_way = (asking.ask(by_id(*ids)) for ids in ([*known, *unknown], [*unknown[::-1], *known[::-1]]))
        assert one_way == other_way
        assert [topic.error_code for topic in one_way.topics] == [ErrorCode.UNKNOWN_TOPIC_ID] * 3 + [NONE] * 3

    def test_names_beside_an_id_are_not_looked_at(self) -> None:
        asking = Asking()
        asking.create("a", "b")
        a = asking.broker.topics.topic_id("a")
        topics = (
            MetadataRequestTopic(name="b"),
            MetadataRequestTopic(name="b", topic_id=a),
            MetadataRequestTopic(name=None),
        )
        assert seen(asking.ask(MetadataRequest(topics=topics))) == [(NONE, "a")]

    @pytest.mark.parametrize("version", [10, 11])
    def test_ids_are_not_taken_before_version_12(self, version: int) -> None:
        asking, topic_id = Asking(), uuid.UUID(int=5)
        asking.create("a")
        topics = (MetadataRequestTopic(name="a"), MetadataRequestTopic(name=None, topic_id=topic_id))
        response = asking.ask(MetadataRequest(topics=topics), version)
        assert (response.brokers, response.cluster_id, response.controller_id) == ((), None, -1)
        assert [(topic.error_code, topic.name, topic.topic_id) for topic in response.topics] == [
            (ErrorCode.INVALID_REQUEST, "a", None),
            (ErrorCode.INVALID_REQUEST, "", topic_id),
        ]

    @pytest.mark.parametrize(("version", "error"), [(12, 0), (13, -1)])
    def test_a_topic_without_name_and_id_is_too_much_for_kafka(self, version: int, error: int) -> None:
        response = Asking().ask(named("a", None), version)
        assert (response.brokers, response.error_code) == ((), error)
        assert seen(response) == [(-1, "a"), (-1, "")]


class TestAutomaticCreation:
    def test_the_first_answer_does_not_know_the_topic_and_the_second_does(self) -> None:
        asking = Asking({"num.partitions": 3})
        assert seen(asking.ask(named("orders", create=True))) == [(UNKNOWN, "orders")]
        (topic,) = asking.ask(named("orders", create=True)).topics
        assert (topic.error_code, len(topic.partitions)) == (NONE, 3)

    @pytest.mark.parametrize("version", [0, 1, 3])
    def test_old_versions_always_wish_it(self, version: int) -> None:
        asking = Asking()
        asking.ask(named("orders"), version)
        assert "orders" in asking.broker.topics

    def test_only_if_the_client_and_the_broker_wish_it(self) -> None:
        asking, unwilling = Asking(), Asking({"auto.create.topics.enable": False})
        asking.ask(named("orders", create=False))
        unwilling.ask(named("orders", create=True))
        assert "orders" not in asking.broker.topics
        assert "orders" not in unwilling.broker.topics

    def test_what_cannot_be_created_is_not(self) -> None:
        asking = Asking()
        asking.create("a.b")
        answer = asking.ask(named("a_b", "__cluster_metadata", "c d", create=True))
        assert seen(answer) == [(INVALID, "c d"), (UNKNOWN, "a_b"), (UNKNOWN, "__cluster_metadata")]
        assert [topic.name for topic in asking.broker.topics] == ["a.b"]
        poor = Asking({"default.replication.factor": 2})
        poor.ask(named("orders", create=True))
        assert len(poor.broker.topics) == 0

    def test_kafkas_own_topics_are_created_as_kafka_creates_them(self) -> None:
        asking = Asking({"offsets.topic.num.partitions": 4, "offsets.topic.segment.bytes": 2_000_000})
        names = ("__consumer_offsets", "__transaction_state", "__share_group_state")
        asking.ask(named(*names, create=True))
        made = {topic.name: (len(topic.partitions), topic.metadata.configs) for topic in asking.broker.topics}
        assert made == {
            "__consumer_offsets": (
                4,
                {"cleanup.policy": "compact", "compression.type": "producer", "segment.bytes": "2000000"},
            ),
            "__transaction_state": (
                50,
                {
                    "cleanup.policy": "compact",
                    "compression.type": "uncompressed",
                    "min.insync.replicas": "1",
                    "segment.bytes": "104857600",
                    "unclean.leader.election.enable": "false",
                },
            ),
            "__share_group_state": (
                50,
                {
                    "cleanup.policy": "delete",
                    "compression.type": "producer",
                    "min.insync.replicas": "1",
                    "retention.ms": "-1",
                    "segment.bytes": "104857600",
                },
            ),
        }


class TestDescribeCluster:
    @pytest.mark.parametrize("version", [0, 1, 2])
    def test_the_one_broker(self, version: int) -> None:
        config = BrokerConfig.of({"node.id": 7, "broker.rack": "r1"})
        asking = Asking(config=config)
        response = asking.ask(DescribeClusterRequest(include_cluster_authorized_operations=True), version)
        assert (response.error_code, response.error_message, response.endpoint_type) == (NONE, None, 1)
        assert (response.cluster_id, response.controller_id) == (config.cluster_id, 7)
        assert response.brokers == (DescribeClusterBroker(broker_id=7, host="127.0.0.1", port=9092, rack="r1"),)
        assert response.cluster_authorized_operations == 8096
        response = asking.ask(DescribeClusterRequest(include_cluster_authorized_operations=False), version)
        assert response.cluster_authorized_operations == UNSAID

    def test_no_broker_is_fenced(self) -> None:
        asked = DescribeClusterRequest(include_cluster_authorized_operations=False, include_fenced_brokers=True)
        assert [broker.is_fenced for broker in Asking().ask(asked).brokers] == [False]

    @pytest.mark.parametrize(
        ("endpoint_type", "error", "text"),
        [
            (
                2,
                ErrorCode.MISMATCHED_ENDPOINT_TYPE,
                "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type CONTROLLER",
            ),
            (3, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, "Unsupported endpoint type 3"),
        ],
    )
    def test_another_endpoint_is_refused(self, endpoint_type: int, error: ErrorCode, text: str) -> None:
        asked = DescribeClusterRequest(include_cluster_authorized_operations=True, endpoint_type=endpoint_type)
        response = Asking().ask(asked)
        assert (response.error_code, response.error_message) == (error, text)
        assert (response.cluster_id, response.controller_id, response.brokers) == ("", -1, ())
        assert response.cluster_authorized_operations == UNSAID

"""The store of topics by itself."""

import uuid
from collections.abc import Iterable

import pytest

from groupcoord.broker.topic_store import TopicStore
from groupcoord.config.broker_config import BrokerConfig


def store(ids: Iterable[int] = range(1000, 2000)) -> TopicStore:
    numbers = iter(ids)
    return TopicStore(BrokerConfig.of(), new_topic_id=lambda: uuid.UUID(int=next(numbers)))


def test_a_topic_is_found_by_name_and_by_id() -> None:
    topics = store()
    orders = topics.create("orders", 3, {}, 7)
    assert topics.get("orders") is topics.by_id(orders.topic_id) is orders
    assert (topics.partition_count("orders"), topics.topic_id("orders")) == (3, orders.topic_id)
    assert topics.topic_name(orders.topic_id) == "orders"
    assert (len(topics), "orders" in topics, topics.all()) == (1, True, [orders])
    assert (repr(orders), orders.metadata.created_ms, orders.metadata.is_internal) == (
        "<Topic orders partitions=3>",
        7,
        False,
    )
    assert [log.name for log in orders.partitions] == ["orders-0", "orders-1", "orders-2"]


def test_what_is_no_topic_is_not_found() -> None:
    topics, no_id = store(), uuid.UUID(int=5)
    assert topics.get("orders") is None
    assert topics.by_id(no_id) is None
    assert topics.partition_count("orders") is None
    assert topics.topic_id("orders") is None
    assert topics.topic_name(no_id) is None
    with pytest.raises(KeyError):
        topics.delete("orders")


def test_a_name_is_taken_once() -> None:
    topics = store()
    topics.create("orders", 1, {}, 0)
    with pytest.raises(ValueError, match="topic orders exists"):
        topics.create("orders", 1, {}, 0)


def test_an_id_is_taken_once_and_never_one_of_kafkas() -> None:
    topics = store([0, 1, 5, 5, 1, 6])
    assert topics.create("a", 1, {}, 0).topic_id.int == 5
    assert topics.create("b", 1, {}, 0).topic_id.int == 6


def test_a_deleted_topic_is_gone() -> None:
    topics = store()
    orders = topics.create("orders", 1, {}, 0)
    assert topics.delete("orders") is orders
    assert topics.by_id(orders.topic_id) is None
    assert topics.create("orders", 1, {}, 0).topic_id != orders.topic_id


def test_names_that_differ_in_dots_and_underscores_collide() -> None:
    topics = store()
    topics.create("a.b", 1, {}, 0)
    topics.create("plain", 1, {}, 0)
    assert (topics.colliding("a_b"), topics.colliding("a-b"), topics.colliding("c_d")) == ("a.b", None, None)
    topics.create("a_b", 1, {}, 0)  # two topics of one request are not compared with each other
    topics.delete("a.b")
    assert topics.colliding("a.b") == "a_b"
    topics.delete("a_b")
    topics.delete("plain")
    assert topics.colliding("a.b") is None


def test_kafkas_own_topics_are_known_by_name() -> None:
    assert store().create("__consumer_offsets", 1, {}, 0).metadata.is_internal


def test_logs_follow_the_topics_configuration() -> None:
    topics = store()
    orders = topics.create("orders", 1, {"retention.ms": "5"}, 0)
    orders.add_partitions(1)
    assert [log.settings.retention_ms for log in orders.partitions] == [5, 5]
    orders.configure({"retention.ms": "6"}, BrokerConfig.of())
    assert [log.settings.retention_ms for log in orders.partitions] == [6, 6]


def test_logs_follow_the_brokers_configuration() -> None:
    topics = store()
    orders = topics.create("orders", 1, {"retention.ms": "5"}, 0)
    topics.reconfigure(BrokerConfig.of({"message.max.bytes": 77, "log.retention.ms": 88}))
    assert (orders.settings.max_message_bytes, orders.settings.retention_ms) == (77, 5)
    assert orders.partitions[0].settings is orders.settings
    assert topics.create("later", 1, {}, 0).settings.retention_ms == 88

"""What cannot be is refused where it is said, with what would be right."""

import re
from typing import Any

import pytest

from groupcoord import Cluster, Topic

WRONG: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"topics": ["orders", "bills"]}, TypeError, 'names, with numbers of partitions: topics={"orders": 1, "bills": 1}'),
    ({"topics": "orders"}, TypeError, 'topics={"orders": 1}'),
    ({"topics": 6}, TypeError, 'topics={"orders": 6}'),
    ({"topics": []}, TypeError, 'topics={"orders": 6}'),
    ({"topics": {7: 6}}, TypeError, "the name of a topic is a string, not 7"),
    ({"topics": {"orders": "6"}}, TypeError, "topic 'orders': partitions='6': a topic has a number of partitions"),
    ({"topics": {"orders": True}}, TypeError, "topic 'orders': partitions=True"),
    ({"topics": "orders:2"}, TypeError, 'with numbers of partitions: topics={"orders": 2}'),
    ({"topics": {"orders": 0}}, ValueError, "topic 'orders': partitions=0: a topic has at least one partition"),
    ({"topics": {"no/name": 1}}, ValueError, "topic 'no/name': Topic name is invalid"),
    ({"topics": {"a.b": 1, "a_b": 1}}, ValueError, "topic 'a_b': Topic 'a_b' collides with existing topic: a.b"),
    (
        {"topics": {"orders": Topic(configs={"cleanup": "compact"})}},
        ValueError,
        "topic 'orders': topics have no configuration 'cleanup'; did you mean cleanup.policy?",
    ),
    (
        {"topics": {"orders": Topic(configs={"xyz": "1"})}},
        ValueError,
        "topic 'orders': topics have no configuration 'xyz'; Kafka's are at https://kafka.apache.org/documentation/#topicconfigs",
    ),
    ({"topics": {"orders": Topic(configs={"cleanup.policy": "x"})}}, ValueError, "topic 'orders': Invalid value x"),
    ({"brokers": 0}, ValueError, "brokers=0: a cluster has a number of brokers, 1 or more"),
    ({"brokers": "3"}, ValueError, "brokers='3': a cluster has a number of brokers"),
    ({"brokers": True}, ValueError, "brokers=True: a cluster has a number of brokers"),
    ({"racks": ["a", "b"]}, ValueError, "there are more racks (2) than brokers (1)"),
    ({"racks": "ab", "brokers": 2}, TypeError, "racks='ab': the rack of each broker in turn, such as ['a', 'b', 'c']"),
    ({"racks": 2}, TypeError, "racks=2: the rack of each broker in turn"),
    (
        {"features": ["transaction.version=0"]},
        TypeError,
        'levels by the names of features, such as {"transaction.version": 0}',
    ),
    ({"features": {"transaction.version": "0"}}, TypeError, "levels by the names of features"),
    ({"start_ms": 1.5}, TypeError, "start_ms=1.5: a whole number of milliseconds since 1970"),
    ({"seed": "x"}, TypeError, "seed='x': a whole number"),
    ({"clock": "fast", "speed": "100"}, TypeError, "speed='100': a number, such as 100"),
    ({"host": 5}, TypeError, "host=5: a host name or address"),
    ({"listeners": print}, TypeError, "functions that take an event, such as [print]"),
    ({"listeners": [5]}, TypeError, "listeners=(5,): functions that take an event"),
    ({"port": "9092"}, ValueError, "port='9092': a number up to 65535, or 0 for one that is free"),
    ({"port": 65_536}, ValueError, "port=65536: a number up to 65535"),
    ({"clock": "warp"}, ValueError, "clock='warp': there are 'manual', 'real', 'fast', 'virtual'"),
    ({"clock": "fast", "speed": 0}, ValueError, "speed=0: a clock runs at a speed above 0"),
    ({"config": ["group.max.size=2"]}, TypeError, 'properties by their names, such as {"group.max.size": 2}'),
    ({"config": {"grup.max.size": 2}}, ValueError, "grup.max.size: unknown property; did you mean group.max.size?"),
    ({"config": {"offsets.topic.num.partitions": 0}}, ValueError, "offsets.topic.num.partitions=0: expected"),
    ({"features": {"transaction.version": 9}}, ValueError, "transaction.version has levels from 0 to 2, and no 9"),
]


@pytest.mark.parametrize(("settings", "error", "text"), WRONG, ids=lambda each: str(each)[:40])
def test_what_cannot_be_is_refused_before_the_block_begins(
    settings: dict[str, Any], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=re.escape(text)):
        Cluster(**settings)


def test_configs_of_a_topic_are_properties_by_their_names() -> None:
    with pytest.raises(TypeError, match=r"configs='compact': properties by their names"):
        Topic(configs="compact")  # type: ignore[arg-type]
    assert Topic(configs={"retention.ms": 5, "preallocate": True}).config_texts() == {
        "retention.ms": "5",
        "preallocate": "true",
    }

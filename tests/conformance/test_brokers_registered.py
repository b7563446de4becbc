"""Brokers that are registered, fenced and unregistered: three real brokers do what was recorded.

What groupcoord does is in ``tests/cluster/test_unregister_broker.py``.
"""

import re

import pytest

import groupcoord as gc
from groupcoord.client.metadata_as_zookeeper_paths import ZooKeeperTree
from groupcoord.client.option_value_parsing import parse_addresses
from groupcoord.client.zookeeper_paths_reader import ZooKeeperTreeReader
from tests.conformance.brokers_registered import STORIES, recorded, unregister
from tests.conformance.partitions_administered import TOPICS
from tests.conformance.trios import OwnTrio, Trio, create_topics, look_until, real_trio
from tests.real_kafka.waiting import until

pytestmark = pytest.mark.minutes(2)


@pytest.mark.slow
@pytest.mark.real_kafka
@pytest.mark.kafka_alone
@pytest.mark.parametrize("story", STORIES)
def test_real_brokers_do_what_was_recorded(story: str) -> None:
    tell, properties = STORIES[story]
    with real_trio(properties) as trio:
        tell(trio, look_until(recorded()[story], once="answer"))  # what is asked is done


STEPS = ("begin", "stop", "unregister", "start")


def take(step: str, trio: Trio) -> None:
    """Do to broker 3 what the step says."""
    if step == "begin":
        create_topics(trio, TOPICS, {})
    elif step == "unregister":
        unregister(trio, 3, 1)
    else:
        trio.act(step, 3)
        trio.settle()


def shown(tree: ZooKeeperTree) -> list[str]:
    """The lines of the tree, without what differs from cluster to cluster: ports, ids of topics, the id of the controller."""
    text = re.sub(r"(?<=:)2\d{4}|(?<=127.0.0.1:)\d+|(?<=\"port\":)\d+", "PORT", tree.text())
    text = re.sub(r'(?<="topic_id":")[^"]+', "ID", text)
    return re.sub(r'(?<="brokerid":)\d+', "CONTROLLER", text).splitlines()


@pytest.mark.slow
@pytest.mark.real_kafka
def test_the_registry_of_real_brokers_is_that_of_groupcoords() -> None:
    config = {"offsets.topic.replication.factor": "1", "offsets.topic.num.partitions": "1"}
    with gc.Cluster(brokers=3, clock="manual", config=config).sync() as kafka, real_trio(config) as trio:
        own = OwnTrio(kafka)
        address = f"127.0.0.1:{trio.ports[1]}"
        with ZooKeeperTreeReader(parse_addresses(address)) as reader:
            for step in STEPS:
                take(step, own)
                take(step, trio)
                expected = [line for line in shown(kafka.registry) if "__consumer_offsets" not in line]
                until(lambda expected=expected: shown(reader.read()) == expected, 60)  # type: ignore[misc]
                assert shown(reader.read()) == expected, step

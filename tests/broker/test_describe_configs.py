"""DescribeConfigs against everything a real broker said of itself, with changes made while it ran.

``described_by_kafka.jsonl`` is the whole answer, a line for each configuration: resource type and name, name, value, read
only, source, sensitive, type, synonyms. ``listeners_described_by_kafka.jsonl`` has a line for each of four brokers: how its
listeners were set, its properties, and what it said of each property of listeners, in the end whether it documents it.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from groupcoord.config.broker_config import DEFAULTS, BrokerConfig, ConfigResource
from groupcoord.protocol.apis.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
)
from tests.broker.asking import Asking

RECORDED: list[list[Any]] = [
    json.loads(line) for line in Path(__file__).with_name("described_by_kafka.jsonl").read_text("utf-8").splitlines()
]
LISTENERS: list[list[Any]] = [
    json.loads(line)
    for line in Path(__file__).with_name("listeners_described_by_kafka.jsonl").read_text("utf-8").splitlines()
]
PROPERTIES: dict[str, object] = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.quorum.voters": "1@127.0.0.1:9093",
    "controller.listener.names": "CONTROLLER",
    "inter.broker.listener.name": "BROKER",
    "listener.security.protocol.map": "CLIENT:PLAINTEXT,BROKER:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "listeners": "CLIENT://127.0.0.1:9092,BROKER://127.0.0.1:9094,CONTROLLER://127.0.0.1:9093",
    "advertised.listeners": "CLIENT://127.0.0.1:9092,BROKER://127.0.0.1:9094",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "log.dirs": "/var/kafka",
}
CHANGES: dict[ConfigResource, dict[str, str]] = {
    ConfigResource(4, "1"): {
        "message.max.bytes": " 2000000 ",
        "plug.in": "x",
        "listener.name.client.max.connections": "51",
        "leader.replication.throttled.rate": "70",
    },
    ConfigResource(4, ""): {
        "min.insync.replicas": "1",
        "message.max.bytes": "3000000",
        "log.retention.ms": "-5",
        "eps.1": "7",
        "zeta": "8",
        "alpha.x": "1",
        "beta": "2",
    },
    ConfigResource(32, "recorded"): {"consumer.session.timeout.ms": "50000", "share.isolation.level": "read_committed"},
    ConfigResource(16, "recorded"): {"interval.ms": " 1000 ", "match": "client_id=a, client_software_name=b"},
}


def recorded_node() -> Asking:
    config = BrokerConfig.of(PROPERTIES, defaults=())
    for resource, changes in CHANGES.items():
        config = config.changed(resource, changes)
    asking = Asking(config=config)
    asking.create(
        "recorded",
        configs={
            "retention.ms": " 5 ",
            "cleanup.policy": "compact , delete",
            "internal.segment.bytes": " 1000 ",
            "min.cleanable.dirty.ratio": ".25",
            "flush.messages": "007",
        },
    )
    return asking


def describe(asking: Asking, resource_type: int, name: str, *, synonyms: bool = True) -> list[list[Any]]:
    asked = DescribeConfigsResource(resource_type=resource_type, resource_name=name, configuration_keys=None)
    request = DescribeConfigsRequest(resources=(asked,), include_synonyms=synonyms)
    (result,) = asking.ask(request).results
    return [[resource_type, name, *_described(one)] for one in result.configs]


def _described(one: DescribeConfigsResourceResult) -> list[Any]:
    synonyms = [[synonym.name, synonym.value, synonym.source] for synonym in one.synonyms]
    return [one.name, one.value, one.read_only, one.config_source, one.is_sensitive, one.config_type, synonyms]


@pytest.mark.parametrize(
    ("resource_type", "name"), [(4, "1"), (4, ""), (2, "recorded"), (32, "recorded"), (16, "recorded")]
)
def test_a_resource_is_described_as_kafka_describes_it(resource_type: int, name: str) -> None:
    recorded = [line for line in RECORDED if line[:2] == [resource_type, name]]
    assert recorded
    assert describe(recorded_node(), resource_type, name) == recorded


@pytest.mark.parametrize(("properties", "described"), [pytest.param(*rest, id=how) for how, *rest in LISTENERS])
def test_listeners_are_described_as_kafka_describes_them(properties: dict[str, object], described: list[Any]) -> None:
    asking = Asking(config=BrokerConfig.of(properties, defaults=()))
    keys = tuple(row[0] for row in described)
    asked = DescribeConfigsResource(resource_type=4, resource_name="1", configuration_keys=keys)
    request = DescribeConfigsRequest(resources=(asked,), include_synonyms=True, include_documentation=True)
    (result,) = asking.ask(request).results
    assert [[*_described(one), bool(one.documentation)] for one in result.configs] == described


def test_without_synonyms_the_source_is_still_known() -> None:
    asking = recorded_node()
    assert describe(asking, 4, "1", synonyms=False) == [[*line[:8], []] for line in RECORDED if line[:2] == [4, "1"]]


def test_a_stand_ins_defaults_are_static() -> None:
    described = {line[2]: line for line in describe(Asking(), 4, "1")}
    for row in DEFAULTS:
        assert described[row.name][5] == 4


def test_a_topic_does_not_say_that_its_default_comes_from_hours() -> None:
    """Kafka looks at ``log.retention.ms`` alone, so that the source of what is static looks like a default."""
    asking = Asking({"log.retention.hours": 24})
    asking.create("orders")
    described = {line[2]: line[3:] for line in describe(asking, 2, "orders")}
    assert described["retention.ms"] == ["86400000", False, 5, False, 5, []]


@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_documentation_is_what_acts(version: int) -> None:
    """Deviation (scope-of-a-stand-in)."""
    asking = Asking()
    asking.create("orders")
    resources = (
        DescribeConfigsResource(resource_type=4, resource_name="1", configuration_keys=("num.partitions", "log.dirs")),
        DescribeConfigsResource(
            resource_type=2, resource_name="orders", configuration_keys=("retention.ms", "preallocate")
        ),
    )
    request = DescribeConfigsRequest(resources=resources, include_documentation=version >= 3)
    texts = {
        config.name: config.documentation
        for result in asking.ask(request, version).results
        for config in result.configs
    }
    partitions = "The number of partitions of a topic that is created without one." if version >= 3 else None
    retention = "How long records are kept; -1 is without limit." if version >= 3 else None
    assert texts == {"log.dirs": None, "num.partitions": partitions, "preallocate": None, "retention.ms": retention}

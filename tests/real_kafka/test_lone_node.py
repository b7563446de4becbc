"""What a lone node is told."""

import socket

import pytest

from tests.real_kafka import lone_node


@pytest.mark.parametrize(
    ("name", "variable"),
    [
        ("group.initial.rebalance.delay.ms", "KAFKA_GROUP_INITIAL_REBALANCE_DELAY_MS"),
        ("node.id", "KAFKA_NODE_ID"),
        ("a_b.c-d", "KAFKA_A__B_C___D"),
    ],
)
def test_a_property_is_a_variable_in_the_public_image(name: str, variable: str) -> None:
    assert lone_node.variable(name) == variable


def test_a_container_listens_everywhere_and_is_found_on_this_machine() -> None:
    told = lone_node.properties(23456, {})
    assert told["listeners"] == "CLIENT://:9092,BROKER://:19092,CONTROLLER://:9093"
    assert told["advertised.listeners"] == "CLIENT://127.0.0.1:23456,BROKER://localhost:19092"
    assert told["controller.quorum.voters"] == "1@localhost:9093"


def test_a_process_keeps_to_this_machine() -> None:
    told = lone_node.properties(1, {}, host="127.0.0.1", ports=(1, 2, 3))
    assert told["listeners"] == "CLIENT://127.0.0.1:1,BROKER://127.0.0.1:2,CONTROLLER://127.0.0.1:3"
    assert told["controller.quorum.voters"] == "1@127.0.0.1:3"


def test_given_properties_have_the_last_word() -> None:
    given = {"offsets.topic.replication.factor": "3", "message.max.bytes": "2000"}
    assert given.items() <= lone_node.properties(1, given).items()


def test_the_offsets_topic_has_the_partitions_it_is_told_to_have() -> None:
    assert lone_node.offsets_partitions({}) == 50
    assert lone_node.offsets_partitions({"offsets.topic.num.partitions": "3"}) == 3


def test_a_free_port_can_be_had_and_no_client_gets_it_by_chance() -> None:
    port = lone_node.free_port()
    assert 20_000 <= port < 30_000
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", port))

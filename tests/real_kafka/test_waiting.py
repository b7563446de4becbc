"""When a broker is ready, tried on a server that is quicker to start than Kafka."""

import pytest

from groupcoord.core.java_hash_order import partition_for
from tests.clients.in_process import groupcoord
from tests.real_kafka.broker import BrokerFailed
from tests.real_kafka.lone_node import free_port
from tests.real_kafka.waiting import a_group_per_partition, coordinates, until_it_coordinates


def test_there_is_a_group_for_each_partition() -> None:
    assert sorted(partition_for(name, 50) for name in a_group_per_partition(50)) == list(range(50))


def test_a_server_that_answers_for_all_groups_is_ready() -> None:
    with groupcoord() as server:
        port = int(server.address.rpartition(":")[2])
        assert coordinates(port, 50)
        until_it_coordinates(port, 50, lambda: "nobody asks")


def test_a_port_that_nobody_listens_to_is_not() -> None:
    assert not coordinates(free_port(), 50)


@pytest.mark.slow
def test_a_broker_that_ended_is_not_waited_for() -> None:
    ends = iter([None, "it has exited with 1"])
    with pytest.raises(BrokerFailed, match="it has exited with 1"):
        until_it_coordinates(free_port(), 50, lambda: next(ends))

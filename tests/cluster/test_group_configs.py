"""Configurations of consumer groups (KIP-848), as a member sees them in the answers to its heartbeats."""

import pytest

from groupcoord.cluster.assemble import assemble
from groupcoord.cluster.cluster_core import ClusterCore, TopicsOfBroker
from groupcoord.config.broker_config import load
from groupcoord.core.effects import Call, Reply
from groupcoord.protocol.apis import APIS, ApiKey
from groupcoord.protocol.apis.incremental_alter_configs import AlterableConfig, AlterConfigsResource
from groupcoord.protocol.messages import ConsumerGroupHeartbeatRequest, IncrementalAlterConfigsRequest
from tests.testing.trace.stage import Counting

GROUP = 32
SET, DELETE = 0, 1
INTERVAL = "consumer.heartbeat.interval.ms"


@pytest.fixture
def core() -> ClusterCore:
    return assemble(load(["group.consumer.min.heartbeat.interval.ms=1"]), random=Counting(), now_ms=0).core


def answer(core: ClusterCore, key: ApiKey, request: object) -> object:
    api = APIS[key]
    effects = [*core.handle(Call(1, 1, api, api.max_version, "test", "/127.0.0.1"), request, 0), *core.flush(0)]
    [reply] = [effect for effect in effects if isinstance(effect, Reply)]
    return reply.response


def configure(core: ClusterCore, group: str, operation: int, value: str | None) -> None:
    change = AlterableConfig(name=INTERVAL, config_operation=operation, value=value)
    resource = AlterConfigsResource(resource_type=GROUP, resource_name=group, configs=(change,))
    answer(core, ApiKey.INCREMENTAL_ALTER_CONFIGS, IncrementalAlterConfigsRequest(resources=(resource,)))


def interval_ms(core: ClusterCore, group: str) -> int:
    """The heartbeat interval that a new member of ``group`` is told."""
    request = ConsumerGroupHeartbeatRequest(
        group_id=group,
        member_id="member",
        member_epoch=0,
        rebalance_timeout_ms=1_000,
        subscribed_topic_names=(),
        topic_partitions=(),
    )
    told = answer(core, ApiKey.CONSUMER_GROUP_HEARTBEAT, request)
    return told.heartbeat_interval_ms  # type: ignore[attr-defined, no-any-return]


def test_a_group_goes_by_its_own_configuration_and_others_by_the_brokers(core: ClusterCore) -> None:
    assert interval_ms(core, "one") == 5_000
    configure(core, "one", SET, "700")
    assert (interval_ms(core, "one"), interval_ms(core, "two")) == (700, 5_000)
    configure(core, "one", DELETE, None)
    assert (interval_ms(core, "one"), interval_ms(core, "two")) == (5_000, 5_000)


def test_racks_of_no_topic(core: ClusterCore) -> None:
    with pytest.raises(KeyError):
        TopicsOfBroker(core.broker).partition_racks("nowhere")


def test_assignors_may_be_configured_by_the_names_of_kafkas_classes() -> None:
    classes = "org.apache.kafka.coordinator.group.assignor"
    config = load([f"group.consumer.assignors={classes}.RangeAssignor,uniform"])
    core = assemble(config, random=Counting(), now_ms=0).core
    assert core.coordinator.config.group_consumer_assignors == ("range", "uniform")
    assert config["group.consumer.assignors"] == (f"{classes}.RangeAssignor", "uniform")

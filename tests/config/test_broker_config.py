"""From what somebody wrote to a configuration, or to a sentence about what is wrong with it."""

import dataclasses
from typing import Any

import pytest

from groupcoord.config.broker_config import (
    CLUSTER_ID,
    BrokerConfig,
    ConfigResource,
    ContradictionError,
    as_items,
    connection_overrides,
    load,
)
from groupcoord.config.config_def import ConfigError, InvalidValueError
from groupcoord.config.listeners import Endpoint
from groupcoord.config.property_definitions import BROKER

OVERRIDES = "max.connections.per.ip.overrides"
LONGEST_INTERVAL = "group.consumer.max.assignment.interval.ms"
ALL_BROKERS, THIS_BROKER = ConfigResource(4, ""), ConfigResource(4, "1")


def test_defaults_are_kafkas_and_a_stand_ins() -> None:
    config = load()
    assert config.group_max_session_timeout_ms == 1_800_000
    assert config["log.cleaner.min.cleanable.ratio"] == 0.5
    assert config["offsets.topic.replication.factor"] == 1
    assert (config.node_id, config["broker.id"]) == (1, 1)
    assert config.cluster_id == CLUSTER_ID
    assert config.served == config.advertised == (Endpoint("PLAINTEXT", "127.0.0.1", 9092),)
    assert config.without_effect == ()
    with pytest.raises(KeyError):
        config["no.such.property"]


def test_every_attribute_is_a_property() -> None:
    config = load()
    about = {"static", "dynamic", "values", "without_effect", "cluster_id", "served", "advertised"}
    for field in dataclasses.fields(BrokerConfig):
        if field.name not in about:
            assert getattr(config, field.name) == config[field.name.replace("_", ".")]


def test_items_win_over_the_file_and_the_last_wins() -> None:
    text = "num.partitions=2\nnum.partitions=3\ngroup.max.size = 4\n"
    config = load(["group.max.size=5", "group.max.size=6"], file_text=text)
    assert (config.num_partitions, config.group_max_size) == (3, 6)


def test_a_configuration_is_made_from_values_too() -> None:
    config = BrokerConfig.of({"auto.create.topics.enable": False, "num.partitions": 7}, cluster_id="mine")
    assert (config.auto_create_topics_enable, config.num_partitions, config.cluster_id) == (False, 7, "mine")


def test_what_has_no_effect_here_is_listed() -> None:
    config = load(["log.dirs=/var/kafka", "num.partitions=3", "num.io.threads=4"])
    assert config.without_effect == ("log.dirs", "num.io.threads")


@pytest.mark.parametrize(
    ("item", "message"),
    [
        ("num.partitons=3", "num.partitons: unknown property; did you mean num.partitions?"),
        ("foo=1", "foo: unknown property; Kafka's are at https://kafka.apache.org/documentation/#brokerconfigs"),
        ("num.partitions", "num.partitions: expected key=value"),
        ("num.partitions=x", "num.partitions=x: expected INT, at least 1"),
        ("num.partitions=0", "num.partitions=0: expected INT, at least 1"),
        ("log.cleanup.policy=foo", "log.cleanup.policy=foo: expected LIST, a list of compact, delete"),
        (
            "retention.ms=5",
            "retention.ms: unknown property; it is a topic's configuration; the broker's default for it is log.retention.ms",
        ),
        ("remote.storage.enable=true", "remote.storage.enable: unknown property; did you mean remote.log.storage"),
        ("log.retention.hours=0", "log.retention.hours=0: must be unlimited (-1) or, greater than or equal to 1"),
        ("log.roll.ms=0", "log.roll.ms=0: must be greater than or equal to 1"),
        ("log.roll.jitter.hours=-1", "log.roll.jitter.hours=-1: expected INT, at least 0"),
        ("log.roll.jitter.ms=-1", "log.roll.jitter.ms=-1: must be greater than or equal to 0"),
        ("log.cleaner.threads=0", "log.cleaner.threads=0: at least one thread is needed"),
        (
            "log.cleaner.dedupe.buffer.size=1048576",
            "log.cleaner.dedupe.buffer.size=1048576: must be at least 1MB per cleaner thread.",
        ),
        (
            "cordoned.log.dirs=*,/a,/b",
            "cordoned.log.dirs=*,/a,/b: must be present in log.dirs or log.dir. Missing entries : /a, /b",
        ),
        (
            "queued.max.request.bytes=5",
            "queued.max.request.bytes=5: must be larger or equal to socket.request.max.bytes",
        ),
        (
            "max.connections.per.ip=0",
            "max.connections.per.ip=0: can be set to zero only if max.connections.per.ip.over",
        ),
        ("connections.max.idle.ms=100", "connections.max.idle.ms=100: must exceed connection.failed.authentication"),
        (
            "max.connections.per.ip.overrides=x",
            "max.connections.per.ip.overrides=x: x is not of the form ADDRESS:COUNT",
        ),
        (
            "group.share.max.session.timeout.ms=1",
            "group.share.session.timeout.ms=: must be less than or equal to group.",
        ),
        ("broker.id=3", None),
        ("listeners=SSL://:9", "listeners=SSL://:9: SSL speaks SSL; only PLAINTEXT can be served"),
        (
            "advertised.listeners=PLAINTEXT://0.0.0.0:1",
            "advertised.listeners=PLAINTEXT://0.0.0.0:1: advertised.listeners cannot use the nonroutable meta-address 0.0.0.0",
        ),
        (
            "listener.security.protocol.map=A",
            "listener.security.protocol.map=A: A is not of the form LISTENER:PROTOCOL",
        ),
        (
            "offsets.topic.segment.bytes=4096",
            "offsets.topic.segment.bytes=4096: the topic could not be created: Invalid value 4096 for configuration segment",
        ),
        (
            "group.consumer.assignors=uniform,org.example.Mine",
            (
                "group.consumer.assignors=uniform,org.example.Mine: org.example.Mine is none of uniform, range, "
                "org.apache.kafka.coordinator.group.assignor.UniformAssignor, "
                "org.apache.kafka.coordinator.group.assignor.RangeAssignor"
            ),
        ),
        ("group.max.size=99999999999", "group.max.size=99999999999: expected INT, at least 1"),
    ],
)
def test_a_mistake_is_refused_by_name(item: str, message: str | None) -> None:
    if message is None:
        assert load([item])
        return
    with pytest.raises(ConfigError) as refusal:
        load([item])
    assert str(refusal.value).startswith(message)


def test_listeners_that_do_not_go_together_are_refused() -> None:
    protocols = "listener.security.protocol.map=A:PLAINTEXT,B:PLAINTEXT"
    items = (protocols, "listeners=A://:9092,B://:9094", "inter.broker.listener.name=A")
    assert [str(endpoint) for endpoint in load(items, brokers=2).advertised] == [
        "A://localhost:9092",
        "B://localhost:9094",
    ]
    with pytest.raises(ConfigError, match=r"^listeners=A://:9092,B://:9094: the 3 brokers listen on ports"):
        load(items, brokers=3)
    with pytest.raises(
        ConfigError, match=r"^listeners=A://:1,CONTROLLER://:1: Each listener must have a different port"
    ):
        load([protocols, "listeners=A://:1,CONTROLLER://:1", "inter.broker.listener.name=A"])
    with pytest.raises(
        ConfigError, match=r"^inter.broker.listener.name=: .* must be a listener name defined in advert"
    ):
        load(items[:2])


def test_a_mistake_in_a_file_is_refused_with_its_line() -> None:
    with pytest.raises(
        ConfigError, match=r"^my\.properties:3: num\.partitions=x: expected INT, at least 1$"
    ) as refusal:
        load(file_text="# mine\n\nnum.partitions = x\n", file_name="my.properties")
    assert (refusal.value.origin, refusal.value.key, refusal.value.value) == ("my.properties:3", "num.partitions", "x")
    with pytest.raises(ConfigError, match=r"^server\.properties:1: log\.retention\.ms=0: must be"):
        load(file_text="log.retention.ms=0")


def test_a_secret_is_not_repeated() -> None:
    config = load(["ssl.key.password=tiger"])
    assert config.without_effect == ("ssl.key.password",)
    with pytest.raises(ConfigError, match=r"expected LIST") as refusal:
        load(["sasl.enabled.mechanisms=a,,b"])
    assert refusal.value.value == "a,,b"


def test_the_old_name_of_the_node_id() -> None:
    assert load(["broker.id=3"]).node_id == 3
    assert load(["node.id=4"])["broker.id"] == 4
    assert load(["node.id=5", "broker.id=05"]).node_id == 5
    with pytest.raises(ConfigError, match=r"broker.id=6: node.id is 5; set them to the same value"):
        load(["node.id=5", "broker.id=6"])


def test_the_server_says_where_it_listens() -> None:
    config = load(["listeners=PLAINTEXT://:0"]).listening_at("127.0.0.1", 41234)
    assert config.served == config.advertised == (Endpoint("PLAINTEXT", "127.0.0.1", 41234),)
    assert config["listeners"] == ("PLAINTEXT://127.0.0.1:41234",)
    assert load().listening_at("::1", 5).served == (Endpoint("PLAINTEXT", "::1", 5),)
    advertised = load(["advertised.listeners=PLAINTEXT://kafka:9092"]).listening_at("0.0.0.0", 5)
    assert advertised.advertised == (Endpoint("PLAINTEXT", "kafka", 9092),)
    with pytest.raises(ConfigError, match="listeners=PLAINTEXT://a b:5: "):
        load().listening_at("a b", 5)


def test_kafkas_own_file_can_be_read() -> None:
    text = """
    process.roles=broker,controller
    node.id=7
    controller.quorum.voters=7@localhost:9093
    listeners=PLAINTEXT://:9092,CONTROLLER://:9093
    inter.broker.listener.name=PLAINTEXT
    advertised.listeners=PLAINTEXT://broker.example:9092,CONTROLLER://broker.example:9093
    controller.listener.names=CONTROLLER
    listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL
    log.dirs=/tmp/kraft-combined-logs
    """
    config = load(file_text=text)
    (told,) = config.advertised
    assert told is not None
    assert (config.node_id, config.served[0].port, told.host) == (7, 9092, "broker.example")


class TestChangesWhileItRuns:
    def test_the_stronger_wins(self) -> None:
        config = load(["message.max.bytes=1"])
        config = config.changed(ALL_BROKERS, {"message.max.bytes": "2"})
        assert config["message.max.bytes"] == 2
        config = config.changed(THIS_BROKER, {"message.max.bytes": " 3 "})
        assert config["message.max.bytes"] == 3
        assert (config.own_changes, config.default_changes) == (
            {"message.max.bytes": " 3 "},
            {"message.max.bytes": "2"},
        )
        config = config.changed(THIS_BROKER, {})
        assert config["message.max.bytes"] == 2
        assert THIS_BROKER not in config.dynamic

    def test_what_says_the_same_in_other_units_no_longer_counts(self) -> None:
        config = load(["log.retention.hours=24"])
        changed = config.changed(ALL_BROKERS, {"log.retention.ms": "5"})
        assert (changed["log.retention.ms"], changed["log.retention.hours"]) == (5, 168)
        assert changed.changed(ALL_BROKERS, {})["log.retention.hours"] == 24

    def test_another_resource_changes_no_value(self) -> None:
        config = load()
        changed = config.changed(ConfigResource(32, "g"), {"consumer.session.timeout.ms": "50000"})
        assert changed.values == config.values
        assert changed.dynamic[ConfigResource(32, "g")] == {"consumer.session.timeout.ms": "50000"}

    def test_what_is_no_property_is_kept(self) -> None:
        assert load().changed(THIS_BROKER, {"plug.in": "x"}).own_changes == {"plug.in": "x"}

    def test_a_lone_node_starts_with_the_number_of_replicas(self) -> None:
        """KIP-966: the controller writes it down so that it can be relied on."""
        assert load().default_changes == {"min.insync.replicas": "1"}
        assert load(["min.insync.replicas=2"]).default_changes == {"min.insync.replicas": "2"}

    @pytest.mark.parametrize(
        ("name", "text", "message"),
        [
            ("message.max.bytes", "x", "Invalid value x for configuration message.max.bytes: Not a number of type INT"),
            (
                "log.retention.ms",
                "0",
                "requirement failed: log.retention.ms must be unlimited (-1) or, greater than or equal to 1",
            ),
            ("log.roll.ms", "0", "requirement failed: log.roll.ms must be greater than or equal to 1"),
            ("log.roll.jitter.ms", "-2", "requirement failed: log.roll.jitter.ms must be greater than or equal to 0"),
            (
                "max.connections.per.ip",
                "0",
                f"requirement failed: max.connections.per.ip can be set to zero only if {OVERRIDES} property is set.",
            ),
            (
                "group.consumer.assignment.interval.ms",
                "2000000",
                f"group.consumer.assignment.interval.ms must be less than or equal to {LONGEST_INTERVAL}",
            ),
        ],
    )
    def test_a_wrong_one_is_refused_in_kafkas_words(self, name: str, text: str, message: str) -> None:
        with pytest.raises(InvalidValueError) as refusal:
            load().changed(THIS_BROKER, {name: text})
        assert str(refusal.value) == message


def test_limits_of_single_addresses() -> None:
    assert connection_overrides("") == {}
    assert connection_overrides("127.0.0.1:5, ::1:6") == {"127.0.0.1": 5, "::1": 6}
    for text, kafkas in {
        "abc": f"Error parsing configuration property '{OVERRIDES}': begin 0, end -1, length 3",
        "127.0.0.1:x": 'For input string: "x"',
    }.items():
        with pytest.raises(ContradictionError) as refusal:
            connection_overrides(text)
        assert str(refusal.value) == kafkas
        assert refusal.value.reason == f"{text} is not of the form ADDRESS:COUNT"


def test_every_property_can_be_set_to_its_default() -> None:
    lone: dict[str, Any] = {name: row.default for name, row in BROKER.items() if row.default is not None}
    del lone["broker.id"], lone["listeners"]
    config = BrokerConfig.of(lone)
    assert config["log.retention.bytes"] == -1


def test_another_broker_differs_in_its_name_and_places() -> None:
    config = load(["num.partitions=3", "advertised.listeners=PLAINTEXT://kafka:9092"])
    served, advertised = (Endpoint("PLAINTEXT", "127.0.0.1", 9093),), (Endpoint("PLAINTEXT", "kafka", 9093),)
    other = config.for_broker(2, "r", served, advertised)
    assert (other.node_id, other["broker.id"], other.broker_rack, other.num_partitions) == (2, 2, "r", 3)
    assert (other.served, other.advertised) == (served, advertised)
    plain = load().for_broker(2, None, served, advertised)
    assert (plain.broker_rack, plain.advertised, plain["advertised.listeners"]) == (None, served, None)


def test_properties_of_python_become_items() -> None:
    items = as_items({"auto.create.topics.enable": False, "group.max.size": 3, "log.dirs": "x"})
    assert items == ["auto.create.topics.enable=false", "group.max.size=3", "log.dirs=x"]

"""IncrementalAlterConfigs, one resource at a time; codes and texts are those of a real broker."""

import pytest

from groupcoord.broker.alter_configs import alter
from groupcoord.config.broker_config import ConfigResource
from groupcoord.core.api_error import ApiError
from groupcoord.protocol.apis.incremental_alter_configs import AlterableConfig
from groupcoord.protocol.errors import ErrorCode
from tests.broker.asking import Asking

SET, DELETE, APPEND, SUBTRACT = range(4)
TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32
INVALID_REQUEST, INVALID_CONFIG = ErrorCode.INVALID_REQUEST, ErrorCode.INVALID_CONFIG
Change = tuple[str, str | None] | tuple[str, str | None, int]
DONE = (ErrorCode.NONE, None)
NOT_FOUND = "could not be found."
ILLEGAL = (
    "Topic name is invalid: 'a b' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
)


class Changing(Asking):
    """A topic called orders, and somebody who changes configurations."""

    def __init__(self, properties: dict[str, object] | None = None) -> None:
        super().__init__(properties)
        self.create("orders")

    def change(
        self, resource_type: int, name: str, *changes: Change, check: bool = False
    ) -> tuple[ErrorCode, str | None]:
        configs = [
            AlterableConfig(name=one[0], value=one[1], config_operation=one[2] if len(one) > 2 else SET)
            for one in changes
        ]
        try:
            alter(self.broker, ConfigResource(resource_type, name), configs, validate_only=check)
        except ApiError as refused:
            return refused.code, refused.message
        return DONE

    def orders(self) -> dict[str, str]:
        topic = self.broker.topics.get("orders")
        assert topic is not None
        return dict(topic.metadata.configs)


class TestForm:
    @pytest.mark.parametrize("resource_type", [TOPIC, BROKER, LOGGER, METRICS, GROUP, 0])
    def test_a_key_is_said_once_and_has_a_value(self, resource_type: int) -> None:
        asking = Changing()
        assert asking.change(resource_type, "1", ("a", "1"), ("a", None)) == (
            INVALID_REQUEST,
            "Error due to duplicate config keys",
        )
        assert asking.change(resource_type, "1", ("b", None), ("a", None, APPEND), ("c", None, DELETE)) == (
            INVALID_REQUEST,
            "Null value not supported for : b, a",
        )

    def test_there_are_not_other_resources(self) -> None:
        for resource_type in (0, 1, 3, 64, -1):
            assert Changing().change(resource_type, "1", ("a", "b")) == (
                INVALID_REQUEST,
                f"Unknown resource type {resource_type}",
            )


class TestTopic:
    def test_a_change_takes_effect_at_once(self) -> None:
        asking = Changing()
        log = asking.broker.log("orders", 0)
        assert log is not None
        assert asking.change(TOPIC, "orders", ("retention.ms", " 7 "), ("max.message.bytes", "8")) == DONE
        assert (log.settings.retention_ms, log.settings.max_message_bytes) == (7, 8)
        assert asking.orders() == {"retention.ms": " 7 ", "max.message.bytes": "8"}
        assert asking.change(TOPIC, "orders", ("retention.ms", "ignored", DELETE), ("nope", None, DELETE)) == DONE
        assert log.settings.retention_ms == 604_800_000

    def test_a_check_changes_nothing(self) -> None:
        asking = Changing()
        assert asking.change(TOPIC, "orders", ("retention.ms", "7"), check=True) == DONE
        assert asking.orders() == {}

    def test_a_list_grows_and_shrinks_from_its_default(self) -> None:
        asking = Changing()
        steps: list[tuple[str, int, str]] = [
            ("compact", APPEND, "delete,compact"),
            ("compact", APPEND, "delete,compact"),
            ("delete", SUBTRACT, "compact"),
            ("bogus", SUBTRACT, "compact"),
            ("compact", SUBTRACT, ""),
            (",delete,,", SUBTRACT, ""),
            ("delete,compact", APPEND, "delete,compact"),
            (" compact", APPEND, "delete,compact, compact"),
            (" compact", SUBTRACT, "delete,compact"),
            (",", APPEND, "delete,compact"),
        ]
        for value, operation, expected in steps:
            assert asking.change(TOPIC, "orders", ("cleanup.policy", value, operation)) == DONE
            assert asking.orders()["cleanup.policy"] == expected

    @pytest.mark.parametrize(
        ("changes", "text"),
        [
            ((("retention.ms", "x"),), "Invalid value x for configuration retention.ms: Not a number of type LONG"),
            ((("nope", "5"), ("retention.ms", "x")), "Unknown topic config name: nope"),
            ((("retention.ms", "5", APPEND),), "Can't APPEND to key retention.ms because its type is not LIST."),
            ((("nope", "5", SUBTRACT),), "Can't SUBTRACT to key nope because its type is not LIST."),
            (
                (("min.compaction.lag.ms", "x", SUBTRACT), ("flush.ms", "2", APPEND)),
                "Can't APPEND to key flush.ms because its type is not LIST.",
            ),
            ((("cleanup.policy", "", APPEND),), "Configuration 'cleanup.policy' values must not be empty."),
            (
                (("cleanup.policy", "bogus", APPEND),),
                "Invalid value bogus for configuration cleanup.policy: String must be one of: compact, delete",
            ),
        ],
    )
    def test_what_is_no_configuration(self, changes: tuple[Change, ...], text: str) -> None:
        asking = Changing()
        assert asking.change(TOPIC, "orders", *changes) == (INVALID_CONFIG, text)
        assert asking.orders() == {}

    @pytest.mark.parametrize(
        ("name", "error", "text"),
        [
            ("", INVALID_REQUEST, "Default topic resources are not allowed."),
            ("a b", ErrorCode.INVALID_TOPIC_EXCEPTION, ILLEGAL),
            ("nope", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "The topic 'nope' does not exist."),
        ],
    )
    def test_what_is_no_topic(self, name: str, error: ErrorCode, text: str) -> None:
        assert Changing().change(TOPIC, name, ("retention.ms", "5")) == (error, text)
        assert Changing().change(TOPIC, name) == (error, text)

    @pytest.mark.parametrize("operation", [9, -1])
    def test_an_operation_kafka_does_not_know(self, operation: int) -> None:
        assert Changing().change(TOPIC, "orders", ("a", "5", operation)) == (ErrorCode.UNKNOWN_SERVER_ERROR, None)


class TestBroker:
    def test_a_change_takes_effect_at_once(self) -> None:
        asking = Changing()
        log = asking.broker.log("orders", 0)
        assert log is not None
        assert asking.change(BROKER, "", ("message.max.bytes", "3000000")) == DONE
        assert asking.change(BROKER, "1", ("message.max.bytes", " 2000000 ")) == DONE
        assert (asking.broker.config["message.max.bytes"], log.settings.max_message_bytes) == (2_000_000, 2_000_000)
        assert asking.change(BROKER, "1", ("message.max.bytes", None, DELETE)) == DONE
        assert log.settings.max_message_bytes == 3_000_000

    def test_a_check_changes_nothing(self) -> None:
        asking = Changing()
        before = asking.broker.config
        assert asking.change(BROKER, "1", ("max.connections", "5"), check=True) == DONE
        assert asking.broker.config is before

    def test_an_id_with_zeros_is_kept_and_means_nobody(self) -> None:
        asking = Changing()
        assert asking.change(BROKER, "01", ("max.connections", "5")) == DONE
        assert asking.broker.config.max_connections == 2_147_483_647

    def test_what_kafka_does_not_know_may_be_for_a_plug_in(self) -> None:
        asking = Changing()
        assert asking.change(BROKER, "1", ("plug.in", "x"), ("listener.name.a.max.connections", "5")) == DONE
        assert asking.broker.config.own_changes == {"plug.in": "x", "listener.name.a.max.connections": "5"}

    def test_a_list_grows_and_shrinks(self) -> None:
        asking = Changing()
        assert asking.change(BROKER, "1", ("log.cleanup.policy", "compact", APPEND)) == DONE
        assert asking.broker.config.own_changes == {"log.cleanup.policy": "delete,compact"}
        assert asking.change(BROKER, "1", ("log.cleanup.policy", "delete", SUBTRACT)) == DONE
        assert asking.broker.config["log.cleanup.policy"] == ("compact",)
        log = asking.broker.log("orders", 0)
        assert log is not None
        assert log.settings.compact

    @pytest.mark.parametrize(
        ("name", "text"),
        [
            ("2", "Unexpected broker id, expected 1, but received 2"),
            ("-1", "Unexpected broker id, expected 1, but received -1"),
            ("abc", "Node id must be an integer, but it is: abc"),
        ],
    )
    def test_what_is_not_this_broker(self, name: str, text: str) -> None:
        assert Changing().change(BROKER, name, ("max.connections", "5")) == (INVALID_REQUEST, text)

    @pytest.mark.parametrize(
        ("name", "changes", "text"),
        [
            (
                "1",
                (("group.max.size", "5"), ("num.partitions", "3"), ("nope", "5")),
                "Cannot update these configs dynamically: [num.partitions, group.max.size]",
            ),
            (
                "",
                (("producer.id.expiration.check.interval.ms", "7"),),
                "Cannot update these configs dynamically: [producer.id.expiration.check.interval.ms]",
            ),
            (
                "1",
                (("ssl.keystore.type", "JKS"),),
                (
                    "These security configs can be dynamically updated only per-listener using the listener prefix: "
                    "[ssl.keystore.type]"
                ),
            ),
            (
                "",
                (("ssl.cipher.suites", "x"), ("listeners", "y")),
                (
                    "Cannot update these configs at default cluster level, broker id must be specified: "
                    "[listeners, ssl.cipher.suites]"
                ),
            ),
            (
                "",
                (("ssl.cipher.suites", "x"), ("message.max.bytes", "x")),
                "Invalid value x for configuration message.max.bytes: Not a number of type INT",
            ),
            (
                "1",
                (("leader.replication.throttled.rate", "x"),),
                "Invalid value x for configuration leader.replication.throttled.rate: Not a number of type LONG",
            ),
            (
                "1",
                (("principal.builder.class", "x"),),
                f"Invalid value x for configuration principal.builder.class: Class x {NOT_FOUND}",
            ),
            (
                "1",
                (("log.retention.ms", "0"),),
                "requirement failed: log.retention.ms must be unlimited (-1) or, greater than or equal to 1",
            ),
            ("1", (("message.max.bytes", "5", 9),), "Unknown operations type 9"),
            (
                "1",
                (("num.io.threads", "3"),),
                (
                    "Invalid value org.apache.kafka.common.config.ConfigException: Dynamic thread count update validation "
                    "failed for num.io.threads=3, value should be at least half the current value 8 for configuration "
                    "Invalid dynamic configuration"
                ),
            ),
            (
                "1",
                (("num.io.threads", "17"),),
                (
                    "Invalid value org.apache.kafka.common.config.ConfigException: Dynamic thread count update validation "
                    "failed for num.io.threads=17, value should not be greater than double the current value 8 for "
                    "configuration Invalid dynamic configuration"
                ),
            ),
            (
                "1",
                (("remote.log.manager.copier.thread.pool.size", "4"),),
                (
                    "Invalid value org.apache.kafka.common.config.ConfigException: Dynamic thread count update validation "
                    "failed for remote.log.manager.copier.thread.pool.size=4, value should be at least half the current "
                    "value 10 for configuration Invalid dynamic configuration"
                ),
            ),
            (
                "1",
                (("log.cleaner.threads", "3"),),
                (
                    "Invalid value org.apache.kafka.common.config.ConfigException: Log cleaner threads cannot be increased "
                    "to more than double the current value 1 for configuration Invalid dynamic configuration"
                ),
            ),
            ("1", (("log.cleaner.threads", "0"),), "/ by zero"),
            (
                "1",
                (("max.connections", "0"),),
                (
                    "Invalid value org.apache.kafka.common.config.ConfigException: Invalid max.connections 0 for "
                    "configuration Invalid dynamic configuration"
                ),
            ),
            (
                "1",
                (("metric.reporters", "some.Reporter"),),
                (
                    "Invalid value org.apache.kafka.common.config.ConfigException: Validation of dynamic config update of "
                    "Set(metric.reporters) failed with class class kafka.server.DynamicMetricsReporters for configuration "
                    "Invalid dynamic configuration"
                ),
            ),
            (
                "1",
                (("log.cleaner.dedupe.buffer.size", "1048576"),),
                "requirement failed: log.cleaner.dedupe.buffer.size must be at least 1MB per cleaner thread.",
            ),
            (
                "1",
                (("log.retention.ms", "3"), ("log.local.retention.ms", "5")),
                (
                    "Invalid value org.apache.kafka.common.config.ConfigException: Invalid value 5 for configuration "
                    "log.local.retention.ms: Value must not be more than log.retention.ms property value: 3 for "
                    "configuration Invalid dynamic configuration"
                ),
            ),
            (
                "1",
                (("log.retention.bytes", "134217728"), ("log.local.retention.bytes", "-1")),
                (
                    "Invalid value org.apache.kafka.common.config.ConfigException: Invalid value -1 for configuration "
                    "log.local.retention.bytes: Value must not be -1 as log.retention.bytes value is set as 134217728. for "
                    "configuration Invalid dynamic configuration"
                ),
            ),
            (
                "1",
                (("listeners", "PLAINTEXT://127.0.0.1:1"),),
                "The listener of a running broker cannot be changed here",
            ),
        ],
    )
    def test_what_cannot_be_changed_so(self, name: str, changes: tuple[Change, ...], text: str) -> None:
        asking = Changing()
        before = asking.broker.config
        assert asking.change(BROKER, name, *changes) == (INVALID_REQUEST, text)
        assert asking.broker.config is before

    @pytest.mark.parametrize(
        ("change", "text"),
        [
            (("num.io.threads", "5", APPEND), "Config value append is not allowed for config key: num.io.threads"),
            (("num.io.threads", "5", SUBTRACT), "Config value subtract is not allowed for config key: num.io.threads"),
            (("nope", "5", APPEND), "Unknown config name: nope"),
        ],
    )
    def test_only_lists_grow(self, change: Change, text: str) -> None:
        assert Changing().change(BROKER, "1", change) == (INVALID_CONFIG, text)

    @pytest.mark.parametrize("operation", [APPEND, SUBTRACT])
    def test_a_list_without_a_default_cannot_grow(self, operation: int) -> None:
        for name in ("process.roles", "controller.listener.names"):
            assert Changing().change(BROKER, "1", (name, "x", operation)) == (ErrorCode.UNKNOWN_SERVER_ERROR, None)
            fixed = f"Cannot update these configs dynamically: [{name}]"
            assert Changing().change(BROKER, "1", (name, "x", SET)) == (INVALID_REQUEST, fixed)

    def test_what_is_fixed_may_be_deleted(self) -> None:
        assert Changing().change(BROKER, "1", ("num.partitions", None, DELETE)) == DONE

    def test_unlimited_retention_bounds_nothing(self) -> None:
        asking = Changing({"log.retention.bytes": -1, "log.retention.ms": -1})
        assert asking.change(BROKER, "1", ("log.local.retention.ms", "-1")) == DONE
        assert asking.change(BROKER, "1", ("log.local.retention.bytes", "5")) == DONE

    def test_the_number_of_replicas_in_sync_is_the_clusters(self) -> None:
        """KIP-966, eligible leader replicas: brokers must agree on it."""
        asking, name = Changing(), "min.insync.replicas"
        own = (INVALID_CONFIG, "Broker-level min.insync.replicas cannot be altered while ELR is enabled.")
        assert asking.change(BROKER, "1", (name, "2")) == own
        assert asking.change(BROKER, "1", (name, None, DELETE)) == own
        assert asking.change(BROKER, "", (name, None, DELETE)) == (
            INVALID_CONFIG,
            "Cluster-level min.insync.replicas cannot be removed while ELR is enabled.",
        )
        assert asking.change(BROKER, "", (name, "2")) == DONE
        assert asking.broker.config[name] == 2

    def test_the_local_retention_may_be_as_long_as_that_of_the_whole_log(self) -> None:
        asking = Changing()
        assert asking.change(BROKER, "1", ("log.retention.ms", "5"), ("log.local.retention.ms", "5")) == DONE

    def test_threads_of_the_cleaner_are_reduced_by_half_at_most(self) -> None:
        asking, name = Changing(), "log.cleaner.threads"
        assert asking.change(BROKER, "1", (name, "2")) == DONE
        assert asking.change(BROKER, "1", (name, "4")) == DONE
        text = "Log cleaner threads cannot be reduced to less than half the current value 4"
        error, reason = asking.change(BROKER, "1", (name, "1"))
        assert error == INVALID_REQUEST
        assert text in str(reason)
        assert asking.change(BROKER, "1", (name, "2")) == DONE


class TestGroup:
    def test_a_change_is_kept(self) -> None:
        asking, group = Changing(), ConfigResource(GROUP, "g")
        assert asking.change(GROUP, "g", ("consumer.session.timeout.ms", "50000")) == DONE
        assert asking.broker.config.dynamic[group] == {"consumer.session.timeout.ms": "50000"}
        assert asking.change(GROUP, "g", ("consumer.session.timeout.ms", None, DELETE)) == DONE
        assert group not in asking.broker.config.dynamic

    @pytest.mark.parametrize(
        ("name", "change", "error", "text"),
        [
            ("", ("share.isolation.level", "x"), INVALID_REQUEST, "Default group resources are not allowed."),
            ("g", ("nope", "5"), INVALID_CONFIG, "Unknown group config name: nope"),
            (
                "g",
                ("share.isolation.level", "x"),
                INVALID_CONFIG,
                (
                    "Invalid value x for configuration share.isolation.level: String must be one of: read_committed, "
                    "read_uncommitted"
                ),
            ),
            (
                "g",
                ("consumer.session.timeout.ms", "5", APPEND),
                INVALID_CONFIG,
                "Can't APPEND to key consumer.session.timeout.ms because its type is not LIST.",
            ),
            ("g", ("nope", "5", 9), ErrorCode.UNKNOWN_SERVER_ERROR, None),
        ],
    )
    def test_what_is_no_configuration(self, name: str, change: Change, error: ErrorCode, text: str | None) -> None:
        assert Changing().change(GROUP, name, change) == (error, text)


class TestClientMetrics:
    def test_a_change_is_kept(self) -> None:
        asking = Changing()
        assert asking.change(METRICS, "m", ("interval.ms", "1000"), ("match", "client_id=a.*")) == DONE
        assert asking.broker.config.dynamic[ConfigResource(METRICS, "m")] == {
            "interval.ms": "1000",
            "match": "client_id=a.*",
        }

    @pytest.mark.parametrize(
        ("name", "change", "error", "text"),
        [
            ("", ("interval.ms", "1000"), INVALID_REQUEST, "Subscription name can't be empty"),
            ("m", ("nope", "5"), INVALID_REQUEST, "Unknown client metrics configuration: nope"),
            ("m", ("match", "foo"), INVALID_CONFIG, "Illegal client matching pattern: foo"),
            (
                "m",
                ("metrics", "c", APPEND),
                INVALID_CONFIG,
                "Can't APPEND to key metrics because its type is not LIST.",
            ),
        ],
    )
    def test_what_is_no_configuration(self, name: str, change: Change, error: ErrorCode, text: str) -> None:
        assert Changing().change(METRICS, name, change) == (error, text)


@pytest.mark.parametrize(
    ("name", "change", "error", "text"),
    [
        ("2", ("root", "INFO"), INVALID_REQUEST, "Unexpected node id. Expected 1, but received 2"),
        ("", ("root", "INFO"), INVALID_REQUEST, "Node id must be an integer, but it is: "),
        ("1", ("root", "x", APPEND), INVALID_REQUEST, "APPEND operation is not allowed for the BROKER_LOGGER resource"),
        (
            "1",
            ("root", "x", SUBTRACT),
            INVALID_REQUEST,
            "SUBTRACT operation is not allowed for the BROKER_LOGGER resource",
        ),
        ("1", ("root", "x", 9), ErrorCode.UNKNOWN_SERVER_ERROR, None),
        (
            "1",
            ("root", "LOUD"),
            INVALID_CONFIG,
            (
                "Cannot set the log level of root to LOUD as it is not a supported log level. Valid log levels are DEBUG, "
                "ERROR, FATAL, INFO, TRACE, WARN"
            ),
        ),
        ("1", ("kafka.nobody", "LOUD"), INVALID_CONFIG, "Logger kafka.nobody does not exist!"),
        ("1", ("kafka.nobody", None, DELETE), INVALID_CONFIG, "Logger kafka.nobody does not exist!"),
    ],
)
def test_there_are_no_loggers(name: str, change: Change, error: ErrorCode, text: str | None) -> None:
    """Deviation (scope-of-a-stand-in)."""
    assert Changing().change(LOGGER, name, change) == (error, text)


def test_no_change_to_no_logger_is_no_mistake() -> None:
    assert Changing().change(LOGGER, "1") == DONE

"""DescribeConfigs and IncrementalAlterConfigs as requests; the texts are those of a real broker."""

import pytest

from groupcoord.protocol.apis import alter_configs as replaced
from groupcoord.protocol.apis.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from groupcoord.protocol.apis.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from groupcoord.protocol.apis.list_config_resources import ConfigResource
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages import AlterConfigsRequest, ListConfigResourcesRequest
from tests.broker.asking import Asking

ILLEGAL = (
    "Topic name is invalid: 'a b' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
)


def asked(resource_type: int, name: str, *keys: str) -> DescribeConfigsResource:
    return DescribeConfigsResource(resource_type=resource_type, resource_name=name, configuration_keys=keys or None)


@pytest.mark.parametrize(
    ("resource_type", "name", "error", "text"),
    [
        (2, "nope", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ""),
        (2, "a b", ErrorCode.INVALID_TOPIC_EXCEPTION, ILLEGAL),
        (2, "", ErrorCode.INVALID_TOPIC_EXCEPTION, "Topic name is invalid: the empty string is not allowed"),
        (4, "2", ErrorCode.INVALID_REQUEST, "Unexpected broker id, expected 1 or empty string, but received 2"),
        (4, "abc", ErrorCode.INVALID_REQUEST, "Broker id must be an integer, but it is: abc"),
        (8, "", ErrorCode.INVALID_REQUEST, "Broker id must not be empty"),
        (8, "2", ErrorCode.INVALID_REQUEST, "Unexpected broker id, expected 1 but received 2"),
        (8, "x", ErrorCode.INVALID_REQUEST, "Broker id must be an integer, but it is: x"),
        (16, "", ErrorCode.INVALID_REQUEST, "Client metrics subscription name must not be empty"),
        (32, "", ErrorCode.INVALID_REQUEST, "Group name must not be empty"),
        (0, "1", ErrorCode.INVALID_REQUEST, ErrorCode.INVALID_REQUEST.text),
        (64, "1", ErrorCode.INVALID_REQUEST, ErrorCode.INVALID_REQUEST.text),
    ],
)
def test_what_cannot_be_described(resource_type: int, name: str, error: ErrorCode, text: str) -> None:
    (result,) = Asking().ask(DescribeConfigsRequest(resources=(asked(resource_type, name),))).results
    assert (result.error_code, result.error_message, result.configs) == (error, text, ())
    assert (result.resource_type, result.resource_name) == (resource_type, name)


@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_resources_are_answered_one_by_one(version: int) -> None:
    asking = Asking()
    asking.create("orders")
    resources = (
        asked(2, "orders", "retention.ms", "nope", "retention.ms"),
        asked(4, "01", "num.partitions"),
        asked(2, "nope", "retention.ms"),
        asked(2, "orders", "retention.ms"),
        asked(8, "1"),
    )
    results = asking.ask(DescribeConfigsRequest(resources=resources), version).results
    assert [[config.name for config in result.configs] for result in results] == [
        ["retention.ms"],
        ["num.partitions"],
        [],
        ["retention.ms"],
        [],
    ]
    assert [result.error_message for result in results] == [""] * 5
    assert [result.error_code for result in results] == [0, 0, 3, 0, 0]


def test_no_keys_and_null_are_all_of_them() -> None:
    none = DescribeConfigsResource(resource_type=4, resource_name="1", configuration_keys=())
    results = Asking().ask(DescribeConfigsRequest(resources=(none, asked(4, "1")))).results
    assert [len(result.configs) for result in results] == [340, 340]


@pytest.mark.parametrize("version", [0, 1])
def test_a_resource_that_is_named_twice_is_not_changed(version: int) -> None:
    asking = Asking()
    asking.create("a", "b")
    change = (AlterableConfig(name="retention.ms", config_operation=0, value="7"),)
    resources = tuple(
        AlterConfigsResource(resource_type=2, resource_name=name, configs=change) for name in ("a", "b", "nope", "a")
    )
    responses = asking.ask(IncrementalAlterConfigsRequest(resources=resources, validate_only=False), version).responses
    twice = (ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
    assert [(one.resource_name, (one.error_code, one.error_message)) for one in responses] == [
        ("a", twice),
        ("b", (ErrorCode.NONE, None)),
        ("nope", (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "The topic 'nope' does not exist.")),
        ("a", twice),
    ]
    assert [topic.settings.retention_ms for topic in asking.broker.topics] == [604_800_000, 7]


def replacing(kind: int, name: str, **configs: str | None) -> replaced.AlterConfigsResource:
    """All configurations of a resource; dots are written as underscores."""
    changes = tuple(replaced.AlterableConfig(name=key.replace("_", "."), value=value) for key, value in configs.items())
    return replaced.AlterConfigsResource(resource_type=kind, resource_name=name, configs=changes)


@pytest.mark.parametrize("version", [0, 1, 2])
def test_what_a_replacement_does_not_name_is_removed(version: int) -> None:
    asking = Asking()
    asking.create("a", configs={"retention.ms": "7", "cleanup.policy": "compact"})
    resources = (
        replacing(2, "a", retention_ms="8"),
        replacing(8, "1", kafka_server="DEBUG"),
        replacing(32, "app", consumer_session_timeout_ms="46000"),
    )
    for _ in range(2):
        responses = asking.ask(AlterConfigsRequest(resources=resources, validate_only=False), version).responses
        assert [(one.error_code, one.error_message) for one in responses] == [
            (ErrorCode.NONE, None),
            (ErrorCode.INVALID_REQUEST, "Unknown resource type 8"),
            (ErrorCode.NONE, None),
        ]
    assert [topic.metadata.configs for topic in asking.broker.topics] == [{"retention.ms": "8"}]


def test_a_replacement_that_names_a_resource_twice_is_never_answered() -> None:
    asking = Asking()
    asking.create("a", "b")
    twice = (replacing(2, "a", retention_ms="8"), replacing(2, "a"), replacing(2, "b", retention_ms="9"))
    for resources in (twice, (replacing(0, "x"), replacing(99, "x"))):
        with pytest.raises(ValueError, match="not enough values"):
            asking.ask(AlterConfigsRequest(resources=resources, validate_only=False))
    assert [topic.metadata.configs for topic in asking.broker.topics] == [{}, {"retention.ms": "9"}]


def test_resources_are_listed_in_kafkas_order() -> None:
    """As a real broker listed them that had these topics and subscriptions."""
    asking = Asking()
    topics = ["orders", "__consumer_offsets", "t0", "t1", "b.c", "pays", "zeta", "Alpha"]
    asking.create(*sorted(topics))
    subscriptions = [
        "sub6",
        "sub7",
        "sub4",
        "m0",
        "sub5",
        "sub2",
        "sub3",
        "sub0",
        "sub1",
        "sub11",
        "sub8",
        "sub9",
        "sub10",
    ]
    for name in sorted(subscriptions):
        asking.ask(AlterConfigsRequest(resources=(replacing(16, name, interval_ms="1000"),), validate_only=False))
    found = [(one.resource_type, one.resource_name) for one in listed(asking, ())]
    assert found == [*((16, name) for name in subscriptions), (8, "1"), (4, "1"), *((2, name) for name in topics)]
    assert [one.resource_name for one in listed(asking, (), version=0)] == subscriptions
    refused = asking.ask(ListConfigResourcesRequest(resource_types=(2, 99)))
    assert (refused.error_code, refused.config_resources) == (ErrorCode.UNSUPPORTED_VERSION, ())


def listed(asking: Asking, types: tuple[int, ...], version: int = 1) -> tuple[ConfigResource, ...]:
    """What ListConfigResources lists."""
    resources: tuple[ConfigResource, ...] = asking.ask(
        ListConfigResourcesRequest(resource_types=types), version
    ).config_resources
    return resources


def test_an_unknown_type_refuses_all_that_is_asked_for() -> None:
    asking = Asking()
    asking.create("orders")
    results = asking.ask(DescribeConfigsRequest(resources=(asked(2, "orders"), asked(64, "x")))).results
    assert [(each.error_code, each.configs) for each in results] == [(ErrorCode.INVALID_REQUEST, ())] * 2


def change(resource_type: int, name: str, key: str, operation: int, value: str | None = "1") -> AlterConfigsResource:
    configs = (AlterableConfig(name=key, config_operation=operation, value=value),)
    return AlterConfigsResource(resource_type=resource_type, resource_name=name, configs=configs)


UNKNOWN_OPERATION = 4


@pytest.mark.parametrize("validate_only", [True, False])
def test_an_unknown_operation_fails_every_change_that_the_controller_is_asked_for(validate_only: bool) -> None:
    asking = Asking()
    asking.create("orders")
    resources = (
        change(2, "orders", "retention.ms", 0),
        change(2, "nope", "retention.ms", UNKNOWN_OPERATION),
        change(2, "null", "retention.ms", 0, None),
        change(4, "1", "log.cleaner.threads", 0),
        change(4, "9", "log.cleaner.threads", 0),
        change(99, "x", "retention.ms", 0),
    )
    request = IncrementalAlterConfigsRequest(resources=resources, validate_only=validate_only)
    failed, refused = ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.INVALID_REQUEST
    assert [each.error_code for each in asking.ask(request).responses] == [
        failed,
        failed,
        refused,
        failed,
        refused,
        refused,
    ]
    assert not asking.broker.topics["orders"].metadata.configs


@pytest.mark.parametrize(("validate_only", "configs"), [(True, {}), (False, {"retention.ms": "1"})])
def test_an_unknown_operation_on_a_broker_fails_alone(validate_only: bool, configs: dict[str, str]) -> None:
    asking = Asking()
    asking.create("orders")
    resources = (change(2, "orders", "retention.ms", 0), change(4, "1", "log.cleaner.threads", UNKNOWN_OPERATION))
    request = IncrementalAlterConfigsRequest(resources=resources, validate_only=validate_only)
    assert [each.error_code for each in asking.ask(request).responses] == [0, ErrorCode.INVALID_REQUEST]
    assert asking.broker.topics["orders"].metadata.configs == configs

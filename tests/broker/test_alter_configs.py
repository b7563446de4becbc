"""DescribeConfigs and IncrementalAlterConfigs as requests; the texts are those of a real broker."""

import pytest

from groupcoord.protocol.apis.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from groupcoord.protocol.apis.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from groupcoord.protocol.errors import ErrorCode
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

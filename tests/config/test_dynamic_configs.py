"""Configurations of groups and of client metrics; all texts are those of a real broker."""

import pytest

from groupcoord.config.broker_config import BrokerConfig
from groupcoord.config.config_def import InvalidValueError
from groupcoord.config.property_definitions import (
    CLIENT_METRICS,
    GROUP,
    InvalidRequestError,
    check_client_metrics,
    check_group,
)

RESET = "configuration share.auto.offset.reset"
RESET_FORM = "The value must be either 'earliest', 'latest' or of the format 'by_duration:<PnDTnHnMn.nS>'."


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("consumer.session.timeout.ms", "50000"),
        ("share.auto.offset.reset", "earliest"),
        ("share.auto.offset.reset", "by_duration:PT1H"),
        ("share.auto.offset.reset", "by_duration:P1DT2H3M4.5S"),
        ("share.isolation.level", "read_committed"),
        ("streams.num.standby.replicas", "2"),
    ],
)
def test_a_group_may_be_configured_so(name: str, text: str) -> None:
    check_group({name: text}, BrokerConfig.of().values)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (
            "consumer.session.timeout.ms",
            "5",
            "consumer.session.timeout.ms must be greater than or equal to group.consumer.min.session.timeout.ms",
        ),
        (
            "consumer.heartbeat.interval.ms",
            "60000",
            "consumer.heartbeat.interval.ms must be less than or equal to group.consumer.max.heartbeat.interval.ms",
        ),
        (
            "streams.num.standby.replicas",
            "7",
            "streams.num.standby.replicas must be less than or equal to group.streams.max.standby.replicas",
        ),
        (
            "consumer.session.timeout.ms",
            "x",
            "Invalid value x for configuration consumer.session.timeout.ms: Not a number of type INT",
        ),
        (
            "share.auto.offset.reset",
            "never",
            f"Invalid value never for {RESET}: Invalid value `never` for {RESET}. {RESET_FORM}",
        ),
        (
            "share.auto.offset.reset",
            "by_duration:P",
            f"Invalid value by_duration:P for {RESET}: Invalid value `by_duration:P` for {RESET}. {RESET_FORM}",
        ),
    ],
)
def test_a_group_may_not_be_configured_so(name: str, text: str, message: str) -> None:
    with pytest.raises(InvalidValueError) as refusal:
        check_group({name: text}, BrokerConfig.of().values)
    assert str(refusal.value) == message


def test_a_session_lasts_longer_than_a_heartbeat() -> None:
    broker = BrokerConfig.of({"group.share.max.heartbeat.interval.ms": 50_000})
    message = "^share.session.timeout.ms must be greater than share.heartbeat.interval.ms$"
    with pytest.raises(InvalidValueError, match=message):
        check_group({"share.heartbeat.interval.ms": "45000"}, broker.values)


def test_defaults_follow_the_broker() -> None:
    assert GROUP["consumer.session.timeout.ms"].synonyms[0].name == "group.consumer.session.timeout.ms"
    assert GROUP["share.isolation.level"].synonyms == ()
    assert CLIENT_METRICS["interval.ms"].default == "300000"


@pytest.mark.parametrize(
    "configs",
    [
        {},
        {"interval.ms": "100"},
        {"interval.ms": "3600000"},
        {"match": "client_id=a.*, client_source_port=[0-9]+", "metrics": "a,b"},
        {"metrics": ""},
    ],
)
def test_a_subscription_may_be_configured_so(configs: dict[str, str]) -> None:
    check_client_metrics(configs)


@pytest.mark.parametrize(
    ("name", "text", "invalid_request", "message"),
    [
        ("nope", "5", True, "Unknown client metrics configuration: nope"),
        (
            "interval.ms",
            "99",
            True,
            "Invalid value 99 for interval.ms, interval must be between 100 and 3600000 (1 hour)",
        ),
        ("interval.ms", "x", False, "Invalid value x for configuration interval.ms: Not a number of type INT"),
        ("match", "foo", False, "Illegal client matching pattern: foo"),
        ("match", "color=red", False, "Illegal client matching pattern: color=red"),
        ("match", "client_id=", False, "Illegal client matching pattern: client_id="),
        ("match", "client_id=[", False, "Illegal client matching pattern: client_id=["),
        ("metrics", "a,,b", False, "Configuration 'metrics' values must not be empty."),
    ],
)
def test_a_subscription_may_not_be_configured_so(name: str, text: str, invalid_request: bool, message: str) -> None:
    with pytest.raises(InvalidValueError) as refusal:
        check_client_metrics({name: text})
    assert str(refusal.value) == message
    assert isinstance(refusal.value, InvalidRequestError) is invalid_request

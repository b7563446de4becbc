"""Kafka's settings under Kafka's names, and what is refused instead of overlooked."""

import re
from dataclasses import fields
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest

from groupcoord.client import consumer_settings
from groupcoord.client.consumer import Consumer
from groupcoord.client.consumer_settings import LEFT_OUT, OTHER_NAMES, SETTINGS, ConsumerSettings, read_settings
from groupcoord.client.option_value_parsing import DEFAULT_ASSIGNORS, GroupProtocol

ADDRESS = "127.0.0.1:1"
KAFKAS = {
    "allow.auto.create.topics": True,
    "auto.commit.interval.ms": 5_000,
    "auto.offset.reset": "latest",
    "check.crcs": True,
    "default.api.timeout.ms": 60_000,
    "exclude.internal.topics": True,
    "fetch.max.bytes": 52_428_800,
    "fetch.max.wait.ms": 500,
    "fetch.min.bytes": 1,
    "group.id": None,
    "group.instance.id": None,
    "group.protocol": "classic",
    "group.remote.assignor": None,
    "isolation.level": "read_uncommitted",
    "max.partition.fetch.bytes": 1_048_576,
    "max.poll.interval.ms": 300_000,
    "max.poll.records": 500,
    "metadata.max.age.ms": 300_000,
    "request.timeout.ms": 30_000,
    "retry.backoff.max.ms": 1_000,
    "retry.backoff.ms": 100,
}
"""Names and defaults of ``ConsumerConfig`` 4.3."""


def settings(**given: Any) -> ConsumerSettings:
    return read_settings({"bootstrap_servers": ADDRESS, **given})


def test_names_and_defaults_are_kafkas() -> None:
    assert {name: getattr(settings(), name.replace(".", "_")) for name in KAFKAS} == KAFKAS
    of_member = settings(group_id="g").of_member()
    assert (of_member.session_timeout_ms, of_member.heartbeat_interval_ms) == (45_000, 3_000)
    assert DEFAULT_ASSIGNORS == ("range", "cooperative-sticky")
    assert settings(group_id="g").commits_by_itself


@pytest.mark.parametrize(
    "name",
    [
        "ssl.truststore.location",
        "sasl.jaas.config",
        "security.protocol",
        "metrics.num.samples",
        "metric.reporters",
        "reconnect.backoff.max.ms",
        "metadata.recovery.strategy",
        "socket.connection.setup.timeout.ms",
    ],
)
def test_kafkas_other_settings_are_refused_with_the_reason(name: str) -> None:
    (why,) = [why for pattern, why in LEFT_OUT.items() if fnmatchcase(name.replace(".", "_"), pattern)]
    with pytest.raises(ValueError, match=re.escape(f"there is no setting {name}: {why}")):
        settings(**{name: "x"})


def test_every_setting_has_a_meaning() -> None:
    source = Path(consumer_settings.__file__).read_text(encoding="utf-8")
    for each in fields(ConsumerSettings):
        assert re.search(rf'^    {each.name}: .*\n    """', source, re.MULTILINE), each.name


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"rack": "r"}, "there is no setting rack: did you mean client_rack?"),
        ({"api_timeout_ms": 1}, "there is no setting api_timeout_ms: did you mean default_api_timeout_ms?"),
        ({"zzz": 1}, "there is no setting zzz: there are allow_auto_create_topics, "),
        ({"group": "g"}, "there is no setting group: did you mean group_id?"),
        ({"group.id": "g"}, "there is no setting group.id: it is written group_id"),
        ({"fetch.wait.max.ms": 1}, "there is no setting fetch.wait.max.ms: did you mean fetch_max_wait_ms?"),
        ({"max_pol_records": 1}, "there is no setting max_pol_records: did you mean max_poll_records?"),
        ({"security_protocol": "SSL"}, "there is no setting security_protocol: connections are plain"),
        ({"topics": ["t"]}, 'there is no setting topics: topics are the first arguments, as in Consumer("orders"'),
        ({"max_poll_records": 0}, "max_poll_records is 1 or more, not 0"),
        ({"auto_commit_interval_ms": -1}, "auto_commit_interval_ms is 0 or more, not -1"),
        ({"auto_commit_interval_ms": None}, "auto_commit_interval_ms is a whole number, not None"),
        ({"fetch_min_bytes": True}, "fetch_min_bytes is a whole number, not True"),
        ({"fetch_max_wait_ms": 0.5}, "fetch_max_wait_ms is a whole number, not 0.5"),
        ({"check_crcs": "false"}, "check_crcs is True or False, not 'false'"),
        ({"enable_auto_commit": "false"}, "enable_auto_commit is True or False, not 'false'"),
        ({"group_id": None, "enable_auto_commit": True}, "enable_auto_commit=True needs a group_id"),
        ({"group_id": ""}, "group_id is a name that is not empty"),
        ({"group_instance_id": ""}, "an instance id is not empty"),
        ({"auto_offset_reset": "smallest"}, "one of earliest, latest, none, not 'smallest'; smallest is earliest"),
        ({"auto_offset_reset": "somewhere"}, "one of earliest, latest, none, not 'somewhere'"),
        ({"auto_offset_reset": "by_duration:PT1H"}, "for by_duration, seek to what offsets_for_times answers"),
        ({"isolation_level": "none"}, "isolation_level is one of read_uncommitted, read_committed, not none"),
        ({"value_deserializer": "json"}, "value_deserializer is a function that takes bytes, not 'json'"),
        ({"heartbeat_interval_ms": 45_000}, "must be above 0 and below session_timeout_ms=45000"),
    ],
)
def test_what_cannot_work_is_refused_with_what_would(given: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=re.escape(problem)):
        Consumer("t", **{"bootstrap_servers": ADDRESS, "group_id": "g", **given})


def test_an_address_is_needed() -> None:
    with pytest.raises(ValueError, match="bootstrap_servers is needed: host:port of any brokers"):
        Consumer("t", group_id="g")
    with pytest.raises(ValueError, match="an address goes into bootstrap_servers"):
        Consumer("127.0.0.1:9092", bootstrap_servers=ADDRESS)


def test_without_a_group_nothing_is_committed_by_itself() -> None:
    assert not settings().commits_by_itself
    assert not settings(group_id="g", enable_auto_commit=False).commits_by_itself


def test_what_is_given_reaches_who_acts_on_it() -> None:
    given = settings(
        group_id="g",
        group_instance_id="i",
        client_rack="r",
        session_timeout_ms=7_000,
        heartbeat_interval_ms=70,
    )
    member = given.of_member()
    assert (member.group_id, member.instance_id, member.rack_id) == ("g", "i", "r")
    assert (member.session_timeout_ms, member.heartbeat_interval_ms) == (7_000, 70)
    assert given.protocol is GroupProtocol.CLASSIC
    assert given.backoff(lambda: 0.5).delay_ms(0) == 100


def test_other_names_lead_to_settings_and_what_is_left_out_is_no_setting() -> None:
    assert set(OTHER_NAMES.values()) <= set(SETTINGS)
    assert not (set(OTHER_NAMES) | set(LEFT_OUT)) & set(SETTINGS)


def test_closing_takes_five_seconds_at_most_unless_told_otherwise() -> None:
    assert Consumer.stop.__defaults__ == (5_000,)

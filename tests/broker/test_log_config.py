import dataclasses

import pytest

from groupcoord.broker.topic_config import LogConfig
from groupcoord.config.property_definitions import TOPIC


def test_every_setting_is_a_topics_configuration_with_kafkas_default() -> None:
    for field in dataclasses.fields(LogConfig):
        if field.name == "memory_bytes":
            continue
        default = TOPIC[field.name.replace("_", ".")].default_value()
        if field.name == "cleanup_policy":
            default = frozenset(default)  # type: ignore[assignment,arg-type]
        assert field.default == default, field.name


@pytest.mark.parametrize(
    ("policy", "compact", "delete"),
    [((), False, False), (("delete",), False, True), (("compact",), True, False), (("compact", "delete"), True, True)],
)
def test_a_policy_may_be_both(policy: tuple[str, ...], compact: bool, delete: bool) -> None:
    settings = LogConfig(cleanup_policy=frozenset(policy))
    assert (settings.compact, settings.delete) == (compact, delete)


def test_time_is_the_producers_unless_the_topic_says_otherwise() -> None:
    assert not LogConfig().log_append_time
    assert LogConfig(message_timestamp_type="LogAppendTime").log_append_time

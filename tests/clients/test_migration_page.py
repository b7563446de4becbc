"""docs/client.md says of all that aiokafka's and confluent-kafka's consumers have where it is, or that it is left out."""

import inspect
import re
from pathlib import Path

import aiokafka
import confluent_kafka
import pytest

import groupcoord as gc
from groupcoord.client.consumer_settings import SETTINGS, read_settings

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "client.md").read_text(encoding="utf-8")
PROSE = re.sub(r"```.*?```", "", PAGE, flags=re.DOTALL)
NAMED = set(re.findall(r"\w+", " ".join(re.findall(r"`([^`]+)`", PROSE))))
DEFAULTS = inspect.signature(aiokafka.AIOKafkaConsumer).parameters


@pytest.mark.parametrize("library", [aiokafka.AIOKafkaConsumer, confluent_kafka.Consumer])
def test_every_method_is_there_or_named_on_the_page(library: type) -> None:
    methods = {name for name, _ in inspect.getmembers(library, callable) if not name.startswith("_")}
    assert methods
    assert methods - NAMED - {name for name in dir(gc.Consumer) if not name.startswith("_")} == set()


@pytest.mark.parametrize("name", [name for name in DEFAULTS if name not in ("topics", *SETTINGS)])
def test_every_setting_of_aiokafka_that_is_not_there_is_refused_with_the_reason(name: str) -> None:
    with pytest.raises(ValueError, match=f"there is no setting {name}: ") as refused:
        read_settings({name: None, "bootstrap_servers": "h:1"})
    suggested = re.search(r"did you mean (\w+)\?", str(refused.value))
    assert suggested is None or f"`{name}` | `{suggested[1]}`" in PAGE


def test_defaults_that_differ_are_named() -> None:
    ours = read_settings({"bootstrap_servers": "h:1", "group_id": "g"})
    of_member = ours.of_member()
    here = {name: getattr(of_member, name, None) or getattr(ours, name) for name in SETTINGS}
    same = {"bootstrap_servers", "group_id", "client_id", "enable_auto_commit", "partition_assignment_strategy"}
    differ = {
        name: DEFAULTS[name].default
        for name in set(here) & set(DEFAULTS) - same
        if here[name] != DEFAULTS[name].default
    }
    assert differ == {"session_timeout_ms": 10_000, "request_timeout_ms": 40_000, "max_poll_records": None}
    assert "`session_timeout_ms` is 10000, `request_timeout_ms` 40000 | 45000 and 30000" in PAGE
    assert "`max_poll_records=None`: no limit | 500" in PAGE

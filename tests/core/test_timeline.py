"""Against what Kafka's own TimelineHashMap printed: see KafkaTable.java."""

import json
from pathlib import Path
from typing import Any

import pytest

from groupcoord.core.java_hash_order import TimelineMap

STORIES: list[dict[str, Any]] = json.loads(Path(__file__).with_name("kafka_table.json").read_text())


@pytest.mark.parametrize("story", STORIES)
def test_a_map_iterates_in_kafkas_order(story: dict[str, Any]) -> None:
    ours: TimelineMap[str, int] = TimelineMap()
    for verb, key in story["steps"]:
        if verb == "put":
            ours.put(key, 0)
        else:
            ours.pop(key, None)
    assert [key for key, _ in ours.in_order()] == story["order"]

"""The hash over topics that the record of a group has, against answers of Kafka's own ``Utils.computeGroupHash`` (4.3.1)."""

import json
import uuid
from pathlib import Path
from typing import Any

import pytest

from groupcoord.coordinator.topics_view import SubscribedTopics
from tests.coordinator.topics import Topics

VECTORS = json.loads((Path(__file__).parent / "metadata_hashes.json").read_text())


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: "-".join(each["name"] for each in vector["topics"]))
def test_it_is_kafkas(vector: dict[str, Any]) -> None:
    topics = Topics({each["name"]: len(each["racks"]) for each in vector["topics"]})
    for each in vector["topics"]:
        topics.ids[each["name"]] = uuid.UUID(each["id"])
        topics.racks[each["name"]] = each["racks"]
    subscribed = SubscribedTopics(topics)
    names = [each["name"] for each in vector["topics"]]
    assert subscribed.group_hash([*names, "nowhere"]) == vector["group_hash"]
    assert subscribed.group_hash(reversed(names)) == vector["group_hash"]


def test_it_follows_the_topics() -> None:
    topics = Topics({"t": 1})
    subscribed = SubscribedTopics(topics)
    before = subscribed.group_hash(["t"])
    assert subscribed.group_hash([]) == subscribed.group_hash(["nowhere"]) == 0
    topics.grow("t", 2)
    assert subscribed.group_hash(["t"]) not in (0, before)
    topics.delete("t")
    assert subscribed.group_hash(["t"]) == 0

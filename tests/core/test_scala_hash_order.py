"""Against what real Scala printed: see ScalaTable.java."""

import json
from pathlib import Path

import pytest

from groupcoord.core import java_hash_order, scala_hash_order
from groupcoord.core.java_hash_order import string_hash

Story = dict[str, list[str]]
STORIES: list[Story] = json.loads(Path(__file__).with_name("scala_table.json").read_text())
each_story = pytest.mark.parametrize("story", STORIES, ids=lambda story: f"{len(story['keys'])} keys")


@each_story
def test_a_set_iterates_in_scalas_order(story: Story) -> None:
    assert scala_hash_order.set_order(story["keys"], string_hash) == story["set"]


@pytest.mark.parametrize("story", [story for story in STORIES if len(story["set"]) > 4])
def test_a_set_that_was_large_keeps_the_order_of_a_large_one(story: Story) -> None:
    left = [key for key in story["keys"] if key in story["shrunk_set"]]
    assert scala_hash_order.hash_set_order(left, string_hash) == story["shrunk_set"]


@each_story
def test_a_mutable_map_iterates_in_scalas_order(story: Story) -> None:
    assert scala_hash_order.mutable_map_order(story["keys"], string_hash) == story["mutable_map"]


@each_story
def test_keys_that_were_computed_if_absent_come_in_javas_order(story: Story) -> None:
    assert java_hash_order.computed_map_order(story["keys"], string_hash) == story["computed_map"]


@each_story
def test_a_set_made_of_a_list_iterates_in_javas_order(story: Story) -> None:
    assert java_hash_order.hash_set_order(story["keys"], string_hash) == story["java_set"]

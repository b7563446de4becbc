"""What is not a subscription, and what a pattern matches."""

from collections.abc import Sequence
from typing import Any

import pytest

from groupcoord.client.consumer import Consumer
from groupcoord.client.subscription_state import SubscriptionState


@pytest.mark.parametrize("wrong", [["t"], [("t", -1)], [("t", 0, 1)], [("t", "0")]])
def test_what_is_no_partition(wrong: Any) -> None:
    with pytest.raises(ValueError, match=r"is not a partition: \(topic, number\)"):
        Consumer(bootstrap_servers="h:1").assign(wrong)


@pytest.mark.parametrize(("excludes", "expected"), [(True, {"t"}), (False, {"t", "__consumer_offsets"})])
def test_a_pattern_does_not_match_internal_topics_unless_it_may(excludes: bool, expected: set[str]) -> None:
    state = SubscriptionState(remote_patterns=False, exclude_internal_topics=excludes)
    state.subscribe(None, ".*")
    assert state.match({"t": False, "__consumer_offsets": True})
    assert state.topics == expected
    assert not state.match({})
    assert state.topics == expected


@pytest.mark.parametrize(
    ("topics", "pattern", "problem"),
    [
        (["t"], "t", "to one of both"),
        (None, None, "to one of both"),
        ([], None, "one topic at least"),
        (None, "", "a pattern is not empty"),
        (None, "(", "is not a regular expression"),
    ],
)
def test_subscriptions_that_are_none(topics: Sequence[str] | None, pattern: str | None, problem: str) -> None:
    one = Consumer("t", bootstrap_servers="h:1", group_id="g")
    with pytest.raises(ValueError, match=problem):
        one.subscribe(topics, pattern=pattern)
    assert one.subscription() == {"t"}


def test_a_text_is_a_pattern_of_the_coordinator_by_the_consumer_protocol() -> None:
    one = Consumer("t", bootstrap_servers="h:1", group_id="g", group_protocol="consumer")
    with pytest.raises(ValueError, match="a pattern is not empty"):
        one.subscribe(pattern="")
    one.subscribe(pattern="(")
    assert one.subscription() == frozenset()

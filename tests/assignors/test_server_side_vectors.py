"""Kafka's own classes for the server-side assignors, 4.3.1: what they answered, and what they answer now."""

import json

import pytest

from tests.assignors.known import check_each
from tests.assignors.server_side_groups import VECTORS, check, kafkas_classes, life, why_no_classes

CASES = json.loads(VECTORS.read_text())


@pytest.mark.slow
def test_every_known_answer_is_given() -> None:
    """Members have what was answered to them in the case before, in the order in which Kafka's maps had it."""
    check_each(CASES, check)


@pytest.mark.parametrize("assignor", ["uniform", "range", "simple"])
@pytest.mark.parametrize("kind", ["HOMOGENEOUS", "HETEROGENEOUS"])
def test_there_are_answers_of_every_kind(assignor: str, kind: str) -> None:
    """Most of them to groups that had an assignment before."""
    asked = [case for case in CASES if (case["assignor"], case["subscription_type"]) == (f"server-{assignor}", kind)]
    assert sum(any(member["assigned"] for member in case["members"]) for case in asked) > 15


@pytest.mark.real_kafka
def test_random_groups_are_answered_alike() -> None:
    """A few seconds; needs Java and the jars of ``make kafka-libs``."""
    if reason := why_no_classes():
        pytest.skip(f"no classes of Kafka: {reason}")
    with kafkas_classes() as ask:
        check_each((case for seed in range(1_000, 1_080) for case in life(seed, ask, steps=6)), check)

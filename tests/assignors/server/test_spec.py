import json
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from groupcoord.assignors.cases import topic_id
from groupcoord.assignors.server import Member, PartitionAssignorError, Spec, SubscriptionType, subscription_type
from groupcoord.assignors.server.spec import uuid_hash, uuid_order
from groupcoord.core.java import hash_map_order

FILE = Path(__file__).parents[2] / "partitioners" / "partitioner-placement-vectors.json"
KNOWN: list[dict[str, Any]] = json.loads(FILE.read_text())["uuid_hash"]
ONE, TWO = UUID(int=1), UUID(int=2)


@pytest.mark.parametrize("case", KNOWN)
def test_ids_hash_as_in_java(case: dict[str, Any]) -> None:
    if "uuid" in case:
        assert uuid_hash(topic_id(case["uuid"])) == case["hash"] & 0xFFFFFFFF
    else:
        inserted = [topic_id(text) for text in case["inserted"]]
        assert hash_map_order(inserted, uuid_hash) == [topic_id(text) for text in case["hashset_iteration"]]


def test_ids_sort_as_two_signed_halves() -> None:
    ids = [UUID(int=1 << 127), UUID(int=1 << 63), UUID(int=0), UUID(int=1)]
    assert sorted({*ids}, key=uuid_order) == ids


def test_the_kind_of_a_group() -> None:
    def kind(*wanted: list[UUID]) -> SubscriptionType:
        return subscription_type({str(number): Member(topic_ids=topics) for number, topics in enumerate(wanted)})

    assert kind([ONE, TWO], [TWO, ONE]) is SubscriptionType.HOMOGENEOUS
    assert kind([], []) is SubscriptionType.HOMOGENEOUS
    assert kind([ONE], [ONE, TWO]) is SubscriptionType.HETEROGENEOUS


def test_a_topic_that_is_not_there() -> None:
    spec = Spec(members={}, partitions={ONE: 1})
    assert spec.partition_count(ONE) == 1
    with pytest.raises(PartitionAssignorError, match="does not exist"):
        spec.partition_count(TWO)

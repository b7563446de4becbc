"""The descriptors find in every version of every request what it names."""

import pytest

from groupcoord.protocol.api import ALL_TOPICS, RequestField, values_of
from groupcoord.protocol.apis import APIS, Api
from tests.protocol.error_samples import ORDERS, OTHER
from tests.testing.faults.support import requests_of_every_version

EXPECTED = {
    # (groups, members, topics) in the samples, of which the last has most
    "Produce": ((), (), ("orders", ORDERS)),
    "Fetch": ((), (), ("orders", "other", ORDERS, OTHER)),
    "ListOffsets": ((), (), ("orders", "other")),
    "Metadata": ((), (), ("orders", "other", ORDERS, ALL_TOPICS)),
    "OffsetCommit": (("g",), ("",), ("orders", "other", ORDERS, OTHER)),
    "OffsetFetch": (("g", "h"), (), ("orders", "other", ORDERS, ALL_TOPICS)),
    "FindCoordinator": (("g", "h"), (), ()),
    "JoinGroup": (("g",), ("", "m-1"), ()),
    "Heartbeat": (("g",), ("m-1",), ()),
    "LeaveGroup": (("g",), ("m-1", "i", "m-2"), ()),
    "SyncGroup": (("g",), ("m-1",), ()),
    "DescribeGroups": (("g", "h"), (), ()),
    "CreateTopics": ((), (), ("orders", "other")),
    "DeleteTopics": ((), (), ("orders", "other", ORDERS)),
    "DeleteRecords": ((), (), ("orders",)),
    "OffsetForLeaderEpoch": ((), (), ("orders",)),
    "DescribeConfigs": ((), (), ("orders",)),
    "CreatePartitions": ((), (), ("orders", "other")),
    "DeleteGroups": (("g", "h"), (), ()),
    "IncrementalAlterConfigs": ((), (), ("orders",)),
    "OffsetDelete": (("g",), (), ("orders",)),
}


@pytest.mark.slow
@pytest.mark.parametrize("api", APIS.values(), ids=lambda api: api.name)
def test_all_versions_together_name_what_is_in_them(api: Api) -> None:
    fields = (api.groups, api.members + api.instances, api.topics)
    found: tuple[set[object], ...] = (set(), set(), set())
    for asked, _, request in requests_of_every_version():
        if asked is api:
            for kind, names in zip(found, fields, strict=True):
                kind.update(values_of(names, request))
            partitions = values_of(api.partitions, request)
            assert all(isinstance(each, int) for each in partitions if each is not ALL_TOPICS)
            assert all(isinstance(each, str) for each in values_of(api.transactional_ids, request))
    expected = EXPECTED.get(api.name, ((), (), ()))
    assert [kind - {""} for kind in found] == [set(kind) - {""} for kind in expected]


def test_a_request_that_was_not_understood_names_nothing() -> None:
    assert values_of((RequestField("group_id"),), None) == ()


def test_how_a_field_is_called() -> None:
    assert str(RequestField("topics[].name")) == "topics[].name"
    assert str(RequestField("resources[].resource_name", ("resource_type", 2))) == (
        "resources[].resource_name if resource_type is 2"
    )
    assert repr(ALL_TOPICS) == "all topics"

"""The descriptors of the APIs, against what a real broker advertises and what requests name."""

import pytest

from groupcoord.protocol.api_descriptor import ALL_TOPICS, RequestField, values_of
from groupcoord.protocol.apis import APIS, ApiKey
from groupcoord.protocol.messages import ConsumerGroupHeartbeatRequest, MetadataRequest
from tests.protocol.error_samples import ORDERS, OTHER
from tests.testing.faults.support import requests_of_every_version

# ApiVersions of a Kafka 4.3.1 broker: the APIs that are here too.
ADVERTISED = {
    0: (0, 13), 1: (4, 18), 2: (1, 11), 3: (0, 13), 8: (2, 10), 9: (1, 10), 10: (0, 6), 11: (0, 9), 12: (0, 4), 13: (0, 5),
    14: (0, 5), 15: (0, 6), 16: (0, 5), 18: (0, 4), 19: (2, 7), 20: (1, 6), 21: (0, 2), 22: (0, 5), 23: (2, 4),
    24: (0, 5), 25: (0, 4), 26: (0, 5), 27: (1, 2), 28: (0, 5), 32: (1, 4),
    33: (0, 2), 35: (1, 5), 37: (0, 3), 42: (0, 2), 43: (0, 2), 44: (0, 1), 45: (0, 1), 46: (0, 0),
    47: (0, 0), 55: (0, 2), 57: (0, 2), 60: (0, 2), 61: (0, 0), 64: (0, 0),
    65: (0, 0), 66: (0, 2), 68: (0, 1), 69: (0, 1), 74: (0, 1), 75: (0, 0),
}  # fmt: skip


def test_the_same_versions_are_advertised() -> None:
    assert {int(key): (api.advertised_min, api.max_version) for key, api in APIS.items()} == ADVERTISED


def test_only_produce_is_advertised_wider_than_it_is_served() -> None:
    assert [api.name for api in APIS.values() if api.advertised_min != api.min_version] == ["Produce"]
    assert not APIS[ApiKey.PRODUCE].serves(2)


def test_an_api_serves_its_range() -> None:
    for api in APIS.values():
        served = [version for version in range(-1, 30) if api.serves(version)]
        assert served == list(range(api.min_version, api.max_version + 1))


def test_names_belong_together() -> None:
    for api in APIS.values():
        assert api.name.upper() == api.key.name.replace("_", "")
        assert (api.request.__name__, api.response.__name__) == (f"{api.name}Request", f"{api.name}Response")


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
    "ConsumerGroupHeartbeat": (("g",), ("m-1",), ("orders", "other", ORDERS)),
    "ConsumerGroupDescribe": (("g", "h"), (), ()),
    "DeleteGroups": (("g", "h"), (), ()),
    "IncrementalAlterConfigs": ((), (), ("orders",)),
    "AlterConfigs": ((), (), ("orders",)),
    "DescribeTopicPartitions": ((), (), ("orders", "other")),
    "OffsetDelete": (("g",), (), ("orders",)),
    "AddPartitionsToTxn": ((), (), ("orders",)),
    "AddOffsetsToTxn": (("g",), (), ()),
    "WriteTxnMarkers": ((), (), ("orders",)),
    "TxnOffsetCommit": (("g",), ("a", "i"), ("orders",)),
    "DescribeProducers": ((), (), ("orders",)),
    "ElectLeaders": ((), (), ("orders", "other", ALL_TOPICS)),
    "AlterPartitionReassignments": ((), (), ("orders", "other")),
    "DescribeQuorum": ((), (), ("__cluster_metadata",)),
    "DescribeLogDirs": ((), (), ("orders", ALL_TOPICS)),
    "ListPartitionReassignments": ((), (), ("orders", ALL_TOPICS)),
}


@pytest.mark.slow
def test_all_versions_together_name_what_is_in_them() -> None:
    for api in APIS.values():
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


def test_a_list_that_is_null_names_all_topics_or_means_no_change() -> None:
    assert values_of(APIS[ApiKey.METADATA].topics, MetadataRequest(topics=None)) == (ALL_TOPICS,)
    heartbeat = ConsumerGroupHeartbeatRequest(group_id="g", member_id="m", member_epoch=5)
    api = APIS[ApiKey.CONSUMER_GROUP_HEARTBEAT]
    assert values_of(api.topics, heartbeat) == values_of(api.partitions, heartbeat) == ()


def test_how_a_field_is_called() -> None:
    assert str(RequestField("topics[].name")) == "topics[].name"
    assert str(RequestField("resources[].resource_name", ("resource_type", 2))) == (
        "resources[].resource_name if resource_type is 2"
    )
    assert repr(ALL_TOPICS) == "all topics"


def test_an_api_is_shown_by_its_name() -> None:
    assert repr(APIS[ApiKey.FETCH]) == "<Api Fetch>"

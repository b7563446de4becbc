"""The APIs this server speaks: number, name, versions, and the message classes of each.

The version ranges are those a Kafka 4.3 broker serves for the same APIs (KIP-896 set the lower bounds).
"""

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from groupcoord.protocol import messages as m
from groupcoord.protocol.codec.message_codec import Codec, codec_for


class ApiKey(enum.IntEnum):
    """API numbers (``org.apache.kafka.common.protocol.ApiKeys``)."""

    PRODUCE = 0
    FETCH = 1
    LIST_OFFSETS = 2
    METADATA = 3
    OFFSET_COMMIT = 8
    OFFSET_FETCH = 9
    FIND_COORDINATOR = 10
    JOIN_GROUP = 11
    HEARTBEAT = 12
    LEAVE_GROUP = 13
    SYNC_GROUP = 14
    DESCRIBE_GROUPS = 15
    LIST_GROUPS = 16
    API_VERSIONS = 18
    CREATE_TOPICS = 19
    DELETE_TOPICS = 20
    DELETE_RECORDS = 21
    INIT_PRODUCER_ID = 22
    OFFSET_FOR_LEADER_EPOCH = 23
    DESCRIBE_CONFIGS = 32
    CREATE_PARTITIONS = 37
    DELETE_GROUPS = 42
    INCREMENTAL_ALTER_CONFIGS = 44
    OFFSET_DELETE = 47
    DESCRIBE_CLUSTER = 60

    # As quick to look up as the number it is: every request looks its handler up.
    __hash__ = int.__hash__


@dataclass(frozen=True, slots=True)
class Api:
    """One API: ``min_version``–``max_version`` are parsed and answered; ``advertised_min`` is what ApiVersions says.

    ``package`` is kio's name for it.
    """

    key: ApiKey
    name: str
    request: type[Any]
    response: type[Any]
    min_version: int
    max_version: int
    advertised_min: int
    package: str

    def serves(self, version: int) -> bool:
        """Is ``version`` parsed and answered here?"""
        return self.min_version <= version <= self.max_version

    def request_codec(self, version: int) -> Codec[Any]:
        """How requests of ``version`` are read and written."""
        return codec_for(self.request, self.package, version, "request")

    def response_codec(self, version: int) -> Codec[Any]:
        """How responses of ``version`` are read and written."""
        return codec_for(self.response, self.package, version, "response")


def _api(
    key: ApiKey, request: type[Any], response: type[Any], low: int, high: int, *, advertised: int | None = None
) -> Api:
    name = request.__name__.removesuffix("Request")
    return Api(key, name, request, response, low, high, low if advertised is None else advertised, key.name.lower())


APIS: Mapping[int, Api] = MappingProxyType(
    {
        api.key: api
        for api in (
            # librdkafka looks for Produce v0–2 to tell what a broker can do (KAFKA-18659); nobody sends them.
            _api(ApiKey.PRODUCE, m.ProduceRequest, m.ProduceResponse, 3, 13, advertised=0),
            _api(ApiKey.FETCH, m.FetchRequest, m.FetchResponse, 4, 18),
            _api(ApiKey.LIST_OFFSETS, m.ListOffsetsRequest, m.ListOffsetsResponse, 1, 11),
            _api(ApiKey.METADATA, m.MetadataRequest, m.MetadataResponse, 0, 13),
            _api(ApiKey.OFFSET_COMMIT, m.OffsetCommitRequest, m.OffsetCommitResponse, 2, 10),
            _api(ApiKey.OFFSET_FETCH, m.OffsetFetchRequest, m.OffsetFetchResponse, 1, 10),
            _api(ApiKey.FIND_COORDINATOR, m.FindCoordinatorRequest, m.FindCoordinatorResponse, 0, 6),
            _api(ApiKey.JOIN_GROUP, m.JoinGroupRequest, m.JoinGroupResponse, 0, 9),
            _api(ApiKey.HEARTBEAT, m.HeartbeatRequest, m.HeartbeatResponse, 0, 4),
            _api(ApiKey.LEAVE_GROUP, m.LeaveGroupRequest, m.LeaveGroupResponse, 0, 5),
            _api(ApiKey.SYNC_GROUP, m.SyncGroupRequest, m.SyncGroupResponse, 0, 5),
            _api(ApiKey.DESCRIBE_GROUPS, m.DescribeGroupsRequest, m.DescribeGroupsResponse, 0, 6),
            _api(ApiKey.LIST_GROUPS, m.ListGroupsRequest, m.ListGroupsResponse, 0, 5),
            _api(ApiKey.API_VERSIONS, m.ApiVersionsRequest, m.ApiVersionsResponse, 0, 4),
            _api(ApiKey.CREATE_TOPICS, m.CreateTopicsRequest, m.CreateTopicsResponse, 2, 7),
            _api(ApiKey.DELETE_TOPICS, m.DeleteTopicsRequest, m.DeleteTopicsResponse, 1, 6),
            _api(ApiKey.DELETE_RECORDS, m.DeleteRecordsRequest, m.DeleteRecordsResponse, 0, 2),
            _api(ApiKey.INIT_PRODUCER_ID, m.InitProducerIdRequest, m.InitProducerIdResponse, 0, 5),
            _api(ApiKey.OFFSET_FOR_LEADER_EPOCH, m.OffsetForLeaderEpochRequest, m.OffsetForLeaderEpochResponse, 2, 4),
            _api(ApiKey.DESCRIBE_CONFIGS, m.DescribeConfigsRequest, m.DescribeConfigsResponse, 1, 4),
            _api(ApiKey.CREATE_PARTITIONS, m.CreatePartitionsRequest, m.CreatePartitionsResponse, 0, 3),
            _api(ApiKey.DELETE_GROUPS, m.DeleteGroupsRequest, m.DeleteGroupsResponse, 0, 2),
            _api(
                ApiKey.INCREMENTAL_ALTER_CONFIGS,
                m.IncrementalAlterConfigsRequest,
                m.IncrementalAlterConfigsResponse,
                0,
                1,
            ),
            _api(ApiKey.OFFSET_DELETE, m.OffsetDeleteRequest, m.OffsetDeleteResponse, 0, 0),
            _api(ApiKey.DESCRIBE_CLUSTER, m.DescribeClusterRequest, m.DescribeClusterResponse, 0, 2),
        )
    }
)

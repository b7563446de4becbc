"""Addresses of brokers in answers."""

from typing import Any

import pytest
from kio.schema.index import api_key_map, schema_name_map

from groupcoord.dissect.message_schemas import response_layout
from groupcoord.protocol.apis import APIS, ApiKey
from groupcoord.protocol.apis.api_versions import ApiVersion
from groupcoord.protocol.apis.describe_cluster import DescribeClusterBroker
from groupcoord.protocol.apis.fetch import NodeEndpoint
from groupcoord.protocol.apis.find_coordinator import Coordinator
from groupcoord.protocol.apis.metadata import MetadataResponseBroker
from groupcoord.protocol.codec.schema import MessageSchema
from groupcoord.protocol.errors import WireError
from groupcoord.protocol.messages import (
    ApiVersionsResponse,
    DescribeClusterResponse,
    FetchResponse,
    FindCoordinatorResponse,
    HeartbeatResponse,
    MetadataResponse,
    ProduceResponse,
)
from groupcoord.proxy.address_rewriting import NEWEST_READ, limited, share_codec, with_local_addresses

OF_CONTROLLERS = {"VoteResponse", "BeginQuorumEpochResponse", "EndQuorumEpochResponse", "FetchSnapshotResponse"}
OF_CONTROLLERS |= {"DescribeQuorumResponse", "UpdateRaftVoterResponse"}
OF_APPLICATIONS = {"StreamsGroupHeartbeatResponse", "StreamsGroupDescribeResponse"}
OF_RULES = {"DescribeAclsResponse", "DeleteAclsResponse"}


def local(host: str, port: int, node: int) -> tuple[str, int]:
    return f"{host}-of-{node}", port + 1


@pytest.mark.parametrize(
    "response",
    [
        MetadataResponse(brokers=(MetadataResponseBroker(node_id=1, host="h", port=9),)),
        DescribeClusterResponse(cluster_id="c", brokers=(DescribeClusterBroker(broker_id=1, host="h", port=9),)),
        FindCoordinatorResponse(coordinators=(Coordinator(key="g", node_id=1, host="h", port=9),)),
        FindCoordinatorResponse(node_id=1, host="h", port=9),
        FetchResponse(node_endpoints=(NodeEndpoint(node_id=1, host="h", port=9),)),
        ProduceResponse(node_endpoints=(NodeEndpoint(node_id=1, host="h", port=9),)),
    ],
    ids=lambda response: type(response).__name__,
)
def test_addresses_are_replaced(response: Any) -> None:
    moved = with_local_addresses(response, local)
    assert moved != response
    assert "host='h-of-1', port=10" in repr(moved)


@pytest.mark.parametrize(
    "response",
    [
        MetadataResponse(),
        HeartbeatResponse(),
        FindCoordinatorResponse(node_id=-1, host="", port=-1),
    ],
)
def test_an_answer_without_addresses_is_the_same(response: Any) -> None:
    assert with_local_addresses(response, local) is response


def _has_addresses(schema: MessageSchema) -> bool:
    names = {field.name for field in schema.fields}
    return {"host", "port"} <= names or any(field.struct and _has_addresses(field.struct) for field in schema.fields)


@pytest.mark.slow
def test_no_answer_of_kafka_with_an_address_of_a_broker_is_forgotten() -> None:
    found = set()
    for key, name in api_key_map.items():
        for version in schema_name_map[name]:
            schema = response_layout(key, version).schema
            if _has_addresses(schema):
                found.add((schema.message.__name__, key))
    others = OF_CONTROLLERS | OF_APPLICATIONS | OF_RULES
    assert {key for name, key in found if name not in others} | {int(ApiKey.API_VERSIONS)} == set(NEWEST_READ)


def test_versions_that_cannot_be_rewritten_are_not_offered() -> None:
    def offered(*versions: tuple[int, int, int]) -> ApiVersionsResponse:
        return ApiVersionsResponse(
            api_keys=tuple(ApiVersion(api_key=key, min_version=low, max_version=high) for key, low, high in versions)
        )

    newest = APIS[ApiKey.METADATA].max_version
    fine = offered((3, 0, newest), (12, 0, 99), (999, 1, 2))
    assert limited(fine) is fine
    assert limited(offered((3, 0, newest + 1), (1, 99, 100))) == offered((3, 0, newest))


def test_share_fetch_is_read_and_written() -> None:
    codec = share_codec(ApiKey.SHARE_FETCH, 1)
    empty = codec.schema.message()
    endpoint = next(field.struct for field in codec.schema.fields if field.name == "node_endpoints")
    assert endpoint is not None
    nodes = (endpoint.message(node_id=1, host="h", port=9),)
    response = type(empty)(
        throttle_time_ms=0, error_code=0, acquisition_lock_timeout_ms=5, responses=(), node_endpoints=nodes
    )
    moved = with_local_addresses(codec.decode(codec.encode(response)), local)
    assert (moved.node_endpoints[0].host, moved.node_endpoints[0].port) == ("h-of-1", 10)
    with pytest.raises(WireError):
        share_codec(ApiKey.SHARE_FETCH, 99)

"""One version-free request and response per API; nested classes stay in their modules.

"vN is flexible" means compact lengths and tagged fields from there on (KIP-482). The errors listed are those a server without
ACLs, quotas and transactions answers; UNKNOWN_SERVER_ERROR can come with every API.
"""

from groupcoord.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from groupcoord.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsResponse
from groupcoord.protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from groupcoord.protocol.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from groupcoord.protocol.messages.delete_records import DeleteRecordsRequest, DeleteRecordsResponse
from groupcoord.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from groupcoord.protocol.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from groupcoord.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResponse
from groupcoord.protocol.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from groupcoord.protocol.messages.fetch import FetchRequest, FetchResponse
from groupcoord.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from groupcoord.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from groupcoord.protocol.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from groupcoord.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from groupcoord.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from groupcoord.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from groupcoord.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from groupcoord.protocol.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from groupcoord.protocol.messages.metadata import MetadataRequest, MetadataResponse
from groupcoord.protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from groupcoord.protocol.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from groupcoord.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from groupcoord.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)
from groupcoord.protocol.messages.produce import ProduceRequest, ProduceResponse
from groupcoord.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse

__all__ = [
    "ApiVersionsRequest",
    "ApiVersionsResponse",
    "CreatePartitionsRequest",
    "CreatePartitionsResponse",
    "CreateTopicsRequest",
    "CreateTopicsResponse",
    "DeleteGroupsRequest",
    "DeleteGroupsResponse",
    "DeleteRecordsRequest",
    "DeleteRecordsResponse",
    "DeleteTopicsRequest",
    "DeleteTopicsResponse",
    "DescribeClusterRequest",
    "DescribeClusterResponse",
    "DescribeConfigsRequest",
    "DescribeConfigsResponse",
    "DescribeGroupsRequest",
    "DescribeGroupsResponse",
    "FetchRequest",
    "FetchResponse",
    "FindCoordinatorRequest",
    "FindCoordinatorResponse",
    "HeartbeatRequest",
    "HeartbeatResponse",
    "IncrementalAlterConfigsRequest",
    "IncrementalAlterConfigsResponse",
    "InitProducerIdRequest",
    "InitProducerIdResponse",
    "JoinGroupRequest",
    "JoinGroupResponse",
    "LeaveGroupRequest",
    "LeaveGroupResponse",
    "ListGroupsRequest",
    "ListGroupsResponse",
    "ListOffsetsRequest",
    "ListOffsetsResponse",
    "MetadataRequest",
    "MetadataResponse",
    "OffsetCommitRequest",
    "OffsetCommitResponse",
    "OffsetDeleteRequest",
    "OffsetDeleteResponse",
    "OffsetFetchRequest",
    "OffsetFetchResponse",
    "OffsetForLeaderEpochRequest",
    "OffsetForLeaderEpochResponse",
    "ProduceRequest",
    "ProduceResponse",
    "SyncGroupRequest",
    "SyncGroupResponse",
]

"""The request and response classes of every API, re-exported; nested classes are in ``apis/``.

Written by ``python -m tools.messages``.

"vN is flexible" means compact lengths and tagged fields from there on (KIP-482). The errors listed in ``apis/`` are those
of a server without ACLs and quotas; UNKNOWN_SERVER_ERROR is possible in every API.
"""

from groupcoord.protocol.apis.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from groupcoord.protocol.apis.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse
from groupcoord.protocol.apis.alter_configs import AlterConfigsRequest, AlterConfigsResponse
from groupcoord.protocol.apis.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
)
from groupcoord.protocol.apis.api_versions import ApiVersionsRequest, ApiVersionsResponse
from groupcoord.protocol.apis.consumer_group_describe import ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse
from groupcoord.protocol.apis.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from groupcoord.protocol.apis.create_partitions import CreatePartitionsRequest, CreatePartitionsResponse
from groupcoord.protocol.apis.create_topics import CreateTopicsRequest, CreateTopicsResponse
from groupcoord.protocol.apis.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from groupcoord.protocol.apis.delete_records import DeleteRecordsRequest, DeleteRecordsResponse
from groupcoord.protocol.apis.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from groupcoord.protocol.apis.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from groupcoord.protocol.apis.describe_configs import DescribeConfigsRequest, DescribeConfigsResponse
from groupcoord.protocol.apis.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from groupcoord.protocol.apis.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse
from groupcoord.protocol.apis.describe_producers import DescribeProducersRequest, DescribeProducersResponse
from groupcoord.protocol.apis.describe_quorum import DescribeQuorumRequest, DescribeQuorumResponse
from groupcoord.protocol.apis.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
)
from groupcoord.protocol.apis.describe_transactions import DescribeTransactionsRequest, DescribeTransactionsResponse
from groupcoord.protocol.apis.elect_leaders import ElectLeadersRequest, ElectLeadersResponse
from groupcoord.protocol.apis.end_txn import EndTxnRequest, EndTxnResponse
from groupcoord.protocol.apis.fetch import FetchRequest, FetchResponse
from groupcoord.protocol.apis.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from groupcoord.protocol.apis.heartbeat import HeartbeatRequest, HeartbeatResponse
from groupcoord.protocol.apis.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from groupcoord.protocol.apis.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from groupcoord.protocol.apis.join_group import JoinGroupRequest, JoinGroupResponse
from groupcoord.protocol.apis.leave_group import LeaveGroupRequest, LeaveGroupResponse
from groupcoord.protocol.apis.list_config_resources import ListConfigResourcesRequest, ListConfigResourcesResponse
from groupcoord.protocol.apis.list_groups import ListGroupsRequest, ListGroupsResponse
from groupcoord.protocol.apis.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from groupcoord.protocol.apis.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from groupcoord.protocol.apis.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from groupcoord.protocol.apis.metadata import MetadataRequest, MetadataResponse
from groupcoord.protocol.apis.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from groupcoord.protocol.apis.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from groupcoord.protocol.apis.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from groupcoord.protocol.apis.offset_for_leader_epoch import OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse
from groupcoord.protocol.apis.produce import ProduceRequest, ProduceResponse
from groupcoord.protocol.apis.sync_group import SyncGroupRequest, SyncGroupResponse
from groupcoord.protocol.apis.txn_offset_commit import TxnOffsetCommitRequest, TxnOffsetCommitResponse
from groupcoord.protocol.apis.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse
from groupcoord.protocol.apis.update_features import UpdateFeaturesRequest, UpdateFeaturesResponse
from groupcoord.protocol.apis.write_txn_markers import WriteTxnMarkersRequest, WriteTxnMarkersResponse

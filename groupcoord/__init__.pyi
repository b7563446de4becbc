from groupcoord import events as events
from groupcoord.client.assigned_partitions import ConsumerRecord
from groupcoord.client.consumer import Consumer
from groupcoord.protocol.errors import ErrorCode
from groupcoord.testing.auto_member import AutoMember
from groupcoord.testing.cluster import Cluster
from groupcoord.testing.cluster_base import KafkaCluster
from groupcoord.testing.cluster_clock import ClockError
from groupcoord.testing.faults import FaultRulesFailed
from groupcoord.testing.groups import GroupDescription, MemberDescription
from groupcoord.testing.manual_classic_member import ManualMember
from groupcoord.testing.manual_consumer_member import ManualConsumer
from groupcoord.testing.manual_producer import ManualProducer
from groupcoord.testing.remote_cluster import RemoteCluster
from groupcoord.testing.sync_api import SyncCluster, SyncRemoteCluster
from groupcoord.testing.trace import Trace
from groupcoord.testing.trace.golden import assert_golden
from groupcoord.testing.transactions import TransactionDescription
from groupcoord.testing.virtual_loop import virtual_time
from groupcoord.testing.waiting import WaitTimeoutError

__all__ = [
    "AutoMember",
    "ClockError",
    "Cluster",
    "Consumer",
    "ConsumerRecord",
    "ErrorCode",
    "FaultRulesFailed",
    "GroupDescription",
    "KafkaCluster",
    "ManualConsumer",
    "ManualMember",
    "ManualProducer",
    "MemberDescription",
    "RemoteCluster",
    "SyncCluster",
    "SyncRemoteCluster",
    "Trace",
    "TransactionDescription",
    "WaitTimeoutError",
    "assert_golden",
    "events",
    "virtual_time",
]

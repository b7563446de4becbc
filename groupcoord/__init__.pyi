from groupcoord import events as events
from groupcoord.client.consumer import Consumer
from groupcoord.protocol.errors import ErrorCode
from groupcoord.testing.auto_member import AutoMember
from groupcoord.testing.clock_driver import ClockError
from groupcoord.testing.cluster import Cluster
from groupcoord.testing.faults import FaultRulesFailed
from groupcoord.testing.groups import GroupDescription, MemberDescription
from groupcoord.testing.kafka_cluster import KafkaCluster
from groupcoord.testing.manual_member import ManualMember
from groupcoord.testing.remote_cluster import RemoteCluster
from groupcoord.testing.sync_api import SyncCluster, SyncRemoteCluster
from groupcoord.testing.trace import Trace
from groupcoord.testing.trace.golden import assert_golden
from groupcoord.testing.virtual_loop import virtual_time
from groupcoord.testing.waiting import WaitTimeoutError

__all__ = [
    "AutoMember",
    "ClockError",
    "Cluster",
    "Consumer",
    "ErrorCode",
    "FaultRulesFailed",
    "GroupDescription",
    "KafkaCluster",
    "ManualMember",
    "MemberDescription",
    "RemoteCluster",
    "SyncCluster",
    "SyncRemoteCluster",
    "Trace",
    "WaitTimeoutError",
    "assert_golden",
    "events",
    "virtual_time",
]

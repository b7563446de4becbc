"""The test author's harness: a broker in a test, its time, its faults, its trace. docs/testing.md is the way in."""

from groupcoord.testing.auto_member import AutoMember
from groupcoord.testing.clock_driver import ClockError
from groupcoord.testing.clocks import ClockMode
from groupcoord.testing.cluster import Cluster
from groupcoord.testing.cluster_clock import ClusterClock
from groupcoord.testing.cluster_group import ClusterGroup
from groupcoord.testing.deadlines import PendingDeadline
from groupcoord.testing.groups import GroupDescription, MemberDescription
from groupcoord.testing.kafka_cluster import KafkaCluster
from groupcoord.testing.manual_member import ManualMember
from groupcoord.testing.remote_cluster import RemoteCluster
from groupcoord.testing.remote_group import RemoteGroup
from groupcoord.testing.trace import Trace
from groupcoord.testing.trace.golden import assert_golden
from groupcoord.testing.virtual_loop import VirtualTimeLoop, virtual_time
from groupcoord.testing.waiting import WaitTimeoutError

__all__ = [
    "AutoMember",
    "ClockError",
    "ClockMode",
    "Cluster",
    "ClusterClock",
    "ClusterGroup",
    "GroupDescription",
    "KafkaCluster",
    "ManualMember",
    "MemberDescription",
    "PendingDeadline",
    "RemoteCluster",
    "RemoteGroup",
    "Trace",
    "VirtualTimeLoop",
    "WaitTimeoutError",
    "assert_golden",
    "virtual_time",
]

"""The synchronous variants of the classes of groupcoord.testing, whose methods need no ``await``: SyncCluster, which
``Cluster(...).sync()`` returns, and so on.

Their types are in ``sync_api.pyi``, which ``python -m tools.docs`` generates.
"""

from groupcoord.testing.abstract_cluster import KafkaCluster
from groupcoord.testing.append_rules import AppendRule, HeldAppends
from groupcoord.testing.auto_member import AutoMember
from groupcoord.testing.broker_and_controller_handles import ClusterBroker, ControllerHandle
from groupcoord.testing.cluster import Cluster
from groupcoord.testing.cluster_clock import ClusterClock
from groupcoord.testing.cluster_group import ClusterGroup
from groupcoord.testing.faults import Barrier, Faults
from groupcoord.testing.group_handle import GroupHandle
from groupcoord.testing.manual_classic_member import ManualMember
from groupcoord.testing.manual_consumer_member import ManualConsumer
from groupcoord.testing.manual_producer import ManualProducer
from groupcoord.testing.remote_cluster import RemoteCluster, RemoteGroup
from groupcoord.testing.sync_proxy import PROXIES, SyncContext, sync_class
from groupcoord.testing.transaction_handle import ClusterTransaction, RemoteTransaction, TransactionHandle

PROXIES[Faults] = lambda faults, _: faults.sync()

SyncAutoMember = sync_class(AutoMember, without=("start", "next_deadline", "expire"))
SyncManualMember = sync_class(
    ManualMember, settable=("instance_id", "member_id", "generation", "leader", "protocol", "assigned")
)
SyncManualConsumer = sync_class(
    ManualConsumer,
    settable=(
        *("topics", "regex", "assignor", "instance_id", "rack_id", "rebalance_timeout_ms", "member_id", "epoch"),
        "assigned",
    ),
)
SyncManualProducer = sync_class(
    ManualProducer, settable=("transactional_id", "version", "producer_id", "epoch", "sequences")
)
SyncBarrier = sync_class(Barrier)
SyncAppendRule = sync_class(AppendRule, without=("decide",))
SyncHeldAppends = sync_class(HeldAppends, SyncAppendRule, without=("decide",))
SyncClusterClock = sync_class(ClusterClock)
SyncClusterBroker = sync_class(ClusterBroker)
SyncControllerHandle = sync_class(ControllerHandle)
SyncGroupHandle = sync_class(GroupHandle)
SyncClusterGroup = sync_class(ClusterGroup, SyncGroupHandle)
SyncRemoteGroup = sync_class(RemoteGroup, SyncGroupHandle)
SyncTransactionHandle = sync_class(TransactionHandle)
SyncClusterTransaction = sync_class(ClusterTransaction, SyncTransactionHandle)
SyncRemoteTransaction = sync_class(RemoteTransaction, SyncTransactionHandle)
SyncKafkaCluster = sync_class(KafkaCluster, SyncContext)
SyncCluster = sync_class(Cluster, SyncKafkaCluster, without=("sync",))
SyncRemoteCluster = sync_class(
    RemoteCluster,
    SyncKafkaCluster,
    without=("sync", "ask_coordinator", "log_ends", "newest_generation", "partition_counts"),
)

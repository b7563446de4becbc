"""The test harness: an in-process Kafka cluster with a controllable clock, fault injection and a trace of what happened.

docs/testing.md is the introduction.
"""

from groupcoord.client.producer.sent_records import RecordMetadata
from groupcoord.testing.abstract_cluster import KafkaCluster
from groupcoord.testing.auto_member import AutoMember
from groupcoord.testing.broker_and_controller_handles import DuplicateBrokerRegistrationError
from groupcoord.testing.clocks import ClockMode
from groupcoord.testing.cluster import Cluster
from groupcoord.testing.cluster_clock import ClockError, ClusterClock, PendingDeadline
from groupcoord.testing.cluster_group import ClusterGroup
from groupcoord.testing.group_handle import GroupDescription, MemberDescription
from groupcoord.testing.manual_classic_member import ManualMember
from groupcoord.testing.manual_consumer_member import ManualConsumer
from groupcoord.testing.manual_producer import ManualProducer
from groupcoord.testing.record_writing import ProducerRecord
from groupcoord.testing.remote_cluster import RemoteCluster, RemoteGroup
from groupcoord.testing.topic_settings import Topic
from groupcoord.testing.trace import Trace
from groupcoord.testing.trace.golden import assert_golden
from groupcoord.testing.transaction_handle import ClusterTransaction, RemoteTransaction, TransactionDescription
from groupcoord.testing.virtual_loop import VirtualTimeLoop, virtual_time
from groupcoord.testing.waiting import WaitTimeoutError

__all__ = [
    "AutoMember",
    "ClockError",
    "ClockMode",
    "Cluster",
    "ClusterClock",
    "ClusterGroup",
    "ClusterTransaction",
    "DuplicateBrokerRegistrationError",
    "GroupDescription",
    "KafkaCluster",
    "ManualConsumer",
    "ManualMember",
    "ManualProducer",
    "MemberDescription",
    "PendingDeadline",
    "ProducerRecord",
    "RecordMetadata",
    "RemoteCluster",
    "RemoteGroup",
    "RemoteTransaction",
    "Topic",
    "Trace",
    "TransactionDescription",
    "VirtualTimeLoop",
    "WaitTimeoutError",
    "assert_golden",
    "virtual_time",
]

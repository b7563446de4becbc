"""Which partition a record goes to, and which brokers a partition lives on: pure functions that answer as Kafka does.

Chance is an argument everywhere, so that the same chance gives the same answer.
"""

from groupcoord.partitioners.java_random import JavaRandom, Random
from groupcoord.partitioners.key_hashes import KEYED, fnv1a, murmur2, positive
from groupcoord.partitioners.partitioners import (
    CustomPartitioner,
    DefaultPartitioner,
    KeyHashPartitioner,
    PartitionerError,
    RoundRobinPartitioner,
    for_kafka_python,
)
from groupcoord.partitioners.replica_assignment import BrokerRack, PlacementError, assign_replicas, rack_alternated
from groupcoord.partitioners.sticky_partition import StickyPartition
from groupcoord.partitioners.striped_replica_placer import UsableBroker, place_replicas

__all__ = [
    "KEYED",
    "BrokerRack",
    "CustomPartitioner",
    "DefaultPartitioner",
    "JavaRandom",
    "KeyHashPartitioner",
    "PartitionerError",
    "PlacementError",
    "Random",
    "RoundRobinPartitioner",
    "StickyPartition",
    "UsableBroker",
    "assign_replicas",
    "fnv1a",
    "for_kafka_python",
    "murmur2",
    "place_replicas",
    "positive",
    "rack_alternated",
]

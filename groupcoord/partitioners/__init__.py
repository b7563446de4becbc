"""Partitioners of producers, and the placement of replicas on brokers: pure functions with the same results as Kafka's.

Randomness is always an argument, so that results can be reproduced.
"""

from groupcoord.partitioners.java_random import JavaRandom, Random
from groupcoord.partitioners.partitioners import (
    KEYED,
    CustomPartitioner,
    DefaultPartitioner,
    KeyHashPartitioner,
    PartitionerError,
    RoundRobinPartitioner,
    StickyPartition,
    fnv1a,
    for_kafka_python,
    murmur2,
    positive,
)
from groupcoord.partitioners.replica_placement import (
    BrokerRack,
    PlacementError,
    UsableBroker,
    assign_replicas,
    place_replicas,
    rack_alternated,
)

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

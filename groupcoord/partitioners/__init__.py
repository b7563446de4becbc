"""Which partition a record goes to, and which brokers a partition lives on: pure functions that answer as Kafka does.

Chance is an argument everywhere, so that the same chance gives the same answer.
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

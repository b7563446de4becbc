"""A network that is cut: between two brokers, between a broker and the controller, between a broker and its clients.

What is sent into a cut is lost between brokers, which ask again anyway; what clients ask waits, as TCP sends it again. But for
the clients' cut, three real brokers were asked what comes of it: tests/conformance/trio_stories/cuts.py.
"""

import contextlib
from collections.abc import Collection, Iterator

from groupcoord.broker.broker import Broker
from groupcoord.broker.partition_log import PartitionLog
from groupcoord.broker.topic_store import Topic, TopicMetadata
from groupcoord.protocol.apis import ApiKey

CONTROLLER, CLIENTS = "controller", "clients"
Peer = int | str
"""The other end of a cut: the id of a broker, ``controller`` or ``clients``."""


def named(peer: Peer) -> str:
    """A peer in words."""
    return f"broker {peer}" if isinstance(peer, int) else f"the {peer}"


ANSWERED_FROM_STALE_METADATA = frozenset(
    {
        ApiKey.PRODUCE,
        ApiKey.FETCH,
        ApiKey.LIST_OFFSETS,
        ApiKey.OFFSET_FOR_LEADER_EPOCH,
        ApiKey.METADATA,
        ApiKey.DESCRIBE_CLUSTER,
        ApiKey.DESCRIBE_TOPIC_PARTITIONS,
        ApiKey.DESCRIBE_PRODUCERS,
        ApiKey.FIND_COORDINATOR,
    }
)
"""What a broker answers that hears nothing of its controller, by what it heard last."""
# Deviation (cut-off-coordinators): groups and transactions of a broker that is cut off from the controller move as soon as it
# is fenced, and it answers NOT_COORDINATOR. Kafka's goes on answering from memory whatever needs no record: members that send
# heartbeats stay, and OffsetFetch and DescribeGroups tell what was; an OffsetCommit fails with COORDINATOR_NOT_AVAILABLE after
# offsets.commit.timeout.ms.

FORWARDED = frozenset(
    {
        ApiKey.CREATE_TOPICS,
        ApiKey.DELETE_TOPICS,
        ApiKey.CREATE_PARTITIONS,
        ApiKey.ALTER_CONFIGS,
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        ApiKey.ELECT_LEADERS,
        ApiKey.ALTER_PARTITION_REASSIGNMENTS,
        ApiKey.LIST_PARTITION_REASSIGNMENTS,
        ApiKey.UNREGISTER_BROKER,
        ApiKey.UPDATE_FEATURES,
        ApiKey.DESCRIBE_QUORUM,
    }
)
"""What brokers hand on to the controller. Source: ``KafkaApis.forwardToController``."""
FORWARDING_TIMEOUT_MS = 60_000
"""How long a broker tries to hand it on. Source: ``BrokerServer``, retryTimeoutMs."""


class StaleMetadata:
    """What a broker knew of the cluster of ``broker`` when it was cut off from the controller."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._topics: dict[Topic, tuple[TopicMetadata, list[PartitionLog]]] = {
            topic: (topic.metadata, list(topic.partitions)) for topic in broker.topics.all()
        }
        self._fenced = set(broker.cluster.fenced)

    @contextlib.contextmanager
    def in_force(self) -> Iterator[None]:
        """While this lasts requests are handled by a broker that knows no more."""
        cluster = self._broker.cluster
        present = {topic: (topic.metadata, topic.partitions) for topic in self._topics}
        fenced, has_controller = cluster.fenced, cluster.has_controller
        cluster.fenced, cluster.has_controller = self._fenced, False
        for topic, (metadata, partitions) in self._topics.items():
            topic.metadata, topic.partitions = metadata, partitions
        try:
            yield
        finally:
            cluster.fenced, cluster.has_controller = fenced, has_controller
            for topic, (metadata, partitions) in present.items():
                topic.metadata, topic.partitions = metadata, partitions


class NetworkCuts:
    """What is cut off from what; nothing at first."""

    def __init__(self) -> None:
        self._between: set[frozenset[int]] = set()
        self.stale: dict[int, StaleMetadata] = {}
        """The brokers that are cut off from the controller, with what they knew."""

    def cut(self, one: int, other: int) -> None:
        """Two brokers reach each other no more."""
        self._between.add(frozenset((one, other)))

    def heal(self, one: int, other: int) -> None:
        """They do again. Raises ValueError if they did before."""
        try:
            self._between.remove(frozenset((one, other)))
        except KeyError:
            raise ValueError(f"the network between broker {one} and broker {other} is not cut") from None

    def is_cut(self, one: int, other: int) -> bool:
        """Is the network between two brokers cut?"""
        return frozenset((one, other)) in self._between

    def __bool__(self) -> bool:
        return bool(self._between)

    def peers_of(self, broker_id: int) -> list[int]:
        """The brokers that a broker is cut off from, in order."""
        return sorted(other for pair in self._between if broker_id in pair for other in pair - {broker_id})

    def touches(self, broker_id: int) -> bool:
        """Is that broker cut off from any other?"""
        return any(broker_id in pair for pair in self._between)


def other_broker(broker_id: int, peer: Peer, ids: Collection[int]) -> int:
    """The broker that ``peer`` is. Raises ValueError for what a broker cannot be cut off from."""
    if peer not in ids or peer == broker_id:
        others = ", ".join(str(one) for one in ids if one != broker_id)
        raise ValueError(
            f"broker {broker_id} cannot be cut off from {peer!r}: from broker {others}, from 'controller' or 'clients'"
        )
    return int(peer)


def require_cut(is_cut: bool, broker_id: int, peer: Peer) -> None:
    """Raises ValueError if there is nothing to mend."""
    if not is_cut:
        raise ValueError(f"broker {broker_id} is not cut off from {named(peer)}")

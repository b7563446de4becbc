"""Network cuts: between two brokers, between a broker and the controller, between a broker and its clients.

Requests between brokers are lost in a cut and are retried; requests of clients wait, because TCP retransmits. The behaviour,
except of the clients' cut, was checked with three real brokers: tests/conformance/trio_stories/cuts.py.
"""

import contextlib
from collections.abc import Collection, Iterator, Mapping, Sequence

from groupcoord.broker.broker import Broker
from groupcoord.broker.partition_log import PartitionLog
from groupcoord.broker.topic_names import TRANSACTION_STATE
from groupcoord.broker.topic_store import Topic, TopicMetadata
from groupcoord.core.effect_collector import HandlerContext
from groupcoord.core.effects import Call
from groupcoord.core.java_hash_order import partition_for
from groupcoord.core.timers import TimerKey
from groupcoord.core.transaction_verification_types import (
    TopicPartition,
    TransactionalWrite,
    Verified,
    VerifyTransaction,
)
from groupcoord.protocol.apis import ApiKey
from groupcoord.protocol.errors import ErrorCode

CONTROLLER, CLIENTS = "controller", "clients"
Peer = int | str
"""The other end of a cut: the id of a broker, ``controller`` or ``clients``."""


def named(peer: Peer) -> str:
    """A peer as text."""
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
"""The APIs that a broker without contact to the controller answers from its stale metadata."""
# Deviation (cut-off-coordinators): groups and transactions of a broker that is cut off from the controller move as soon as it
# is fenced, and it returns NOT_COORDINATOR. Kafka's coordinator continues to respond from memory to requests that write no
# record: heartbeats succeed, and OffsetFetch and DescribeGroups return the old state; an OffsetCommit fails with
# COORDINATOR_NOT_AVAILABLE after offsets.commit.timeout.ms.

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
"""The APIs that brokers forward to the controller. Source: ``KafkaApis.forwardToController``."""
FORWARDING_TIMEOUT_MS = 60_000
"""How long a broker tries to forward a request. Source: ``BrokerServer``, retryTimeoutMs."""


class StaleMetadata:
    """The metadata of the cluster of ``broker`` at the time it was cut off from the controller."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._topics: dict[Topic, tuple[TopicMetadata, list[PartitionLog]]] = {
            topic: (topic.metadata, list(topic.partitions)) for topic in broker.topics.all()
        }
        self._fenced = set(broker.cluster.fenced)

    @contextlib.contextmanager
    def in_force(self) -> Iterator[None]:
        """A context manager in which requests see the stale metadata."""
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


def verify_with_known_coordinator(
    broker: Broker, stale: Mapping[int, StaleMetadata], verify: VerifyTransaction
) -> VerifyTransaction:
    """Verifies with ``verify``; for a broker in ``stale`` only if the coordinator that it knows is still the coordinator."""

    def verify_if_known(
        ctx: HandlerContext,
        call: Call,
        write: TransactionalWrite,
        partitions: Sequence[TopicPartition],
        verified: Verified,
    ) -> None:
        asking = broker.cluster.id_of(call)
        if asking not in stale:
            verify(ctx, call, write, partitions, verified)
            return
        topic = broker.topics.get(TRANSACTION_STATE)
        if topic is None:
            verified(ctx, dict.fromkeys(partitions, ErrorCode.COORDINATOR_NOT_AVAILABLE))
            return
        partition = partition_for(write.transactional_id, len(topic.partitions))
        known = topic.metadata.leaders[partition]

        def ask(later: HandlerContext) -> None:
            if known == topic.metadata.leaders[partition]:
                verify(later, call, write, partitions, told)
            else:
                is_away = known in broker.cluster.not_running
                error = ErrorCode.NETWORK_EXCEPTION if is_away else ErrorCode.NOT_COORDINATOR
                told(later, dict.fromkeys(partitions, error))

        def told(later: HandlerContext, errors: Mapping[TopicPartition, ErrorCode]) -> None:
            with stale[asking].in_force() if asking in stale else contextlib.nullcontext():
                verified(later, errors)

        # Not in this request: the coordinator has metadata of its own, and writes to the log that it leads.
        broker.timers.schedule(TimerKey("verification", f"connection {call.connection_id}"), ctx.now_ms, ask)

    return verify_if_known


class NetworkCuts:
    """All cuts; none at first."""

    def __init__(self) -> None:
        self._between: set[frozenset[int]] = set()
        self.stale: dict[int, StaleMetadata] = {}
        """The brokers that are cut off from the controller, with their stale metadata."""

    def cut(self, one: int, other: int) -> None:
        """Cut the network between two brokers."""
        self._between.add(frozenset((one, other)))

    def heal(self, one: int, other: int) -> None:
        """Undo ``cut``. Raises ValueError if there is none."""
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
        """The ids of the brokers from which a broker is cut off, ascending."""
        return sorted(other for pair in self._between if broker_id in pair for other in pair - {broker_id})

    def touches(self, broker_id: int) -> bool:
        """Is that broker cut off from any other?"""
        return any(broker_id in pair for pair in self._between)


def other_broker(broker_id: int, peer: Peer, ids: Collection[int]) -> int:
    """The broker id ``peer``. Raises ValueError for anything else, or the broker's own id."""
    if peer not in ids or peer == broker_id:
        others = ", ".join(str(one) for one in ids if one != broker_id)
        raise ValueError(
            f"broker {broker_id} cannot be cut off from {peer!r}: from broker {others}, from 'controller' or 'clients'"
        )
    return int(peer)


def require_cut(is_cut: bool, broker_id: int, peer: Peer) -> None:
    """Raises ValueError if there is no cut."""
    if not is_cut:
        raise ValueError(f"broker {broker_id} is not cut off from {named(peer)}")

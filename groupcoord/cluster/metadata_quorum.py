"""The KRaft quorum: the controller, the brokers as observers of the metadata log, and DescribeQuorum (0–2).

A single broker is its own controller; several have a separate controller node. The metadata log is not stored; only its end
offset is counted. Sources: ``KafkaRaftClient.handleDescribeQuorumRequest``, ``LeaderState``.
"""

import uuid
from collections.abc import Sequence
from typing import Any, NamedTuple

from groupcoord.broker.broker import Broker
from groupcoord.config.listeners import Endpoint
from groupcoord.core.effect_collector import HandlerContext
from groupcoord.core.effects import Call
from groupcoord.protocol.apis.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    DescribeQuorumResponsePartitionData,
    DescribeQuorumResponseTopicData,
    Listener,
    Node,
    ReplicaState,
    quorum_refused,
)
from groupcoord.protocol.errors import ErrorCode

CLUSTER_METADATA = "__cluster_metadata"
CONTROLLER_ID = 3000
"""The id of the controller of several brokers, unless ``controller.quorum.voters`` names others."""
FIRST_LEADER_EPOCH = 1
"""The epoch of the first leader."""
OBSERVER_SESSION_MS = 300_000
"""After that time without a fetch an observer is no longer listed (``LeaderState.OBSERVER_SESSION_TIMEOUT_MS``)."""


class _Copy(NamedTuple):
    """An observer's end offset in the metadata log, and the time of its last fetch."""

    end: int
    fetched_ms: int


class MetadataQuorum:
    """The metadata log of the cluster of ``broker``, which started at ``now_ms``.

    It begins with the leader's first record and the registrations of the brokers. Each change of a broker or a partition adds a
    record, and so does each ``metadata.max.idle.interval.ms`` (NoOpRecord).
    """

    def __init__(self, broker: Broker, now_ms: int) -> None:
        self._broker = broker
        self.leader_epoch = FIRST_LEADER_EPOCH
        """The epoch of the current leader."""
        self._started_ms = now_ms
        self._away_since_ms = -1
        """Since when the controller is away, while it is."""
        self._changes = 1 + len(broker.cluster)
        self._left: dict[int, _Copy] = {}

    def log_end_offset(self, now_ms: int) -> int:
        """The end offset of the metadata log."""
        idle_ms = int(str(self._broker.config["metadata.max.idle.interval.ms"]))
        there_until_ms = now_ms if self._away_since_ms < 0 else self._away_since_ms
        heartbeats = (there_until_ms - self._started_ms) // idle_ms if idle_ms else 0
        return self._changes + self._broker.topics.changes.value + heartbeats

    def broker_changed(self) -> None:
        """A broker was registered, unregistered, fenced or unfenced."""
        self._changes += 1

    def leader_leaves(self, now_ms: int) -> None:
        """The controller goes away: the log does not grow."""
        self._away_since_ms = now_ms

    def leader_returns(self, now_ms: int, *, elected: bool) -> None:
        """The controller returns; if it was ``elected`` again, in the next epoch, with another record."""
        self._started_ms += now_ms - self._away_since_ms
        self._away_since_ms = -1
        if elected:
            self.leader_epoch += 1
            self._changes += 1

    def stops_fetching(self, broker_id: int, now_ms: int) -> None:
        """That broker stops fetching, until ``fetches_again``."""
        self._left.setdefault(broker_id, _Copy(self.log_end_offset(now_ms), now_ms))

    def fetches_again(self, broker_id: int) -> None:
        """That broker fetches again, and catches up."""
        self._left.pop(broker_id, None)

    @property
    def voters(self) -> Sequence[tuple[int, Endpoint]]:
        """The controllers, the leader first, with their addresses; port 0: unreachable for clients."""
        config = self._broker.config
        names: Any = config["controller.listener.names"]
        told: Any = config["controller.quorum.voters"]
        voters = []
        for text in told:
            voter_id, _, address = text.partition("@")
            host, _, port = address.rpartition(":")
            voters.append((int(voter_id), Endpoint(names[0], host, int(port))))
        if voters:
            return voters
        own = config.node_id if len(self._broker.cluster) == 1 else CONTROLLER_ID
        return [(own, Endpoint(names[0], config.served[0].host, 0))]

    def observers(self, now_ms: int) -> list[ReplicaState]:
        """The brokers that fetch the metadata log without a vote, and those that did recently."""
        voters = {voter_id for voter_id, _ in self.voters}
        present = _Copy(self.log_end_offset(now_ms), now_ms)
        copies = {one: self._left.get(one, present) for one in self._broker.cluster.ids if one not in voters}
        return [
            ReplicaState(
                replica_id=broker_id,
                log_end_offset=copy.end,
                last_fetch_timestamp=copy.fetched_ms,
                last_caught_up_timestamp=copy.fetched_ms,
                replica_directory_id=self._directory_id(broker_id),
            )
            for broker_id, copy in copies.items()
            if now_ms - copy.fetched_ms < OBSERVER_SESSION_MS
        ]

    def _directory_id(self, broker_id: int) -> uuid.UUID:
        """A directory id, which Kafka generates when it formats a directory."""
        return uuid.uuid5(uuid.NAMESPACE_URL, f"{self._broker.config.cluster_id}/{broker_id}")


def handle_describe_quorum(
    quorum: MetadataQuorum, ctx: HandlerContext, call: Call, request: DescribeQuorumRequest
) -> None:
    """Respond with voters and observers; only partition 0 of ``__cluster_metadata`` is known."""
    asked = [(topic.topic_name, [each.partition_index for each in topic.partitions]) for topic in request.topics]
    if asked != [(CLUSTER_METADATA, [0])]:
        ctx.reply(call, quorum_refused(request, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
        return
    end, voters = quorum.log_end_offset(ctx.now_ms), quorum.voters
    partition = DescribeQuorumResponsePartitionData(
        partition_index=0,
        leader_id=voters[0][0],
        leader_epoch=quorum.leader_epoch,
        high_watermark=end,
        current_voters=tuple(
            ReplicaState(
                replica_id=voter_id,
                log_end_offset=end,
                last_fetch_timestamp=ctx.now_ms,
                last_caught_up_timestamp=ctx.now_ms,
            )
            for voter_id, _ in voters
        ),
        observers=tuple(quorum.observers(ctx.now_ms)),
    )
    ctx.reply(
        call,
        DescribeQuorumResponse(
            topics=(DescribeQuorumResponseTopicData(topic_name=CLUSTER_METADATA, partitions=(partition,)),),
            nodes=tuple(
                Node(node_id=voter_id, listeners=(Listener(name=at.listener, host=at.host, port=at.port),))
                for voter_id, at in voters
            ),
        ),
    )

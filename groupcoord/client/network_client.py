"""NetworkClient: the connections to all brokers, opened on demand, and the metadata of brokers and topics."""

import asyncio
import enum
import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from groupcoord.assignors import TopicPartition
from groupcoord.client.client_errors import ClientError, ConnectionClosedError, DisconnectedError
from groupcoord.client.connection import BrokerConnection
from groupcoord.client.connection_security import PLAINTEXT, ConnectionSecurity
from groupcoord.client.exponential_backoff import ExponentialBackoff
from groupcoord.client.member.metadata_and_commit_requests import MetadataSnapshot, metadata_request
from groupcoord.client.option_value_parsing import Address
from groupcoord.client.trouble_log import TroubleLog
from groupcoord.protocol.apis.metadata import MetadataRequest, MetadataResponse, MetadataResponseTopic
from groupcoord.protocol.errors import ErrorCode


class ConnectionPurpose(enum.Enum):
    """What a connection is used for. A broker responds in order, so requests that wait have a connection of their own."""

    GENERAL = "what is answered at once"
    PARKING = "JoinGroup and SyncGroup, which wait for other members"
    FETCHING = "fetches that do not wait"
    WAITING = "fetches that wait for records"
    PRODUCING = "records"


class BrokerMetadata(NamedTuple):
    """One broker."""

    node_id: int
    host: str
    port: int
    rack: str | None


class PartitionLeader(NamedTuple):
    """The leader of a partition, its epoch, and the ids of the replicas."""

    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TopicMetadata:
    """One topic."""

    topic_id: uuid.UUID | None
    partitions: dict[int, PartitionLeader] = field(default_factory=dict)
    internal: bool = False
    """Is it an internal topic?"""


NO_LEADER = -1


class NetworkClient:
    """Connections to the cluster of the ``bootstrap`` brokers, and its metadata; ``on_change`` is called after a refresh."""

    def __init__(
        self,
        bootstrap: Sequence[Address],
        *,
        client_id: str,
        request_timeout_ms: int,
        metadata_max_age_ms: int,
        backoff: ExponentialBackoff,
        allow_auto_create_topics: bool,
        on_change: Callable[[], None] = lambda: None,
        troubles: TroubleLog | None = None,
        security: ConnectionSecurity = PLAINTEXT,
    ) -> None:
        self.brokers: dict[int, BrokerMetadata] = {}
        self.topics: dict[str, TopicMetadata] = {}
        self.topic_errors: dict[str, ErrorCode] = {}
        self.watched: frozenset[str] = frozenset()
        """The topics whose metadata is refreshed periodically."""
        self.watches_all = False
        """Is the metadata of all topics refreshed, to find what a pattern matches?"""
        self.on_change = on_change
        self._bootstrap = tuple(bootstrap)
        self._client_id = client_id
        self._request_timeout_ms = request_timeout_ms
        self._max_age_s = metadata_max_age_ms / 1000
        self._backoff = backoff
        self._allow_auto_create_topics = allow_auto_create_topics
        self._connections: dict[tuple[Address, ConnectionPurpose], asyncio.Task[BrokerConnection]] = {}
        self._refresh_requested = asyncio.Event()
        self._troubles = troubles
        self._security = security

    # Connections.

    async def request_at(
        self,
        address: Address,
        request: Any,
        purpose: ConnectionPurpose,
        timeout_ms: int | None = None,
        *,
        limit: int | None = None,
    ) -> Any:
        """Send ``request`` to the broker at ``address``. Raises DisconnectedError, UnsupportedVersionError."""
        try:
            connection = await self._connected(address, purpose)
            answer = await connection.request(request, timeout_ms or self._request_timeout_ms, limit=limit)
        except ConnectionClosedError:
            raise  # this client closed it, which is no failure
        except DisconnectedError as problem:
            self.tell(_named(address), str(problem))
            raise
        if self._troubles:
            self.tell(_named(address))
        return answer

    async def request_of(
        self, node_id: int, request: Any, purpose: ConnectionPurpose, *, limit: int | None = None
    ) -> Any:
        """Send ``request`` to broker ``node_id``. Raises DisconnectedError, also for an unknown broker."""
        return await self.request_at(self._address(node_id), request, purpose, limit=limit)

    async def connection_to(self, node_id: int, purpose: ConnectionPurpose) -> BrokerConnection:
        """The connection to broker ``node_id``. Raises DisconnectedError, also for an unknown broker."""
        return await self._connected(self._address(node_id), purpose)

    def _address(self, node_id: int) -> Address:
        broker = self.brokers.get(node_id)
        if broker is None:
            raise DisconnectedError(f"broker {node_id} is not known")
        return broker.host, broker.port

    async def request_any(self, request: Any, timeout_ms: int | None = None) -> Any:
        """Send ``request`` to one broker after the other until one responds. Raises DisconnectedError if none does."""
        known = [(broker.host, broker.port) for broker in self.brokers.values()]
        connected = [address for address, purpose in self._connections if purpose is ConnectionPurpose.GENERAL]
        problem: DisconnectedError | None = None
        for address in dict.fromkeys((*connected, *known, *self._bootstrap)):
            try:
                return await self.request_at(address, request, ConnectionPurpose.GENERAL, timeout_ms)
            except DisconnectedError as error:
                problem = error
        raise problem or DisconnectedError("no address of any broker is known")

    def disconnect(self, address: Address, *purposes: ConnectionPurpose) -> None:
        """Close the connections to ``address`` for ``purposes``; the next request opens a new one."""
        for purpose in purposes:
            connecting = self._connections.pop((address, purpose), None)
            if connecting is not None:
                _close(connecting)

    async def close(self) -> None:
        """Close all connections."""
        connections = tuple(self._connections.values())
        self._connections.clear()
        for connecting in connections:
            _close(connecting)
        await asyncio.gather(*connections, return_exceptions=True)

    async def _connected(self, address: Address, purpose: ConnectionPurpose) -> BrokerConnection:
        key = (address, purpose)
        connecting = self._connections.get(key)
        if connecting is None or _is_over(connecting):
            if connecting is not None:
                _close(connecting)  # it is still open if only its SASL session ends
            opening = BrokerConnection.connect(
                *address, client_id=self._client_id, timeout_ms=self._request_timeout_ms, security=self._security
            )
            connecting = self._connections[key] = asyncio.create_task(opening)
        try:
            # Several tasks may wait for one connection; a cancelled one must not cancel the others.
            return await asyncio.shield(connecting)
        except asyncio.CancelledError:
            if connecting.cancelled():
                raise ConnectionClosedError(f"the connection to {address[0]}:{address[1]} was closed") from None
            raise

    # Metadata.

    def request_refresh(self) -> None:
        """Refresh the metadata soon: it seems to be stale."""
        self._refresh_requested.set()

    def watch(self, topics: Iterable[str]) -> None:
        """Refresh the metadata of exactly ``topics`` periodically; that of new ones at once."""
        watched = frozenset(topics)
        if watched - self.watched - self.topics.keys():
            self._refresh_requested.set()
        for name in self.watched - watched:
            self.tell(f"topic {name}")
        self.watched = watched

    def watch_all(self, wanted: bool) -> None:
        """Refresh the metadata of all topics periodically, beginning now; with ``wanted`` false, only those of ``watch``."""
        if wanted and not self.watches_all:
            self._refresh_requested.set()
        self.watches_all = wanted

    async def refresh(self, topics: Iterable[str] | None) -> None:
        """Fetch metadata of the brokers and of ``topics`` (None: all topics) now.

        Raises DisconnectedError, UnsupportedVersionError.
        """
        asked = None if topics is None else frozenset(topics)
        request = metadata_request(asked, allow_auto_topic_creation=self._allow_auto_create_topics)
        answer = await self._ask(request)
        answered = {topic.name: topic for topic in answer.topics if topic.name}
        for name in sorted(self.topics.keys() | self.watched | answered.keys() if asked is None else asked):
            self._learn(name, answered.get(name))
        self.on_change()

    async def all_topics(self) -> dict[str, bool]:
        """The names of all topics, and whether each is internal. Raises DisconnectedError, UnsupportedVersionError."""
        answer = await self._ask(metadata_request(None))
        return {topic.name: topic.is_internal for topic in answer.topics if topic.name}

    async def refresh_by_id(self, topic_ids: Iterable[uuid.UUID]) -> MetadataSnapshot:
        """Fetch metadata of the topics with these ids now; returns all known topics.

        The metadata of these topics is refreshed from now on. Raises DisconnectedError, UnsupportedVersionError.
        """
        answer = await self._ask(metadata_request((), topic_ids=topic_ids))
        found = {topic.name: topic for topic in answer.topics if topic.name}
        for name, topic in sorted(found.items()):
            self._learn(name, topic)
        self.watch(self.watched | found.keys())
        return self.view()

    async def _ask(self, request: MetadataRequest) -> MetadataResponse:
        answer: MetadataResponse = await self.request_any(request)
        self.brokers = {
            each.node_id: BrokerMetadata(each.node_id, each.host, each.port, each.rack or None)
            for each in answer.brokers
        }
        self._forget_brokers()
        return answer

    def _forget_brokers(self) -> None:
        """End the logged failures of brokers that have left the cluster."""
        if self._troubles is not None:
            known = {_named((each.host, each.port)) for each in self.brokers.values()} | set(
                map(_named, self._bootstrap)
            )
            for subject in self._troubles.subjects():
                if subject.startswith(_BROKER) and subject not in known:
                    self._troubles.end(subject, "it is not part of the cluster any more")

    def _learn(self, name: str, answer: MetadataResponseTopic | None) -> None:
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if answer is None else ErrorCode(answer.error_code)
        self.topic_errors.pop(name, None)
        if code:
            self.topic_errors[name] = code
        problem = f"{code.name}: {code.text}" if code else _leaderless(answer)
        self.tell(f"topic {name}", problem if name in self.watched else "")
        if answer is None or code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            self.topics.pop(name, None)
        elif not code:
            self.topics[name] = TopicMetadata(
                answer.topic_id,
                {
                    each.partition_index: PartitionLeader(each.leader_id, each.leader_epoch, each.replica_nodes)
                    for each in sorted(answer.partitions, key=lambda partition: partition.partition_index)
                },
                answer.is_internal,
            )

    def tell(self, subject: str, problem: str = "") -> None:
        """Log that there is a ``problem`` with ``subject``, or, with "", that it is over."""
        if self._troubles is not None and problem:
            self._troubles.begin(subject, problem)
        elif self._troubles is not None:
            self._troubles.end(subject)

    async def refresh_periodically(self) -> None:
        """Refresh the watched topics on request, when old, and with back-off while one has no leader. Never returns."""
        attempts = 0
        while True:
            failing = attempts > 0
            try:
                async with asyncio.timeout(self._backoff.delay_ms(attempts - 1) / 1000 if failing else self._max_age_s):
                    await self._refresh_requested.wait()
                    # One refresh per back-off, however many were requested.
                    await asyncio.sleep(self._backoff.delay_ms(0) / 1000)
            except TimeoutError:
                pass
            self._refresh_requested.clear()
            try:
                await self.refresh(None if self.watches_all else self.watched)
                attempts = 0 if self._metadata_is_complete() else attempts + 1
                self.tell(_METADATA)
            except ClientError as problem:
                attempts += 1
                if not isinstance(problem, DisconnectedError):  # those are logged by `request_at`
                    self.tell(_METADATA, str(problem))

    def _metadata_is_complete(self) -> bool:
        return all(
            name in self.topics and all(place.leader != NO_LEADER for place in self.topics[name].partitions.values())
            for name in self.watched
        )

    def view(self) -> MetadataSnapshot:
        """The known topics as a MetadataSnapshot."""
        return MetadataSnapshot(
            partitions={name: len(topic.partitions) for name, topic in self.topics.items()},
            racks={name: tuple(map(self._racks, topic.partitions.values())) for name, topic in self.topics.items()},
            ids={name: topic.topic_id for name, topic in self.topics.items() if topic.topic_id is not None},
        )

    def _racks(self, place: PartitionLeader) -> frozenset[str]:
        brokers = (self.brokers.get(node_id) for node_id in place.replicas)
        return frozenset(broker.rack for broker in brokers if broker is not None and broker.rack is not None)

    def leader_of(self, partition: TopicPartition) -> PartitionLeader | None:
        """The leader of a partition; None if it is not known or there is none."""
        topic = self.topics.get(partition[0])
        place = None if topic is None else topic.partitions.get(partition[1])
        return None if place is None or place.leader == NO_LEADER else place

    def topic_id(self, name: str) -> uuid.UUID | None:
        """The id of a topic, if it is known and has one."""
        topic = self.topics.get(name)
        return None if topic is None else topic.topic_id


_METADATA = "the metadata of the cluster"
_BROKER = "the broker at "


def _named(address: Address) -> str:
    return f"{_BROKER}{address[0]}:{address[1]}"


def _leaderless(topic: MetadataResponseTopic | None) -> str:
    """A text that names the partitions of a topic without a leader; "" if all have one."""
    partitions = () if topic is None else topic.partitions
    missing = sorted(each.partition_index for each in partitions if each.leader_id == NO_LEADER)
    return f"no leader for partition {', '.join(map(str, missing))}" if missing else ""


def _is_over(connecting: "asyncio.Task[BrokerConnection]") -> bool:
    if not connecting.done():
        return False
    return connecting.cancelled() or connecting.exception() is not None or not connecting.result().open


def _close(connecting: "asyncio.Task[BrokerConnection]") -> None:
    if not connecting.done():
        connecting.cancel()
    elif not connecting.cancelled() and connecting.exception() is None:
        connecting.result().close()

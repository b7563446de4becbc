"""A cluster, asked over blocking sockets: what a task of Spark needs, which has no event loop and reads one partition.

The versions are the highest that both sides know, up to those that name topics by name. Sources: KIP-35 (ApiVersions), KIP-98
(what a reader of committed records sees), KIP-79 (ListOffsets).
"""

import socket
import time
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Any, NamedTuple, Self, TypeVar

from groupcoord.pipeline.errors import PipelineError
from groupcoord.protocol import messages as m
from groupcoord.protocol.apis import APIS, ApiKey
from groupcoord.protocol.apis.fetch import FetchPartition, FetchTopic
from groupcoord.protocol.apis.list_offsets import ListOffsetsPartition, ListOffsetsTopic
from groupcoord.protocol.apis.metadata import MetadataRequestTopic
from groupcoord.protocol.errors import ErrorCode, WireError
from groupcoord.protocol.framing import FrameBuffer, encode_request, parse_response

CLIENT_ID = "groupcoord-pipeline"
TIMEOUT_S = 30
TRIES = 8
"""So often is asked again after an error that a cluster recovers from; the pauses double from a tenth of a second."""
LATEST, EARLIEST = -1, -2
READ_COMMITTED = 1
FETCH_BYTES = 8 * 1024 * 1024
_LIMITS = {ApiKey.FETCH: 11, ApiKey.LIST_OFFSETS: 6, ApiKey.METADATA: 8, ApiKey.API_VERSIONS: 0}

Answer = TypeVar("Answer")


class ClusterUnavailableError(PipelineError):
    """No broker can be reached, the cluster does not recover, or has no such topic: later it may be otherwise."""


class OffsetOutOfRangeError(PipelineError):
    """The partition has no such offset."""


class RetriableAnswer(Exception):
    """The cluster is about to recover from this."""


class FetchedBatches(NamedTuple):
    """Bytes of whole batches, and which producers' transactions were aborted, each from an offset on."""

    records: bytes
    aborted: list[tuple[int, int]]


class BrokerSocket:
    """One broker. Raises ClusterUnavailableError if it cannot be reached or goes away, PipelineError if it is not Kafka."""

    def __init__(self, host: str, port: int) -> None:
        self._where = f"{host}:{port}"
        try:
            self._socket = socket.create_connection((host, port), TIMEOUT_S)
        except OSError as problem:
            raise ClusterUnavailableError(
                f"no broker answers at {self._where}: {problem.strerror or problem}"
            ) from None
        self._frames = FrameBuffer(1 << 31)
        self._correlation_id = 0
        self._versions = {ApiKey.API_VERSIONS: 0}
        for said in self.ask(ApiKey.API_VERSIONS, m.ApiVersionsRequest()).api_keys:
            if said.api_key in _LIMITS:
                self._versions[ApiKey(said.api_key)] = min(said.max_version, _LIMITS[ApiKey(said.api_key)])

    def ask(self, key: ApiKey, request: Any) -> Any:
        """The answer to ``request``."""
        self._correlation_id += 1
        api, version = APIS[key], self._versions[key]
        try:
            self._socket.sendall(encode_request(api, version, self._correlation_id, CLIENT_ID, request))
            while (frame := self._frames.next_frame()) is None:
                data = self._socket.recv(1 << 20)
                if not data:
                    raise ClusterUnavailableError(
                        f"{self._where} closed the connection: is it a Kafka broker without TLS?"
                    )
                self._frames.feed(data)
            correlation_id, answer = parse_response(api, version, frame)
        except OSError as problem:
            raise ClusterUnavailableError(f"{self._where} does not answer: {problem.strerror or problem}") from None
        except WireError as problem:
            raise PipelineError(f"{self._where} does not speak Kafka's protocol: {problem}") from None
        if correlation_id != self._correlation_id:
            raise PipelineError(f"{self._where} answers another request than the one it was asked")
        return answer

    def close(self) -> None:
        """Hang up."""
        self._socket.close()


class ClusterReader:
    """A cluster, found by any of its brokers. ``bootstrap`` is HOST:PORT, or several of them with commas."""

    def __init__(self, bootstrap: str, *, sleep: Callable[[float], None] = time.sleep) -> None:
        self._bootstrap = addresses(bootstrap)
        self._sleep = sleep
        self._connections: dict[tuple[str, int], BrokerSocket] = {}
        self._known: dict[str, dict[int, tuple[str, int]]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections."""
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    def leaders(self, topics: Iterable[str]) -> dict[str, dict[int, tuple[str, int]]]:
        """Topic → partition → address of its leader. A topic that is not there is missing; topics are not made by asking."""
        names = sorted(set(topics))
        return self._again(lambda: self._leaders(names))

    def cluster_id(self) -> str | None:
        """The id of the cluster, where it has one (from Kafka 0.10.1 on)."""
        answer = self._any().ask(ApiKey.METADATA, m.MetadataRequest(topics=(), allow_auto_topic_creation=False))
        found: str | None = answer.cluster_id
        return found

    def bounds(self, topic: str, partitions: Iterable[int]) -> dict[int, tuple[int, int]]:
        """Partition → its first offset, and the end up to which its records are committed."""
        wanted = {(topic, partition) for partition in partitions}
        first, end = self.offsets(wanted, EARLIEST), self.offsets(wanted, LATEST)
        return {partition: (first[topic, partition], end[topic, partition]) for _, partition in sorted(wanted)}

    def offsets(self, wanted: set[tuple[str, int]], when: int) -> dict[tuple[str, int], int]:
        """(topic, partition) → its offset at LATEST or EARLIEST. Partitions that are not there are missing."""
        return self._again(lambda: self._offsets(wanted, when))

    def fetch(self, topic: str, partition: int, offset: int) -> FetchedBatches:
        """Batches from ``offset`` on, of which the first may begin before it; none if there are none yet.

        Raises OffsetOutOfRangeError where the log begins behind ``offset``, or ends before it.
        """
        return self._again(lambda: self._fetch(topic, partition, offset))

    def _leaders(self, names: list[str]) -> dict[str, dict[int, tuple[str, int]]]:
        request = m.MetadataRequest(
            topics=tuple(MetadataRequestTopic(name=name) for name in names), allow_auto_topic_creation=False
        )
        answer = self._any().ask(ApiKey.METADATA, request)
        brokers = {broker.node_id: (broker.host, broker.port) for broker in answer.brokers}
        found: dict[str, dict[int, tuple[str, int]]] = {}
        for topic in answer.topics:
            if topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                continue
            _check(topic.error_code, f"topic {topic.name}")
            for partition in topic.partitions:
                if partition.leader_id not in brokers:
                    raise RetriableAnswer(f"{topic.name}-{partition.partition_index} has no leader")
            found[topic.name] = {one.partition_index: brokers[one.leader_id] for one in topic.partitions}
        return found

    def _offsets(self, wanted: set[tuple[str, int]], when: int) -> dict[tuple[str, int], int]:
        leaders = self._leaders(sorted({topic for topic, _ in wanted}))
        by_leader: dict[tuple[str, int], dict[str, list[int]]] = {}
        for topic, partition in sorted(wanted):
            if leader := leaders.get(topic, {}).get(partition):
                by_leader.setdefault(leader, {}).setdefault(topic, []).append(partition)
        found = {}
        for leader, topics in by_leader.items():
            asked = tuple(
                ListOffsetsTopic(
                    name=topic,
                    partitions=tuple(ListOffsetsPartition(partition_index=one, timestamp=when) for one in partitions),
                )
                for topic, partitions in topics.items()
            )
            request = m.ListOffsetsRequest(replica_id=-1, isolation_level=READ_COMMITTED, topics=asked)
            for topic in self._connection(leader).ask(ApiKey.LIST_OFFSETS, request).topics:
                for partition in topic.partitions:
                    _check(partition.error_code, f"{topic.name}-{partition.partition_index}")
                    found[topic.name, partition.partition_index] = partition.offset
        return found

    def _fetch(self, topic: str, partition: int, offset: int) -> FetchedBatches:
        leader = self._leader_of(topic, partition)
        request = m.FetchRequest(
            max_wait_ms=10,
            min_bytes=1,
            max_bytes=FETCH_BYTES,
            isolation_level=READ_COMMITTED,
            topics=(
                FetchTopic(
                    topic=topic,
                    partitions=(
                        FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=FETCH_BYTES),
                    ),
                ),
            ),
        )
        answer = self._connection(leader).ask(ApiKey.FETCH, request)
        _check(answer.error_code, f"{topic}-{partition}")
        [[said]] = [one.partitions for one in answer.responses]
        if said.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER:
            self._known.pop(topic, None)
        if said.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            raise OffsetOutOfRangeError(f"{topic}-{partition} has no offset {offset}")
        _check(said.error_code, f"{topic}-{partition} at offset {offset}")
        aborted = [(one.producer_id, one.first_offset) for one in said.aborted_transactions or ()]
        return FetchedBatches(said.records or b"", aborted)

    def _leader_of(self, topic: str, partition: int) -> tuple[str, int]:
        if topic not in self._known:
            self._known.update(self._leaders([topic]))
        try:
            return self._known[topic][partition]
        except KeyError:
            raise PipelineError(f"there is no {topic}-{partition} any more") from None

    def _again(self, what: Callable[[], Answer]) -> Answer:
        for step in range(TRIES):
            try:
                return what()
            except RetriableAnswer as problem:
                last = problem
                self._sleep(0.1 * 2**step)
        raise ClusterUnavailableError(f"the cluster does not recover: {last}")

    def _any(self) -> BrokerSocket:
        for connection in self._connections.values():
            return connection
        problems = []
        for address in self._bootstrap:
            try:
                return self._connection(address)
            except ClusterUnavailableError as problem:
                problems.append(str(problem))
        raise ClusterUnavailableError("; ".join(problems))

    def _connection(self, address: tuple[str, int]) -> BrokerSocket:
        if address not in self._connections:
            self._connections[address] = BrokerSocket(*address)
        return self._connections[address]


def addresses(bootstrap: str) -> list[tuple[str, int]]:
    """HOST:PORT, or several with commas, as pairs. Raises PipelineError."""
    found = []
    for part in bootstrap.split(","):
        host, _, port = part.strip().rpartition(":")
        if not host or not port.isascii() or not port.isdecimal():
            raise PipelineError(f"{part!r} is not HOST:PORT")
        found.append((host.strip("[]"), int(port)))
    return found


def _check(code: int, where: str) -> None:
    if code == ErrorCode.NONE:
        return
    error = ErrorCode(code)
    if error.retriable:
        raise RetriableAnswer(f"{where}: {error.name}")
    raise PipelineError(f"{where}: {error.name}: {error.text}")

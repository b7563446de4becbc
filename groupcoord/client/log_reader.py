"""LogReader fetches partitions of a running cluster without a consumer group; blocking, for commands and Spark tasks."""

import asyncio
import time
import uuid
from collections.abc import Callable, Collection, Coroutine, Iterable, Sequence
from functools import partial
from types import TracebackType
from typing import Any, NamedTuple, Self, TypeVar

from groupcoord.assignors import TopicPartition
from groupcoord.client.client_errors import BrokerError, ClientError, DisconnectedError
from groupcoord.client.completed_fetch import ConsumerRecord, decode_records
from groupcoord.client.connection_security import PLAINTEXT, ConnectionSecurity
from groupcoord.client.exponential_backoff import ExponentialBackoff
from groupcoord.client.fetcher import BY_NAME
from groupcoord.client.log_offsets import ask_leader
from groupcoord.client.member.metadata_and_commit_requests import metadata_request
from groupcoord.client.network_client import ConnectionPurpose, NetworkClient
from groupcoord.client.option_value_parsing import Address
from groupcoord.protocol.apis.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from groupcoord.protocol.apis.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    TopicRequest,
)
from groupcoord.protocol.apis.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic, PartitionData
from groupcoord.protocol.apis.list_offsets import ListOffsetsPartition
from groupcoord.protocol.apis.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from groupcoord.protocol.errors import ErrorCode

REQUEST_TIMEOUT_MS = 30_000
LATEST, EARLIEST = -1, -2
READ_UNCOMMITTED, READ_COMMITTED = 0, 1
ONE_BATCH = 1
"""``max_bytes`` of a fetch of one batch: a broker returns the first batch whatever its size (KIP-74)."""
MANY_BATCHES = 1 << 20
BROKER = 4
"""The resource type of a broker in DescribeConfigs."""
KNOWN_TRIES = 3
_FIRST_PAUSE_S = 0.1
T = TypeVar("T")


class FetchedBatches(NamedTuple):
    """Whole record batches as bytes, and (producer id, first offset) of each aborted transaction in them."""

    records: bytes
    aborted: list[tuple[int, int]]


class OpenTransaction(NamedTuple):
    """An open transaction of a partition, and the offset of its first record there."""

    producer_id: int
    first_offset: int


class LogReader:
    """Reads from the cluster of the ``bootstrap`` brokers.

    After a retriable error a request is sent again, ``tries`` times in all; the pauses double, starting at 0.1 s. The
    same goes for a lost connection, once a broker has answered: another may lead the partition now.
    Every method raises DisconnectedError, UnsupportedVersionError, AuthenticationError and BrokerError.
    """

    def __init__(
        self,
        bootstrap: Sequence[Address],
        *,
        client_id: str,
        isolation_level: int = READ_UNCOMMITTED,
        tries: int = 1,
        sleep: Callable[[float], None] = time.sleep,
        security: ConnectionSecurity = PLAINTEXT,
    ) -> None:
        self._isolation_level = isolation_level
        self._tries = tries
        self._sleep = sleep
        self._runner = asyncio.Runner()
        self._cluster = NetworkClient(
            bootstrap,
            client_id=client_id,
            request_timeout_ms=REQUEST_TIMEOUT_MS,
            metadata_max_age_ms=REQUEST_TIMEOUT_MS,
            backoff=ExponentialBackoff(100, 1_000, lambda: 0.5),
            allow_auto_create_topics=False,
            security=security,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._runner.run(self._cluster.close())
        self._runner.close()

    def cluster_id(self) -> str | None:
        """The cluster id; None before Kafka 0.10.1."""
        answer = self._retry(lambda: self._cluster.request_any(metadata_request(())))
        found: str | None = answer.cluster_id
        return found

    def addresses(self) -> list[Address]:
        """The host and port of each broker, as the cluster tells them."""
        self._retry(lambda: self._cluster.refresh(()))
        return [(broker.host, broker.port) for broker in self._cluster.brokers.values()]

    def topic_id(self, topic: str) -> uuid.UUID | None:
        """The topic id; None if ``partitions`` has not looked the topic up, or if it has none."""
        return self._cluster.topic_id(topic)

    def partitions(self, topics: Iterable[str]) -> dict[str, list[int]]:
        """The partition numbers of each of ``topics`` that exists."""
        names = sorted(set(topics))
        self._retry(lambda: self._refresh(names))
        return {name: sorted(self._cluster.topics[name].partitions) for name in names if name in self._cluster.topics}

    def offsets(self, wanted: Collection[TopicPartition], timestamp: int) -> dict[TopicPartition, int]:
        """The offset of each of ``wanted`` at EARLIEST or LATEST; partitions that do not exist are left out."""
        return self._retry(lambda: self._offsets(sorted(wanted), timestamp))

    def known_offsets(self, wanted: Collection[TopicPartition], timestamp: int) -> dict[TopicPartition, int]:
        """``offsets`` without those that no broker tells: their partition has no leader, or one that does not answer, or this
        client may not describe it. What may be told later is asked for KNOWN_TRIES times."""
        found: dict[TopicPartition, int] = {}
        left = sorted(wanted)
        for attempt in range(KNOWN_TRIES):
            if attempt:
                self._cluster.topics.clear()  # the leaders may have moved
                self._sleep(_FIRST_PAUSE_S * attempt)
            told, refused = self._retry(partial(self._ask_offsets, left, timestamp))
            found |= told
            left = [partition for partition, error in refused.items() if self._may_pass(error)]
            if not left:
                break
        return found

    def all_partitions(self) -> set[TopicPartition]:
        """The partitions of all topics that this client may describe."""
        self._retry(lambda: self._cluster.refresh(None))
        return {(topic, number) for topic, known in self._cluster.topics.items() for number in known.partitions}

    def fetch(self, partition: TopicPartition, offset: int, max_bytes: int, *, max_wait_ms: int = 0) -> FetchedBatches:
        """Whole batches from ``offset`` on, of which the first may begin before it; none at the end of the log.

        Raises BrokerError: OFFSET_OUT_OF_RANGE if the log begins after ``offset`` or ends before it.
        """
        return self._retry(lambda: self._fetch(partition, offset, max_bytes, max_wait_ms))

    def first_record(self, partition: TopicPartition, offset: int) -> ConsumerRecord | None:
        """The first record at or after ``offset``, control records aside; None if there is none.

        Raises BrokerError as ``fetch`` does, and CorruptRecordsError.
        """
        max_bytes = ONE_BATCH
        while data := self.fetch(partition, offset, max_bytes).records:
            records, offset = decode_records(partition, data, offset)
            if records:
                return records[0]
            max_bytes = MANY_BATCHES  # a control batch, or a batch emptied by compaction
        return None

    def open_transactions(self, partition: TopicPartition) -> list[OpenTransaction]:
        """The open transactions of ``partition``, oldest first (DescribeProducers, KIP-664)."""
        return self._retry(lambda: self._open_transactions(partition))

    def transactional_ids(self, producer_ids: Iterable[int]) -> dict[int, str]:
        """The transactional id by producer id, as the coordinators list them (ListTransactions, KIP-664). What no coordinator
        knows, or this client may not describe, is missing."""
        return self._retry(lambda: self._transactional_ids(tuple(producer_ids)))

    def broker_property(self, name: str) -> str | None:
        """The value of the broker config ``name`` at one of the brokers; None if there is no such config."""
        return self._retry(lambda: self._broker_property(name))

    def _retry(self, attempt: Callable[[], Coroutine[Any, Any, T]]) -> T:
        failures = 0
        while True:
            try:
                return self._runner.run(attempt())
            except ClientError as error:
                failures += 1
                if failures == self._tries or not self._may_pass(error):
                    raise
            self._cluster.topics.clear()  # the leaders may have moved
            self._sleep(_FIRST_PAUSE_S * 2 ** (failures - 1))

    def _may_pass(self, error: ClientError) -> bool:
        """May the same request succeed later? Where no broker has answered yet, the address is more likely to be wrong."""
        if isinstance(error, BrokerError):
            return error.code.retriable
        return isinstance(error, DisconnectedError) and bool(self._cluster.brokers)

    async def _refresh(self, topics: Collection[str]) -> None:
        await self._cluster.refresh(topics)
        for topic in topics:
            code = self._cluster.topic_errors.get(topic, ErrorCode.NONE)
            if code not in (ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION):
                raise BrokerError(code, f"topic {topic}")

    async def _leader(self, partition: TopicPartition) -> int:
        topic, number = partition
        if topic not in self._cluster.topics:
            await self._refresh([topic])
        if topic not in self._cluster.topics or number not in self._cluster.topics[topic].partitions:
            raise ClientError(f"there is no {topic}-{number}")
        leader = self._cluster.leader_of(partition)
        if leader is None:
            raise BrokerError(ErrorCode.LEADER_NOT_AVAILABLE, f"{topic}-{number}")
        return leader.leader

    async def _offsets(self, wanted: Sequence[TopicPartition], timestamp: int) -> dict[TopicPartition, int]:
        found, refused = await self._ask_offsets(wanted, timestamp)
        for error in refused.values():
            raise error
        return found

    async def _ask_offsets(
        self, wanted: Sequence[TopicPartition], timestamp: int
    ) -> tuple[dict[TopicPartition, int], dict[TopicPartition, ClientError]]:
        """The offsets of those of ``wanted`` that exist, and the errors of those that have none."""
        await self._cluster.refresh({topic for topic, _ in wanted})
        by_leader: dict[int, dict[str, list[ListOffsetsPartition]]] = {}
        found: dict[TopicPartition, int] = {}
        refused: dict[TopicPartition, ClientError] = {}
        for topic, number in wanted:
            code = self._cluster.topic_errors.get(topic, ErrorCode.NONE)
            if code not in (ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION):
                refused[topic, number] = BrokerError(code, f"{topic}-{number}")
            elif topic not in self._cluster.topics or number not in self._cluster.topics[topic].partitions:
                continue
            elif (leader := self._cluster.leader_of((topic, number))) is None:
                refused[topic, number] = BrokerError(ErrorCode.LEADER_NOT_AVAILABLE, f"{topic}-{number}")
            else:
                asked = ListOffsetsPartition(partition_index=number, timestamp=timestamp)
                by_leader.setdefault(leader.leader, {}).setdefault(topic, []).append(asked)
        for broker, topics in by_leader.items():
            try:
                answer = await ask_leader(self._cluster, broker, topics, self._isolation_level)
            except DisconnectedError as problem:
                refused |= {(name, each.partition_index): problem for name, of in topics.items() for each in of}
                continue
            for of_topic in answer.topics:
                for each in of_topic.partitions:
                    place = of_topic.name, each.partition_index
                    if each.error_code:
                        refused[place] = BrokerError(ErrorCode(each.error_code), "{}-{}".format(*place))
                    else:
                        found[place] = each.offset
        return found, refused

    async def _fetch(self, partition: TopicPartition, offset: int, max_bytes: int, max_wait_ms: int) -> FetchedBatches:
        leader, (topic, number) = await self._leader(partition), partition
        asked = FetchPartition(partition=number, fetch_offset=offset, partition_max_bytes=max_bytes)
        topic_id = self._cluster.topic_id(topic)
        request = FetchRequest(
            max_wait_ms=max_wait_ms,
            min_bytes=1 if max_wait_ms else 0,
            max_bytes=max_bytes,
            isolation_level=self._isolation_level,
            topics=(FetchTopic(topic=topic, topic_id=topic_id, partitions=(asked,)),),
        )
        limit = BY_NAME if topic_id is None else None
        answer: FetchResponse = await self._cluster.request_of(leader, request, ConnectionPurpose.FETCHING, limit=limit)
        where = f"{topic}-{number} at offset {offset}"
        _check(answer.error_code, where)
        found: PartitionData = answer.responses[0].partitions[0]
        _check(found.error_code, where)
        aborted = [(each.producer_id, each.first_offset) for each in found.aborted_transactions or ()]
        return FetchedBatches(bytes(found.records or b""), aborted)

    async def _open_transactions(self, partition: TopicPartition) -> list[OpenTransaction]:
        leader, (topic, number) = await self._leader(partition), partition
        request = DescribeProducersRequest(topics=(TopicRequest(name=topic, partition_indexes=(number,)),))
        answer: DescribeProducersResponse = await self._cluster.request_of(leader, request, ConnectionPurpose.FETCHING)
        found = answer.topics[0].partitions[0]
        _check(found.error_code, f"{topic}-{number}")
        begun = [(each.current_txn_start_offset, each.producer_id) for each in found.active_producers]
        return [OpenTransaction(producer_id, first) for first, producer_id in sorted(begun) if first >= 0]

    async def _transactional_ids(self, producer_ids: tuple[int, ...]) -> dict[int, str]:
        await self._cluster.refresh(())
        request, found = ListTransactionsRequest(producer_id_filters=producer_ids), dict[int, str]()
        for broker in self._cluster.brokers:
            answer: ListTransactionsResponse = await self._cluster.request_of(
                broker, request, ConnectionPurpose.GENERAL
            )
            _check(answer.error_code, f"the transactions of broker {broker}")
            found |= {state.producer_id: state.transactional_id for state in answer.transaction_states}
        return found

    async def _broker_property(self, name: str) -> str | None:
        await self._cluster.refresh(())
        broker = min(self._cluster.brokers)
        asked = DescribeConfigsResource(resource_type=BROKER, resource_name=str(broker), configuration_keys=(name,))
        request = DescribeConfigsRequest(resources=(asked,))
        answer: DescribeConfigsResponse = await self._cluster.request_of(broker, request, ConnectionPurpose.GENERAL)
        found = answer.results[0]
        _check(found.error_code, f"the properties of broker {broker}")
        return next((one.value for one in found.configs), None)


def _check(error_code: int, where: str) -> None:
    if error_code:
        raise BrokerError(ErrorCode(error_code), where)

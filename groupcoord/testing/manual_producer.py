"""ManualProducer, a transactional producer whose every request the test sends, so that a test can have any interleaving.

Each method sends its request at once, in the order of the calls, and returns a future of the response::

    producer = kafka.manual_producer("billing")
    await producer.init()
    await producer.produce("invoices", b"for order 1")
    await producer.commit_offsets("billing", {("orders", 0): 1})
    await producer.end()
"""

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple, TypeVar

from groupcoord.assignors import TopicPartition
from groupcoord.client.member.metadata_and_commit_requests import partition_errors
from groupcoord.client.producer.sent_records import require_bytes
from groupcoord.core.grouping import grouped
from groupcoord.protocol.apis.add_partitions_to_txn import AddPartitionsToTxnTopic
from groupcoord.protocol.apis.find_coordinator import TRANSACTION
from groupcoord.protocol.apis.produce import PartitionProduceData, PartitionProduceResponse, TopicProduceData
from groupcoord.protocol.apis.txn_offset_commit import TxnOffsetCommitRequestPartition, TxnOffsetCommitRequestTopic
from groupcoord.protocol.batches.record_batch import TRANSACTIONAL, build_batch
from groupcoord.protocol.batches.records import Record
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    EndTxnRequest,
    EndTxnResponse,
    InitProducerIdRequest,
    InitProducerIdResponse,
    ProduceRequest,
    ProduceResponse,
    TxnOffsetCommitRequest,
)
from groupcoord.testing.in_process_transport import MemberConnection
from groupcoord.testing.manual_request_sender import ManualRequestSender
from groupcoord.testing.topic_settings import offsets_of

_TIMEOUT_MS = 30_000
_ADD_PARTITIONS_OF_CLIENTS = 3
"""The last version of AddPartitionsToTxn for clients; later ones are for brokers."""


class _Versions(NamedTuple):
    """The newest versions of requests for a ``transaction.version``: ``TransactionManager`` of Kafka's Java client."""

    produce: int
    txn_offset_commit: int
    end_txn: int


_VERSIONS = {
    1: _Versions(produce=11, txn_offset_commit=4, end_txn=4),
    2: _Versions(produce=12, txn_offset_commit=5, end_txn=5),
}

T = TypeVar("T", InitProducerIdResponse, EndTxnResponse)


class ManualProducer:
    """A producer with ``transactional_id`` that does nothing by itself.

    Requests are built from these attributes; a test may set them, to act as a zombie.
    """

    transactional_id: str
    version: int
    """The ``transaction.version`` that it uses: 2 with KIP-890, 1 without."""
    producer_id: int
    """From the last InitProducerId or EndTxn response; -1 before the first."""
    epoch: int
    """From the last InitProducerId or EndTxn response; -1 before the first."""
    sequences: dict[TopicPartition, int]
    """The next sequence number of each partition, 0 if it is missing; cleared by a new epoch."""

    def __init__(
        self, connection: MemberConnection, *, transactional_id: str, version: int, now_ms: Callable[[], int]
    ) -> None:
        if version not in _VERSIONS:
            raise ValueError(f"there is no transaction.version {version} that a producer knows: it is 1 or 2")
        self.transactional_id = transactional_id
        self.version = version
        self.producer_id = self.epoch = -1
        self.sequences = {}
        self._connection = connection
        self._now_ms = now_ms
        to_coordinator = partial(connection.ask_coordinator, transactional_id, key_type=TRANSACTION)
        self._requests = ManualRequestSender(connection, to_coordinator)

    def __repr__(self) -> str:
        return f"<ManualProducer {self.transactional_id} producer_id={self.producer_id} epoch={self.epoch}>"

    @property
    def client_id(self) -> str:
        """The client id in its requests."""
        return self._requests.client_id

    # Requests.

    def init(
        self, *, transaction_timeout_ms: int = 60_000, goes_on: bool = False
    ) -> "asyncio.Future[InitProducerIdResponse]":
        """InitProducerId: gets a producer id and epoch, and fences the earlier producer of the transactional id.

        With ``goes_on`` it sends its present id and epoch, as a producer that recovers from an error (KIP-360). A transaction
        that is open for longer than ``transaction_timeout_ms`` is aborted.
        """
        request = InitProducerIdRequest(
            transactional_id=self.transactional_id,
            transaction_timeout_ms=transaction_timeout_ms,
            producer_id=self.producer_id if goes_on else -1,
            producer_epoch=self.epoch if goes_on else -1,
        )
        return self._requests.ask(request, self._learned)

    def add_partitions(self, *partitions: TopicPartition) -> "asyncio.Future[dict[TopicPartition, ErrorCode]]":
        """AddPartitionsToTxn; the result has the error code of each partition."""
        topics = tuple(
            AddPartitionsToTxnTopic(name=topic, partitions=tuple(numbers))
            for topic, numbers in grouped(sorted(partitions)).items()
        )
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=self.producer_id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=topics,
        )
        return self._requests.ask(request, _added, version=_ADD_PARTITIONS_OF_CLIENTS)

    def produce(
        self, topic: str, *values: bytes | None, partition: int = 0, key: bytes | None = None
    ) -> "asyncio.Future[PartitionProduceResponse]":
        """Produce ``values`` to a partition, as one batch of the transaction. Raises TypeError for values that are not bytes,
        and RuntimeError before ``init``.

        If it is refused, and no other batch was sent after it, the next batch has the same sequence number.
        """
        for value in values:
            require_bytes("value", value)
        require_bytes("key", key)
        if self.producer_id < 0:
            raise RuntimeError("produce() comes after init(): without a producer id the records are in no transaction")
        where = topic, partition
        before = self.sequences.get(where, 0)
        after = self.sequences[where] = before + len(values)
        now_ms = self._now_ms()
        batch = build_batch(
            [Record(number, now_ms, key, value) for number, value in enumerate(values)],
            attributes=TRANSACTIONAL,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            base_sequence=before,
        )
        request = ProduceRequest(
            transactional_id=self.transactional_id,
            acks=-1,
            timeout_ms=_TIMEOUT_MS,
            topic_data=(
                TopicProduceData(name=topic, partition_data=(PartitionProduceData(index=partition, records=batch),)),
            ),
        )

        def produced(response: ProduceResponse) -> PartitionProduceResponse:
            answer = response.responses[0].partition_responses[0]
            if answer.error_code and self.sequences.get(where) == after:
                self.sequences[where] = before
            return answer

        to_leader = partial(self._connection.ask_leader, where)
        return self._requests.ask(request, produced, version=_VERSIONS[self.version].produce, to=to_leader)

    def add_offsets(self, group: str) -> "asyncio.Future[AddOffsetsToTxnResponse]":
        """AddOffsetsToTxn."""
        request = AddOffsetsToTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            group_id=group,
        )

        def added(response: AddOffsetsToTxnResponse) -> AddOffsetsToTxnResponse:
            return response

        return self._requests.ask(request, added)

    def commit_offsets(
        self,
        group: str,
        offsets: Mapping[TopicPartition, int],
        member_id: str = "",
        generation: int = -1,
        *,
        instance_id: str | None = None,
    ) -> "asyncio.Future[dict[TopicPartition, ErrorCode]]":
        """TxnOffsetCommit for ``group``, with a member id and generation if they are given (KIP-447); the result has the error
        code of each partition.

        ``generation`` is the member epoch in a consumer group.
        """
        request = TxnOffsetCommitRequest(
            transactional_id=self.transactional_id,
            group_id=group,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            topics=tuple(
                TxnOffsetCommitRequestTopic(
                    name=topic,
                    partitions=tuple(
                        TxnOffsetCommitRequestPartition(
                            partition_index=number, committed_offset=offsets[topic, number], committed_metadata=""
                        )
                        for number in numbers
                    ),
                )
                for topic, numbers in grouped(sorted(offsets_of(offsets))).items()
            ),
            generation_id=generation,
            member_id=member_id,
            group_instance_id=instance_id,
        )
        version = _VERSIONS[self.version].txn_offset_commit
        return self._requests.ask(
            request, partition_errors, version=version, to=partial(self._connection.ask_coordinator, group)
        )

    def end(self, *, commit: bool = True) -> "asyncio.Future[EndTxnResponse]":
        """EndTxn: commit or abort the transaction. From ``version`` 2 on the response has the next epoch."""
        request = EndTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            committed=commit,
        )
        return self._requests.ask(request, self._learned, version=_VERSIONS[self.version].end_txn)

    def vanish(self) -> None:
        """Disappear, as in a crash: pending futures are cancelled, and an open transaction stays open until its timeout."""
        self._requests.close()

    # Responses.

    def _learned(self, response: T) -> T:
        if response.error_code == ErrorCode.NONE and response.producer_id >= 0:  # EndTxn before v5 has none
            if (self.producer_id, self.epoch) != (response.producer_id, response.producer_epoch):
                self.sequences.clear()
            self.producer_id, self.epoch = response.producer_id, response.producer_epoch
        return response


def _added(response: AddPartitionsToTxnResponse) -> dict[TopicPartition, ErrorCode]:
    # A remote broker fills the fields of the old version, one in this process those of the newest.
    by_transaction = (topic for each in response.results_by_transaction for topic in each.topic_results)
    return {
        (topic.name, each.partition_index): ErrorCode(each.partition_error_code)
        for topic in (*response.results_by_topic_v3_and_below, *by_transaction)
        for each in topic.results_by_partition
    }

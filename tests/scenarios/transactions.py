"""Reads the state of transactions for scenarios, with requests that any broker serves; for clusters of one broker."""

from collections.abc import Awaitable, Callable
from typing import Any

from groupcoord.assignors import TopicPartition
from groupcoord.client.fetched_records import decode_records
from groupcoord.client.log_reader import LATEST, READ_COMMITTED, READ_UNCOMMITTED
from groupcoord.protocol.apis.describe_producers import ProducerState, TopicRequest
from groupcoord.protocol.apis.fetch import FetchPartition, FetchTopic
from groupcoord.protocol.apis.list_offsets import ListOffsetsPartition, ListOffsetsTopic
from groupcoord.protocol.apis.offset_fetch import OffsetFetchRequestGroup, OffsetFetchRequestTopics
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages import (
    DescribeProducersRequest,
    DescribeTransactionsRequest,
    FetchRequest,
    ListOffsetsRequest,
    OffsetFetchRequest,
)
from groupcoord.testing import ManualProducer, RemoteCluster
from groupcoord.testing.waiting import poll

BY_NAME = 9
"""Fetch, ListOffsets and OffsetFetch name topics in that version."""
_BYTES = 1 << 20


async def patiently(step: Callable[[], Awaitable[Any]]) -> Any:
    """The answer to ``step``, which is taken again after retriable errors, as clients do: CONCURRENT_TRANSACTIONS is one."""
    return await poll(
        step,
        lambda answer: not ErrorCode(answer.error_code).retriable,
        "the coordinator should be there, and the transaction before be over",
        lambda answer: f"It answers {ErrorCode(answer.error_code).name}",
    )


async def begun(producer: ManualProducer, **how: Any) -> None:
    """``producer`` has its epoch; a transaction that was open is aborted."""
    assert (await patiently(lambda: producer.init(**how))).error_code == ErrorCode.NONE


async def ended(cluster: RemoteCluster, producer: ManualProducer, *, commit: bool = True) -> None:
    """The transaction of ``producer`` is over, and every partition knows it."""
    assert (await producer.end(commit=commit)).error_code == ErrorCode.NONE
    await completed(cluster, producer.transactional_id)


async def state(cluster: RemoteCluster, transactional_id: str) -> str:
    """What DescribeTransactions says."""
    request = DescribeTransactionsRequest(transactional_ids=(transactional_id,))
    found = (await cluster.ask_coordinator(transactional_id, request)).transaction_states[0]
    return str(found.transaction_state) or ErrorCode(found.error_code).name


async def completed(cluster: RemoteCluster, transactional_id: str) -> str:
    """The state of a transaction that is over."""
    return await poll(
        lambda: state(cluster, transactional_id),
        lambda found: found.startswith("Complete"),
        f"the transaction of {transactional_id} should be over",
        lambda found: f"It is {found}",
    )


async def values(cluster: RemoteCluster, topic: str, isolation: int = READ_COMMITTED) -> list[bytes | None]:
    """What a reader finds in partition 0, from its beginning."""
    asked = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=_BYTES)
    request = FetchRequest(
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=_BYTES,
        isolation_level=isolation,
        topics=(FetchTopic(topic=topic, partitions=(asked,)),),
    )
    found = (await cluster.ask_coordinator(topic, request, limit=BY_NAME)).responses[0].partitions[0]
    assert found.error_code == ErrorCode.NONE, ErrorCode(found.error_code).name
    records = decode_records((topic, 0), bytes(found.records or b""), 0, found.aborted_transactions or ())
    return [record.value for record in records.records]


async def uncommitted(cluster: RemoteCluster, topic: str) -> list[bytes | None]:
    """What a reader finds that does not ask for what is committed."""
    return await values(cluster, topic, READ_UNCOMMITTED)


async def reads(cluster: RemoteCluster, topic: str, *expected: bytes) -> None:
    """Wait until a reader of what is committed finds just ``expected``."""
    await poll(
        lambda: values(cluster, topic),
        lambda found: found == list(expected),
        f"{list(expected)} should be in {topic}",
        lambda found: f"It has {found}",
    )


async def end_offset(cluster: RemoteCluster, topic: str, isolation: int = READ_COMMITTED) -> int:
    """Where partition 0 ends for a reader: for one of what is committed, at the last stable offset."""
    asked = ListOffsetsPartition(partition_index=0, timestamp=LATEST)
    request = ListOffsetsRequest(
        replica_id=-1, isolation_level=isolation, topics=(ListOffsetsTopic(name=topic, partitions=(asked,)),)
    )
    answer = await cluster.ask_coordinator(topic, request, limit=BY_NAME)
    return int(answer.topics[0].partitions[0].offset)


async def producers_of(cluster: RemoteCluster, topic: str) -> list[ProducerState]:
    """What DescribeProducers says of those who wrote to partition 0."""
    request = DescribeProducersRequest(topics=(TopicRequest(name=topic, partition_indexes=(0,)),))
    answer = await cluster.ask_coordinator(topic, request)
    return list(answer.topics[0].partitions[0].active_producers)


async def committed(
    cluster: RemoteCluster, group: str, partition: TopicPartition, *, stable: bool = True
) -> ErrorCode | int:
    """OffsetFetch, as a consumer sends it that wants only what is ``stable``: the offset, or why it is not told."""
    topic = OffsetFetchRequestTopics(name=partition[0], partition_indexes=(partition[1],))
    asked = OffsetFetchRequestGroup(group_id=group, topics=(topic,))
    request = OffsetFetchRequest(groups=(asked,), require_stable=stable)
    found = (await cluster.ask_coordinator(group, request, limit=BY_NAME)).groups[0].topics[0].partitions[0]
    return ErrorCode(found.error_code) if found.error_code else int(found.committed_offset)

"""Reads the state of transactions for scenarios, with requests that any broker serves; for clusters of one broker."""

from collections.abc import Awaitable, Callable
from typing import Any

from groupcoord.assignors import TopicPartition
from groupcoord.client.completed_fetch import decode_records
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
    """The response to ``step``, which is repeated after retriable errors such as CONCURRENT_TRANSACTIONS."""
    return await poll(
        step,
        lambda answer: not ErrorCode(answer.error_code).retriable,
        "the coordinator should be there, and the transaction before be over",
        lambda answer: f"It answers {ErrorCode(answer.error_code).name}",
    )


async def begun(producer: ManualProducer, **how: Any) -> None:
    """Initialise ``producer``, which aborts a transaction that was open."""
    assert (await patiently(lambda: producer.init(**how))).error_code == ErrorCode.NONE


async def ended(cluster: RemoteCluster, producer: ManualProducer, *, commit: bool = True) -> None:
    """End the transaction of ``producer``, and wait until every partition has its marker."""
    assert (await producer.end(commit=commit)).error_code == ErrorCode.NONE
    await completed(cluster, producer.transactional_id)


async def state(cluster: RemoteCluster, transactional_id: str) -> str:
    """The state in the response to DescribeTransactions."""
    request = DescribeTransactionsRequest(transactional_ids=(transactional_id,))
    found = (await cluster.ask_coordinator(transactional_id, request)).transaction_states[0]
    return str(found.transaction_state) or ErrorCode(found.error_code).name


async def completed(cluster: RemoteCluster, transactional_id: str) -> str:
    """Wait until the transaction is complete; returns its state."""
    return await poll(
        lambda: state(cluster, transactional_id),
        lambda found: found.startswith("Complete"),
        f"the transaction of {transactional_id} should be over",
        lambda found: f"It is {found}",
    )


async def values(cluster: RemoteCluster, topic: str, isolation: int = READ_COMMITTED) -> list[bytes | None]:
    """The values that a consumer reads from partition 0, from the beginning."""
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
    """The values that a read-uncommitted consumer reads."""
    return await values(cluster, topic, READ_UNCOMMITTED)


async def reads(cluster: RemoteCluster, topic: str, *expected: bytes) -> None:
    """Wait until a read-committed consumer reads exactly ``expected``."""
    await poll(
        lambda: values(cluster, topic),
        lambda found: found == list(expected),
        f"{list(expected)} should be in {topic}",
        lambda found: f"It has {found}",
    )


async def end_offset(cluster: RemoteCluster, topic: str, isolation: int = READ_COMMITTED) -> int:
    """The end of partition 0 for a consumer; if it is read-committed, the last stable offset."""
    asked = ListOffsetsPartition(partition_index=0, timestamp=LATEST)
    request = ListOffsetsRequest(
        replica_id=-1, isolation_level=isolation, topics=(ListOffsetsTopic(name=topic, partitions=(asked,)),)
    )
    answer = await cluster.ask_coordinator(topic, request, limit=BY_NAME)
    return int(answer.topics[0].partitions[0].offset)


async def producers_of(cluster: RemoteCluster, topic: str) -> list[ProducerState]:
    """The producers of partition 0 in the response to DescribeProducers."""
    request = DescribeProducersRequest(topics=(TopicRequest(name=topic, partition_indexes=(0,)),))
    answer = await cluster.ask_coordinator(topic, request)
    return list(answer.topics[0].partitions[0].active_producers)


async def committed(
    cluster: RemoteCluster, group: str, partition: TopicPartition, *, stable: bool = True
) -> ErrorCode | int:
    """Send OffsetFetch, by default for ``stable`` offsets; returns the offset, or an error."""
    topic = OffsetFetchRequestTopics(name=partition[0], partition_indexes=(partition[1],))
    asked = OffsetFetchRequestGroup(group_id=group, topics=(topic,))
    request = OffsetFetchRequest(groups=(asked,), require_stable=stable)
    found = (await cluster.ask_coordinator(group, request, limit=BY_NAME)).groups[0].topics[0].partitions[0]
    return ErrorCode(found.error_code) if found.error_code else int(found.committed_offset)

"""Producers and consumers of records: the data plane's verbs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from groupcoord.protocol.apis.fetch import FetchPartition, FetchTopic, ForgottenTopic
from groupcoord.protocol.apis.list_offsets import ListOffsetsPartition, ListOffsetsTopic
from groupcoord.protocol.apis.produce import PartitionProduceData, TopicProduceData
from groupcoord.protocol.messages import FetchRequest, InitProducerIdRequest, ListOffsetsRequest, ProduceRequest
from tests.conformance.actors import Client

Batches = Mapping[tuple[str, int], bytes | None]


def produce_request(batches: Batches, ids: Mapping[str, Any], acks: int = -1) -> ProduceRequest:
    """``{(topic, partition): record batches}`` as a request."""
    topics: dict[str, list[PartitionProduceData]] = {}
    for (topic, partition), records in batches.items():
        topics.setdefault(topic, []).append(PartitionProduceData(index=partition, records=records))
    return ProduceRequest(
        acks=acks,
        timeout_ms=5_000,
        topic_data=tuple(
            TopicProduceData(name=topic, topic_id=ids.get(topic), partition_data=tuple(partitions))
            for topic, partitions in topics.items()
        ),
    )


def fetch_request(
    wanted: Mapping[tuple[str, int], int | FetchPartition],
    ids: Mapping[str, Any],
    *,
    max_bytes: int = 1 << 20,
    partition_max_bytes: int = 1 << 20,
    **changes: Any,
) -> FetchRequest:
    """``{(topic, partition): offset}`` as a request that answers at once."""
    topics: dict[str, list[FetchPartition]] = {}
    for (topic, partition), start in wanted.items():
        if isinstance(start, int):
            whole = FetchPartition(partition=partition, fetch_offset=start, partition_max_bytes=partition_max_bytes)
        else:
            whole = start
        topics.setdefault(topic, []).append(whole)
    request = FetchRequest(
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=max_bytes,
        topics=tuple(
            FetchTopic(topic=topic, topic_id=ids.get(topic), partitions=tuple(partitions))
            for topic, partitions in topics.items()
        ),
    )
    return replace(request, **changes)


def forgotten(topic: str, partitions: Sequence[int], ids: Mapping[str, Any]) -> ForgottenTopic:
    """What an incremental fetch takes out of its session."""
    return ForgottenTopic(topic=topic, topic_id=ids.get(topic), partitions=tuple(partitions))


@dataclass(eq=False)
class DataClient(Client):
    """Produces, fetches and asks for offsets; ``ids`` are the topics' ids, for the versions that use them."""

    ids: dict[str, Any] = field(default_factory=dict)

    def produces(self, batches: Batches, version: int = 12, *, acks: int = -1, does: str = "produces") -> Any:
        """Produce with an acknowledgement."""
        return self.asks(produce_request(batches, self.ids, acks), version, does=does)

    def fetches(
        self,
        wanted: Mapping[tuple[str, int], int | FetchPartition],
        version: int = 12,
        *,
        does: str = "fetches",
        **given: Any,
    ) -> Any:
        """Fetch; up to version 12 topics are said by name."""
        return self.asks(fetch_request(wanted, self.ids, **given), version, does=does)

    def lists_offsets(
        self, wanted: Mapping[tuple[str, int], int], version: int = 11, *, does: str = "lists offsets", **changes: Any
    ) -> Any:
        """``{(topic, partition): timestamp}``; -1 is the end, -2 the start."""
        topics: dict[str, list[ListOffsetsPartition]] = {}
        for (topic, partition), timestamp in wanted.items():
            topics.setdefault(topic, []).append(ListOffsetsPartition(partition_index=partition, timestamp=timestamp))
        request = ListOffsetsRequest(
            replica_id=-1,
            topics=tuple(ListOffsetsTopic(name=topic, partitions=tuple(parts)) for topic, parts in topics.items()),
        )
        return self.asks(replace(request, **changes), version, does=does)

    def gets_a_producer_id(self, version: int = 5, **changes: Any) -> Any:
        """InitProducerId without a transaction."""
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
        return self.asks(replace(request, **changes), version, does="asks for a producer id")

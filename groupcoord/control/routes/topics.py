"""Routes of topics and records: create, list and delete topics, add partitions, move leaders, produce and read records."""

from typing import Annotated, Literal

from fastapi import Path, Query

from groupcoord.broker import topic_store
from groupcoord.broker.topic_names import INTERNAL
from groupcoord.client.completed_fetch import ConsumerRecord
from groupcoord.control.controlled_clusters import ControlledCluster
from groupcoord.control.models import (
    HeaderAnswer,
    MorePartitions,
    NewLeader,
    NewTopic,
    PartitionState,
    RecordAnswer,
    RecordData,
    RecordPlace,
    RecordsData,
    TopicState,
    bytes_of,
    text_of,
)
from groupcoord.control.problem_documents import ProblemError, wrong_argument
from groupcoord.control.route_dependencies import BODY, CONFLICT, WAITS, Target, Timeout, router, waited
from groupcoord.testing.record_reading import chosen_partitions
from groupcoord.testing.record_writing import ProducerRecord
from groupcoord.testing.topic_settings import unknown_topic

topics = router("topics")

TopicName = Annotated[str, Path(description="the name of a topic")]
PartitionNumber = Annotated[
    int | None, Query(ge=0, description="only this partition; all, one after the other, unless given")
]
IsolationLevel = Annotated[
    Literal["read_committed", "read_uncommitted"],
    Query(description="read_committed leaves out aborted records, and all records from the oldest open transaction on"),
]


def _require(cluster: ControlledCluster, name: str) -> topic_store.Topic:
    """Raises ProblemError if there is no such topic."""
    found = cluster.core.broker.topics.get(name)
    if found is None:
        raise ProblemError(404, str(unknown_topic(name, cluster.topic_names())))
    return found


def _state_of(topic: topic_store.Topic) -> TopicState:
    leaders = topic.metadata.leaders
    return TopicState(
        name=topic.name,
        is_internal=topic.name in INTERNAL,
        partitions=[
            PartitionState(
                partition=number,
                leader=leaders[number],
                log_start_offset=log.log_start_offset,
                log_end_offset=log.log_end_offset,
                high_watermark=log.high_watermark,
                last_stable_offset=log.last_stable_offset,
            )
            for number, log in enumerate(topic.partitions)
        ],
    )


@topics.get("/topics", summary="List the topics")
async def list_topics(
    cluster: Target, internal: Annotated[bool, Query(description="Kafka's internal topics, too")] = False
) -> list[TopicState]:
    """With the leader and the offsets of each partition."""
    names = cluster.topic_names()
    return [_state_of(_require(cluster, name)) for name in names if internal or name not in INTERNAL]


@topics.post("/topics", status_code=201, summary="Create a topic", responses=BODY | CONFLICT)
async def create_topic(body: NewTopic, cluster: Target) -> TopicState:
    """It can be used when the response comes."""
    if body.name in cluster.topic_names():
        raise ProblemError(409, f"there is a topic {body.name!r} already")
    with wrong_argument("configs" if body.configs else "name"):
        await cluster.create_topic(body.name, body.partitions, configs=body.configs)
    return _state_of(_require(cluster, body.name))


@topics.get("/topics/{topic}", summary="Show a topic")
async def show_topic(topic: TopicName, cluster: Target) -> TopicState:
    """With the leader and the offsets of each partition."""
    return _state_of(_require(cluster, topic))


@topics.delete("/topics/{topic}", status_code=204, summary="Delete a topic", responses=CONFLICT)
async def delete_topic(topic: TopicName, cluster: Target) -> None:
    """The committed offsets of its partitions are deleted, too."""
    _require(cluster, topic)
    await cluster.delete_topic(topic)


@topics.post("/topics/{topic}/partitions", summary="Add partitions to a topic", responses=BODY | CONFLICT)
async def add_partitions(topic: TopicName, body: MorePartitions, cluster: Target) -> TopicState:
    """``more`` is the number of new partitions."""
    found = _require(cluster, topic)
    await cluster.add_partitions(topic, body.more)
    return _state_of(found)


@topics.post(
    "/topics/{topic}/leader", summary="Move the leader of a partition to another broker", responses=BODY | CONFLICT
)
async def move_leader(topic: TopicName, body: NewLeader, cluster: Target) -> TopicState:
    """The leader epoch is incremented."""
    found = _require(cluster, topic)
    with wrong_argument("partition"):
        chosen_partitions(topic, len(found.partitions), body.partition)
    with wrong_argument("to"):
        await cluster.move_leader(topic, body.partition, body.to)
    return _state_of(found)


@topics.post("/topics/{topic}/records", status_code=201, summary="Produce records", responses=BODY | CONFLICT)
async def produce(topic: TopicName, body: RecordsData, cluster: Target) -> list[RecordPlace]:
    """Values, keys and headers are text, or Base64. Returns the partition and offset of each record."""
    found = _require(cluster, topic)
    records = [_record(number, record, topic, len(found.partitions)) for number, record in enumerate(body.records)]
    return [RecordPlace(**place._asdict()) for place in await cluster.produce(topic, records=records)]


def _record(number: int, data: RecordData, topic: str, partitions: int) -> ProducerRecord:
    with wrong_argument(f"records.{number}"):
        if data.partition is not None:
            chosen_partitions(topic, partitions, data.partition)
        headers = [(each.key, bytes_of(each.value, each.value_base64, "value")) for each in data.headers]
        return ProducerRecord(
            bytes_of(data.value, data.value_base64, "value"),
            bytes_of(data.key, data.key_base64, "key"),
            headers,
            data.timestamp_ms,
            data.partition,
        )


@topics.get("/topics/{topic}/records", summary="Read records")
async def read_records(
    topic: TopicName,
    cluster: Target,
    partition: PartitionNumber = None,
    isolation: IsolationLevel = "read_committed",
) -> list[RecordAnswer]:
    """All records that a consumer of that isolation level can read now, in order."""
    _require_partition(cluster, topic, partition)
    return [_answer(record) for record in await cluster.records(topic, partition, isolation=isolation)]


@topics.get("/topics/{topic}/wait", summary="Wait for records", responses=WAITS)
async def wait_records(
    topic: TopicName,
    cluster: Target,
    timeout: Timeout,
    count: Annotated[int, Query(ge=1, description="the number of records, at least")],
    partition: PartitionNumber = None,
    isolation: IsolationLevel = "read_committed",
) -> list[RecordAnswer]:
    """Waits until a consumer of that isolation level can read at least ``count`` records; returns them all."""
    _require_partition(cluster, topic, partition)
    found = await waited(cluster, cluster.wait_records(topic, count, partition, isolation=isolation, timeout=timeout))
    return [_answer(record) for record in found]


def _require_partition(cluster: ControlledCluster, topic: str, partition: int | None) -> None:
    with wrong_argument("partition"):
        chosen_partitions(topic, len(_require(cluster, topic).partitions), partition)


def _answer(record: ConsumerRecord) -> RecordAnswer:
    return RecordAnswer.model_validate(
        {
            "topic": record.topic,
            "partition": record.partition,
            "offset": record.offset,
            "timestamp_ms": record.timestamp_ms,
            **text_of(record.key, "key"),
            **text_of(record.value, "value"),
            "headers": [
                HeaderAnswer.model_validate({"key": each.key, **text_of(each.value, "value")})
                for each in record.headers
            ],
        }
    )

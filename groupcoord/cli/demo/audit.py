"""What a client sees from the outside: committed offsets, ends of logs, and the topic ``__consumer_offsets``."""

from aiokafka import AIOKafkaConsumer, TopicPartition

from groupcoord.broker.topic_names import CONSUMER_OFFSETS
from groupcoord.core.java import partition_for
from groupcoord.protocol.batches.records import Record


async def committed_and_ends(
    bootstrap: str, group: str, topic: str, partitions: int
) -> tuple[dict[int, int], dict[int, int]]:
    """By partition: the offset that ``group`` has committed, as OffsetFetch tells a client, and the log's end (ListOffsets)."""
    places = [TopicPartition(topic, number) for number in range(partitions)]
    consumer = AIOKafkaConsumer(
        bootstrap_servers=bootstrap, client_id="auditor", group_id=group, enable_auto_commit=False
    )
    await consumer.start()
    try:
        consumer.assign(places)
        ends = await consumer.end_offsets(places)
        committed = {place: await consumer.committed(place) for place in places}
    finally:
        await consumer.stop()
    return (
        {place.partition: offset for place, offset in committed.items() if offset is not None},
        {place.partition: offset for place, offset in ends.items()},
    )


async def offsets_log(bootstrap: str, group: str, partitions: int) -> tuple[int, list[Record]]:
    """The partition of ``__consumer_offsets`` (which has ``partitions``) that ``group`` belongs to, and all its records."""
    place = TopicPartition(CONSUMER_OFFSETS, partition_for(group, partitions))
    consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, client_id="auditor", auto_offset_reset="earliest")
    await consumer.start()
    try:
        consumer.assign([place])
        end = (await consumer.end_offsets([place]))[place]
        records: list[Record] = []
        while await consumer.position(place) < end:
            batches = await consumer.getmany(place, timeout_ms=1_000)
            records += [Record(r.offset, r.timestamp, r.key, r.value) for r in batches.get(place, ())]
    finally:
        await consumer.stop()
    return place.partition, records

"""Produces records to ``orders-0`` of a cluster, and keeps their results."""

import asyncio
from typing import Any

import groupcoord as gc
from groupcoord.protocol.apis.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from groupcoord.protocol.batches.record_batch import build_batch
from groupcoord.protocol.batches.records import Record
from groupcoord.protocol.errors import ErrorCode


async def produce(
    kafka: gc.Cluster, to: int, acks: int = -1, timeout_ms: int = 2000, version: int = 9
) -> "asyncio.Task[Any]":
    """Write a record to orders-0 at broker ``to``; the task is done when that is answered."""
    records = bytes(build_batch([Record(0, kafka.clock.now_ms(), None, b"value")]))
    data = (TopicProduceData(name="orders", partition_data=(PartitionProduceData(index=0, records=records),)),)
    request = ProduceRequest(acks=acks, timeout_ms=timeout_ms, topic_data=data)
    asked = asyncio.ensure_future(kafka.ask_broker(to, request, version=version))
    await kafka.settle()
    return asked


def outcome(answer: Any) -> tuple[str, int]:
    """The error, by its name, and the offset that an answer says of the partition."""
    (topic,) = answer.responses
    (partition,) = topic.partition_responses
    return ErrorCode(partition.error_code).name, partition.base_offset

"""Reads the records of a topic without a consumer group, read_committed or read_uncommitted: from an in-process log, or from a
remote cluster."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from groupcoord.assignors import TopicPartition
from groupcoord.broker.partition_log import PartitionLog
from groupcoord.client.completed_fetch import ConsumerRecord, decode_records
from groupcoord.client.log_reader import EARLIEST, LATEST, READ_COMMITTED, LogReader
from groupcoord.client.option_value_parsing import Address, isolation_level
from groupcoord.protocol.apis.fetch import AbortedTransaction
from groupcoord.testing.topic_settings import unknown_partition

Isolation = Literal["read_committed", "read_uncommitted"]

PIECE_BYTES = 1_048_576
TRIES = 5
TRIES_OF_A_NEW_TOPIC = 8
"""About twelve seconds, because a busy broker may take long to become the leader of a new partition."""


def chosen_partitions(topic: str, count: int, partition: int | None) -> Sequence[int]:
    """All ``count`` partitions of ``topic``, or only ``partition``. Raises ValueError if it does not exist."""
    if partition is None:
        return range(count)
    if partition not in range(count):
        raise unknown_partition(topic, partition, count)
    return (partition,)


def read_log(topic: str, partition: int, log: PartitionLog, isolation: Isolation) -> list[ConsumerRecord]:
    """The records in ``log``. Raises ValueError for an unknown isolation level."""
    committed_only = isolation_level(isolation) == READ_COMMITTED
    offset, found = log.log_start_offset, []
    end = log.last_stable_offset if committed_only else log.high_watermark
    while offset < end:
        read = log.read(offset, PIECE_BYTES, at_least_one=True, committed_only=committed_only)
        aborted = ((each.producer_id, each.first_offset) for each in read.aborted or ())
        decoded = decode_records((topic, partition), read.data(), offset, _aborted(aborted))
        found += decoded.records
        offset = max(decoded.next_offset, offset + 1)  # compaction may leave no records at the end
    return found


def wait_for_leaders(bootstrap: Sequence[Address], topic: str) -> None:
    """Return when every partition of ``topic`` can be read: metadata names leaders before they serve. Blocking. Raises
    ClientError."""
    with LogReader(bootstrap, client_id="groupcoord-testing", tries=TRIES_OF_A_NEW_TOPIC) as reader:
        reader.offsets([(topic, number) for number in reader.partitions([topic]).get(topic, ())], LATEST)


def remote_ends(bootstrap: Sequence[Address], topics: Iterable[str]) -> Mapping[TopicPartition, int]:
    """The log end offset of each partition of ``topics`` of the cluster at ``bootstrap``. Blocking. Raises ClientError."""
    with LogReader(bootstrap, client_id="groupcoord-testing", tries=TRIES) as reader:
        numbers = reader.partitions(topics)
        return reader.offsets([(topic, number) for topic in sorted(numbers) for number in numbers[topic]], LATEST)


def read_remote(
    bootstrap: Sequence[Address], wanted: Sequence[TopicPartition], isolation: Isolation
) -> list[ConsumerRecord]:
    """The records of partitions of the cluster at ``bootstrap``; blocking. Raises ValueError, ClientError."""
    level = isolation_level(isolation)
    found = []
    with LogReader(bootstrap, client_id="groupcoord-testing", isolation_level=level, tries=TRIES) as reader:
        begins, ends = reader.offsets(wanted, EARLIEST), reader.offsets(wanted, LATEST)
        for each in wanted:
            offset = begins[each]
            while offset < ends[each] and (batches := reader.fetch(each, offset, PIECE_BYTES, max_wait_ms=500)).records:
                decoded = decode_records(each, batches.records, offset, _aborted(batches.aborted))
                found += [record for record in decoded.records if record.offset < ends[each]]
                offset = decoded.next_offset
    return found


def _aborted(transactions: Iterable[tuple[int, int]]) -> list[AbortedTransaction]:
    return [AbortedTransaction(producer_id=number, first_offset=first) for number, first in transactions]

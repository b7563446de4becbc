"""Loads ``cleaned_by_kafka.jsonl``: logs before and after cleaning by the log cleaner of Kafka 4.3.1.

Logs before and after each of two or three cleanings, a segment a line (its files in Base64 and hexadecimal digits; the last one
has no indexes that last). When the second and third came, delete.retention.ms (4,000) had passed since the one before. In them:
keys written again and again, headers, all compressions, tombstones, idempotent producers whose last batches are overwritten,
transactions committed, aborted and overwritten; ``stamped`` is the same with LogAppendTime; ``markers`` has transactions of
KIP-890, each of which ends with an epoch of its own, and everything overwritten; and a ``__consumer_offsets`` with generations,
commits, commits in transactions, and a deleted group. ``internal.segment.bytes`` is 1,200, for the last one ``segment.ms`` 400.
``aborted`` has transactions beside and within each other, aborted across segments, and one that is open at the first cleaning;
``record_aborted_cleaned.py`` recorded it, with the indexes of aborted transactions.
"""

import base64
import json
import struct
from pathlib import Path
from typing import NamedTuple

from groupcoord.broker.log_segment import LogSegment
from groupcoord.broker.partition_log import PartitionLog
from groupcoord.broker.producer_state_manager import AbortedTransaction
from groupcoord.broker.topic_config import LogConfig
from groupcoord.protocol.batches.record_batch import DELETE_HORIZON, BatchHeader, iter_batch_extents, read_header

RUNS = (
    *((topic, run) for topic in ("compacted", "stamped", "__consumer_offsets") for run in (1, 2)),
    *((topic, run) for topic in ("markers", "aborted") for run in (1, 2, 3)),
)
"""Each log, and its cleanings."""
DELETE_RETENTION_MS = 4_000


class KafkaSegment(NamedTuple):
    """A segment as Kafka left it; the first two indexes are empty for the active one.

    ``transaction_index`` was not recorded, and is empty, for any other log than ``aborted``.
    """

    base_offset: int
    log: bytes
    offset_index: bytes
    time_index: bytes
    transaction_index: bytes

    @property
    def aborted(self) -> list[AbortedTransaction]:
        """What the last index says."""
        return [AbortedTransaction(*fields) for _, *fields in struct.iter_unpack(">hqqqq", self.transaction_index)]


def recorded(topic: str, state: str) -> list[KafkaSegment]:
    """The segments of a log in a state: ``before-1``, ``after-1``, ``before-2`` and so on."""
    lines = (Path(__file__).parent / "cleaned_by_kafka.jsonl").read_text().splitlines()
    return [
        KafkaSegment(
            entry["base_offset"],
            base64.b64decode(entry["log"]),
            bytes.fromhex(entry.get("index", "")),
            bytes.fromhex(entry.get("timeindex", "")),
            bytes.fromhex(entry.get("txnindex", "")),
        )
        for entry in map(json.loads, lines)
        if (entry["topic"], entry["state"]) == (topic, state)
    ]


def settings_of(topic: str) -> LogConfig:
    """The configuration of the recorded topic."""
    return LogConfig(
        cleanup_policy=frozenset({"compact"}),
        delete_retention_ms=DELETE_RETENTION_MS,
        index_interval_bytes=300,
        segment_bytes=1 << 20 if topic == "__consumer_offsets" else 1_200,
    )


def headers_in(data: bytes) -> list[BatchHeader]:
    """The headers of all batches."""
    return [read_header(data, batch.position) for batch in iter_batch_extents(data)]


def cleaned_to(topic: str, run: int) -> int:
    """Up to which offset a cleaning came: to the active segment, or to the one in which the oldest open transaction begins."""
    return 41 if (topic, run) == ("aborted", 1) else recorded(topic, f"after-{run}")[-1].base_offset


def cleaned_before(topic: str, run: int) -> int:
    """Up to which offset the log had been cleaned before a cleaning."""
    return 0 if run == 1 else cleaned_to(topic, run - 1)


def log_before(topic: str, run: int) -> PartitionLog:
    """The log in memory as it was before a cleaning, with what it knows of its producers."""
    log = PartitionLog(settings_of(topic), f"{topic}-0")
    for segment in recorded(topic, f"before-{run}"):
        made = LogSegment(segment.base_offset, 0)
        position = 0
        for header in headers_in(segment.log):
            batch = segment.log[position : position + header.size]
            made.append(batch, header, 0)
            position += header.size
            log.log_end_offset = header.last_offset + 1
            aborted = log.producers.replay(header, batch)
            if aborted is not None and topic != "aborted":
                made.aborted.append(aborted)
        made.aborted += segment.aborted
        log.segments.append(made)
    log.cleaned_to = cleaned_before(topic, run)
    return log


def cleaned_at_ms(topic: str, run: int) -> int:
    """When Kafka cleaned: the latest delete horizon says it. Without any it does not matter."""
    headers = [header for segment in recorded(topic, f"after-{run}") for header in headers_in(segment.log)]
    horizons = [header.base_timestamp_ms for header in headers if header.attributes & DELETE_HORIZON]
    latest = max(header.max_timestamp_ms for header in headers)
    return max(horizons) - DELETE_RETENTION_MS if horizons else latest + 1_000

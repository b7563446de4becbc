"""Checks partition folders that were copied into a data directory, for example from a Kafka cluster (adopted folders).

It finds the producer ids in them, which must not be given out again: the log would take the first batch of another producer
with the same id for a duplicate or out of order. And it finds the groups in ``__consumer_offsets`` and transactional ids in
``__transaction_state``: the hash of each name tells its partition, and so whether the configured number of partitions is right.
The number of folders does not show that, because the last ones may be missing.
"""

import contextlib
import struct
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from groupcoord.broker.topic_names import CONSUMER_OFFSETS, TRANSACTION_STATE
from groupcoord.core.java_hash_order import partition_for
from groupcoord.protocol.batches.key_value_reader import read_key_values
from groupcoord.protocol.batches.record_batch import NO_PRODUCER_ID, BatchError
from groupcoord.protocol.batches.records import InvalidRecordsError
from groupcoord.protocol.coordinator_records.record_formatting import group_of, parse_key
from groupcoord.protocol.coordinator_records.transaction_log import read_key
from groupcoord.protocol.errors import WireError
from groupcoord.storage.log_file_names import LOG, PRODUCER_SNAPSHOT, log_files, segment_file
from groupcoord.storage.log_file_reader import CorruptBatchError, checked_batches
from groupcoord.storage.producer_snapshot import SnapshotError, producer_ids

_COUNTS_TRIED = 1_000
"""How many partition counts are tried to find that of the cluster; 50 is usual."""


class CoordinatorTopic(NamedTuple):
    """A topic of coordinators, whose records are in the partition given by the hash of a name."""

    topic: str
    count_property: str
    """The broker property with its number of partitions."""
    kind: str
    name_of: Callable[[bytes], str | None]
    """Returns the group or transactional id in a key. Raises WireError or struct.error."""

    @property
    def field(self) -> str:
        """The same property as a field of BrokerConfig."""
        return self.count_property.replace(".", "_")


COORDINATOR_TOPICS = (
    CoordinatorTopic(
        CONSUMER_OFFSETS, "offsets.topic.num.partitions", "group", lambda key: str(group_of(parse_key(key)))
    ),
    CoordinatorTopic(TRANSACTION_STATE, "transaction.state.log.num.partitions", "transactional id", read_key),
)


def names_in(topic: CoordinatorTopic, folders: Mapping[int, Path]) -> set[tuple[str, int]]:
    """(name, partition) of every record in ``folders`` that can be read. Raises OSError."""
    keys = {(key, number) for number, folder in folders.items() for path in log_files(folder) for key in _keys(path)}
    found = set()
    for key, number in keys:
        with contextlib.suppress(WireError, struct.error):
            if (name := topic.name_of(key)) is not None:
                found.add((name, number))
    return found


def _keys(path: Path) -> set[bytes]:
    found: set[bytes] = set()
    with contextlib.suppress(BatchError, InvalidRecordsError):  # reported when the log is loaded or repaired
        for batch in checked_batches(path):
            if not batch.header.control:
                found.update(key for _, key, _ in read_key_values(bytes(batch.data)).records if key is not None)
    return found


def misplaced(
    names: Collection[tuple[str, int]], last: int, partitions: int, topic: CoordinatorTopic = COORDINATOR_TOPICS[0]
) -> str | None:
    """Why the folders up to partition ``last`` are not those of a cluster with that many ``partitions``, given these ``names``;
    None if they are.

    The text tells what to do.
    """
    stray = min(((name, number) for name, number in names if partition_for(name, partitions) != number), default=None)
    if stray is None and last < partitions:
        return None
    if stray is not None:
        why = f"{topic.kind} {stray[0]!r} is in partition {stray[1]}, and belongs in {partition_for(stray[0], partitions)}"
    else:
        why = f"there is a partition {last}"
    fits = (
        count
        for count in range(last + 1, _COUNTS_TRIED)
        if all(partition_for(name, count) == number for name, number in names)
    )
    first = next(fits, None)
    advice = "the folders fit no number of partitions: are they all of one cluster?"
    if first is not None:
        advice = f"the cluster may have {first}: then set {topic.count_property}={first}"
    return f"the folders are not of a cluster with {topic.count_property}={partitions}: {why}; {advice}"


PRODUCER_ID_BLOCK_SIZE = 1000
"""The size of the blocks in which Kafka assigns producer ids (``ProducerIdsBlock``); any id of a started block may be in
use."""
_LARGEST = (1 << 63) - 1 - 2 * PRODUCER_ID_BLOCK_SIZE
"""Above it there is no further block."""


def next_producer_id_block(producer_id: int) -> int:
    """The first id of the block after that of ``producer_id``; 0 for NO_PRODUCER_ID."""
    return (producer_id // PRODUCER_ID_BLOCK_SIZE + 1) * PRODUCER_ID_BLOCK_SIZE


def largest_producer_id(folder: Path) -> int:
    """The largest producer id in the logs and snapshots of ``folder``, or NO_PRODUCER_ID. Raises OSError.

    All valid batches are read; invalid ones are reported when the log is repaired.
    """
    return max((found for found in _found(folder) if found <= _LARGEST), default=NO_PRODUCER_ID)


def _found(folder: Path) -> Iterator[int]:
    for path in folder.iterdir():
        file = segment_file(path.name)
        if file is None or not path.is_file():
            continue
        if file.kind == PRODUCER_SNAPSHOT:
            with contextlib.suppress(SnapshotError):
                yield from producer_ids(path.read_bytes())
        elif file.kind == LOG:
            with contextlib.suppress(CorruptBatchError):
                for batch in checked_batches(path):
                    yield batch.header.producer_id

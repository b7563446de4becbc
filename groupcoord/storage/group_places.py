"""In which partitions of ``__consumer_offsets`` groups were found, and over how many they are spread then.

Folders do not say how many partitions their cluster has: the last ones may not be among them. Records do: a group is in the
partition that its name's hash says, and with another number of partitions nobody would find its offsets.
"""

import contextlib
import struct
from collections.abc import Collection, Mapping
from pathlib import Path

from groupcoord.core.java import partition_for
from groupcoord.protocol.batches.key_value_reader import read_key_values
from groupcoord.protocol.batches.record_batch import BatchError
from groupcoord.protocol.batches.records import InvalidRecordsError
from groupcoord.protocol.coordinator_records.generic import RecordError, group_of, parse_key
from groupcoord.storage.batch_files import checked_batches
from groupcoord.storage.names import log_files

_COUNTS_TRIED = 1_000
"""Up to so many partitions are tried to find out how many a cluster has; 50 is usual."""


def groups_in(folders: Mapping[int, Path]) -> set[tuple[str, int]]:
    """(group, partition) of every record in ``folders``, by partition, that can be read. Raises OSError."""
    keys = {(key, number) for number, folder in folders.items() for path in log_files(folder) for key in _keys(path)}
    found = set()
    for key, number in keys:
        with contextlib.suppress(RecordError, struct.error):
            found.add((str(group_of(parse_key(key))), number))
    return found


def _keys(path: Path) -> set[bytes]:
    found: set[bytes] = set()
    with contextlib.suppress(
        BatchError, InvalidRecordsError
    ):  # said when the log is put in order, or when it is loaded
        for batch in checked_batches(path):
            if not batch.header.control:
                found.update(key for _, key, _ in read_key_values(bytes(batch.data)).records if key is not None)
    return found


def misplaced(groups: Collection[tuple[str, int]], last: int, partitions: int) -> str | None:
    """Why folders up to partition ``last``, with these ``groups``, are not of a cluster with so many ``partitions``, or None.

    The text says what to do.
    """
    stray = min(((name, number) for name, number in groups if partition_for(name, partitions) != number), default=None)
    if stray is None and last < partitions:
        return None
    if stray is not None:
        why = f"group {stray[0]!r} is in partition {stray[1]}, and belongs in {partition_for(stray[0], partitions)}"
    else:
        why = f"there is a partition {last}"
    fits = (
        count
        for count in range(last + 1, _COUNTS_TRIED)
        if all(partition_for(name, count) == number for name, number in groups)
    )
    first = next(fits, None)
    advice = "the folders fit no number of partitions: are they all of one cluster?"
    if first is not None:
        advice = f"the cluster may have {first}: then set offsets.topic.num.partitions={first}"
    return f"the folders are not of a cluster with offsets.topic.num.partitions={partitions}: {why}; {advice}"

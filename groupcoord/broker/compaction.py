"""What log compaction keeps: of each key the last record.

Source: ``LogCleaner`` and ``Cleaner.shouldRetainRecord``.
"""

from collections.abc import Iterable

from groupcoord.protocol.batches.records import Record


def survivors(records: Iterable[Record]) -> list[Record]:
    """The records of a log (in its order) that are left once all of it is cleaned, in the same order, at their old offsets.

    Tombstones are kept as other records are: a reader must get to see that a key is gone. The cleaner drops them in a later
    run, ``delete.retention.ms`` after it first met them; ``is_tombstone`` tells which they are. A record without a key cannot
    be compacted, and goes.
    """
    records = list(records)
    last = {record.key: index for index, record in enumerate(records)}
    return [record for index, record in enumerate(records) if record.key is not None and last[record.key] == index]


def is_tombstone(record: Record) -> bool:
    """Does ``record`` say that its key is gone?"""
    return record.key is not None and record.value is None

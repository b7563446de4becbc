"""Records as they are, with the bytes of key and value, for programs that take them apart themselves: ``groupcoord pipeline``.

One object a record, as JSON: ``partition``, ``offset``, ``timestamp`` (ms), ``key`` and ``value`` in Base64 or null. What is
part of a transaction has ``transaction``, and the end of one has ``marker`` instead of key and value, as in told.py.
"""

import base64
from collections.abc import Iterator
from typing import Any

from groupcoord.offsets_log.entries import UNREADABLE, Entry, Filter, Marker, entry_of, records_in, transaction_of
from groupcoord.offsets_log.source import Batch, Fault
from groupcoord.offsets_log.told import transaction_json
from groupcoord.protocol.batches.records import Record


def raw(batch: Batch, wanted: Filter) -> Iterator[dict[str, Any] | Fault]:
    """The records of ``batch`` that are wanted, and the ends of transactions. A batch that cannot be unpacked is a Fault.

    A record that cannot be read is there if all are wanted.
    """
    records = records_in(batch)
    if isinstance(records, Fault):
        yield records
        return
    transaction = transaction_json(transaction_of(batch))
    for record in records:
        entry = _entry(batch, record)
        place = {"partition": batch.partition, "offset": record.offset, "timestamp": record.timestamp_ms}
        if entry is not None and isinstance(entry.what, Marker):
            yield {**place, "marker": entry.what.how, **transaction}
        elif wanted.is_empty or (entry is not None and wanted.passes(entry)):
            yield {**place, "key": _text(record.key), "value": _text(record.value), **transaction}


def _entry(batch: Batch, record: Record) -> Entry | None:
    try:
        return entry_of(batch, record)
    except UNREADABLE:
        return None


def _text(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()

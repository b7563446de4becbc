"""Loads log directories of real brokers (see kafka_files/README.md), and the offsets that these brokers returned."""

from pathlib import Path

from groupcoord.protocol.batches.record_batch import iter_batch_extents, read_header

KAFKA_FILES = Path(__file__).parent / "kafka_files"
VERSIONS = ("4.3.1", "3.9.2")

Committed = dict[str, dict[int, int]]

_CLASSIC: Committed = {"billing": {0: 1, 1: 3}, "payments": {0: 2, 1: 2}, "shipping": {0: 3, 1: 3}, "simple": {0: 5}}
COMMITTED: dict[str, Committed] = {
    "3.9.2": _CLASSIC,
    "4.3.1": {**_CLASSIC, "audit": {0: 3, 1: 3}, "audit-2": {0: 3, 1: 3}},
}
"""Version → group → partition of ``orders`` → offset, as kafka-consumer-groups showed them."""


def log_of(version: str, partition: int) -> Path:
    """The log file of a partition, which has one segment."""
    return KAFKA_FILES / version / f"__consumer_offsets-{partition}" / "00000000000000000000.log"


def positions(data: bytes) -> list[tuple[int, int]]:
    """(position, base offset) of each batch."""
    return [(batch.position, read_header(data, batch.position).base_offset) for batch in iter_batch_extents(data)]

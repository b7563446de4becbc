"""Kafka's text files in a data directory: offset and leader epoch checkpoints, ``partition.metadata``, ``meta.properties``.

Each is replaced atomically. Where Kafka can do without a file, an unreadable one is treated as missing; otherwise it is an
error. Source: ``CheckpointFile``, ``OffsetCheckpointFile``, ``LeaderEpochCheckpointFile``, ``PartitionMetadataFile``,
``MetaProperties``, ``CleanShutdownFileHandler``.
"""

import base64
import json
import uuid
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from groupcoord.broker.leader_epoch_cache import EpochEntry
from groupcoord.config import java_properties
from groupcoord.storage.file_io import replace
from groupcoord.storage.log_file_names import Partition

RECOVERY_POINTS = "recovery-point-offset-checkpoint"
LOG_START_OFFSETS = "log-start-offset-checkpoint"
CLEANED = "cleaner-offset-checkpoint"
HIGH_WATERMARKS = "replication-offset-checkpoint"
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
META_PROPERTIES = "meta.properties"

_VERSION = 0


class CheckpointError(ValueError):
    """A file is invalid; the text tells why."""


def uuid_text(value: uuid.UUID) -> str:
    """The id in Kafka's text form (base64)."""
    return base64.urlsafe_b64encode(value.bytes).rstrip(b"=").decode()


def parse_uuid(text: str) -> uuid.UUID:
    """Parses the text form of an id. Raises CheckpointError."""
    try:
        return uuid.UUID(bytes=base64.b64decode(text + "==", altchars=b"-_", validate=True))
    except ValueError:
        raise CheckpointError(f"{text!r} is not an id") from None


# --- checkpoints: a version, the number of lines, and the lines


def _write_table(path: Path, lines: Iterable[str], *, synced: bool = True) -> None:
    lines = list(lines)
    replace(path, "".join(f"{line}\n" for line in [_VERSION, len(lines), *lines]).encode(), synced=synced)


def _read_table(path: Path, columns: int) -> list[list[str]]:
    """The fields of each line; none if there is no such file. Raises CheckpointError, OSError."""
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except FileNotFoundError:
        return []
    if not lines:  # an empty file, as Kafka creates it
        return []
    rows = [line.split() for line in lines[2:]]
    if lines[:2] != [str(_VERSION), str(len(rows))] or any(len(row) != columns for row in rows):
        raise CheckpointError(f"{path} is not a checkpoint file of version {_VERSION} with {columns} fields a line")
    return rows


def write_offsets(path: Path, offsets: Mapping[Partition, int]) -> None:
    """Write a checkpoint of one offset for each partition. Raises OSError."""
    _write_table(path, (f"{partition.topic} {partition.number} {offset}" for partition, offset in offsets.items()))


def read_offsets(path: Path) -> dict[Partition, int]:
    """The offset of each partition in such a checkpoint. Raises CheckpointError, OSError."""
    rows = _read_table(path, 3)
    try:
        return {Partition(topic, int(index)): int(offset) for topic, index, offset in rows}
    except ValueError:
        raise CheckpointError(f"{path} has a line that is not topic, partition and offset") from None


def write_epochs(path: Path, epochs: Iterable[EpochEntry], *, synced: bool = True) -> None:
    """Write the leader epochs of a log, as ``replace`` does. Raises OSError."""
    _write_table(path, (f"{epoch} {start_offset}" for epoch, start_offset in epochs), synced=synced)


def read_epochs(path: Path) -> list[EpochEntry]:
    """The leader epochs of a log, ascending. Raises CheckpointError, OSError."""
    rows = _read_table(path, 2)
    try:
        return sorted(EpochEntry(int(epoch), int(start_offset)) for epoch, start_offset in rows)
    except ValueError:
        raise CheckpointError(f"{path} has a line that is not epoch and offset") from None


# --- partition.metadata, meta.properties, clean shutdown


def partition_metadata(topic_id: uuid.UUID) -> bytes:
    """The contents of ``partition.metadata``."""
    return f"version: 0\ntopic_id: {uuid_text(topic_id)}".encode()


def read_topic_id(path: Path) -> uuid.UUID | None:
    """The topic's id in a ``partition.metadata``, or None if there is no such file. Raises CheckpointError, OSError."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return None
    fields = dict(line.split(": ", 1) for line in text.splitlines() if ": " in line)
    if fields.get("version") != "0":
        raise CheckpointError(f"{path} is not of version 0")
    try:
        return parse_uuid(fields.get("topic_id", "").strip())
    except CheckpointError as problem:
        raise CheckpointError(f"{path} does not name a topic: {problem}") from None


class MetaProperties(NamedTuple):
    """The contents of ``meta.properties``: the cluster and the node to which a data directory belongs."""

    cluster_id: str
    node_id: int
    directory_id: str


def write_meta_properties(path: Path, meta: MetaProperties) -> None:
    """Write ``meta.properties`` of version 1. Raises OSError."""
    lines = [
        f"node.id={meta.node_id}",
        f"directory.id={meta.directory_id}",
        "version=1",
        f"cluster.id={meta.cluster_id}",
    ]
    replace(path, "".join(f"{line}\n" for line in lines).encode())


def read_meta_properties(path: Path) -> MetaProperties | None:
    """The content of the file, or None if there is none. Raises CheckpointError, OSError."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return None
    try:
        found = {entry.key: entry.value for entry in java_properties.parse(text, path.name)}
        node_id = int(found["node.id"] if found["version"] == "1" else found["broker.id"])
        return MetaProperties(found["cluster.id"], node_id, found.get("directory.id", ""))
    except (KeyError, ValueError):
        raise CheckpointError(
            f"{path} does not say version, node.id and cluster.id. Restore it; or, if the directory is this server's, remove "
            "it, and it is made anew."
        ) from None


def clean_shutdown_marker() -> bytes:
    """The contents of the file of a clean shutdown. Its broker epoch is -1: not registered."""
    return json.dumps({"version": 0, "brokerEpoch": -1}, separators=(",", ":")).encode()

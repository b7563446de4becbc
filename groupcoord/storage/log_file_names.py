"""Kafka's names of the files and folders of a log. Source: ``LogFileUtils`` and ``UnifiedLog.parseTopicPartitionName``."""

import re
from pathlib import Path
from typing import NamedTuple

LOG = ".log"
OFFSET_INDEX = ".index"
TIME_INDEX = ".timeindex"
TRANSACTION_INDEX = ".txnindex"
PRODUCER_SNAPSHOT = ".snapshot"
OF_SEGMENT = (LOG, OFFSET_INDEX, TIME_INDEX, TRANSACTION_INDEX)
"""The files of a segment; the transaction index may be missing."""
DELETED = ".deleted"
CLEANED = ".cleaned"
SWAP = ".swap"
CUT = ".cut"
"""A suffix of groupcoord, ignored by Kafka: the part of a log file that recovery has cut off."""

PARTITION_METADATA = "partition.metadata"
LEADER_EPOCHS = "leader-epoch-checkpoint"

_OF_SEGMENT = re.compile(r"(\d{20})(\.log|\.index|\.timeindex|\.txnindex|\.snapshot)(\.deleted|\.cleaned|\.swap)?")
_OF_PARTITION = re.compile(r"(.+)-(\d+)")
_OF_DELETED_PARTITION = re.compile(r".+-\d+\.[0-9a-f]{32}-delete")


class SegmentFile(NamedTuple):
    """A parsed name of a segment's file; ``state`` is the suffix of an interrupted change, or ""."""

    base_offset: int
    kind: str
    state: str


class Partition(NamedTuple):
    """A topic's name and a partition's index."""

    topic: str
    number: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.number}"


def segment_file(name: str) -> SegmentFile | None:
    """The parsed name, or None if it is not that of a segment's file."""
    match = _OF_SEGMENT.fullmatch(name)
    return None if match is None else SegmentFile(int(match[1]), match[2], match[3] or "")


def file_name(base_offset: int, kind: str) -> str:
    """The name of a file of the segment that begins at ``base_offset``."""
    return f"{base_offset:020d}{kind}"


def partition_folder(name: str) -> Partition | None:
    """The partition of a folder with that name, or None."""
    match = _OF_PARTITION.fullmatch(name)
    return None if match is None else Partition(match[1], int(match[2]))


def is_deleted_folder(name: str) -> bool:
    """Is it the folder of a partition that is being deleted?"""
    return _OF_DELETED_PARTITION.fullmatch(name) is not None


def log_files(folder: Path) -> list[Path]:
    """The log files in ``folder``, ordered by base offset. Raises OSError."""
    return sorted(
        path
        for path in folder.iterdir()
        if (found := segment_file(path.name)) and (found.kind, found.state) == (LOG, "")
    )

"""A server in a process of its own with a data directory, and what an attacker says to it over plain sockets."""

import contextlib
import os
import resource
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any

from bench.wire import Connection
from groupcoord.protocol.apis import ApiKey
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages import (
    CreateTopicsRequest,
    DeleteTopicsRequest,
    FetchRequest,
    HeartbeatRequest,
    OffsetCommitRequest,
    OffsetFetchRequest,
    ProduceRequest,
)
from groupcoord.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig
from groupcoord.protocol.messages.delete_topics import DeleteTopicState
from groupcoord.protocol.messages.fetch import FetchPartition, FetchTopic
from groupcoord.protocol.messages.offset_commit import OffsetCommitRequestPartition, OffsetCommitRequestTopic
from groupcoord.protocol.messages.offset_fetch import OffsetFetchRequestGroup
from groupcoord.protocol.messages.produce import PartitionProduceData, TopicProduceData

TOPIC = "orders"


class AServer:
    """The process and its ``port``. It is killed at the end if it has not ended."""

    def __init__(self, process: "subprocess.Popen[str]", port: int) -> None:
        self.process = process
        self.port = port

    @property
    def lives(self) -> bool:
        """Does it run?"""
        return self.process.poll() is None

    @property
    def memory_bytes(self) -> int:
        """What it has in memory."""
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text(encoding="ascii").split()[1])
        return pages * resource.getpagesize()

    @property
    def descriptors(self) -> int:
        """How many files and connections it has open."""
        return sum(1 for _ in Path(f"/proc/{self.process.pid}/fd").iterdir())

    @property
    def busy_seconds(self) -> float:
        """The time it has computed."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextlib.contextmanager
def a_server(
    directory: Path, *arguments: str, log: IO[str] | int = subprocess.DEVNULL, descriptors: int | None = None
) -> Iterator[AServer]:
    """A server on ``directory``, which may have so many ``descriptors``."""

    def limited() -> None:
        if descriptors is not None:
            resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, descriptors))

    command = [sys.executable, "-m", "groupcoord", "serve", "--port", "0", "--data-dir", str(directory), *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True, preexec_fn=limited) as process:  # noqa: PLW1509
        try:
            assert process.stdout is not None
            yield AServer(process, int(process.stdout.readline().rpartition(":")[2]))
        finally:
            process.kill()


def size_of(directory: Path) -> int:
    """The bytes of all files in it; what goes meanwhile does not count."""
    total = 0
    for folder, _, names in os.walk(directory):
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                total += os.stat(os.path.join(folder, name)).st_size  # noqa: PTH116, PTH118 - ten times as fast
    return total


def commit(peer: Connection, group: str, offsets: dict[int, int], topic: str = TOPIC) -> set[int]:
    """Commit offsets of partitions without a member; the errors."""
    partitions = tuple(
        OffsetCommitRequestPartition(partition_index=number, committed_offset=offset, committed_metadata=None)
        for number, offset in offsets.items()
    )
    request = OffsetCommitRequest(
        group_id=group, member_id="", topics=(OffsetCommitRequestTopic(name=topic, partitions=partitions),)
    )
    answer = peer.ask(ApiKey.OFFSET_COMMIT, request, 8)
    return {part.error_code for one in answer.topics for part in one.partitions}


def committed(peer: Connection, groups: Sequence[str]) -> dict[tuple[str, int], int]:
    """(group, partition) → offset, once all of it is read."""
    request = OffsetFetchRequest(groups=tuple(OffsetFetchRequestGroup(group_id=one, topics=None) for one in groups))
    while True:
        answer: Any = peer.ask(ApiKey.OFFSET_FETCH, request, 8)
        if all(group.error_code != ErrorCode.COORDINATOR_LOAD_IN_PROGRESS for group in answer.groups):
            break
    return {
        (group.group_id, part.partition_index): part.committed_offset
        for group in answer.groups
        for topic in group.topics
        for part in topic.partitions
    }


def refused(peer: Connection, group: str, member: str = "nobody") -> int:
    """A heartbeat of a member that there is none of; the error."""
    request = HeartbeatRequest(group_id=group, generation_id=1, member_id=member)
    error: int = peer.ask(ApiKey.HEARTBEAT, request).error_code
    return error


def produce(peer: Connection, topic: str, partition: int, records: bytes) -> int:
    """Append a batch; the error."""
    data = TopicProduceData(name=topic, partition_data=(PartitionProduceData(index=partition, records=records),))
    answer: Any = peer.ask(ApiKey.PRODUCE, ProduceRequest(acks=-1, timeout_ms=1_000, topic_data=(data,)), 12)
    error: int = answer.responses[0].partition_responses[0].error_code
    return error


def create_topic(peer: Connection, topic: str, partitions: int, **configs: str) -> int:
    """Create it, with configurations of which ``_`` stands for a dot; the error."""
    overrides = tuple(CreatableTopicConfig(name=name.replace("_", "."), value=value) for name, value in configs.items())
    wanted = CreatableTopic(name=topic, num_partitions=partitions, replication_factor=1, configs=overrides)
    error: int = peer.ask(ApiKey.CREATE_TOPICS, CreateTopicsRequest(topics=(wanted,))).topics[0].error_code
    return error


def delete_topic(peer: Connection, topic: str) -> int:
    """Delete it; the error."""
    request = DeleteTopicsRequest(timeout_ms=1_000, topics=(DeleteTopicState(name=topic),))
    error: int = peer.ask(ApiKey.DELETE_TOPICS, request).responses[0].error_code
    return error


def fetch(peer: Connection, topic: str, partition: int, offset: int, session: tuple[int, int] = (0, -1)) -> Any:
    """What comes at once of a partition, in a ``session`` (id, epoch) or in none."""
    wanted = FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=1 << 20)
    request = FetchRequest(
        max_wait_ms=0,
        min_bytes=0,
        session_id=session[0],
        session_epoch=session[1],
        topics=(FetchTopic(topic=topic, partitions=(wanted,)),),
    )
    return peer.ask(ApiKey.FETCH, request, 12)

"""Benchmark of offset commits per second, in memory and with ``--data-dir``, beside kfake; each round measures all of them."""

import contextlib
import statistics
import tempfile
from typing import NamedTuple

from bench import load
from bench.heartbeats import member
from bench.servers import Running, groupcoord, kfake
from bench.table import Table
from bench.wire import request_frame
from groupcoord.protocol.apis import ApiKey
from groupcoord.protocol.apis.offset_commit import OffsetCommitRequestPartition, OffsetCommitRequestTopic
from groupcoord.protocol.messages import OffsetCommitRequest

CASES = ((1, 1), (1, 10), (100, 1), (100, 10))
"""Connections, and partitions in each commit."""
ROUNDS = 5
SECONDS = 1.0
TOPIC = "bench"
_COMMITS_EACH = 16  # that differ in their offsets, as those of a consumer do
_PEERS = ("groupcoord", "with --data-dir", "kfake")


class Measured(NamedTuple):
    """Commits per second, and processor time of the server for each (µs)."""

    per_second: float
    processor_us: float


def run() -> list[Table]:
    """One row for each of CASES: medians, and the medians of the ratios of each round."""
    figures = [f"{name}{unit}" for name in _PEERS for unit in ("/s", " µs")]
    table = Table(
        "commits per second, and processor time for each",
        *("connections", "partitions", *figures, "to kfake", "--data-dir to memory"),
    )
    for connections, partitions in CASES:
        rounds = _rounds(connections, partitions)
        row: list[str] = []
        for column in zip(*rounds, strict=True):
            row.append(f"{statistics.median(each.per_second for each in column):,.0f}")
            row.append(f"{statistics.median(each.processor_us for each in column):.0f}")
        for one, other in ((0, 2), (1, 0)):
            ratio = statistics.median(each[one].per_second / each[other].per_second for each in rounds)
            row.append(f"{ratio:.2f}")
        table.add(connections, partitions, *row)
    return [table]


def _rounds(connections: int, partitions: int) -> list[list[Measured]]:
    with contextlib.ExitStack() as stack:
        directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="groupcoord-bench-"))
        options = ("--dev", "--topic", f"{TOPIC}:{partitions}")
        servers = [
            stack.enter_context(groupcoord(*options, loop="uvloop")),
            stack.enter_context(groupcoord(*options, "--data-dir", directory, loop="uvloop")),
            stack.enter_context(kfake(TOPIC, partitions)),
        ]
        frames = [_frames(server.port, connections, partitions) for server in servers]
        return [[_measured(server, sent) for server, sent in zip(servers, frames, strict=True)] for _ in range(ROUNDS)]


def _measured(server: Running, frames: list[bytes]) -> Measured:
    before = server.processor_seconds
    result = load.run(server.port, SECONDS, frames, _COMMITS_EACH)
    return Measured(result.per_second, (server.processor_seconds - before) / result.answers * 1e6)


def commit_request(group: str, member_id: str, generation: int, offset: int, partitions: int) -> OffsetCommitRequest:
    """The commit of ``offset`` for so many partitions."""
    asked = tuple(
        OffsetCommitRequestPartition(partition_index=index, committed_offset=offset, committed_metadata="")
        for index in range(partitions)
    )
    return OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=generation,
        member_id=member_id,
        topics=(OffsetCommitRequestTopic(name=TOPIC, partitions=asked),),
    )


def _frames(port: int, connections: int, partitions: int) -> list[bytes]:
    """The commits of so many members, each of them alone in a group of its own."""
    frames = []
    for number in range(connections):
        group = f"group-{number}"
        member_id, generation = member(port, group)
        for offset in range(_COMMITS_EACH):
            commit = commit_request(group, member_id, generation, 1_000 + offset, partitions)
            frames.append(request_frame(ApiKey.OFFSET_COMMIT, commit, version=9))
    return frames

"""(e) Benchmark of memory: bytes per idle connection, per member and per committed offset."""

from collections.abc import Callable

from bench.heartbeats import member
from bench.servers import Running, groupcoord
from bench.table import Table
from bench.wire import Connection
from groupcoord.protocol.apis import ApiKey
from groupcoord.protocol.apis.offset_commit import OffsetCommitRequestPartition, OffsetCommitRequestTopic
from groupcoord.protocol.messages import ApiVersionsRequest, OffsetCommitRequest

CONNECTIONS = 2000
MEMBERS = 2000
OFFSETS = 1_000_000
PARTITIONS = 1000
_HELLO = ApiVersionsRequest(client_software_name="bench", client_software_version="1")


def run() -> list[Table]:
    """Growth of the resident set of ``groupcoord serve``."""
    table = Table("memory", "what", "how many", "bytes each", "server in all MB")
    with groupcoord("--dev") as server:
        _row(table, server, "idle connections", CONNECTIONS, _connections)
    with groupcoord("--dev") as server:
        _row(table, server, "members (one per group)", MEMBERS, _members)
    with groupcoord("--dev", "--topic", f"bench:{PARTITIONS}") as server:
        _row(table, server, "committed offsets", OFFSETS, _offsets)
    return [table]


def _row(table: Table, server: Running, what: str, count: int, fill: Callable[[int, int], list[Connection]]) -> None:
    first = Connection(server.port)
    first.ask(ApiKey.API_VERSIONS, _HELLO)
    before = server.resident_bytes
    kept = fill(server.port, count)
    after = server.resident_bytes
    table.add(what, f"{count:,}", f"{(after - before) / count:,.0f}", f"{after / 1e6:,.0f}")
    for connection in (first, *kept):
        connection.close()


def _connections(port: int, count: int) -> list[Connection]:
    connections = [Connection(port) for _ in range(count)]
    for connection in connections:
        connection.ask(ApiKey.API_VERSIONS, _HELLO)
    return connections


def _members(port: int, count: int) -> list[Connection]:
    for number in range(count):
        member(port, f"group-{number}")
    return []


def _offsets(port: int, count: int) -> list[Connection]:
    """Each of ``count / PARTITIONS`` groups commits all partitions of the topic in one request."""
    connection = Connection(port)
    for number in range(count // PARTITIONS):
        partitions = tuple(
            OffsetCommitRequestPartition(partition_index=index, committed_offset=number * index, committed_metadata="")
            for index in range(PARTITIONS)
        )
        request = OffsetCommitRequest(
            group_id=f"group-{number}",
            member_id="",
            topics=(OffsetCommitRequestTopic(name="bench", partitions=partitions),),
        )
        connection.ask(ApiKey.OFFSET_COMMIT, request, version=9)
    return [connection]

"""(a) Heartbeats per second, beside a server that only echoes frames of the same size."""

from bench import load
from bench.members import SESSION_MS, consumer_subscription
from bench.servers import echo, groupcoord
from bench.table import Table
from bench.wire import Connection, request_frame
from groupcoord.protocol.apis import ApiKey
from groupcoord.protocol.apis.join_group import JoinGroupRequestProtocol
from groupcoord.protocol.messages import HeartbeatRequest, JoinGroupRequest, SyncGroupRequest

CONNECTIONS = (1, 100, 1000)


def member(port: int, group: str) -> tuple[str, int]:
    """Join ``group`` as its only member; returns member id and generation."""
    connection = Connection(port)
    protocols = (JoinGroupRequestProtocol(name="range", metadata=consumer_subscription()),)
    join = JoinGroupRequest(
        group_id=group,
        session_timeout_ms=SESSION_MS,
        rebalance_timeout_ms=SESSION_MS,
        member_id="",
        protocol_type="consumer",
        protocols=protocols,
    )
    joined = connection.ask(ApiKey.JOIN_GROUP, join, version=3)
    sync = SyncGroupRequest(
        group_id=group, generation_id=joined.generation_id, member_id=joined.member_id, assignments=()
    )
    connection.ask(ApiKey.SYNC_GROUP, sync, version=3)
    connection.close()
    return joined.member_id, joined.generation_id


def run(seconds: float = 3.0) -> list[Table]:
    """One row per event loop and number of connections."""
    table = Table(
        "heartbeats per second", "loop", "connections", "groupcoord/s", "echo/s", "ratio", "median µs", "p99 µs"
    )
    for loop in ("asyncio", "uvloop"):
        for connections in CONNECTIONS:
            with groupcoord("--dev", loop=loop) as server:
                frames = []
                for number in range(connections):
                    member_id, generation = member(server.port, f"group-{number}")
                    beat = HeartbeatRequest(group_id=f"group-{number}", generation_id=generation, member_id=member_id)
                    frames.append(request_frame(ApiKey.HEARTBEAT, beat))
                ours = load.run(server.port, seconds, frames)
            with echo(loop) as peer:
                theirs = load.run(peer.port, seconds, frames)
            table.add(
                loop,
                connections,
                f"{ours.per_second:,.0f}",
                f"{theirs.per_second:,.0f}",
                f"{ours.per_second / theirs.per_second:.2f}",
                f"{ours.median_us:,.0f}",
                f"{ours.p99_us:,.0f}",
            )
    return [table]

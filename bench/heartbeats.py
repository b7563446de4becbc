"""(a) Benchmark of heartbeats per second, beside a server that only echoes frames of the same size."""

import uuid

from bench import load
from bench.members import SESSION_MS, join_alone
from bench.servers import echo, groupcoord
from bench.table import Table
from bench.wire import Connection, request_frame
from groupcoord.protocol.apis import ApiKey
from groupcoord.protocol.messages import ConsumerGroupHeartbeatRequest, HeartbeatRequest

CONNECTIONS = (1, 100, 1000)


def member(port: int, group: str) -> tuple[str, int]:
    """Join ``group`` as its only member; returns member id and generation."""
    connection = Connection(port)
    joined = join_alone(group, lambda key, request: connection.ask(key, request, version=3))
    connection.close()
    return joined


def classic_frame(port: int, group: str) -> bytes:
    """The heartbeat of a member that is alone in ``group``."""
    member_id, generation = member(port, group)
    beat = HeartbeatRequest(group_id=group, generation_id=generation, member_id=member_id)
    return request_frame(ApiKey.HEARTBEAT, beat)


def consumer_frame(port: int, group: str) -> bytes:
    """The same by the protocol of KIP-848."""
    connection = Connection(port)
    join = ConsumerGroupHeartbeatRequest(
        group_id=group,
        member_id=str(uuid.uuid4()),
        member_epoch=0,
        rebalance_timeout_ms=SESSION_MS,
        subscribed_topic_names=("orders",),
        topic_partitions=(),
    )
    joined = connection.ask(ApiKey.CONSUMER_GROUP_HEARTBEAT, join)
    connection.close()
    beat = ConsumerGroupHeartbeatRequest(group_id=group, member_id=join.member_id, member_epoch=joined.member_epoch)
    return request_frame(ApiKey.CONSUMER_GROUP_HEARTBEAT, beat)


PROTOCOLS = {"classic": classic_frame, "consumer": consumer_frame}


def run(seconds: float = 3.0) -> list[Table]:
    """One row per event loop, number of connections and protocol; each connection is the only member of a group."""
    figures = ("groupcoord/s", "echo/s", "ratio", "median µs", "p99 µs")
    table = Table("heartbeats per second", "loop", "connections", "protocol", *figures)
    for loop in ("asyncio", "uvloop"):
        for connections in CONNECTIONS:
            for protocol, frame in PROTOCOLS.items():
                with groupcoord("--dev", "--topic", "orders:6", loop=loop) as server:
                    frames = [frame(server.port, f"group-{number}") for number in range(connections)]
                    ours = load.run(server.port, seconds, frames)
                with echo(loop) as peer:
                    theirs = load.run(peer.port, seconds, frames)
                table.add(
                    loop,
                    connections,
                    protocol,
                    f"{ours.per_second:,.0f}",
                    f"{theirs.per_second:,.0f}",
                    f"{ours.per_second / theirs.per_second:.2f}",
                    f"{ours.median_us:,.0f}",
                    f"{ours.p99_us:,.0f}",
                )
    return [table]

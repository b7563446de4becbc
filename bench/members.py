"""(c) A thousand members join one generation."""

import selectors
import struct
import time
from collections.abc import Callable
from typing import Any

from bench.servers import groupcoord
from bench.table import Table
from bench.wire import Connection
from groupcoord.protocol.apis import ApiKey
from groupcoord.protocol.apis.join_group import JoinGroupRequestProtocol
from groupcoord.protocol.apis.sync_group import SyncGroupRequestAssignment
from groupcoord.protocol.consumer_protocol import ConsumerProtocolSubscription, write_subscription
from groupcoord.protocol.messages import JoinGroupRequest, SyncGroupRequest

SESSION_MS = 300_000
MEMBERS = 1000


def consumer_subscription() -> bytes:
    """What a consumer of topic ``orders`` says in JoinGroup."""
    return write_subscription(ConsumerProtocolSubscription(topics=("orders",)))


def join_request(group: str, member_id: str = "") -> JoinGroupRequest:
    """How a member asks to join ``group``, without an id at first."""
    return JoinGroupRequest(
        group_id=group,
        session_timeout_ms=SESSION_MS,
        rebalance_timeout_ms=SESSION_MS,
        member_id=member_id,
        protocol_type="consumer",
        protocols=(JoinGroupRequestProtocol(name="range", metadata=consumer_subscription()),),
    )


def join_alone(group: str, ask: Callable[[ApiKey, Any], Any]) -> tuple[str, int]:
    """Join ``group`` as its only member; returns member id and generation. ``ask`` answers a request of version 3."""
    joined = ask(ApiKey.JOIN_GROUP, join_request(group))
    member_id, generation = joined.member_id, joined.generation_id
    ask(
        ApiKey.SYNC_GROUP,
        SyncGroupRequest(group_id=group, generation_id=generation, member_id=member_id, assignments=()),
    )
    return member_id, generation


def run() -> list[Table]:
    """From the first JoinGroup to the last answered SyncGroup, over the wire, two-step join (KIP-394) included.

    A founder makes generation 1 alone; the others join, and the founder joins again last: the next generation starts with
    all of them at that moment, without any delay that would have to be taken out of the figure.
    """
    table = Table("1,000 members join one generation", "step", "seconds")
    with groupcoord("--dev") as server:
        connections = [Connection(server.port) for _ in range(MEMBERS)]
        founder, others = connections[0], connections[1:]
        ids = [_join_alone(founder)]
        start = time.perf_counter()
        ids += [answer.member_id for answer in _all(others, ApiKey.JOIN_GROUP, lambda _: join_request("bench"))]
        named = time.perf_counter()
        for number, connection in enumerate(connections[1:], 1):
            connection.send(ApiKey.JOIN_GROUP, join_request("bench", ids[number]))
        founder.send(ApiKey.JOIN_GROUP, join_request("bench", ids[0]))
        answers = _answers(connections, ApiKey.JOIN_GROUP)
        joined = time.perf_counter()
        leader = answers[0].leader
        _all(connections, ApiKey.SYNC_GROUP, lambda n: _sync(answers[n], ids if ids[n] == leader else []))
        synced = time.perf_counter()
        for connection in connections:
            connection.close()
    generations = {answer.generation_id for answer in answers}
    if len(generations) != 1:
        raise SystemExit(f"bench: more than one generation: {generations}")
    for step, begin, end in (
        ("each asks for an id", start, named),
        ("each joins with it", named, joined),
        ("each syncs", joined, synced),
        ("together", start, synced),
    ):
        table.add(step, f"{end - begin:.2f}")
    return [table]


def _join_alone(connection: Connection) -> str:
    """Found the group; returns the member id."""
    member_id: str = connection.ask(ApiKey.JOIN_GROUP, join_request("bench")).member_id
    joined = connection.ask(ApiKey.JOIN_GROUP, join_request("bench", member_id))
    connection.ask(ApiKey.SYNC_GROUP, _sync(joined, [member_id]))
    return member_id


def _all(connections: list[Connection], key: ApiKey, message: Any) -> list[Any]:
    """Send everybody's request, then collect the answers."""
    for number, connection in enumerate(connections):
        connection.send(key, message(number))
    return _answers(connections, key)


def _answers(connections: list[Connection], key: ApiKey) -> list[Any]:
    """One answer from each, in whatever order they come."""
    answers: dict[int, Any] = {}
    with selectors.DefaultSelector() as selector:
        for number, connection in enumerate(connections):
            selector.register(connection.socket, selectors.EVENT_READ, number)
        while len(answers) < len(connections):
            ready = selector.select(timeout=60)
            if not ready:
                raise TimeoutError(f"{len(answers)} of {len(connections)} answers to {key.name}")
            for selected, _ in ready:
                selector.unregister(selected.fileobj)
                answers[selected.data] = connections[selected.data].receive(key)
    return [answers[number] for number in range(len(connections))]


def _sync(joined: Any, ids: list[str]) -> SyncGroupRequest:
    return SyncGroupRequest(
        group_id="bench",
        generation_id=joined.generation_id,
        member_id=joined.member_id,
        protocol_type="consumer",
        protocol_name="range",
        assignments=tuple(
            SyncGroupRequestAssignment(member_id=one, assignment=struct.pack(">h", 0) * 20) for one in ids
        ),
    )

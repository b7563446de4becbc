"""Benchmark of single requests without sockets: from the bytes of the request through the core to those of the response.

``python -m bench.core commit-10`` profiles one of CASES. On a busy machine most runs are disturbed, so it prints the 5th
percentile of many short runs.
"""

import cProfile
import gc
import pstats
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

from bench.commits import TOPIC, commit_request
from bench.members import join_alone
from bench.offsets import NOW_MS, Chance
from bench.table import Table
from groupcoord.cluster.cluster_core import ClusterCore
from groupcoord.config.broker_config import load as config_of
from groupcoord.core.effects import Call, Effect, Reply
from groupcoord.protocol.apis import APIS, ApiKey
from groupcoord.protocol.framing import encode_request
from groupcoord.protocol.messages import HeartbeatRequest
from groupcoord.server.connection import RequestCache, ResponseCache

CONNECTIONS = 20
"""Each is the only member of a group; all of them ask in each round."""
SECONDS = 3.0
_PARTITIONS = 10
_OFFSETS = 8  # of the commits that a connection sends in turn

_JOINED_MS = 10  # longer than group.initial.rebalance.delay.ms of --dev

Member = tuple[str, str, int]
"""Group, member id, generation."""


def heartbeat(member: Member, _number: int) -> bytes:
    """A heartbeat that is fine."""
    group, member_id, generation = member
    request = HeartbeatRequest(group_id=group, generation_id=generation, member_id=member_id)
    return encode_request(APIS[ApiKey.HEARTBEAT], 4, 1, "bench", request)[4:]


def old_heartbeat(member: Member, number: int) -> bytes:
    """One of another generation, which is refused."""
    group, member_id, generation = member
    return heartbeat((group, member_id, generation + 1), number)


def commit(member: Member, number: int, partitions: int = 1) -> bytes:
    """The commit of one partition."""
    request = commit_request(*member, 1_000 + number, partitions)
    return encode_request(APIS[ApiKey.OFFSET_COMMIT], 9, 1, "bench", request)[4:]


CASES: dict[str, Callable[[Member, int], bytes]] = {
    "heartbeat": heartbeat,
    "heartbeat-refused": old_heartbeat,
    "commit-1": commit,
    "commit-10": lambda member, number: commit(member, number, _PARTITIONS),
}


def run() -> list[Table]:
    """One row for each of CASES."""
    table = Table(f"the core alone, {CONNECTIONS} requests in a round, in memory", "request", "µs")
    for name in CASES:
        ask_all = rounds(name)
        times, end = [], time.monotonic() + SECONDS
        while time.monotonic() < end:
            before = time.perf_counter()
            next(ask_all)
            times.append(time.perf_counter() - before)
        table.add(name, f"{sorted(times)[len(times) // 20] / CONNECTIONS * 1e6:.1f}")
    return [table]


def rounds(name: str) -> Iterator[None]:
    """Each step is a round: one request of each connection, ``flush``, and all answers as bytes."""
    core = ClusterCore(config_of([], dev=True), random=Chance(), now_ms=NOW_MS)
    core.create_topic(TOPIC, _PARTITIONS, NOW_MS)
    members = [_member(core, number) for number in range(CONNECTIONS)]
    core.batch_rounds(batches=True)
    frames = [[CASES[name](member, number) for number in range(_OFFSETS)] for member in members]
    requests = [RequestCache(number, "/127.0.0.1") for number in range(CONNECTIONS)]
    responses = [ResponseCache() for _ in members]

    def answer(effects: list[Effect]) -> None:
        for effect in effects:
            if type(effect) is Reply:
                responses[effect.call.connection_id].write(effect.call, effect.response)

    gc.collect()
    gc.freeze()
    now_ms = NOW_MS
    while True:
        now_ms += 1
        for number, request in enumerate(requests):
            answer(core.handle(*request.read(frames[number][now_ms % _OFFSETS]), now_ms))
        answer(core.flush(now_ms))
        yield


def _member(core: ClusterCore, number: int) -> Member:
    """The only member of a new group, as soon as the group is stable."""

    def ask(key: ApiKey, request: Any) -> Any:
        effects = core.handle(Call(number, 1, APIS[key], 3, "bench", "/127.0.0.1"), request, NOW_MS)
        effects += core.flush(NOW_MS) + core.expire(NOW_MS + _JOINED_MS)
        (response,) = (effect.response for effect in effects if isinstance(effect, Reply))
        return response

    group = f"group-{number}"
    return (group, *join_alone(group, ask))


def profile(steps: Iterator[None]) -> None:
    """Print where the time of a thousand ``steps`` goes, after the first."""
    next(steps)
    profiler = cProfile.Profile()
    profiler.enable()
    for _ in range(1_000):
        next(steps)
    profiler.disable()
    pstats.Stats(profiler).sort_stats("tottime").print_stats(40)


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in CASES:
        sys.exit(f"usage: python -m bench.core REQUEST, which is one of {', '.join(CASES)}")
    profile(rounds(sys.argv[1]))

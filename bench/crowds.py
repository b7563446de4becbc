"""Benchmark of scale: many members of one group, many groups, many connections, beside franz-go's kfake if there is Go."""

import contextlib
import shutil
import statistics
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

from bench.crowd import Crowd, Took
from bench.members import join_alone, join_request, sync_request
from bench.servers import Running, groupcoord, kfake
from bench.table import Table
from bench.wire import Connection
from groupcoord.protocol.apis import ApiKey
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages import (
    ApiVersionsRequest,
    DescribeGroupsRequest,
    ListGroupsRequest,
)
from groupcoord.server.file_descriptor_limit import raise_descriptor_limit

ROUNDS = 3
MEMBERS = (1_000, 10_000)
GROUPS = 10_000
CONNECTIONS = 5_000
_CONNECTIONS_OF_GROUPS = 1_000
_SPARE_DESCRIPTORS = 200
_TIMES = 5
"""That groups are listed and described."""
_GROUP = "bench"
# A generation is one record, and that of 10,000 members has more than the 1 MB that Kafka allows by default.
_OPTIONS = ("--dev", "-cmessage.max.bytes=10000000")
_HELLO = ApiVersionsRequest(client_software_name="bench", client_software_version="1")

Steps = dict[str, Took]


class Case(NamedTuple):
    """What a fresh server is asked, by how many connections at once, and kfake, too, if it ``has_peer``.

    ``measure`` gives each of its steps by name.
    """

    connections: int
    measure: Callable[[Running], Steps]
    has_peer: bool = False


def one_generation(server: Running, members: int) -> Steps:
    """All steps of a generation of so many members, the two of a join (KIP-394) included.

    A founder makes generation 1 alone; the others join, and the founder joins again last: the next generation starts with
    all of them at that moment, without any delay that would have to be taken out of the figure.
    """
    connection = Connection(server.port)
    founder, _ = join_alone(_GROUP, lambda key, request: connection.ask(key, request, version=3))
    connection.close()
    with Crowd(server, members) as crowd:
        named = crowd.ask(ApiKey.JOIN_GROUP, [join_request(_GROUP)] * (members - 1))
        ids = [*(answer.member_id for answer in named), founder]
        joined = crowd.ask(ApiKey.JOIN_GROUP, [join_request(_GROUP, member_id) for member_id in ids])
        if {(answer.error_code, answer.generation_id) for answer in joined} != {(ErrorCode.NONE, 2)}:
            raise SystemExit(f"bench: not all of {members:,} members are in the second generation")
        leader = joined[0].leader
        syncs = [sync_request(_GROUP, each, ids if each.member_id == leader else ()) for each in joined]
        synced = crowd.ask(ApiKey.SYNC_GROUP, syncs)
        if any(answer.error_code for answer in synced) or len({answer.assignment for answer in synced}) != members:
            raise SystemExit(f"bench: not all of {members:,} members have an assignment: {synced[0]}")
        _, *steps = crowd.took
    names = ("each asks for an id", "each joins with it", "each syncs", "together")
    return {f"{members:,} members: {name}": took for name, took in zip(names, [*steps, _sum(steps)], strict=True)}


def many_groups(server: Running) -> Steps:
    """Groups of one member each, and what it takes to list and to describe them."""
    groups = [f"group-{number}" for number in range(GROUPS)]
    with Crowd(server, _CONNECTIONS_OF_GROUPS) as crowd:
        for first in range(0, GROUPS, _CONNECTIONS_OF_GROUPS):
            names = groups[first : first + _CONNECTIONS_OF_GROUPS]
            named = crowd.ask(ApiKey.JOIN_GROUP, [join_request(name) for name in names])
            joins = [join_request(name, answer.member_id) for name, answer in zip(names, named, strict=True)]
            joined = crowd.ask(ApiKey.JOIN_GROUP, joins)
            syncs = [sync_request(name, each, (each.member_id,)) for name, each in zip(names, joined, strict=True)]
            crowd.ask(ApiKey.SYNC_GROUP, syncs)
        _, *steps = crowd.took
    found = {f"{GROUPS:,} groups of one member": _sum(steps)}
    with Crowd(server, 1) as asking:
        for _ in range(_TIMES):
            (listed,) = asking.ask(ApiKey.LIST_GROUPS, [ListGroupsRequest()])
        if len(listed.groups) != GROUPS:
            raise SystemExit(f"bench: {len(listed.groups):,} of {GROUPS:,} groups are listed")
        for _ in range(_TIMES):
            (described,) = asking.ask(ApiKey.DESCRIBE_GROUPS, [DescribeGroupsRequest(groups=tuple(groups))])
        if [group.group_state for group in described.groups] != ["Stable"] * GROUPS:
            raise SystemExit(f"bench: not all of {GROUPS:,} groups are described as stable")
        _, *steps = asking.took
    found[f"{GROUPS:,} groups listed"] = _mean(steps[:_TIMES])
    found[f"{GROUPS:,} groups described"] = _mean(steps[_TIMES:])
    return found


def many_connections(server: Running) -> Steps:
    """Connections that are open at once, and a request of each."""
    with Crowd(server, CONNECTIONS) as crowd:
        crowd.ask(ApiKey.API_VERSIONS, [_HELLO] * CONNECTIONS)
        opened, asked = crowd.took
    return {f"{CONNECTIONS:,} connections opened": opened, f"{CONNECTIONS:,} connections: each asks once": asked}


CASES = (
    *(Case(members, partial(one_generation, members=members)) for members in MEMBERS),
    Case(_CONNECTIONS_OF_GROUPS, many_groups, has_peer=True),
    Case(CONNECTIONS, many_connections, has_peer=True),
)


def run() -> list[Table]:
    """Medians of ROUNDS, in each of which each server starts anew. The client, in Python, is part of the seconds."""
    limit = raise_descriptor_limit()
    peers = ("groupcoord", "kfake") if shutil.which("go") else ("groupcoord",)
    columns = [f"{peer}{unit}" for peer in peers for unit in (" s", " processor s")]
    table = Table("crowds, groupcoord under uvloop", "what", *columns)
    for case in CASES:
        wanted = case.connections + _SPARE_DESCRIPTORS
        if limit is not None and limit < wanted:
            what = f"{case.connections:,} connections: left out, they need {wanted:,} descriptors (ulimit -n {wanted})"
            table.add(what, f"limit is {limit:,}", *[""] * (len(columns) - 1))
            continue
        found: dict[str, dict[str, list[Took]]] = {}
        for _ in range(ROUNDS):
            for peer in peers if case.has_peer else peers[:1]:
                with _started(peer) as server:
                    for what, took in case.measure(server).items():
                        found.setdefault(what, {}).setdefault(peer, []).append(took)
        for what, rounds_of in found.items():
            medians = [
                f"{statistics.median(figures):.3f}"
                for rounds in rounds_of.values()
                for figures in zip(*rounds, strict=True)
            ]
            table.add(what, *medians, *[""] * (len(columns) - len(medians)))
    return [table]


@contextlib.contextmanager
def _started(peer: str) -> Iterator[Running]:
    with groupcoord(*_OPTIONS, loop="uvloop") if peer == "groupcoord" else kfake("orders", 1) as server:
        yield server


def _sum(steps: Sequence[Took]) -> Took:
    return Took(*map(sum, zip(*steps, strict=True)))


def _mean(steps: Sequence[Took]) -> Took:
    return Took(*map(statistics.mean, zip(*steps, strict=True)))

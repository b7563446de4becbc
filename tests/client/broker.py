"""An in-process groupcoord whose responses a test can replace, for errors that are too rare otherwise."""

import asyncio
import functools
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, NoReturn, TypeVar

from groupcoord.client.connection import BrokerConnection
from groupcoord.client.consumer import Consumer
from groupcoord.core.effects import Call, CloseConnection, Effect, Reply
from groupcoord.protocol.apis import APIS
from groupcoord.protocol.apis.api_versions import ApiVersion
from groupcoord.protocol.apis.create_partitions import CreatePartitionsTopic
from groupcoord.protocol.apis.leave_group import MemberIdentity
from groupcoord.protocol.apis.produce import PartitionProduceData, TopicProduceData
from groupcoord.protocol.batches.record_batch import build_batch
from groupcoord.protocol.batches.records import Record
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    ProduceRequest,
    ProduceResponse,
)
from groupcoord.testing.cluster import Cluster

PATIENCE_S = 20.0
HANG = object()
"""An answer that never comes."""
HANG_UP = object()
"""The connection is closed instead."""

Handle = Callable[[Call, Any, int], list[Effect]]
Story = Callable[..., Coroutine[Any, Any, None]]
S = TypeVar("S", bound=Story)


def patiently(story: S) -> S:
    """The story of an asynchronous test ends, or the test fails."""

    @functools.wraps(story)
    async def told(*arguments: Any, **named: Any) -> None:
        async with asyncio.timeout(PATIENCE_S):
            await story(*arguments, **named)

    return told  # type: ignore[return-value]


class Broker:
    """A cluster, the requests it got, and the answers that are to be given instead of its own."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.server = server = cluster._engine.server
        self.requests: list[Any] = []
        self.calls: list[Call] = []
        self._instead: dict[type, deque[Any]] = {}
        self._handle: Handle = server.cluster.handle
        self._waiting: list[tuple[Callable[[], bool], asyncio.Future[None]]] = []
        server.cluster.handle = self._handle_or_not  # type: ignore[method-assign]

    @property
    def address(self) -> str:
        return self.server.address

    def answers(self, request: type, *responses: Any) -> None:
        """The next requests of that kind get these: a response, a function of the request, HANG, HANG_UP; None: as ever."""
        self._instead.setdefault(request, deque()).extend(responses)

    async def has_answered(self) -> None:
        """Wait until all those answers are given."""
        await eventually(lambda: not any(self._instead.values()))

    def speaks(self, **highest: int) -> None:
        """From now on it says that it speaks these APIs, by name, up to that version: an older broker."""

        def limited(request: ApiVersionsRequest, answer: ApiVersionsResponse) -> ApiVersionsResponse:
            keys = tuple(
                ApiVersion(
                    api_key=each.api_key,
                    min_version=each.min_version,
                    max_version=min(each.max_version, highest.get(APIS[each.api_key].name, each.max_version)),
                )
                for each in answer.api_keys
            )
            return replace(answer, api_keys=keys)

        self.alter(ApiVersionsRequest, limited)

    def alter(self, request: type, change: Callable[[Any, Any], Any]) -> None:
        """From now on the broker's own answers to that kind are changed so."""
        handle = self._handle

        def altered(call: Call, asked: Any, now_ms: int) -> list[Effect]:
            effects = handle(call, asked, now_ms)
            if not isinstance(asked, request):
                return effects
            return [
                Reply(each.call, change(asked, each.response)) if isinstance(each, Reply) else each for each in effects
            ]

        self._handle = altered

    def got(self, request: type) -> list[Any]:
        """The requests of that kind so far."""
        return [each for each in self.requests if isinstance(each, request)]

    async def gets(self, request: type, count: int = 1) -> None:
        """Wait until it has got so many requests of that kind."""
        arrived = asyncio.get_running_loop().create_future()
        self._waiting.append((lambda: len(self.got(request)) >= count, arrived))
        self._look()
        await arrived

    def _look(self) -> None:
        for condition, arrived in self._waiting:
            if not arrived.done() and condition():
                arrived.set_result(None)

    def _handle_or_not(self, call: Call, request: Any, now_ms: int) -> list[Effect]:
        self.requests.append(request)
        self.calls.append(call)
        self._look()
        queue = self._instead.get(type(request))
        instead = queue.popleft() if queue else None
        if instead is None:
            return self._handle(call, request, now_ms)
        if instead is HANG:
            return []
        if instead is HANG_UP:
            return [CloseConnection(call, "for the test")]
        return [Reply(call, instead(request) if callable(instead) else instead)]

    async def enlarges(self, topic: str, count: int) -> None:
        """An administrator lets a topic have so many partitions."""
        connection = await BrokerConnection.connect(
            self.server.host, self.server.port, client_id="admin", timeout_ms=10_000
        )
        topics = (CreatePartitionsTopic(name=topic, count=count),)
        answer: CreatePartitionsResponse = await connection.request(
            CreatePartitionsRequest(topics=topics, timeout_ms=10_000, validate_only=False), 10_000
        )
        connection.close()
        assert answer.results[0].error_code == ErrorCode.NONE

    async def removes(self, member_id: str, group: str = "g") -> None:
        """An administrator removes a member."""
        connection = await BrokerConnection.connect(
            self.server.host, self.server.port, client_id="admin", timeout_ms=10_000
        )
        members = (MemberIdentity(member_id=member_id),)
        answer: LeaveGroupResponse = await connection.request(
            LeaveGroupRequest(group_id=group, members=members), 10_000
        )
        connection.close()
        assert answer.members[0].error_code == ErrorCode.NONE

    async def produce(
        self, topic: str, values: Sequence[bytes], partition: int = 0, *, attributes: int = 0, key: bytes | None = None
    ) -> None:
        """Put ``values`` into a partition, as one batch."""
        await produce(self.address, topic, values, partition, attributes=attributes, key=key)


async def produce(
    address: str,
    topic: str,
    values: Sequence[bytes],
    partition: int = 0,
    *,
    attributes: int = 0,
    key: bytes | None = None,
) -> None:
    """Put ``values`` into a partition of a topic at ``address``, as one batch."""
    host, _, port = address.rpartition(":")
    connection = await BrokerConnection.connect(host, int(port), client_id="producer", timeout_ms=10_000)
    now_ms = time.time_ns() // 1_000_000
    batch = build_batch(
        [Record(number, now_ms, key, value) for number, value in enumerate(values)], attributes=attributes
    )
    data = TopicProduceData(name=topic, partition_data=(PartitionProduceData(index=partition, records=batch),))
    request = ProduceRequest(transactional_id=None, acks=-1, timeout_ms=10_000, topic_data=(data,))
    by_name = 12
    code = ErrorCode.NOT_LEADER_OR_FOLLOWER
    while code.retriable:  # as a real broker says of a topic that it has only just created
        response: ProduceResponse = await connection.request(request, 10_000, limit=by_name)
        code = ErrorCode(response.responses[0].partition_responses[0].error_code)
    connection.close()
    assert code == ErrorCode.NONE, code


@asynccontextmanager
async def broker(topics: Mapping[str, int] | None = None, **config: object) -> AsyncIterator[Broker]:
    """A broker until the block ends, with a topic ``t`` of one partition unless told otherwise."""
    properties = {name.replace("_", "."): value for name, value in config.items()}
    properties = {"group.min.session.timeout.ms": 1_000, **properties}
    async with Cluster(topics={"t": 1} if topics is None else topics, config=properties) as kafka:
        yield Broker(kafka)


async def eventually(condition: Callable[[], Any] | Callable[[], Awaitable[Any]]) -> None:
    """Let the loop run until ``condition`` holds."""
    while not condition():
        await asyncio.wait([asyncio.get_running_loop().create_future()], timeout=0.005)


async def forever(consumer: Consumer) -> NoReturn:
    """Poll until that raises something."""
    while True:
        await consumer.getmany(50)

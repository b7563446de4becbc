"""A Kafka cluster elsewhere, with the methods of a ``Cluster`` that need no clock or faults: the same test on a real Kafka::

async with RemoteCluster("127.0.0.1:9092") as kafka:
await kafka.create_topic("orders", 2)
a, b = kafka.manual_member("app", "orders"), kafka.manual_member("app", "orders")
await a.rejoin()
joining = b.join()
await kafka.group("app").wait_rebalancing()
assert await a.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, Self

from groupcoord.assignors import Assignor
from groupcoord.client.addresses import parse_addresses
from groupcoord.client.member.actions import MetadataSnapshot
from groupcoord.client.member.membership import Membership
from groupcoord.client.member.requests import metadata_request, metadata_snapshot
from groupcoord.client.member.settings import ExponentialBackoff, MemberSettings
from groupcoord.client.network_client import ConnectionPurpose, NetworkClient
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages import ListGroupsRequest, MetadataResponse, ProduceRequest, ProduceResponse
from groupcoord.testing import clocks
from groupcoord.testing.auto_member import AutoMember, MemberScheduler
from groupcoord.testing.clocks import ClockMode
from groupcoord.testing.kafka_cluster import (
    METADATA_MAX_AGE_MS,
    PRODUCE_BY_NAME,
    BrokerHandle,
    ConsumerOptions,
    KafkaCluster,
)
from groupcoord.testing.remote_group import RemoteGroup
from groupcoord.testing.request_builders import creation, deletion, growth, raise_refusal
from groupcoord.testing.seeded_random import SeededRandomSource
from groupcoord.testing.sync import LoopThread
from groupcoord.testing.tcp_connection import REQUEST_TIMEOUT_MS, BrokerLocator, TcpConnection
from groupcoord.testing.waiting import Waiting, poll

if TYPE_CHECKING:
    from groupcoord.testing.sync_api import SyncRemoteCluster


class RemoteCluster(KafkaCluster):
    """The cluster at ``bootstrap_servers`` (``host:port``), any Kafka or groupcoord, while the ``async with`` block runs.

    Time is real. The caller chooses unique names for topics and groups. The end of the block closes the connections of all
    members, without LeaveGroup; topics and groups stay. It raises an ExceptionGroup if a request failed that no caller waited
    for. ``consumers`` heartbeat every 50 ms unless ``heartbeat_interval_ms`` says otherwise: they hear of a rebalance by their
    heartbeats, in real time. A ``manual_member`` that leads knows the topics as they were at the beginning of the block, after
    the last one was made, changed or deleted here, or at the last ``settle``.
    """

    _consumer_defaults: ClassVar[ConsumerOptions] = {"heartbeat_interval_ms": 50}

    def __init__(self, bootstrap_servers: str) -> None:
        super().__init__()
        self._address = bootstrap_servers
        self._bootstrap = parse_addresses(bootstrap_servers)
        self._chance = SeededRandomSource(0)
        self._cluster: NetworkClient
        self._places: BrokerLocator
        self._scheduler: MemberScheduler
        self._clock: clocks.Clock
        self._waiting = Waiting()
        self._topics = MetadataSnapshot()
        self._lines: list[TcpConnection] = []
        self._auto_members: list[AutoMember] = []
        self._problems: list[Exception] = []

    def __repr__(self) -> str:
        return f"<RemoteCluster {self.address}>"

    def sync(self) -> "SyncRemoteCluster":
        """The same without ``await``: ``with RemoteCluster(...).sync() as kafka``."""
        from groupcoord.testing.sync_api import SyncRemoteCluster  # noqa: PLC0415 - it imports this module

        return SyncRemoteCluster(self, LoopThread())

    async def __aenter__(self) -> Self:
        loop = asyncio.get_running_loop()
        self._clock = clocks.make(ClockMode.REAL, start_ms=None, speed=1.0, loop=loop)
        self._scheduler = MemberScheduler(self._clock, loop)
        self._cluster = NetworkClient(
            self._bootstrap,
            client_id="groupcoord-testing",
            request_timeout_ms=REQUEST_TIMEOUT_MS,
            metadata_max_age_ms=METADATA_MAX_AGE_MS,
            backoff=ExponentialBackoff(100, 1_000, self._chance.fraction),
            allow_auto_create_topics=False,
        )
        self._places = BrokerLocator(self._cluster, self._bootstrap[0])
        try:
            await self._cluster.refresh(())
            await self._learn()
        except BaseException:
            await self._cluster.close()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._scheduler.stop()
        for living in self._auto_members:
            living.vanish()
        for scripted in self._manual_members:
            scripted.vanish()
        for line in self._lines:
            await line.closed()
        await self._cluster.close()
        if self._problems:
            raise ExceptionGroup(f"errors in talking to {self.address}", self._problems)

    @property
    def address(self) -> str:
        """``host:port``, as it was given: the bootstrap server for clients."""
        return self._address

    @property
    def brokers(self) -> Mapping[int, BrokerHandle]:
        """The brokers by id, as the cluster told when topics were last looked up."""
        return {
            broker_id: BrokerHandle(broker_id, f"{broker.host}:{broker.port}", broker.rack)
            for broker_id, broker in sorted(self._cluster.brokers.items())
        }

    # Topics.

    async def create_topic(self, name: str, partitions: int = 1) -> None:
        """Create a topic; returns when all its partitions can be used. Raises ValueError if the broker refuses it."""
        raise_refusal(await self._cluster.request_any(creation(name, partitions)))
        await self._until_it_has(name, partitions)

    async def add_partitions(self, topic: str, more: int) -> None:
        """Give ``topic`` so many more partitions. Raises ValueError if the broker refuses it."""
        await self._learn()
        total = self._topics.partitions.get(topic, 0) + more
        raise_refusal(await self._cluster.request_any(growth(topic, total)))
        await self._until_it_has(topic, total)

    async def delete_topic(self, topic: str) -> None:
        """Delete ``topic``; returns when there is none. Raises ValueError if the broker refuses it."""
        raise_refusal(await self._cluster.request_any(deletion(topic)))
        await self._until_it_has(topic, None)

    async def _produce(self, request: ProduceRequest, topic: str, partition: int) -> ProduceResponse:
        await self._cluster.refresh((topic,))
        leader = self._cluster.leader_of((topic, partition))
        if leader is None:
            raise ValueError(f"{topic}-{partition}: {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION.name}: it has no leader")
        answer: ProduceResponse = await self._cluster.request_of(
            leader.leader, request, ConnectionPurpose.GENERAL, limit=PRODUCE_BY_NAME
        )
        return answer

    async def _until_it_has(self, topic: str, partitions: int | None) -> None:
        await poll(
            self._learn,
            lambda seen: seen.partitions.get(topic) == partitions,
            f"topic {topic} should {'be gone' if partitions is None else f'have {partitions} partitions'}",
            lambda seen: f"It has {seen.partitions.get(topic)}",
        )

    async def _learn(self) -> MetadataSnapshot:
        """All topics whose partitions all have a leader."""
        answer: MetadataResponse = await self._cluster.request_any(metadata_request(None))
        led = tuple(topic for topic in answer.topics if all(each.leader_id >= 0 for each in topic.partitions))
        self._topics = metadata_snapshot(MetadataResponse(brokers=answer.brokers, topics=led))
        return self._topics

    # Groups.

    def group(self, name: str) -> RemoteGroup:
        """The group of that name, whether it exists or not."""
        return RemoteGroup(name, self)

    async def list_groups(self) -> list[str]:
        """The names of all groups that exist, in order."""
        await self._cluster.refresh(())
        answers = [
            await self._cluster.request_of(broker_id, ListGroupsRequest(), ConnectionPurpose.GENERAL)
            for broker_id in tuple(self._cluster.brokers)
        ]
        return sorted(group.group_id for answer in answers for group in answer.groups)

    async def ask_coordinator(self, group: str, request: Any, *, limit: int | None = None) -> Any:
        """The answer of the coordinator of ``group``, in a version up to ``limit``. Raises ClientError."""
        address = await self._places.coordinator(group)
        return await self._cluster.request_at(address, request, ConnectionPurpose.GENERAL, limit=limit)

    def newest_generation(self, group: str) -> int:
        """The latest generation of ``group`` that a member in this program was told, or -1."""
        told = [member.generation for member in self._manual_members if member.group == group]
        told += [member.generation for member in self._auto_members if member.group == group]
        return max(told, default=-1)

    # Waiting.

    async def wait_until(self, condition: Callable[[], object], what: str, *, timeout: float | None = None) -> None:
        """Wait until ``condition()`` is true of members in this process; it is called whenever one of them got an answer.

        ``what`` says in the error what should be true.
        """
        await self._waiting.until(
            lambda: bool(condition()),
            what,
            lambda: "; ".join(repr(member) for member in (*self._manual_members, *self._auto_members)),
            timeout=timeout,
        )

    async def settle(self) -> None:
        """Let all that was asked be on its way, and the broker answer something: topics are looked up.

        This does not tell what the coordinator has done with it; wait for a state of the group instead.
        """
        for line in self._lines:
            await line.sent()
        await self._learn()

    # Members in this process.

    def _now_ms(self) -> int:
        return self._clock()

    def _connect(self, client_id: str) -> TcpConnection:
        line = TcpConnection(
            self._places, client_id, heard=self._waiting.check_conditions, failed=self._problems.append
        )
        self._lines.append(line)
        return line

    def _next_client_id(self, group: str) -> str:
        return f"{group}-{len(self._lines) + 1}"

    async def _wait_for_members(self, group: str, new: Sequence[AutoMember], timeout: float | None) -> None:
        handle = self.group(group)

        async def all_in() -> bool:
            await self.wait_until(
                lambda: all(member.is_stable and member.generation == self.newest_generation(group) for member in new),
                f"{len(new)} members of {group} should be in",
                timeout=timeout,
            )
            seen = await handle.describe()
            return seen.state == "Stable" and {member.member_id for member in new} <= seen.assignment.keys()

        what = f"group {group} should be stable with {len(new)} members more"
        await poll(all_in, bool, what, lambda _: "It is not", timeout=timeout)

    def _auto_member(
        self, settings: MemberSettings, topics: Sequence[str], assignors: Sequence[Assignor], metadata_max_age_ms: int
    ) -> AutoMember:
        member = AutoMember(
            self._connect(self._next_client_id(settings.group_id)),
            Membership(settings, assignors, chance=self._chance.fraction),
            topics,
            now_ms=self._clock,
            metadata_max_age_ms=metadata_max_age_ms,
            listener=lambda _: None,
            moved=self._moved,
        )
        self._auto_members.append(member)
        self._scheduler.add(member)
        return member

    def _moved(self) -> None:
        self._scheduler.see_to_timer()
        self._waiting.check_conditions()

    def _partition_counts(self) -> Mapping[str, int]:
        return self._topics.partitions

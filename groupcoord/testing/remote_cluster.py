"""A broker elsewhere, with the faces of the cluster that need no clock: the same test against a real Kafka::

async with RemoteCluster("127.0.0.1:9092") as kafka:
    await kafka.topic("orders", 2)
    a, b = kafka.member("app", "orders"), kafka.member("app", "orders")
    await a.rejoin()
    joining = b.join()
    await kafka.group("app").rebalancing()
    assert await a.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from groupcoord.assignors import Assignor
from groupcoord.client.member.actions import TopicsView
from groupcoord.client.member.membership import Membership
from groupcoord.client.member.settings import ExponentialBackoff, MemberSettings
from groupcoord.client.network_client import (
    ConnectionPurpose,
    NetworkClient,
)
from groupcoord.client.options import addresses, assignors_of
from groupcoord.protocol.apis.leave_group import MemberIdentity
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages import LeaveGroupRequest, LeaveGroupResponse, MetadataResponse
from groupcoord.testing import clocks
from groupcoord.testing.auto_member import METADATA_MAX_AGE_MS, AutoMember, MemberScheduler, settings_of
from groupcoord.testing.clocks import ClockMode
from groupcoord.testing.manual_member import ManualMember
from groupcoord.testing.remote_group import RemoteGroup
from groupcoord.testing.request_builders import creation, deletion, growth, question, raise_refusal, topics_view
from groupcoord.testing.seeded_random import SeededRandomSource
from groupcoord.testing.tcp_connection import REQUEST_TIMEOUT_MS, BrokerLocator, TcpConnection
from groupcoord.testing.waiting import Waiting, poll

HEARTBEAT_INTERVAL_MS = 50
"""Of living members, unless told otherwise: they hear of a rebalance by their heartbeats, in real time."""


class RemoteCluster:
    """The broker at ``bootstrap_servers`` (``host:port``), any Kafka or groupcoord, while the ``async with`` block runs.

    Time is real; names of topics and groups are the caller's to keep unique. At the end of the block the members are gone
    without a word; topics and groups stay. It fails, with an ExceptionGroup, if something went wrong that nobody was told.
    """

    def __init__(self, bootstrap_servers: str) -> None:
        self.address = bootstrap_servers
        self._bootstrap = addresses(bootstrap_servers)
        self._chance = SeededRandomSource(0)
        self._cluster: NetworkClient
        self._places: BrokerLocator
        self._scheduler: MemberScheduler
        self._clock: clocks.Clock
        self._waiting = Waiting()
        self._topics = TopicsView()
        self._lines: list[TcpConnection] = []
        self._scripted: list[ManualMember] = []
        self._living: list[AutoMember] = []
        self._problems: list[Exception] = []

    def __repr__(self) -> str:
        return f"<RemoteCluster {self.address}>"

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
            await self._learn()
        except BaseException:
            await self._cluster.close()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._scheduler.stop()
        for living in self._living:
            living.vanish()
        for scripted in self._scripted:
            scripted.vanish()
        for line in self._lines:
            await line.closed()
        await self._cluster.close()
        if self._problems:
            raise ExceptionGroup(f"errors in talking to {self.address}", self._problems)

    # Topics.

    async def topic(self, name: str, partitions: int = 1) -> None:
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

    async def _until_it_has(self, topic: str, partitions: int | None) -> None:
        await poll(
            self._learn,
            lambda seen: seen.partitions.get(topic) == partitions,
            f"topic {topic} should {'be gone' if partitions is None else f'have {partitions} partitions'}",
            lambda seen: f"It has {seen.partitions.get(topic)}",
        )

    async def _learn(self) -> TopicsView:
        """All topics whose partitions all have a leader."""
        answer: MetadataResponse = await self._cluster.request_any(question(None))
        led = tuple(topic for topic in answer.topics if all(each.leader_id >= 0 for each in topic.partitions))
        self._topics = topics_view(MetadataResponse(brokers=answer.brokers, topics=led))
        return self._topics

    # Groups.

    def group(self, name: str) -> RemoteGroup:
        """The group of that name, whether it exists or not."""
        return RemoteGroup(name, self)

    async def remove(self, group: str, member_id: str) -> None:
        """Remove a member as an administrator does, by LeaveGroup in its name. Raises ValueError if the broker refuses it."""
        identity = MemberIdentity(member_id=member_id, reason="an administrator removes it")
        request = LeaveGroupRequest(group_id=group, members=(identity,), member_id=member_id)
        answer: LeaveGroupResponse = await self.ask_coordinator(group, request)
        code = ErrorCode(answer.error_code or answer.members[0].error_code)
        if code:
            raise ValueError(f"{member_id} is not removed from {group}: {code.name}")

    async def ask_coordinator(self, group: str, request: Any, *, limit: int | None = None) -> Any:
        """The answer of the coordinator of ``group``, in a version up to ``limit``. Raises ClientError."""
        address = await self._places.coordinator(group)
        return await self._cluster.request_at(address, request, ConnectionPurpose.GENERAL, limit=limit)

    def newest_generation(self, group: str) -> int:
        """The latest generation of ``group`` that a member in this program was told, or -1."""
        told = [member.generation for member in self._scripted if member.group == group]
        told += [member.generation for member in self._living if member.group == group]
        return max(told, default=-1)

    # Waiting.

    async def until(self, condition: Callable[[], object], what: str, *, timeout_s: float | None = None) -> None:
        """Wait until ``condition`` holds of members in this program: it is looked at whenever one of them hears something.

        Raises WaitTimeoutError that says ``what`` did not happen.
        """
        await self._waiting.until(
            lambda: bool(condition()),
            what,
            lambda: "; ".join(repr(member) for member in (*self._scripted, *self._living)),
            timeout_s=timeout_s,
        )

    async def settle(self) -> None:
        """Let all that was asked be on its way, and the broker answer something: topics are looked up.

        What the coordinator has made of it nobody can know by this; wait for a state of the group instead.
        """
        for line in self._lines:
            await line.sent()
        await self._learn()

    # Members in this process.

    def member(
        self,
        group: str,
        *topics: str,
        assignors: str | Sequence[str | Assignor] = "range",
        instance_id: str | None = None,
        client_id: str | None = None,
        session_timeout_ms: int = 45_000,
        rebalance_timeout_ms: int = 60_000,
    ) -> ManualMember:
        """A member of which the test takes every step.

        If it leads, it knows the topics as they were at the beginning of the block, after the last one was made, changed or
        deleted here, or at the last ``settle``.
        """
        member = ManualMember(
            self._line(client_id or f"{group}-{len(self._lines) + 1}"),
            group=group,
            topics=topics,
            assignors=assignors_of(assignors),
            partition_counts=self._partition_counts,
            instance_id=instance_id,
            session_timeout_ms=session_timeout_ms,
            rebalance_timeout_ms=rebalance_timeout_ms,
        )
        self._scripted.append(member)
        return member

    async def members(
        self,
        count: int,
        *,
        group: str,
        topics: str | Sequence[str],
        assignor: str | Sequence[str | Assignor] = "range",
        instance_ids: Sequence[str] | None = None,
        metadata_max_age_ms: int = METADATA_MAX_AGE_MS,
        heartbeat_interval_ms: int = HEARTBEAT_INTERVAL_MS,
        **settings: Any,
    ) -> list[AutoMember]:
        """``count`` members that live by themselves, in real time; returns when the group is stable with them.

        ``settings`` are those of ``MemberSettings``; times are milliseconds. A leader looks
        for new partitions every ``metadata_max_age_ms``. Raises WaitTimeoutError.
        """
        wanted = [topics] if isinstance(topics, str) else topics
        settings["heartbeat_interval_ms"] = heartbeat_interval_ms
        new = [
            self._alive(wanted, assignors_of(assignor), each, metadata_max_age_ms)
            for each in settings_of(count, group, instance_ids, settings)
        ]
        for member in new:
            member.start()
        seen = self.group(group)

        async def all_in() -> bool:
            await self.until(
                lambda: all(member.is_stable and member.generation == self.newest_generation(group) for member in new),
                f"{count} members of {group} should be in",
            )
            view = await seen.view()
            return view.state == "Stable" and {member.member_id for member in new} <= view.assignment.keys()

        await poll(all_in, bool, f"group {group} should be stable with {count} members more", lambda _: "It is not")
        return new

    def _alive(
        self, topics: Sequence[str], assignors: Sequence[Assignor], settings: MemberSettings, metadata_max_age_ms: int
    ) -> AutoMember:
        member = AutoMember(
            self._line(f"{settings.group_id}-{len(self._lines) + 1}"),
            Membership(settings, assignors, chance=self._chance.fraction),
            topics,
            now_ms=self._clock,
            metadata_max_age_ms=metadata_max_age_ms,
            listener=lambda _: None,
            moved=self._moved,
        )
        self._living.append(member)
        self._scheduler.add(member)
        return member

    def _line(self, client_id: str) -> TcpConnection:
        line = TcpConnection(self._places, client_id, heard=self._waiting.look, failed=self._problems.append)
        self._lines.append(line)
        return line

    def _moved(self) -> None:
        self._scheduler.see_to_timer()
        self._waiting.look()

    def _partition_counts(self) -> Mapping[str, int]:
        return self._topics.partitions

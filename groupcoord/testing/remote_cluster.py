"""RemoteCluster, a running Kafka cluster with the methods of ``Cluster`` that need no clock or faults: for the same test on a
real Kafka::

    async with RemoteCluster("127.0.0.1:9092") as kafka:
        await kafka.create_topic("orders", 2)
        a, b = kafka.manual_member("app", "orders"), kafka.manual_member("app", "orders")
        await a.rejoin()
        joining = b.join()
        await kafka.group("app").wait_rebalancing()
        assert await a.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS
"""

import asyncio
import random
import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, Self

from groupcoord.assignors import TopicPartition
from groupcoord.client.client_errors import UnsupportedVersionError
from groupcoord.client.completed_fetch import ConsumerRecord
from groupcoord.client.exponential_backoff import ExponentialBackoff
from groupcoord.client.member.group_member import GroupMember
from groupcoord.client.member.metadata_and_commit_requests import MetadataSnapshot, metadata_request, metadata_snapshot
from groupcoord.client.network_client import ConnectionPurpose, NetworkClient
from groupcoord.client.option_value_parsing import parse_addresses
from groupcoord.coordinator.classic.classic_group_state import GroupState
from groupcoord.coordinator.consumer.describe import CLASSIC_MEMBER
from groupcoord.coordinator.group import GroupType
from groupcoord.protocol.apis import consumer_group_describe
from groupcoord.protocol.apis.describe_groups import DescribedGroupMember
from groupcoord.protocol.apis.find_coordinator import GROUP, TRANSACTION
from groupcoord.protocol.apis.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    ListGroupsRequest,
    ListTransactionsRequest,
    MetadataResponse,
    OffsetFetchResponse,
)
from groupcoord.testing import clocks, forgotten_awaits
from groupcoord.testing.abstract_cluster import (
    METADATA_MAX_AGE_MS,
    BrokerHandle,
    ConsumerOptions,
    KafkaCluster,
    creation,
    deletion,
    growth,
    has_joined,
    raise_refusal,
)
from groupcoord.testing.auto_member import AutoMember, MemberScheduler
from groupcoord.testing.clocks import ClockMode
from groupcoord.testing.forgotten_awaits import noted
from groupcoord.testing.group_handle import Codes, GroupDescription, GroupHandle, MemberDescription, assigned_by
from groupcoord.testing.manual_classic_member import ManualMember
from groupcoord.testing.member_tcp_connection import REQUEST_TIMEOUT_MS, BrokerLocator, TcpConnection
from groupcoord.testing.record_reading import Isolation, chosen_partitions, read_remote, remote_ends, wait_for_leaders
from groupcoord.testing.sync_proxy import LoopThread
from groupcoord.testing.topic_settings import require_partition, topic_of, unknown_topic
from groupcoord.testing.transaction_handle import RemoteTransaction
from groupcoord.testing.waiting import Waiting, WaitTimeoutError, poll

if TYPE_CHECKING:
    from groupcoord.testing.sync_api import SyncRemoteCluster

_NOT_READY = {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
}
"""Errors of a broker that is still becoming the coordinator, or no longer is."""
_OFFSET_FETCH_BY_NAME = 9
"""The last version of OffsetFetch that names topics; later ones have topic ids."""


@noted
class RemoteCluster(KafkaCluster):
    """The cluster at ``bootstrap_servers`` (``host:port``), any Kafka or groupcoord, while the ``async with`` block runs.

    Time is real. The caller has to choose unique names for topics and groups. The end of the block closes the connections of
    all members, without LeaveGroup; topics and groups stay. It raises an ExceptionGroup if a request failed that no caller
    waited for. ``consumers`` heartbeat every 50 ms unless ``heartbeat_interval_ms`` is given, because they learn of a rebalance
    by their heartbeats. A ``manual_member`` that leads knows the topics as of the start of the block, of the last creation,
    change or deletion of a topic here, or of the last ``settle``.
    """

    _consumer_defaults: ClassVar[ConsumerOptions] = {"heartbeat_interval_ms": 50}

    def __init__(self, bootstrap_servers: str) -> None:
        super().__init__()
        self._address = bootstrap_servers
        self._bootstrap = parse_addresses(bootstrap_servers)
        self._random = random.Random(0)  # noqa: S311 - it spreads back-offs
        self._cluster: NetworkClient
        self._places: BrokerLocator
        self._scheduler: MemberScheduler
        self._clock: clocks.Clock
        self._waiting = Waiting()
        self._topics = MetadataSnapshot()
        self._counts: Mapping[str, int] = {}
        self._topic_ids: Mapping[uuid.UUID, str] = {}
        self._connections: list[TcpConnection] = []
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
            backoff=ExponentialBackoff(100, 1_000, self._chance),
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
        for connection in self._connections:
            await connection.closed()
        await self._cluster.close()
        if self._problems:
            raise ExceptionGroup(f"errors in talking to {self.address}", self._problems)
        await forgotten_awaits.check(error)

    @property
    def address(self) -> str:
        """``host:port``, as it was given: the bootstrap server for clients."""
        return self._address

    @property
    def brokers(self) -> Mapping[int, BrokerHandle]:
        """The brokers by id, from the last metadata response."""
        return {
            broker_id: BrokerHandle(broker_id, f"{broker.host}:{broker.port}", broker.rack)
            for broker_id, broker in sorted(self._cluster.brokers.items())
        }

    # Topics.

    async def create_topic(
        self, name: str, partitions: int = 1, *, configs: Mapping[str, object] | None = None
    ) -> None:
        """Create a topic with topic ``configs``; returns when all its partitions can be used.

        Raises ValueError if the broker refuses it, and TypeError for arguments of the wrong type.
        """
        topic = topic_of(name, partitions, configs)
        raise_refusal(await self._cluster.request_any(creation(name, topic)))
        await self._until_it_has(name, topic.partitions)

    async def add_partitions(self, topic: str, more: int) -> None:
        """Add ``more`` partitions to ``topic``. Raises ValueError if it does not exist, or the broker refuses it."""
        total = await self._count(topic) + more
        raise_refusal(await self._cluster.request_any(growth(topic, total)))
        await self._until_it_has(topic, total)

    async def delete_topic(self, topic: str) -> None:
        """Delete ``topic``; returns when it is gone. Raises ValueError if it does not exist, or the broker refuses it."""
        await self._count(topic)
        raise_refusal(await self._cluster.request_any(deletion(topic)))
        await self._until_it_has(topic, None)

    async def records(
        self, topic: str, partition: int | None = None, *, isolation: Isolation = "read_committed"
    ) -> list[ConsumerRecord]:
        """The records of ``topic``, of one partition or of all in order, that a consumer of that isolation level can read now.

        ``read_committed`` leaves out aborted records, and all records from the oldest open transaction on (the last stable
        offset). Raises ValueError for an unknown topic or partition.
        """
        numbers = chosen_partitions(topic, await self._count(topic), partition)
        wanted = [(topic, number) for number in numbers]
        return await asyncio.to_thread(read_remote, self._bootstrap, wanted, isolation)

    async def wait_records(
        self,
        topic: str,
        count: int,
        partition: int | None = None,
        *,
        isolation: Isolation = "read_committed",
        timeout: float | None = None,
    ) -> list[ConsumerRecord]:
        """Wait until ``records`` returns at least ``count``; returns them."""
        return await poll(
            partial(self.records, topic, partition, isolation=isolation),
            lambda found: len(found) >= count,
            f"{topic} should have {count} records for {isolation}",
            lambda found: f"It has {len(found)}",
            timeout=timeout,
        )

    async def leaders(self, topic: str) -> Mapping[int, int | None]:
        """The id of the broker that leads each partition of ``topic``; None where nobody does. Raises ValueError for an unknown
        topic."""
        count = await self._count(topic)
        await self._cluster.refresh((topic,))
        places = {number: self._cluster.leader_of((topic, number)) for number in range(count)}
        return {number: None if place is None else place.leader for number, place in places.items()}

    async def _ask_broker(self, broker_id: int, request: Any, *, newest: int) -> Any:
        return await self._cluster.request_of(broker_id, request, ConnectionPurpose.GENERAL, limit=newest)

    async def _count(self, topic: str) -> int:
        """The number of partitions of ``topic``, with or without leaders. Raises ValueError if it does not exist."""
        counts = await self.partition_counts()
        if topic not in counts:
            raise unknown_topic(topic, counts)
        return counts[topic]

    async def partition_counts(self) -> Mapping[str, int]:
        """The number of partitions of each topic, with or without leaders."""
        await self._learn()
        return self._counts

    async def _until_it_has(self, topic: str, partitions: int | None) -> None:
        await poll(
            self._learn,
            lambda seen: seen.partitions.get(topic) == partitions,
            f"topic {topic} should {'be gone' if partitions is None else f'have {partitions} partitions'}",
            lambda seen: f"It has {seen.partitions.get(topic)}",
        )
        if partitions is not None:
            await asyncio.to_thread(wait_for_leaders, self._bootstrap, topic)

    async def _learn(self) -> MetadataSnapshot:
        """Look up all topics; returns those whose partitions all have leaders."""
        answer: MetadataResponse = await self._cluster.request_any(metadata_request(None))
        led = tuple(topic for topic in answer.topics if all(each.leader_id >= 0 for each in topic.partitions))
        self._counts = metadata_snapshot(answer).partitions
        self._topics = metadata_snapshot(MetadataResponse(brokers=answer.brokers, topics=led))
        self._topic_ids = {topic.topic_id: topic.name for topic in led if topic.topic_id and topic.name}
        return self._topics

    # Groups.

    def group(self, name: str) -> "RemoteGroup":
        """The group of that name, whether it exists or not."""
        return RemoteGroup(name, self)

    async def list_groups(self) -> list[str]:
        """The names of all groups that exist, in order."""
        answers = await self._ask_all(ListGroupsRequest())
        return sorted(group.group_id for answer in answers for group in answer.groups)

    # Transactions.

    def transaction(self, transactional_id: str) -> RemoteTransaction:
        """The transactional id and its transaction, whether it exists or not."""
        ask = partial(self.ask_coordinator, transactional_id, key_type=TRANSACTION)
        return RemoteTransaction(transactional_id, ask)

    async def list_transactions(self) -> list[str]:
        """All transactional ids that exist, in order."""
        answers = await self._ask_all(ListTransactionsRequest())
        return sorted(each.transactional_id for answer in answers for each in answer.transaction_states)

    async def _ask_all(self, request: Any) -> list[Any]:
        """The responses of all brokers."""
        await self._cluster.refresh(())
        return [
            await self._cluster.request_of(broker_id, request, ConnectionPurpose.GENERAL)
            for broker_id in tuple(self._cluster.brokers)
        ]

    async def ask_coordinator(self, key: str, request: Any, *, limit: int | None = None, key_type: int = GROUP) -> Any:
        """The response of the coordinator of ``key``, a group or what ``key_type`` says, in a version up to ``limit``.

        Raises ClientError.
        """
        address = await self._places.coordinator(key, key_type)
        return await self._cluster.request_at(address, request, ConnectionPurpose.GENERAL, limit=limit)

    async def log_ends(self, topics: Collection[str]) -> Mapping[TopicPartition, int]:
        """The log end offset of each partition of ``topics``. Raises ClientError."""
        return await asyncio.to_thread(remote_ends, self._bootstrap, topics)

    def newest_generation(self, group: str) -> int:
        """The latest generation of ``group`` that a member in this process got, or -1."""
        manual = (member for member in self._manual_members if isinstance(member, ManualMember))
        told = [member.generation for member in manual if member.group == group]
        told += [member.generation for member in self._auto_members if member.group == group]
        return max(told, default=-1)

    # Waiting.

    async def wait_until(self, condition: Callable[[], object], what: str, *, timeout: float | None = None) -> None:
        """Wait until ``condition()``, which looks at members in this process, is true; it is called whenever one of them got a
        response.

        ``what`` describes the condition for the error text.
        """
        await self._waiting.until(
            condition,
            what,
            lambda: "; ".join(repr(member) for member in (*self._manual_members, *self._auto_members)),
            timeout=timeout,
        )

    async def settle(self) -> None:
        """Wait until all requests so far are sent and the broker has answered one more, a lookup of topics.

        The coordinator may not have handled them yet; to be sure, wait for a state of the group instead.
        """
        for connection in self._connections:
            await connection.sent()
        await self._learn()

    # Members in this process.

    def _now_ms(self) -> int:
        return self._clock()

    def _connect(self, client_id: str) -> TcpConnection:
        connection = TcpConnection(
            self._places, client_id, heard=self._waiting.check_conditions, failed=self._problems.append
        )
        self._connections.append(connection)
        return connection

    def _next_client_id(self, group: str) -> str:
        return f"{group}-{len(self._connections) + 1}"

    async def _wait_for_members(self, group: str, new: Sequence[AutoMember], timeout: float | None) -> None:
        handle = self.group(group)

        async def all_in() -> bool:
            await self.wait_until(
                lambda: all(member.is_stable and member.generation == self.newest_generation(group) for member in new),
                f"{len(new)} members of {group} should be in",
                timeout=timeout,
            )
            seen = await handle.describe()
            return seen.state == "Stable" and all(has_joined(member, seen) for member in new)

        what = f"group {group} should be stable with {len(new)} members more"
        await poll(all_in, bool, what, lambda _: "It is not", timeout=timeout)

    def _auto_member(
        self, membership: GroupMember, topics: Sequence[str], regex: str | None, metadata_max_age_ms: int
    ) -> AutoMember:
        member = AutoMember(
            self._connect(self._next_client_id(membership.settings.group_id)),
            membership,
            topics,
            regex=regex,
            now_ms=self._clock,
            metadata_max_age_ms=metadata_max_age_ms,
            listener=lambda _: None,
            on_change=self._on_change,
        )
        self._auto_members.append(member)
        self._scheduler.add(member)
        return member

    def _on_change(self) -> None:
        self._scheduler.set_timer()
        self._waiting.check_conditions()

    def _chance(self) -> float:
        return self._random.random()

    def _new_uuid(self) -> str:
        return str(uuid.uuid4())

    def _topic_names(self) -> Mapping[uuid.UUID, str]:
        return self._topic_ids

    def _partition_counts(self) -> Mapping[str, int]:
        return self._topics.partitions


@noted
class RemoteGroup(GroupHandle):
    """One group of a :class:`~groupcoord.testing.remote_cluster.RemoteCluster`."""

    def __init__(self, name: str, client: RemoteCluster) -> None:
        super().__init__(name)
        self._client = client

    async def describe(self) -> GroupDescription:
        """The group as it is now."""
        request = DescribeGroupsRequest(groups=(self.name,))
        answer: DescribeGroupsResponse = await self._ask_coordinator(request)
        found = answer.groups[0]
        code = ErrorCode(found.error_code)
        if code is ErrorCode.GROUP_ID_NOT_FOUND or found.group_state == GroupState.DEAD:
            as_consumers = await self._describe_consumers()
            if as_consumers is not None:
                return as_consumers
        generation = self._client.newest_generation(self.name)
        if code not in (ErrorCode.NONE, ErrorCode.GROUP_ID_NOT_FOUND):
            return GroupDescription(group=self.name, state=code.name, generation=generation)
        return GroupDescription(
            group=self.name,
            state=GroupState.DEAD if code else found.group_state,
            generation=generation,
            protocol=found.protocol_data or None,
            members=tuple(_member(member, found.protocol_type) for member in found.members),
        )

    async def _describe_consumers(self) -> GroupDescription | None:
        """The description as a consumer group; None if it is not one, or the broker does not support them."""
        request = ConsumerGroupDescribeRequest(group_ids=(self.name,))
        try:
            answer: ConsumerGroupDescribeResponse = await self._ask_coordinator(request)
        except UnsupportedVersionError:
            return None
        found = answer.groups[0]
        if found.error_code:
            return None
        return GroupDescription(
            group=self.name,
            type=GroupType.CONSUMER,
            state=found.group_state,
            epoch=found.group_epoch,
            assignment_epoch=found.assignment_epoch,
            protocol=found.assignor_name,
            members=tuple(_consumer(member) for member in found.members),
        )

    async def offsets(self) -> Mapping[TopicPartition, int]:
        """All committed offsets."""
        request = OffsetFetchRequest(
            group_id=self.name, topics=None, groups=(OffsetFetchRequestGroup(group_id=self.name, topics=None),)
        )
        answer: OffsetFetchResponse = await self._client.ask_coordinator(
            self.name, request, limit=_OFFSET_FETCH_BY_NAME
        )
        (found,) = answer.groups
        assert found.error_code == ErrorCode.NONE, ErrorCode(found.error_code).name
        return {
            (topic.name, each.partition_index): each.committed_offset
            for topic in found.topics
            for each in topic.partitions
            if each.committed_offset >= 0
        }

    async def _log_ends(self, topics: Collection[str]) -> Mapping[TopicPartition, int]:
        return await self._client.log_ends(topics)

    async def wait_until(
        self, condition: Callable[[GroupDescription], bool], what: str, *, timeout: float | None = None
    ) -> GroupDescription:
        """Wait until ``condition`` is true of the group; ``what`` says in the error text what it should have done."""
        return await poll(
            self.describe,
            condition,
            f"group {self.name} should {what}",
            lambda seen: f"It is {seen.text()}",
            timeout=timeout,
        )

    async def wait_committed(self, topic: str, partition: int, offset: int, *, timeout: float | None = None) -> int:
        """Wait until ``offset`` or a later one is committed; returns the committed offset."""
        try:
            found = await poll(
                partial(self._stored, topic, partition),
                lambda at: at is not None and at >= offset,
                f"group {self.name} should commit {offset} for {topic}-{partition}",
                lambda at: f"It has committed {at}",
                timeout=timeout,
            )
        except WaitTimeoutError as problem:
            try:
                require_partition(topic, partition, await self._topics())
            except ValueError as unknown:
                raise WaitTimeoutError(f"{problem}: {unknown}") from None
            raise
        assert found is not None
        return found

    async def _topics(self) -> Mapping[str, int]:
        return await self._client.partition_counts()

    async def _ask_coordinator(self, request: Any, *, newest: int | None = None, codes: Codes = lambda _: ()) -> Any:
        return await poll(
            partial(self._client.ask_coordinator, self.name, request, limit=newest),
            lambda said: _NOT_READY.isdisjoint(codes(said)),
            f"the coordinator of group {self.name} should be ready",
            lambda said: f"It said {', '.join(ErrorCode(code).name for code in codes(said))}",
        )


def _member(member: DescribedGroupMember, protocol_type: str) -> MemberDescription:
    return MemberDescription(
        member_id=member.member_id,
        instance_id=member.group_instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        assigned=assigned_by(member.member_assignment, protocol_type),
    )


def _consumer(member: consumer_group_describe.Member) -> MemberDescription:
    return MemberDescription(
        member_id=member.member_id,
        instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        type=GroupType.CLASSIC if member.member_type == CLASSIC_MEMBER else GroupType.CONSUMER,
        epoch=member.member_epoch,
        assigned=_named(member.assignment),
        target=_named(member.target_assignment),
    )


def _named(assignment: consumer_group_describe.Assignment) -> frozenset[TopicPartition]:
    return frozenset((each.topic_name, number) for each in assignment.topic_partitions for number in each.partitions)

"""KafkaCluster, the base class of Cluster (in this process) and RemoteCluster: a test written for it runs on both."""

import random
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import TracebackType
from typing import Any, ClassVar, Literal, Self, TypedDict, Unpack

from groupcoord.assignors import Assignor
from groupcoord.client.completed_fetch import ConsumerRecord
from groupcoord.client.member.classic_membership import Membership
from groupcoord.client.member.consumer_membership import ConsumerMembership
from groupcoord.client.member.group_member import GroupMember
from groupcoord.client.member.member_settings import MemberSettings
from groupcoord.client.option_value_parsing import assignors_of
from groupcoord.client.producer.sent_records import RecordMetadata
from groupcoord.coordinator.consumer.member_lookup import new_member_id
from groupcoord.coordinator.group import GroupType
from groupcoord.did_you_mean import did_you_mean
from groupcoord.partitioners import DefaultPartitioner
from groupcoord.protocol.apis.create_partitions import CreatePartitionsTopic
from groupcoord.protocol.apis.create_topics import CreatableTopic, CreatableTopicConfig
from groupcoord.protocol.apis.delete_topics import DeleteTopicState
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages import (
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    ProduceResponse,
)
from groupcoord.testing.auto_member import AutoMember
from groupcoord.testing.forgotten_awaits import noted
from groupcoord.testing.group_handle import GroupDescription, GroupHandle
from groupcoord.testing.in_process_transport import MemberConnection
from groupcoord.testing.manual_classic_member import ManualMember
from groupcoord.testing.manual_consumer_member import ManualConsumer
from groupcoord.testing.manual_producer import ManualProducer
from groupcoord.testing.record_reading import Isolation
from groupcoord.testing.record_writing import ProducerRecord, batches_of, produce_request, records_of
from groupcoord.testing.topic_settings import Topic, is_number
from groupcoord.testing.transaction_handle import TransactionHandle

PRODUCE_BY_NAME = 12
"""The last version of Produce that names topics."""
_TIMEOUT_MS = 30_000
METADATA_MAX_AGE_MS = 300_000
"""Kafka's default of ``metadata.max.age.ms``."""


@dataclass(frozen=True, slots=True)
class BrokerHandle:
    """One broker of a cluster."""

    id: int
    address: str
    """``host:port``."""
    rack: str | None = None
    condition: str = field(default="", compare=False)
    """Its state and the faults injected into it, in words; empty if unknown, as for a remote cluster."""


class ConsumerOptions(TypedDict, total=False):
    """Kafka's consumer configs for group membership, with Kafka's defaults; times are milliseconds. See MemberSettings."""

    rack_id: str | None
    session_timeout_ms: int
    heartbeat_interval_ms: int
    max_poll_interval_ms: int
    request_timeout_ms: int
    retry_backoff_ms: int
    retry_backoff_max_ms: int
    auto_commit: bool
    remote_assignor: str | None


@noted
class KafkaCluster(ABC):
    """A cluster of one broker or several. Every wait takes ``timeout`` (seconds; 10 unless given) and raises
    WaitTimeoutError."""

    _consumer_defaults: ClassVar[ConsumerOptions] = {}

    def __init__(self) -> None:
        self._manual_members: list[ManualMember | ManualConsumer | ManualProducer] = []
        self._partitioner = new_partitioner()

    @abstractmethod
    async def __aenter__(self) -> Self: ...

    @abstractmethod
    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None: ...

    @property
    @abstractmethod
    def address(self) -> str:
        """``host:port``: the bootstrap server for clients."""

    @property
    @abstractmethod
    def brokers(self) -> Mapping[int, BrokerHandle]:
        """The brokers by id; the first of several in this process has the id 1."""

    # Topics.

    @abstractmethod
    async def create_topic(
        self, name: str, partitions: int = 1, *, configs: Mapping[str, object] | None = None
    ) -> None:
        """Create a topic with ``configs`` such as ``{"cleanup.policy": "compact"}``; returns when it can be used.

        Raises ValueError if the broker refuses it, and TypeError for arguments of the wrong type.
        """

    @abstractmethod
    async def add_partitions(self, topic: str, more: int) -> None:
        """Add ``more`` partitions to ``topic``. Raises ValueError if it does not exist, or the broker refuses it."""

    @abstractmethod
    async def delete_topic(self, topic: str) -> None:
        """Delete ``topic``, and the offsets committed for it. Raises ValueError if it does not exist, or the broker refuses."""

    async def produce(
        self,
        topic: str,
        *values: bytes | None,
        key: bytes | None = None,
        partition: int | None = None,
        records: Iterable[ProducerRecord] | None = None,
    ) -> list[RecordMetadata]:
        """Produce ``values``, or ``records`` with headers and timestamps; returns the partition and offset of each.

        They go to ``partition``; without one, the hash of the ``key`` chooses it as in Kafka's clients (murmur2). With neither,
        values go to partition 0, and ``records`` to changing partitions, batch by batch, as Kafka's producer sends them
        (KIP-794). The records for one partition are one batch, up to half a megabyte. Raises TypeError for values that are not
        bytes, and ValueError for an unknown topic or partition, or if the broker refuses them.
        """
        given = records_of(values, records, key, partition)
        leaders, now_ms = await self.leaders(topic), self._now_ms()
        sent: dict[int, RecordMetadata] = {}
        for leader, batches in batches_of(given, topic, leaders, self._partitioner):
            request = produce_request(batches, now_ms)
            answer: ProduceResponse = await self._ask_broker(leader, request, newest=PRODUCE_BY_NAME)
            of_partition = {each.index: each for each in answer.responses[0].partition_responses}
            for batch in batches:
                sent |= zip(batch.numbers, batch.written(of_partition[batch.partition], now_ms), strict=True)
        return [sent[number] for number in range(len(given))]

    @abstractmethod
    async def records(
        self, topic: str, partition: int | None = None, *, isolation: Isolation = "read_committed"
    ) -> list[ConsumerRecord]:
        """The records of ``topic``, of one partition or of all in order, that a consumer of that isolation level can read now.

        ``read_committed`` leaves out aborted records, and all records from the oldest open transaction on (the last stable
        offset). Raises ValueError for an unknown topic or partition.
        """

    @abstractmethod
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

    @abstractmethod
    async def leaders(self, topic: str) -> Mapping[int, int | None]:
        """The id of the broker that leads each partition of ``topic``; None where nobody does. Raises ValueError for an unknown
        topic."""

    @abstractmethod
    async def _ask_broker(self, broker_id: int, request: Any, *, newest: int) -> Any:
        """The response of that broker, in a version up to ``newest``."""

    @abstractmethod
    def _now_ms(self) -> int: ...

    # Groups.

    @abstractmethod
    def group(self, name: str) -> GroupHandle:
        """The group of that name, whether it exists or not."""

    @abstractmethod
    async def list_groups(self) -> list[str]:
        """The names of all groups that exist, in order."""

    # Transactions.

    @abstractmethod
    def transaction(self, transactional_id: str) -> TransactionHandle:
        """The transactional id and its transaction, whether it exists or not."""

    @abstractmethod
    async def list_transactions(self) -> list[str]:
        """All transactional ids that exist, in order."""

    # Waiting.

    @abstractmethod
    async def settle(self) -> None:
        """Return when every request sent so far has reached the broker."""

    @abstractmethod
    async def wait_until(self, condition: Callable[[], object], what: str, *, timeout: float | None = None) -> None:
        """Wait until ``condition()``, which looks at members in this process, is true; ``what`` describes it for the error
        text."""

    # Members in this process.

    def manual_member(
        self,
        group: str,
        topics: str | Sequence[str] = (),
        *,
        assignors: str | Assignor | Sequence[str | Assignor] = "range",
        instance_id: str | None = None,
        client_id: str | None = None,
        session_timeout_ms: int = 45_000,
        rebalance_timeout_ms: int = 60_000,
    ) -> ManualMember:
        """A member whose every request the test sends: ``join``, ``sync``, ``heartbeat``, ``commit``, ``leave``."""
        member = ManualMember(
            self._connect(client_id or self._next_client_id(group)),
            group=group,
            topics=_names(topics),
            assignors=assignors_of(assignors),
            partition_counts=self._partition_counts,
            instance_id=instance_id,
            session_timeout_ms=session_timeout_ms,
            rebalance_timeout_ms=rebalance_timeout_ms,
        )
        self._manual_members.append(member)
        return member

    def manual_consumer(
        self,
        group: str,
        topics: str | Sequence[str] = (),
        *,
        regex: str | None = None,
        assignor: str | None = None,
        instance_id: str | None = None,
        rack_id: str | None = None,
        client_id: str | None = None,
        rebalance_timeout_ms: int = 60_000,
    ) -> ManualConsumer:
        """A member of a consumer group (KIP-848) whose every heartbeat the test sends: ``join``, ``heartbeat``,
        ``acknowledge``, ``commit``, ``leave``."""
        member = ManualConsumer(
            self._connect(client_id or self._next_client_id(group)),
            group=group,
            topics=_names(topics),
            regex=regex,
            assignor=assignor,
            instance_id=instance_id,
            rack_id=rack_id,
            rebalance_timeout_ms=rebalance_timeout_ms,
            member_id=new_member_id(self._new_uuid),
            topic_names=self._topic_names,
        )
        self._manual_members.append(member)
        return member

    def manual_producer(
        self, transactional_id: str, *, version: int = 2, client_id: str | None = None
    ) -> ManualProducer:
        """A transactional producer whose every request the test sends: ``init``, ``produce``, ``commit_offsets``, ``end``.

        ``version`` is the ``transaction.version`` that it uses. With 1 it has to add partitions and groups to its transaction,
        with ``add_partitions`` and ``add_offsets``, and keeps its epoch. With 2 (KIP-890) it need not, and gets a new epoch
        with each transaction. Raises ValueError for any other version.
        """
        producer = ManualProducer(
            self._connect(client_id or self._next_client_id(transactional_id)),
            transactional_id=transactional_id,
            version=version,
            now_ms=self._now_ms,
        )
        self._manual_members.append(producer)
        return producer

    async def consumers(
        self,
        count: int,
        group: str,
        topics: str | Sequence[str] = (),
        *,
        protocol: Literal["classic", "consumer"] = "classic",
        regex: str | None = None,
        assignors: str | Assignor | Sequence[str | Assignor] | None = None,
        instance_ids: Sequence[str] | None = None,
        metadata_max_age_ms: int = METADATA_MAX_AGE_MS,
        timeout: float | None = None,
        **options: Unpack[ConsumerOptions],
    ) -> list[AutoMember]:
        """``count`` members that run by themselves; returns when the group is stable with them.

        A manual clock is advanced until then, because members learn of a rebalance by their heartbeats; ``timeout`` is then
        in seconds of that clock (600 unless given). A leader looks for new partitions every ``metadata_max_age_ms``.

        With ``protocol="consumer"`` they are members of a consumer group (KIP-848): the coordinator assigns partitions, with
        ``remote_assignor`` if one is named, and sets the heartbeat interval; instead of ``topics`` they may subscribe to the
        ``regex`` (RE2). The ``assignors`` of the classic protocol are ``range`` unless given. Raises ValueError for options
        that do not belong to the protocol.
        """
        if not isinstance(count, int) or count < 1:
            raise ValueError(f"count={count!r}: a number of members, 1 or more")
        if not group:
            raise ValueError("a group has a name that is not empty")
        names: Sequence[str | None] = [None] * count if instance_ids is None else instance_ids
        if isinstance(names, str):
            raise TypeError(f"instance_ids={names!r}: the instance id of each member, such as ['worker-1', 'worker-2']")
        if len(names) != count:
            raise ValueError(f"{count} members have {len(names)} instance ids")
        if instance_ids is not None and len(set(names)) < count:
            raise ValueError(
                f"instance_ids={names!r}: each member has its own, or it fences the one that had it before"
            )
        if protocol not in ("classic", "consumer"):
            raise ValueError(f'protocol={protocol!r}: "classic", or "consumer" for a consumer group of KIP-848')
        if protocol == "consumer" and assignors is not None:
            raise ValueError("the coordinator of a consumer group assigns: remote_assignor names one of its assignors")
        if protocol == "classic" and (regex is not None or "remote_assignor" in options):
            raise ValueError('regex and remote_assignor are of consumer groups: protocol="consumer"')
        _check_options(options, protocol)
        settings: ConsumerOptions = {**self._consumer_defaults, **options}
        new = []
        for name in names:
            of_member = MemberSettings(group_id=group, instance_id=name, **settings)
            membership = (
                ConsumerMembership(of_member, new_member_id(self._new_uuid), chance=self._chance)
                if protocol == "consumer"
                else Membership(
                    of_member, assignors_of("range" if assignors is None else assignors), chance=self._chance
                )
            )
            new.append(self._auto_member(membership, _names(topics), regex, metadata_max_age_ms))
        for member in new:
            member.start()
        await self._wait_for_members(group, new, timeout)
        return new

    @abstractmethod
    def _connect(self, client_id: str) -> MemberConnection: ...

    @abstractmethod
    def _next_client_id(self, group: str) -> str: ...

    @abstractmethod
    def _new_uuid(self) -> str: ...

    @abstractmethod
    def _topic_names(self) -> Mapping[uuid.UUID, str]: ...

    @abstractmethod
    def _partition_counts(self) -> Mapping[str, int]: ...

    @abstractmethod
    def _chance(self) -> float: ...

    @abstractmethod
    def _auto_member(
        self, membership: GroupMember, topics: Sequence[str], regex: str | None, metadata_max_age_ms: int
    ) -> AutoMember: ...

    @abstractmethod
    async def _wait_for_members(self, group: str, new: Sequence[AutoMember], timeout: float | None) -> None: ...


_OF_COORDINATOR = {
    "session_timeout_ms": "group.consumer.session.timeout.ms",
    "heartbeat_interval_ms": "group.consumer.heartbeat.interval.ms",
}
"""Options of classic members, and the broker configs that have their place in consumer groups."""


def _check_options(options: Mapping[str, object], protocol: str) -> None:
    """Raise TypeError for an unknown option or one of a wrong type, and ValueError for one of the other protocol."""
    for name, value in options.items():
        if name not in ConsumerOptions.__annotations__:
            known = list(ConsumerOptions.__annotations__)
            hint = did_you_mean(name, known, otherwise=f"there are {', '.join(known)}")
            raise TypeError(f"members have no option {name}; {hint}")
        if name.endswith("_ms") and not is_number(value):
            raise TypeError(f"{name}={value!r}: a whole number of milliseconds")
        if protocol == "consumer" and name in _OF_COORDINATOR:
            raise ValueError(
                f"{name}: in a consumer group the coordinator sets it, config={{'{_OF_COORDINATOR[name]}': …}}"
            )


def new_partitioner() -> DefaultPartitioner:
    """A DefaultPartitioner with a fixed seed, which chooses the same partitions in every run."""
    chance = random.Random(0)  # noqa: S311 - not for secrets
    return DefaultPartitioner(partial(chance.getrandbits, 32))


def creation(name: str, topic: Topic) -> CreateTopicsRequest:
    """A request that creates ``topic`` with the broker's default replication factor."""
    configs = tuple(CreatableTopicConfig(name=each, value=value) for each, value in topic.config_texts().items())
    wanted = CreatableTopic(name=name, num_partitions=topic.partitions, replication_factor=-1, configs=configs)
    return CreateTopicsRequest(topics=(wanted,), timeout_ms=_TIMEOUT_MS)


def growth(topic: str, total: int) -> CreatePartitionsRequest:
    """A request that increases the partitions of ``topic`` to ``total``."""
    return CreatePartitionsRequest(topics=(CreatePartitionsTopic(name=topic, count=total),), timeout_ms=_TIMEOUT_MS)


def deletion(topic: str) -> DeleteTopicsRequest:
    """A request that deletes ``topic``."""
    return DeleteTopicsRequest(topic_names=(topic,), topics=(DeleteTopicState(name=topic),), timeout_ms=_TIMEOUT_MS)


def has_joined(member: AutoMember, seen: GroupDescription) -> bool:
    """Is ``member`` in the group, and, in a consumer group, does it own what the coordinator says it owns?"""
    assigned = seen.assignment.get(member.member_id)
    return assigned is not None and (seen.type == GroupType.CLASSIC or assigned == member.assigned)


def raise_refusal(response: Any) -> None:
    """Raise ValueError if the response to one of these requests has an error."""
    for name in ("topics", "results", "responses"):
        for result in getattr(response, name, ()):
            if result.error_code:
                code = ErrorCode(result.error_code)
                raise ValueError(f"{result.name}: {code.name}: {result.error_message or code.text}")


def _names(topics: str | Sequence[str]) -> Sequence[str]:
    return [topics] if isinstance(topics, str) else topics

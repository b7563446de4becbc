"""What every cluster offers to a test, in this process or elsewhere: a test that asks for a ``KafkaCluster`` runs on both."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import ClassVar, Self, TypedDict, Unpack

from groupcoord.assignors import Assignor
from groupcoord.client.member.settings import MemberSettings
from groupcoord.client.options import assignors_of
from groupcoord.protocol.apis.produce import PartitionProduceData, TopicProduceData
from groupcoord.protocol.batches.record_batch import build_batch
from groupcoord.protocol.batches.records import Record
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages import ProduceRequest, ProduceResponse
from groupcoord.testing.auto_member import AutoMember
from groupcoord.testing.groups import GroupHandle
from groupcoord.testing.in_process_transport import MemberConnection
from groupcoord.testing.manual_member import ManualMember

PRODUCE_BY_NAME = 12
"""The last version of Produce that names topics."""
METADATA_MAX_AGE_MS = 300_000
"""Kafka's default of ``metadata.max.age.ms``."""


@dataclass(frozen=True, slots=True)
class BrokerHandle:
    """One broker of a cluster."""

    id: int
    address: str
    """``host:port``."""
    rack: str | None = None


class ConsumerOptions(TypedDict, total=False):
    """Kafka's settings of a consumer in a group, with Kafka's defaults; times are milliseconds. See MemberSettings."""

    rack_id: str | None
    session_timeout_ms: int
    heartbeat_interval_ms: int
    max_poll_interval_ms: int
    request_timeout_ms: int
    retry_backoff_ms: int
    retry_backoff_max_ms: int
    auto_commit: bool


class KafkaCluster(ABC):
    """One broker or several. Every wait takes ``timeout`` (seconds; 10 unless given) and raises WaitTimeoutError."""

    _consumer_defaults: ClassVar[ConsumerOptions] = {}

    def __init__(self) -> None:
        self._manual_members: list[ManualMember] = []

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
    async def create_topic(self, name: str, partitions: int = 1) -> None:
        """Create a topic; returns when it can be used. Raises ValueError if the broker refuses it."""

    @abstractmethod
    async def add_partitions(self, topic: str, more: int) -> None:
        """Give ``topic`` so many more partitions. Raises ValueError if the broker refuses it."""

    @abstractmethod
    async def delete_topic(self, topic: str) -> None:
        """Delete ``topic``, and the offsets committed for it. Raises ValueError if the broker refuses it."""

    async def produce(self, topic: str, *values: bytes, partition: int = 0, key: bytes | None = None) -> int:
        """Append ``values`` to a partition, as one batch; returns the offset of the first. Raises ValueError if refused."""
        batch = build_batch([Record(number, self._now_ms(), key, value) for number, value in enumerate(values)])
        data = TopicProduceData(name=topic, partition_data=(PartitionProduceData(index=partition, records=batch),))
        request = ProduceRequest(transactional_id=None, acks=-1, timeout_ms=30_000, topic_data=(data,))
        answer = await self._produce(request, topic, partition)
        response = answer.responses[0].partition_responses[0]
        if response.error_code:
            code = ErrorCode(response.error_code)
            raise ValueError(f"{topic}-{partition}: {code.name}: {response.error_message or code.text}")
        return response.base_offset

    @abstractmethod
    async def _produce(self, request: ProduceRequest, topic: str, partition: int) -> ProduceResponse: ...

    @abstractmethod
    def _now_ms(self) -> int: ...

    # Groups.

    @abstractmethod
    def group(self, name: str) -> GroupHandle:
        """The group of that name, whether it exists or not."""

    @abstractmethod
    async def list_groups(self) -> list[str]:
        """The names of all groups that exist, in order."""

    # Waiting.

    @abstractmethod
    async def settle(self) -> None:
        """Let everything that was asked reach the broker."""

    @abstractmethod
    async def wait_until(self, condition: Callable[[], object], what: str, *, timeout: float | None = None) -> None:
        """Wait until ``condition()`` is true of members in this process; ``what`` says in the error what should be true."""

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
        """A member of which the test takes every step: ``join``, ``sync``, ``heartbeat``, ``commit``, ``leave``."""
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

    async def consumers(
        self,
        count: int,
        group: str,
        topics: str | Sequence[str],
        *,
        assignors: str | Assignor | Sequence[str | Assignor] = "range",
        instance_ids: Sequence[str] | None = None,
        metadata_max_age_ms: int = METADATA_MAX_AGE_MS,
        timeout: float | None = None,
        **options: Unpack[ConsumerOptions],
    ) -> list[AutoMember]:
        """``count`` members that live by themselves; returns when the group is stable with them.

        On a manual clock, time passes until then, because members hear of a rebalance when they heartbeat; ``timeout`` is then
        in seconds of that clock (600 unless given). A leader looks for new partitions every ``metadata_max_age_ms``.
        """
        names: Sequence[str | None] = [None] * count if instance_ids is None else instance_ids
        if len(names) != count:
            raise ValueError(f"{count} members have {len(names)} instance ids")
        settings: ConsumerOptions = {**self._consumer_defaults, **options}
        new = [
            self._auto_member(
                MemberSettings(group_id=group, instance_id=name, **settings),
                _names(topics),
                assignors_of(assignors),
                metadata_max_age_ms,
            )
            for name in names
        ]
        for member in new:
            member.start()
        await self._wait_for_members(group, new, timeout)
        return new

    @abstractmethod
    def _connect(self, client_id: str) -> MemberConnection: ...

    @abstractmethod
    def _next_client_id(self, group: str) -> str: ...

    @abstractmethod
    def _partition_counts(self) -> Mapping[str, int]: ...

    @abstractmethod
    def _auto_member(
        self, settings: MemberSettings, topics: Sequence[str], assignors: Sequence[Assignor], metadata_max_age_ms: int
    ) -> AutoMember: ...

    @abstractmethod
    async def _wait_for_members(self, group: str, new: Sequence[AutoMember], timeout: float | None) -> None: ...


def _names(topics: str | Sequence[str]) -> Sequence[str]:
    return [topics] if isinstance(topics, str) else topics

"""The synchronous face: the classes of groupcoord.testing, every method without ``await``.

Generated from them by tools/sync_api.py (``python -m tools.docs``). ``Cluster(...).sync()`` is where it begins.
"""

import concurrent.futures
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar, Unpack

from groupcoord.assignors import Assignor, TopicPartition
from groupcoord.cluster.cluster_core import ClusterCore
from groupcoord.core.effects import Append
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages import JoinGroupResponse, SyncGroupResponse
from groupcoord.testing.appends import HeldAppends
from groupcoord.testing.auto_member import AutoMember
from groupcoord.testing.barrier import Barrier
from groupcoord.testing.cluster import Cluster
from groupcoord.testing.cluster_clock import ClusterClock
from groupcoord.testing.cluster_group import ClusterGroup
from groupcoord.testing.deadlines import PendingDeadline
from groupcoord.testing.faults import HeldRequest
from groupcoord.testing.faults.api import SyncFaults
from groupcoord.testing.groups import GroupDescription, GroupHandle
from groupcoord.testing.kafka_cluster import METADATA_MAX_AGE_MS, BrokerHandle, ConsumerOptions, KafkaCluster
from groupcoord.testing.manual_member import ManualMember
from groupcoord.testing.remote_cluster import RemoteCluster
from groupcoord.testing.remote_group import RemoteGroup
from groupcoord.testing.sync import SyncContext, SyncProxy
from groupcoord.testing.trace import Trace


class SyncAutoMember(SyncProxy[AutoMember]):
    """A member of a group that heartbeats, joins, leads and rebalances by itself."""

    @property
    def assigned(self) -> frozenset[TopicPartition]:
        """What it owns now."""
        return self._target.assigned

    @property
    def consumed(self) -> dict[TopicPartition, int]:
        """The next offset of each partition: what is committed when partitions are given up."""
        return self._target.consumed

    @property
    def rebalance_callbacks(self) -> list[tuple[str, tuple[TopicPartition, ...]]]:
        """What its callbacks were called with, in order: ("assigned", partitions), ("revoked", …), ("lost", …)."""
        return self._target.rebalance_callbacks

    @property
    def errors(self) -> list[Exception]:
        """What a call of its user would have raised."""
        return self._target.errors

    @property
    def has_left(self) -> bool:
        """Whether it sent LeaveGroup."""
        return self._target.has_left

    @property
    def client_id(self) -> str:
        """What it calls itself."""
        return self._call(lambda: self._target.client_id)

    @property
    def group(self) -> str:
        """The group that it wants to be in."""
        return self._call(lambda: self._target.group)

    @property
    def member_id(self) -> str:
        """What the coordinator calls it; empty before it was told."""
        return self._call(lambda: self._target.member_id)

    @property
    def generation(self) -> int:
        """The generation it is in, or -1."""
        return self._call(lambda: self._target.generation)

    @property
    def is_stable(self) -> bool:
        """Has it its assignment?"""
        return self._call(lambda: self._target.is_stable)

    def subscribe(self, *topics: str) -> None:
        """Want other topics; the group rebalances."""
        self._call(lambda: self._target.subscribe(*topics))

    def leave(self, reason: str = "the test said so") -> None:
        """Commit what was consumed, tell the user, and say goodbye."""
        self._call(lambda: self._target.leave(reason))

    def vanish(self) -> None:
        """Be gone without a word, as after a crash."""
        self._call(self._target.vanish)

    def pause(self) -> None:
        """Stand still, as in a long pause of the whole process: nothing is sent, answers lie unread, callbacks wait."""
        self._call(self._target.pause)

    def resume(self) -> None:
        """Go on, with all that was missed."""
        self._call(self._target.resume)

    def be_busy(self) -> None:
        """The user is busy with records: callbacks wait, heartbeats go on, until ``max_poll_interval_ms`` is over."""
        self._call(self._target.be_busy)

    def poll(self) -> None:
        """The user waits for records again."""
        self._call(self._target.poll)

    def commit(
        self,
        offsets: Mapping[TopicPartition, int],
        done: Callable[[dict[TopicPartition, ErrorCode]], None] | None = None,
    ) -> None:
        """Commit ``offsets`` as who it is now; ``done`` is called with what came of each partition."""
        self._call(lambda: self._target.commit(offsets, done))

    def refresh_metadata(self) -> None:
        """Ask for the topics that matter to it: if it leads and their partitions have changed, it joins again."""
        self._call(self._target.refresh_metadata)


class SyncManualMember(SyncProxy[ManualMember]):
    """A member of ``group`` that does nothing by itself; times are milliseconds."""

    @property
    def group(self) -> str:
        """The target's ``group``."""
        return self._target.group

    @property
    def topics(self) -> tuple[str, ...]:
        """The target's ``topics``."""
        return self._target.topics

    @property
    def instance_id(self) -> str | None:
        """The target's ``instance_id``."""
        return self._target.instance_id

    @instance_id.setter
    def instance_id(self, value: str | None) -> None:
        self._target.instance_id = value

    @property
    def session_timeout_ms(self) -> int:
        """The target's ``session_timeout_ms``."""
        return self._target.session_timeout_ms

    @property
    def rebalance_timeout_ms(self) -> int:
        """The target's ``rebalance_timeout_ms``."""
        return self._target.rebalance_timeout_ms

    @property
    def member_id(self) -> str:
        """Empty before the coordinator gave it one."""
        return self._target.member_id

    @member_id.setter
    def member_id(self, value: str) -> None:
        self._target.member_id = value

    @property
    def generation(self) -> int:
        """-1 before the first generation."""
        return self._target.generation

    @generation.setter
    def generation(self, value: int) -> None:
        self._target.generation = value

    @property
    def leader(self) -> str:
        """The member id of the leader of its generation."""
        return self._target.leader

    @leader.setter
    def leader(self, value: str) -> None:
        self._target.leader = value

    @property
    def protocol(self) -> str:
        """The assignor that the group agreed on."""
        return self._target.protocol

    @protocol.setter
    def protocol(self, value: str) -> None:
        self._target.protocol = value

    @property
    def assigned(self) -> frozenset[TopicPartition]:
        """What the last SyncGroup gave it."""
        return self._target.assigned

    @assigned.setter
    def assigned(self, value: frozenset[TopicPartition]) -> None:
        self._target.assigned = value

    @property
    def client_id(self) -> str:
        """What it calls itself."""
        return self._call(lambda: self._target.client_id)

    @property
    def is_leader(self) -> bool:
        """Did the last JoinGroup make it the leader?"""
        return self._call(lambda: self._target.is_leader)

    def join(
        self, *, reason: str | None = None, come_back: bool = True, version: int | None = None
    ) -> concurrent.futures.Future[JoinGroupResponse]:
        """JoinGroup; answered when the others have joined, too, or with an error code."""
        return self._future(lambda: self._target.join(reason=reason, come_back=come_back, version=version))

    def sync(
        self, assignment: Mapping[str, Sequence[TopicPartition]] | None = None
    ) -> concurrent.futures.Future[SyncGroupResponse]:
        """SyncGroup; answered when the leader's has come. A leader sends ``assignment``, or what its assignor says."""
        return self._future(lambda: self._target.sync(assignment))

    def heartbeat(self) -> concurrent.futures.Future[ErrorCode]:
        """Heartbeat."""
        return self._future(self._target.heartbeat)

    def commit(
        self, offsets: Mapping[TopicPartition, int]
    ) -> concurrent.futures.Future[dict[TopicPartition, ErrorCode]]:
        """OffsetCommit; the answer says for each partition what came of it."""
        return self._future(lambda: self._target.commit(offsets))

    def leave(self, reason: str | None = None) -> concurrent.futures.Future[ErrorCode]:
        """LeaveGroup; the answer is the code for this member."""
        return self._future(lambda: self._target.leave(reason))

    def vanish(self) -> None:
        """Be gone without a word, as after a crash: what was asked is not answered any more."""
        self._call(self._target.vanish)

    def rejoin(self) -> None:
        """JoinGroup and SyncGroup, one after the other. Raises AssertionError if either is refused."""
        self._wait(self._target.rejoin)


class SyncBarrier(SyncProxy[Barrier]):
    """``size`` requests are held back by ``hold``."""

    @property
    def waiting(self) -> tuple[HeldRequest, ...]:
        """The requests that have gathered so far, in the order in which they came."""
        return self._call(lambda: self._target.waiting)

    def wait(self, *, timeout: float | None = None) -> tuple[HeldRequest, ...]:
        """Wait until all are there. Raises HoldTimeout, which says which requests are."""
        return self._wait(lambda: self._target.wait(timeout=timeout))

    def release(self, order: Sequence[int] | None = None) -> None:
        """Let them go: in the order in which they came, or by these indexes into ``waiting``."""
        self._call(lambda: self._target.release(order))


class SyncHeldAppends(SyncProxy[HeldAppends]):
    """The appends that a rule holds back."""

    def wait(self, count: int = 1, *, timeout: float | None = None) -> list[Append]:
        """Wait until ``count`` appends are held. Raises WaitTimeoutError."""
        return self._wait(lambda: self._target.wait(count, timeout=timeout))

    def release(self) -> None:
        """Let all that is held be stored, in order."""
        self._call(self._target.release)

    def fail(self, error: str | ErrorCode) -> None:
        """Let all that is held fail with ``error``, as the log says it. Raises KeyError for what is no error's name."""
        self._call(lambda: self._target.fail(error))


class SyncClusterClock(SyncProxy[ClusterClock]):
    """``kafka.clock``. Methods that let time pass raise ClockError unless the cluster was made with ``clock="manual"``."""

    def now_ms(self) -> int:
        """The present time: milliseconds since 1970."""
        return self._call(self._target.now_ms)

    def deadlines(self, *, group: str | None = None, everything: bool = False) -> list[PendingDeadline]:
        """What will happen if nothing else does, earliest first; with ``everything`` also what concerns no group."""
        return self._call(lambda: self._target.deadlines(group=group, everything=everything))

    def advance(self, seconds: float, *, heartbeats: bool = True) -> None:
        """Let time pass; everything that falls due happens at its own moment, in order, before this returns."""
        self._wait(lambda: self._target.advance(seconds, heartbeats=heartbeats))

    def advance_to_next(self, *, group: str | None = None, heartbeats: bool = False) -> PendingDeadline:
        """Let time pass until the next deadline of ``group``, or of any, that included; returns what it was."""
        return self._wait(lambda: self._target.advance_to_next(group=group, heartbeats=heartbeats))

    def advance_until(
        self,
        condition: Callable[[], object | Awaitable[object]],
        *,
        timeout: float | None = None,
        heartbeats: bool = True,
    ) -> None:
        """Let time pass, deadline by deadline, until ``condition()`` is true, or what it returns is when awaited."""
        self._wait(lambda: self._target.advance_until(condition, timeout=timeout, heartbeats=heartbeats))


GroupHandleT = TypeVar("GroupHandleT", bound=GroupHandle)


class SyncGroupHandle(SyncProxy[GroupHandleT]):
    """The group called ``name``, whether it exists or not. Every wait takes ``timeout`` (seconds; 10 unless given)"""

    def describe(self) -> GroupDescription:
        """The group as it is now."""
        return self._wait(self._target.describe)

    def offsets(self) -> Mapping[TopicPartition, int]:
        """All committed offsets."""
        return self._wait(self._target.offsets)

    def state(self) -> str:
        """Kafka's word for its state: Empty, PreparingRebalance, CompletingRebalance, Stable or Dead."""
        return self._wait(self._target.state)

    def assignment(self) -> Mapping[str, frozenset[TopicPartition]]:
        """Member id → what it was assigned in the present generation; a remote broker tells it of a stable group."""
        return self._wait(self._target.assignment)

    def committed(self, topic: str, partition: int) -> int | None:
        """The committed offset; None if there is none."""
        return self._wait(lambda: self._target.committed(topic, partition))

    def wait_until(
        self, condition: Callable[[GroupDescription], bool], what: str, *, timeout: float | None = None
    ) -> GroupDescription:
        """Wait until ``condition`` is true of the group; ``what`` says in the error what the group should have done."""
        return self._wait(lambda: self._target.wait_until(condition, what, timeout=timeout))

    def wait_committed(self, topic: str, partition: int, offset: int, *, timeout: float | None = None) -> int:
        """Wait until ``offset`` or a later one is committed; returns the committed offset."""
        return self._wait(lambda: self._target.wait_committed(topic, partition, offset, timeout=timeout))

    def wait_stable(
        self, members: int | None = None, *, generation: int | None = None, timeout: float | None = None
    ) -> GroupDescription:
        """Wait until the group is Stable, with so many members and in that generation or a later one, where given."""
        return self._wait(lambda: self._target.wait_stable(members, generation=generation, timeout=timeout))

    def wait_generation(self, number: int, *, timeout: float | None = None) -> GroupDescription:
        """Wait for the beginning of generation ``number`` or a later one, whatever its members have done so far."""
        return self._wait(lambda: self._target.wait_generation(number, timeout=timeout))

    def wait_rebalancing(self, *, timeout: float | None = None) -> GroupDescription:
        """Wait until the group rebalances: the members are joining, or waiting for the leader's assignment."""
        return self._wait(lambda: self._target.wait_rebalancing(timeout=timeout))

    def wait_empty(self, *, timeout: float | None = None) -> GroupDescription:
        """Wait until the group exists and has no members."""
        return self._wait(lambda: self._target.wait_empty(timeout=timeout))

    def wait_dead(self, *, timeout: float | None = None) -> GroupDescription:
        """Wait until there is no such group."""
        return self._wait(lambda: self._target.wait_dead(timeout=timeout))

    def remove_member(self, member: str) -> None:
        """Remove ``member`` (its member id, instance id or client id) as an administrator does, with LeaveGroup."""
        self._wait(lambda: self._target.remove_member(member))


class SyncClusterGroup(SyncGroupHandle[ClusterGroup]):
    """One group of a :class:`~groupcoord.testing.cluster.Cluster`. Actions raise ValueError for what cannot be done."""

    def description(self) -> GroupDescription:
        """As ``describe``, without ``await``: for conditions."""
        return self._call(self._target.description)

    def lag(self) -> Mapping[TopicPartition, int]:
        """How many records are behind each committed offset, for partitions that exist."""
        return self._wait(self._target.lag)

    def expire_member(self, member: str) -> None:
        """The session of ``member`` (its member id, instance id or client id) ends now. Raises LookupError, ValueError."""
        self._wait(lambda: self._target.expire_member(member))

    def fence_member(self, instance_id: str) -> None:
        """Another member takes the place of the static member ``instance_id``, which is fenced."""
        self._wait(lambda: self._target.fence_member(instance_id))

    def force_rebalance(self, reason: str = "the test wants it") -> None:
        """The members have to join again; ``reason`` is what events say."""
        self._wait(lambda: self._target.force_rebalance(reason))

    def unload_coordinator(self) -> None:
        """The broker coordinates this group no longer, nor the others of its partition, until ``load_coordinator``."""
        self._wait(self._target.unload_coordinator)

    def load_coordinator(self) -> None:
        """Read the groups of that partition of ``__consumer_offsets`` from the log, and coordinate them again."""
        self._wait(self._target.load_coordinator)

    def move_coordinator(self, to: int) -> None:
        """Let the broker with the id ``to`` coordinate this group, and the others of its partition."""
        self._wait(lambda: self._target.move_coordinator(to))


class SyncRemoteGroup(SyncGroupHandle[RemoteGroup]):
    """One group of a :class:`~groupcoord.testing.remote_cluster.RemoteCluster`."""


KafkaClusterT = TypeVar("KafkaClusterT", bound=KafkaCluster)


class SyncKafkaCluster(SyncContext[KafkaClusterT]):
    """One broker or several. Every wait takes ``timeout`` (seconds; 10 unless given) and raises WaitTimeoutError."""

    @property
    def address(self) -> str:
        """``host:port``: the bootstrap server for clients."""
        return self._call(lambda: self._target.address)

    @property
    def brokers(self) -> Mapping[int, BrokerHandle]:
        """The brokers by id; the first of several in this process has the id 1."""
        return self._call(lambda: self._target.brokers)

    def create_topic(self, name: str, partitions: int = 1) -> None:
        """Create a topic; returns when it can be used. Raises ValueError if the broker refuses it."""
        self._wait(lambda: self._target.create_topic(name, partitions))

    def add_partitions(self, topic: str, more: int) -> None:
        """Give ``topic`` so many more partitions. Raises ValueError if the broker refuses it."""
        self._wait(lambda: self._target.add_partitions(topic, more))

    def delete_topic(self, topic: str) -> None:
        """Delete ``topic``, and the offsets committed for it. Raises ValueError if the broker refuses it."""
        self._wait(lambda: self._target.delete_topic(topic))

    def produce(self, topic: str, *values: bytes, partition: int = 0, key: bytes | None = None) -> int:
        """Append ``values`` to a partition, as one batch; returns the offset of the first. Raises ValueError if refused."""
        return self._wait(lambda: self._target.produce(topic, *values, partition=partition, key=key))

    def group(self, name: str) -> SyncGroupHandle[Any]:
        """The group of that name, whether it exists or not."""
        return SyncGroupHandle(self._call(lambda: self._target.group(name)), self._thread)

    def list_groups(self) -> list[str]:
        """The names of all groups that exist, in order."""
        return self._wait(self._target.list_groups)

    def settle(self) -> None:
        """Let everything that was asked reach the broker."""
        self._wait(self._target.settle)

    def wait_until(self, condition: Callable[[], object], what: str, *, timeout: float | None = None) -> None:
        """Wait until ``condition()`` is true of members in this process; ``what`` says in the error what should be true."""
        self._wait(lambda: self._target.wait_until(condition, what, timeout=timeout))

    def manual_member(
        self,
        group: str,
        topics: str | Sequence[str] = (),
        *,
        assignors: str | Assignor | Sequence[str | Assignor] = "range",
        instance_id: str | None = None,
        client_id: str | None = None,
        session_timeout_ms: int = 45000,
        rebalance_timeout_ms: int = 60000,
    ) -> SyncManualMember:
        """A member of which the test takes every step: ``join``, ``sync``, ``heartbeat``, ``commit``, ``leave``."""
        return SyncManualMember(
            self._call(
                lambda: self._target.manual_member(
                    group,
                    topics,
                    assignors=assignors,
                    instance_id=instance_id,
                    client_id=client_id,
                    session_timeout_ms=session_timeout_ms,
                    rebalance_timeout_ms=rebalance_timeout_ms,
                )
            ),
            self._thread,
        )

    def consumers(
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
    ) -> list[SyncAutoMember]:
        """``count`` members that live by themselves; returns when the group is stable with them."""
        return [
            SyncAutoMember(each, self._thread)
            for each in self._wait(
                lambda: self._target.consumers(
                    count,
                    group,
                    topics,
                    assignors=assignors,
                    instance_ids=instance_ids,
                    metadata_max_age_ms=metadata_max_age_ms,
                    timeout=timeout,
                    **options,
                )
            )
        ]


class SyncCluster(SyncKafkaCluster[Cluster]):
    """A Kafka cluster at ``address`` while its ``async with`` block runs; ``sync()`` is the same without asyncio."""

    @property
    def is_started(self) -> bool:
        """Whether it was started at least once: it has a trace from then on."""
        return self._call(lambda: self._target.is_started)

    @property
    def addresses(self) -> list[str]:
        """``host:port`` of every broker, in the order of their ids."""
        return self._call(lambda: self._target.addresses)

    @property
    def core(self) -> ClusterCore:
        """The brokers and coordinators themselves, for what no method here offers."""
        return self._call(lambda: self._target.core)

    @property
    def server_errors(self) -> list[Exception]:
        """What went wrong in the server so far that should not have; the end of the block raises it."""
        return self._call(lambda: self._target.server_errors)

    @property
    def clock(self) -> SyncClusterClock:
        """The time of the cluster."""
        return SyncClusterClock(self._call(lambda: self._target.clock), self._thread)

    @property
    def faults(self) -> SyncFaults:
        """Rules for requests that fail, wait or are lost: ``kafka.faults.when("Heartbeat").drop()``; see docs/faults.md."""
        return self._call(lambda: self._target.faults).sync()

    @property
    def trace(self) -> Trace:
        """Everything that happened, with its causes; see docs/trace.md."""
        return self._call(lambda: self._target.trace)

    def stop(self) -> None:
        """Close the ports and all connections; what is stored is kept. Time may pass meanwhile."""
        self._wait(self._target.stop)

    def restart(self) -> None:
        """Start again on the same ports, after ``stop``: groups are what ``__consumer_offsets`` says."""
        self._wait(self._target.restart)

    def move_leader(self, topic: str, partition: int, to: int) -> None:
        """Let the broker with the id ``to`` lead a partition, in the next leader epoch. Raises KeyError, ValueError."""
        self._wait(lambda: self._target.move_leader(topic, partition, to))

    def group(self, name: str) -> SyncClusterGroup:
        """The group of that name, whether it exists or not."""
        return SyncClusterGroup(self._call(lambda: self._target.group(name)), self._thread)

    def fail_append(self, error: str | ErrorCode, *, group: str | None = None, times: int = 1) -> None:
        """Let the next appends to ``__consumer_offsets``, those of ``group`` if given, fail with ``error``."""
        self._call(lambda: self._target.fail_append(error, group=group, times=times))

    def hold_append(self, *, group: str | None = None, times: int = 1) -> SyncHeldAppends:
        """Let the next appends to ``__consumer_offsets`` wait until ``release``, as if other replicas did not have them yet."""
        return SyncHeldAppends(self._call(lambda: self._target.hold_append(group=group, times=times)), self._thread)

    def barrier(self, api: Any, *, size: int, group: str | None = None) -> SyncBarrier:
        """Let the next ``size`` requests to ``api`` gather, to let them go in an order of the test's choice."""
        return SyncBarrier(self._call(lambda: self._target.barrier(api, size=size, group=group)), self._thread)


class SyncRemoteCluster(SyncKafkaCluster[RemoteCluster]):
    """The cluster at ``bootstrap_servers`` (``host:port``), any Kafka or groupcoord, while the ``async with`` block runs."""

    def group(self, name: str) -> SyncRemoteGroup:
        """The group of that name, whether it exists or not."""
        return SyncRemoteGroup(self._call(lambda: self._target.group(name)), self._thread)

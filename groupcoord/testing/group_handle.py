"""GroupHandle, ``kafka.group(name)`` of every kind of cluster: describing a group, waiting for its states, its committed
offsets and lag, and removing members; and the descriptions that it returns.
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from groupcoord.assignors import TopicPartition
from groupcoord.client.member.metadata_and_commit_requests import (
    OFFSET_COMMIT_BY_NAME,
    offset_commit_request,
    partition_errors,
)
from groupcoord.coordinator.classic.classic_group_state import GroupState
from groupcoord.coordinator.consumer.consumer_group_members_and_epochs import ConsumerGroupState
from groupcoord.core.events import counted
from groupcoord.protocol.apis.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from groupcoord.protocol.apis.offset_delete import OffsetDeleteRequestPartition, OffsetDeleteRequestTopic
from groupcoord.protocol.consumer_protocol import PROTOCOL_TYPE, read_assignment
from groupcoord.protocol.errors import ErrorCode, WireError
from groupcoord.protocol.messages import (
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    OffsetCommitRequest,
    OffsetDeleteRequest,
    OffsetDeleteResponse,
)
from groupcoord.testing.forgotten_awaits import noted
from groupcoord.testing.topic_settings import offsets_of, require_partition, require_partitions

_REBALANCING: frozenset[str] = frozenset(
    {
        GroupState.PREPARING_REBALANCE,
        GroupState.COMPLETING_REBALANCE,
        ConsumerGroupState.ASSIGNING,
        ConsumerGroupState.RECONCILING,
    }
)
Codes = Callable[[Any], Iterable[int]]
_HAS_MEMBERS = "It has members: only while it has none can offsets be set from outside."


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberDescription:
    """A member of a group at one moment. ``assigned`` is its assignment in the present generation.

    In a consumer group (KIP-848), ``assigned`` are the partitions that the member may use now, ``revoking`` those that it has
    yet to revoke, and ``target`` is its target assignment. A remote broker does not tell ``session_timeout_ms``, ``protocols``,
    ``waits_in`` and ``state``, and reports ``revoking`` partitions as ``assigned``.
    """

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    assigned: frozenset[TopicPartition]
    session_timeout_ms: int | None = None
    protocols: tuple[str, ...] = ()
    waits_in: str | None = None
    """``join`` or ``sync`` while a JoinGroup or SyncGroup request of the member waits in the broker."""
    type: str = "classic"
    """Its protocol, ``classic`` or ``consumer``: a consumer group may have members of both (KIP-1099)."""
    epoch: int | None = None
    """In a consumer group: its member epoch."""
    state: str | None = None
    """In a consumer group: STABLE, UNREVOKED_PARTITIONS or UNRELEASED_PARTITIONS."""
    revoking: frozenset[TopicPartition] = frozenset()
    target: frozenset[TopicPartition] = frozenset()

    @property
    def is_reconciled(self) -> bool:
        """In a consumer group: does it own exactly its target assignment?"""
        return self.epoch is not None and self.assigned == self.target and not self.revoking

    def name(self, *, by_id: bool = False) -> str:
        """The member as text: its client id, or ``by_id`` its member id, and the request in which it waits, or its epoch."""
        called = self.member_id if by_id else self.client_id or self.member_id
        if self.epoch is not None:
            return f"{called} at {self.epoch}{'' if self.state in (None, 'STABLE') else f' {self.state}'}"
        return f"{called} (waits in {self.waits_in})" if self.waits_in else called


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupDescription:
    """A group at one moment; ``state`` is as in Kafka, and ``Dead`` if the group does not exist.

    While the coordinator of the group is not loaded, ``state`` is the name of the error that clients get. A remote broker tells
    neither the leader nor the generation: there, ``generation`` is the latest that a member of this test got, or -1. For a
    consumer group (KIP-848), ``type`` is ``consumer``, ``epoch`` the group epoch, ``assignment_epoch`` the epoch of its target
    assignment, and ``protocol`` the server-side assignor; it has no generation.
    """

    group: str
    state: str
    protocol: str | None = None
    members: tuple[MemberDescription, ...] = ()
    generation: int = -1
    leader: str | None = None
    type: str = "classic"
    epoch: int = -1
    assignment_epoch: int = -1

    def member(self, name: str) -> MemberDescription:
        """The member that has ``name`` as its member id, instance id or client id. Raises LookupError unless one has."""
        found = [each for each in self.members if name in (each.member_id, each.instance_id, each.client_id)]
        if len(found) != 1:
            many = "no member" if not found else f"{len(found)} members"
            raise LookupError(f"{many} called {name!r} in {self.text()}")
        return found[0]

    @property
    def assignment(self) -> Mapping[str, frozenset[TopicPartition]]:
        """Member id → its assigned partitions."""
        return {member.member_id: member.assigned for member in self.members}

    def text(self) -> str:
        """The group in one line; members that share a client id have their member ids in it."""
        same_client = Counter(each.client_id for each in self.members)
        members = sorted(self.members, key=lambda each: (each.client_id, each.member_id))
        who = ", ".join(each.name(by_id=same_client[each.client_id] > 1) for each in members)
        count = counted(len(self.members), "member")
        generation = "" if self.generation < 0 else f" gen={self.generation}"
        generation += "" if self.epoch < 0 else f" epoch={self.epoch}"
        return f"{self.group} {self.state}{generation}, {count}{f': {who}' if who else ''}"


@noted
class GroupHandle(ABC):
    """The group called ``name``, whether it exists or not. Every wait takes ``timeout`` (seconds; 10 unless given)
    and raises WaitTimeoutError, which says what was seen last."""

    name: str
    """The group id."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"

    # State.

    @abstractmethod
    async def describe(self) -> GroupDescription:
        """The group as it is now."""

    @abstractmethod
    async def offsets(self) -> Mapping[TopicPartition, int]:
        """All committed offsets."""

    async def state(self) -> str:
        """Its state, as in Kafka: Empty, PreparingRebalance, CompletingRebalance, Stable or Dead; for a consumer group Empty,
        Assigning, Reconciling, Stable or Dead."""
        return (await self.describe()).state

    async def assignment(self) -> Mapping[str, frozenset[TopicPartition]]:
        """Member id → its assigned partitions in the present generation; a remote broker tells them only of a stable group."""
        return (await self.describe()).assignment

    async def committed(self, topic: str, partition: int) -> int | None:
        """The committed offset; None if there is none. Raises ValueError for an unknown topic or partition."""
        found = await self._stored(topic, partition)
        if found is None:
            require_partition(topic, partition, await self._topics())
        return found

    async def _stored(self, topic: str, partition: int) -> int | None:
        return (await self.offsets()).get((topic, partition))

    async def lag(self) -> Mapping[TopicPartition, int | None]:
        """The lag of each partition: its log end offset minus the committed offset; None where no offset is committed, for
        which ``kafka-consumer-groups.sh --describe`` shows a dash.

        It is negative if the committed offset is beyond the end of the log. It has every partition of each topic for which the
        group has committed offsets or assigned partitions. Raises LookupError if the group does not exist, if it has neither
        offsets nor partitions yet, or if its coordinator is not loaded.
        """
        seen, committed = await self.describe(), await self.offsets()
        if seen.state == GroupState.DEAD:
            raise LookupError(f"there is no group {self.name!r}, so nothing has a lag")
        if seen.state in ErrorCode.__members__:
            raise LookupError(f"the lag of group {self.name!r} is not known: who asks for it is told {seen.state}")
        topics = {topic for topic, _ in committed}
        topics |= {topic for each in seen.members for topic, _ in each.assigned | each.revoking | each.target}
        ends = await self._log_ends(topics)
        if not ends:
            raise LookupError(f"there is no partition that the group has, or has committed for: {seen.text()}")
        return {
            partition: None if (offset := committed.get(partition)) is None else end - offset
            for partition, end in ends.items()
        }

    @abstractmethod
    async def _log_ends(self, topics: Collection[str]) -> Mapping[TopicPartition, int]:
        """The log end offset of each partition of ``topics``."""

    # Waiting.

    @abstractmethod
    async def wait_until(
        self, condition: Callable[[GroupDescription], bool], what: str, *, timeout: float | None = None
    ) -> GroupDescription:
        """Wait until ``condition`` is true of the group; ``what`` says in the error text what it should have done."""

    @abstractmethod
    async def wait_committed(self, topic: str, partition: int, offset: int, *, timeout: float | None = None) -> int:
        """Wait until ``offset`` or a later one is committed; returns the committed offset."""

    async def wait_stable(
        self,
        members: int | None = None,
        *,
        generation: int | None = None,
        epoch: int | None = None,
        timeout: float | None = None,
    ) -> GroupDescription:
        """Wait until the group is Stable; if given, with so many ``members``, in that ``generation`` or ``epoch`` or a later
        one."""

        def fits(seen: GroupDescription) -> bool:
            return (
                seen.state == GroupState.STABLE
                and members in (None, len(seen.members))
                and (generation is None or seen.generation >= generation)
                and (epoch is None or seen.epoch >= epoch)
            )

        wanted = "be stable" + ("" if members is None else f" with {counted(members, 'member')}")
        wanted += "" if generation is None else f" in generation {generation}"
        wanted += "" if epoch is None else f" at epoch {epoch}"
        return await self.wait_until(fits, wanted, timeout=timeout)

    async def wait_generation(self, number: int, *, timeout: float | None = None) -> GroupDescription:
        """Wait until generation ``number`` or a later one has begun; its members may not have synced yet."""
        return await self.wait_until(
            lambda seen: seen.generation >= number and seen.state != GroupState.DEAD,
            f"begin generation {number}",
            timeout=timeout,
        )

    async def wait_epoch(self, number: int, *, timeout: float | None = None) -> GroupDescription:
        """Wait until a consumer group is at epoch ``number`` or a later one; its members may still be at earlier ones."""
        return await self.wait_until(lambda seen: seen.epoch >= number, f"be at epoch {number}", timeout=timeout)

    async def wait_reconciled(
        self, *members: str, epoch: int | None = None, timeout: float | None = None
    ) -> GroupDescription:
        """Wait until ``members`` (member ids, instance ids or client ids), or all, own exactly their target assignment.

        If given, it has to be the target assignment of ``epoch`` or a later one. A group without members is never reconciled.
        """

        def fits(seen: GroupDescription) -> bool:
            try:
                found = [seen.member(name) for name in members] or seen.members
            except LookupError:
                return False
            at = max(seen.epoch if epoch is None else epoch, 0)
            return (
                bool(found)
                and seen.assignment_epoch >= at
                and all(each.is_reconciled and (each.epoch or 0) >= at for each in found)
            )

        who = f"have {', '.join(members)}" if members else "be"
        wanted = f"{who} reconciled{'' if epoch is None else f' to epoch {epoch}'}"
        return await self.wait_until(fits, wanted, timeout=timeout)

    async def wait_rebalancing(self, *, timeout: float | None = None) -> GroupDescription:
        """Wait until the group rebalances: its state is PreparingRebalance or CompletingRebalance, or, of a consumer group,
        Assigning or Reconciling."""
        return await self.wait_until(lambda seen: seen.state in _REBALANCING, "rebalance", timeout=timeout)

    async def wait_empty(self, *, timeout: float | None = None) -> GroupDescription:
        """Wait until the group exists and has no members."""
        return await self.wait_until(lambda seen: seen.state == GroupState.EMPTY, "be empty", timeout=timeout)

    async def wait_dead(self, *, timeout: float | None = None) -> GroupDescription:
        """Wait until the group does not exist."""
        return await self.wait_until(lambda seen: seen.state == GroupState.DEAD, "be gone", timeout=timeout)

    # Actions.

    async def remove_member(self, member: str) -> None:
        """Remove ``member`` (its member id, instance id or client id) as an administrator does, with LeaveGroup.

        Raises LookupError, and ValueError if the broker refuses it.
        """
        member_id = (await self.describe()).member(member).member_id
        identity = MemberIdentity(member_id=member_id, reason="an administrator removes it")
        request = LeaveGroupRequest(group_id=self.name, members=(identity,), member_id=member_id)
        response: LeaveGroupResponse = await self._ask_coordinator(request)
        code = ErrorCode(response.error_code or response.members[0].error_code)
        if code:
            raise ValueError(f"{member} is not removed: {code.name}")

    async def commit(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Commit ``offsets`` as an administrator does, for a group without members; a group that does not exist is created.

        ``{("orders", 0): 5}``: the record at offset 5 is the next to be consumed. Raises ValueError if the broker refuses one
        of them, and TypeError for arguments of the wrong type.
        """
        request = offset_commit(self.name, offsets)
        answer = await self._ask_coordinator(
            request, newest=OFFSET_COMMIT_BY_NAME, codes=lambda said: partition_errors(said).values()
        )
        await self._check(partition_errors(answer))

    async def delete_offsets(self, *partitions: TopicPartition) -> None:
        """Delete the committed offsets of ``partitions``, such as ``("orders", 0)``; it is no error if none is committed.

        Raises ValueError if the broker refuses it, as it does while members are subscribed to the topic, and TypeError for
        arguments of the wrong type.
        """
        request = offset_deletion(self.name, partitions)
        answer: OffsetDeleteResponse = await self._ask_coordinator(request, codes=lambda said: [said.error_code])
        if answer.error_code:
            raise await self._refusal("no offset is deleted", answer.error_code)
        await self._check(partition_errors(answer))

    async def delete(self) -> None:
        """Delete the group, and its offsets. Raises ValueError if it has members or does not exist."""
        request = DeleteGroupsRequest(groups_names=(self.name,))
        answer: DeleteGroupsResponse = await self._ask_coordinator(
            request, codes=lambda said: [said.results[0].error_code]
        )
        if answer.results[0].error_code:
            raise await self._refusal("it is not deleted", answer.results[0].error_code)

    async def _check(self, errors: Mapping[TopicPartition, ErrorCode]) -> None:
        for (topic, number), code in errors.items():
            if code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                require_partition(topic, number, await self._topics())
            if code:
                raise await self._refusal(f"{topic}-{number} is refused", code)

    async def _refusal(self, what: str, code: int) -> ValueError:
        error = ErrorCode(code)
        why = _HAS_MEMBERS if error is ErrorCode.UNKNOWN_MEMBER_ID else error.text
        return ValueError(f"{what}: {error.name}: {why} The group: {(await self.describe()).text()}")

    @abstractmethod
    async def _topics(self) -> Mapping[str, int]:
        """The number of partitions of each topic."""

    @abstractmethod
    async def _ask_coordinator(self, request: Any, *, newest: int | None = None, codes: Codes = lambda _: ()) -> Any:
        """The response of the coordinator of the group, in a version up to ``newest``; ``codes`` returns its error codes.

        A remote coordinator is asked again while one of these says that it is not ready.
        """


def assigned_by(assignment: bytes, protocol_type: str | None) -> frozenset[TopicPartition]:
    """The partitions in the bytes of an assignment, if ``protocol_type`` is that of consumers; otherwise none."""
    if protocol_type != PROTOCOL_TYPE or not assignment:
        return frozenset()
    try:
        found = read_assignment(assignment)
    except WireError:
        return frozenset()
    return frozenset((each.topic, number) for each in found.assigned_partitions for number in each.partitions)


def offset_commit(group: str, offsets: object) -> OffsetCommitRequest:
    """An OffsetCommit request for ``group`` that comes from no member. Raises TypeError and ValueError for invalid offsets."""
    found = offsets_of(offsets)
    if not found:
        raise ValueError('there are no offsets to commit: {("orders", 0): 5} commits 5 for orders-0')
    for (topic, number), offset in found.items():
        if offset < 0:
            raise ValueError(
                f"the offset of {topic}-{number} is 0 or more, not {offset}; delete_offsets takes one away"
            )
    return offset_commit_request(group, -1, "", None, found)


def offset_deletion(group: str, partitions: Iterable[TopicPartition]) -> OffsetDeleteRequest:
    """An OffsetDelete request for ``partitions``. Raises TypeError and ValueError for invalid partitions."""
    found = list(partitions)
    if not found:
        raise ValueError('there are no offsets to delete: ("orders", 0) is a partition to delete that of')
    require_partitions(found)
    topics = tuple(
        OffsetDeleteRequestTopic(
            name=topic, partitions=tuple(OffsetDeleteRequestPartition(partition_index=number) for _, number in each)
        )
        for topic, each in groupby(sorted(set(found)), key=lambda partition: partition[0])
    )
    return OffsetDeleteRequest(group_id=group, topics=topics)

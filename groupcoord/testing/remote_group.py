"""A group of a broker elsewhere, as a test looks at it: by DescribeGroups and OffsetFetch, again and again where it waits.

A broker tells less of a group than a cluster knows: not its generation, nor who leads. The members in the test know that.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from groupcoord.coordinator.classic.states import GroupState
from groupcoord.protocol.apis.describe_groups import DescribedGroupMember
from groupcoord.protocol.apis.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages import DescribeGroupsRequest, DescribeGroupsResponse, OffsetFetchResponse
from groupcoord.testing.views import SeenGroup, SeenMember, TopicPartition, assigned_by
from groupcoord.testing.waiting import poll

_BY_NAME = 9
"""The last version of OffsetFetch that names topics; the later ones have ids."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteView(SeenGroup[SeenMember]):
    """A group at one moment, as its coordinator describes it: what was assigned it tells of stable groups."""


class Asking(Protocol):
    """Who asks: :class:`~groupcoord.testing.remote_cluster.RemoteCluster`."""

    async def ask_coordinator(self, group: str, request: Any, *, limit: int | None = None) -> Any:
        """The answer of the coordinator of ``group``, in a version up to ``limit``."""

    def newest_generation(self, group: str) -> int:
        """The latest generation that a member in this program was told, or -1."""

    async def until(self, condition: Callable[[], object], what: str, *, timeout_s: float | None = None) -> None:
        """Wait until ``condition`` holds of members in this program."""


class RemoteGroup:
    """One group, whether it exists already or not. Everything asks the broker: everything is awaited."""

    def __init__(self, name: str, asking: Asking) -> None:
        self.name = name
        self._asking = asking

    def __repr__(self) -> str:
        return f"<RemoteGroup {self.name}>"

    # What it is.

    async def view(self) -> RemoteView:
        """The group as it is now."""
        request = DescribeGroupsRequest(groups=(self.name,))
        answer: DescribeGroupsResponse = await self._asking.ask_coordinator(self.name, request)
        found = answer.groups[0]
        code = ErrorCode(found.error_code)
        if code not in (ErrorCode.NONE, ErrorCode.GROUP_ID_NOT_FOUND):
            return RemoteView(group=self.name, state=code.name, protocol=None, members=())
        return RemoteView(
            group=self.name,
            state=GroupState.DEAD if code else found.group_state,
            protocol=found.protocol_data or None,
            members=tuple(_member(member, found.protocol_type) for member in found.members),
        )

    async def state(self) -> str:
        """Kafka's word for its state: Empty, PreparingRebalance, CompletingRebalance, Stable or Dead."""
        return (await self.view()).state

    async def assignment(self) -> Mapping[str, frozenset[TopicPartition]]:
        """Member id → what it was assigned; the broker tells that of a stable group."""
        return (await self.view()).assignment

    async def offsets(self) -> Mapping[TopicPartition, int]:
        """All committed offsets."""
        request = OffsetFetchRequest(
            group_id=self.name, topics=None, groups=(OffsetFetchRequestGroup(group_id=self.name, topics=None),)
        )
        answer: OffsetFetchResponse = await self._asking.ask_coordinator(self.name, request, limit=_BY_NAME)
        (found,) = answer.groups
        assert found.error_code == ErrorCode.NONE, ErrorCode(found.error_code).name
        return {
            (topic.name, each.partition_index): each.committed_offset
            for topic in found.topics
            for each in topic.partitions
            if each.committed_offset >= 0
        }

    async def committed(self, topic: str, partition: int) -> int | None:
        """The committed offset; None if there is none."""
        return (await self.offsets()).get((topic, partition))

    # Waiting. Every one of these raises WaitTimeoutError, which says what was seen last.

    async def stable(self, members: int | None = None, *, timeout_s: float | None = None) -> RemoteView:
        """Wait until the group is Stable, with so many members if given."""
        wanted = "be stable" + ("" if members is None else f" with {members} members")
        return await self.becomes(
            lambda view: view.state == GroupState.STABLE and members in (None, len(view.members)),
            wanted,
            timeout_s=timeout_s,
        )

    async def generation(self, number: int, *, timeout_s: float | None = None) -> int:
        """Wait until a member in this program was told generation ``number`` or a later one; returns which."""
        await self._asking.until(
            lambda: self._asking.newest_generation(self.name) >= number,
            f"group {self.name} should begin generation {number}",
            timeout_s=timeout_s,
        )
        return self._asking.newest_generation(self.name)

    async def rebalancing(self, *, timeout_s: float | None = None) -> RemoteView:
        """Wait until a rebalance is going on: the members are joining, or waiting for the leader."""
        return await self.becomes(
            lambda view: view.state in (GroupState.PREPARING_REBALANCE, GroupState.COMPLETING_REBALANCE),
            "rebalance",
            timeout_s=timeout_s,
        )

    async def empty(self, *, timeout_s: float | None = None) -> RemoteView:
        """Wait until the group is there and has no members."""
        return await self.becomes(lambda view: view.state == GroupState.EMPTY, "be empty", timeout_s=timeout_s)

    async def dead(self, *, timeout_s: float | None = None) -> RemoteView:
        """Wait until there is no such group."""
        return await self.becomes(lambda view: view.state == GroupState.DEAD, "be gone", timeout_s=timeout_s)

    async def commits(self, topic: str, partition: int, offset: int, *, timeout_s: float | None = None) -> int:
        """Wait until ``offset`` or a later one is committed; returns what is."""
        found = await poll(
            partial(self.committed, topic, partition),
            lambda at: at is not None and at >= offset,
            f"group {self.name} should commit {offset} for {topic}-{partition}",
            lambda at: f"It has committed {at}",
            timeout_s=timeout_s,
        )
        assert found is not None
        return found

    async def becomes(
        self, condition: Callable[[RemoteView], bool], what: str, *, timeout_s: float | None = None
    ) -> RemoteView:
        """Wait until ``condition`` holds of the group; ``what`` says in the error what it should have done."""
        return await poll(
            self.view,
            condition,
            f"group {self.name} should {what}",
            lambda view: f"It is {view.text()}",
            timeout_s=timeout_s,
        )


def _member(member: DescribedGroupMember, protocol_type: str) -> SeenMember:
    return SeenMember(
        member_id=member.member_id,
        instance_id=member.group_instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        assigned=assigned_by(member.member_assignment, protocol_type),
    )

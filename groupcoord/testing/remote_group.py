"""A group of a broker elsewhere: described by DescribeGroups and OffsetFetch, which waits ask again and again."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Protocol

from groupcoord.assignors import TopicPartition
from groupcoord.coordinator.classic.states import GroupState
from groupcoord.protocol.apis.describe_groups import DescribedGroupMember
from groupcoord.protocol.apis.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages import DescribeGroupsRequest, DescribeGroupsResponse, OffsetFetchResponse
from groupcoord.testing.groups import GroupDescription, GroupHandle, MemberDescription, assigned_by
from groupcoord.testing.request_builders import raise_removal_refusal, removal
from groupcoord.testing.waiting import poll

_BY_NAME = 9
"""The last version of OffsetFetch that names topics; the later ones have ids."""


class CoordinatorClient(Protocol):
    """What a group asks: :class:`~groupcoord.testing.remote_cluster.RemoteCluster`."""

    async def ask_coordinator(self, group: str, request: Any, *, limit: int | None = None) -> Any:
        """The answer of the coordinator of ``group``, in a version up to ``limit``."""

    def newest_generation(self, group: str) -> int:
        """The latest generation that a member in this program was told, or -1."""


class RemoteGroup(GroupHandle):
    """One group of a :class:`~groupcoord.testing.remote_cluster.RemoteCluster`."""

    def __init__(self, name: str, client: CoordinatorClient) -> None:
        super().__init__(name)
        self._client = client

    async def describe(self) -> GroupDescription:
        """The group as it is now."""
        request = DescribeGroupsRequest(groups=(self.name,))
        answer: DescribeGroupsResponse = await self._client.ask_coordinator(self.name, request)
        found = answer.groups[0]
        code = ErrorCode(found.error_code)
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

    async def offsets(self) -> Mapping[TopicPartition, int]:
        """All committed offsets."""
        request = OffsetFetchRequest(
            group_id=self.name, topics=None, groups=(OffsetFetchRequestGroup(group_id=self.name, topics=None),)
        )
        answer: OffsetFetchResponse = await self._client.ask_coordinator(self.name, request, limit=_BY_NAME)
        (found,) = answer.groups
        assert found.error_code == ErrorCode.NONE, ErrorCode(found.error_code).name
        return {
            (topic.name, each.partition_index): each.committed_offset
            for topic in found.topics
            for each in topic.partitions
            if each.committed_offset >= 0
        }

    async def wait_until(
        self, condition: Callable[[GroupDescription], bool], what: str, *, timeout: float | None = None
    ) -> GroupDescription:
        """Wait until ``condition`` is true of the group; ``what`` says in the error what the group should have done."""
        return await poll(
            self.describe,
            condition,
            f"group {self.name} should {what}",
            lambda seen: f"It is {seen.text()}",
            timeout=timeout,
        )

    async def wait_committed(self, topic: str, partition: int, offset: int, *, timeout: float | None = None) -> int:
        """Wait until ``offset`` or a later one is committed; returns the committed offset."""
        found = await poll(
            partial(self.committed, topic, partition),
            lambda at: at is not None and at >= offset,
            f"group {self.name} should commit {offset} for {topic}-{partition}",
            lambda at: f"It has committed {at}",
            timeout=timeout,
        )
        assert found is not None
        return found

    async def remove_member(self, member: str) -> None:
        """Remove ``member`` (its member id, instance id or client id) as an administrator does, with LeaveGroup.

        Raises LookupError, and ValueError if the broker refuses it.
        """
        request = removal(self.name, (await self.describe()).member(member).member_id)
        raise_removal_refusal(await self._client.ask_coordinator(self.name, request), member)


def _member(member: DescribedGroupMember, protocol_type: str) -> MemberDescription:
    return MemberDescription(
        member_id=member.member_id,
        instance_id=member.group_instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        assigned=assigned_by(member.member_assignment, protocol_type),
    )

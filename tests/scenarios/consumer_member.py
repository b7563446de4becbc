"""A member of a consumer group (KIP-848) whose every heartbeat the scenario sends."""

import uuid
from collections.abc import Iterable, Mapping
from itertools import count, islice
from typing import Any

from groupcoord.assignors import TopicPartition
from groupcoord.client.member.metadata_and_commit_requests import (
    OFFSET_COMMIT_BY_NAME,
    offset_commit_request,
    partition_errors,
)
from groupcoord.core.java_hash_order import partition_for
from groupcoord.protocol.apis.consumer_group_describe import ConsumerGroupDescribeRequest, DescribedGroup
from groupcoord.protocol.apis.consumer_group_heartbeat import TopicPartitions
from groupcoord.protocol.apis.incremental_alter_configs import AlterableConfig, AlterConfigsResource
from groupcoord.protocol.apis.offset_fetch import OffsetFetchRequestGroup, OffsetFetchRequestTopics
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    IncrementalAlterConfigsRequest,
    OffsetFetchRequest,
    OffsetFetchResponse,
)
from groupcoord.testing import RemoteCluster

_GROUP_RESOURCE = 32
_ROUNDS = 200
_OFFSETS_PARTITIONS = 50
_PROBES = 2_000


class ConsumerMember:
    """One member. It applies each response unless that is ``lost``, and revokes nothing before ``report``."""

    def __init__(
        self,
        cluster: RemoteCluster,
        group: str,
        topics: Iterable[str] | None,
        member_id: str,
        *,
        instance_id: str | None = None,
        rebalance_timeout_ms: int = 60_000,
    ) -> None:
        self.cluster, self.group, self.member_id = cluster, group, member_id
        self.topics = None if topics is None else tuple(topics)
        self.instance_id, self.rebalance_timeout_ms = instance_id, rebalance_timeout_ms
        self.epoch = 0
        self.assigned: Mapping[uuid.UUID, tuple[int, ...]] = {}

    @property
    def numbers(self) -> list[int]:
        """The numbers of its assigned partitions, in order; for scenarios with one topic."""
        return sorted(number for numbers in self.assigned.values() for number in numbers)

    async def ask(
        self, *, lost: bool = False, version: int | None = None, **said: Any
    ) -> ConsumerGroupHeartbeatResponse:
        """Send a heartbeat with the fields ``said``; if ``lost``, ignore its response."""
        fields = {"member_epoch": self.epoch, "instance_id": self.instance_id, **said}
        request = ConsumerGroupHeartbeatRequest(**{"group_id": self.group, "member_id": self.member_id, **fields})
        answer: ConsumerGroupHeartbeatResponse = await self.cluster.ask_coordinator(self.group, request, limit=version)
        if not answer.error_code and not lost:
            self.epoch = answer.member_epoch
            if answer.assignment is not None:
                self.assigned = {
                    each.topic_id: tuple(sorted(each.partitions))
                    for each in answer.assignment.topic_partitions
                    if each.topic_id is not None
                }
        return answer

    async def join(
        self, *, lost: bool = False, version: int | None = None, **said: Any
    ) -> ConsumerGroupHeartbeatResponse:
        """Send the first heartbeat, which has all fields."""
        everything = {
            "member_epoch": 0,
            "rebalance_timeout_ms": self.rebalance_timeout_ms,
            "subscribed_topic_names": self.topics,
            "topic_partitions": (),
        }
        return await self.ask(lost=lost, version=version, **{**everything, **said})

    async def heartbeat(self, **said: Any) -> ErrorCode:
        """Send a heartbeat without changes: the owned partitions stay the same."""
        return ErrorCode((await self.ask(**said)).error_code)

    def owns(self) -> tuple[TopicPartitions, ...]:
        """Its assigned partitions, in the form of the owned partitions of a request."""
        return tuple(TopicPartitions(topic_id=each, partitions=numbers) for each, numbers in self.assigned.items())

    async def report(self, **said: Any) -> ErrorCode:
        """Send a heartbeat that reports exactly the assigned partitions as owned: all others are revoked."""
        return ErrorCode((await self.ask(topic_partitions=self.owns(), **said)).error_code)

    async def leave(self, epoch: int = -1) -> ErrorCode:
        """Leave for good, or temporarily with the epoch -2."""
        return ErrorCode((await self.ask(member_epoch=epoch, lost=True)).error_code)

    async def commit(
        self, offsets: Mapping[TopicPartition, int], *, epoch: int | None = None, version: int = OFFSET_COMMIT_BY_NAME
    ) -> dict[TopicPartition, ErrorCode]:
        """Send OffsetCommit, with its epoch or another one."""
        sent = self.epoch if epoch is None else epoch
        request = offset_commit_request(self.group, sent, self.member_id, self.instance_id, offsets)
        return partition_errors(await self.cluster.ask_coordinator(self.group, request, limit=version))

    async def committed(self, partition: TopicPartition, *, epoch: int | None = None) -> tuple[ErrorCode, int | None]:
        """Send OffsetFetch, with its epoch or another one; returns the error of the group, and the offset if there is
        none."""
        topic = OffsetFetchRequestTopics(name=partition[0], partition_indexes=(partition[1],))
        sent = self.epoch if epoch is None else epoch
        asked = OffsetFetchRequestGroup(
            group_id=self.group, member_id=self.member_id, member_epoch=sent, topics=(topic,)
        )
        answer: OffsetFetchResponse = await self.cluster.ask_coordinator(
            self.group, OffsetFetchRequest(groups=(asked,)), limit=OFFSET_COMMIT_BY_NAME
        )
        (found,) = answer.groups
        code = ErrorCode(found.error_code)
        return code, None if code else found.topics[0].partitions[0].committed_offset


async def assigns_at_once(cluster: RemoteCluster, group: str) -> None:
    """Make ``group`` compute its assignment at each change, and not at most once a second as by default."""
    change = AlterableConfig(name="consumer.assignment.interval.ms", config_operation=0, value="0")
    resource = AlterConfigsResource(resource_type=_GROUP_RESOURCE, resource_name=group, configs=(change,))
    answer = await cluster.ask_coordinator(group, IncrementalAlterConfigsRequest(resources=(resource,)))
    assert answer.responses[0].error_code == ErrorCode.NONE, answer.responses[0]
    await _until_coordinator_knows_all(cluster, group)


async def _until_coordinator_knows_all(cluster: RemoteCluster, group: str) -> None:
    """Wait until the coordinator of ``group`` knows all topics and configurations.

    A real coordinator learns of them in order, some time after the broker: when it knows a topic that was created last, it
    knows the rest. Members of other groups in the same partition of ``__consumer_offsets`` test that.
    """
    topic = f"{group}-last"
    await cluster.create_topic(topic)
    home = partition_for(group, _OFFSETS_PARTITIONS)
    alike = (name for number in count() if partition_for(name := f"{group}-probe{number}", _OFFSETS_PARTITIONS) == home)
    for name in islice(alike, _PROBES):
        probe = ConsumerMember(cluster, name, [topic], "probe")
        await probe.join()
        await probe.leave()
        if probe.assigned:
            return
    raise AssertionError(f"the coordinator of {group} never knew {topic}")


async def described(cluster: RemoteCluster, group: str) -> DescribedGroup:
    """The group in the response to ConsumerGroupDescribe."""
    answer = await cluster.ask_coordinator(group, ConsumerGroupDescribeRequest(group_ids=(group,)))
    found: DescribedGroup = answer.groups[0]
    return found


async def settled(*members: ConsumerMember) -> None:
    """Send heartbeats of all members in turn, in which each revokes what it has to, until the group is stable."""
    first = members[0]
    for _ in range(_ROUNDS):
        for member in members:
            assert await member.report() == ErrorCode.NONE
        if (await described(first.cluster, first.group)).group_state == "Stable":
            return
    raise AssertionError(f"the group is still {(await described(first.cluster, first.group)).group_state}")


async def joined(cluster: RemoteCluster, group: str, topic: str, *names: str) -> list[ConsumerMember]:
    """The members of a new group, which join one after the other, each with its assignment."""
    await assigns_at_once(cluster, group)
    members: list[ConsumerMember] = []
    for name in names:
        member = ConsumerMember(cluster, group, [topic], name)
        answer = await member.join()
        assert answer.error_code == ErrorCode.NONE, answer.error_message
        members.append(member)
        await settled(*members)
    return members

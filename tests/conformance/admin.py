"""The administrator in stories: describe, list and delete groups, commit without a membership, fetch offsets."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from groupcoord.protocol.apis.leave_group import MemberIdentity
from groupcoord.protocol.apis.offset_delete import OffsetDeleteRequestPartition, OffsetDeleteRequestTopic
from groupcoord.protocol.apis.offset_fetch import (
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from groupcoord.protocol.messages import (
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    FindCoordinatorRequest,
    LeaveGroupRequest,
    ListGroupsRequest,
    OffsetCommitRequest,
    OffsetDeleteRequest,
    OffsetFetchRequest,
)
from tests.conformance.actors import Client, Stagehand
from tests.conformance.members import Commits, Member, commit_topics
from tests.conformance.story import Story

Wanted = Mapping[str, Sequence[int]] | None


def fetch_offsets(
    version: int, groups: Mapping[str, Wanted], *, ids: Mapping[str, Any] | None = None, stable: bool = False
) -> OffsetFetchRequest:
    """An OffsetFetch in the shape of ``version``: one group up to version 7, any number from 8 on (KIP-709)."""
    if version >= 8:
        return OffsetFetchRequest(
            require_stable=stable,
            groups=tuple(
                OffsetFetchRequestGroup(
                    group_id=group_id,
                    topics=None
                    if wanted is None
                    else tuple(
                        OffsetFetchRequestTopics(
                            name=topic, topic_id=(ids or {}).get(topic), partition_indexes=tuple(partitions)
                        )
                        for topic, partitions in wanted.items()
                    ),
                )
                for group_id, wanted in groups.items()
            ),
        )
    ((group_id, wanted),) = groups.items()
    topics = (
        None
        if wanted is None
        else tuple(
            OffsetFetchRequestTopics(name=topic, partition_indexes=tuple(partitions))
            for topic, partitions in wanted.items()
        )
    )
    return OffsetFetchRequest(group_id=group_id, topics=topics, require_stable=stable)


@dataclass(eq=False)
class Admin(Client):
    """An admin client, or a consumer without a group membership."""

    # Topic ids by name, for the versions that say topics by id.
    ids: dict[str, Any] = field(default_factory=dict)

    def describes(self, *groups: str, version: int = 6, **changes: Any) -> Any:
        """DescribeGroups."""
        return self.asks(replace(DescribeGroupsRequest(groups=groups), **changes), version, does="describes")

    def lists(self, *, states: Sequence[str] = (), types: Sequence[str] = (), version: int = 5) -> Any:
        """ListGroups."""
        request = ListGroupsRequest(states_filter=tuple(states), types_filter=tuple(types))
        return self.asks(request, version, does="lists groups")

    def deletes(self, *groups: str, version: int = 2) -> Any:
        """DeleteGroups."""
        return self.asks(DeleteGroupsRequest(groups_names=groups), version, does="deletes groups")

    def deletes_offsets(self, group_id: str, wanted: Mapping[str, Sequence[int]]) -> Any:
        """OffsetDelete."""
        topics = tuple(
            OffsetDeleteRequestTopic(
                name=topic,
                partitions=tuple(OffsetDeleteRequestPartition(partition_index=index) for index in partitions),
            )
            for topic, partitions in wanted.items()
        )
        return self.asks(OffsetDeleteRequest(group_id=group_id, topics=topics), 0, does="deletes offsets")

    def commits(self, group_id: str, commits: Commits, version: int = 9, **changes: Any) -> Any:
        """OffsetCommit outside of any generation."""
        request = OffsetCommitRequest(group_id=group_id, member_id="", topics=commit_topics(commits, self.ids))
        return self.asks(replace(request, **changes), version, does="commits")

    def fetches(self, group_id: str, wanted: Wanted, version: int = 9, *, stable: bool = False) -> Any:
        """OffsetFetch of one group; ``None`` asks for all topics."""
        request = fetch_offsets(version, {group_id: wanted}, ids=self.ids, stable=stable)
        return self.asks(request, version, does="fetches offsets")

    def fetches_many(self, groups: Mapping[str, Wanted], version: int = 9) -> Any:
        """OffsetFetch of several groups."""
        return self.asks(fetch_offsets(version, groups, ids=self.ids), version, does="fetches offsets of groups")

    def finds(self, *keys: str, version: int = 6, key_type: int = 0) -> Any:
        """FindCoordinator in the shape of ``version``."""
        request = FindCoordinatorRequest(key=keys[0] if keys else "", key_type=key_type, coordinator_keys=keys)
        return self.asks(request, version, does="looks for the coordinator")

    def removes(self, group_id: str, *who: Member | str | tuple[str, str | None], version: int = 5) -> Any:
        """LeaveGroup on behalf of others: members by id, ``str`` by instance id, a tuple as (member id, instance id)."""
        identities = []
        for item in who:
            match item:
                case Member():
                    identities.append(MemberIdentity(member_id=item.member_id))
                case str():
                    identities.append(MemberIdentity(group_instance_id=item))
                case (member_id, instance_id):
                    identities.append(MemberIdentity(member_id=member_id, group_instance_id=instance_id))
        first = identities[0].member_id if identities else ""
        request = LeaveGroupRequest(group_id=group_id, members=tuple(identities), member_id=first)
        return self.asks(request, version, does="removes members")


def until_forgotten(s: Story, stage: Stagehand, group_id: str, topic: str) -> None:
    """Wait until the group's coordinator has heard that a topic is gone. Raises StoryBroken when it never does."""

    def known() -> set[str]:
        # Of all topics the coordinator tells what it has; of those that are asked for, only what the metadata know.
        return {each.name for each in stage.ask(fetch_offsets(9, {group_id: None}), 9).groups[0].topics}

    s.until(lambda: topic not in known(), f"{group_id} has forgotten {topic}")

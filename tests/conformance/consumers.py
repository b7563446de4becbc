"""Members of consumer groups (KIP-848): they remember their epoch and assignment, and every request can be told otherwise."""

import itertools
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from groupcoord.protocol.apis.consumer_group_heartbeat import TopicPartitions
from groupcoord.protocol.messages import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupHeartbeatRequest,
    DeleteGroupsRequest,
    OffsetCommitRequest,
    OffsetFetchRequest,
)
from tests.conformance.actors import Client, Stagehand
from tests.conformance.admin import Admin, Wanted, fetch_offsets
from tests.conformance.codec import Answer
from tests.conformance.members import Commits, commit_topics
from tests.conformance.offsets_topic import partition_of
from tests.conformance.story import Story

Owned = Mapping[Any, Sequence[int]]
"""Partitions by the id of their topic."""


def owned_partitions(owned: Owned) -> tuple[TopicPartitions, ...]:
    """``owned`` as a heartbeat says it."""
    return tuple(
        TopicPartitions(topic_id=topic_id, partitions=tuple(partitions)) for topic_id, partitions in owned.items()
    )


@dataclass(eq=False)
class Consumer(Client):
    """A consumer of the new protocol. Its member id is its own name unless told: made-up ids are the same in every telling."""

    group_id: str = ""
    member_id: str | None = None
    instance: str | None = None
    rack: str | None = None
    topics: Sequence[str] | None = None
    regex: str | None = None
    assignor: str | None = None
    rebalance_ms: int = 60_000
    version: int = 1
    ids: dict[str, uuid.UUID] = field(default_factory=dict)
    """The ids of topics by name, where requests name topics by their ids."""
    epoch: int = 0
    assigned: Owned = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.client_id is None:
            self.client_id = self.name
        if self.member_id is None:
            self.member_id = self.name

    def request(self, **changes: Any) -> ConsumerGroupHeartbeatRequest:
        """A heartbeat that says nothing new, with ``changes``."""
        request = ConsumerGroupHeartbeatRequest(
            group_id=self.group_id, member_id=self.member_id or "", member_epoch=self.epoch, instance_id=self.instance
        )
        return replace(request, **changes)

    def join_request(self, **changes: Any) -> ConsumerGroupHeartbeatRequest:
        """The first heartbeat, which says everything, with ``changes``."""
        request = self.request(
            member_epoch=0,
            rack_id=self.rack,
            rebalance_timeout_ms=self.rebalance_ms,
            subscribed_topic_names=None if self.topics is None else tuple(self.topics),
            subscribed_topic_regex=self.regex,
            server_assignor=self.assignor,
            topic_partitions=(),
        )
        return replace(request, **changes)

    def joins(self, *, does: str = "joins", version: int | None = None, **changes: Any) -> Any:
        """Heartbeat with epoch 0."""
        return self.asks(self.join_request(**changes), version, does=does)

    def heartbeats(self, *, does: str = "heartbeats", version: int | None = None, **changes: Any) -> Any:
        """Heartbeat that says nothing new but ``changes``."""
        return self.asks(self.request(**changes), version, does=does)

    def owns(self, owned: Owned | None = None, *, does: str = "", **changes: Any) -> Any:
        """Heartbeat that says what it owns: all that it has been assigned, unless told."""
        said = owned
        if said is None:  # in an order that does not depend on random ids
            names = self.story.names
            said = dict(sorted(self.assigned.items(), key=lambda item: str(names.topic(str(item[0])))))
        does = does or ("says what it owns" if owned is None else "says that it owns something else")
        return self.heartbeats(does=does, topic_partitions=owned_partitions(said), **changes)

    def leaves(self, epoch: int = -1, *, does: str = "leaves", version: int | None = None, **changes: Any) -> Any:
        """Heartbeat with epoch -1, or with -2 as a static member that will be back."""
        return self.asks(self.request(member_epoch=epoch, **changes), version, does=does)

    def commits(self, commits: Commits, version: int = 9, *, does: str = "commits", **changes: Any) -> Any:
        """OffsetCommit with the member's epoch."""
        request = OffsetCommitRequest(
            group_id=self.group_id,
            generation_id_or_member_epoch=self.epoch,
            member_id=self.member_id or "",
            group_instance_id=self.instance,
            topics=commit_topics(commits, self.ids),
        )
        return self.asks(replace(request, **changes), version, does=does)

    def fetches_offsets(self, wanted: Wanted, version: int = 9, *, stable: bool = False, **changes: Any) -> Any:
        """OffsetFetch with the member's id and epoch, which are said from version 9 on."""
        request = fetch_offsets(version, {self.group_id: wanted}, ids=self.ids, stable=stable)
        return self.asks(self._as_member(request, changes), version, does="fetches offsets as a member")

    def _as_member(self, request: OffsetFetchRequest, changes: Mapping[str, Any]) -> OffsetFetchRequest:
        said = {"member_id": self.member_id, "member_epoch": self.epoch, **changes}
        return replace(request, groups=tuple(replace(group, **said) for group in request.groups))

    def asks(self, message: Any, version: int | None = None, *, does: str = "") -> Any:
        """As a client; a heartbeat has the member's version unless told."""
        if version is None and isinstance(message, ConsumerGroupHeartbeatRequest):
            version = self.version
        return super().asks(message, version, does=does)

    def learns(self, answer: Answer) -> Any:
        """Keep id, epoch and assignment of an answer without an error."""
        message = answer.message
        if hasattr(message, "heartbeat_interval_ms") and message.error_code == 0:
            self.member_id, self.epoch = message.member_id, message.member_epoch
            if message.assignment is not None:
                self.assigned = {each.topic_id: each.partitions for each in message.assignment.topic_partitions}
            elif self.epoch < 0:
                self.assigned = {}
        return message


@dataclass(eq=False)
class Watcher(Admin):
    """An admin client that knows consumer groups."""

    def looks_at(self, *groups: str, version: int = 1, authorized: bool = False) -> Any:
        """ConsumerGroupDescribe."""
        return self.asks(
            self.describe_request(*groups, authorized=authorized), version, does="describes consumer groups"
        )

    def describe_request(self, *groups: str, authorized: bool = False) -> ConsumerGroupDescribeRequest:
        """What it sends to look."""
        return ConsumerGroupDescribeRequest(group_ids=groups, include_authorized_operations=authorized)


def settled(*members: Consumer, rounds: int = 8) -> None:
    """Every member heartbeats, with what it owns, until a round changes nothing."""
    for _ in range(rounds):
        before = [(member.epoch, dict(member.assigned)) for member in members]
        for member in members:
            member.owns()
        if before == [(member.epoch, dict(member.assigned)) for member in members]:
            return


def until_coordinated(s: Story, stage: Stagehand, group_id: str, topic: str, partitions: int) -> None:
    """Wait until the coordinator of a group, not only the broker, knows ``partitions`` partitions of a topic (0: none).

    Other groups of the same partition of the offsets topic ask for it, and are deleted again.
    """
    home = partition_of(group_id)
    probes = (name for number in itertools.count() if partition_of(name := f"{s.name}-probe{number}") == home)

    def known() -> int:
        probe = next(probes)
        asked = Consumer(s, "probe", group_id=probe, topics=[topic])
        found = stage.ask(asked.join_request()).assignment.topic_partitions
        stage.ask(asked.request(member_epoch=-1))
        stage.ask(DeleteGroupsRequest(groups_names=(probe,)))
        return sum(len(each.partitions) for each in found)

    s.until(lambda: known() == partitions, f"the coordinator knows {partitions} partitions of {topic}")


def topics_with_ids(s: Story, stage: Stagehand, **partitions: int) -> tuple[list[str], dict[str, uuid.UUID]]:
    """Topics with so many partitions each, in the order given: their names, and their ids by name.

    The coordinator knows them, too: it hears of topics in order, so that whoever knows the last one knows all.
    """
    names = [stage.topic(suffix, partitions=count) for suffix, count in partitions.items()]
    until_coordinated(s, stage, s.name, names[-1], list(partitions.values())[-1])
    return names, {name: stage.topic_id(name) for name in names}

"""Members of a consumer group in a World, which keep their epoch and assignment, and send what the test says."""

import itertools
import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from groupcoord.coordinator.consumer.consumer_group import ConsumerGroup
from groupcoord.coordinator.consumer.member import AWAY_EPOCH, LEAVE_EPOCH
from groupcoord.coordinator.group import ConsumerGroupConfig
from groupcoord.protocol import consumer_protocol
from groupcoord.protocol import messages as m
from groupcoord.protocol.apis import ApiKey
from groupcoord.protocol.apis.consumer_group_describe import DescribedGroup
from groupcoord.protocol.apis.consumer_group_heartbeat import TopicPartitions
from groupcoord.protocol.apis.offset_fetch import OffsetFetchRequestGroup, OffsetFetchRequestTopics
from groupcoord.protocol.errors import ErrorCode
from tests.coordinator.world import GROUP, Asked, Member, Stored, World

Owned = Mapping[str, Sequence[int]]
"""Partitions by the name of their topic."""

_KINDS = {
    "ConsumerGroupMetadataKey": "group",
    "ConsumerGroupPartitionMetadataKey": "topics",
    "ConsumerGroupMemberMetadataKey": "member",
    "ConsumerGroupTargetAssignmentMetadataKey": "assigned",
    "ConsumerGroupTargetAssignmentMemberKey": "target",
    "ConsumerGroupCurrentMemberAssignmentKey": "current",
    "ConsumerGroupRegularExpressionKey": "regex",
    "GroupMetadataKey": "classic",
    "OffsetCommitKey": "offset",
}


class ConsumerWorld(World):
    """A World that computes a target assignment at once, and gives members ids as a broker does.

    ``of_group`` are properties of groups by their own.
    """

    def __init__(self, *, of_group: Mapping[str, ConsumerGroupConfig] | None = None, **config: Any) -> None:
        ids = itertools.count(1)
        broker = ConsumerGroupConfig(
            config.pop("group_consumer_session_timeout_ms", 45_000),
            config.pop("group_consumer_heartbeat_interval_ms", 5_000),
            config.pop("group_consumer_assignment_interval_ms", 0),
        )
        self.configs = dict(of_group or {})
        super().__init__(
            new_uuid=lambda: str(uuid.UUID(int=next(ids))),
            config_of=lambda group_id: self.configs.get(group_id, broker),
            **config,
        )

    def consumer(self, name: str = "a", *topics: str, **terms: Any) -> "Consumer":
        """Somebody who is not in the group yet; subscribes to t unless told."""
        return Consumer(self, name, topics or None, **terms)

    def joined_consumers(self, names: str, *topics: str, **terms: Any) -> "list[Consumer]":
        """A group of consumers, one letter each, that have reached their target."""
        consumers = [self.consumer(name, *topics, **terms) for name in names]
        for consumer in consumers:
            consumer.join()
        settle(consumers)
        return consumers

    def classic(self, name: str, *topics: str, **terms: Any) -> Member:
        """Somebody who speaks the classic protocol, and offers range; subscribes to t unless told."""
        return self.member(name, protocols=offer(*topics or ("t",)), **terms)

    @property
    def consumers(self) -> ConsumerGroup:
        """The consumer group."""
        found = self.coordinator.shard_of(GROUP).machine.groups.get(GROUP)
        assert isinstance(found, ConsumerGroup)
        return found

    @property
    def state(self) -> str:
        """The state that ConsumerGroupDescribe tells."""
        return self.described().group_state

    def ask_description(self, *groups: str, version: int = 1, operations: bool = False) -> Asked:
        """ConsumerGroupDescribe."""
        request = m.ConsumerGroupDescribeRequest(group_ids=groups, include_authorized_operations=operations)
        return self.ask(ApiKey.CONSUMER_GROUP_DESCRIBE, request, version=version)

    def described(self, group: str = GROUP, *, version: int = 1) -> DescribedGroup:
        """What ConsumerGroupDescribe tells of one group."""
        (answer,) = self.ask_description(group, version=version).answer.groups
        found: DescribedGroup = answer
        return found

    def fetch_as_member(self, member_id: str | None, epoch: int) -> ErrorCode:
        """The error of an OffsetFetch by a member."""
        topics = (OffsetFetchRequestTopics(name="t", topic_id=self.topics.topic_id("t"), partition_indexes=(0,)),)
        asked = OffsetFetchRequestGroup(group_id=GROUP, member_id=member_id, member_epoch=epoch, topics=topics)
        (answer,) = self.ask(ApiKey.OFFSET_FETCH, m.OffsetFetchRequest(groups=(asked,)), version=9).answer.groups
        return ErrorCode(answer.error_code)

    def named(self, topic_partitions: Iterable[Any]) -> dict[str, list[int]]:
        """Partitions by the name of their topic."""
        names = {topic_id: name for name, topic_id in self.topics.ids.items()}
        return {names.get(each.topic_id, str(each.topic_id)): list(each.partitions) for each in topic_partitions}

    def written(self, since: int = 0) -> list[str]:
        """The kinds of the records of each batch from number ``since`` on; a tombstone has a minus."""
        return [kinds(batch) for batch in self.batches[since:]]

    def last(self) -> str:
        """The kinds of the records of the last batch."""
        return kinds(self.batches[-1])


def kinds(batch: Iterable[Stored]) -> str:
    """The kinds of records, and whose they are where members have them."""
    return " ".join(
        ("-" if record.value is None else "")
        + _KINDS[type(record.key).__name__]
        + (f":{record.key.member_id}" if hasattr(record.key, "member_id") else "")
        for record in batch
    )


def offer(*topics: str, owned: Owned | None = None, version: int = 1) -> dict[str, bytes]:
    """What a consumer of the classic protocol offers."""
    partitions = tuple(
        consumer_protocol.TopicPartition(topic=topic, partitions=tuple(of_topic))
        for topic, of_topic in (owned or {}).items()
    )
    subscription = consumer_protocol.ConsumerProtocolSubscription(
        version=version, topics=topics, owned_partitions=partitions
    )
    return {"range": consumer_protocol.write_subscription(subscription)}


class Consumer:
    """One member. Its id is its name, unless ``member_id`` says otherwise."""

    def __init__(
        self,
        world: ConsumerWorld,
        name: str,
        topics: Sequence[str] | None = None,
        *,
        regex: str | None = None,
        instance: str | None = None,
        rack: str | None = None,
        assignor: str | None = None,
        rebalance_ms: int = 60_000,
        member_id: str | None = None,
        version: int = 1,
        group: str = GROUP,
    ) -> None:
        self.world, self.name, self.group = world, name, group
        self.topics = (None if regex is not None else ("t",)) if topics is None else tuple(topics)
        self.regex, self.instance, self.rack, self.assignor = regex, instance, rack, assignor
        self.rebalance_ms, self.version = rebalance_ms, version
        self.member_id = name if member_id is None else member_id
        self.epoch = 0
        self.assigned: dict[str, list[int]] = {}

    def __repr__(self) -> str:
        return f"{self.name}@{self.epoch}{self.assigned}"

    @property
    def stored(self) -> Any:
        """What the coordinator has of it."""
        return self.world.consumers.members[self.member_id]

    def join(self, **changes: Any) -> Asked:
        """The first heartbeat, which says everything."""
        said: dict[str, Any] = {
            "member_epoch": 0,
            "rack_id": self.rack,
            "rebalance_timeout_ms": self.rebalance_ms,
            "subscribed_topic_names": self.topics,
            "subscribed_topic_regex": self.regex,
            "server_assignor": self.assignor,
            "topic_partitions": (),
        }
        return self.heartbeat(**(said | changes))

    def heartbeat(self, **changes: Any) -> Asked:
        """A heartbeat that says nothing new but ``changes``."""
        version = changes.pop("version", self.version)
        said: dict[str, Any] = {
            "group_id": self.group,
            "member_id": self.member_id,
            "member_epoch": self.epoch,
            "instance_id": self.instance,
        }
        request = m.ConsumerGroupHeartbeatRequest(**(said | changes))
        asked = self.world.ask(ApiKey.CONSUMER_GROUP_HEARTBEAT, request, version=version, client_id=self.name)
        if asked.replies:
            self.hear(asked)
        return asked

    def hear(self, asked: Asked) -> None:
        """Remember what an answer says."""
        answer = asked.answer
        if not answer.error_code:
            self.member_id, self.epoch = answer.member_id, answer.member_epoch
            if answer.assignment is not None:
                self.assigned = self.world.named(answer.assignment.topic_partitions)
            elif self.epoch < 0:
                self.assigned = {}

    def owns(self, owned: Owned | None = None, **changes: Any) -> Asked:
        """A heartbeat that says what it owns: all that it was assigned, unless told."""
        said = self.assigned if owned is None else owned
        return self.heartbeat(topic_partitions=partitions(self.world, said), **changes)

    def leave(self, **changes: Any) -> Asked:
        return self.heartbeat(member_epoch=LEAVE_EPOCH, **changes)

    def away(self, **changes: Any) -> Asked:
        """As a static member, leave for now."""
        return self.heartbeat(member_epoch=AWAY_EPOCH, **changes)

    def commit(self, offsets: Mapping[tuple[str, int], int] | None = None, **changes: Any) -> Asked:
        """Commit at its epoch."""
        said: dict[str, Any] = {"generation": self.epoch, "member_id": self.member_id, "instance": self.instance}
        return self.world.commit(offsets, group=self.group, **(said | changes))


def partitions(world: World, owned: Owned) -> tuple[TopicPartitions, ...]:
    """``owned`` as a heartbeat says it."""
    return tuple(
        TopicPartitions(topic_id=world.topics.topic_id(topic) or uuid.UUID(int=99), partitions=tuple(of_topic))
        for topic, of_topic in owned.items()
    )


def settle(consumers: Iterable[Consumer]) -> None:
    """Every member says what it owns, until nothing changes any more."""
    members = list(consumers)
    for _ in range(20):
        before = [repr(member) for member in members]
        for member in members:
            member.owns()
        if before == [repr(member) for member in members]:
            return
    raise AssertionError(f"{members} never settle")

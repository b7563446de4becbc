"""What clients are answered while the controller is gone or paused: what needs it waits, and the rest goes on."""

from typing import Any

from groupcoord.client.zookeeper_paths_reader import METADATA_QUORUM
from groupcoord.protocol.apis.alter_partition_reassignments import ReassignablePartition, ReassignableTopic
from groupcoord.protocol.apis.delete_topics import DeleteTopicState
from groupcoord.protocol.apis.describe_topic_partitions import TopicRequest
from groupcoord.protocol.apis.metadata import MetadataRequestTopic
from groupcoord.protocol.apis.offset_fetch import OffsetFetchRequestGroup
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages import (
    AlterPartitionReassignmentsRequest,
    DeleteTopicsRequest,
    DescribeClusterRequest,
    DescribeTopicPartitionsRequest,
    ElectLeadersRequest,
    HeartbeatRequest,
    InitProducerIdRequest,
    JoinGroupRequest,
    ListGroupsRequest,
    ListPartitionReassignmentsRequest,
    MetadataRequest,
    OffsetCommitRequest,
    OffsetFetchRequest,
    SyncGroupRequest,
    UnregisterBrokerRequest,
    UpdateFeaturesRequest,
)
from tests.conformance.embedded import subscription
from tests.conformance.members import commit_topics, protocols_of
from tests.conformance.normalise import Names
from tests.conformance.trio_requests import fetch, metadata, offset_at, produce
from tests.conformance.trio_stories.administrators import create, describe, enlarge, set_min_isr
from tests.conformance.trio_story import Sent, Topics, TrioStory
from tests.conformance.wire import PATIENCE_MS
from tests.real_kafka.cluster_process import CONTROLLER

PROPERTIES = {
    "leader.imbalance.check.interval.seconds": "3600",
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "3",
    "group.initial.rebalance.delay.ms": "0",
    "group.max.session.timeout.ms": "6000000",
    "replica.lag.time.max.ms": "5000",
}
LOG = "__consumer_offsets"
TOPICS: Topics = {
    "safe": (((1, 2, 3), (3, 1, 2)), {"min.insync.replicas": "2"}),
    "lone": (((3,),), {}),
    "doomed": (((1,),), {}),
    LOG: (((1, 2, 3),), {"cleanup.policy": "compact"}),
}
GROUP = "trio-controllers"
TOPIC, BROKER = 2, 4
NEW_PRODUCER = InitProducerIdRequest(
    transactional_id=None, transaction_timeout_ms=60_000, producer_id=-1, producer_epoch=-1
)
BLOCK = 1000
"""So many producer ids a broker gets from the controller at a time."""
TO_THE_CONTROLLER = {
    "CreateTopics": (create((1, 2), name="fresh"), 7),
    "CreateTopics that it would refuse": (create((1,), name="no such name!"), 7),
    "DeleteTopics": (DeleteTopicsRequest(topics=(DeleteTopicState(name="doomed"),), timeout_ms=1000), 6),
    "CreatePartitions": (enlarge("lone", 2, (2,)), 3),
    "IncrementalAlterConfigs": (set_min_isr("1"), 1),
    "AlterPartitionReassignments": (
        AlterPartitionReassignmentsRequest(
            topics=(
                ReassignableTopic(name="lone", partitions=(ReassignablePartition(partition_index=0, replicas=(1,)),)),
            ),
            timeout_ms=1000,
        ),
        0,
    ),
    "ListPartitionReassignments": (ListPartitionReassignmentsRequest(topics=None, timeout_ms=1000), 0),
    "ElectLeaders": (ElectLeadersRequest(election_type=0, topic_partitions=None, timeout_ms=1000), 2),
    "DescribeQuorum": (METADATA_QUORUM, 2),
    "UnregisterBroker": (UnregisterBrokerRequest(broker_id=9), 0),
    "UpdateFeatures": (UpdateFeaturesRequest(feature_updates=(), timeout_ms=1000), 1),
}
"""Requests that brokers send on to the controller, whatever they say of time."""


def creating(name: str) -> MetadataRequest:
    return MetadataRequest(topics=(MetadataRequestTopic(name=name),), allow_auto_topic_creation=True)


def quorum_epoch(story: TrioStory, what: str, broker_id: int) -> None:
    """A step: in which epoch the controller was elected."""

    def find(names: Names) -> Any:
        shown = story.sends(broker_id, METADATA_QUORUM, 2).received(names, PATIENCE_MS)
        return shown if isinstance(shown, str) else shown["topics"][0]["partitions"][0]["leader_epoch"]

    story.step(what, find, settles=True)


def use_up_producer_ids(story: TrioStory, what: str, broker_id: int) -> None:
    """A step: how many ids, of the one that was handed out before on, that broker has until it is refused one."""

    def find(_: Names) -> Any:
        handed_out, error = 1, ErrorCode.NONE
        while error == ErrorCode.NONE and handed_out <= BLOCK:
            error = ErrorCode(story.ask(broker_id, NEW_PRODUCER, 4).error_code)
            handed_out += error == ErrorCode.NONE
        return {"handed out": handed_out, "then": error.name}

    story.step(what, find)


def look_around(story: TrioStory, what: str, broker_id: int) -> None:
    """What a broker tells by itself."""
    asks = story.asks
    asks(f"{what}: Metadata", broker_id, metadata("safe", "lone", "fresh", "nope"), 12)
    asks(f"{what}: DescribeCluster", broker_id, DescribeClusterRequest(include_fenced_brokers=True), 2)
    asked = tuple(TopicRequest(name=name) for name in ("lone", "safe"))
    asks(f"{what}: DescribeTopicPartitions", broker_id, DescribeTopicPartitionsRequest(topics=asked), 0)


class Member:
    """A member of a classic group, the only one."""

    def __init__(self, story: TrioStory) -> None:
        self._story = story
        protocols = protocols_of({"range": subscription("safe")})
        request = JoinGroupRequest(
            group_id=GROUP,
            session_timeout_ms=3_000_000,
            rebalance_timeout_ms=600_000,
            member_id="",
            protocol_type="consumer",
            protocols=protocols,
        )
        self.id = story.asks("a member joins", 1, request, 3, settles=True).member_id
        self.goes_on("all run")

    def goes_on(self, what: str) -> None:
        """Steps: it synchronises, heartbeats, commits, and looks at that."""
        asks, member = self._story.asks, {"group_id": GROUP, "generation_id": 1, "member_id": self.id}
        asks(f"{what}: SyncGroup", 1, SyncGroupRequest(**member, assignments=()), 3)
        asks(f"{what}: Heartbeat", 1, HeartbeatRequest(**member), 3)
        self.commits().is_answered(f"{what}: OffsetCommit")
        wanted = OffsetFetchRequest(groups=(OffsetFetchRequestGroup(group_id=GROUP, topics=None),))
        asks(f"{what}: OffsetFetch", 1, wanted, 8)
        asks(f"{what}: ListGroups", 1, ListGroupsRequest(), 4)

    def commits(self) -> Sent:
        topics = commit_topics({("safe", 0): 1})
        request = OffsetCommitRequest(group_id=GROUP, generation_id_or_member_epoch=1, member_id=self.id, topics=topics)
        return self._story.sends(1, request, 7)


def tell(story: TrioStory) -> None:
    """The controller is killed; a broker dies meanwhile; both come back; then the controller is paused."""
    quorum_epoch(story, "epoch of the quorum", 1)
    story.asks("a producer id", 1, NEW_PRODUCER, 4, settles=True)
    story.asks("produce", 1, produce("safe", 0, "a"), 9)
    member = Member(story)

    story.act("kill", CONTROLLER)
    look_around(story, "no controller", 1)
    look_around(story, "no controller, at 3", 3)
    story.asks("Metadata that creates topics", 1, creating("early"), 12)
    story.asks("configuration of safe", 2, describe(TOPIC, "safe", "min.insync.replicas"), 4)
    story.asks("configuration of 2", 2, describe(BROKER, "2", "node.id"), 4)
    story.asks("produce, acks=1", 1, produce("safe", 0, "b", acks=1), 9)
    story.asks("produce, acks=all", 1, produce("safe", 0, "c"), 9)
    story.asks("produce at 3", 3, produce("safe", 1, "d"), 9)
    story.asks("fetch", 1, fetch("safe", 0, 2), 12)
    story.asks("where safe ends", 1, offset_at("safe", 0), 6)
    member.goes_on("no controller")
    use_up_producer_ids(story, "producer ids of 1", 1)
    story.asks("a producer id at a broker that has none", 2, NEW_PRODUCER, 4)
    waiting = {
        what: story.sends(1 + number % 3, *asked) for number, (what, asked) in enumerate(TO_THE_CONTROLLER.items())
    }
    for what, sent in waiting.items():
        sent.waits(f"{what} waits")
    story.passes(60)
    for what, sent in waiting.items():
        sent.is_answered(f"{what} has waited for a minute")
    look_around(story, "nothing has come of it", 2)

    story.act("kill", 3)
    story.asks("3 is killed: produce, acks=1", 1, produce("safe", 0, "e", acks=1), 9)
    in_time = story.sends(1, produce("safe", 0, "f", timeout_ms=20_000), 9)
    in_time.waits("produce, acks=all waits for 3")
    story.passes(20)
    in_time.is_answered("it has waited long enough")
    story.asks("Metadata names 3", 1, metadata("safe", "lone"), 12)
    story.asks("the ISR is as it was", 1, DescribeTopicPartitionsRequest(topics=(TopicRequest(name="safe"),)), 0)
    commit = member.commits()
    commit.waits("OffsetCommit waits for 3")
    story.passes(5)
    commit.is_answered("OffsetCommit has waited long enough")
    story.act("start", 3)
    produced = story.sends(1, produce("safe", 0, "g"), 9)
    produced.waits("3 starts, and is not let in: produce waits on")
    created = story.sends(2, *TO_THE_CONTROLLER["CreateTopics"])
    created.waits("CreateTopics waits")
    story.asks("Metadata that creates another topic", 1, creating("late"), 12)

    story.act("start", CONTROLLER)
    _answered(created, produced)
    quorum_epoch(story, "a later epoch of the quorum", 2)
    story.asks("a topic that is created", 1, metadata("late"), 12, settles=True, allowed=("NONE",))
    story.asks("a topic that nobody waited for so long", 1, metadata("early"), 12)
    story.asks("a producer id again", 1, NEW_PRODUCER, 4, settles=True)
    story.passes(9)
    story.partitions("3 is back", 1, "safe", "lone", LOG)
    story.asks("produce to all", 1, produce("safe", 0, "h"), 9)

    story.act("pause", CONTROLLER)
    look_around(story, "paused", 3)
    story.asks("paused: produce", 1, produce("safe", 0, "i"), 9)
    member.goes_on("paused")
    created = story.sends(1, create((2,), name="patient"), 7)
    created.waits("paused: CreateTopics waits")
    story.act("resume", CONTROLLER)
    created.is_answered("CreateTopics is answered")
    quorum_epoch(story, "the same epoch of the quorum", 3)


def _answered(created: Sent, produced: Sent) -> None:
    created.is_answered("the controller is back: CreateTopics is answered")
    produced.is_answered("the ISR is without 3: produce is answered")

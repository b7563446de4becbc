"""A story with three brokers that are stopped, killed, paused and started again.

After each step the story looks at what an administrator and a producer would: partitions with leaders, leader epochs, replicas
in sync and eligible ones, who coordinates, what a write is answered. On real brokers that takes a while to come about, so
there it is looked at until it is as expected, or for too long.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from groupcoord.protocol.apis.describe_topic_partitions import DescribeTopicPartitionsRequest, TopicRequest
from groupcoord.protocol.apis.metadata import MetadataRequest, MetadataRequestTopic
from groupcoord.protocol.apis.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from groupcoord.protocol.batches.record_batch import build_batch
from groupcoord.protocol.batches.records import Record
from groupcoord.protocol.errors import ErrorCode
from tests.conformance.trios import SHORT_SESSION, Look, Observation, Trio, create_topics

RECORDING = Path(__file__).with_suffix(".json")

PROPERTIES = {
    **SHORT_SESSION,
    "default.replication.factor": "3",
    "offsets.topic.num.partitions": "2",
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.num.partitions": "2",
    "transaction.state.log.replication.factor": "3",
}
TOPICS: Mapping[str, tuple[Sequence[tuple[int, ...]], Mapping[str, str]]] = {
    "three": (((1, 2, 3), (2, 3, 1), (3, 1, 2)), {"min.insync.replicas": "2"}),
    "two": (((3, 2),), {}),
    "one": (((3,),), {}),
    "unclean": (((3, 2),), {"unclean.leader.election.enable": "true", "min.insync.replicas": "2"}),
}
"""Each topic with the brokers of its partitions, and its configurations."""


STEPS: Sequence[tuple[str, int, int]] = (
    ("stop", 3, 1),
    ("start", 3, 1),
    ("kill", 3, 1),
    ("kill", 2, 1),
    ("start", 2, 1),
    ("start", 3, 1),
    ("pause", 1, 2),
    ("resume", 1, 2),
    ("stop", 2, 1),
    ("stop", 1, 3),
    ("start", 1, 3),
    ("start", 2, 3),
)
"""What is done to whom, and who is asked then."""


def observe(trio: Trio, broker_id: int) -> Observation:
    """What that broker says of the cluster now, and whether all others that it knows say the same."""
    seen = _seen_by(trio, broker_id)
    return {**seen, "all agree": all(_seen_by(trio, other) == seen for other in seen["brokers"])}


def _seen_by(trio: Trio, broker_id: int) -> Observation:
    names = tuple(TOPICS)
    asked = tuple(MetadataRequestTopic(name=name) for name in names)
    metadata = trio.ask(broker_id, MetadataRequest(topics=asked, allow_auto_topic_creation=False), 12)
    described = trio.ask(
        broker_id,
        DescribeTopicPartitionsRequest(topics=tuple(TopicRequest(name=name) for name in names)),
        0,
    )
    return {
        "brokers": sorted(broker.node_id for broker in metadata.brokers),
        "partitions": {
            f"{topic.name}-{each.partition_index}": {
                "error": ErrorCode(each.error_code).name,
                "leader": each.leader_id,
                "epoch": each.leader_epoch,
                "isr": list(each.isr_nodes),
                "offline": sorted(each.offline_replicas),
            }
            for topic in sorted(metadata.topics, key=lambda topic: topic.name)
            for each in sorted(topic.partitions, key=lambda each: each.partition_index)
        },
        "eligible": {
            f"{topic.name}-{each.partition_index}": [
                list(each.eligible_leader_replicas or ()),
                list(each.last_known_elr or ()),
            ]
            for topic in described.topics
            for each in topic.partitions
            if each.eligible_leader_replicas or each.last_known_elr
        },
    }


def write(trio: Trio, broker_id: int) -> Observation:
    """What the leader of each partition, or that broker where there is none, answers to records with acks=all and with acks=1,
    and to which offset they go."""
    answers = {}
    leaders = {place: seen["leader"] for place, seen in observe(trio, broker_id)["partitions"].items()}
    for name, (placed, _) in TOPICS.items():
        for index in range(len(placed)):
            for acks in (-1, 1):
                records = bytes(build_batch([Record(0, 1_000, b"key", b"value")]))
                data = (PartitionProduceData(index=index, records=records),)
                request = ProduceRequest(
                    acks=acks, timeout_ms=5000, topic_data=(TopicProduceData(name=name, partition_data=data),)
                )
                leader = leaders[f"{name}-{index}"]
                (topic,) = trio.ask(broker_id if leader < 0 else leader, request, 9).responses
                (answer,) = topic.partition_responses
                outcome = ErrorCode(answer.error_code).name
                answers[f"{name}-{index} acks={acks}"] = [outcome, answer.base_offset]
    return answers


def tell(trio: Trio, look: Look) -> None:
    """Tell the story."""
    placed = {name: brokers for name, (brokers, _) in TOPICS.items()}
    create_topics(trio, placed, {name: configs for name, (_, configs) in TOPICS.items()})
    look("begin", lambda: observe(trio, 1))
    look("begin: write", lambda: write(trio, 1))
    for number, (action, broker_id, asked) in enumerate(STEPS, 1):
        trio.act(action, broker_id)
        trio.settle()
        name = f"{number} {action} {broker_id}"
        look(name, lambda asked=asked: observe(trio, asked))  # type: ignore[misc]
        look(f"{name}: write", lambda asked=asked: write(trio, asked))  # type: ignore[misc]


STORIES = {"brokers that fail": (tell, PROPERTIES)}
"""The story, and the properties of the brokers that it is told to."""


def recorded() -> dict[str, Observation]:
    """What three real brokers answered."""
    found: dict[str, Observation] = json.loads(RECORDING.read_text())
    return found

"""A story with three brokers that are registered, fenced and unregistered.

Each answer is looked at once; what the brokers make of it on real brokers until it is as expected, or for too long. Where
Kafka is not deterministic, what is compared is what may be said: the controller that is named is any broker that is not
fenced; of the log of metadata, whether a broker has all of it and has fetched within the last two seconds; of a volume, that
its size is told as a whole or not at all. Orders of brokers and of logs are those of hash tables with random keys.
"""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from groupcoord.protocol.apis.create_topics import CreatableReplicaAssignment, CreatableTopic
from groupcoord.protocol.apis.describe_log_dirs import DescribableLogDirTopic
from groupcoord.protocol.apis.describe_quorum import (
    DescribeQuorumRequestPartitionData,
    DescribeQuorumRequestTopicData,
    ReplicaState,
)
from groupcoord.protocol.apis.produce import PartitionProduceData, TopicProduceData
from groupcoord.protocol.batches.record_batch import build_batch
from groupcoord.protocol.batches.records import Record
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages import (
    CreateTopicsRequest,
    DescribeClusterRequest,
    DescribeLogDirsRequest,
    DescribeQuorumRequest,
    MetadataRequest,
    ProduceRequest,
    UnregisterBrokerRequest,
)
from tests.conformance.partitions_administered import TOPICS, Administrator, partitions
from tests.conformance.trios import SHORT_SESSION, Observation, Trio, create_topics

RECORDING = Path(__file__).with_suffix(".json")

PROPERTIES = {"leader.imbalance.check.interval.seconds": "3600", **SHORT_SESSION}
METADATA = "__cluster_metadata"
LATELY_MS = 2_000

Look = Callable[[str, Callable[[], Observation]], None]
Wanted = Sequence[tuple[str, Sequence[int]]]


def registrations(trio: Trio, asked: int) -> Observation:
    """Which brokers broker ``asked`` names, and what it says of each."""
    all_brokers = trio.ask(asked, DescribeClusterRequest(include_fenced_brokers=True), 2)
    unfenced = [broker.broker_id for broker in all_brokers.brokers if not broker.is_fenced]
    named = {
        "DescribeCluster v1": trio.ask(asked, DescribeClusterRequest(), 1),
        "DescribeCluster v2": trio.ask(asked, DescribeClusterRequest(), 2),
    }
    metadata = trio.ask(asked, MetadataRequest(topics=()), 12)
    return {
        "cluster id": all_brokers.cluster_id,
        "registered": sorted([broker.broker_id, broker.is_fenced] for broker in all_brokers.brokers),
        **{name: sorted(broker.broker_id for broker in answer.brokers) for name, answer in named.items()},
        "Metadata v12": sorted(broker.node_id for broker in metadata.brokers),
        "the controller is not fenced": all_brokers.controller_id in unfenced,
    }


def quorum_request(*wanted: tuple[str, Sequence[int]]) -> DescribeQuorumRequest:
    """Asks for these partitions."""
    return DescribeQuorumRequest(
        topics=tuple(
            DescribeQuorumRequestTopicData(
                topic_name=name,
                partitions=tuple(DescribeQuorumRequestPartitionData(partition_index=index) for index in indexes),
            )
            for name, indexes in wanted
        )
    )


def quorum(trio: Trio, asked: int, version: int = 2) -> Observation:
    """What broker ``asked`` says of the controllers, and of the brokers that copy from them."""
    answer = trio.ask(asked, quorum_request((METADATA, [0])), version)
    ((partition,),) = (topic.partitions for topic in answer.topics)
    (leader,) = partition.current_voters

    def copied(replica: ReplicaState) -> list[bool]:
        """Has it all, has it fetched lately, is its directory told?"""
        lately = leader.last_fetch_timestamp - replica.last_fetch_timestamp < LATELY_MS
        told = [lately, replica.replica_directory_id is not None][:version]
        return [replica.log_end_offset == partition.high_watermark, *told]

    return {
        "error": [ErrorCode(answer.error_code).name, answer.error_message],
        "partition": [partition.partition_index, ErrorCode(partition.error_code).name, partition.error_message],
        "the voter leads": leader.replica_id == partition.leader_id,
        "leader epoch": partition.leader_epoch,
        "all committed": leader.log_end_offset == partition.high_watermark > 0,
        "the leader's directory is told": leader.replica_directory_id is not None,
        "observers": {str(replica.replica_id): copied(replica) for replica in sorted(partition.observers, key=_id)},
        "controllers": [
            [node.node_id == partition.leader_id, [each.name for each in node.listeners]]
            for node in answer.nodes
            if version == 2
        ],
    }


def _id(replica: ReplicaState) -> int:
    return replica.replica_id


def refused_quorum(trio: Trio, version: int, wanted: Wanted) -> Observation:
    """The whole answer of broker 1 to who asks for partitions that have no quorum."""
    answer = trio.ask(1, quorum_request(*wanted), version)

    def told(partition: Any) -> list[Any]:
        message = partition.error_message if version == 2 else None
        empty = (partition.leader_id, partition.leader_epoch, partition.high_watermark)
        nodes = (len(partition.current_voters), len(partition.observers))
        return [partition.partition_index, ErrorCode(partition.error_code).name, message, *empty, *nodes]

    return {
        "error": [answer.error_code, answer.error_message, len(answer.nodes)],
        "topics": [[topic.topic_name, [told(each) for each in topic.partitions]] for topic in answer.topics],
    }


def log_directories(trio: Trio, asked: int, wanted: Wanted | None = None, version: int = 5) -> Observation:
    """What broker ``asked`` says of its log directory."""
    topics = (
        None
        if wanted is None
        else tuple(DescribableLogDirTopic(topic=name, partitions=tuple(indexes)) for name, indexes in wanted)
    )
    answer = trio.ask(asked, DescribeLogDirsRequest(topics=topics), version)
    (directory,) = answer.results
    sizes = (directory.total_bytes, directory.usable_bytes)
    return {
        "error": [ErrorCode(answer.error_code).name, ErrorCode(directory.error_code).name],
        "is absolute": directory.log_dir.startswith("/"),
        "the volume is told as a whole or not at all": sizes == (-1, -1) or 0 < sizes[1] <= sizes[0],
        "is cordoned": directory.is_cordoned,
        "logs": {
            f"{topic.name}-{each.partition_index}": [each.partition_size, each.offset_lag, each.is_future_key]
            for topic in sorted(directory.topics, key=lambda topic: topic.name)
            for each in sorted(topic.partitions, key=lambda each: each.partition_index)
            if not topic.name.startswith("__")
        },
    }


def unregister(trio: Trio, broker_id: int, asked: int) -> Observation:
    """What broker ``asked`` answers to who wants broker ``broker_id`` to be forgotten."""
    answer = trio.ask(asked, UnregisterBrokerRequest(broker_id=broker_id), 0)
    return {"answer": [ErrorCode(answer.error_code).name, answer.error_message]}


def write(trio: Trio, broker_id: int, topic: str) -> Observation:
    """What that broker answers to a record for partition 0."""
    records = bytes(build_batch([Record(0, 1_000, b"key", b"value")]))
    data = (TopicProduceData(name=topic, partition_data=(PartitionProduceData(index=0, records=records),)),)
    (answer,) = trio.ask(broker_id, ProduceRequest(acks=-1, timeout_ms=5000, topic_data=data), 9).responses
    (partition,) = answer.partition_responses
    return {"answer": [ErrorCode(partition.error_code).name, partition.base_offset]}


def create(trio: Trio, asked: int, replicas: Sequence[int] | int) -> Observation:
    """What comes of a topic with so many replicas, or with these; nothing is created."""
    placed = (
        ()
        if isinstance(replicas, int)
        else (CreatableReplicaAssignment(partition_index=0, broker_ids=tuple(replicas)),)
    )
    count = replicas if isinstance(replicas, int) else -1
    topic = CreatableTopic(name="later", num_partitions=-1, replication_factor=count, assignments=placed, configs=())
    answer = trio.ask(asked, CreateTopicsRequest(topics=(topic,), timeout_ms=9000, validate_only=True), 7)
    return {"answer": [[ErrorCode(each.error_code).name, each.error_message] for each in answer.topics]}


def tell(trio: Trio, look: Look) -> None:
    """Tell the story; ``look`` is given the name of each step, and what finds out what came of it."""
    number = 0

    def happens(text: str, *, asked: int = 1, logs_of: Sequence[int] = ()) -> None:
        """Look at what has become of the cluster."""
        look(f"{number} {text}: registrations", lambda: registrations(trio, asked))
        look(f"{number} {text}: partitions", lambda: partitions(trio, asked))
        look(f"{number} {text}: quorum", lambda: quorum(trio, asked))
        for broker_id in logs_of:
            look(
                f"{number} {text}: logs of {broker_id}",
                lambda broker_id=broker_id: log_directories(trio, broker_id),  # type: ignore[misc]
            )

    def asks(text: str, find: Callable[[], Observation]) -> None:
        nonlocal number
        number += 1
        look(f"{number} {text}: answer", find)

    def act(action: str, broker_id: int, *, asked: int = 1, settles: bool = True) -> None:
        nonlocal number
        number += 1
        trio.act(action, broker_id)
        if settles:
            trio.settle()
            happens(f"{action} {broker_id}", asked=asked)

    def forget(broker_id: int, *, asked: int = 1, again: bool = False) -> None:
        asks(f"unregister {broker_id}", lambda: unregister(trio, broker_id, asked))
        happens(f"unregister {broker_id}", asked=asked)
        if again:
            asks(f"unregister {broker_id} again", lambda: unregister(trio, broker_id, asked))

    create_topics(trio, TOPICS, {})
    happens("begin", logs_of=(1, 2, 3))
    _all_brokers_run(trio, asks, look)
    happens("written", logs_of=(1, 2, 3))

    act("stop", 3)
    forget(3, again=True)
    asks("a topic on 3", lambda: create(trio, 1, [3]))
    asks("a topic with 3 replicas", lambda: create(trio, 1, 3))
    asks("a partition to 3", lambda: Administrator(trio).move([("moved", [(0, [3])])]))
    act("start", 3)

    act("kill", 2)
    forget(2, asked=3)
    act("start", 2)

    act("kill", 2, settles=False)
    forget(2)
    act("start", 2)

    act("pause", 1, asked=2)
    forget(1, asked=2)
    act("resume", 1, asked=2)
    happens("seen by 1")
    act("kill", 1, asked=3)
    act("start", 1)

    forget(3)
    happens("seen by 3", asked=3, logs_of=(3,))
    asks("a record for 3", lambda: write(trio, 3, "one"))
    act("kill", 3)
    act("start", 3)
    happens("end", logs_of=(1, 2, 3))


def _all_brokers_run(trio: Trio, asks: Callable[..., None], look: Look) -> None:
    for version in (0, 1, 2):
        look(f"quorum v{version}: answers", lambda version=version: quorum(trio, 2, version))  # type: ignore[misc]
    partitions_wanted: Sequence[Wanted] = (
        [],
        [("three", [0])],
        [(METADATA, [1])],
        [(METADATA, [])],
        [(METADATA, [0, 0])],
        [(METADATA, [0]), ("three", [0])],
        [("three", [0, 1]), ("nope", [7])],
    )
    for wanted in partitions_wanted:
        for version in (0, 2):
            asks(
                f"quorum v{version} of {wanted}",
                lambda wanted=wanted, version=version: refused_quorum(trio, version, wanted),
            )
    for broker_id in (9, -1, 2**31 - 1):
        asks(f"unregister {broker_id}", lambda broker_id=broker_id: unregister(trio, broker_id, 2))
    asks("a record", lambda: write(trio, 1, "three"))
    asks("a record", lambda: write(trio, 3, "two"))
    for version in (1, 2, 3, 4, 5):
        name = f"logs v{version}: answers"
        look(name, lambda version=version: log_directories(trio, 3, [("three", [0, 2])], version))  # type: ignore[misc]
    logs_wanted: Sequence[Wanted] = (
        [],
        [("nope", [0])],
        [("three", [])],
        [("three", [0, 0, 9, -1])],
        [("three", [0]), ("three", [1])],
        [("one", [0]), ("two", [0]), ("three", [2, 1, 0])],
    )
    for wanted_logs in logs_wanted:
        for broker_id in (1, 3):
            asks(
                f"logs of {broker_id} of {wanted_logs}",
                lambda wanted=wanted_logs, broker_id=broker_id: log_directories(trio, broker_id, wanted),
            )


STORIES = {"brokers registered": (tell, PROPERTIES)}
"""Each story, and the properties of the brokers that it is told to."""


def recorded() -> dict[str, dict[str, Observation]]:
    """What three real brokers answered, by story and step."""
    found: dict[str, dict[str, Observation]] = json.loads(RECORDING.read_text())
    return found

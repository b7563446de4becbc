"""CreateTopics, DeleteTopics, CreatePartitions, Metadata: topics by name and id, valid and invalid."""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from groupcoord.protocol.apis.create_partitions import CreatePartitionsAssignment, CreatePartitionsTopic
from groupcoord.protocol.apis.create_topics import CreatableReplicaAssignment, CreatableTopic, CreatableTopicConfig
from groupcoord.protocol.apis.delete_topics import DeleteTopicState
from groupcoord.protocol.apis.metadata import MetadataRequestTopic
from groupcoord.protocol.messages import (
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    MetadataRequest,
)
from tests.conformance.actors import Client, Stagehand
from tests.conformance.batches import batch
from tests.conformance.data import DataClient
from tests.conformance.settings import SLOW_START
from tests.conformance.story import Story, story


def wanted(
    name: str,
    partitions: int = 1,
    replicas: int = 1,
    configs: Mapping[str, str | None] | None = None,
    assignments: Mapping[int, Sequence[int]] | None = None,
) -> CreatableTopic:
    """One topic of a CreateTopics."""
    return CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=replicas,
        configs=tuple(CreatableTopicConfig(name=key, value=value) for key, value in (configs or {}).items()),
        assignments=tuple(
            CreatableReplicaAssignment(partition_index=index, broker_ids=tuple(brokers))
            for index, brokers in (assignments or {}).items()
        ),
    )


def create(*topics: CreatableTopic, validate_only: bool = False) -> CreateTopicsRequest:
    """A CreateTopics."""
    return CreateTopicsRequest(topics=topics, timeout_ms=10_000, validate_only=validate_only)


def by_name(*names: str | None, auto: bool = False) -> MetadataRequest:
    """A Metadata for named topics."""
    return MetadataRequest(
        topics=tuple(MetadataRequestTopic(name=name) for name in names), allow_auto_topic_creation=auto
    )


@story(sections=["topics"])
def every_version_of_creating_topics(s: Story) -> None:
    """A valid topic, the same again, and a validate-only one, in every version."""
    admin, stage = Client(s, "admin"), Stagehand(s)
    for version in range(2, 8):
        name = s.topic_name(f"v{version}")
        admin.asks(create(wanted(name, 2)), version, does="creates a topic")
        stage.knows(name, 2)
        admin.asks(create(wanted(name, 2)), version, does="creates it again")
        admin.asks(create(wanted(s.topic_name("dry"), 2), validate_only=True), version, does="only validates")
    admin.asks(by_name(s.topic_name("dry")), does="asks for the topic that was only validated")


@story(sections=["topics"])
def topics_that_cannot_be(s: Story) -> None:
    """Invalid names, counts, replicas, assignments and configs, and the error messages."""
    admin = Client(s, "admin")
    good = s.topic_name("good")
    for name in ("", ".", "..", "a b", "ü", "a/b", "x" * 249 + "y", "slash\\", "__consumer_offsets", "a:b"):
        admin.asks(create(wanted(name)), does=f"creates {name[:20]!r}")
    for partitions, replicas in ((0, 1), (-1, 1), (-2, 1), (1, 0), (1, -1), (1, 2), (-1, -1), (0, 0), (100_000, 1)):
        request = create(wanted(good, partitions, replicas), validate_only=True)
        admin.asks(request, does=f"asks for {partitions} partitions, {replicas} replicas")
    for version in (2, 3, 4):
        admin.asks(create(wanted(good, -1, -1), validate_only=True), version, does="asks for the default counts")
    layouts: list[dict[int, list[int]]] = [
        {0: [1]},
        {0: [1], 1: [1]},
        {0: []},
        {0: [1, 1]},
        {0: [9]},
        {1: [1]},
        {0: [1], 2: [1]},
        {0: [-1]},
    ]
    for assignments in layouts:
        request = create(wanted(good, -1, -1, assignments=assignments), validate_only=True)
        admin.asks(request, does=f"assigns {assignments}")
    admin.asks(
        create(wanted(good, 1, 1, assignments={0: [1]}), validate_only=True), does="says both counts and assignments"
    )
    for configs in (
        {"cleanup.policy": "compact"},
        {"cleanup.policy": "nonsense"},
        {"no.such.config": "1"},
        {"retention.ms": "soon"},
        {"retention.ms": "-2"},
        {"retention.ms": None},
        {"max.message.bytes": "-1"},
        {"segment.bytes": "1"},
        {"compression.type": "rar"},
        {"min.insync.replicas": "0"},
        {"": "x"},
        {"retention.ms": "1000", "cleanup.policy": "compact,delete"},
    ):
        admin.asks(create(wanted(good, configs=configs), validate_only=True), does=f"configures {configs}")


@story(sections=["topics"])
def many_topics_at_once(s: Story) -> None:
    """Valid and invalid ones in one request, one of them twice; names that collide in metrics; an empty request."""
    admin, stage = Client(s, "admin"), Stagehand(s)
    one, two = s.topic_name("one"), s.topic_name("two")
    admin.asks(create(wanted(one), wanted("bad name"), wanted(two, 2), wanted(two, 3)), does="creates several")
    stage.knows(one, 1)
    admin.asks(create(), does="creates nothing")
    admin.asks(create(wanted(s.topic_name("with.dot"))), does="creates a name with a dot")
    admin.asks(create(wanted(s.topic_name("with_dot"))), does="creates its twin with an underscore")
    admin.asks(by_name(one, two), does="asks what is there")


@story(sections=["topics"])
def every_version_of_deleting_topics(s: Story) -> None:
    """By name in every version, by id in the last; unknown topics, both and neither, one twice."""
    admin, stage = Client(s, "admin"), Stagehand(s)
    for version in range(1, 6):
        name = stage.topic(f"v{version}")
        admin.asks(
            DeleteTopicsRequest(topic_names=(name, s.topic_name("unknown")), timeout_ms=10_000),
            version,
            does="deletes topics",
        )
        stage.knows(name, 0)
    one, two, three = stage.topic("one"), stage.topic("two"), stage.topic("three")

    def delete(*states: DeleteTopicState, does: str) -> None:
        admin.asks(DeleteTopicsRequest(topics=states, timeout_ms=10_000), 6, does=does)

    two_id, three_id = stage.topic_id(two), stage.topic_id(three)
    delete(DeleteTopicState(name=one), DeleteTopicState(topic_id=two_id), does="deletes by name and by id")
    stage.knows(two, 0)
    delete(
        DeleteTopicState(topic_id=uuid.UUID(int=3)),
        DeleteTopicState(name=s.topic_name("unknown")),
        does="deletes the unknown",
    )
    delete(DeleteTopicState(), does="says neither name nor id")
    delete(DeleteTopicState(name=three, topic_id=three_id), does="says name and id")
    delete(DeleteTopicState(name=three), DeleteTopicState(name=three), does="says a name twice")
    delete(DeleteTopicState(name=three), DeleteTopicState(topic_id=three_id), does="says a topic by name and by id")
    delete(DeleteTopicState(topic_id=three_id), DeleteTopicState(topic_id=three_id), does="says an id twice")
    delete(does="deletes nothing")
    delete(DeleteTopicState(name=""), does="deletes the nameless")
    admin.asks(by_name(one, two, three), does="asks what is left")


@story(sections=["topics"])
def a_topic_made_anew(s: Story) -> None:
    """A topic that is deleted and created again has another id and starts at offset 0."""
    stage = Stagehand(s)
    topic = stage.topic("orders")
    c = DataClient(s, "c", ids={topic: stage.topic_id(topic)})
    old_ids = dict(c.ids)
    c.produces({(topic, 0): batch([b"old"])}, 13)
    stage.deletes(topic)
    c.produces({(topic, 0): batch([b"x"])}, 13, does="produces to the deleted id")
    c.fetches({(topic, 0): 0}, 13, does="fetches the deleted id")
    stage.topic("orders")
    c.ids[topic] = stage.topic_id(topic)
    c.lists_offsets({(topic, 0): -1})
    c.produces({(topic, 0): batch([b"new"])}, 13)
    c.ids = old_ids
    c.fetches({(topic, 0): 0}, 13, does="fetches the old id")


@story(sections=["topics"])
def every_version_of_adding_partitions(s: Story) -> None:
    """More, the same, fewer, none; valid and invalid assignments; validate-only; unknown and listed twice."""
    admin, stage = Client(s, "admin"), Stagehand(s)

    def add(version: int, *topics: CreatePartitionsTopic, does: str, validate_only: bool = False) -> None:
        request = CreatePartitionsRequest(topics=topics, timeout_ms=10_000, validate_only=validate_only)
        admin.asks(request, version, does=does)

    def more(name: str, count: int, assignments: Sequence[Sequence[int]] | None = None) -> CreatePartitionsTopic:
        given = (
            None
            if assignments is None
            else tuple(CreatePartitionsAssignment(broker_ids=tuple(ids)) for ids in assignments)
        )
        return CreatePartitionsTopic(name=name, count=count, assignments=given)

    for version in range(4):
        name = stage.topic(f"v{version}", 2)
        add(version, more(name, 3), does="adds one")
        stage.knows(name, 3)
        add(version, more(name, 5), does="only validates two more", validate_only=True)
        for count in (3, 2, 0, -1):
            add(version, more(name, count), does=f"asks for {count}")
    name = stage.topic("assigned")
    add(3, more(name, 3, [[1], [1]]), does="adds two with assignments")
    stage.knows(name, 3)
    add(3, more(name, 5, [[1]]), does="assigns one of two")
    add(3, more(name, 4, [[9]]), does="assigns to an unknown broker")
    add(3, more(name, 4, [[]]), does="assigns to nobody")
    add(3, more(name, 4, []), does="gives no assignments")
    add(3, more(s.topic_name("unknown"), 2), more(name, 4), does="adds to an unknown topic and a known one")
    stage.knows(name, 4)
    add(3, more(name, 5), more(name, 6), does="adds twice to one topic")
    add(3, does="adds nothing")
    add(3, more("__consumer_offsets", 51), does="adds to an internal topic", validate_only=True)


@story(sections=["topics"])
def more_partitions_than_there_is_memory_for(s: Story) -> None:
    """Up to 2147483647 partitions, whose sum overflows: the request fails as a whole, and changes nothing."""
    admin, stage = Client(s, "admin"), Stagehand(s)
    a, b = stage.topic("a", 2), stage.topic("b", 2)
    c, d = s.topic_name("c"), s.topic_name("d")
    most = (1 << 31) - 1

    def add(counts: Mapping[str, int], does: str) -> None:
        topics = tuple(
            CreatePartitionsTopic(name=name, count=count, assignments=None) for name, count in counts.items()
        )
        admin.asks(CreatePartitionsRequest(topics=topics, timeout_ms=10_000, validate_only=False), 3, does=does)

    for count in (most, 1_000_000_000):
        add({a: 3, b: count}, "adds one partition to a topic, and very many to another")
        add({b: count, a: 3}, "the other way round")
    add({a: 2}, "asks for what it has")
    admin.asks(create(wanted(c, most)), does="creates a topic with very many partitions")
    for topics in (
        (wanted(c, most), wanted(d, most)),
        (wanted(c), wanted(d, most), wanted(a, most)),
        (wanted(c, most), wanted(d, -1)),
        (wanted(c, most), wanted(d, 0)),
        (wanted(c, most, 5), wanted(d, most, 7)),
        (wanted("c d", most), wanted(c, most, 5), wanted(d, 1)),
    ):
        admin.asks(create(*topics, validate_only=True), 4, does="only validates so many that an int overflows")


@story(sections=["metadata"])
def every_version_of_metadata(s: Story) -> None:
    """One topic, an unknown one, none, and all of them, in every version."""
    stage, c = Stagehand(s), Client(s, "c")
    topic = stage.topic("orders", 2)
    unknown = s.topic_name("unknown")
    for version in range(14):
        auto = version < 4
        c.asks(by_name(topic, auto=auto), version, does="asks for a topic")
        if version >= 4:
            c.asks(by_name(topic, unknown), version, does="asks for a known topic and an unknown one")
        if version >= 1:
            c.asks(MetadataRequest(topics=()), version, does="asks for no topics")
        c.asks(MetadataRequest(topics=None if version else ()), version, does="asks for all topics")


@story(sections=["metadata"])
def odd_questions_for_metadata(s: Story) -> None:
    """Ids that are known, unknown, both with a name; invalid names; a topic twice; authorised operations; internal
    topics."""
    stage, c = Stagehand(s), Client(s, "c")
    topic = stage.topic("orders")
    topic_id = stage.topic_id(topic)

    def ask(*topics: MetadataRequestTopic, version: int = 13, does: str, **changes: Any) -> None:
        request = MetadataRequest(topics=topics, allow_auto_topic_creation=False)
        c.asks(replace(request, **changes), version, does=does)

    for version in (10, 11, 12, 13):
        if version >= 12:
            ask(MetadataRequestTopic(name=None, topic_id=topic_id), version=version, does="asks by id")
            ask(
                MetadataRequestTopic(name=None, topic_id=uuid.UUID(int=3)),
                version=version,
                does="asks by an unknown id",
            )
            ask(
                MetadataRequestTopic(name=None, topic_id=topic_id), MetadataRequestTopic(name=topic), version=version,
                does="asks by id and by name",
            )  # fmt: skip
        ask(MetadataRequestTopic(name=topic), MetadataRequestTopic(name=topic), version=version, does="asks twice")
    ask(MetadataRequestTopic(name=topic, topic_id=topic_id), does="says name and id")
    ask(MetadataRequestTopic(name=None), does="says neither name nor id")
    for name in ("", "bad name", "x" * 250, "."):
        ask(MetadataRequestTopic(name=name), does=f"asks for {name[:12]!r}")
        ask(
            MetadataRequestTopic(name=name),
            does=f"asks for {name[:12]!r}, to be created",
            allow_auto_topic_creation=True,
        )
    ask(MetadataRequestTopic(name=topic), version=8, does="asks for all operations",
        include_cluster_authorized_operations=True, include_topic_authorized_operations=True)  # fmt: skip
    ask(
        MetadataRequestTopic(name=topic),
        version=13,
        does="asks for the topic's operations",
        include_topic_authorized_operations=True,
    )


@story(sections=["metadata"], lasts_ms=3000)
def topics_that_make_themselves(s: Story) -> None:
    """An unknown topic is created by Metadata, with the default number of partitions; the first response is an error."""
    stage, c = Stagehand(s), Client(s, "c")
    for version in (0, 1, 4, 12, 13):
        name = s.topic_name(f"v{version}")
        c.asks(by_name(name, auto=True), version, does="asks for a new topic")
        stage.knows(name, 1)
        c.asks(by_name(name, auto=True), version, does="asks again")
    c.asks(by_name(s.topic_name("no"), auto=False), 4, does="asks, not to be created")
    s.wait(600, "nothing happens")
    c.asks(by_name(s.topic_name("no"), auto=False), 4, does="asks again")


@story(sections=["metadata"], settings=SLOW_START)
def topics_that_do_not(s: Story) -> None:
    """With auto.create.topics.enable=false no topic is created; CreateTopics uses num.partitions for -1."""
    c = Client(s, "c")
    for version in (0, 4, 13):
        c.asks(by_name(s.topic_name("no"), auto=True), version, does="asks for a new topic")
    c.asks(create(wanted(s.topic_name("three"), -1, -1)), does="creates with default counts")
    Stagehand(s).knows(s.topic_name("three"), 3)
    c.asks(by_name(s.topic_name("three")), does="asks what there is")

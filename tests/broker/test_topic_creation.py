"""Every check before a topic is created; the texts are those of a real broker."""

import pytest

from groupcoord.broker.topic_admin import TopicPlan, create_automatically, create_topic, plan_topic
from groupcoord.core.api_error import ApiError
from groupcoord.protocol.apis.create_topics import CreatableTopic
from groupcoord.protocol.errors import ErrorCode
from tests.broker.asking import NOW_MS, Asking, topic

NO_PARTITIONS = "Number of partitions was set to an invalid non-positive value."
NO_REPLICAS = "Replication factor must be larger than 0, or -1 to use the default value."
GAP = "partitions should be a consecutive 0-based integer sequence"
BY_HAND = "A manual partition assignment was specified, but"


def too_many_replicas(count: int) -> str:
    return (
        f"Unable to replicate the partition {count} time(s): The target replication factor of {count} cannot be reached "
        "because only 1 broker(s) are registered or some brokers have all their log directories cordoned."
    )


@pytest.mark.parametrize(
    ("asked", "error", "text"),
    [
        (topic("a b", 0, 0), ErrorCode.INVALID_TOPIC_EXCEPTION, None),
        (topic("there", 0, 0), ErrorCode.TOPIC_ALREADY_EXISTS, "Topic 'there' already exists."),
        (
            topic("dot_ted", 0, 0),
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            "Topic 'dot_ted' collides with existing topic: dot.ted",
        ),
        (topic("x", 0, 0, configs={"nope": "1"}), ErrorCode.INVALID_CONFIG, "Unknown topic config name: nope"),
        (
            topic("x", configs=(("b", None), ("a", None), ("b", "1"), ("b", None))),
            ErrorCode.INVALID_CONFIG,
            "Null value not supported for topic configs: b,a,b",
        ),
        (topic("x", 0, 0), ErrorCode.INVALID_REPLICATION_FACTOR, NO_REPLICAS),
        (topic("x", 0, 2), ErrorCode.INVALID_PARTITIONS, NO_PARTITIONS),
        (topic("x", -2, 1), ErrorCode.INVALID_PARTITIONS, NO_PARTITIONS),
        (topic("x", 1, -2), ErrorCode.INVALID_REPLICATION_FACTOR, NO_REPLICAS),
        (topic("x", 1, 3), ErrorCode.INVALID_REPLICATION_FACTOR, too_many_replicas(3)),
        (
            topic("x", -1, 1, assignments=((1,),)),
            ErrorCode.INVALID_REQUEST,
            f"{BY_HAND} replication factor was not set to -1.",
        ),
        (
            topic("x", 1, -1, assignments=((1,),)),
            ErrorCode.INVALID_REQUEST,
            f"{BY_HAND} numPartitions was not set to -1.",
        ),
        (
            topic("x", assignments=((2,),)),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "The manual partition assignment includes broker 2, but no such broker is registered.",
        ),
        (
            topic("x", assignments=((2, -1),)),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "The manual partition assignment includes broker -1, but no such broker is registered.",
        ),
        (
            topic("x", assignments=((1, 1),)),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "The manual partition assignment includes the broker 1 more than once.",
        ),
        (
            topic("x", assignments=((1,), ())),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "The manual partition assignment includes an empty replica list.",
        ),
        (topic("x", assignments={1: (1,)}), ErrorCode.INVALID_REPLICA_ASSIGNMENT, GAP),
        (topic("x", assignments={0: (1,), 2: (1,)}), ErrorCode.INVALID_REPLICA_ASSIGNMENT, GAP),
        (topic("x", assignments={-1: (1,)}), ErrorCode.INVALID_REPLICA_ASSIGNMENT, GAP),
    ],
)
def test_a_topic_that_may_not_be_created(asked: CreatableTopic, error: ErrorCode, text: str | None) -> None:
    asking = Asking()
    asking.create("there", "dot.ted")
    with pytest.raises(ApiError) as refusal:
        plan_topic(asking.broker, asked)
    assert refusal.value.code is error
    assert text is None or refusal.value.message == text


def test_a_partition_is_assigned_once() -> None:
    twice = topic("x", assignments=((1,),))
    asked = topic("x", assignments=((1,),))
    both = CreatableTopic(
        name="x",
        num_partitions=-1,
        replication_factor=-1,
        assignments=twice.assignments + asked.assignments,
        configs=(),
    )
    with pytest.raises(ApiError, match="Found multiple manual partition assignments for partition 0"):
        plan_topic(Asking().broker, both)


def test_what_is_left_open_is_the_brokers() -> None:
    broker = Asking({"num.partitions": 3}).broker
    assert plan_topic(broker, topic("x", -1, -1)) == TopicPlan("x", [(1,)] * 3, {})
    assert plan_topic(broker, topic("x", 2, -1, configs=(("retention.ms", "1"), ("retention.ms", "2")))) == TopicPlan(
        "x", [(1,)] * 2, {"retention.ms": "2"}
    )
    assert plan_topic(broker, topic("x", assignments={1: (1,), 0: (1,)})) == TopicPlan("x", [(1,)] * 2, {})
    with pytest.raises(ApiError, match="target replication factor of 2"):
        plan_topic(Asking({"default.replication.factor": 2}).broker, topic("x", -1, -1))


def test_a_topic_is_created_with_the_brokers_defaults() -> None:
    broker = Asking({"num.partitions": 3}).broker
    assert len(create_topic(broker, NOW_MS, "a").partitions) == 3
    assert len(create_topic(broker, NOW_MS, "b", 5).partitions) == 5
    with pytest.raises(ApiError, match="already exists"):
        create_topic(broker, NOW_MS, "a")


def test_kafkas_own_topics_need_no_second_broker() -> None:
    broker = Asking({"default.replication.factor": 3}).broker
    offsets = create_topic(broker, NOW_MS, "__consumer_offsets")
    assert (len(offsets.partitions), offsets.settings.compact, offsets.settings.segment_bytes) == (50, True, 104857600)


def test_unless_they_are_to_be_replicated() -> None:
    broker = Asking({"offsets.topic.replication.factor": 3}).broker
    with pytest.raises(ApiError, match="Unable to replicate the partition 3 time"):
        create_topic(broker, NOW_MS, "__consumer_offsets")


def test_nobody_hears_of_what_could_not_be_created_automatically() -> None:
    broker = Asking().broker
    create_automatically(broker, NOW_MS, ["a", "a", "__cluster_metadata", "b c", "d"])
    assert [one.name for one in broker.topics] == ["a", "d"]

"""CreateTopics, DeleteTopics and CreatePartitions; codes, texts and orders are those of a real broker."""

import uuid
from collections.abc import Sequence
from typing import Any

import pytest

from groupcoord.broker.topic_store import Topic
from groupcoord.core.effect_collector import HandlerContext
from groupcoord.protocol.apis.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from groupcoord.protocol.apis.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from groupcoord.protocol.apis.delete_topics import DeleteTopicsRequest, DeleteTopicState
from groupcoord.protocol.errors import ErrorCode
from tests.broker.asking import Asking, topic

NONE = ErrorCode.NONE
DUPLICATE = (ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
TIMED_OUT = (ErrorCode.REQUEST_TIMED_OUT, None)
UNHOSTED = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition.")


def creating(*topics: CreatableTopic, **fields: Any) -> CreateTopicsRequest:
    return CreateTopicsRequest(topics=topics, **fields)


def created(response: CreateTopicsResponse) -> list[tuple[str, tuple[int, str | None]]]:
    return [(result.name, (result.error_code, result.error_message)) for result in response.topics]


class TestCreateTopics:
    def test_topics_are_created(self) -> None:
        asking = Asking({"log.retention.hours": 24})
        response = asking.ask(
            creating(topic("a", 2, configs={"cleanup.policy": "compact , delete"}), topic("b", -1, -1))
        )
        assert created(response) == [("a", (NONE, None)), ("b", (NONE, None))]
        a, b = response.topics
        assert (a.topic_id, a.num_partitions, a.replication_factor) == (asking.broker.topics.topic_id("a"), 2, 1)
        assert (b.num_partitions, b.replication_factor) == (1, 1)
        assert len(a.configs) == len(b.configs) == 33
        configs = {config.name: (config.value, config.config_source) for config in a.configs}
        assert configs["cleanup.policy"] == ("compact , delete", 1)
        assert configs["min.insync.replicas"] == ("1", 3)
        assert configs["retention.ms"] == ("86400000", 4)
        assert configs["flush.ms"] == ("9223372036854775807", 5)
        assert not any(config.read_only or config.is_sensitive for config in a.configs)
        assert asking.broker.topics.partition_count("a") == 2

    @pytest.mark.parametrize("version", range(2, 8))
    def test_every_version_is_answered(self, version: int) -> None:
        asking = Asking()
        (result,) = asking.ask(creating(topic("a")), version).topics
        assert (result.error_code, result.topic_id is not None) == (NONE, version >= 7)
        assert (result.num_partitions, len(result.configs)) == ((1, 33) if version >= 5 else (-1, 0))
        (result,) = asking.ask(creating(topic("a")), version).topics
        assert (result.error_code, result.error_message) == (
            ErrorCode.TOPIC_ALREADY_EXISTS,
            "Topic 'a' already exists.",
        )
        assert (result.topic_config_error_code, result.num_partitions, result.configs) == (0, -1, ())

    def test_one_refusal_does_not_hinder_the_others(self) -> None:
        asking = Asking()
        answer = created(asking.ask(creating(topic("a b"), topic("a"), topic("c", 0))))
        assert [(name, error) for name, (error, _) in answer] == [
            ("a b", ErrorCode.INVALID_TOPIC_EXCEPTION),
            ("a", NONE),
            ("c", ErrorCode.INVALID_PARTITIONS),
        ]
        assert [one.name for one in asking.broker.topics] == ["a"]

    def test_a_name_that_is_said_twice_is_not_created(self) -> None:
        asking = Asking()
        asked = creating(topic("d"), topic("e"), topic("d", 2), topic("f"), topic("e"), topic("z z"))
        answer = created(asking.ask(asked))
        assert [name for name, _ in answer] == ["f", "z z", "d", "e"]
        assert [outcome for _, outcome in answer[2:]] == [DUPLICATE, DUPLICATE]
        assert [one.name for one in asking.broker.topics] == ["f"]

    def test_nobody_creates_the_clusters_metadata(self) -> None:
        answer = created(Asking().ask(creating(topic("__cluster_metadata"), topic("a"))))
        refusal = (ErrorCode.INVALID_REQUEST, "Creation of internal topic __cluster_metadata is prohibited.")
        assert answer == [("a", (NONE, None)), ("__cluster_metadata", refusal)]

    def test_two_names_of_one_request_may_collide(self) -> None:
        asking = Asking()
        assert created(asking.ask(creating(topic("a.b"), topic("a_b")))) == [
            ("a.b", (NONE, None)),
            ("a_b", (NONE, None)),
        ]

    def test_a_check_creates_nothing(self) -> None:
        asking = Asking()
        for _ in range(2):
            (result,) = asking.ask(creating(topic("a", 3), validate_only=True)).topics
            assert (result.error_code, result.num_partitions, len(result.configs)) == (NONE, 3, 33)
            assert result.topic_id is not None
        assert len(asking.broker.topics) == 0

    @pytest.mark.parametrize(
        "topics",
        [
            (topic("a", 10_001),),
            (topic("a", 6_000), topic("b", 6_000)),
            (topic("a", -100), topic("b", 10_001)),
            (topic("a", 9_999), topic("b", 7, -1, assignments=((1,), (1,)))),
            (topic("a b", 10_001),),
        ],
    )
    def test_one_request_creates_ten_thousand_partitions_at_most(self, topics: tuple[CreatableTopic, ...]) -> None:
        answer = created(Asking().ask(creating(*topics, topic("z"), topic("z"))))
        refusal = (ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions per request.")
        assert answer == [(one.name, refusal) for one in (*topics, topic("z"), topic("z"))]

    def test_the_number_of_partitions_overflows(self) -> None:
        most, lost = (1 << 31) - 1, (ErrorCode.UNKNOWN_SERVER_ERROR, None)
        asking = Asking()
        assert created(asking.ask(creating(topic("z"), topic("a", most), topic("b", most)))) == [
            ("z", lost),
            ("a", lost),
            ("b", lost),
        ]
        text = (
            "Unable to replicate the partition 2 time(s): The target replication factor of 2 cannot be reached because only 1 "
            "broker(s) are registered or some brokers have all their log directories cordoned."
        )
        fault = (ErrorCode.INVALID_REPLICATION_FACTOR, text)
        assert created(asking.ask(creating(topic("z"), topic("a", most, 2), topic("b", most, 2)))) == [
            ("z", (NONE, None)),
            ("a", fault),
            ("b", fault),
        ]
        assert [each.name for each in asking.broker.topics] == ["z"]

    @pytest.mark.parametrize(
        ("topics", "fits"),
        [
            ((topic("a", 9_999),), True),
            ((topic("a", 10_000),), False),
            ((topic("a", 9_998, configs={"retention.ms": "5"}),), True),
            ((topic("a", 9_999, configs={"retention.ms": "5"}),), False),
            ((topic("a b", 5), topic("a", 9_990)), True),
        ],
    )
    def test_one_request_writes_ten_thousand_records_at_most(
        self, topics: tuple[CreatableTopic, ...], fits: bool
    ) -> None:
        answer = created(Asking().ask(creating(*topics, validate_only=True)))
        refusal = (ErrorCode.POLICY_VIOLATION, "Unable to perform excessively large batch operation.")
        assert (answer[-1][1] == (NONE, None)) is fits
        assert fits or answer == [(one.name, refusal) for one in topics]

    @pytest.mark.parametrize("timeout_ms", [0, -1])
    def test_no_time_is_not_enough(self, timeout_ms: int) -> None:
        asking = Asking()
        answer = created(asking.ask(creating(topic("a"), topic("a b"), topic("b"), topic("b"), timeout_ms=timeout_ms)))
        assert answer == [(name, TIMED_OUT) for name in ("a", "a b", "b", "b")]
        assert len(asking.broker.topics) == 0

    def test_no_time_is_enough_for_no_work(self) -> None:
        asking = Asking()
        assert created(asking.ask(creating(timeout_ms=0))) == []
        answer = created(asking.ask(creating(topic("b"), topic("b"), topic("__cluster_metadata"), timeout_ms=0)))
        assert [outcome[0] for _, outcome in answer] == [ErrorCode.INVALID_REQUEST] * 2


class Deleting(Asking):
    """Topics a, b and c, whoever deletes some, and who is told."""

    def __init__(self, properties: dict[str, object] | None = None) -> None:
        super().__init__(properties)
        self.create("a", "b", "c")
        self.told: list[str] = []
        self.broker.on_topics_deleted = self._told

    def _told(self, _turn: HandlerContext, topics: Sequence[Topic]) -> None:
        self.told += [one.name for one in topics]

    def id_of(self, name: str) -> uuid.UUID:
        found = self.broker.topics.topic_id(name)
        assert found is not None
        return found

    def delete(
        self, *meant: str | uuid.UUID | DeleteTopicState, timeout_ms: int = 1000, version: int = 6
    ) -> list[tuple[str | None, uuid.UUID | None, tuple[int, str | None]]]:
        states = tuple(
            one
            if isinstance(one, DeleteTopicState)
            else DeleteTopicState(name=one)
            if isinstance(one, str)
            else DeleteTopicState(topic_id=one)
            for one in meant
        )
        request = DeleteTopicsRequest(
            topic_names=tuple(one for one in meant if isinstance(one, str)) if version < 6 else (),
            topics=states if version >= 6 else (),
            timeout_ms=timeout_ms,
        )
        answer = self.ask(request, version)
        return [(one.name, one.topic_id, (one.error_code, one.error_message)) for one in answer.responses]


class TestDeleteTopics:
    def test_by_name_and_by_id(self) -> None:
        asking = Deleting()
        a, b = asking.id_of("a"), asking.id_of("b")
        assert asking.delete("a", b) == [("b", b, (NONE, None)), ("a", a, (NONE, None))]
        assert [one.name for one in asking.broker.topics] == ["c"]
        assert sorted(asking.told) == ["a", "b"]

    @pytest.mark.parametrize("version", range(1, 7))
    def test_every_version_is_answered(self, version: int) -> None:
        asking = Deleting()
        (outcome,) = asking.delete("nope", version=version)
        assert outcome == ("nope", None, UNHOSTED if version >= 5 else (UNHOSTED[0], None))
        (outcome,) = asking.delete("a", version=version)
        assert (outcome[0], outcome[1] is not None, outcome[2]) == ("a", version >= 6, (NONE, None))
        assert asking.told == ["a"]

    def test_what_is_not_there(self) -> None:
        asking, nobody = Deleting(), uuid.UUID(int=5)
        unknown_id = (ErrorCode.UNKNOWN_TOPIC_ID, "This server does not host this topic ID.")
        assert asking.delete("a b", nobody, "") == [
            (None, nobody, unknown_id),
            ("a b", None, UNHOSTED),
            ("", None, UNHOSTED),
        ]
        assert asking.told == []

    def test_what_says_too_much_or_too_little(self) -> None:
        asking = Deleting()
        both = DeleteTopicState(name="a", topic_id=asking.id_of("b"))
        neither = DeleteTopicState()
        assert asking.delete(both, neither, neither) == [
            ("a", both.topic_id, (ErrorCode.INVALID_REQUEST, "You may not specify both topic name and topic id.")),
            (None, None, (ErrorCode.INVALID_REQUEST, "Neither topic name nor id were specified.")),
            (None, None, (ErrorCode.INVALID_REQUEST, "Neither topic name nor id were specified.")),
        ]

    def test_what_is_said_twice_is_not_deleted(self) -> None:
        asking = Deleting()
        a, b, c = map(asking.id_of, "abc")
        already = (ErrorCode.INVALID_REQUEST, "The provided topic name maps to an ID that was already supplied.")
        assert asking.delete("a", "a") == [("a", None, DUPLICATE)]
        assert asking.delete(b, b) == [(None, b, (ErrorCode.INVALID_REQUEST, "Duplicate topic id."))]
        assert asking.delete(c, "c") == [("c", c, already)]
        assert asking.delete("b", b, b) == [
            (None, b, (ErrorCode.INVALID_REQUEST, "Duplicate topic id.")),
            ("b", b, already),
        ]
        assert (len(asking.broker.topics), asking.told) == (3, [])
        assert asking.delete("a", "b", "b") == [("b", None, DUPLICATE), ("a", a, (NONE, None))]

    def test_kafkas_own_topics_can_be_deleted(self) -> None:
        asking = Deleting()
        asking.create("__consumer_offsets")
        asking.delete("__consumer_offsets")
        assert asking.told == ["__consumer_offsets"]

    @pytest.mark.parametrize(
        ("version", "error"),
        [
            (2, ErrorCode.INVALID_REQUEST),
            (3, ErrorCode.TOPIC_DELETION_DISABLED),
            (6, ErrorCode.TOPIC_DELETION_DISABLED),
        ],
    )
    def test_deletion_may_be_switched_off(self, version: int, error: ErrorCode) -> None:
        asking = Deleting({"delete.topic.enable": False})
        assert [outcome[0] for *_, outcome in asking.delete("a", "nope", version=version)] == [error, error]
        assert len(asking.broker.topics) == 3

    def test_no_time_is_not_enough(self) -> None:
        asking = Deleting()
        a = asking.id_of("a")
        assert asking.delete("nope", a, "b", "b", timeout_ms=0) == [
            ("nope", None, TIMED_OUT),
            (None, a, TIMED_OUT),
            ("b", None, TIMED_OUT),
            ("b", None, TIMED_OUT),
        ]
        assert len(asking.broker.topics) == 3

    def test_no_time_is_enough_for_no_work(self) -> None:
        asking = Deleting()
        assert asking.delete(timeout_ms=0) == []
        assert asking.delete("b", "b", timeout_ms=-1) == [("b", None, DUPLICATE)]


Places = tuple[tuple[int, ...], ...]


class Growing(Asking):
    """A topic p of two partitions and a topic q of one."""

    def __init__(self) -> None:
        super().__init__()
        self.create("p", partitions=2)
        self.create("q")

    def grow(
        self,
        *wanted: tuple[str, int] | tuple[str, int, Places],
        version: int = 3,
        timeout_ms: int = 1000,
        check: bool = False,
    ) -> list[tuple[str, tuple[int, str | None]]]:
        topics = tuple(
            CreatePartitionsTopic(
                name=one[0],
                count=one[1],
                assignments=tuple(CreatePartitionsAssignment(broker_ids=ids) for ids in one[2])
                if len(one) > 2
                else None,
            )
            for one in wanted
        )
        request = CreatePartitionsRequest(topics=topics, timeout_ms=timeout_ms, validate_only=check)
        return [(one.name, (one.error_code, one.error_message)) for one in self.ask(request, version).results]

    def counts(self) -> tuple[int | None, int | None]:
        return self.broker.topics.partition_count("p"), self.broker.topics.partition_count("q")


class TestCreatePartitions:
    @pytest.mark.parametrize("version", range(4))
    def test_a_topic_grows(self, version: int) -> None:
        asking = Growing()
        assert asking.grow(("p", 4), version=version) == [("p", (NONE, None))]
        assert asking.grow(("p", 5, ((1,),)), version=version) == [("p", (NONE, None))]
        assert asking.counts() == (5, 1)
        log = asking.broker.log("p", 4)
        assert log is not None
        assert log.name == "p-4"

    def test_a_check_changes_nothing(self) -> None:
        asking = Growing()
        assert asking.grow(("p", 4), check=True) == [("p", (NONE, None))]
        assert asking.counts() == (2, 1)

    @pytest.mark.parametrize(
        ("wanted", "error", "text"),
        [
            (("nope", 3), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None),
            (("a b", 3), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None),
            (("p", 2), ErrorCode.INVALID_PARTITIONS, "Topic already has 2 partition(s)."),
            (
                ("p", -1),
                ErrorCode.INVALID_PARTITIONS,
                "The topic p currently has 2 partition(s); -1 would not be an increase.",
            ),
            (
                ("p", 4, ((1,),)),
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                "Attempted to add 2 additional partition(s), but only 1 assignment(s) were specified.",
            ),
            (
                ("p", 3, ()),
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                "Attempted to add 1 additional partition(s), but only 0 assignment(s) were specified.",
            ),
            (
                ("p", 3, ((2,),)),
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                "The manual partition assignment includes broker 2, but no such broker is registered.",
            ),
            (
                ("p", 4, ((1,), ())),
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                "The manual partition assignment includes an empty replica list.",
            ),
        ],
    )
    def test_a_topic_that_may_not_grow(
        self, wanted: tuple[str, int] | tuple[str, int, Places], error: ErrorCode, text: str | None
    ) -> None:
        asking = Growing()
        assert asking.grow(wanted) == [(wanted[0], (error, text))]
        assert asking.counts() == (2, 1)

    @pytest.mark.parametrize(("dry", "count"), [(False, 10_002), (True, 2)])
    def test_one_that_grows_too_much_grows_as_far_as_it_goes(self, dry: bool, count: int) -> None:
        """As in Kafka, whose records are kept although their number is over the limit."""
        asking = Growing()
        answer = asking.grow(("p", 10_003), ("q", 2), check=dry)
        assert answer == [(name, (ErrorCode.UNKNOWN_SERVER_ERROR, None)) for name in ("p", "q")]
        assert asking.counts() == (count, 1)

    def test_duplicates_come_first_and_then_the_order_of_a_hash_set(self) -> None:
        asking = Growing()
        answer = asking.grow(("p", 3), ("q", 5), ("p", 4), ("nosuch", 2), ("__consumer_offsets", 51))
        assert [name for name, _ in answer] == ["p", "q", "__consumer_offsets", "nosuch"]
        assert answer[0][1] == DUPLICATE
        assert asking.counts() == (2, 5)

    def test_one_request_adds_ten_thousand_partitions_at_most(self) -> None:
        asking = Growing()
        full = (ErrorCode.UNKNOWN_SERVER_ERROR, None)
        assert asking.grow(("p", 10_003), ("q", 2), check=True) == [("p", full), ("q", full)]
        present = (ErrorCode.INVALID_PARTITIONS, "Topic already has 1 partition(s).")
        assert asking.grow(("p", 10_003), ("q", 1), check=True) == [("p", full), ("q", present)]
        assert asking.grow(("p", 10_002), check=True) == [("p", (NONE, None))]

    @pytest.mark.parametrize("count", [(1 << 28) + 2, (1 << 31) - 1])
    def test_a_request_for_more_partitions_than_fit_into_the_memory_fails_as_a_whole(self, count: int) -> None:
        asking = Growing()
        lost = (ErrorCode.UNKNOWN_SERVER_ERROR, None)
        assert asking.grow(("q", 2), ("p", count)) == [("q", lost), ("p", lost)]
        assert asking.counts() == (2, 1)

    @pytest.mark.slow
    def test_one_request_names_ten_thousand_topics_at_most(self) -> None:
        asking = Growing()
        names = [*(str(number) for number in range(9_999)), "p"]
        assert (answer := asking.grow(*((name, 3) for name in names), check=True)).count(("p", (NONE, None))) == 1
        assert len(answer) == 10_000
        refused = (ErrorCode.POLICY_VIOLATION, "Unable to perform excessively large batch operation.")
        assert asking.grow(*((name, 3) for name in [*names, "q"])) == [(name, refused) for name in [*names, "q"]]
        assert asking.counts() == (2, 1)

    def test_no_time_is_not_enough(self) -> None:
        asking = Growing()
        assert asking.grow(("p", 3), ("q", 2), ("q", 3), timeout_ms=0) == [
            ("p", TIMED_OUT),
            ("q", TIMED_OUT),
            ("q", TIMED_OUT),
        ]
        assert asking.grow(("q", 2), ("q", 3), timeout_ms=0) == [("q", DUPLICATE)]
        assert asking.grow(timeout_ms=0) == []

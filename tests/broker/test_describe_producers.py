import pytest

from groupcoord.protocol.apis.describe_producers import (
    DescribeProducersRequest,
    PartitionResponse,
    ProducerState,
    TopicRequest,
)
from groupcoord.protocol.errors import ErrorCode
from tests.broker.data_plane import NOW_MS, THEN_MS, DataPlane
from tests.broker.transactions import end, part, write


@pytest.fixture
def plane() -> DataPlane:
    made = DataPlane()
    made.topic("orders", 2)
    return made


def ask(plane: DataPlane, name: str, *indexes: int, to: int | None = None) -> list[PartitionResponse]:
    request = DescribeProducersRequest(topics=(TopicRequest(name=name, partition_indexes=indexes),))
    (topic,) = plane.ask(request, 0, to=to).topics
    assert topic.name == name
    return list(topic.partitions)


def test_it_tells_who_writes_and_whose_transaction_is_open(plane: DataPlane) -> None:
    write(
        plane.log("orders"),
        part(4, 2, producer=1, transactional=False),
        part(0, producer=2),
        part(0, producer=3, epoch=5),
        end(producer=3, epoch=6, coordinator=9),
        part(0, producer=4),
        end(producer=4, coordinator=8),
    )
    (found,) = ask(plane, "orders", 0)
    assert found.error_code == 0
    assert found.active_producers == (
        ProducerState(producer_id=1, producer_epoch=0, last_sequence=5, last_timestamp=THEN_MS, coordinator_epoch=-1),
        ProducerState(
            producer_id=2,
            producer_epoch=0,
            last_sequence=0,
            last_timestamp=THEN_MS,
            coordinator_epoch=-1,
            current_txn_start_offset=2,
        ),
        ProducerState(producer_id=3, producer_epoch=6, last_timestamp=NOW_MS, coordinator_epoch=9),
        ProducerState(producer_id=4, producer_epoch=0, last_sequence=0, last_timestamp=NOW_MS, coordinator_epoch=8),
    )


def test_they_come_in_the_order_of_a_hash_map(plane: DataPlane) -> None:
    for producer in (17, 3, (5 << 32) + 1, 16, 2):
        write(plane.log("orders"), part(0, producer=producer))
    (found,) = ask(plane, "orders", 0)
    assert [state.producer_id for state in found.active_producers] == [16, 17, 2, 3, (5 << 32) + 1]


def test_partitions_are_told_as_often_as_they_are_asked_for(plane: DataPlane) -> None:
    assert ask(plane, "orders", 1, 1) == [PartitionResponse(partition_index=1)] * 2


@pytest.mark.parametrize(
    ("name", "index", "error", "message"),
    [
        ("orders", 2, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None),
        ("orders", -1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None),
        (
            "nothing",
            0,
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            "This server does not host this topic-partition.",
        ),
        ("", 0, ErrorCode.INVALID_TOPIC_EXCEPTION, "Topic name is invalid: the empty string is not allowed"),
    ],
)
def test_where_there_is_nothing(plane: DataPlane, name: str, index: int, error: ErrorCode, message: str | None) -> None:
    assert ask(plane, name, index) == [
        PartitionResponse(partition_index=index, error_code=error, error_message=message)
    ]


def test_only_brokers_that_have_the_partition_know() -> None:
    plane = DataPlane(brokers=2)
    plane.topic("orders")
    topic = plane.broker.topics.get("orders")
    assert topic is not None
    (here,) = topic.metadata.replicas[0]
    (elsewhere,) = set(plane.broker.cluster.ids) - {here}
    assert ask(plane, "orders", 0, to=here)[0].error_code == 0
    assert ask(plane, "orders", 0, to=elsewhere)[0].error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER

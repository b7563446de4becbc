"""DescribeTopicPartitions: pages. What one answer says of a topic is judged by the recordings of a real broker."""

from collections.abc import Iterator

import pytest

from groupcoord.protocol.apis.describe_topic_partitions import Cursor, DescribeTopicPartitionsResponse, TopicRequest
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages import DescribeTopicPartitionsRequest
from tests.broker.asking import Asking

INT32_MAX = (1 << 31) - 1


@pytest.fixture
def asking() -> Asking:
    """Three partitions of orders, two of pays; at most four in an answer."""
    asking = Asking({"max.request.partition.size.limit": "4"})
    asking.create("orders", partitions=3)
    asking.create("pays", partitions=2)
    return asking


def describe(
    asking: Asking, *topics: str, limit: int = 2000, cursor: Cursor | None = None
) -> DescribeTopicPartitionsResponse:
    request = DescribeTopicPartitionsRequest(
        topics=tuple(TopicRequest(name=name) for name in topics), response_partition_limit=limit, cursor=cursor
    )
    answer: DescribeTopicPartitionsResponse = asking.ask(request)
    return answer


def pages(asking: Asking, limit: int) -> Iterator[list[str]]:
    """All topics, page by page."""
    cursor = None
    while True:
        page = describe(asking, limit=limit, cursor=cursor)
        yield [f"{topic.name}-{one.partition_index}" for topic in page.topics for one in topic.partitions]
        cursor = page.next_cursor
        if cursor is None:
            return


def test_pages_together_have_every_partition_once(asking: Asking) -> None:
    everything = ["orders-0", "orders-1", "orders-2", "pays-0", "pays-1"]
    for limit, most in ((-1, 1), (0, 1), (1, 1), (2, 2), (3, 3), (4, 4), (2000, 4)):
        found = list(pages(asking, limit))
        assert [name for page in found for name in page] == everything
        assert max(map(len, found)) == most


def test_topics_come_by_name_and_errors_take_no_room(asking: Asking) -> None:
    answer = describe(asking, "pays", "nope", "bad name", "orders", "orders", limit=3)
    assert [(topic.name, topic.error_code, len(topic.partitions)) for topic in answer.topics] == [
        ("bad name", ErrorCode.INVALID_TOPIC_EXCEPTION, 0),
        ("nope", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 0),
        ("orders", ErrorCode.NONE, 3),
    ]
    assert answer.next_cursor == Cursor(topic_name="pays", partition_index=0)


def test_a_wrong_cursor_is_refused(asking: Asking) -> None:
    for topics, cursor, error in (
        (("orders",), Cursor(topic_name="orders", partition_index=-1), ErrorCode.INVALID_REQUEST),
        (("orders",), Cursor(topic_name="pays", partition_index=0), ErrorCode.INVALID_REQUEST),
        (("orders", ""), None, ErrorCode.UNKNOWN_SERVER_ERROR),
    ):
        answer = describe(asking, *topics, cursor=cursor)
        assert [topic.error_code for topic in answer.topics] == [error] * len(topics)


def test_an_index_that_overflows_comes_back_as_kafka_counts(asking: Asking) -> None:
    answer = describe(asking, "orders", cursor=Cursor(topic_name="orders", partition_index=INT32_MAX))
    assert [len(topic.partitions) for topic in answer.topics] == [0]
    assert answer.next_cursor == Cursor(topic_name="orders", partition_index=-INT32_MAX + 2)

"""DescribeTopicPartitions: topics page by page."""

from groupcoord.protocol.apis.describe_topic_partitions import Cursor, TopicRequest
from groupcoord.protocol.messages import DescribeTopicPartitionsRequest
from tests.conformance.actors import Client, Stagehand
from tests.conformance.story import Story, story

INT32_MAX = (1 << 31) - 1


def describe(*topics: str, limit: int = 2000, cursor: tuple[str, int] | None = None) -> DescribeTopicPartitionsRequest:
    """A DescribeTopicPartitions of these topics."""
    return DescribeTopicPartitionsRequest(
        topics=tuple(TopicRequest(name=name) for name in topics),
        response_partition_limit=limit,
        cursor=None if cursor is None else Cursor(topic_name=cursor[0], partition_index=cursor[1]),
    )


@story(sections=["topics"])
def partitions_of_topics_page_by_page(s: Story) -> None:
    """Topics in any order, with unknown and invalid names, with valid and invalid limits and cursors."""
    stage, admin = Stagehand(s), Client(s, "admin")
    orders, pays = stage.topic("orders", 3), stage.topic("pays", 2)
    unknown, last, between = s.topic_name("nope"), s.topic_name("zzz"), s.topic_name("p")
    admin.asks(describe(orders), does="describes one topic")
    admin.asks(
        describe(pays, unknown, orders, orders, "bad name"), does="describes topics in any order, one of them twice"
    )
    admin.asks(describe(orders, ""), does="describes a topic without a name")
    for limit in (1, 3, 4, 0, -5):
        admin.asks(describe(orders, pays, limit=limit), does=f"wants {limit} partitions at most")
    admin.asks(describe(orders, last, limit=3), does="reaches the limit before an unknown topic")
    admin.asks(describe(unknown, orders, limit=1), does="meets an unknown topic before the limit")
    for topic, partition in ((orders, 1), (pays, 1), (orders, 3), (orders, 7), (orders, INT32_MAX)):
        does = f"goes on from partition {partition} of {topic.rpartition('-')[2]}"
        admin.asks(describe(orders, pays, cursor=(topic, partition)), does=does)
    admin.asks(describe(orders, pays, limit=1, cursor=(orders, 7)), does="goes on behind the end, with a limit")
    admin.asks(describe(orders, between, pays, cursor=(between, 0)), does="goes on from a topic that does not exist")
    admin.asks(describe(orders, pays, cursor=(last, 0)), does="goes on from a topic that it does not ask for")
    admin.asks(describe(orders, cursor=(orders, -1)), does="goes on from a partition below 0")
    admin.asks(describe(orders, cursor=("", 0)), does="goes on from a topic without a name")
    admin.asks(describe(limit=2, cursor=(orders, 2)), does="goes on with all topics")
    admin.asks(describe(cursor=("zzzzzz", 0)), does="goes on with all topics behind the last")
    admin.asks(describe(cursor=(orders, -2)), does="goes on with all topics from a partition below 0")
    admin.asks(describe("__cluster_metadata"), does="describes the topic of the controllers")

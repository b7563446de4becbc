"""The node itself: its controller, its log directory, its registration."""

from groupcoord.protocol.apis.describe_log_dirs import DescribableLogDirTopic
from groupcoord.protocol.messages import DescribeLogDirsRequest, UnregisterBrokerRequest
from tests.conformance.actors import Client, Stagehand
from tests.conformance.batches import batch
from tests.conformance.brokers_registered import METADATA, quorum_request
from tests.conformance.data import DataClient
from tests.conformance.story import Story, story


@story(sections=["wire"])
def describing_the_quorum(s: Story) -> None:
    """A node that is its own controller, in every version; only the metadata partition has a quorum."""
    c = Client(s, "c")
    for version in range(3):
        c.asks(quorum_request((METADATA, (0,))), version)
        c.asks(quorum_request(), version)
        c.asks(quorum_request((METADATA, (1,))), version)
        c.asks(quorum_request((METADATA, ())), version)
        c.asks(quorum_request((METADATA, (0, 0))), version)
        c.asks(quorum_request((METADATA, (0,)), ("nope", (0,))), version)
        c.asks(quorum_request(("nope", (0, 7))), version)


@story(sections=["wire"])
def describing_log_directories(s: Story) -> None:
    """The directory in every version: all logs, none, and requested ones; missing ones are left out."""
    stage, c = Stagehand(s), DataClient(s, "c")
    topic, other = stage.topic("orders", 2), stage.topic("pays", 1)
    c.produces({(topic, 0): batch([b"one", b"two"])})
    c.produces({(topic, 1): batch([b"three"])})
    wanted: list[dict[str, tuple[int, ...]] | None]
    wanted = [None, {}, {topic: (1,)}, {topic: (0, 0, 9, -1), other: ()}, {other: (0,), "nope": (0,)}]
    for version in range(1, 6):
        for asked in wanted:
            topics = None if asked is None else tuple(map(_logs, asked.items()))
            c.asks(DescribeLogDirsRequest(topics=topics), version)


def _logs(asked: tuple[str, tuple[int, ...]]) -> DescribableLogDirTopic:
    topic, partitions = asked
    return DescribableLogDirTopic(topic=topic, partitions=partitions)


@story(sections=["wire"])
def unregistering_brokers_that_are_none(s: Story) -> None:
    """Ids for which no broker is registered."""
    c = Client(s, "c")
    for broker_id in (9, 0, -1, 2**31 - 1):
        c.asks(UnregisterBrokerRequest(broker_id=broker_id), 0)

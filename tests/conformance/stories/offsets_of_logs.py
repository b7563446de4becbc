"""ListOffsets, OffsetForLeaderEpoch, DeleteRecords: the start and end of a log, and offsets by time."""

from collections.abc import Sequence

from groupcoord.protocol.apis.delete_records import DeleteRecordsPartition, DeleteRecordsTopic
from groupcoord.protocol.apis.list_offsets import ListOffsetsPartition, ListOffsetsTopic
from groupcoord.protocol.apis.offset_for_leader_epoch import OffsetForLeaderPartition, OffsetForLeaderTopic
from groupcoord.protocol.messages import DeleteRecordsRequest, OffsetForLeaderEpochRequest
from tests.conformance.actors import Stagehand
from tests.conformance.batches import THEN_MS, Rec, batch
from tests.conformance.data import DataClient, produce_request
from tests.conformance.story import Story, story


def _timed(s: Story) -> tuple[str, DataClient]:
    """A partition with times that mostly grow, and an empty one."""
    stage = Stagehand(s)
    topic = stage.topic("orders", partitions=2)
    for times in ((0, 10, 20), (15, 5), (40, 40), (30,)):
        records = [Rec(b"x", timestamp_ms=THEN_MS + time) for time in times]
        stage.ask(produce_request({(topic, 0): batch(records)}, {}), 12)
    return topic, DataClient(s, "c")


@story(sections=["list offsets"])
def every_version_of_list_offsets(s: Story) -> None:
    """The end, the start, a time, the greatest time, tiered and local offsets: by version."""
    topic, c = _timed(s)
    for version in range(1, 12):
        for timestamp in (-1, -2, THEN_MS + 12, -3, -4, -5, -6, -7):
            c.lists_offsets({(topic, 0): timestamp, (topic, 1): timestamp}, version, does=f"asks for {timestamp}")


@story(sections=["list offsets"])
def offsets_by_time(s: Story) -> None:
    """The first record whose time is not before the requested one, with batches searched in order."""
    topic, c = _timed(s)
    for offset_ms in (-100, 0, 1, 10, 11, 15, 16, 20, 21, 30, 31, 40, 41, 10_000_000):
        c.lists_offsets({(topic, 0): THEN_MS + offset_ms}, does=f"asks for {offset_ms} ms after the first")
    c.lists_offsets({(topic, 0): 0, (topic, 1): 0})


@story(sections=["list offsets"])
def refusals_of_list_offsets(s: Story) -> None:
    """Unknown topics and partitions, a partition listed twice, leader epochs, isolation, an empty request."""
    topic, c = _timed(s)
    unknown = s.topic_name("unknown")
    for version in (1, 4, 11):
        c.lists_offsets({(topic, 9): -1, (unknown, 0): -1, (topic, 0): -1}, version)
        twice = ListOffsetsPartition(partition_index=0, timestamp=-1)
        topics = (ListOffsetsTopic(name=topic, partitions=(twice, twice)),)
        c.lists_offsets({}, version, does="asks twice for a partition", topics=topics)
        c.lists_offsets({}, version, does="asks for nothing")
    for epoch in (-1, 0, 1, 5):
        wanted = ListOffsetsPartition(partition_index=0, timestamp=-1, current_leader_epoch=epoch)
        topics = (ListOffsetsTopic(name=topic, partitions=(wanted,)),)
        c.lists_offsets({}, 11, does=f"asks in epoch {epoch}", topics=topics)
    c.lists_offsets({(topic, 0): -1}, does="asks for what is committed", isolation_level=1)
    c.lists_offsets({(topic, 0): -1}, does="asks as a debugger", replica_id=-2)


@story(sections=["epochs"])
def ends_of_leader_epochs(s: Story) -> None:
    """OffsetForLeaderEpoch: the current epoch, unknown ones, unknown partitions."""
    topic, c = _timed(s)
    for version in (2, 3, 4):
        for current, asked in ((-1, 0), (0, 0), (-1, 1), (-1, -1), (1, 0), (-1, 99)):
            wanted = tuple(
                OffsetForLeaderPartition(partition=index, current_leader_epoch=current, leader_epoch=asked)
                for index in (0, 1, 9)
            )
            topics = (
                OffsetForLeaderTopic(topic=topic, partitions=wanted),
                OffsetForLeaderTopic(topic=s.topic_name("unknown"), partitions=wanted[:1]),
            )
            request = OffsetForLeaderEpochRequest(topics=topics, replica_id=-1)
            c.asks(request, version, does=f"asks for the end of epoch {asked}, in epoch {current}")


@story(sections=["delete records"])
def records_are_deleted(s: Story) -> None:
    """The start moves to the given offset or to the end; offsets beyond, before, of unknown partitions; and the effect on a
    consumer."""
    topic, c = _timed(s)

    def delete(offset: int, version: int = 2, partition: int = 0, name: str = "") -> None:
        wanted = DeleteRecordsPartition(partition_index=partition, offset=offset)
        request = DeleteRecordsRequest(
            topics=(DeleteRecordsTopic(name=name or topic, partitions=(wanted,)),), timeout_ms=5_000
        )
        c.asks(request, version, does=f"deletes before {offset}")

    for version, offset in enumerate((1, 4, 2)):
        delete(offset, version)
        c.lists_offsets({(topic, 0): -2})
        c.fetches({(topic, 0): 0})
        c.fetches({(topic, 0): 4})
    c.lists_offsets({(topic, 0): THEN_MS})
    delete(9)
    delete(-2)
    delete(-1)
    delete(-1)
    delete(0)
    delete(0, partition=1)
    delete(1, partition=1)
    delete(0, partition=9)
    delete(0, name=s.topic_name("unknown"))
    delete(0, name="__consumer_offsets")
    c.fetches({(topic, 0): 8})
    c.produces({(topic, 0): batch([b"after"])})
    c.lists_offsets({(topic, 0): -2})
    c.lists_offsets({(topic, 0): -1})


@story(sections=["list offsets"])
def the_order_of_listed_offsets(s: Story) -> None:
    """Many topics and partitions, known and unknown: the response has the order of the broker's hash maps."""
    c = DataClient(s, "c")
    for count in (2, 5, 13, 40):
        names = [s.topic_name(f"t{number}") for number in range(count)]
        c.lists_offsets({(name, index): -1 for name in names for index in range(3)}, does=f"asks for {count} topics")
    c.lists_offsets({(s.topic_name("t"), index): -1 for index in range(99)}, does="asks for 99 partitions")


@story(sections=["delete records"])
def records_of_many_partitions_are_deleted(s: Story) -> None:
    """Known and unknown topics and partitions, some twice: the response has the order of the broker's hash maps."""
    stage, c = Stagehand(s), DataClient(s, "c")
    topics = [stage.topic(suffix, partitions=9) for suffix in ("orders", "payments", "returns")]
    nowhere = [s.topic_name(f"nowhere{number}") for number in range(3)]

    def delete(wanted: dict[str, Sequence[int]], does: str, offset: int = 0) -> None:
        asked = tuple(
            DeleteRecordsTopic(
                name=name,
                partitions=tuple(DeleteRecordsPartition(partition_index=index, offset=offset) for index in indexes),
            )
            for name, indexes in wanted.items()
        )
        c.asks(DeleteRecordsRequest(topics=asked, timeout_ms=5_000), 2, does=does)

    delete({topics[0]: range(9)}, "deletes from every partition of a topic")
    delete(dict.fromkeys(topics, (8, 1, 0, 1)), "deletes from partitions of several topics, one twice")
    delete({name: range(7, 11) for name in (*nowhere, *topics)}, "deletes from partitions of which some are unknown")
    delete({topics[1]: (0, 2, 5, 12, -1)}, "deletes from before the start", offset=-2)
    for count in (2, 4, 7):
        delete({nowhere[0]: range(count)}, f"deletes from {count} unknown partitions")
        delete(dict.fromkeys(nowhere, (count, 1)), "deletes from partitions of unknown topics")
    delete({topics[2]: (), nowhere[0]: ()}, "deletes from no partitions")

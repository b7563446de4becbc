"""Idempotent producers: sequences, duplicates, gaps and epochs (KIP-98, KIP-360)."""

from tests.conformance.actors import Stagehand
from tests.conformance.batches import THEN_MS, Rec, batch
from tests.conformance.data import DataClient
from tests.conformance.story import Story, story


@story(sections=["idempotence"])
def sequences(s: Story) -> None:
    """In order, repeated, with a gap, from before: duplicates get the offsets of the originals."""
    topic = Stagehand(s).topic("orders", partitions=2)
    p = DataClient(s, "p")
    pid = p.gets_a_producer_id().producer_id

    def send(sequence: int, *values: bytes, epoch: int = 0, partition: int = 0) -> None:
        p.produces(
            {(topic, partition): batch(list(values), producer=(pid, epoch, sequence))},
            does=f"produces {len(values)} from sequence {sequence}, epoch {epoch}",
        )

    send(0, b"a", b"b")
    send(2, b"c")
    send(2, b"c")
    send(0, b"a", b"b")
    send(0, b"a")
    send(1, b"b")
    send(5, b"gap")
    send(4, b"gap")
    send(3, b"d")
    send(0, b"x", partition=1)
    send(3, b"x", partition=1)
    p.lists_offsets({(topic, 0): -1, (topic, 1): -1})
    p.fetches({(topic, 0): 0})


@story(sections=["idempotence"])
def the_window_of_five(s: Story) -> None:
    """The last five batches are remembered; an earlier one is refused as out of order, or as an unknown duplicate."""
    topic = Stagehand(s).topic("orders")
    p = DataClient(s, "p")
    pid = p.gets_a_producer_id().producer_id
    for sequence in range(7):
        p.produces({(topic, 0): batch([b"%d" % sequence], producer=(pid, 0, sequence))})
    for sequence in range(7):
        p.produces(
            {(topic, 0): batch([b"%d" % sequence], producer=(pid, 0, sequence))}, does=f"produces {sequence} again"
        )
    p.lists_offsets({(topic, 0): -1})


@story(sections=["idempotence"])
def batches_that_close_a_segment_in_vain(s: Story) -> None:
    """A batch that is refused for its sequence, or that is a duplicate, closes the segment that it would not have fitted into:
    it begins long after the others. A fetch reads one segment."""
    topic = Stagehand(s).topic("orders")
    p = DataClient(s, "p")
    pid = p.gets_a_producer_id().producer_id
    later = Rec(b"later", timestamp_ms=THEN_MS + 8 * 86_400_000)

    def send(sequence: int, record: Rec | bytes, does: str) -> None:
        p.produces({(topic, 0): batch([record], producer=(pid, 0, sequence))}, does=does)

    send(0, b"a", "produces")
    send(1, b"b", "produces")
    p.fetches({(topic, 0): 0})
    send(7, later, "produces with a gap, eight days later")
    send(2, b"c", "produces")
    send(3, b"d", "produces")
    p.fetches({(topic, 0): 0})
    send(3, later, "produces the last one again, eight days later")
    send(4, b"e", "produces")
    p.fetches({(topic, 0): 2})
    send(5, b"f", "produces")
    p.fetches({(topic, 0): 4})


@story(sections=["idempotence"])
def epochs(s: Story) -> None:
    """A new epoch starts at sequence 0; an old epoch is refused."""
    topic = Stagehand(s).topic("orders")
    p = DataClient(s, "p")
    pid = p.gets_a_producer_id().producer_id
    for epoch, sequence in ((0, 0), (0, 1), (1, 5), (1, 0), (1, 1), (0, 2), (0, 0), (3, 0), (2, 0), (32767, 0)):
        data = batch([b"x"], producer=(pid, epoch, sequence))
        p.produces({(topic, 0): data}, does=f"produces sequence {sequence} in epoch {epoch}")
    p.lists_offsets({(topic, 0): -1})


@story(sections=["idempotence"])
def a_producer_that_is_not_known(s: Story) -> None:
    """An unknown producer id may start with any sequence on a partition that has no state of it; invalid ids and epochs."""
    topic = Stagehand(s).topic("orders", partitions=8)
    p = DataClient(s, "p")
    made_up = 1 << 50
    for number, producer in enumerate(
        [
            (made_up, 0, 0),
            (made_up, 0, 7),
            (made_up, 5, 3),
            (made_up, -1, 0),
            (made_up, 0, -1),
            (-1, 0, 0),
            (-1, -1, 0),
            (-5, 0, 0),
        ]
    ):
        p.produces({(topic, number): batch([b"x"], producer=producer)}, does=f"produces as {producer}")
    p.produces({(topic, 1): batch([b"x"], producer=(made_up, 0, 8))}, does="goes on")
    p.produces({(topic, 1): batch([b"x"], producer=(made_up, 0, 3))}, does="goes back")


@story(sections=["idempotence"])
def sequences_that_wrap(s: Story) -> None:
    """After 2147483647 comes 0, also within a batch."""
    topic = Stagehand(s).topic("orders")
    p = DataClient(s, "p")
    made_up = (1 << 50) + 1
    top = 2147483647
    for sequence, count in ((top - 2, 2), (top, 3), (2, 1), (top, 3), (4, 1)):
        data = batch([b"x"] * count, producer=(made_up, 0, sequence))
        p.produces({(topic, 0): data}, does=f"produces {count} from sequence {sequence}")


@story(sections=["idempotence"])
def two_batches_of_one_producer(s: Story) -> None:
    """A request may have only one batch per partition; batches for several partitions are allowed."""
    topic = Stagehand(s).topic("orders", partitions=2)
    p = DataClient(s, "p")
    pid = p.gets_a_producer_id().producer_id
    first, second = batch([b"a"], producer=(pid, 0, 0)), batch([b"b"], producer=(pid, 0, 1))
    p.produces({(topic, 0): first + second})
    p.produces({(topic, 0): first, (topic, 1): first})
    p.produces({(topic, 0): second}, acks=1)


@story(sections=["idempotence"])
def every_version_of_init_producer_id(s: Story) -> None:
    """Without a transactional id: a new producer id each time, epoch 0; a given id and epoch in the versions that have
    them."""
    p = DataClient(s, "p")
    for version in range(6):
        p.gets_a_producer_id(version)
    for version in (3, 4, 5):
        p.gets_a_producer_id(version, producer_id=12345, producer_epoch=3)
        p.gets_a_producer_id(version, producer_id=12345)
        p.gets_a_producer_id(version, producer_epoch=3)
        p.gets_a_producer_id(version, transactional_id="")
        p.gets_a_producer_id(version, transaction_timeout_ms=-1)

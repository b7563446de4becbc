"""WriteTxnMarkers from a client, as an operator ends a hanging transaction (KIP-664), and DescribeProducers."""

from collections.abc import Mapping, Sequence
from typing import Any

from groupcoord.protocol.apis.write_txn_markers import WritableTxnMarker, WritableTxnMarkerTopic
from groupcoord.protocol.messages import InitProducerIdRequest, WriteTxnMarkersRequest
from tests.conformance.actors import Stagehand
from tests.conformance.batches import Rec, batch
from tests.conformance.data import DataClient
from tests.conformance.producers import MADE_UP_ID, Producer, TransactionsWatcher, until_coordinated
from tests.conformance.stories.transactional_data import now_ms
from tests.conformance.story import Story, story

COMMITTED = 1
"""READ_COMMITTED, as an isolation level."""
Partitions = Mapping[str, Sequence[int]]


def marker(
    partitions: Partitions,
    producer_id: int,
    producer_epoch: int = 0,
    *,
    committed: bool = False,
    coordinator_epoch: int = 0,
    transaction_version: int = 0,
) -> WritableTxnMarker:
    """One marker; it aborts unless told."""
    return WritableTxnMarker(
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        transaction_result=committed,
        topics=tuple(
            WritableTxnMarkerTopic(name=topic, partition_indexes=tuple(indexes))
            for topic, indexes in partitions.items()
        ),
        coordinator_epoch=coordinator_epoch,
        transaction_version=transaction_version,
    )


class Operator(TransactionsWatcher):
    """One who ends transactions by hand."""

    def writes(self, *markers: WritableTxnMarker, version: int = 1, does: str = "writes markers") -> Any:
        """WriteTxnMarkers."""
        return self.asks(WriteTxnMarkersRequest(markers=markers), version, does=does)


@story(sections=["transactions"])
def markers_for_an_open_transaction(s: Story) -> None:
    """With the right epoch the transaction ends, regardless of the coordinator; the producer can continue."""
    topic = Stagehand(s).topic("orders", partitions=2)
    where = (topic, 0)
    p, op, reader = Producer(s, "p"), Operator(s, "op"), DataClient(s, "reader")
    p.init()
    p.init()
    p.produces({where: [b"a"]})
    p.produces({where: [b"b"]})
    op.describes_producers({topic: [0]})
    only = {topic: [0]}
    op.writes(marker(only, p.producer_id, 0), does="aborts an older epoch")
    op.writes(marker(only, p.producer_id, 0, transaction_version=2), version=2, does="aborts an older epoch")
    op.writes(
        marker(only, p.producer_id, 1, transaction_version=2), version=2, does="aborts by the new rules, same epoch"
    )
    reader.fetches({where: 0}, isolation_level=COMMITTED)
    op.writes(marker(only, p.producer_id, 1, coordinator_epoch=-1), does="aborts")
    op.describes_producers({topic: [0]})
    reader.fetches({where: 0}, isolation_level=COMMITTED)
    op.writes(marker(only, p.producer_id, 1, coordinator_epoch=-1), does="aborts again")
    op.writes(marker(only, p.producer_id, 1, transaction_version=2), version=2, does="aborts again, by the new rules")
    op.describes_transactions(f"{s.name}-p")
    p.produces({where: [b"c"]}, 11, does="goes on")
    p.produces({where: [b"d"]}, does="goes on")
    op.writes(marker(only, p.producer_id, 1, committed=True, transaction_version=1), version=2, does="commits")
    op.describes_producers({topic: [0]})
    p.produces({where: [b"e"]})
    p.commits(4)
    op.describes_producers({topic: [0]})
    p.produces({where: [b"f"]})
    op.writes(
        marker(only, p.producer_id, 2, transaction_version=2), version=2, does="aborts by the new rules, next epoch"
    )
    op.describes_producers({topic: [0]})
    p.produces({where: [b"g"]}, does="does not know yet")
    p.commits()
    p.produces({where: [b"h"]})
    p.commits()
    reader.fetches({where: 0}, isolation_level=COMMITTED)
    op.describes_producers({topic: [0]})


@story(sections=["transactions"])
def markers_that_run_ahead(s: Story) -> None:
    """After a marker with a later epoch the coordinator's own is refused, and its transaction never ends."""
    topic = Stagehand(s).topic("orders", partitions=4)
    where = (topic, 0)
    p, op, reader = Producer(s, "p"), Operator(s, "op"), DataClient(s, "reader")
    p.init()
    p.produces({where: [b"a"]})
    op.writes(marker({topic: [0]}, p.producer_id, 7, committed=True, coordinator_epoch=3), does="commits a later epoch")
    op.describes_producers({topic: [0]})
    for version in (9, 11, 12):
        p.produces({where: [b"b"]}, version)
    p.produces({where: [b"c"]}, does="produces no transaction", attributes=0, sequence=1)
    reader.fetches({where: 0}, isolation_level=COMMITTED)
    p.commits(waits=False)
    s.wait(1_000, "the coordinator gives up")
    op.describes_transactions(f"{s.name}-p")
    p.aborts(waits=False)
    for number, version in enumerate((9, 11, 12), 1):
        p.produces({(topic, number): [b"d"]}, version, does="produces while its transaction is being ended")
    group = s.group()
    for version in (3, 4, 5):
        does = "commits offsets while its transaction is being ended"
        p.commits_offsets(group, {(topic, 0): 1}, version, does=does)
    op.describes(group)
    again = InitProducerIdRequest(transactional_id=p.transactional_id, transaction_timeout_ms=60_000)
    p.asks(again, 5, does="asks for its producer id")
    reader.fetches({where: 0}, isolation_level=COMMITTED)


@story(sections=["transactions"])
def markers_for_nobody(s: Story) -> None:
    """A partition accepts a marker of an unknown producer; producer and coordinator epochs cannot decrease."""
    topic = Stagehand(s).topic("orders", partitions=6)
    op, reader = Operator(s, "op"), DataClient(s, "reader")

    def writes(
        does: str, epoch: int, coordinator_epoch: int, rules: int | None = None, *, committed: bool = True
    ) -> None:
        made = marker(
            {topic: [0]},
            MADE_UP_ID,
            epoch,
            committed=committed,
            coordinator_epoch=coordinator_epoch,
            transaction_version=rules or 0,
        )
        op.writes(made, version=1 if rules is None else 2, does=does)

    writes("aborts what nobody began", 0, 0, committed=False)
    op.describes_producers({topic: [0]})
    writes("aborts with a newer coordinator epoch", 0, 5, committed=False)
    writes("commits with an older coordinator epoch", 0, 4)
    for rules in (2, 1, 0):
        writes(f"commits by rules {rules}", 0, 5, rules)
        writes(f"commits by rules {rules} with an older coordinator epoch", 0, 4, rules)
    writes("commits by rules 2 in the next epoch", 1, 5, 2)
    for rules in (2, 1, 0):
        writes(f"commits by rules {rules} in the epoch before", 0, 5, rules)
    writes("commits by rules 1 in a later epoch", 3, 5, 1)
    writes("commits by rules 3 in a later epoch", 4, 6, 3)
    writes("commits by rules 3 in the same epoch", 4, 6, 3)
    writes("commits by rules 3 in an older epoch", 3, 6, 3)
    writes("commits by rules -1", 4, 6, -1)
    writes("commits in the last epoch", 32_767, 6, 2)
    writes("commits in the last epoch again", 32_767, 6, 2)
    op.describes_producers({topic: [0]})
    reader.fetches({(topic, 0): 0}, isolation_level=COMMITTED)


@story(sections=["transactions"])
def markers_to_many_places(s: Story) -> None:
    """Several partitions, topics and producers in one request, some unknown; invalid ids and epochs."""
    stage = Stagehand(s)
    until_coordinated(s, stage, s.topic_name("any"))  # so that there is a __transaction_state
    orders, payments = (stage.topic(suffix, partitions=3) for suffix in ("orders", "payments"))
    op, reader = Operator(s, "op"), DataClient(s, "reader")
    for version in (1, 2):
        op.writes(
            marker({orders: [0, 77, 1], "nowhere": [0], payments: [2]}, MADE_UP_ID),
            version=version,
            does="writes a marker",
        )
        op.writes(version=version, does="writes no marker")
        op.writes(marker({}, MADE_UP_ID), version=version, does="writes a marker to no topic")
        op.writes(marker({orders: []}, MADE_UP_ID), version=version, does="writes a marker to no partition")
        op.writes(marker({"nowhere": [0]}, MADE_UP_ID), version=version, does="writes a marker to nowhere")
        op.writes(marker({orders: [0], "nowhere": [0]}, -1), version=version, does="writes a marker of no producer")
        op.writes(marker({orders: [0, 77]}, MADE_UP_ID, -1), version=version, does="writes a marker of no epoch")
        op.writes(
            marker({orders: [0]}, MADE_UP_ID + 1, coordinator_epoch=-1),
            version=version,
            does="writes a marker of no coordinator",
        )
        op.writes(
            marker({orders: [0]}, MADE_UP_ID + 2, coordinator_epoch=-2),
            version=version,
            does="writes a marker of coordinator epoch -2",
        )
        op.writes(
            marker({orders: [1]}, MADE_UP_ID),
            marker({orders: [1]}, MADE_UP_ID, 1, committed=True),
            marker({orders: [1]}, MADE_UP_ID),
            version=version,
            does="writes markers of one producer",
        )
        op.writes(
            marker({orders: [2], "": [0]}, MADE_UP_ID),
            version=version,
            does="writes a marker to a topic without a name",
        )
    op.writes(
        marker({orders: [2], payments: [1]}, MADE_UP_ID, transaction_version=-1), version=2, does="writes by rules -1"
    )
    Producer(s, "p")  # whoever asks for its coordinator first has the topic of transactions made
    op.writes(
        marker({"__consumer_offsets": [0], "__transaction_state": [0]}, MADE_UP_ID),
        does="writes markers to internal topics",
    )
    op.writes(marker({"__consumer_offsets": [77]}, MADE_UP_ID), does="writes a marker to an offsets partition too many")
    op.writes(marker({"__consumer_offsets": [0]}, -1), does="writes a marker of no producer to an offsets partition")
    op.describes_producers({orders: [0, 1, 2], payments: [0, 1, 2]})
    reader.fetches({(orders, 0): 0, (orders, 1): 0, (orders, 2): 0, (payments, 2): 0})


@story(sections=["transactions"])
def markers_and_failed_appends(s: Story) -> None:
    """A marker clears a partition's memory of a refused batch; but not, with KIP-890, a marker with that batch's epoch."""
    topic = Stagehand(s).topic("orders", partitions=3)
    p, op = Producer(s, "p"), Operator(s, "op")
    p.init()

    def produces(where: tuple[str, int], sequence: int, epoch: int = 0) -> None:
        does = f"produces no transaction from sequence {sequence} in epoch {epoch}"
        p.produces(
            {where: [b"x"]}, does=does, attributes=0, sequence=sequence, producer_epoch=epoch, transactional_id=None
        )

    for version, partition in ((9, 0), (11, 1), (12, 2)):
        where, only = (topic, partition), {topic: [partition]}
        p.produces({where: [b"x"]}, version, does="produces from sequence 2", sequence=2)
        for sequence in range(4):
            produces(where, sequence)
        op.writes(marker(only, p.producer_id, 0), does="aborts the same epoch")
        produces(where, 3)
        produces(where, 4)
        op.writes(marker(only, p.producer_id, 1, transaction_version=2), version=2, does="aborts the next epoch")
        for sequence in range(4):
            produces(where, sequence, 1)
    op.describes_producers({topic: [0, 1, 2]})


@story(sections=["transactions"])
def producers_described(s: Story) -> None:
    """The producers of each partition: idempotent ones, open and ended transactions; batches without producer id add
    none."""
    stage = Stagehand(s)
    topic, other = stage.topic("orders", partitions=3), stage.topic("payments")
    where = (topic, 0)
    p, watcher, n = Producer(s, "p"), TransactionsWatcher(s, "watcher"), DataClient(s, "n")
    i = Producer(s, "i", transactional_id=None)
    p.init()
    i.init()
    everything = {topic: [0, 1], other: [0]}
    n.produces({(topic, 1): batch([Rec(b"plain")], attributes=0)})
    watcher.describes_producers(everything)
    i.produces({where: [b"a", b"b", b"c"]}, attributes=0)
    watcher.describes_producers(everything)
    p.adds_partitions({topic: [0]})
    watcher.describes_producers(everything)
    p.produces({where: [b"d"]}, 11)
    p.produces({where: [b"e"], (topic, 1): [b"f"]})
    watcher.describes_producers(everything)
    i.produces({where: [b"g"]}, attributes=0)
    watcher.describes_producers(everything)
    p.aborts(4)
    watcher.describes_producers(everything)
    p.produces({where: [b"h"]})
    watcher.describes_producers({topic: [0]})
    p.commits(5)
    watcher.describes_producers(everything)
    late = batch(
        [Rec(b"x", timestamp_ms=now_ms(s)), Rec(b"y", timestamp_ms=now_ms(s) - 60_000)], producer=(MADE_UP_ID, 3, 7)
    )
    n.produces({(other, 0): late}, does="produces a late record behind another")
    watcher.describes_producers({other: [0]})
    watcher.describes_producers({topic: [2, 77, -1], "nowhere": [0, 1], other: []})
    watcher.describes_producers({})
    watcher.describes_producers({"not a topic!": [0], "": [0], "__consumer_offsets": [77]})
    watcher.describes_producers({topic: [2, 2]})


@story(sections=["transactions"])
def markers_beside_wrong_ones(s: Story) -> None:
    """Markers of a negative producer fail all others, but those before are written; unknown partitions fail alone. Some
    requests are never answered: those that name a partition twice, or nothing known at the end."""
    stage = Stagehand(s)
    until_coordinated(s, stage, s.topic_name("any"))  # so that there is a __transaction_state
    orders, payments, returns = (stage.topic(suffix, partitions=3) for suffix in ("orders", "payments", "returns"))
    op, reader = Operator(s, "op"), DataClient(s, "reader")
    some = marker({orders: [0, 1, 2], payments: [2, 0]}, MADE_UP_ID)
    unknown = marker({"nowhere": [1, 0], returns: [7]}, MADE_UP_ID + 1)
    mixed = marker({"nowhere": [-1], returns: [2, 0, 9], payments: [1], orders: [2]}, MADE_UP_ID + 17)
    op.writes(mixed, does="writes a marker to known and unknown partitions")
    op.writes(unknown, some, mixed, does="writes markers of three producers")
    op.writes(unknown, marker({}, MADE_UP_ID), does="writes markers to nothing known")
    for wrong in (marker({orders: [0], "nowhere": [0]}, -1), marker({payments: [0, 1, 1]}, MADE_UP_ID, -1)):
        op.writes(some, wrong, mixed, unknown, does="writes markers of which the second one is wrong")
        op.writes(wrong, some, marker({orders: [1]}, MADE_UP_ID + 3), does="writes markers of which the first is wrong")
        op.writes(marker({"nowhere": [0]}, -1), some, does="writes a wrong marker to nowhere, and another one")
    for number, markers in enumerate(
        (
            [marker({orders: [0, 0]}, MADE_UP_ID)],
            [some, unknown],
            [some, marker({}, MADE_UP_ID)],
            [some, marker({returns: [0, 1, 0]}, MADE_UP_ID), mixed],
        )
    ):
        silent = Operator(s, f"silent{number}")
        pending = silent.parks(WriteTxnMarkersRequest(markers=tuple(markers)), 1, does="writes markers")
        silent.stays_unanswered(300, pending)
    op.writes(unknown, some, does="writes the unknown one first")
    for topic in (orders, payments, returns):
        for index in range(3):
            reader.fetches({(topic, index): 0}, isolation_level=COMMITTED)


@story(sections=["produce", "transactions"])
def producer_epochs_below_none(s: Story) -> None:
    """A producer without state has the epoch -1: its batches and markers cannot have a smaller one."""
    stage = Stagehand(s)
    until_coordinated(s, stage, s.topic_name("any"))  # so that there is a __transaction_state
    op, p = Operator(s, "op"), DataClient(s, "p")
    for topic in (stage.topic("own"), stage.topic("other", compression_type="gzip")):
        for epoch in (-2, -(2**15)):
            data = batch([b"x"], producer=(MADE_UP_ID, epoch, 0))
            p.produces({(topic, 0): data}, does=f"produces with epoch {epoch}")
            for version in (0, 2):
                aborts = marker({topic: [0]}, MADE_UP_ID + 1, epoch, transaction_version=version)
                op.writes(aborts, version=2, does=f"writes a marker with epoch {epoch}")
        p.fetches({(topic, 0): 0})

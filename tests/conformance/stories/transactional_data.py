"""Produce in transactions (KIP-98, KIP-890): which batches are accepted and refused, and the records in the log."""

from dataclasses import replace
from typing import Any

from tests.conformance.actors import Stagehand
from tests.conformance.batches import Rec, batch
from tests.conformance.data import DataClient, produce_request
from tests.conformance.producers import MADE_UP_ID, Producer, TransactionsWatcher
from tests.conformance.story import Story, story

VERSIONS = range(3, 14)
"""Of Produce."""
CONTROL = 0x20
TRANSACTIONAL = 0x10


def now_ms(s: Story) -> int:
    """When the last step began: a time that is always of that step."""
    return s.names.step_starts_ms[-1]


def plain(s: Story, *values: bytes) -> bytes:
    """A batch of nobody's, with records of now."""
    return batch([Rec(value, timestamp_ms=now_ms(s)) for value in values])


@story(sections=["transactions"])
def every_version_of_transactional_produce(s: Story) -> None:
    """Without AddPartitionsToTxn: refused up to version 11, with different errors; from 12 on the broker adds the
    partition."""
    stage = Stagehand(s)
    topic = stage.topic("orders", partitions=14)
    ids = {topic: stage.topic_id(topic)}
    p = Producer(s, "p", ids=ids)
    reader = DataClient(s, "reader", ids=ids)
    p.init()
    for version in VERSIONS:
        p.produces({(topic, version): [b"not added"]}, version)
    p.adds_partitions({topic: list(range(3, 12))})
    for version in VERSIONS:
        p.produces({(topic, version): [b"added"]}, version)
        p.produces({(topic, version): [b"more", b"and more"]}, version)
    p.commits(4)
    for version in VERSIONS:
        p.produces({(topic, version): [b"late"]}, version, does="produces behind the end")
    p.aborts(4)
    for version in VERSIONS:
        reader.fetches({(topic, version): 0})


@story(sections=["transactions"])
def batches_with_something_wrong(s: Story) -> None:
    """Wrong epochs, ids, sequences and transactional ids, for every way of adding partitions."""
    topic = Stagehand(s).topic("orders", partitions=3)
    where = (topic, 0)
    p, watcher = Producer(s, "p"), TransactionsWatcher(s, "watcher")
    p.init()
    p.init()
    for version in (9, 11, 12):
        cases: dict[str, dict[str, Any]] = {
            "produces in an older epoch": {"producer_epoch": 0},
            "produces in a future epoch": {"producer_epoch": 7},
            "produces in epoch -1": {"producer_epoch": -1},
            "produces with another's producer id": {"producer_id": MADE_UP_ID},
            "produces with an unknown transactional id": {"transactional_id": f"{s.name}-nobody"},
            "produces without a transactional id": {"transactional_id": None},
            "produces with an empty transactional id": {"transactional_id": ""},
            "produces a batch of nobody": {"producer_id": -1, "producer_epoch": -1, "sequence": -1},
            "produces a batch of nobody with an epoch": {"producer_id": -1, "producer_epoch": 0, "sequence": 0},
            "produces a control batch": {"attributes": TRANSACTIONAL | CONTROL},
            "produces a control batch of no transaction": {"attributes": CONTROL},
            "produces from sequence 5": {"sequence": 5},
            "produces from sequence -1": {"sequence": -1},
        }
        for does, changes in cases.items():
            p.produces({where: [b"x"]}, version, does=does, **changes)
    watcher.describes_producers({topic: [0]})
    watcher.describes_transactions(f"{s.name}-p")
    p.produces({where: [b"good"]})
    for version in (9, 11, 12):
        p.produces({where: [b"x"]}, version, does="produces in an older epoch, meanwhile", producer_epoch=0)
        p.produces({where: [b"x"]}, version, does="produces in a future epoch, meanwhile", producer_epoch=7)
        p.produces({where: [b"x"]}, version, does="produces from sequence 5, meanwhile", sequence=5)
        p.produces({where: [b"x"]}, version, does="produces no transaction, meanwhile", attributes=0, sequence=1)
        p.produces(
            {where: [b"x"]}, version, does="produces with an unknown transactional id", transactional_id="nobody"
        )
        p.produces({where: [b"x"]}, version, does="produces without a transactional id", transactional_id=None)
    p.commits()
    watcher.describes_producers({topic: [0]})
    DataClient(s, "reader").fetches({where: 0})


@story(sections=["transactions"])
def a_failed_append_is_remembered(s: Story) -> None:
    """A batch that was refused after its verification is remembered: no higher sequence is accepted before it."""
    topic = Stagehand(s).topic("orders", partitions=8)
    p, watcher = Producer(s, "p"), TransactionsWatcher(s, "watcher")
    p.init()
    for version, partition in ((9, 0), (11, 1), (12, 2)):
        where = (topic, partition)
        p.produces({where: [b"x"]}, version, does="produces from sequence 3", sequence=3)
        p.produces({where: [b"x"]}, version, does="produces from sequence 4", sequence=4)
        p.produces({where: [b"x"]}, version, does="produces no transaction from sequence 5", attributes=0, sequence=5)
        p.produces({where: [b"x"]}, version, does="produces no transaction from sequence 3", attributes=0, sequence=3)
        p.produces({where: [b"x"]}, version, does="produces no transaction from sequence 4", attributes=0, sequence=4)
        p.produces({where: [b"x"]}, version, does="produces from sequence 1", sequence=1)
        p.produces({where: [b"x"]}, version, does="produces no transaction from sequence 0", attributes=0, sequence=0)
        p.adds_partitions({topic: [partition]})
        p.produces({where: [b"x"]}, version, does="produces from sequence 5", sequence=5)
        p.produces({where: [b"x"]}, version, does="produces from sequence 4", sequence=4)
        p.produces({where: [b"x"]}, version, does="produces from sequence 0", sequence=0)
        p.produces({where: [b"x"]}, version, does="produces from sequence 1", sequence=1)
        p.produces({where: [b"x"]}, version, does="produces from sequence 2", sequence=2)
    watcher.describes_producers({topic: [0, 1, 2]})
    p.aborts()
    watcher.describes_producers({topic: [0, 1, 2]})
    for version, partition in ((9, 3), (11, 4), (12, 5)):
        where = (topic, partition)
        p.adds_partitions({topic: [partition]})
        p.produces({where: [b"x"]}, version, does="starts at sequence 3", sequence=3)
        p.produces({where: [b"x"]}, version, does="goes back to sequence 2", sequence=2)
        p.produces({where: [b"x"]}, version, does="goes on with sequence 4", sequence=4)
    watcher.describes_producers({topic: [3, 4, 5]})
    p.commits()
    reader = DataClient(s, "reader")
    for partition in range(6):
        reader.fetches({(topic, partition): 0})


@story(sections=["transactions"])
def sequences_over_transactions(s: Story) -> None:
    """Without KIP-890 sequences continue in the next transaction; with a new epoch they start at 0."""
    topic = Stagehand(s).topic("orders")
    where = (topic, 0)
    p, watcher = Producer(s, "p"), TransactionsWatcher(s, "watcher")
    reader = DataClient(s, "reader")
    p.init()
    p.produces({where: [b"a", b"b"]})
    p.produces({where: [b"a", b"b"]}, does="produces it again", sequence=0)
    p.produces({where: [b"a", b"b"]}, 11, does="produces it again", sequence=0)
    p.produces({where: [b"c"]})
    p.produces({where: [b"c"]}, does="produces it again", sequence=2)
    p.produces({where: [b"b"]}, does="produces a part of it again", sequence=1)
    p.commits(4)
    p.produces({where: [b"c"]}, 11, does="produces it again, behind the end", sequence=2)
    p.produces({where: [b"c"]}, does="produces it again, behind the end", sequence=2)
    watcher.describes_transactions(f"{s.name}-p")
    watcher.describes_producers({topic: [0]})
    p.produces({where: [b"d"]}, does="starts at sequence 0", sequence=0)
    p.produces({where: [b"d"]}, does="starts at sequence 5", sequence=5)
    p.produces({where: [b"d"]}, does="goes on")
    p.aborts(5)
    watcher.describes_producers({topic: [0]})
    p.produces({where: [b"d"]}, does="produces it again, in the new epoch", sequence=3)
    p.produces({where: [b"d"]}, does="produces it again, in the old epoch", sequence=3, producer_epoch=0)
    p.produces({where: [b"e"]}, does="goes on in the new epoch at sequence 4", sequence=4)
    p.produces({where: [b"e"]}, does="starts at 0")
    for number in range(6):
        p.produces({where: [b"%d" % number]})
    for number in range(8):
        p.produces({where: [b"again"]}, does=f"produces sequence {number} again", sequence=number)
    p.commits(5)
    p.produces({where: [b"e"]}, does="goes on counting", sequence=7)
    p.produces({where: [b"f"]})
    p.init()
    watcher.describes_producers({topic: [0]})
    p.produces({where: [b"g"]})
    p.goes_on()
    watcher.describes_producers({topic: [0]})
    reader.fetches({where: 0})
    reader.fetches({where: 0}, isolation_level=1)


@story(sections=["transactions"])
def batches_of_no_transaction_beside_one(s: Story) -> None:
    """While a transaction is open, its producer can write only in it; others can, and are read after its end."""
    topic = Stagehand(s).topic("orders", partitions=2)
    where = (topic, 0)
    p, watcher, n = Producer(s, "p"), TransactionsWatcher(s, "watcher"), DataClient(s, "n")
    idempotent = Producer(s, "i", transactional_id=None)
    p.init()
    idempotent.init()
    p.produces({where: [b"alone"]}, does="produces before its first transaction", attributes=0)
    p.produces({where: [b"a"]}, does="starts at the sequence it has", sequence=1)
    p.produces({where: [b"alone"]}, does="produces no transaction", attributes=0, sequence=2)
    p.produces({where: [b"alone"]}, 9, does="produces no transaction", attributes=0, sequence=2)
    p.produces({(topic, 1): [b"alone"]}, does="produces no transaction elsewhere", attributes=0)
    idempotent.produces({where: [b"i"]}, attributes=0)
    n.produces({where: plain(s, b"n")})
    n.fetches({where: 0}, isolation_level=1)
    p.commits(4)
    p.produces({where: [b"alone"]}, does="produces behind its transaction", attributes=0, sequence=2)
    p.produces({where: [b"b"]}, does="goes on with a transaction", sequence=3)
    p.aborts()
    p.produces({where: [b"alone"]}, does="produces in the new epoch", attributes=0)
    idempotent.produces({where: [b"i"]}, attributes=0)
    idempotent.produces({where: [b"i"]}, does="says that it is in a transaction")
    idempotent.produces({where: [b"i"]}, does="says that it is in another's", transactional_id=p.transactional_id)
    watcher.describes_producers({topic: [0, 1]})
    n.fetches({where: 0})
    n.fetches({where: 0}, isolation_level=1)


@story(sections=["transactions"])
def many_partitions_in_one_produce(s: Story) -> None:
    """Each partition is verified separately; unknown ones and those outside of the transaction do not matter."""
    stage = Stagehand(s)
    topics = [stage.topic(suffix, partitions=3) for suffix in ("orders", "payments")]
    orders, payments = topics
    p, q, watcher = Producer(s, "p"), Producer(s, "q"), TransactionsWatcher(s, "watcher")
    reader = DataClient(s, "reader")
    p.init()
    q.init()
    p.adds_partitions({orders: [0], payments: [2]})
    for version in (9, 11):
        p.produces({(orders, 0): [b"a"], (orders, 1): [b"b"], (payments, 2): [b"c"]}, version)
    p.produces({(orders, 2): [b"d"], (payments, 0): [b"e"], (orders, 77): [b"f"], ("nowhere", 0): [b"g"]})

    def of(producer: Producer, value: bytes, sequence: int, attributes: int = TRANSACTIONAL) -> bytes:
        said = (producer.producer_id, producer.epoch, sequence)
        return batch([Rec(value, timestamp_ms=now_ms(s))], producer=said, attributes=attributes)

    for version in (9, 11, 12):
        for does, batches in {
            "produces a transactional and a plain batch": {
                (payments, 1): of(p, b"h", 0),
                (orders, 1): plain(s, b"plain"),
            },
            "produces batches of two producers": {(payments, 1): of(p, b"i", 1), (orders, 1): of(q, b"j", 0)},
            "produces a transactional and an idempotent batch": {
                (payments, 1): of(p, b"k", 1),
                (orders, 1): of(q, b"l", version, 0),
            },
        }.items():
            request = replace(produce_request(batches, {}), transactional_id=p.transactional_id)
            p.asks(request, version, does=does)
    p.produces({(orders, 0): [b"acks=1"]}, acks=1)
    watcher.describes_producers({orders: [0, 1, 2], payments: [0, 1, 2]})
    p.commits()
    reader.fetches({(topic, index): 0 for topic in topics for index in range(3)})


@story(sections=["transactions"])
def an_older_epoch_in_the_log(s: Story) -> None:
    """A producer whose transactional id was taken over is refused, also by partitions without the new epoch."""
    topic = Stagehand(s).topic("orders", partitions=3)
    old, new, watcher = Producer(s, "p"), Producer(s, "p"), TransactionsWatcher(s, "watcher")
    old.init()
    old.produces({(topic, 0): [b"old"]})
    new.init()
    new.init()
    watcher.describes_producers({topic: [0]})
    for version in (9, 11, 12):
        for partition in (0, 1):
            old.produces({(topic, partition): [b"zombie"]}, version, does=f"produces to partition {partition}")
    old.produces({(topic, 0): [b"zombie"]}, does="produces no transaction", attributes=0, sequence=1)
    old.produces({(topic, 1): [b"zombie"]}, does="produces no transaction to partition 1", attributes=0, sequence=0)
    new.produces({(topic, 0): [b"new"], (topic, 1): [b"new"]})
    for version in (9, 11, 12):
        for partition in (0, 1):
            old.produces({(topic, partition): [b"zombie"]}, version, does=f"produces to partition {partition}")
    new.commits()
    watcher.describes_producers({topic: [0, 1, 2]})
    DataClient(s, "reader").fetches({(topic, 0): 0, (topic, 1): 0}, isolation_level=1)


@story(sections=["transactions"])
def transactions_that_wrote_nothing(s: Story) -> None:
    """An added partition without records gets a marker, and so does one whose only batch was refused."""
    topic = Stagehand(s).topic("orders", partitions=4)
    p, watcher, reader = Producer(s, "p"), TransactionsWatcher(s, "watcher"), DataClient(s, "reader")
    p.init()
    for version in (4, 5):
        for committed in (True, False):
            p.adds_partitions({topic: [0]})
            p.produces({(topic, 1): [b"x"]}, does="produces from sequence 9", sequence=9)
            watcher.describes_producers({topic: [0, 1]})
            p.ends(committed=committed, version=version)
    p.aborts(does="aborts nothing")
    watcher.describes_producers({topic: [0, 1, 2]})
    for isolation in (0, 1):
        reader.fetches({(topic, 0): 0, (topic, 1): 0}, isolation_level=isolation)


@story(sections=["transactions"])
def transactions_in_compressed_and_stamped_topics(s: Story) -> None:
    """Batches stay transactional when they are compressed again; markers have the broker's time."""
    stage = Stagehand(s)
    p, reader = Producer(s, "p"), DataClient(s, "reader")
    p.init()
    topics: dict[str, dict[str, Any]] = {
        "gzip": {"compression_type": "gzip"},
        "plain": {"compression_type": "uncompressed"},
        "append": {"message_timestamp_type": "LogAppendTime"},
    }
    for suffix, configs in topics.items():
        topic = stage.topic(suffix, **configs)
        for sequence, attributes in enumerate((TRANSACTIONAL, TRANSACTIONAL | 1)):
            codec = attributes & 1
            data = batch(
                [Rec(b"one", timestamp_ms=now_ms(s)), Rec(b"two", timestamp_ms=now_ms(s))],
                codec=codec,
                producer=(p.producer_id, p.epoch, 2 * sequence),
                attributes=TRANSACTIONAL,
            )
            request = replace(produce_request({(topic, 0): data}, {}), transactional_id=p.transactional_id)
            p.asks(request, 12, does=f"produces with codec {codec}")
        p.commits()
        reader.fetches({(topic, 0): 0}, isolation_level=1)

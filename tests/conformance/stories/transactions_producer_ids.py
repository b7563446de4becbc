"""InitProducerId of a transactional producer: in each version and state, for new and for continuing producers (KIP-98,
KIP-360)."""

from tests.conformance.actors import Stagehand
from tests.conformance.producers import MADE_UP_ID, Producer, TransactionsWatcher
from tests.conformance.story import Story, story

WITH_IDS = (3, 4, 5)
"""The versions in which a producer can say which id and epoch it has."""


@story(sections=["transactions"])
def every_version_of_a_transactional_start(s: Story) -> None:
    """A new transactional id gets a producer id and epoch 0; each later start with it the next epoch."""
    watcher = TransactionsWatcher(s, "watcher")
    for version in range(6):
        p = Producer(s, f"p{version}")
        watcher.describes_transactions(f"{s.name}-p{version}")
        p.init(version)
        p.init(version, does="starts again")
        watcher.describes_transactions(f"{s.name}-p{version}")
    p = Producer(s, "p0")
    for version in range(6):
        p.init(version, does="starts in the place of the first")
    watcher.describes_transactions(f"{s.name}-p0")


@story(sections=["transactions"])
def starts_that_are_refused(s: Story) -> None:
    """An empty transactional id, and timeouts that are invalid or too long; without a transactional id they are ignored."""
    p = Producer(s, "p")
    for version in range(6):
        p.init(version, transactional_id="", does="has an empty transactional id")
        for timeout_ms in (0, -1, 900_001, 2**31 - 1):
            p.init(version, transaction_timeout_ms=timeout_ms, does=f"wants a timeout of {timeout_ms} ms")
    p.init(4, transactional_id="", transaction_timeout_ms=-1)
    watcher = TransactionsWatcher(s, "watcher")
    watcher.describes_transactions(f"{s.name}-p")
    for timeout_ms in (1, 900_000):
        p.init(transaction_timeout_ms=timeout_ms, does=f"wants a timeout of {timeout_ms} ms")
        watcher.describes_transactions(f"{s.name}-p")
    idempotent = Producer(s, "idempotent", transactional_id=None)
    for version in range(6):
        for timeout_ms in (0, -1, 2**31 - 1):
            idempotent.init(version, transaction_timeout_ms=timeout_ms)


@story(sections=["transactions"])
def ids_and_epochs_that_do_not_go_together(s: Story) -> None:
    """A producer id without an epoch, an epoch without an id, ids and epochs below -1, and an id that was never assigned. A
    new transactional id accepts the last two, and gets an id; a known one refuses them."""
    watcher = TransactionsWatcher(s, "watcher")
    for version in WITH_IDS:
        known = Producer(s, f"known{version}")
        known.init(version)
        for number, (said_id, epoch) in enumerate(
            ((MADE_UP_ID, -1), (-1, 3), (-2, 0), (-2, -2), (MADE_UP_ID, -2), (MADE_UP_ID, 0), (MADE_UP_ID, 3))
        ):
            for p in (known, Producer(s, f"new{version}-{number}")):
                p.init(version, producer_id=said_id, producer_epoch=epoch, does=f"says id {said_id}, epoch {epoch}")
        names = (f"known{version}", *(f"new{version}-{number}" for number in range(7)))
        watcher.describes_transactions(*(f"{s.name}-{name}" for name in names))


@story(sections=["transactions"])
def going_on_while_empty(s: Story) -> None:
    """With its id and epoch a producer gets the next epoch; with the previous epoch, as after a lost response, the same
    again; with any other it is fenced."""
    for version in WITH_IDS:
        p = Producer(s, f"p{version}")
        p.init(version)
        p.goes_on(version)
        p.goes_on(version)
        now = p.epoch
        for epoch in (now - 1, now - 1, now - 2, now + 1, now + 7, 32766, 32767):
            p.goes_on(version, producer_epoch=epoch, does=f"goes on from epoch {epoch} while it is {now}")
        p.goes_on(version, producer_id=MADE_UP_ID, does="goes on with another id")
        p.goes_on(
            version, producer_id=MADE_UP_ID, producer_epoch=now - 1, does="goes on with another id and the last epoch"
        )
        p.goes_on(version)
        p.init(version, does="starts again")
        p.goes_on(version, producer_epoch=p.epoch - 1, does="goes on from the epoch before a start")
        TransactionsWatcher(s, "watcher").describes_transactions(f"{s.name}-p{version}")


@story(sections=["transactions"])
def starting_with_a_transaction_open(s: Story) -> None:
    """A start aborts the open transaction and returns CONCURRENT_TRANSACTIONS, in every version; after the abort the next
    start gets the epoch after that of the abort."""
    topic = Stagehand(s).topic("orders")
    watcher = TransactionsWatcher(s, "watcher")
    for version in range(6):
        p = Producer(s, f"p{version}")
        p.init(version)
        p.adds_partitions({topic: [0]})
        p.init(version, does="starts again")
        watcher.describes_transactions(f"{s.name}-p{version}")
        p.init(version, does="tries once more")
        watcher.describes_transactions(f"{s.name}-p{version}")
    watcher.describes_producers({topic: [0]})


@story(sections=["transactions"])
def starting_with_a_transaction_of_kip_890_open(s: Story) -> None:
    """The same when Produce has added the partition itself."""
    topic = Stagehand(s).topic("orders", partitions=6)
    watcher = TransactionsWatcher(s, "watcher")
    for version in range(6):
        p = Producer(s, f"p{version}")
        p.init(version)
        p.produces({(topic, version): [b"a"]})
        p.init(version, does="starts again")
        watcher.describes_transactions(f"{s.name}-p{version}")
        watcher.describes_producers({topic: [version]})
        p.init(version, does="tries once more")
        watcher.describes_transactions(f"{s.name}-p{version}")


@story(sections=["transactions"])
def going_on_with_a_transaction_open(s: Story) -> None:
    """A producer that continues with the right id aborts the open transaction, whatever its epoch; with another id it is
    fenced, and nothing happens."""
    topic = Stagehand(s).topic("orders")
    watcher = TransactionsWatcher(s, "watcher")
    for version in WITH_IDS:
        for offset in (0, -1, -2, 1, 7):
            p = Producer(s, f"p{version}-{offset}")
            p.init(version)
            p.goes_on(version)
            p.goes_on(version)
            p.adds_partitions({topic: [0]})
            now = p.epoch
            p.goes_on(version, producer_id=MADE_UP_ID, does="goes on with another id")
            p.goes_on(version, producer_epoch=now + offset, does=f"goes on from its epoch {offset:+}")
            watcher.describes_transactions(f"{s.name}-p{version}-{offset}")
            p.goes_on(version, producer_epoch=now + offset, does=f"goes on once more from its epoch {offset:+}")
            p.goes_on(version, producer_epoch=now + 1, does="goes on from the epoch that an abort takes")
            watcher.describes_transactions(f"{s.name}-p{version}-{offset}")


@story(sections=["transactions"])
def going_on_with_a_transaction_of_kip_890_open(s: Story) -> None:
    """The same in a second transaction, to which Produce has added the partition itself."""
    topic = Stagehand(s).topic("orders")
    watcher = TransactionsWatcher(s, "watcher")
    for version in WITH_IDS:
        for offset in (0, -2, 1):
            p = Producer(s, f"p{version}-{offset}")
            p.init(version)
            p.goes_on(version)
            p.produces({(topic, 0): [b"a"]})
            p.commits()
            p.produces({(topic, 0): [b"b"]})
            now = p.epoch
            p.goes_on(version, producer_epoch=now + offset, does=f"goes on from its epoch {offset:+}")
            watcher.describes_transactions(p.transactional_id or "")
            p.goes_on(version, producer_epoch=now, does="goes on from the epoch that it had")
            p.goes_on(version, producer_epoch=now + 1, does="goes on from the epoch that an abort takes")
            watcher.describes_transactions(p.transactional_id or "")


@story(sections=["transactions"])
def going_on_after_a_transaction(s: Story) -> None:
    """After a commit and after an abort, with the epoch of the transaction, that after its end, and others."""
    topic = Stagehand(s).topic("orders")
    watcher = TransactionsWatcher(s, "watcher")
    for end in (4, 5):
        for committed in (True, False):
            for offset in (-2, -1, 0, 1):
                p = Producer(s, f"p{end}-{committed:d}-{offset}")
                p.init()
                p.goes_on()
                p.adds_partitions({topic: [0]})
                p.ends(committed=committed, version=end)
                p.goes_on(producer_epoch=p.epoch + offset, does=f"goes on from its epoch {offset:+}")
                watcher.describes_transactions(p.transactional_id or "")
                p.goes_on(does="goes on from the epoch that it has")


@story(sections=["transactions"])
def starting_after_a_transaction(s: Story) -> None:
    """After a commit and after an abort, in each version: the next epoch, and an empty transaction with the new timeout."""
    topic = Stagehand(s).topic("orders")
    watcher = TransactionsWatcher(s, "watcher")
    for version in range(6):
        for committed in (True, False):
            p = Producer(s, f"p{version}-{committed:d}")
            p.init(version)
            p.adds_partitions({topic: [0]})
            p.ends(committed=committed, version=version)
            watcher.describes_transactions(p.transactional_id or "")
            p.init(version, transaction_timeout_ms=30_000)
            watcher.describes_transactions(p.transactional_id or "")


@story(sections=["transactions"])
def starting_while_a_transaction_ends(s: Story) -> None:
    """While markers are being written, new and continuing producers get CONCURRENT_TRANSACTIONS, even with the wrong id or
    epoch."""
    topic = Stagehand(s).topic("orders", partitions=4)
    watcher = TransactionsWatcher(s, "watcher")
    for number, (end, committed) in enumerate(((4, True), (4, False), (5, True), (5, False))):
        p = Producer(s, f"p{number}")
        p.init()
        p.goes_on()
        p.ends_in_vain((topic, number), committed=committed, version=end)
        for version in range(6):
            p.init(version, waits=False)
        for version in WITH_IDS:
            for epoch in (p.epoch, p.epoch - 1, p.epoch + 1):
                p.goes_on(version, waits=False, producer_epoch=epoch, does=f"goes on from epoch {epoch}")
            p.goes_on(version, waits=False, producer_id=MADE_UP_ID, does="goes on with another id")
        watcher.describes_transactions(f"{s.name}-p{number}")

"""EndTxn: commit and abort in each state and version, once, repeated, and with the previous epoch (KIP-98, KIP-890)."""

from tests.conformance.actors import Stagehand
from tests.conformance.producers import MADE_UP_ID, Producer, TransactionsWatcher, described
from tests.conformance.story import Story, story
from tests.conformance.transaction_log import show_what_is_logged

VERSIONS = range(6)


@story(sections=["transactions"])
def every_version_of_ending_a_transaction(s: Story) -> None:
    """Commits and aborts of nothing, of a transaction, and repeated, in each version."""
    topic = Stagehand(s).topic("orders")
    watcher = TransactionsWatcher(s, "watcher")
    for version in VERSIONS:
        p = Producer(s, f"p{version}")
        p.init()
        p.commits(version, does="commits nothing")
        watcher.describes_transactions(f"{s.name}-p{version}")
        p.aborts(version, does="aborts nothing")
        watcher.describes_transactions(f"{s.name}-p{version}")
        for committed in (True, False):
            p.adds_partitions({topic: [0]})
            p.ends(committed=committed, version=version)
            watcher.describes_transactions(f"{s.name}-p{version}")
            p.ends(committed=committed, version=version, does="ends it again, in the same way")
            p.ends(committed=not committed, version=version, does="ends it again, in the other way")
            watcher.describes_transactions(f"{s.name}-p{version}")
    watcher.describes_producers({topic: [0]})


@story(sections=["transactions"])
def ending_with_the_epoch_of_before(s: Story) -> None:
    """The response to an EndTxn is lost, and the request is repeated with the same epoch: the result in each version, after
    a commit and after an abort, with the same and the opposite outcome."""
    topic = Stagehand(s).topic("orders")
    watcher = TransactionsWatcher(s, "watcher")
    for version in VERSIONS:
        for ended_by in (4, 5):
            for committed in (True, False):
                p = Producer(s, f"p{version}-{ended_by}-{committed:d}")
                p.init()
                p.init()
                p.adds_partitions({topic: [0]})
                old = p.epoch
                p.ends(committed=committed, version=ended_by)
                for epoch in (old - 1, old, old + 1, old + 2):
                    for again in (committed, not committed):
                        if epoch != p.epoch:
                            p.ends(committed=again, version=version, producer_epoch=epoch)
                watcher.describes_transactions(p.transactional_id or "")
                p.adds_partitions({topic: [0]})


@story(sections=["transactions"])
def the_answer_to_an_abort_of_nothing_is_lost(s: Story) -> None:
    """An abort without a transaction uses up an epoch, too: repeated, it gets the same response; a commit is refused."""
    watcher = TransactionsWatcher(s, "watcher")
    p = Producer(s, "p")
    p.init()
    for _ in range(3):
        old = p.epoch
        p.aborts()
        p.aborts(producer_epoch=old, does="aborts with the old epoch")
        p.commits(producer_epoch=old, does="commits with the old epoch")
        p.aborts(4, producer_epoch=old, does="aborts with the old epoch, as an old client")
        p.aborts(4, does="aborts again, as an old client")
        p.commits(4, does="commits, as an old client")
        watcher.describes_transactions(f"{s.name}-p")


@story(sections=["transactions"])
def who_may_end_a_transaction(s: Story) -> None:
    """Another producer id, another epoch, an unknown transactional id, and none: without a transaction, during and after
    one."""
    topic = Stagehand(s).topic("orders")
    watcher = TransactionsWatcher(s, "watcher")
    for version in VERSIONS:
        p = Producer(s, f"p{version}")
        p.init()
        p.init()

        def as_others(p: Producer = p, version: int = version) -> None:
            for committed in (True, False):
                p.ends(committed=committed, version=version, producer_id=MADE_UP_ID)
                p.ends(committed=committed, version=version, producer_id=-1, producer_epoch=-1)
                p.ends(committed=committed, version=version, producer_epoch=p.epoch + 1)
                p.ends(committed=committed, version=version, producer_epoch=p.epoch - 1)
                p.ends(committed=committed, version=version, transactional_id=f"{s.name}-nobody")
                p.ends(committed=committed, version=version, transactional_id="")

        as_others()
        p.adds_partitions({topic: [0]})
        as_others()
        watcher.describes_transactions(f"{s.name}-p{version}")
        p.commits(4)
        as_others()
        watcher.describes_transactions(f"{s.name}-p{version}")


@story(sections=["transactions"])
def ending_while_a_transaction_ends(s: Story) -> None:
    """While markers are being written each EndTxn gets CONCURRENT_TRANSACTIONS, with either outcome; up to version 4
    another id or epoch is refused before that."""
    topic = Stagehand(s).topic("orders", partitions=4)
    watcher = TransactionsWatcher(s, "watcher")
    for number, (end, committed) in enumerate(((4, True), (4, False), (5, True), (5, False))):
        p = Producer(s, f"p{number}")
        p.init()
        p.init()
        p.ends_in_vain((topic, number), committed=committed, version=end)
        for version in VERSIONS:
            for again in (True, False):
                for epoch in (p.epoch, p.epoch - 1, p.epoch + 1):
                    p.ends(committed=again, version=version, producer_epoch=epoch, waits=False)
                p.ends(committed=again, version=version, producer_id=MADE_UP_ID, waits=False)
        watcher.describes_transactions(f"{s.name}-p{number}")


@story(sections=["transactions"])
def some_markers_are_refused(s: Story) -> None:
    """One of three partitions refuses its marker: the others accept theirs, and the transaction never ends."""
    topic = Stagehand(s).topic("orders", partitions=3)
    watcher = TransactionsWatcher(s, "watcher")
    for version in (4, 5):
        p = Producer(s, f"p{version}")
        p.init()
        p.adds_partitions({topic: [0, 1, 2]})
        p.produces({(topic, 0): [b"a"], (topic, 2): [b"b"]}, 11)
        p.produces({(topic, 1): [b"c"]}, attributes=0, sequence=0, producer_epoch=p.epoch + 100)
        p.commits(version, waits=False)
        for _ in range(500):
            if [each.partitions for each in described(p.stage, f"{s.name}-p{version}").topics] == [(1,)]:
                break
            s.target.wait(10)
        s.end()
        watcher.describes_transactions(f"{s.name}-p{version}")
        watcher.describes_producers({topic: [0, 1, 2]})
        p.init(waits=False)
    show_what_is_logged(s, f"{s.name}-p4", f"{s.name}-p5")


@story(sections=["transactions"])
def clients_of_two_ages(s: Story) -> None:
    """One transactional id, ended in turn with KIP-890 and without: only the former increases the epoch."""
    topic = Stagehand(s).topic("orders", partitions=2)
    watcher = TransactionsWatcher(s, "watcher")
    p = Producer(s, "p")
    p.init()
    for add, end in ((3, 4), (12, 5), (3, 5), (12, 4), (3, 4), (12, 5)):
        if add == 12:
            p.produces({(topic, 0): [b"a"], (topic, 1): [b"b"]})
        else:
            p.adds_partitions({topic: [0]})
            p.produces({(topic, 0): [b"a"]}, 11)
        p.commits(end)
        watcher.describes_transactions(f"{s.name}-p")
        watcher.describes_producers({topic: [0, 1]})
    p.produces({(topic, 0): [b"a"]})
    p.aborts(3)
    p.aborts(5)
    p.produces({(topic, 0): [b"a"]})
    p.aborts(5)
    p.aborts(3)
    p.adds_partitions({topic: [0]}, 5, does="adds partitions as a broker does")
    p.adds_partitions({topic: [1]}, 4, does="adds partitions as a broker does")
    p.adds_offsets(f"{s.name}-group")
    p.aborts(4)
    watcher.describes_producers({topic: [0, 1]})
    show_what_is_logged(s, f"{s.name}-p")

"""AddOffsetsToTxn: the offsets of a group become part of a transaction, as a partition of `__consumer_offsets` (KIP-98)."""

from tests.conformance.actors import Stagehand
from tests.conformance.producers import MADE_UP_ID, Producer, TransactionsWatcher
from tests.conformance.story import Story, story

VERSIONS = range(5)


@story(sections=["transactions"])
def every_version_of_adding_offsets(s: Story) -> None:
    """A group is added, again, and another one; it need not exist. An empty group id is accepted like any other."""
    watcher = TransactionsWatcher(s, "watcher")
    for version in VERSIONS:
        p = Producer(s, f"p{version}")
        p.init()
        p.adds_offsets(f"{s.name}-group", version)
        watcher.describes_transactions(f"{s.name}-p{version}")
        p.adds_offsets(f"{s.name}-group", version, does="adds the same again")
        p.adds_offsets(f"{s.name}-other", version, does="adds another group's")
        p.adds_offsets("", version, does="adds those of an empty group id")
        watcher.describes_transactions(f"{s.name}-p{version}")
        p.commits(version)
        watcher.describes_transactions(f"{s.name}-p{version}")
        p.adds_offsets(f"{s.name}-group", version, does="adds offsets after the commit")
        watcher.describes_transactions(f"{s.name}-p{version}")
        p.aborts(version)
        p.adds_offsets(f"{s.name}-group", version, does="adds offsets after the abort")


@story(sections=["transactions"])
def who_may_add_offsets(s: Story) -> None:
    """Another producer id, another epoch, an unknown transactional id, and none: without a transaction, during and after
    one."""
    group = f"{s.name}-group"
    for version in VERSIONS:
        p = Producer(s, f"p{version}")
        p.init()
        p.init()

        def as_others(p: Producer = p, version: int = version) -> None:
            p.adds_offsets(group, version, producer_id=MADE_UP_ID)
            p.adds_offsets(group, version, producer_id=-1, producer_epoch=-1)
            p.adds_offsets(group, version, producer_epoch=p.epoch - 1)
            p.adds_offsets(group, version, producer_epoch=p.epoch + 1)
            p.adds_offsets(group, version, transactional_id=f"{s.name}-nobody")
            p.adds_offsets(group, version, transactional_id="")

        as_others()
        p.adds_offsets(group, version)
        as_others()
        p.commits(5)
        as_others()
        TransactionsWatcher(s, "watcher").describes_transactions(f"{s.name}-p{version}")


@story(sections=["transactions"])
def adding_offsets_while_a_transaction_ends(s: Story) -> None:
    """While markers are being written nothing can be added, by any producer."""
    topic = Stagehand(s).topic("orders", partitions=4)
    group = f"{s.name}-group"
    for number, (end, committed) in enumerate(((4, True), (4, False), (5, True), (5, False))):
        p = Producer(s, f"p{number}")
        p.init()
        p.ends_in_vain((topic, number), committed=committed, version=end)
        for version in VERSIONS:
            p.adds_offsets(group, version)
            p.adds_offsets(group, version, producer_epoch=p.epoch + 1)
            p.adds_offsets(group, version, producer_id=MADE_UP_ID)
            p.adds_offsets(group, version, transactional_id=f"{s.name}-nobody")

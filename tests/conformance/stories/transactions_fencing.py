"""Fencing: the errors for producers that were replaced or send wrong ids, in each API and version."""

from tests.conformance.actors import Stagehand
from tests.conformance.producers import MADE_UP_ID, Producer, TransactionsWatcher, in_every_version
from tests.conformance.story import Story, story


@story(sections=["transactions"])
def another_one_starts(s: Story) -> None:
    """A second producer starts with the same transactional id; every later request of the first is refused, and the second
    works normally."""
    topic = Stagehand(s).topic("orders", partitions=2)
    group = s.group()
    first = Producer(s, "first", transactional_id=f"{s.name}-id")
    second = Producer(s, "second", transactional_id=f"{s.name}-id")
    first.init()
    first.produces({(topic, 0): [b"a"]})
    first.commits()
    second.init()
    in_every_version(first, (topic, 0), group)
    second.produces({(topic, 0): [b"b"]})
    in_every_version(first, (topic, 0), group, starts=False)
    second.commits()
    TransactionsWatcher(s, "watcher").describes_transactions(f"{s.name}-id")


@story(sections=["transactions"])
def another_one_starts_while_a_transaction_is_open(s: Story) -> None:
    """The second one's start aborts the first one's transaction before it gets an epoch; the first gets an error when it
    continues the transaction."""
    topic = Stagehand(s).topic("orders", partitions=2)
    group = s.group()
    first = Producer(s, "first", transactional_id=f"{s.name}-id")
    second = Producer(s, "second", transactional_id=f"{s.name}-id")
    first.init()
    first.produces({(topic, 0): [b"a"]})
    first.commits_offsets(group, {(topic, 0): 1})
    second.init()
    in_every_version(first, (topic, 0), group, starts=False)
    second.init(does="tries once more")
    in_every_version(first, (topic, 0), group)
    second.produces({(topic, 0): [b"b"]})
    second.commits()
    TransactionsWatcher(s, "watcher").describes_transactions(f"{s.name}-id")


@story(sections=["transactions"])
def one_that_was_fenced_aborts_its_successors_transaction(s: Story) -> None:
    """With an open transaction InitProducerId does not check the epoch: a producer that was fenced long ago aborts it, and
    the current one is fenced in turn."""
    topic = Stagehand(s).topic("orders", partitions=2)
    group = s.group()
    watcher = TransactionsWatcher(s, "watcher")
    first = Producer(s, "first", transactional_id=f"{s.name}-id")
    second = Producer(s, "second", transactional_id=f"{s.name}-id")
    first.init()
    first.produces({(topic, 0): [b"a"]})
    first.commits()
    for _ in range(3):
        second.init()
    second.produces({(topic, 0): [b"b"]})
    first.goes_on(does="goes on with an epoch of long ago")
    watcher.describes_transactions(f"{s.name}-id")
    first.goes_on(does="goes on once more")
    in_every_version(second, (topic, 0), group, starts=False)
    second.goes_on()
    second.produces({(topic, 0): [b"c"]})
    second.commits()
    watcher.describes_transactions(f"{s.name}-id")


@story(sections=["transactions"])
def epochs_that_are_not_yet(s: Story) -> None:
    """A producer with an epoch that is too high, without a transaction and with one."""
    topic = Stagehand(s).topic("orders", partitions=2)
    group = s.group()
    p = Producer(s, "p")
    p.init()
    in_every_version(p, (topic, 0), group, producer_epoch=p.epoch + 1)
    p.produces({(topic, 0): [b"a"]})
    in_every_version(p, (topic, 0), group, starts=False, producer_epoch=p.epoch + 1)
    p.commits()
    TransactionsWatcher(s, "watcher").describes_transactions(f"{s.name}-p")


@story(sections=["transactions"])
def ids_that_are_not_its_own(s: Story) -> None:
    """A producer with an unknown producer id, and one with the id of another producer."""
    topic = Stagehand(s).topic("orders", partitions=2)
    group = s.group()
    p, other = Producer(s, "p"), Producer(s, "other")
    p.init()
    other.init()
    p.produces({(topic, 0): [b"a"]})
    in_every_version(p, (topic, 1), group, producer_id=MADE_UP_ID)
    other.produces({(topic, 1): [b"a"]})
    in_every_version(p, (topic, 1), group, producer_id=other.producer_id)
    p.commits()
    other.commits()
    TransactionsWatcher(s, "watcher").describes_transactions(f"{s.name}-p", f"{s.name}-other")


@story(sections=["transactions"])
def transactional_ids_that_nobody_has(s: Story) -> None:
    """A producer whose transactional id was never initialised, and one without a transactional id."""
    topic = Stagehand(s).topic("orders", partitions=2)
    group = s.group()
    p = Producer(s, "p")
    p.init()
    in_every_version(p, (topic, 0), group, starts=False, transactional_id=f"{s.name}-nobody")
    in_every_version(p, (topic, 0), group, starts=False, transactional_id="")
    TransactionsWatcher(s, "watcher").describes_transactions(f"{s.name}-p", f"{s.name}-nobody")


@story(sections=["transactions"])
def everything_while_a_transaction_ends(s: Story) -> None:
    """The right producer, while its transaction is being committed or aborted: CONCURRENT_TRANSACTIONS, in the form of each
    version."""
    topic = Stagehand(s).topic("orders", partitions=3)
    group = s.group()
    for number, committed in enumerate((True, False)):
        p = Producer(s, f"p{number}")
        p.init()
        p.ends_in_vain((topic, number), committed=committed)
        in_every_version(p, (topic, 2), group, waits=False)
    TransactionsWatcher(s, "watcher").describes_transactions(f"{s.name}-p0", f"{s.name}-p1")

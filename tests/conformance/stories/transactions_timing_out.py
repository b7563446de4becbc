"""Transactions that exceed their timeout, and transactional ids that are no longer used: real time."""

from tests.conformance.actors import Stagehand
from tests.conformance.producers import Producer, TransactionsWatcher, in_every_version, until_complete
from tests.conformance.settings import SHORT_TRANSACTIONS
from tests.conformance.story import Story, story
from tests.conformance.transaction_log import show_what_is_logged

TIMEOUT_MS = 2_000


def until_aborted(p: Producer) -> None:
    """Wait quietly until the coordinator has aborted the transaction of ``p``."""
    until_complete(p.story, p.stage, p.transactional_id or "", state="CompleteAbort")


@story(sections=["transactions"], settings=SHORT_TRANSACTIONS, lasts_ms=4_000)
def a_transaction_takes_too_long(s: Story) -> None:
    """It is aborted with the next epoch, and the producer is fenced in each API and version. Its own abort counts as a
    retry and returns the new epoch, with which it can continue."""
    topic = Stagehand(s).topic("orders")
    group = s.group()
    watcher = TransactionsWatcher(s, "watcher")
    p = Producer(s, "p", timeout_ms=TIMEOUT_MS)
    p.init()
    p.produces({(topic, 0): [b"a"]})
    until_aborted(p)
    watcher.describes_transactions(f"{s.name}-p")
    watcher.describes_producers({topic: [0]})
    in_every_version(p, (topic, 0), group, starts=False)
    watcher.describes_transactions(f"{s.name}-p")
    p.aborts(does="aborts, and learns the new epoch")
    p.produces({(topic, 0): [b"b"]})
    p.commits()
    watcher.describes_transactions(f"{s.name}-p")
    show_what_is_logged(s, f"{s.name}-p")


@story(sections=["transactions"], settings=SHORT_TRANSACTIONS, lasts_ms=4_000)
def an_old_clients_transaction_takes_too_long(s: Story) -> None:
    """The same for a producer without KIP-890: it has to start again."""
    topic = Stagehand(s).topic("orders")
    group = s.group()
    watcher = TransactionsWatcher(s, "watcher")
    p = Producer(s, "p", timeout_ms=TIMEOUT_MS)
    p.init(3)
    p.adds_partitions({topic: [0]})
    p.produces({(topic, 0): [b"a"]}, 11)
    until_aborted(p)
    watcher.describes_transactions(f"{s.name}-p")
    watcher.describes_producers({topic: [0]})
    in_every_version(p, (topic, 0), group, starts=False)
    p.init(3, does="starts again")
    p.adds_partitions({topic: [0]})
    p.produces({(topic, 0): [b"b"]}, 11)
    p.commits(3)
    watcher.describes_transactions(f"{s.name}-p")
    watcher.describes_producers({topic: [0]})
    show_what_is_logged(s, f"{s.name}-p")


@story(sections=["transactions"], settings=SHORT_TRANSACTIONS, lasts_ms=4_000)
def going_on_after_a_transaction_took_too_long(s: Story) -> None:
    """With the epoch of the transaction the producer gets that of the abort, with that one the next; others are fenced. A
    new producer gets the next epoch."""
    topic = Stagehand(s).topic("orders")
    watcher = TransactionsWatcher(s, "watcher")
    producers = {offset: Producer(s, f"p{offset}", timeout_ms=TIMEOUT_MS) for offset in (0, -1, 1, 2)}
    starting = Producer(s, "starting", timeout_ms=TIMEOUT_MS)
    everyone = (*producers.values(), starting)
    for p in everyone:
        p.init()
        p.goes_on()
    for p in everyone:
        p.adds_partitions({topic: [0]})
    for p in everyone:
        until_aborted(p)
    for offset, p in producers.items():
        now = p.epoch
        p.goes_on(producer_epoch=now + offset, does=f"goes on from its epoch {offset:+}")
        p.goes_on(producer_epoch=now + offset, does=f"goes on once more from its epoch {offset:+}")
    starting.init(does="starts again")
    watcher.describes_transactions(*(p.transactional_id or "" for p in everyone))


@story(sections=["transactions"], settings=SHORT_TRANSACTIONS, lasts_ms=4_000)
def offsets_take_too_long(s: Story) -> None:
    """A transaction with only offsets is aborted as well, and so is an empty one."""
    group = s.group()
    watcher = TransactionsWatcher(s, "watcher")
    topic = Stagehand(s).topic("orders")
    p, q = Producer(s, "p", timeout_ms=TIMEOUT_MS), Producer(s, "q", timeout_ms=TIMEOUT_MS)
    p.init()
    q.init()
    p.commits_offsets(group, {(topic, 0): 5})
    q.adds_partitions({topic: []})
    until_aborted(p)
    until_aborted(q)
    watcher.describes_transactions(f"{s.name}-p", f"{s.name}-q")
    watcher.fetches(group, {topic: [0]}, stable=True)
    p.commits_offsets(group, {(topic, 0): 6})
    p.commits()
    q.commits()


@story(sections=["transactions"], settings=SHORT_TRANSACTIONS, lasts_ms=6_000)
def what_does_not_prolong_a_transaction(s: Story) -> None:
    """The timeout counts from the first partition on, whatever is added and written after that."""
    topic = Stagehand(s).topic("orders", partitions=2)
    watcher = TransactionsWatcher(s, "watcher")
    p = Producer(s, "p", timeout_ms=3_000)
    p.init()
    p.adds_partitions({topic: [0]})
    mark = s.mark()
    s.wait_until(mark, 1_500, "half of the timeout")
    p.adds_partitions({topic: [1]})
    p.produces({(topic, 0): [b"a"], (topic, 1): [b"b"]})
    watcher.describes_transactions(f"{s.name}-p")
    s.wait_until(mark, 4_000, "the timeout and a check; not yet the timeout from the last addition on")
    watcher.describes_transactions(f"{s.name}-p")


@story(sections=["transactions"], settings=SHORT_TRANSACTIONS, lasts_ms=4_000)
def what_does_not_time_out(s: Story) -> None:
    """Transactions that are empty, complete, or being ended do not time out."""
    topic = Stagehand(s).topic("orders", partitions=2)
    watcher = TransactionsWatcher(s, "watcher")
    states = ("empty", "committed", "aborted", "committing")
    producers = [Producer(s, state, timeout_ms=TIMEOUT_MS) for state in states]
    for p in producers:
        p.init()
    _, committed, aborted, committing = producers
    committed.adds_partitions({topic: [0]})
    committed.commits()
    aborted.adds_partitions({topic: [0]})
    aborted.aborts()
    committing.ends_in_vain((topic, 1), committed=True)
    watcher.describes_transactions(*(p.transactional_id or "" for p in producers))
    s.wait(TIMEOUT_MS + 1_000, "a timeout, and ten checks")
    watcher.describes_transactions(*(p.transactional_id or "" for p in producers))


@story(sections=["transactions"], settings=SHORT_TRANSACTIONS, lasts_ms=4_000)
def the_timeout_of_the_last_start(s: Story) -> None:
    """Each InitProducerId sets the timeout, also of a continuing producer; more than the broker allows is refused."""
    topic = Stagehand(s).topic("orders")
    watcher = TransactionsWatcher(s, "watcher")
    p = Producer(s, "p")
    p.init(transaction_timeout_ms=120_001)
    p.init(transaction_timeout_ms=120_000)
    watcher.describes_transactions(f"{s.name}-p")
    p.goes_on(transaction_timeout_ms=TIMEOUT_MS)
    p.adds_partitions({topic: [0]})
    until_aborted(p)
    watcher.describes_transactions(f"{s.name}-p")


@story(sections=["transactions"], settings=SHORT_TRANSACTIONS, lasts_ms=25_000)
def transactional_ids_are_forgotten(s: Story) -> None:
    """An empty or completed one expires when it has not been used for long, with a tombstone in the log; one with an open
    or ending transaction does not. The producer of an expired id gets another producer id."""
    topic = Stagehand(s).topic("orders", partitions=2)
    watcher = TransactionsWatcher(s, "watcher")
    states = ("empty", "over", "open", "ending", "starting")
    empty, over, still_open, ending, starting = producers = [Producer(s, state) for state in states]
    for p in producers:
        p.init()
    for p in (over, still_open):
        p.adds_partitions({topic: [0]})
    over.commits()
    ending.ends_in_vain((topic, 1), committed=True)
    watcher.describes_transactions(*(p.transactional_id or "" for p in producers))
    s.wait(15_000, "the time after which transactional ids are forgotten")
    for p in (empty, over, starting):
        until_complete(s, p.stage, p.transactional_id or "", state="")
    watcher.describes_transactions(*(p.transactional_id or "" for p in producers))
    watcher.lists_transactions()
    over.adds_partitions({topic: [0]}, does="goes on as if nothing had happened")
    over.commits()
    over.goes_on()
    empty.goes_on(producer_epoch=empty.epoch + 1, does="goes on with an epoch that it never had")
    starting.init(does="starts again")
    watcher.describes_transactions(*(p.transactional_id or "" for p in producers))
    show_what_is_logged(s, *(p.transactional_id or "" for p in producers))

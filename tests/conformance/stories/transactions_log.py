"""The records that the transaction coordinator writes to its log, byte by byte."""

from tests.conformance.actors import Stagehand
from tests.conformance.producers import MADE_UP_ID, Producer, TransactionsWatcher
from tests.conformance.story import Story, story
from tests.conformance.transaction_log import show_what_is_logged


@story(sections=["transactions"])
def a_life_in_the_log(s: Story) -> None:
    """Each state change of a producer with KIP-890: a start, a commit of records and offsets, an abort, an abort of
    nothing, going on, a start with an open transaction."""
    stage = Stagehand(s)
    first, second = stage.topic("orders", partitions=3), stage.topic("payments", partitions=2)
    group = s.group()
    p = Producer(s, "p")
    p.init()
    p.produces({(first, 2): [b"a"], (second, 1): [b"b"]})
    p.produces({(first, 2): [b"c"]}, does="produces where it has produced before")
    p.produces({(first, 0): [b"d"], (second, 1): [b"e"]})
    p.commits_offsets(group, {(first, 0): 7})
    p.commits()
    p.produces({(second, 0): [b"f"]})
    p.aborts()
    p.aborts(does="aborts nothing")
    p.goes_on(transaction_timeout_ms=30_000)
    p.goes_on(producer_epoch=p.epoch - 1, does="goes on once more, as if the answer had been lost")
    p.produces({(second, 0): [b"g"]})
    p.init(does="starts again")
    p.init(does="tries once more")
    show_what_is_logged(s, f"{s.name}-p")


@story(sections=["transactions"])
def an_old_life_in_the_log(s: Story) -> None:
    """The same for a producer without KIP-890: it keeps its epoch."""
    topic = Stagehand(s).topic("orders", partitions=3)
    group = s.group()
    p = Producer(s, "p")
    p.init(1)
    p.adds_partitions({topic: [2, 0]}, 0)
    p.produces({(topic, 2): [b"a"], (topic, 0): [b"b"]}, 3)
    p.adds_partitions({topic: [0]}, 3, does="adds what it has added")
    p.adds_offsets(group, 3)
    p.commits_offsets(group, {(topic, 0): 7}, 3)
    p.commits(3)
    p.commits(3, does="commits again")
    p.adds_partitions({topic: [1]}, 3)
    p.produces({(topic, 1): [b"c"]}, 9)
    p.aborts(4)
    p.goes_on(3)
    p.adds_partitions({topic: [1]}, 3)
    p.goes_on(3, does="goes on with a transaction open")
    p.init(3, does="starts again")
    p.adds_partitions({topic: []}, 3, does="adds nothing")
    p.commits(3, does="commits nothing")
    show_what_is_logged(s, f"{s.name}-p")


@story(sections=["transactions"])
def what_leaves_nothing_in_the_log(s: Story) -> None:
    """Refused requests, and those that change nothing, write nothing; an invalid id does no harm to a producer that never
    started."""
    topic = Stagehand(s).topic("orders")
    p, q = Producer(s, "p"), Producer(s, "q")
    p.init(transaction_timeout_ms=0)
    p.init()
    p.goes_on(producer_id=MADE_UP_ID)
    p.goes_on(producer_epoch=p.epoch + 1)
    p.adds_partitions({topic: [1]})
    p.adds_partitions({topic: [0]}, producer_epoch=7)
    p.adds_partitions({topic: [0]}, 5, verify_only=True)
    p.commits()
    p.aborts(4)
    p.adds_partitions({topic: [0]})
    p.adds_partitions({topic: [0]}, does="adds what it has added")
    p.commits(4)
    p.commits(4)
    p.aborts(4)
    q.goes_on(producer_id=MADE_UP_ID, producer_epoch=0, does="goes on though it never started")
    show_what_is_logged(s, f"{s.name}-p", f"{s.name}-q")


@story(sections=["transactions"])
def many_partitions_in_the_log(s: Story) -> None:
    """Topics and partitions have the orders of Java's hash tables: a few of them, and so many that the tables grow."""
    stage = Stagehand(s)
    topics = [stage.topic(name, partitions=24) for name in ("a", "bb", "ccc", "orders", "payments")]
    p = Producer(s, "p")
    watcher = TransactionsWatcher(s, "watcher")
    p.init()
    for partitions in (
        {topics[3]: [5, 3, 11]},
        {topic: [0, 1] for topic in topics},
        {topics[0]: [23, 22, 21, 20]},
        {topics[4]: list(range(23, -1, -1))},
        {topic: list(range(24)) for topic in topics},
    ):
        p.adds_partitions({**partitions, s.topic_name("nowhere"): [0]}, does="adds them, and an unknown one")
        p.adds_partitions(partitions, 5, verify_only=True)
        p.adds_partitions(partitions)
        watcher.describes_transactions(f"{s.name}-p")
    p.commits()
    p.adds_partitions({topic: [7] for topic in topics})
    p.aborts()
    show_what_is_logged(s, f"{s.name}-p")


@story(sections=["transactions"])
def names_of_transactional_ids(s: Story) -> None:
    """Any text is accepted: letters of all scripts, spaces, path-like names, hundreds of letters."""
    topic = Stagehand(s).topic("orders")
    names = [f"{s.name}-{suffix}" for suffix in ("ünïcode-🙂", "a b", "../etc", "", "\x00", "x" * 300)]
    watcher = TransactionsWatcher(s, "watcher")
    for name in names:
        p = Producer(s, "p", transactional_id=name)
        p.init()
        p.produces({(topic, 0): [b"a"]})
        p.commits()
        watcher.finds_transactional(name)
    watcher.describes_transactions(*names)
    show_what_is_logged(s, *names)


@story(sections=["transactions"])
def transactions_that_never_end_in_the_log(s: Story) -> None:
    """An open one, and two whose markers could not be written: the log has all that a restart needs."""
    topic = Stagehand(s).topic("orders", partitions=2)
    names = ("open", "committing", "aborting")
    still_open, committing, aborting = (Producer(s, name) for name in names)
    for p in (still_open, committing, aborting):
        p.init()
    still_open.produces({(topic, 0): [b"a"]})
    committing.ends_in_vain((topic, 0), committed=True)
    aborting.ends_in_vain((topic, 1), committed=False, version=4)
    show_what_is_logged(s, *(f"{s.name}-{name}" for name in names))

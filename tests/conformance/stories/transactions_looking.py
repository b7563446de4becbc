"""Descriptions: DescribeTransactions, ListTransactions, DescribeProducers, FindCoordinator for transactional ids."""

from tests.conformance.actors import Stagehand
from tests.conformance.producers import MADE_UP_ID, Producer, TransactionsWatcher
from tests.conformance.story import Story, story

EVERY_STATE = (
    "Empty",
    "Ongoing",
    "PrepareCommit",
    "PrepareAbort",
    "CompleteCommit",
    "CompleteAbort",
    "Dead",
    "PrepareEpochFence",
)


def one_in_each_state(s: Story) -> dict[str, Producer]:
    """Producers by the state of their transaction: all that last."""
    topic = Stagehand(s).topic("orders", partitions=2)
    producers = {state: Producer(s, state) for state in EVERY_STATE[:6]}
    for p in producers.values():
        p.init()
    for state in ("Ongoing", "CompleteCommit", "CompleteAbort"):
        producers[state].adds_partitions({topic: [0]})
    producers["CompleteCommit"].commits()
    producers["CompleteAbort"].aborts()
    producers["PrepareCommit"].ends_in_vain((topic, 0), committed=True)
    producers["PrepareAbort"].ends_in_vain((topic, 1), committed=False)
    return producers


@story(sections=["transactions"])
def describing_transactions(s: Story) -> None:
    """One in each state; unknown ones, one twice, an empty id and no id at all."""
    producers = one_in_each_state(s)
    watcher = TransactionsWatcher(s, "watcher")
    watcher.describes_transactions(*(p.transactional_id or "" for p in producers.values()))
    watcher.describes_transactions(f"{s.name}-nobody", f"{s.name}-Ongoing", "", f"{s.name}-Ongoing", f"{s.name}-nobody")
    watcher.describes_transactions()


@story(sections=["transactions"])
def listing_transactions(s: Story) -> None:
    """All, those in some states, unknown states; those of some producers; in every version."""
    producers = one_in_each_state(s)
    watcher = TransactionsWatcher(s, "watcher")
    ongoing, empty = producers["Ongoing"].producer_id, producers["Empty"].producer_id
    for version in range(3):
        watcher.lists_transactions(version)
        for state in EVERY_STATE:
            watcher.lists_transactions(version, states=[state], does=f"lists those in {state}")
        watcher.lists_transactions(version, states=["Ongoing", "Empty", "Ongoing"])
        watcher.lists_transactions(version, states=["ongoing"])
        watcher.lists_transactions(version, states=["Stable", "Ongoing"])
        watcher.lists_transactions(version, states=[""])
        watcher.lists_transactions(version, producer_ids=[ongoing])
        watcher.lists_transactions(version, producer_ids=[empty, ongoing, MADE_UP_ID])
        watcher.lists_transactions(version, producer_ids=[MADE_UP_ID])
        watcher.lists_transactions(version, producer_ids=[-1])
        watcher.lists_transactions(version, producer_ids=[ongoing], states=["Empty"])
        watcher.lists_transactions(version, producer_ids=[ongoing], states=["Ongoing"])


@story(sections=["transactions"])
def listing_transactions_by_how_long_they_run(s: Story) -> None:
    """Those that started longer ago than a duration. An Empty one has no start, and counts as running for ever."""
    one_in_each_state(s)
    watcher = TransactionsWatcher(s, "watcher")
    s.wait(200, "all transactions are older than that")
    for version in (1, 2):
        for duration_ms in (-1, -2, 0, 100, 3_600_000, 2**63 - 1):
            watcher.lists_transactions(version, duration_filter=duration_ms, does=f"lists those of {duration_ms} ms")
        watcher.lists_transactions(version, duration_filter=100, states=["Ongoing", "CompleteCommit"])


@story(sections=["transactions"])
def listing_transactions_by_their_names(s: Story) -> None:
    """A pattern must match the whole name; an invalid pattern is an error."""
    one_in_each_state(s)
    watcher = TransactionsWatcher(s, "watcher")
    for pattern in (
        None,
        "",
        f"{s.name}-Ongoing",
        f"{s.name}-On",
        f"{s.name}-.*",
        ".*Prepare.*",
        "(?i).*-ongoing",
        f"{s.name}-(Empty|Ongoing)",
        ".*[A-Z]mpty",
        "nothing like it",
        "[",
        "*",
        "(?<",
        ".*(?=y)y",
        "\\p{Alpha}.*-\\p{Upper}\\w+",
    ):
        watcher.lists_transactions(transactional_id_pattern=pattern, does=f"lists those like {pattern}")
    watcher.lists_transactions(transactional_id_pattern=".*Complete.*", states=["CompleteAbort"], duration_filter=0)
    watcher.lists_transactions(transactional_id_pattern="[", states=["Stable"])


@story(sections=["transactions"])
def describing_producers(s: Story) -> None:
    """The producers of a partition: idempotent and transactional ones, with their last sequence and open transaction; and
    unknown partitions."""
    topic = Stagehand(s).topic("orders", partitions=3)
    watcher = TransactionsWatcher(s, "watcher")
    watcher.describes_producers({topic: [0]})
    a, b, c = Producer(s, "a"), Producer(s, "b"), Producer(s, "c", transactional_id=None)
    for each in (a, b, c):
        each.init()
    a.produces({(topic, 0): [b"a", b"b"]})
    b.adds_partitions({topic: [0]})
    c.produces({(topic, 0): [b"c"]}, attributes=0)
    watcher.describes_producers({topic: [0]})
    b.produces({(topic, 0): [b"d"]}, 11)
    a.produces({(topic, 0): [b"e"]})
    watcher.describes_producers({topic: [0, 1]})
    a.commits(5)
    b.aborts(4)
    watcher.describes_producers({topic: [2, 0, 0]})
    a.produces({(topic, 0): [b"f"]})
    watcher.describes_producers({topic: [0]})
    a.goes_on()
    watcher.describes_producers({topic: [0]})
    watcher.describes_producers({topic: [3, -1]})
    watcher.describes_producers({s.topic_name("nowhere"): [0, 1], topic: [1]})
    watcher.describes_producers({"": [0]})
    watcher.describes_producers({"a/b": [0]})
    watcher.describes_producers({"__transaction_state": [50]})
    watcher.describes_producers({topic: []})
    watcher.describes_producers({})


@story(sections=["transactions", "10.1"])
def coordinators_of_transactions(s: Story) -> None:
    """One key up to version 3, any number from 4 on; an empty one is accepted like any other."""
    Producer(s, "p")
    watcher = TransactionsWatcher(s, "watcher")
    for version in range(1, 7):
        watcher.finds_transactional("some-id", version=version)
        watcher.finds_transactional("", version=version)
    for version in (4, 5, 6):
        watcher.finds_transactional("b", "a", "b", "", version=version)
        watcher.finds_transactional(version=version)


@story(sections=["transactions"])
def versions_of_init_producer_id_that_are_not_served(s: Story) -> None:
    """Version 6 is not stable: a request with it closes the connection."""
    p = Producer(s, "p")
    name = p.transactional_id or ""
    flexible = bytes([len(name) + 1]) + name.encode() + (60_000).to_bytes(4, "big") + b"\xff" * 10 + b"\x00\x00\x00"
    body = (22).to_bytes(2, "big") + (6).to_bytes(2, "big") + (1).to_bytes(4, "big") + b"\xff\xff\x00" + flexible
    p.sends_bytes(len(body).to_bytes(4, "big") + body, does="asks for its producer id with version 6")
    p.init(does="asks with version 5")

"""AddPartitionsToTxn: from producers up to version 3, and from brokers from version 4 on (KIP-98, KIP-890)."""

from tests.conformance.actors import Stagehand
from tests.conformance.producers import MADE_UP_ID, Partitions, Producer, TransactionsWatcher
from tests.conformance.story import Story, story

VERSIONS = range(6)


@story(sections=["transactions"])
def every_version_of_adding_partitions_to_a_transaction(s: Story) -> None:
    """Partitions are added, again, and more of them, in each version, and exactly those are described."""
    first, second = Stagehand(s).topic("orders", partitions=3), Stagehand(s).topic("payments")
    watcher = TransactionsWatcher(s, "watcher")
    for version in VERSIONS:
        p = Producer(s, f"p{version}")
        p.init()
        p.adds_partitions({first: [0]}, version)
        watcher.describes_transactions(f"{s.name}-p{version}")
        p.adds_partitions({first: [0]}, version, does="adds the same again")
        watcher.describes_transactions(f"{s.name}-p{version}")
        p.adds_partitions({second: [0], first: [2, 0, 1]}, version, does="adds more")
        watcher.describes_transactions(f"{s.name}-p{version}")
        p.aborts()


@story(sections=["transactions"])
def adding_partitions_that_are_not_there(s: Story) -> None:
    """With one unknown topic or partition, none of the request is added; a partition listed twice gets two results."""
    topic = Stagehand(s).topic("orders", partitions=2)
    watcher = TransactionsWatcher(s, "watcher")
    requests: dict[str, Partitions] = {
        "an unknown topic": {s.topic_name("nowhere"): [0]},
        "an unknown partition": {topic: [2]},
        "a negative partition": {topic: [-1]},
        "known and unknown partitions": {topic: [0, 2, 1]},
        "known and unknown topics": {topic: [0, 1], s.topic_name("nowhere"): [0, 1]},
        "a name that cannot be": {"": [0], "a/b": [0]},
        "one partition twice": {topic: [0, 0]},
        "a topic without partitions": {topic: []},
        "no topics": {},
    }
    for version in VERSIONS:
        p = Producer(s, f"p{version}")
        p.init()
        for what, partitions in requests.items():
            if partitions or version < 4:
                p.adds_partitions(partitions, version, does=f"adds {what}")
        watcher.describes_transactions(f"{s.name}-p{version}")


@story(sections=["transactions"])
def adding_nothing(s: Story) -> None:
    """Without partitions a transaction begins nevertheless, as an empty one."""
    topic = Stagehand(s).topic("orders")
    watcher = TransactionsWatcher(s, "watcher")
    for version in VERSIONS:
        p = Producer(s, f"p{version}")
        p.init()
        p.adds_partitions({topic: []}, version)
        watcher.describes_transactions(f"{s.name}-p{version}")
        p.commits(4)
        watcher.describes_transactions(f"{s.name}-p{version}")


@story(sections=["transactions"])
def who_may_add_partitions(s: Story) -> None:
    """Another producer id, another epoch, an unknown transactional id, and none, in each version."""
    topic = Stagehand(s).topic("orders", partitions=2)
    p = Producer(s, "p")
    p.init()
    p.init()
    known: Partitions = {topic: [0, 1]}
    both: Partitions = {topic: [0], s.topic_name("nowhere"): [0]}
    for version in VERSIONS:
        for verify in (False, True) if version > 3 else (False,):
            for partitions in (known, both):
                p.adds_partitions(partitions, version, verify_only=verify, producer_id=MADE_UP_ID)
                p.adds_partitions(partitions, version, verify_only=verify, producer_id=-1, producer_epoch=-1)
                p.adds_partitions(partitions, version, verify_only=verify, producer_epoch=p.epoch - 1)
                p.adds_partitions(partitions, version, verify_only=verify, producer_epoch=p.epoch + 1)
                p.adds_partitions(partitions, version, verify_only=verify, transactional_id=f"{s.name}-nobody")
                p.adds_partitions(partitions, version, verify_only=verify, transactional_id="")
    TransactionsWatcher(s, "watcher").describes_transactions(f"{s.name}-p")


@story(sections=["transactions"])
def verifying_partitions(s: Story) -> None:
    """Partitions in the transaction are verified, others get TRANSACTION_ABORTABLE; with an unknown topic nothing is
    checked."""
    topic = Stagehand(s).topic("orders", partitions=3)
    watcher = TransactionsWatcher(s, "watcher")
    for version in (4, 5):
        p = Producer(s, f"p{version}")
        p.init()
        every: Partitions = {topic: [0, 1, 2]}
        p.adds_partitions(every, version, verify_only=True, does="verifies in an empty transaction")
        p.adds_partitions({topic: [1]})
        p.adds_partitions(every, version, verify_only=True)
        p.adds_partitions({topic: [1]}, version, verify_only=True)
        p.adds_partitions({topic: [1, 7], s.topic_name("nowhere"): [0]}, version, verify_only=True)
        p.adds_partitions({s.topic_name("nowhere"): [0]}, version, verify_only=True)
        watcher.describes_transactions(f"{s.name}-p{version}")
        p.commits(4)
        p.adds_partitions(every, version, verify_only=True, does="verifies after the commit")
        p.adds_partitions({topic: [1]})
        p.aborts()
        p.adds_partitions(every, version, verify_only=True, does="verifies after the abort")
        watcher.describes_transactions(f"{s.name}-p{version}")


@story(sections=["transactions"])
def several_transactions_in_one_request(s: Story) -> None:
    """Each gets its own result: some are verified and some added to, one is unknown, one belongs to another producer."""
    topic = Stagehand(s).topic("orders", partitions=3)
    watcher = TransactionsWatcher(s, "watcher")
    for version in (4, 5):
        a, b, c = (Producer(s, f"{name}{version}") for name in "abc")
        for each in (a, b, c):
            each.init()
        b.adds_partitions({topic: [1]})
        a.adds_partitions_of(
            [
                a.transaction({topic: [0]}),
                b.transaction({topic: [0, 1]}, verify_only=True),
                c.transaction({topic: [2], s.topic_name("nowhere"): [0]}),
            ],
            version,
        )
        a.adds_partitions_of(
            [
                a.transaction({topic: [1]}, producer_id=b.producer_id),
                b.transaction({topic: [2]}, transactional_id=f"{s.name}-nobody"),
                c.transaction({topic: [2]}, producer_epoch=7),
            ],
            version,
            does="adds partitions in the name of others",
        )
        a.adds_partitions_of(
            [c.transaction({topic: [0]}), b.transaction({topic: [2]}), a.transaction({topic: [2]}, verify_only=True)],
            version,
            does="adds partitions in another order",
        )
        watcher.describes_transactions(*(f"{s.name}-{name}{version}" for name in "abc"))


@story(sections=["transactions"])
def one_transaction_several_times_in_one_request(s: Story) -> None:
    """Each gets the partitions of the last one, and the result of the first one; errors have the order of hash maps."""
    first, second = Stagehand(s).topic("orders", partitions=3), Stagehand(s).topic("payments")
    nowhere = [s.topic_name(f"nowhere{number}") for number in range(4)]
    watcher = TransactionsWatcher(s, "watcher")
    for version in (4, 5):
        a, b = (Producer(s, f"{name}{version}") for name in "ab")
        a.init()
        b.init()
        for lasts in ({first: [1]}, {}, {first: [5], second: [0]}, {nowhere[0]: [0], second: [3, 0]}):
            verified = a.transaction({second: [0], first: [0, 7, 0]}, verify_only=True)
            a.adds_partitions_of(
                [verified, a.transaction(lasts)], version, does="verifies partitions, then adds others"
            )
            watcher.describes_transactions(f"{s.name}-a{version}")
            a.adds_partitions_of([verified, verified], version, does="verifies partitions twice")
        a.adds_partitions_of(
            [a.transaction({first: [0]}), b.transaction({first: [1]}, producer_epoch=9), b.transaction({second: [0]})],
            version,
            does="adds partitions of three transactions, of which the last two are one",
        )
        b.adds_partitions({name: [4, 0, 9, 2] for name in (*nowhere, first)}, version, does="adds unknown partitions")
        b.adds_partitions({second: [3], first: [0, 3, 3], nowhere[1]: [0]}, version, does="adds unknown partitions")
        watcher.describes_transactions(*(f"{s.name}-{name}{version}" for name in "ab"))


@story(sections=["transactions"])
def adding_partitions_after_a_transaction(s: Story) -> None:
    """After a commit and after an abort the next transaction begins, with the producer's present epoch."""
    topic = Stagehand(s).topic("orders", partitions=2)
    watcher = TransactionsWatcher(s, "watcher")
    for version in VERSIONS:
        for end in (4, 5):
            p = Producer(s, f"p{version}-{end}")
            p.init()
            for committed in (True, False):
                p.adds_partitions({topic: [0]}, version)
                old = p.epoch
                p.ends(committed=committed, version=end)
                if end == 5:
                    p.adds_partitions({topic: [1]}, version, producer_epoch=old, does="adds with its old epoch")
                p.adds_partitions({topic: [1]}, version)
                watcher.describes_transactions(f"{s.name}-p{version}-{end}")
                p.ends(committed=committed, version=end)


@story(sections=["transactions"])
def adding_partitions_while_a_transaction_ends(s: Story) -> None:
    """While markers are being written nothing can be added or verified; only a verification checks the producer first."""
    topic = Stagehand(s).topic("orders", partitions=4)
    for number, (end, committed) in enumerate(((4, True), (4, False), (5, True), (5, False))):
        p = Producer(s, f"p{number}")
        p.init()
        p.ends_in_vain((topic, number), committed=committed, version=end)
        for version in VERSIONS:
            for verify in (False, True) if version > 3 else (False,):
                p.adds_partitions({topic: [number]}, version, verify_only=verify)
                p.adds_partitions({topic: [3 - number]}, version, verify_only=verify, does="wants another partition")
                p.adds_partitions({topic: [number]}, version, verify_only=verify, producer_epoch=p.epoch - 1)
                p.adds_partitions({topic: [number]}, version, verify_only=verify, producer_id=MADE_UP_ID)


@story(sections=["transactions"])
def topics_that_vanish_from_a_transaction(s: Story) -> None:
    """A topic is deleted while it is part of a transaction, and created again: the transaction ends nevertheless, and the
    new topic gets the marker of the old one."""
    stage = Stagehand(s)
    gone, anew, kept = stage.topic("gone"), stage.topic("anew"), stage.topic("kept")
    watcher = TransactionsWatcher(s, "watcher")
    p = Producer(s, "p")
    p.init()
    p.produces({(gone, 0): [b"a"], (anew, 0): [b"b"], (kept, 0): [b"c"]})
    stage.deletes(gone)
    stage.deletes(anew)
    stage.topic("anew")
    watcher.describes_transactions(f"{s.name}-p")
    p.adds_partitions({gone: [0]}, does="adds what is gone")
    p.adds_partitions({gone: [0], kept: [0]}, 5, verify_only=True, does="verifies what is gone")
    p.commits()
    watcher.describes_transactions(f"{s.name}-p")
    watcher.describes_producers({anew: [0], kept: [0]})


@story(sections=["transactions"])
def internal_topics_in_a_transaction(s: Story) -> None:
    """Producers may not add partitions of internal topics by name, and brokers may; offsets are added with their group."""
    topic = Stagehand(s).topic("orders")
    watcher = TransactionsWatcher(s, "watcher")
    p = Producer(s, "p")
    p.init()
    for version in VERSIONS:
        p.adds_partitions({"__consumer_offsets": [3]}, version, verify_only=version > 3)
        p.adds_partitions({"__consumer_offsets": [50]}, version, verify_only=version > 3)
        p.adds_partitions({"__transaction_state": [3], topic: [0]}, version, verify_only=version > 3)
        p.adds_partitions({"__consumer_offsets": [3], topic: [1]}, version, verify_only=version > 3)
    p.adds_partitions({"__consumer_offsets": [3]}, 5)
    p.adds_offsets(f"{s.name}-group")
    watcher.describes_transactions(f"{s.name}-p")
    p.commits()
    watcher.describes_transactions(f"{s.name}-p")


@story(sections=["transactions"])
def no_transactions_at_all(s: Story) -> None:
    """A request of the later versions without any transaction never gets a response."""
    p = Producer(s, "p")
    p.init()
    for version in (4, 5):
        pending = p.adds_partitions_of([], version, does="adds nothing to nothing")
        p.stays_unanswered(1_000, pending)
    p.init(does="is answered on another connection")

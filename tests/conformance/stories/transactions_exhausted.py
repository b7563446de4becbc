"""Producers whose epoch is at its maximum: they get another producer id (KIP-360, KIP-890)."""

from typing import Any

from groupcoord.protocol.messages import InitProducerIdRequest
from tests.conformance.actors import Stagehand
from tests.conformance.producers import Producer, TransactionsWatcher
from tests.conformance.story import Story, story
from tests.conformance.transaction_log import show_what_is_logged

LAST_EPOCH = 32_766
"""The last that a producer gets: Short.MAX_VALUE is kept for fencing it."""

AT_ONCE = 500
"""So many requests wait at a server, which takes one after the other."""


def until_exhausted(p: Producer) -> None:
    """``p`` starts, and quietly starts again until it has the last epoch but one."""
    p.init()
    again = InitProducerIdRequest(transactional_id=p.transactional_id, transaction_timeout_ms=p.timeout_ms)
    while (left := LAST_EPOCH - 1 - p.epoch) > 0:
        # An answer without an epoch, which is -1, does not lead too far.
        p.epoch = p.stage.ask(again, times=1 if p.epoch < 0 else min(left // 2 + 1, AT_ONCE)).producer_epoch
    p.story.end()


@story(sections=["transactions"])
def the_last_epoch(s: Story) -> None:
    """A producer that continues at the last epoch gets another producer id and epoch 0, and the same again if the response
    was lost."""
    p = Producer(s, "p")
    until_exhausted(p)
    p.init(does="starts for the last time")
    old = p.producer_id
    p.goes_on()
    p.goes_on(
        producer_id=old, producer_epoch=LAST_EPOCH, does="goes on with the old id, as if the answer had been lost"
    )
    p.goes_on(producer_id=old, producer_epoch=LAST_EPOCH - 1, does="goes on with the old id and an older epoch")
    p.goes_on()
    p.goes_on(producer_id=old, producer_epoch=LAST_EPOCH, does="goes on with the old id once more")
    TransactionsWatcher(s, "watcher").describes_transactions(f"{s.name}-p")
    show_what_is_logged(s, f"{s.name}-p", last=6)


@story(sections=["transactions"])
def a_commit_in_the_last_epoch(s: Story) -> None:
    """The response to the commit has another producer id; the marker has the old one, and an epoch that no producer
    gets."""
    topic = Stagehand(s).topic("orders")
    watcher = TransactionsWatcher(s, "watcher")
    p = Producer(s, "p")
    until_exhausted(p)
    p.produces({(topic, 0): [b"a"]})
    p.commits()
    old = p.producer_id
    p.produces({(topic, 0): [b"b"]})
    p.commits(does="commits in the last epoch")
    watcher.describes_transactions(f"{s.name}-p")
    watcher.describes_producers({topic: [0]})
    as_before: dict[str, Any] = {"producer_id": old, "producer_epoch": LAST_EPOCH}
    p.commits(does="commits again, as if the answer had been lost", **as_before)
    p.aborts(does="aborts with the old id", **as_before)
    p.commits(4, does="commits with the old id, as an old client", **as_before)
    p.commits(producer_id=old, producer_epoch=LAST_EPOCH + 1, does="commits with the old id and the marker's epoch")
    p.adds_partitions({topic: [0]}, **as_before)
    p.goes_on(**as_before)
    p.produces({(topic, 0): [b"c"]})
    p.commits()
    watcher.describes_producers({topic: [0]})
    show_what_is_logged(s, f"{s.name}-p", last=11)


@story(sections=["transactions"])
def a_start_in_the_last_epoch(s: Story) -> None:
    """InitProducerId with an open transaction aborts it, which already assigns another producer id."""
    topic = Stagehand(s).topic("orders")
    watcher = TransactionsWatcher(s, "watcher")
    p = Producer(s, "p")
    until_exhausted(p)
    p.init(does="starts for the last time")
    old = p.producer_id
    p.produces({(topic, 0): [b"a"]})
    p.init(does="starts again")
    watcher.describes_transactions(f"{s.name}-p")
    watcher.describes_producers({topic: [0]})
    p.goes_on(producer_id=old, producer_epoch=LAST_EPOCH, does="goes on with the old id")
    p.init(does="starts again")
    show_what_is_logged(s, f"{s.name}-p", last=6)


@story(sections=["transactions"])
def old_clients_in_the_last_epoch(s: Story) -> None:
    """Clients without KIP-890 commit and abort in the last epoch any number of times; an abort of nothing with KIP-890
    assigns another id."""
    topic = Stagehand(s).topic("orders")
    watcher = TransactionsWatcher(s, "watcher")
    p = Producer(s, "p")
    until_exhausted(p)
    p.init(does="starts for the last time")
    for committed in (True, False):
        p.adds_partitions({topic: [0]})
        p.produces({(topic, 0): [b"a"]}, 11)
        p.ends(committed=committed, version=4)
        watcher.describes_transactions(f"{s.name}-p")
    p.commits(5)
    p.aborts(5)
    watcher.describes_transactions(f"{s.name}-p")
    p.produces({(topic, 0): [b"b"]})
    p.commits()
    watcher.describes_producers({topic: [0]})
    show_what_is_logged(s, f"{s.name}-p", last=12)

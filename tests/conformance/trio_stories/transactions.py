"""What transactional producers and their readers are answered while the broker of their coordinator, or the leader of a
partition that they write to, stops, dies and is paused."""

from typing import Any

from groupcoord.protocol.apis.find_coordinator import TRANSACTION
from groupcoord.protocol.apis.incremental_alter_configs import AlterableConfig, AlterConfigsResource
from groupcoord.protocol.messages import (
    DescribeTransactionsRequest,
    EndTxnRequest,
    FindCoordinatorRequest,
    IncrementalAlterConfigsRequest,
    InitProducerIdRequest,
    ListTransactionsRequest,
    ProduceRequest,
)
from tests.conformance.trio_requests import LATEST, fetch, offset_at, produce
from tests.conformance.trio_story import CLOSED, SESSION_S, Topics, TrioStory

LOG = "__transaction_state"
TOPICS: Topics = {
    "a": (((2, 1),), {}),
    "b": (((3, 1),), {}),
    LOG: (((1, 2),), {"cleanup.policy": "compact"}),
}
ID = "trio-payments"
TRANSACTIONAL = 0x10
READ_COMMITTED, TOPIC = 1, 2


class Payments:
    """A producer with the transactional id, and what it remembers."""

    def __init__(self, story: TrioStory) -> None:
        self._story = story
        self.producer_id, self.epoch = -1, -1
        self._sequences: dict[str, int] = {}

    def init(self, what: str, broker_id: int, **options: Any) -> None:
        request = InitProducerIdRequest(transactional_id=ID, transaction_timeout_ms=600_000)
        self._remember(self._story.asks(what, broker_id, request, 5, **options))

    def _remember(self, answer: Any) -> None:
        if answer is not None and answer.error_code == 0 and answer.producer_id >= 0:
            if (self.producer_id, self.epoch) != (answer.producer_id, answer.producer_epoch):
                self._sequences = {}
            self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch

    def writes(self, what: str, broker_id: int, topic: str, value: str, **options: Any) -> None:
        """A record of the transaction, to the partition of ``topic``."""
        answer = self._story.asks(what, broker_id, self.record(topic, value), 12, **options)
        if answer is not None and answer.responses[0].partition_responses[0].error_code == 0:
            self._sequences[topic] = self._sequences.get(topic, 0) + 1

    def record(self, topic: str, value: str) -> ProduceRequest:
        return produce(
            topic,
            0,
            value,
            transactional_id=ID,
            attributes=TRANSACTIONAL,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            base_sequence=self._sequences.get(topic, 0),
        )

    def end(self, *, commit: bool = True) -> EndTxnRequest:
        return EndTxnRequest(
            transactional_id=ID, producer_id=self.producer_id, producer_epoch=self.epoch, committed=commit
        )

    def ends(self, what: str, broker_id: int, *, commit: bool = True, **options: Any) -> None:
        self._remember(self._story.asks(what, broker_id, self.end(commit=commit), 5, **options))

    def describe(self, what: str, broker_id: int, **options: Any) -> None:
        request = DescribeTransactionsRequest(transactional_ids=(ID,))
        self._story.asks(f"{what}: DescribeTransactions", broker_id, request, 0, **options)

    def ends_of(self, what: str, broker_id: int, topic: str, **options: Any) -> None:
        """Where a topic ends for readers of what is committed, and for others."""
        for name, isolation in (("committed", READ_COMMITTED), ("everything", 0)):
            request = offset_at(topic, 0, LATEST, isolation=isolation)
            self._story.asks(f"{what}: the end of {topic}, {name}", broker_id, request, 10, **options)


def coordinator() -> FindCoordinatorRequest:
    return FindCoordinatorRequest(key_type=TRANSACTION, coordinator_keys=(ID,))


def tell(story: TrioStory) -> None:
    """The coordinator stops within a transaction; the leader of a partition is killed within one; the coordinator is killed,
    then paused."""
    payments = Payments(story)
    story.asks("FindCoordinator", 2, coordinator(), 6, settles=True)
    payments.init("InitProducerId", 1, settles=True)
    payments.init("InitProducerId at another broker", 2)
    payments.writes("write to a", 2, "a", "one", settles=True)
    payments.writes("write to b", 3, "b", "one")
    payments.describe("a transaction is open", 1)
    payments.describe("at another broker", 3)
    payments.ends_of("open", 2, "a")

    story.act("stop", 1)
    story.partitions("1 has stopped", 2, *TOPICS)
    story.asks("FindCoordinator", 3, coordinator(), 6, settles=True)
    payments.describe("at the next coordinator", 2, settles=True)
    payments.writes("write to a again", 2, "a", "two")
    payments.ends("EndTxn at another broker", 3)
    payments.ends("EndTxn at the next coordinator", 2)
    payments.describe("committed", 2, settles=True)
    payments.ends_of("committed", 2, "a", settles=True)
    story.asks("ListTransactions", 2, ListTransactionsRequest(), 2)
    story.asks("ListTransactions at another broker", 3, ListTransactionsRequest(), 2)
    story.act("start", 1)
    story.partitions("1 is back", 2, *TOPICS)

    _a_leader_is_killed(story, payments)
    _the_coordinator_is_killed(story, payments)
    _the_coordinator_is_paused(story, payments)
    _replicas_are_missing(story, payments)


def _a_leader_is_killed(story: TrioStory, payments: Payments) -> None:
    payments.writes("write to a", 2, "a", "three")
    payments.writes("write to b", 3, "b", "three")
    story.act("kill", 3)
    payments.ends("the leader of b is killed: EndTxn", 2)
    payments.describe("b has no marker yet", 2, settles=True)
    payments.ends_of("a has its marker", 2, "a", settles=True)
    payments.init("InitProducerId while markers are missing", 2)
    early = story.sends(2, payments.record("a", "early"), 12)
    story.passes(1)
    early.is_answered("write while markers are missing")
    story.passes(SESSION_S)
    story.partitions("3 is fenced", 2, *TOPICS)
    payments.describe("b has another leader", 2, settles=True)
    payments.ends_of("b has its marker", 1, "b", settles=True)
    story.asks("what is committed in b", 1, fetch("b", 0, 0, isolation=READ_COMMITTED), 12)
    story.act("start", 3)
    story.partitions("3 is back", 1, *TOPICS)


def _the_coordinator_is_killed(story: TrioStory, payments: Payments) -> None:
    payments.writes("write to b", 1, "b", "four", settles=True)
    story.act("kill", 2)
    payments.ends("the coordinator is killed: EndTxn", 2)
    payments.ends("the coordinator is killed: EndTxn at another broker", 3)
    story.asks("the coordinator is killed: FindCoordinator", 3, coordinator(), 6)
    story.passes(SESSION_S)
    story.partitions("2 is fenced", 3, *TOPICS)
    story.asks("FindCoordinator", 3, coordinator(), 6, settles=True)
    payments.describe("at the third coordinator", 1, settles=True)
    payments.writes("write to b at its leader", 1, "b", "five", settles=True)
    payments.ends("EndTxn aborts", 1, commit=False)
    payments.describe("aborted", 1, settles=True)
    payments.ends_of("aborted", 1, "b", settles=True)
    story.asks("what is committed in b", 1, fetch("b", 0, 4, isolation=READ_COMMITTED), 12)
    story.act("start", 2)
    story.partitions("2 is back", 3, *TOPICS)


def _the_coordinator_is_paused(story: TrioStory, payments: Payments) -> None:
    payments.writes("write to b", 1, "b", "six")
    story.act("pause", 1)
    asked = story.sends(1, payments.end(), 5)
    asked.waits("the coordinator is paused: EndTxn")
    story.passes(SESSION_S)
    story.partitions("1 is fenced", 3, *TOPICS)
    payments.describe("at the fourth coordinator", 2, settles=True)
    payments.ends("EndTxn at the fourth coordinator", 2)
    payments.describe("committed", 2, settles=True)
    story.act("resume", 1)
    allowed = ("NOT_COORDINATOR", "COORDINATOR_NOT_AVAILABLE", CLOSED)
    asked.is_answered("it goes on: EndTxn", allowed=allowed)
    story.partitions("1 is back", 3, *TOPICS)
    payments.describe("at the one that was paused", 1, settles=True)
    payments.ends_of("in the end", 3, "b", settles=True)


def _replicas_are_missing(story: TrioStory, payments: Payments) -> None:
    both = AlterableConfig(name="min.insync.replicas", config_operation=0, value="2")
    resource = AlterConfigsResource(resource_type=TOPIC, resource_name=LOG, configs=(both,))
    story.asks("both replicas are to have it", 2, IncrementalAlterConfigsRequest(resources=(resource,)), 1)
    story.act("stop", 1)
    story.partitions("1 has stopped", 2, *TOPICS)
    payments.init("InitProducerId with too few in sync", 2, settles=True)
    payments.writes("write with too few in sync of the coordinator", 2, "a", "seven", settles=True)
    story.act("start", 1)
    story.partitions("1 is back", 2, *TOPICS)
    payments.init("InitProducerId with enough in sync", 2)
    payments.describe("in the end", 2)

"""Producers with a transactional id (KIP-98): they remember id, epoch and sequences; every request can be told otherwise."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from groupcoord.protocol.apis.add_partitions_to_txn import AddPartitionsToTxnTopic, AddPartitionsToTxnTransaction
from groupcoord.protocol.apis.describe_producers import TopicRequest
from groupcoord.protocol.apis.txn_offset_commit import TxnOffsetCommitRequestPartition, TxnOffsetCommitRequestTopic
from groupcoord.protocol.messages import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    DescribeProducersRequest,
    DescribeTransactionsRequest,
    EndTxnRequest,
    FindCoordinatorRequest,
    InitProducerIdRequest,
    ListTransactionsRequest,
    TxnOffsetCommitRequest,
)
from tests.conformance.actors import Client, Stagehand
from tests.conformance.admin import Admin
from tests.conformance.batches import Rec, batch
from tests.conformance.codec import Answer
from tests.conformance.data import produce_request
from tests.conformance.members import Commits, commit_topics
from tests.conformance.story import Story

CONCURRENT_TRANSACTIONS = 51
TRANSACTIONAL = 0x10
"""The bit in the attributes of a batch that says that it belongs to a transaction."""
MADE_UP_ID = 1 << 50
"""A producer id that no server hands out."""
PREPARING = {"PrepareCommit", "PrepareAbort", "PrepareEpochFence"}

Partitions = Mapping[str, Sequence[int]]
"""Partitions by the name of their topic."""


@dataclass(eq=False)
class Producer(Client):
    """A producer. Its transactional id is the story's name and its own unless told; None is one that is only idempotent.

    What it says of itself (``transactional_id``, ``producer_id``, ``producer_epoch``) can be changed in each request.
    """

    transactional_id: str | None = ""
    timeout_ms: int = 60_000
    ids: Mapping[str, Any] = field(default_factory=dict)
    """The ids of topics by name, for Produce from version 13 on."""
    producer_id: int = -1
    epoch: int = -1
    sequences: dict[tuple[str, int], int] = field(default_factory=dict)
    """The next sequence number of each partition that it has written to with its epoch."""
    stage: Stagehand = field(init=False)

    def __post_init__(self) -> None:
        if self.client_id is None:
            self.client_id = self.name
        if self.transactional_id == "":
            self.transactional_id = f"{self.story.name}-{self.name}"
        self.stage = Stagehand(self.story)
        if self.transactional_id is not None:
            until_coordinated(self.story, self.stage, self.transactional_id)

    def init(
        self, version: int = 5, *, does: str = "asks for its producer id", waits: bool = True, **changes: Any
    ) -> Any:
        """InitProducerId as one that has just started. A transaction that this aborts is given the time to end."""
        request = InitProducerIdRequest(transactional_id=self.transactional_id, transaction_timeout_ms=self.timeout_ms)
        answer = self.asks(replace(request, **changes), version, does=does)
        if answer.error_code == CONCURRENT_TRANSACTIONS and waits:
            self.until_complete()
        return answer

    def goes_on(self, version: int = 5, *, does: str = "asks for the next epoch", **changes: Any) -> Any:
        """InitProducerId with the id and the epoch that it has (KIP-360)."""
        said = {"producer_id": self.producer_id, "producer_epoch": self.epoch, **changes}
        return self.init(version, does=does, **said)

    def adds_partitions(
        self, partitions: Partitions, version: int = 3, *, does: str = "", verify_only: bool = False, **changes: Any
    ) -> Any:
        """AddPartitionsToTxn; from version 4 on as brokers send it, for one transaction."""
        added = self.transaction(partitions, verify_only=verify_only, **changes)
        does = does or ("verifies partitions" if verify_only else "adds partitions")
        return self.adds_partitions_of([added], version, does=does)

    def transaction(
        self, partitions: Partitions, *, verify_only: bool = False, **changes: Any
    ) -> AddPartitionsToTxnTransaction:
        """Its own transaction with ``partitions``, as AddPartitionsToTxn says it."""
        topics = tuple(
            AddPartitionsToTxnTopic(name=topic, partitions=tuple(indexes)) for topic, indexes in partitions.items()
        )
        said = AddPartitionsToTxnTransaction(verify_only=verify_only, topics=topics, **self._itself())
        return replace(said, **changes)

    def adds_partitions_of(
        self, transactions: Sequence[AddPartitionsToTxnTransaction], version: int = 5, *, does: str = "adds partitions"
    ) -> Any:
        """AddPartitionsToTxn for any number of transactions; up to version 3 there can only be one, for none it is parked."""
        if not transactions:
            return self.parks(AddPartitionsToTxnRequest(), version, does=does)
        if version > 3:
            return self.asks(AddPartitionsToTxnRequest(transactions=tuple(transactions)), version, does=does)
        (only,) = transactions
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=only.transactional_id,
            v3_and_below_producer_id=only.producer_id,
            v3_and_below_producer_epoch=only.producer_epoch,
            v3_and_below_topics=only.topics,
        )
        return self.asks(request, version, does=does)

    def adds_offsets(self, group_id: str, version: int = 4, *, does: str = "adds offsets", **changes: Any) -> Any:
        """AddOffsetsToTxn."""
        request = AddOffsetsToTxnRequest(group_id=group_id, **self._itself())
        return self.asks(replace(request, **changes), version, does=does)

    def produces(
        self,
        values: Mapping[tuple[str, int], Sequence[bytes]],
        version: int = 12,
        *,
        does: str = "produces",
        acks: int = -1,
        attributes: int = TRANSACTIONAL,
        sequence: int | None = None,
        **changes: Any,
    ) -> Any:
        """Produce one batch per partition, with the sequence that is next; up to version 11 the partitions must be added.

        The records carry the time of the last step: a batch from long ago beside a marker of now would be a new segment.
        """
        said = {**self._itself(), **changes}
        if not attributes & TRANSACTIONAL and "transactional_id" not in changes:
            said["transactional_id"] = None
        at_ms = self.story.names.step_starts_ms[-1] if self.story.names.step_starts_ms else self.story.target.now_ms()
        batches = {
            where: batch(
                [Rec(value, timestamp_ms=at_ms) for value in items],
                producer=(
                    said["producer_id"],
                    said["producer_epoch"],
                    self.sequences.get(where, 0) if sequence is None else sequence,
                ),
                attributes=attributes,
            )
            for where, items in values.items()
        }
        request = replace(produce_request(batches, self.ids, acks), transactional_id=said["transactional_id"])
        answer = self.asks(request, version, does=does)
        names = {topic_id: name for name, topic_id in self.ids.items()}
        for topic in answer.responses:
            for partition in topic.partition_responses:
                where = topic.name if version < 13 else names.get(topic.topic_id, ""), partition.index
                if partition.error_code == 0 and sequence is None and not changes:
                    self.sequences[where] = self.sequences.get(where, 0) + len(values[where])
        return answer

    def commits_offsets(
        self, group_id: str, commits: Commits, version: int = 5, *, does: str = "commits offsets", **changes: Any
    ) -> Any:
        """TxnOffsetCommit; up to version 4 the offsets must have been added."""
        topics = tuple(
            TxnOffsetCommitRequestTopic(
                name=topic.name,
                partitions=tuple(
                    TxnOffsetCommitRequestPartition(
                        partition_index=each.partition_index,
                        committed_offset=each.committed_offset,
                        committed_leader_epoch=each.committed_leader_epoch,
                        committed_metadata=each.committed_metadata,
                    )
                    for each in topic.partitions
                ),
            )
            for topic in commit_topics(commits)
        )
        request = TxnOffsetCommitRequest(group_id=group_id, topics=topics, **self._itself())
        return self.asks(replace(request, **changes), version, does=does)

    def ends(self, *, committed: bool, version: int = 5, does: str = "", waits: bool = True, **changes: Any) -> Any:
        """EndTxn; what comes next finds the transaction complete, unless it ``waits`` no longer than for the answer."""
        request = EndTxnRequest(committed=committed, **self._itself())
        does = does or ("commits" if committed else "aborts")
        answer = self.asks(replace(request, **changes), version, does=does)
        if waits:
            self.until_complete()
        return answer

    def commits(self, version: int = 5, **given: Any) -> Any:
        """EndTxn that commits."""
        return self.ends(committed=True, version=version, **given)

    def aborts(self, version: int = 5, **given: Any) -> Any:
        """EndTxn that aborts."""
        return self.ends(committed=False, version=version, **given)

    def ends_in_vain(self, where: tuple[str, int], *, committed: bool, version: int = 5) -> None:
        """Adds a partition and ends the transaction, which cannot complete: it stays in PrepareCommit or PrepareAbort.

        A batch outside of the transaction has taken the partition to a higher epoch than that of the marker, which is
        therefore refused, and the coordinator gives up.
        """
        self.adds_partitions({where[0]: [where[1]]})
        self.produces(
            {where: [b"later"]},
            does="produces outside of the transaction, with a later epoch",
            attributes=0,
            sequence=0,
            producer_epoch=self.epoch + 100,
        )
        self.ends(committed=committed, version=version, waits=False)

    def until_complete(self) -> None:
        """Wait quietly until its transaction is not being ended: until all markers are written and that is known."""
        if self.transactional_id is not None:
            until_complete(self.story, self.stage, self.transactional_id)

    def learns(self, answer: Answer) -> Any:
        """Keep id and epoch of an InitProducerId or EndTxn without an error; a new epoch starts with sequence 0."""
        message = answer.message
        epoch = getattr(message, "producer_epoch", -1)
        if getattr(message, "error_code", -1) == 0 and epoch >= 0:
            if (message.producer_id, epoch) != (self.producer_id, self.epoch):
                self.sequences.clear()
            self.producer_id, self.epoch = message.producer_id, epoch
        return message

    def _itself(self) -> dict[str, Any]:
        return {
            "transactional_id": self.transactional_id or "",
            "producer_id": self.producer_id,
            "producer_epoch": self.epoch,
        }


def in_every_version(
    p: Producer, where: tuple[str, int], group_id: str, *, starts: bool = True, waits: bool = True, **changes: Any
) -> None:
    """``p`` says everything that a producer can say, in every version, with ``changes``; it goes on only if it ``starts``."""
    topic, partition = where
    as_it_was = p.producer_id, p.epoch
    for version in (3, 4, 5) if starts else ():
        said = {name: value for name, value in changes.items() if name != "transactional_id"}
        p.goes_on(version, waits=waits, **said)
    for version in range(6):
        p.adds_partitions({topic: [partition]}, version, **changes)
    for version in (4, 5):
        p.adds_partitions({topic: [partition]}, version, verify_only=True, **changes)
    for version in range(5):
        p.adds_offsets(group_id, version, **changes)
    for version in range(3, 13):
        p.produces({where: [b"refused"]}, version, sequence=p.sequences.get(where, 0), **changes)
    for version in range(6):
        p.commits_offsets(group_id, {where: 7}, version, **changes)
    for version in range(6):
        p.ends(committed=True, version=version, waits=waits, **changes)
        p.ends(committed=False, version=version, waits=waits, **changes)
    p.producer_id, p.epoch = as_it_was


@dataclass(eq=False)
class TransactionsWatcher(Admin):
    """An admin client that looks at transactions and producers (KIP-664)."""

    def describes_transactions(self, *transactional_ids: str) -> Any:
        """DescribeTransactions."""
        request = DescribeTransactionsRequest(transactional_ids=transactional_ids)
        return self.asks(request, does="describes transactions")

    def lists_transactions(
        self,
        version: int = 2,
        *,
        states: Sequence[str] = (),
        producer_ids: Sequence[int] = (),
        does: str = "lists transactions",
        **filters: Any,
    ) -> Any:
        """ListTransactions; those of other stories are not shown."""
        request = ListTransactionsRequest(
            state_filters=tuple(states), producer_id_filters=tuple(producer_ids), **filters
        )
        return self.asks(request, version, does=does)

    def describes_producers(self, partitions: Partitions) -> Any:
        """DescribeProducers."""
        topics = tuple(
            TopicRequest(name=topic, partition_indexes=tuple(indexes)) for topic, indexes in partitions.items()
        )
        return self.asks(DescribeProducersRequest(topics=topics), does="describes producers")

    def finds_transactional(self, *keys: str, version: int = 6) -> Any:
        """FindCoordinator for transactional ids."""
        return self.finds(*keys, version=version, key_type=1)


def until_coordinated(s: Story, stage: Stagehand, transactional_id: str) -> None:
    """Wait until the coordinator of a transactional id is there: its topic is made when it is first asked for."""
    asking = FindCoordinatorRequest(key_type=1, coordinator_keys=(transactional_id,))

    def is_there() -> bool:
        found = stage.ask(asking).coordinators[0]
        return found.error_code == 0 and described(stage, transactional_id).error_code not in {14, 15, 16}

    s.until(is_there, f"{transactional_id} has a coordinator")


def described(stage: Stagehand, transactional_id: str) -> Any:
    """What is known of a transactional id, quietly."""
    return stage.ask(DescribeTransactionsRequest(transactional_ids=(transactional_id,))).transaction_states[0]


def until_complete(s: Story, stage: Stagehand, transactional_id: str, *, state: str | None = None) -> None:
    """Wait quietly until a transaction is not being ended, or until it is in ``state``. Raises StoryBroken."""

    def is_so() -> bool:
        found = described(stage, transactional_id).transaction_state
        return found not in PREPARING if state is None else bool(found == state)

    s.until(is_so, f"{transactional_id} is {state or 'complete'}")
    s.end()  # what the server wrote meanwhile belongs to the step that was the last

"""The books of producers in exactly-once loops: each transaction writes to several partitions and commits its group's offset.

Input is numbered 0, 1, 2 …; a transaction takes the next few numbers, writes each into the output, and commits how far it has
come. Whatever happens to the server, the output that readers of committed records see holds each number below the group's
offset once. Of what was acknowledged as committed it holds everything; of any other transaction nothing, or all of it if its
commit was asked for and never answered.
"""

import enum
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

from groupcoord.client.completed_fetch import ConsumerRecord, decode_records
from groupcoord.protocol.apis.add_partitions_to_txn import AddPartitionsToTxnTopic
from groupcoord.protocol.apis.list_offsets import ListOffsetsPartition, ListOffsetsTopic
from groupcoord.protocol.apis.offset_fetch import OffsetFetchRequestGroup, OffsetFetchRequestTopics
from groupcoord.protocol.apis.txn_offset_commit import TxnOffsetCommitRequestPartition, TxnOffsetCommitRequestTopic
from groupcoord.protocol.batches.record_batch import TRANSACTIONAL
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    DescribeTransactionsRequest,
    EndTxnRequest,
    InitProducerIdRequest,
    ListOffsetsRequest,
    OffsetFetchRequest,
    TxnOffsetCommitRequest,
)
from tests.conformance.batches import Rec, batch
from tests.reliability.load import Ask, Asking
from tests.reliability.requests import fetch, fetched, produce, stored

INPUT, OUTPUT = "input", "output"
OUTPUT_PARTITIONS = 3
PATIENCE_SECONDS = 30.0
TIMEOUT_MS = 600_000
SHORT_TIMEOUT_MS = 30
"""Of those who never end what they have begun."""

_TRY_AGAIN = frozenset({ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS})
_TIMED_OUT = frozenset({ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_TXN_STATE})
_PREPARED = ("PrepareCommit", "PrepareAbort")
_COMMITTED_ONLY = 1


class Step(enum.StrEnum):
    """What a producer does in a transaction; "add" is done by old clients alone."""

    INITIALISE = "initialise"
    ADD_PARTITIONS = "add partitions"
    PRODUCE = "produce"
    ADD_OFFSETS = "add offsets"
    COMMIT_OFFSETS = "commit offsets"
    COMMIT = "commit"
    ABORT = "abort"


class Point(NamedTuple):
    """A moment in a transaction: the requests of a step are sent, or ``answered`` and nothing more is sent."""

    step: Step
    answered: bool

    def __str__(self) -> str:
        return f"{self.step} {'answered' if self.answered else 'sent'}"


_OLD = (Step.ADD_PARTITIONS, Step.ADD_OFFSETS)
POINTS = {
    is_old: tuple(Point(step, answered) for step in Step if is_old or step not in _OLD for answered in (False, True))
    for is_old in (False, True)
}
"""All there are for clients that know KIP-890, and for old ones."""


class Fate(enum.Enum):
    """What is known of a transaction."""

    OPEN = enum.auto()
    COMMITTING = enum.auto()
    COMMITTED = enum.auto()
    ABORTED = enum.auto()


@dataclass
class Attempt:
    """A transaction: it takes ``count`` inputs from ``first`` on."""

    number: int
    first: int
    count: int
    fate: Fate = Fate.OPEN


class Asker(Protocol):
    """Somebody who can be asked: a Talk, or a server in this process."""

    def ask(self, request: Any, version: int | None = None) -> Any:
        """The answer to ``request``."""


class _Wanted(NamedTuple):
    """A request with its version, the errors in its answer, and what is done with it if there are none."""

    request: Any
    version: int
    errors: Callable[[Any], set[int]]
    then: Callable[[Any], None] = lambda _: None


class Refused(AssertionError):
    """A request was answered with an error that nothing explains."""


class ExactlyOnce:
    """One producer with its group. ``is_old``: it does not know KIP-890. ``abandons``: none of its transactions is ended."""

    def __init__(self, name: str, *, is_old: bool = False, abandons: bool = False) -> None:
        self.name, self.is_old, self.abandons = name, is_old, abandons
        self.group = f"{name}-group"
        self.attempts: list[Attempt] = []
        self.stop: Point | None = None
        """Where it is to stop in this life; it commits or aborts as that says."""
        self.passes = 0
        """So many transactions it has before that."""
        self.has_stopped = False
        self.resumes = False
        """Does it go on, over a restart, with the transaction that is open? Otherwise a successor takes over."""
        self._producer = (-1, -1)
        self._epochs: set[tuple[int, int]] = set()
        self._position = 0
        self._sequences: Counter[int] = Counter()
        self._left: list[tuple[Step, list[_Wanted]]] = []
        self._is_out = False
        self._is_initialising = False

    @property
    def can_resume(self) -> bool:
        """Is it known which epoch it has?"""
        return self._producer[0] >= 0 and not self._is_initialising and not self.abandons

    @property
    def is_inside(self) -> bool:
        """Is a transaction of its own open, as far as it knows?"""
        return bool(self.attempts) and self.attempts[-1].fate in (Fate.OPEN, Fate.COMMITTING)

    # --- asking

    def live(self, chance: random.Random) -> Asking:
        """What it asks in one life of the server."""
        self.has_stopped = False
        if self._producer[0] < 0 or self._stops_at(Step.INITIALISE) or (not self.resumes and chance.random() < 0.2):
            self._left.clear()
            self._abort_open()
            yield from self._take(Step.INITIALISE, [self._initialise()])
        while not self.has_stopped:
            if not self._left:
                self.passes -= 1
                self._begin(chance)
            while self._left and not self.has_stopped and not self._is_out:
                step, wanted = self._left[0]
                yield from self._take(step, wanted)
                if not self.has_stopped:
                    del self._left[0]
            if self.abandons and not self.has_stopped:
                yield from self._wait_for_the_timeout()

    def _stops_at(self, *steps: Step) -> bool:
        return self.stop is not None and self.stop.step in steps and self.passes <= 0

    def _is_at(self, step: Step, *, answered: bool) -> bool:
        return self.stop == Point(step, answered) and self.passes <= 0

    def _take(self, step: Step, wanted: Sequence[_Wanted]) -> Asking:
        """Ask until each is answered well, unless it is to stop before."""
        left = list(wanted)
        while left and not self._is_out:
            asked, again = left, list[_Wanted]()
            if self._is_at(step, answered=False):
                self.has_stopped = True
            yield [Ask(each.request, self._answered(step, each, again), each.version) for each in asked]
            left = again
            if self.has_stopped:
                return
        if self._is_at(step, answered=True):
            self.has_stopped = True

    def _answered(self, step: Step, wanted: _Wanted, again: list[_Wanted]) -> Callable[[Any], None]:
        def then(answer: Any) -> None:
            errors = wanted.errors(answer) - {0}
            if not errors:
                wanted.then(answer)
            elif errors <= _TRY_AGAIN:
                again.append(wanted)
            elif self.abandons and errors <= _TIMED_OUT:
                self._is_out = True
            else:
                raise Refused(f"{self.name}: {step} is answered with {[ErrorCode(each).name for each in errors]}")

        return then

    def _begin(self, chance: random.Random) -> None:
        """Decide what the next transaction does."""
        self._is_out = False
        attempt = Attempt(len(self.attempts), self._position, chance.randint(2, 5))
        self.attempts.append(attempt)
        inputs = range(attempt.first, attempt.first + attempt.count)
        partitions = chance.sample(range(OUTPUT_PARTITIONS), 2)
        shares = {partition: inputs[index::2] for index, partition in enumerate(partitions)}
        padding = chance.choice((0, 0, 200))
        commits = chance.random() < 0.65
        if self._stops_at(Step.COMMIT, Step.ABORT):
            commits = self._stops_at(Step.COMMIT)
        self._left = [(Step.PRODUCE, [self._write(attempt, *share, padding) for share in shares.items()])]
        if self.is_old:
            self._left.insert(0, (Step.ADD_PARTITIONS, [self._add_partitions(partitions)]))
            self._left.append((Step.ADD_OFFSETS, [self._add_offsets()]))
        self._left.append((Step.COMMIT_OFFSETS, [self._commit_offsets(attempt)]))
        if not self.abandons:
            how, fate = (Step.COMMIT, Fate.COMMITTED) if commits else (Step.ABORT, Fate.ABORTED)
            self._left.append((how, [self._end(attempt, fate)]))

    def _initialise(self) -> _Wanted:
        timeout_ms = SHORT_TIMEOUT_MS if self.abandons else TIMEOUT_MS
        request = InitProducerIdRequest(transactional_id=self.name, transaction_timeout_ms=timeout_ms)

        self._is_initialising = True

        def answered(answer: Any) -> None:
            self._is_initialising = False
            self._goes_on_as(answer)

        return _Wanted(request, 4, lambda answer: {answer.error_code}, answered)

    def _goes_on_as(self, answer: Any) -> None:
        producer = answer.producer_id, answer.producer_epoch
        if producer in self._epochs:
            raise Refused(f"{self.name}: producer {producer} is handed out twice")
        self._epochs.add(producer)
        self._producer = producer
        self._sequences.clear()

    def _add_partitions(self, partitions: Sequence[int]) -> _Wanted:
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.name,
            v3_and_below_producer_id=self._producer[0],
            v3_and_below_producer_epoch=self._producer[1],
            v3_and_below_topics=(AddPartitionsToTxnTopic(name=OUTPUT, partitions=tuple(partitions)),),
        )

        def errors(answer: Any) -> set[int]:
            return {
                partition.partition_error_code
                for topic in answer.results_by_topic_v3_and_below
                for partition in topic.results_by_partition
            }

        return _Wanted(request, 3, errors)

    def _write(self, attempt: Attempt, partition: int, inputs: Sequence[int], padding: int) -> _Wanted:
        key = self.name.encode()
        records = [Rec(b"%d %d %s" % (attempt.number, number, b"." * padding), key) for number in inputs]
        data = batch(records, attributes=TRANSACTIONAL, producer=(*self._producer, self._sequences[partition]))
        self._sequences[partition] += len(records)
        request = replace(produce(OUTPUT, {partition: data}), transactional_id=self.name)
        return _Wanted(request, 11 if self.is_old else 12, lambda answer: {stored(answer).error_code})

    def _add_offsets(self) -> _Wanted:
        producer_id, epoch = self._producer
        request = AddOffsetsToTxnRequest(
            transactional_id=self.name, producer_id=producer_id, producer_epoch=epoch, group_id=self.group
        )
        return _Wanted(request, 3, lambda answer: {answer.error_code})

    def _commit_offsets(self, attempt: Attempt) -> _Wanted:
        producer_id, epoch = self._producer
        end = attempt.first + attempt.count
        partition = TxnOffsetCommitRequestPartition(
            partition_index=0, committed_offset=end, committed_metadata=str(attempt.number)
        )
        request = TxnOffsetCommitRequest(
            transactional_id=self.name,
            group_id=self.group,
            producer_id=producer_id,
            producer_epoch=epoch,
            topics=(TxnOffsetCommitRequestTopic(name=INPUT, partitions=(partition,)),),
        )

        def errors(answer: Any) -> set[int]:
            return {part.error_code for topic in answer.topics for part in topic.partitions}

        return _Wanted(request, 3 if self.is_old else 5, errors)

    def _end(self, attempt: Attempt, fate: Fate) -> _Wanted:
        producer_id, epoch = self._producer
        request = EndTxnRequest(
            transactional_id=self.name,
            producer_id=producer_id,
            producer_epoch=epoch,
            committed=fate is Fate.COMMITTED,
        )

        def answered(answer: Any) -> None:
            self._ended(attempt, fate)
            if not self.is_old and (answer.producer_id, answer.producer_epoch) != self._producer:
                self._goes_on_as(answer)

        return _Wanted(request, 4 if self.is_old else 5, lambda answer: {answer.error_code}, answered)

    def _ended(self, attempt: Attempt, fate: Fate) -> None:
        attempt.fate = fate
        if fate is Fate.COMMITTED:
            self._position = attempt.first + attempt.count

    def _abort_open(self) -> None:
        if self.attempts and self.attempts[-1].fate is Fate.OPEN:
            self.attempts[-1].fate = Fate.ABORTED

    def _wait_for_the_timeout(self) -> Asking:
        """The coordinator ends what it has left open; then it is initialised anew."""
        self._left.clear()
        state = ["Ongoing"]

        def answered(answer: Any) -> None:
            state[0] = answer.transaction_states[0].transaction_state

        while state[0] in ("Ongoing", *_PREPARED):
            yield [Ask(DescribeTransactionsRequest(transactional_ids=(self.name,)), answered)]
        self._abort_open()
        self._is_out = False
        yield from self._take(Step.INITIALISE, [self._initialise()])

    def died(self) -> None:
        """The server is dead: a commit that was sent and not answered is in doubt."""
        if self._left and self._left[0][0] is Step.COMMIT and self.is_inside:
            self.attempts[-1].fate = Fate.COMMITTING

    # --- looking

    def take_over(self, talk: Asker) -> None:
        """A successor is initialised, with the same transactional id; it ends what is open."""
        wanted = self._initialise()
        until(lambda: self._tried(talk, wanted), f"{self.name} to be initialised")
        self._left.clear()
        self._is_out = False
        self._abort_open()

    def _tried(self, talk: Asker, wanted: _Wanted) -> bool:
        answer = talk.ask(wanted.request, wanted.version)
        errors = wanted.errors(answer) - {0}
        if not errors:
            wanted.then(answer)
        elif not errors <= _TRY_AGAIN:
            raise Refused(f"{self.name}: a successor is answered with {answer}")
        return not errors

    def wait_until_completed(self, talk: Asker) -> str:
        """The state of its transaction, which does not stay prepared."""
        found: list[str] = []

        def is_complete() -> bool:
            answer = talk.ask(DescribeTransactionsRequest(transactional_ids=(self.name,))).transaction_states[0]
            found[:] = [answer.transaction_state]
            return answer.error_code not in _TRY_AGAIN and answer.transaction_state not in _PREPARED

        until(is_complete, f"the transaction of {self.name} to be completed")
        return found[0]

    def check(self, output: Sequence[ConsumerRecord], offset: int | None) -> Iterator[str]:
        """What is wrong with the committed ``output`` and with the group's ``offset``; None: a transaction may change it."""
        seen: dict[int, list[int]] = {}
        for record in output:
            if record.key == self.name.encode():
                number, value, *_ = (record.value or b"").split(b" ")
                seen.setdefault(int(number), []).append(int(value))
        unstable = offset is None
        for attempt in self.attempts:
            found, whole = sorted(seen.pop(attempt.number, [])), _inputs(attempt)
            if attempt.fate is Fate.COMMITTING and not unstable:
                self._ended(attempt, Fate.COMMITTED if found else Fate.ABORTED)
            hidden = attempt.fate in (Fate.OPEN, Fate.ABORTED)
            if found and hidden:
                yield f"{self.name}: {found} of transaction {attempt.number} are read, which is {attempt.fate.name}"
            elif not hidden and not unstable and found != (whole if attempt.fate is Fate.COMMITTED else []):
                yield f"{self.name}: {found} of transaction {attempt.number} are read, and it wrote {whole}"
            elif len(set(found)) != len(found):
                yield f"{self.name}: {found} of transaction {attempt.number} are read, some of them twice"
        if seen:
            yield f"{self.name}: transactions {sorted(seen)} are read, which there never were"
        if offset is not None and max(offset, 0) != self._position:
            yield f"{self.name}: the output is up to {self._position}, and the group's offset is {offset}"

    def count(self, fate: Fate) -> int:
        """How many transactions it has had of this fate."""
        return sum(attempt.fate is fate for attempt in self.attempts)


def _inputs(attempt: Attempt) -> list[int]:
    return list(range(attempt.first, attempt.first + attempt.count))


def until(condition: Callable[[], bool], what: str) -> None:
    """Ask until it is so. Raises Refused when patience is over."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            raise Refused(f"in vain was waited for {what}")


def committed_output(talk: Asker) -> list[ConsumerRecord]:
    """All that a reader of committed records finds."""
    found: list[ConsumerRecord] = []
    for partition in range(OUTPUT_PARTITIONS):
        offset = 0
        while True:
            answer = fetched(
                talk.ask(replace(fetch(OUTPUT, partition, offset=offset), isolation_level=_COMMITTED_ONLY))
            )
            if answer.error_code:
                raise Refused(f"{OUTPUT}-{partition} is answered with {answer}")
            decoded = decode_records(
                (OUTPUT, partition), bytes(answer.records or b""), offset, answer.aborted_transactions or ()
            )
            found += decoded.records
            if decoded.next_offset == offset:
                break
            offset = decoded.next_offset
    return found


def stable_offset(talk: Asker, group: str) -> int | None:
    """The committed offset of ``group``, -1 if there is none; None: a transaction is open that may change it."""
    asked = OffsetFetchRequestTopics(name=INPUT, partition_indexes=(0,))
    request = OffsetFetchRequest(
        groups=(OffsetFetchRequestGroup(group_id=group, topics=(asked,)),), require_stable=True
    )
    found: list[Any] = []

    def is_loaded() -> bool:
        found[:] = [talk.ask(request).groups[0]]
        return found[0].error_code not in _TRY_AGAIN

    until(is_loaded, f"{group} to be loaded")
    partition = found[0].topics[0].partitions[0]
    if partition.error_code == ErrorCode.UNSTABLE_OFFSET_COMMIT:
        return None
    if found[0].error_code or partition.error_code:
        raise Refused(f"{group}: its offset is answered with {found[0]}")
    offset: int = partition.committed_offset
    return offset


def stuck(talk: Asker, topics: Mapping[str, int]) -> Iterator[str]:
    """The partitions of ``topics`` whose last stable offset is not their end: in none of them a transaction may be open."""
    for topic, count in topics.items():
        for partition in range(count):
            stable, end = (_end_of(talk, topic, partition, isolation) for isolation in (_COMMITTED_ONLY, 0))
            if stable != end:
                yield f"the last stable offset of {topic}-{partition} stays {stable}, and the log ends at {end}"


def _end_of(talk: Asker, topic: str, partition: int, isolation: int) -> int:
    asked = ListOffsetsTopic(name=topic, partitions=(ListOffsetsPartition(partition_index=partition, timestamp=-1),))
    answer = talk.ask(ListOffsetsRequest(replica_id=-1, isolation_level=isolation, topics=(asked,)))
    offset: int = answer.topics[0].partitions[0].offset
    return offset


def look(talk: Asker, clients: Sequence[ExactlyOnce], topics: Mapping[str, int]) -> Iterator[str]:
    """What is wrong after a start: what was prepared is completed, then everybody goes on or has a successor, and the output
    is what it has to be."""
    for client in clients:
        client.died()
        client.wait_until_completed(talk)
        if not client.resumes:
            client.take_over(talk)
    output = committed_output(talk)
    everybody_is_new = not any(client.resumes for client in clients)
    for client in clients:
        offset = stable_offset(talk, client.group)
        if everybody_is_new and offset is None:
            yield f"{client.name}: the offset of its group stays pending"
        yield from client.check(output, offset if everybody_is_new else None)
    if everybody_is_new:
        yield from stuck(talk, topics)

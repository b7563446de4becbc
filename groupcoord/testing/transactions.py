"""A transactional id as a test sees it: what its transaction is now, and waits for what it becomes. The same methods for every
kind of cluster."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

from groupcoord.assignors import TopicPartition
from groupcoord.coordinator.transaction.metadata import TransactionState
from groupcoord.core.events import partition_names
from groupcoord.testing.faults.matching import suggestion
from groupcoord.testing.forgotten_awaits import noted

DEAD, ONGOING = TransactionState.DEAD.value, TransactionState.ONGOING.value
_STATES = tuple(state.value for state in TransactionState if state is not TransactionState.PREPARE_EPOCH_FENCE)


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionDescription:
    """A transactional id and its transaction at one moment, as DescribeTransactions tells it (KIP-664).

    ``state`` is Kafka's word, and ``Dead`` if there is no such transactional id. While the broker does not coordinate it,
    ``state`` is the name of the error that clients get. ``producer_id`` and ``producer_epoch`` are -1 where none is known.
    """

    transactional_id: str
    state: str
    producer_id: int = -1
    producer_epoch: int = -1
    timeout_ms: int = -1
    """The producer's ``transaction.timeout.ms``."""
    start_ms: int = -1
    """When the last transaction began (milliseconds since 1970); -1: there was none since the producer was initialised."""
    partitions: frozenset[TopicPartition] = frozenset()
    """Those in the transaction that were not told yet how it ended; the offsets of a group are in ``__consumer_offsets``."""

    def text(self) -> str:
        """The transaction in one line."""
        producer = "" if self.producer_id < 0 else f", producer {self.producer_id} epoch {self.producer_epoch}"
        return f"{self.transactional_id} {self.state}{producer}" + (
            f", with {partition_names(sorted(self.partitions))}" if self.partitions else ""
        )


@noted
class TransactionHandle(ABC):
    """The transactional id ``name``, whether it exists or not. Every wait takes ``timeout`` (seconds; 10 unless given)
    and raises WaitTimeoutError, which says what was seen last.

    A wait sees the state of the moment: a producer that goes straight on with its next transaction leaves the end of the last
    one behind, above all on a remote broker, which is asked again and again.
    """

    name: str
    """What it is called."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"

    @abstractmethod
    async def describe(self) -> TransactionDescription:
        """The transaction as it is now."""

    async def state(self) -> str:
        """Kafka's word for its state: Empty, Ongoing, PrepareCommit, PrepareAbort, CompleteCommit, CompleteAbort or Dead."""
        return (await self.describe()).state

    @abstractmethod
    async def wait_until(
        self, condition: Callable[[TransactionDescription], bool], what: str, *, timeout: float | None = None
    ) -> TransactionDescription:
        """Wait until ``condition`` is true of the transaction; ``what`` says in the error what it should have done."""

    async def wait_state(self, *states: str, timeout: float | None = None) -> TransactionDescription:
        """Wait until it is in one of ``states``. Raises ValueError for what is no state."""
        for state in states:
            if state not in _STATES:
                raise ValueError(f"there is no state {state!r} of a transaction{suggestion(state, _STATES)}")
        return await self.wait_until(lambda seen: seen.state in states, f"be {' or '.join(states)}", timeout=timeout)

    async def wait_ongoing(self, *topics: str, timeout: float | None = None) -> TransactionDescription:
        """Wait until a transaction is open, with a partition of each of ``topics`` in it."""
        wanted = frozenset(topics)
        among = f" with {', '.join(topics)}" if topics else ""
        return await self.wait_until(
            lambda seen: seen.state == ONGOING and wanted <= {topic for topic, _ in seen.partitions},
            f"be Ongoing{among}",
            timeout=timeout,
        )

    async def wait_committed(self, *, timeout: float | None = None) -> TransactionDescription:
        """Wait until its last transaction is committed, and all partitions know."""
        return await self.wait_state(TransactionState.COMPLETE_COMMIT.value, timeout=timeout)

    async def wait_aborted(self, *, timeout: float | None = None) -> TransactionDescription:
        """Wait until its last transaction is aborted, and all partitions know."""
        return await self.wait_state(TransactionState.COMPLETE_ABORT.value, timeout=timeout)

    @abstractmethod
    async def abort(self) -> None:
        """Let the coordinator abort the transaction that is open, as its timeout would: the producer is fenced.

        It is decided when this returns; ``wait_aborted`` waits until all partitions know. Raises ValueError if none is open.
        """

"""TransactionHandle, ``kafka.transaction(id)`` of every kind of cluster: describing a transaction, waiting for its states, and
aborting it.

ClusterTransaction reads an in-process coordinator directly, and can also unload, load and move it; RemoteTransaction uses only
requests that any broker serves.
"""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from groupcoord.assignors import TopicPartition
from groupcoord.broker.topic_names import TRANSACTION_STATE
from groupcoord.cluster.cluster_core import ClusterCore
from groupcoord.coordinator.transaction.events import TransactionChanged
from groupcoord.coordinator.transaction.metadata import TransactionState
from groupcoord.core.api_error import ApiError
from groupcoord.core.events import partition_names
from groupcoord.protocol.apis.describe_transactions import DescribeTransactionsRequest, DescribeTransactionsResponse
from groupcoord.protocol.apis.find_coordinator import TRANSACTION
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages import FindCoordinatorRequest, InitProducerIdRequest, InitProducerIdResponse
from groupcoord.testing import forced_actions_on_core
from groupcoord.testing.engine import Engine
from groupcoord.testing.faults.matching import suggestion
from groupcoord.testing.forgotten_awaits import noted
from groupcoord.testing.wait_reasons import explained, wait_reasons
from groupcoord.testing.waiting import poll

DEAD, EMPTY, ONGOING = TransactionState.DEAD.value, TransactionState.EMPTY.value, TransactionState.ONGOING.value
COMPLETE_COMMIT, COMPLETE_ABORT = TransactionState.COMPLETE_COMMIT.value, TransactionState.COMPLETE_ABORT.value
_STATES = tuple(state.value for state in TransactionState if state is not TransactionState.PREPARE_EPOCH_FENCE)


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionDescription:
    """A transactional id and its transaction at one moment, as DescribeTransactions returns it (KIP-664).

    ``state`` is as in Kafka, and ``Dead`` if the transactional id does not exist. While its coordinator is not loaded,
    ``state`` is the name of the error that clients get. ``producer_id`` and ``producer_epoch`` are -1 if unknown.
    """

    transactional_id: str
    state: str
    producer_id: int = -1
    producer_epoch: int = -1
    timeout_ms: int = -1
    """The producer's ``transaction.timeout.ms``."""
    start_ms: int = -1
    """The start of the last transaction (milliseconds since 1970); -1 if there was none since the last InitProducerId."""
    partitions: frozenset[TopicPartition] = frozenset()
    """The partitions in the transaction that have no transaction marker of it yet; committed offsets of a group are in a
    partition of ``__consumer_offsets``."""

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

    A wait may miss a short state: the end of a transaction is not seen if the producer starts the next one at once, above all
    on a remote broker, which is polled, and which returns only ``Empty`` after InitProducerId.
    """

    name: str
    """The transactional id."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"

    @abstractmethod
    async def describe(self) -> TransactionDescription:
        """The transaction as it is now."""

    async def state(self) -> str:
        """Its state, as in Kafka: Empty, Ongoing, PrepareCommit, PrepareAbort, CompleteCommit, CompleteAbort or Dead."""
        return (await self.describe()).state

    @abstractmethod
    async def wait_until(
        self, condition: Callable[[TransactionDescription], bool], what: str, *, timeout: float | None = None
    ) -> TransactionDescription:
        """Wait until ``condition`` is true of the transaction; ``what`` says in the error text what it should have done."""

    async def wait_state(self, *states: str, timeout: float | None = None) -> TransactionDescription:
        """Wait until it is in one of ``states``. Raises ValueError for an unknown state."""
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
        """Wait until its last transaction is committed, with a transaction marker in every partition."""
        return await self._wait_ended(COMPLETE_COMMIT, timeout)

    async def wait_aborted(self, *, timeout: float | None = None) -> TransactionDescription:
        """Wait until its last transaction is aborted, with a transaction marker in every partition."""
        return await self._wait_ended(COMPLETE_ABORT, timeout)

    async def _wait_ended(self, state: str, timeout: float | None) -> TransactionDescription:
        return await self.wait_state(state, timeout=timeout)

    @abstractmethod
    async def abort(self) -> None:
        """Make the coordinator abort the open transaction, as when its timeout expires: the producer is fenced.

        The abort is decided when this returns; ``wait_aborted`` waits for the transaction markers. Raises ValueError if no
        transaction is open.
        """


@noted
class RemoteTransaction(TransactionHandle):
    """One transactional id of a :class:`~groupcoord.testing.remote_cluster.RemoteCluster`; ``ask`` sends a request to its
    coordinator."""

    def __init__(self, name: str, ask: Callable[[Any], Awaitable[Any]]) -> None:
        super().__init__(name)
        self._ask = ask

    async def describe(self) -> TransactionDescription:
        """The transaction as it is now."""
        answer: DescribeTransactionsResponse = await self._ask(
            DescribeTransactionsRequest(transactional_ids=(self.name,))
        )
        (found,) = answer.transaction_states
        code = ErrorCode(found.error_code)
        if code:
            state = DEAD if code is ErrorCode.TRANSACTIONAL_ID_NOT_FOUND else code.name
            return TransactionDescription(transactional_id=self.name, state=state)
        return TransactionDescription(
            transactional_id=self.name,
            state=found.transaction_state,
            producer_id=found.producer_id,
            producer_epoch=found.producer_epoch,
            timeout_ms=found.transaction_timeout_ms,
            start_ms=found.transaction_start_time_ms,
            partitions=frozenset((each.topic, number) for each in found.topics for number in each.partitions),
        )

    async def wait_until(
        self, condition: Callable[[TransactionDescription], bool], what: str, *, timeout: float | None = None
    ) -> TransactionDescription:
        """Wait until ``condition`` is true of the transaction; ``what`` says in the error text what it should have done."""
        return await poll(
            self.describe,
            condition,
            f"transaction {self.name} should {what}",
            lambda seen: f"It is {seen.text()}",
            timeout=timeout,
        )

    async def abort(self) -> None:
        """Make the coordinator abort the open transaction, as when its timeout expires: the producer is fenced.

        It works like ``Admin.fenceProducers``: InitProducerId with the transactional id, which returns CONCURRENT_TRANSACTIONS
        because the open transaction is being aborted. The abort is decided when this returns; ``wait_aborted`` waits for the
        transaction markers. Raises ValueError if no transaction is open.
        """
        seen = await self.describe()
        if seen.state != ONGOING:
            raise ValueError(f"only an ongoing transaction can be aborted; that of {self.name!r} is {seen.state}")
        request = InitProducerIdRequest(transactional_id=self.name, transaction_timeout_ms=seen.timeout_ms)
        answer: InitProducerIdResponse = await self._ask(request)
        code = ErrorCode(answer.error_code)
        if code is not ErrorCode.CONCURRENT_TRANSACTIONS:
            told = f"was told {code.name}" if code else "fenced its producer instead, for it had ended meanwhile"
            raise ValueError(f"the transaction of {self.name!r} is not aborted: who asked for it {told}")


@noted
class ClusterTransaction(TransactionHandle):
    """One transactional id of a :class:`~groupcoord.testing.cluster.Cluster`. Actions raise ValueError."""

    def __init__(self, name: str, engine: Engine, ask: Callable[..., Awaitable[Any]]) -> None:
        super().__init__(name)
        self._engine = engine
        self._ask = ask

    def __repr__(self) -> str:
        return f"<ClusterTransaction {self.description().text()}>"

    async def describe(self) -> TransactionDescription:
        """The transaction as it is now."""
        return self.description()

    def description(self) -> TransactionDescription:
        """As ``describe``, without ``await``, for use in conditions."""
        return transaction_description(self._engine.core, self.name)

    async def wait_until(
        self, condition: Callable[[TransactionDescription], bool], what: str, *, timeout: float | None = None
    ) -> TransactionDescription:
        """Wait until ``condition`` is true of the transaction; ``what`` says in the error text what it should have done."""
        return await self._engine.waiting.until(
            lambda: seen if condition(seen := self.description()) else None,
            f"transaction {self.name} should {what}",
            self._seen,
            timeout=timeout,
        )

    async def _wait_ended(self, state: str, timeout: float | None) -> TransactionDescription:
        """Also looks into the trace: an InitProducerId since then, as of a successor that fences it, makes the state Empty."""
        return await self.wait_until(
            lambda seen: seen.state == state or (seen.state == EMPTY and self._last_end() == state),
            f"be {state}",
            timeout=timeout,
        )

    def _last_end(self) -> str | None:
        changes = self._engine.trace.of(TransactionChanged, transactional_id=self.name)
        ends = [each.after for each in changes if each.after in (COMPLETE_COMMIT, COMPLETE_ABORT)]
        return ends[-1] if ends else None

    def _seen(self) -> str:
        seen = self.description()
        if seen.state != DEAD:
            return explained(f"It is {seen.text()}", wait_reasons(self._engine, transactional_id=self.name))
        others = [repr(name) for name in self._engine.transactional_ids()]
        return f"There is no such transactional id; there {'are' if others else 'is'} {', '.join(others) or 'none'}"

    async def abort(self) -> None:
        """Make the coordinator abort the open transaction, as when its timeout expires: the producer is fenced.

        The abort is decided when this returns; ``wait_aborted`` waits for the transaction markers. Raises ValueError if no
        transaction is open.
        """
        effects = forced_actions_on_core.abort(self._engine.core, self.name, self._engine.clock())
        await self._engine.act(effects, f"abort the transaction of {self.name}")

    @property
    def coordinator(self) -> int:
        """The id of the broker that coordinates this transactional id."""
        return self._engine.coordinator_of(self.name, TRANSACTION)

    async def unload_coordinator(self) -> None:
        """Unload the coordinator of this id, and of all ids of its partition, until ``load_coordinator``."""
        await self._engine.unload_coordinator(TRANSACTION_STATE, self.name)

    async def load_coordinator(self) -> None:
        """Load the coordinator again: all ids of its partition are read from ``__transaction_state``."""
        await self._engine.load_coordinator(TRANSACTION_STATE, self.name)

    async def move_coordinator(self, to: int) -> None:
        """Move the coordinator of this id, and of all ids of its partition, to the broker with the id ``to``."""
        if TRANSACTION_STATE not in self._engine.core.broker.topics:  # the first FindCoordinator creates it
            await self._ask(FindCoordinatorRequest(key_type=TRANSACTION, coordinator_keys=(self.name,)))
        await self._engine.move_coordinator(TRANSACTION_STATE, self.name, to)


def transaction_description(core: ClusterCore, name: str) -> TransactionDescription:
    """The description of the transactional id ``name``, as the coordinator in ``core`` has it now."""
    runtime = core.transactions.runtime
    shard = runtime.shard_of(name)
    if shard.partition in runtime.deleted:
        return TransactionDescription(transactional_id=name, state=DEAD)
    try:
        shard.require_active()
    except ApiError as refusal:
        return TransactionDescription(transactional_id=name, state=refusal.code.name)
    found = shard.machine.transactions.get(name)
    if found is None:
        return TransactionDescription(transactional_id=name, state=DEAD)
    data = found.data
    return TransactionDescription(
        transactional_id=name,
        state=data.state.value,
        producer_id=data.producer_id,
        producer_epoch=data.producer_epoch,
        timeout_ms=data.timeout_ms,
        start_ms=data.start_ms,
        partitions=frozenset(data.partitions),
    )

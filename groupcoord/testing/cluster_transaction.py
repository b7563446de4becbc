"""A transactional id of a cluster in this process: looked up where it is, and a test can do to it what an operator could."""

from collections.abc import Awaitable, Callable
from typing import Any

from groupcoord.broker.topic_names import TRANSACTION_STATE
from groupcoord.cluster.cluster_core import ClusterCore
from groupcoord.coordinator.coordinator import TRANSACTION
from groupcoord.core.api_error import ApiError
from groupcoord.protocol.messages import FindCoordinatorRequest
from groupcoord.testing import forced_actions
from groupcoord.testing.engine import Engine
from groupcoord.testing.forgotten_awaits import noted
from groupcoord.testing.transactions import DEAD, TransactionDescription, TransactionHandle
from groupcoord.testing.wait_reasons import explained, wait_reasons


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
        """As ``describe``, without ``await``: for conditions."""
        return transaction_description(self._engine.core, self.name)

    async def wait_until(
        self, condition: Callable[[TransactionDescription], bool], what: str, *, timeout: float | None = None
    ) -> TransactionDescription:
        """Wait until ``condition`` is true of the transaction; ``what`` says in the error what it should have done."""
        return await self._engine.waiting.until(
            lambda: seen if condition(seen := self.description()) else None,
            f"transaction {self.name} should {what}",
            self._seen,
            timeout=timeout,
        )

    def _seen(self) -> str:
        seen = self.description()
        if seen.state != DEAD:
            return explained(f"It is {seen.text()}", wait_reasons(self._engine, transactional_id=self.name))
        others = [repr(name) for name in self._engine.transactional_ids()]
        return f"There is no such transactional id; there {'are' if others else 'is'} {', '.join(others) or 'none'}"

    async def abort(self) -> None:
        """Let the coordinator abort the transaction that is open, as its timeout would: the producer is fenced.

        It is decided when this returns; ``wait_aborted`` waits until all partitions know. Raises ValueError if none is open.
        """
        effects = forced_actions.abort(self._engine.core, self.name, self._engine.clock())
        await self._engine.act(effects, f"abort the transaction of {self.name}")

    async def unload_coordinator(self) -> None:
        """The broker coordinates this id no longer, nor the others of its partition, until ``load_coordinator``."""
        await self._engine.unload_coordinator(TRANSACTION_STATE, self.name)

    async def load_coordinator(self) -> None:
        """Read that partition of ``__transaction_state`` from the log, and coordinate what is in it again."""
        await self._engine.load_coordinator(TRANSACTION_STATE, self.name)

    async def move_coordinator(self, to: int) -> None:
        """Let the broker with the id ``to`` coordinate this transactional id, and the others of its partition."""
        if TRANSACTION_STATE not in self._engine.core.broker.topics:  # who asks for a coordinator first makes it
            await self._ask(FindCoordinatorRequest(key_type=TRANSACTION, coordinator_keys=(self.name,)))
        await self._engine.move_coordinator(TRANSACTION_STATE, self.name, to)


def transaction_description(core: ClusterCore, name: str) -> TransactionDescription:
    """The transactional id ``name`` as ``core`` has it now."""
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

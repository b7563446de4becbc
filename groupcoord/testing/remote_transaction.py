"""A transactional id of a cluster elsewhere, by what any broker tells and does."""

from collections.abc import Awaitable, Callable
from typing import Any

from groupcoord.protocol.apis.describe_transactions import DescribeTransactionsRequest, DescribeTransactionsResponse
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages import InitProducerIdRequest, InitProducerIdResponse
from groupcoord.testing.forgotten_awaits import noted
from groupcoord.testing.transactions import DEAD, ONGOING, TransactionDescription, TransactionHandle
from groupcoord.testing.waiting import poll


@noted
class RemoteTransaction(TransactionHandle):
    """One transactional id of a :class:`~groupcoord.testing.remote_cluster.RemoteCluster`; ``ask`` asks its coordinator."""

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
        """Wait until ``condition`` is true of the transaction; ``what`` says in the error what it should have done."""
        return await poll(
            self.describe,
            condition,
            f"transaction {self.name} should {what}",
            lambda seen: f"It is {seen.text()}",
            timeout=timeout,
        )

    async def abort(self) -> None:
        """Let the coordinator abort the transaction that is open, as its timeout would: the producer is fenced.

        It is done as ``Admin.fenceProducers`` does it: a producer is initialised with the transactional id, and told
        CONCURRENT_TRANSACTIONS, because the transaction before it is being aborted. It is decided when this returns;
        ``wait_aborted`` waits until all partitions know. Raises ValueError if none is open.
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

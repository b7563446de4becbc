"""Transactional ids and their transactions."""

from typing import Annotated

from fastapi import Path, Query

from groupcoord.control.models import NewCoordinator, Transaction, partitions_of
from groupcoord.control.problems import ProblemError, wrong_argument
from groupcoord.control.routing import BODY, CONFLICT, WAITS, Target, Timeout, router, waited
from groupcoord.testing.transactions import TransactionDescription

transactions = router("transactions")

TransactionalId = Annotated[str, Path(description="transactional.id")]


def _answer(seen: TransactionDescription) -> Transaction:
    return Transaction(
        transactional_id=seen.transactional_id,
        state=seen.state,
        producer_id=seen.producer_id,
        producer_epoch=seen.producer_epoch,
        timeout_ms=seen.timeout_ms,
        start_ms=seen.start_ms,
        partitions=partitions_of(seen.partitions),
    )


@transactions.get("/transactions", summary="List the transactional ids")
async def list_transactions(cluster: Target) -> list[Transaction]:
    """With the transaction of each."""
    return [_answer(cluster.transaction(name).description()) for name in cluster.transactional_ids()]


@transactions.get("/transactions/{transactional_id:name}", summary="Show a transactional id and its transaction")
async def show_transaction(transactional_id: TransactionalId, cluster: Target) -> Transaction:
    """The state is ``Dead`` if there is no such id."""
    return _answer(cluster.transaction(transactional_id).description())


@transactions.get(
    "/transactions/{transactional_id:name}/wait", summary="Wait until a transaction is as it should be", responses=WAITS
)
async def wait_transaction(
    transactional_id: TransactionalId,
    cluster: Target,
    timeout: Timeout,
    state: Annotated[
        list[str] | None, Query(description="Kafka's word for a state, such as CompleteCommit; repeated: one of them")
    ] = None,
    ongoing: Annotated[
        str | None,
        Query(description="a transaction is open with a partition of each of these topics; any: of whichever"),
    ] = None,
    committed: Annotated[bool, Query(description="the last one is committed, and all partitions know")] = False,
    aborted: Annotated[bool, Query(description="the last one is aborted, and all partitions know")] = False,
) -> Transaction:
    """A long poll: the answer comes when it is so. One condition at a time."""
    handle = cluster.transaction(transactional_id)
    asked = {"state": state, "ongoing": ongoing, "committed": committed, "aborted": aborted}
    conditions = [name for name, value in asked.items() if value]
    if len(conditions) != 1:
        wrong = f"{' and '.join(conditions)} do not go together" if conditions else "no condition is given"
        raise ProblemError.of_field("query", f"{wrong}: one of {', '.join(asked)}")
    if state:
        with wrong_argument("state"):
            wait = handle.wait_state(*state, timeout=timeout)
            return _answer(await waited(cluster, wait))
    if ongoing:
        topics = () if ongoing == "any" else ongoing.split(",")
        return _answer(await waited(cluster, handle.wait_ongoing(*topics, timeout=timeout)))
    wait = handle.wait_committed(timeout=timeout) if committed else handle.wait_aborted(timeout=timeout)
    return _answer(await waited(cluster, wait))


@transactions.post(
    "/transactions/{transactional_id:name}/abort", summary="Abort the open transaction", responses=CONFLICT
)
async def abort_transaction(transactional_id: TransactionalId, cluster: Target) -> Transaction:
    """As its timeout would: the producer is fenced. ``wait?aborted=true`` waits until all partitions know."""
    await cluster.transaction(transactional_id).abort()
    return _answer(cluster.transaction(transactional_id).description())


@transactions.post(
    "/transactions/{transactional_id:name}/unload-coordinator", summary="Coordinate it no longer", responses=CONFLICT
)
async def unload_transaction_coordinator(transactional_id: TransactionalId, cluster: Target) -> Transaction:
    """Nor the others of its partition of ``__transaction_state``."""
    await cluster.transaction(transactional_id).unload_coordinator()
    return _answer(cluster.transaction(transactional_id).description())


@transactions.post(
    "/transactions/{transactional_id:name}/load-coordinator", summary="Coordinate it again", responses=CONFLICT
)
async def load_transaction_coordinator(transactional_id: TransactionalId, cluster: Target) -> Transaction:
    """With what the log has of the ids of its partition."""
    await cluster.transaction(transactional_id).load_coordinator()
    return _answer(cluster.transaction(transactional_id).description())


@transactions.post(
    "/transactions/{transactional_id:name}/move-coordinator",
    summary="Let another broker coordinate it",
    responses=BODY | CONFLICT,
)
async def move_transaction_coordinator(
    transactional_id: TransactionalId, body: NewCoordinator, cluster: Target
) -> Transaction:
    """And the others of its partition of ``__transaction_state``."""
    with wrong_argument("to"):
        await cluster.transaction(transactional_id).move_coordinator(body.to)
    return _answer(cluster.transaction(transactional_id).description())

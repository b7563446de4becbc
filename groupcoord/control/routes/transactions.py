"""Routes of transactional ids: their transactions, waiting for a state, aborting, and unloading or moving the coordinator."""

from typing import Annotated

from fastapi import Path, Query

from groupcoord.control.models import NewCoordinator, Transaction
from groupcoord.control.problem_documents import wrong_argument
from groupcoord.control.route_dependencies import BODY, CONFLICT, WAITS, Target, Timeout, require_one_of, router, waited
from groupcoord.testing.transaction_handle import ClusterTransaction

transactions = router("transactions")

TransactionalId = Annotated[str, Path(description="transactional.id")]


def _answer(transaction: ClusterTransaction) -> Transaction:
    return Transaction.model_validate(transaction.description())


@transactions.get("/transactions", summary="List the transactional ids")
async def list_transactions(cluster: Target) -> list[Transaction]:
    """Each with its transaction."""
    return [_answer(cluster.transaction(name)) for name in cluster.transactional_ids()]


@transactions.get("/transactions/{transactional_id:name}", summary="Show a transactional id and its transaction")
async def show_transaction(transactional_id: TransactionalId, cluster: Target) -> Transaction:
    """The state is ``Dead`` if the id does not exist."""
    return _answer(cluster.transaction(transactional_id))


@transactions.get(
    "/transactions/{transactional_id:name}/wait", summary="Wait for a state of a transaction", responses=WAITS
)
async def wait_transaction(
    transactional_id: TransactionalId,
    cluster: Target,
    timeout: Timeout,
    state: Annotated[
        list[str] | None, Query(description="a state as in Kafka, such as CompleteCommit; repeated: one of them")
    ] = None,
    ongoing: Annotated[
        str | None,
        Query(
            description="a transaction is open with a partition of each of these topics; any: with whatever partitions"
        ),
    ] = None,
    committed: Annotated[
        bool, Query(description="the last one is committed, with a transaction marker in every partition")
    ] = False,
    aborted: Annotated[
        bool, Query(description="the last one is aborted, with a transaction marker in every partition")
    ] = False,
) -> Transaction:
    """A long poll: the response comes when the condition holds. Give exactly one condition."""
    handle = cluster.transaction(transactional_id)
    asked = {"state": state, "ongoing": ongoing, "committed": committed, "aborted": aborted}
    require_one_of(asked)
    if state:
        with wrong_argument("state"):
            seen = await waited(cluster, handle.wait_state(*state, timeout=timeout))
    elif ongoing:
        topics = () if ongoing == "any" else ongoing.split(",")
        seen = await waited(cluster, handle.wait_ongoing(*topics, timeout=timeout))
    else:
        wait = handle.wait_committed(timeout=timeout) if committed else handle.wait_aborted(timeout=timeout)
        seen = await waited(cluster, wait)
    return Transaction.model_validate(seen)


@transactions.post(
    "/transactions/{transactional_id:name}/abort", summary="Abort the open transaction", responses=CONFLICT
)
async def abort_transaction(transactional_id: TransactionalId, cluster: Target) -> Transaction:
    """As when its timeout expires, the producer is fenced. ``wait?aborted=true`` waits until every partition has its
    transaction marker."""
    await cluster.transaction(transactional_id).abort()
    return _answer(cluster.transaction(transactional_id))


@transactions.post(
    "/transactions/{transactional_id:name}/unload-coordinator",
    summary="Unload the transaction coordinator of an id",
    responses=CONFLICT,
)
async def unload_transaction_coordinator(transactional_id: TransactionalId, cluster: Target) -> Transaction:
    """All ids of its partition of ``__transaction_state`` are unloaded."""
    await cluster.transaction(transactional_id).unload_coordinator()
    return _answer(cluster.transaction(transactional_id))


@transactions.post(
    "/transactions/{transactional_id:name}/load-coordinator",
    summary="Load the transaction coordinator of an id",
    responses=CONFLICT,
)
async def load_transaction_coordinator(transactional_id: TransactionalId, cluster: Target) -> Transaction:
    """All ids of its partition are loaded from ``__transaction_state``."""
    await cluster.transaction(transactional_id).load_coordinator()
    return _answer(cluster.transaction(transactional_id))


@transactions.post(
    "/transactions/{transactional_id:name}/move-coordinator",
    summary="Move the transaction coordinator of an id to another broker",
    responses=BODY | CONFLICT,
)
async def move_transaction_coordinator(
    transactional_id: TransactionalId, body: NewCoordinator, cluster: Target
) -> Transaction:
    """All ids of its partition of ``__transaction_state`` move with it."""
    with wrong_argument("to"):
        await cluster.transaction(transactional_id).move_coordinator(body.to)
    return _answer(cluster.transaction(transactional_id))

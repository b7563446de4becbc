"""What a test does to a transaction, as an administrator would, with no request for it in the protocol.

Pure, as ``forced_group_actions``: a node and the time in, effects out. All raise a ValueError that says why where a thing
cannot be done.
"""

from groupcoord.cluster.cluster_core import ClusterCore
from groupcoord.coordinator.runtime.shard import ShardState
from groupcoord.coordinator.transaction import forced_actions
from groupcoord.coordinator.transaction.coordinator import TRANSACTION_STATE_TOPIC
from groupcoord.core.effects import Effect


def abort(node: ClusterCore, transactional_id: str, now_ms: int) -> list[Effect]:
    """Abort the ongoing transaction of ``transactional_id`` now, as its timeout would: its producer is fenced."""
    return node.run_admin_action(
        f"the administrator aborts the transaction of {transactional_id}",
        lambda ctx: forced_actions.abort_transaction(node.transactions, ctx, transactional_id),
        now_ms,
    )


def unload(node: ClusterCore, transactional_id: str, now_ms: int) -> list[Effect]:
    """Let the coordinator of ``transactional_id`` move away, with all of its partition: the answer is NOT_COORDINATOR."""
    return node.resign(partition_of(node, transactional_id), now_ms, TRANSACTION_STATE_TOPIC)


def load(node: ClusterCore, transactional_id: str, now_ms: int) -> list[Effect]:
    """Let the coordinator of ``transactional_id`` be this node again, with what ``__transaction_state`` has of its partition.

    It is read the next time the node's timers fire, which is at once; until then the answer is COORDINATOR_LOAD_IN_PROGRESS.
    What was prepared is completed then.
    """
    partition = partition_of(node, transactional_id)
    if node.broker.log(TRANSACTION_STATE_TOPIC, partition) is None:
        raise ValueError(
            f"there is no partition {partition} of {TRANSACTION_STATE_TOPIC}, where {transactional_id!r} would be: "
            "the topic is made when a producer first asks for the coordinator of a transactional id"
        )
    if node.transactions.shards[partition].state is ShardState.ACTIVE:
        raise ValueError(f"transactional id {transactional_id!r} has its coordinator here already")
    node.load(partition, now_ms, TRANSACTION_STATE_TOPIC)
    return []


def partition_of(node: ClusterCore, transactional_id: str) -> int:
    """The partition of ``__transaction_state`` that has ``transactional_id``, and which others share."""
    return node.transactions.runtime.shard_of(transactional_id).partition

"""What a test does to a group or a transaction, as an administrator would, with no request for it in the protocol.

Pure: a node and the time in, effects out, for ``Server.carry_out``. Their events have an AdminAction as cause. All raise a
ValueError that says why where a thing cannot be done.
"""

from groupcoord.broker.topic_names import CONSUMER_OFFSETS
from groupcoord.cluster.cluster_core import ClusterCore
from groupcoord.coordinator import forced_actions
from groupcoord.coordinator.forced_actions import abort_transaction
from groupcoord.coordinator.runtime.shard import ShardState
from groupcoord.core.effects import Effect


def force_rebalance(node: ClusterCore, group: str, reason: str, now_ms: int) -> list[Effect]:
    """Ask all members of ``group`` to join again; ``reason`` is what events and members' logs are told."""
    return node.run_admin_action(
        f"the administrator wants a rebalance of {group}: {reason}",
        lambda ctx: forced_actions.force_rebalance(node.coordinator, ctx, group, reason),
        now_ms,
    )


def expire(node: ClusterCore, group: str, member: str, now_ms: int) -> list[Effect]:
    """Let the session of ``member`` (a member id) run out now, with all that follows when a timer does it."""
    return node.run_admin_action(
        f"the administrator lets the session of {member} run out",
        lambda ctx: forced_actions.expire_member(node.coordinator, ctx, group, member),
        now_ms,
    )


def fence(node: ClusterCore, group: str, instance: str, now_ms: int) -> list[Effect]:
    """Let another, silent member take the ``group.instance.id`` ``instance``: the member that had it is fenced."""
    return node.run_admin_action(
        f"the administrator lets another member take the instance id {instance}",
        lambda ctx: forced_actions.fence_instance(node.coordinator, ctx, group, instance),
        now_ms,
    )


def abort(node: ClusterCore, transactional_id: str, now_ms: int) -> list[Effect]:
    """Abort the ongoing transaction of ``transactional_id`` now, as its timeout would: its producer is fenced."""
    return node.run_admin_action(
        f"the administrator aborts the transaction of {transactional_id}",
        lambda ctx: abort_transaction(node.transactions, ctx, transactional_id),
        now_ms,
    )


def unload(node: ClusterCore, topic: str, key: str, now_ms: int) -> list[Effect]:
    """Let the coordinator of ``key`` move away, with all of its partition of ``topic``: the answer is NOT_COORDINATOR."""
    return node.resign(partition_of(node, topic, key), now_ms, topic)


def load(node: ClusterCore, topic: str, key: str, now_ms: int) -> None:
    """Let the coordinator of ``key`` be this node again, with what ``topic`` has of its partition.

    It is read the next time the node's timers fire, which is at once; until then the answer is COORDINATOR_LOAD_IN_PROGRESS.
    Transactions that were prepared are completed then.
    """
    partition = partition_of(node, topic, key)
    kind = "group" if topic == CONSUMER_OFFSETS else "transactional id"
    if node.broker.log(topic, partition) is None:
        raise ValueError(
            f"there is no partition {partition} of {topic}, where {kind} {key!r} would be: "
            f"the topic is made when a client first asks for the coordinator of a {kind}"
        )
    if node.runtimes[topic].shards[partition].state is ShardState.ACTIVE:
        raise ValueError(f"{kind} {key!r} has its coordinator here already")
    node.load(partition, now_ms, topic)


def partition_of(node: ClusterCore, topic: str, key: str) -> int:
    """The partition of a coordinator's ``topic`` that has ``key``, and which others share."""
    return node.runtimes[topic].shard_of(key).partition

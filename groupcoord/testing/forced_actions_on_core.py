"""Actions that a test can force on a group or a transaction of a ClusterCore and for which Kafka's protocol has no request:
rebalance, expire or fence a member, abort a transaction, unload or load a coordinator.

Pure functions of a ClusterCore and the time, which return effects. The cause of their events is an AdminAction. They raise
ValueError, which says why, if the action is not possible.
"""

from groupcoord.broker.topic_names import CONSUMER_OFFSETS
from groupcoord.cluster.cluster_core import ClusterCore
from groupcoord.coordinator import forced_actions
from groupcoord.coordinator.forced_actions import abort_transaction
from groupcoord.coordinator.runtime.shard import ShardState
from groupcoord.core.effects import Effect


def force_rebalance(node: ClusterCore, group: str, reason: str, now_ms: int) -> list[Effect]:
    """Force a rebalance: all members of ``group`` have to join again. Events give the ``reason``."""
    return node.run_admin_action(
        f"the administrator wants a rebalance of {group}: {reason}",
        lambda ctx: forced_actions.force_rebalance(node.coordinator, ctx, group, reason),
        now_ms,
    )


def expire(node: ClusterCore, group: str, member: str, now_ms: int) -> list[Effect]:
    """Let the session of ``member`` (a member id) time out now, with the same effects as when its timer expires."""
    return node.run_admin_action(
        f"the administrator lets the session of {member} run out",
        lambda ctx: forced_actions.expire_member(node.coordinator, ctx, group, member),
        now_ms,
    )


def fence(node: ClusterCore, group: str, instance: str, now_ms: int) -> list[Effect]:
    """Fence the static member with the ``group.instance.id`` ``instance``: another, silent member takes it over."""
    return node.run_admin_action(
        f"the administrator lets another member take the instance id {instance}",
        lambda ctx: forced_actions.fence_instance(node.coordinator, ctx, group, instance),
        now_ms,
    )


def abort(node: ClusterCore, transactional_id: str, now_ms: int) -> list[Effect]:
    """Abort the ongoing transaction of ``transactional_id`` now, as when its timeout expires: its producer is fenced."""
    return node.run_admin_action(
        f"the administrator aborts the transaction of {transactional_id}",
        lambda ctx: abort_transaction(node.transactions, ctx, transactional_id),
        now_ms,
    )


def unload(node: ClusterCore, topic: str, key: str, now_ms: int) -> list[Effect]:
    """Unload the coordinator of ``key``, with all of its partition of ``topic``: clients get NOT_COORDINATOR."""
    return node.resign(partition_of(node, topic, key), now_ms, topic)


def load(node: ClusterCore, topic: str, key: str, now_ms: int) -> None:
    """Load the coordinator of ``key`` again, with all of its partition of ``topic``.

    The partition is read when the node's timers next fire, which is at once; until then clients get
    COORDINATOR_LOAD_IN_PROGRESS. Prepared transactions are completed then.
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
    """The partition of a coordinator's ``topic`` to which ``key`` belongs."""
    return node.runtimes[topic].shard_of(key).partition

"""What a test does to a group, as an administrator would, with no request for it in the protocol.

Pure: a node and the time in, effects out, for ``Server.carry_out``. Their events have an AdminAction as cause. All raise a
ValueError that says why where a thing cannot be done.
"""

from groupcoord.cluster.cluster_core import ClusterCore
from groupcoord.coordinator import forced_actions
from groupcoord.coordinator.coordinator import OFFSETS_TOPIC
from groupcoord.coordinator.runtime.shard import ShardState
from groupcoord.core.effects import Effect
from groupcoord.core.java_hash_order import partition_for


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


def unload(node: ClusterCore, group: str, now_ms: int) -> list[Effect]:
    """Let the coordinator of ``group`` move away, with all groups of its partition: the answer is NOT_COORDINATOR."""
    return node.resign(partition_of(node, group), now_ms)


def load(node: ClusterCore, group: str, now_ms: int) -> list[Effect]:
    """Let the coordinator of ``group`` be this node again, with what ``__consumer_offsets`` has of its partition's groups.

    It is read the next time the node's timers fire, which is at once; until then the answer is COORDINATOR_LOAD_IN_PROGRESS.
    """
    partition = partition_of(node, group)
    if node.coordinator.shards[partition].state is ShardState.ACTIVE:
        raise ValueError(f"group {group!r} has its coordinator here already")
    if node.broker.log(OFFSETS_TOPIC, partition) is None:
        raise ValueError(f"there is no partition {partition} of {OFFSETS_TOPIC}, where group {group!r} would be")
    node.load(partition, now_ms)
    return []


def partition_of(node: ClusterCore, group: str) -> int:
    """The partition of ``__consumer_offsets`` that has ``group``, and which other groups share."""
    return partition_for(group, len(node.coordinator.shards))

"""A classic group without a coordinator."""

from groupcoord.coordinator.classic.group import ClassicGroup
from groupcoord.coordinator.config import CoordinatorConfig
from groupcoord.coordinator.group import GroupContext
from groupcoord.coordinator.runtime.shard import ShardTimers
from groupcoord.core.timers import Timers


def bare_group(group_id: str = "g", now_ms: int = 0) -> ClassicGroup:
    """An empty group that no coordinator has; its timers do not fire."""
    timers = ShardTimers(Timers(), lambda *_: None)
    return ClassicGroup(group_id, now_ms, GroupContext(CoordinatorConfig(), timers, str))

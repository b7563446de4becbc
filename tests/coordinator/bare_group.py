"""Builds a ClassicGroup without a coordinator."""

from groupcoord.config.broker_config import BrokerConfig
from groupcoord.coordinator.classic.classic_group import ClassicGroup
from groupcoord.coordinator.group import GroupContext, GroupTable
from groupcoord.coordinator.runtime.shard import ShardTimers
from groupcoord.coordinator.runtime.undo import UndoRecorder
from groupcoord.coordinator.topics_view import SubscribedTopics
from groupcoord.core.timers import Timers
from tests.coordinator.topics import Topics, kafkas_defaults


def bare_group(group_id: str = "g", now_ms: int = 0) -> ClassicGroup:
    """An empty group that no coordinator has; its timers do not fire."""
    timers = ShardTimers(Timers(), lambda *_: None)
    undo = UndoRecorder()
    topics = SubscribedTopics(Topics({}))
    context = GroupContext(BrokerConfig.of(), timers, str, undo, topics, kafkas_defaults, lambda: 1, GroupTable(undo))
    return ClassicGroup(group_id, now_ms, context)
